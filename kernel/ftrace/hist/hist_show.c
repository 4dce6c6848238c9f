/* hist_show.c - prints histograms as Linux does. Locking: ftrace_lock. */
#include "kernel/ftrace/hist/hist.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/syscall.h"
#include "ktr/intern.h"

#define GRAPH_WIDTH 20u

/* ---- sorting ---- */

/* Lets the row at `at` sink in the heap of n. */
static void
hist_sink_row(struct hist *h, struct hist_row **rows, unsigned at, unsigned n,
	      int (*compare)(const struct hist *, const struct hist_row *, const struct hist_row *))
{
	for (unsigned child; (child = 2 * at + 1) < n; at = child) {
		struct hist_row *row = rows[at];

		if (child + 1 < n && compare(h, rows[child], rows[child + 1]) < 0)
			child++;
		if (compare(h, row, rows[child]) >= 0)
			return;
		rows[at] = rows[child];
		rows[child] = row;
	}
}

void
hist_sort(struct hist *h, struct hist_row **rows, unsigned n,
	  int (*compare)(const struct hist *h, const struct hist_row *a, const struct hist_row *b))
{
	for (unsigned i = n / 2; i-- > 0;)
		hist_sink_row(h, rows, i, n, compare);
	for (unsigned i = n; i-- > 1;) {
		struct hist_row *first = rows[0];

		rows[0] = rows[i];
		rows[i] = first;
		hist_sink_row(h, rows, 0, i, compare);
	}
}

/* Words of a key that begins there. */
static unsigned
key_words(const struct hist_field *f, const uint64_t *w)
{
	if (f->kind == HIST_STACK)
		return 1 + (unsigned)w[0];
	return f->kind == HIST_FIELD && f->field.string ? (unsigned)strlen((const char *)w) / 8 + 1
							: 1;
}

static int
hist_order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int
order_signed(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares key number `key`, or all: UINT32_MAX. */
static int
compare_keys(const struct hist *h, const struct hist_row *a, const struct hist_row *b, unsigned key)
{
	const uint64_t *x = a->keys, *y = b->keys;

	for (unsigned i = 0; i < h->nkeys; i++) {
		const struct hist_field *f = &h->keys[i];
		unsigned nx = key_words(f, x), ny = key_words(f, y);
		int result = 0;

		if (f->kind == HIST_FIELD && f->field.string)
			result = strcmp((const char *)x, (const char *)y);
		for (unsigned n = 0; f->kind != HIST_FIELD || !f->field.string; n++) {
			if (n == nx || n == ny || result != 0)
				break;
			result = f->kind == HIST_FIELD && f->field.is_signed
				     ? order_signed((int64_t)x[n], (int64_t)y[n])
				     : hist_order(x[n], y[n]);
		}
		if ((key == UINT32_MAX && result != 0) || key == i)
			return result;
		x += nx;
		y += ny;
	}
	return 0;
}

int
hist_compare_keys(const struct hist *h, const struct hist_row *a, const struct hist_row *b)
{
	return compare_keys(h, a, b, UINT32_MAX);
}

/* Compares two rows by what the histogram is sorted by, and then by the keys. */
static int
hist_compare_rows(const struct hist *h, const struct hist_row *a, const struct hist_row *b)
{
	for (unsigned i = 0; i < h->nsorts; i++) {
		unsigned key = h->sorts[i].key;
		int result = key < HIST_KEYS ? compare_keys(h, a, b, key)
					     : hist_order(a->values[key - HIST_KEYS],
							  b->values[key - HIST_KEYS]);

		if (result != 0)
			return h->sorts[i].descending ? -result : result;
	}
	return hist_compare_keys(h, a, b);
}

/* ---- rows ---- */

static void
hist_print_symbol(struct sbuf *out, uint64_t v, bool with_offset)
{
	uintptr_t offset;
	const char *name = ksym_lookup(v, &offset);
	char text[96];

	if (name == NULL)
		snprintf(text, sizeof(text), "0x%lx", v);
	else if (with_offset)
		snprintf(text, sizeof(text), "%s+0x%lx", name, offset);
	else
		snprintf(text, sizeof(text), "%s", name);
	sbuf_printf(out, with_offset ? "[%lx] %-55s" : "[%lx] %-45s", v, text);
}

static void
hist_print_stack(struct sbuf *out, const uint64_t *w)
{
	for (unsigned i = 1; i <= w[0]; i++) {
		uintptr_t offset;
		const char *name = ksym_lookup(w[i], &offset);

		if (name != NULL)
			sbuf_printf(out, "         %s+0x%lx\n", name, offset);
	}
}

static void
print_number(struct sbuf *out, const struct hist_field *f, uint64_t v)
{
	char name[KTR_THREAD_NAME], text[48] = "unknown_syscall";

	switch (f->modifier) {
	case HIST_HEX:
		sbuf_printf(out, "%lx", v);
		break;
	case HIST_SYM:
	case HIST_SYM_OFFSET:
		hist_print_symbol(out, v, f->modifier == HIST_SYM_OFFSET);
		break;
	case HIST_EXECNAME:
		if (ktr_thread_name_get((uint32_t)v, name) == NULL)
			strlcpy(name, "<...>", sizeof(name));
		sbuf_printf(out, "%-16s[%10lu]", name, v);
		break;
	case HIST_SYSCALL:
		if (syscall_find(v)->name[0] != '\0')
			snprintf(text, sizeof(text), "sys_%s", syscall_find(v)->name);
		sbuf_printf(out, "%-30s[%3lu]", text, v);
		break;
	case HIST_LOG2:
		sbuf_printf(out, "~ 2^%-2lu", v);
		break;
	case HIST_BUCKETS:
		sbuf_printf(out, "~ %lu-%lu", v, v + f->width - 1);
		break;
	default:
		sbuf_printf(out, "%10lu", v);
	}
}

static void
print_keys(const struct hist *h, const struct hist_row *row, struct sbuf *out)
{
	const uint64_t *w = row->keys;
	bool lines = false;

	sbuf_puts(out, "{ ");
	for (unsigned i = 0; i < h->nkeys; i++) {
		const struct hist_field *f = &h->keys[i];

		sbuf_printf(out, "%s%s: ", i > 0 ? ", " : "", f->name);
		lines = f->kind == HIST_STACK;
		if (lines) {
			out->len--; /* the blank */
			sbuf_putc(out, '\n');
			hist_print_stack(out, w);
		} else if (f->kind == HIST_FIELD && f->field.string) {
			sbuf_printf(out, "%-50s", (const char *)w);
		} else {
			print_number(out, f, w[0]);
		}
		w += key_words(f, w);
	}
	sbuf_puts(out, lines ? "}" : " }");
}

#define WHOLE 10000u /* in hundredths of a percent */

/* Which part of the total v is, in these. As in Linux, of large numbers the total is divided. */
static uint64_t
hist_part(uint64_t v, uint64_t total)
{
	if (v < UINT64_MAX / WHOLE)
		return total > 0 ? v * WHOLE / total : 0;
	return total >= WHOLE ? v / (total / WHOLE) : 0;
}

static void
print_slice(const struct hist *h, struct hist_slice s, struct sbuf *out)
{
	sbuf_write(out, h->text + s.at, s.n);
}

static void
print_value_name(const struct hist *h, unsigned value, struct sbuf *out)
{
	if (h->values[value].kind == HIST_EXPRESSION)
		print_slice(h, h->value_texts[value], out);
	else
		sbuf_puts(out, h->values[value].name);
}

/* Value number n of a row. */
static void
hist_print_value(const struct hist *h, unsigned n, uint64_t v, uint64_t total, uint64_t most,
		 struct sbuf *out)
{
	uint64_t part;

	sbuf_putc(out, ' ');
	print_value_name(h, n, out);
	switch (h->values[n].modifier) {
	case HIST_PERCENT:
		part = hist_part(v, total);
		sbuf_printf(out, " (%%): %3lu.%02lu", part / 100, part % 100);
		break;
	case HIST_GRAPH:
		sbuf_puts(out, ": ");
		part = (hist_part(v, most) * GRAPH_WIDTH + WHOLE / 2) / WHOLE;
		for (unsigned i = 0; i < GRAPH_WIDTH; i++)
			sbuf_putc(out, i < part ? '#' : ' ');
		break;
	case HIST_HEX:
		sbuf_printf(out, ": %10lx", v);
		break;
	default:
		sbuf_printf(out, ": %10lu", v);
	}
}

/* What an action keeps for these keys. */
static void
print_kept(const struct hist *h, unsigned action, const struct hist_row *row, struct sbuf *out)
{
	const struct hist_action_numbers *in = &h->in.actions[action];
	const struct hist_action *a = &h->actions[action];
	uint64_t last = hist_read(h, in->last, row);

	sbuf_printf(out, "\n\t%s: %10lu", a->when == HIST_ONMAX ? "max" : "changed",
		    last > 0 ? last - 1 : 0);
	for (unsigned i = 0; i < a->n && a->what == HIST_SAVE; i++) {
		uint64_t v = hist_read(h, in->saved[i], row);

		sbuf_puts(out, "  ");
		print_slice(h, a->params[i], out);
		if (a->is_text[i])
			sbuf_printf(out, ": %-32s", v != 0 ? (const char *)v : "");
		else
			sbuf_printf(out, ": %10lu", v);
	}
}

/* Which row has taken the last snapshot. */
static void
print_snapshot(const struct hist *h, unsigned action, struct sbuf *out)
{
	const struct hist_action_numbers *in = &h->in.actions[action];
	const struct hist_action *a = &h->actions[action];
	uint64_t count = hist_read(h, in->count, NULL);

	for (unsigned i = 0; i < h->data->nrows && count > 0; i++) {
		if (hist_read(h, in->number, h->data->rows[i]) != count)
			continue;
		sbuf_puts(out, "\nSnapshot taken (see tracing/snapshot).  Details:\n\ttriggering "
			       "value { ");
		sbuf_puts(out, a->when == HIST_ONMAX ? "onmax(" : "onchange(");
		print_slice(h, a->variable, out);
		sbuf_printf(out, ") }: %10lu\ttriggered by event with key: ",
			    hist_read(h, in->most, NULL) - 1);
		print_keys(h, h->data->rows[i], out);
		sbuf_putc(out, '\n');
	}
}

void
hist_print(struct hist *h, struct sbuf *out)
{
	const struct hist *data = h->data;
	uint64_t total[HIST_VALUES] = {0}, most[HIST_VALUES] = {0};

	hist_sort(h, data->rows, data->nrows, hist_compare_rows);
	for (unsigned i = 0; i < data->nrows; i++) {
		for (unsigned v = 0; v < h->nvalues; v++) {
			uint64_t value = data->rows[i]->values[v];

			total[v] += value;
			most[v] = most[v] > value ? most[v] : value;
		}
	}
	for (unsigned i = 0; i < data->nrows; i++) {
		print_keys(h, data->rows[i], out);
		for (unsigned v = h->no_hitcount; v < h->nvalues; v++) {
			if (v > 0)
				sbuf_putc(out, ' ');
			hist_print_value(h, v, data->rows[i]->values[v], total[v], most[v], out);
		}
		for (unsigned n = 0; n < h->nactions; n++)
			if (h->actions[n].when != HIST_ONMATCH)
				print_kept(h, n, data->rows[i], out);
		sbuf_putc(out, '\n');
	}
	for (unsigned n = 0; n < h->nactions; n++)
		if (h->actions[n].what == HIST_SNAPSHOT)
			print_snapshot(h, n, out);
	sbuf_printf(out, "\nTotals:\n    Hits: %lu\n    Entries: %u\n    Dropped: %lu\n",
		    data->hits, data->nrows, data->dropped + hist_drops(h));
}

/* ---- how it is written ---- */

static void
print_field(const struct hist_field *f, struct sbuf *out)
{
	sbuf_puts(out, f->name);
	if (f->modifier != HIST_PLAIN)
		sbuf_printf(out, ".%s", hist_modifiers[f->modifier]);
	if (f->modifier == HIST_BUCKETS)
		sbuf_printf(out, "%lu", f->width);
}

void
hist_print_keys(const struct hist *h, struct sbuf *out)
{
	for (unsigned i = 0; i < h->nkeys; i++) {
		sbuf_puts(out, i > 0 ? "," : "");
		print_field(&h->keys[i], out);
	}
}

static void
print_value(const struct hist *h, unsigned value, struct sbuf *out)
{
	if (h->values[value].kind == HIST_EXPRESSION)
		print_slice(h, h->value_texts[value], out);
	else
		print_field(&h->values[value], out);
}

void
hist_print_values(const struct hist *h, struct sbuf *out)
{
	for (unsigned i = 0; i < h->nvalues; i++) {
		sbuf_puts(out, i > 0 ? "," : "");
		print_value(h, i, out);
	}
}

void
hist_print_spec(const struct hist *h, struct sbuf *out, bool state)
{
	sbuf_puts(out, "hist:");
	if (h->name[0] != '\0')
		sbuf_printf(out, "%s:", h->name);
	sbuf_puts(out, "keys=");
	hist_print_keys(h, out);
	sbuf_puts(out, ":vals=");
	hist_print_values(h, out);
	for (unsigned i = 0; i < h->nown; i++) {
		sbuf_putc(out, ':');
		print_slice(h, h->own[i].name, out);
		sbuf_putc(out, '=');
		if (h->own[i].is.kind == HIST_CONSTANT)
			sbuf_printf(out, "%lu", h->own[i].is.constant);
		else
			print_slice(h, h->own[i].expression, out);
	}
	sbuf_puts(out, ":sort=");
	for (unsigned i = 0; i < h->nsorts; i++) {
		unsigned key = h->sorts[i].key;

		sbuf_puts(out, i > 0 ? "," : "");
		if (key < HIST_KEYS)
			print_field(&h->keys[key], out);
		else
			print_value(h, key - HIST_KEYS, out);
		sbuf_puts(out, h->sorts[i].descending ? ".descending" : "");
	}
	sbuf_printf(out, ":size=%u", h->size);
	if (h->no_hitcount)
		sbuf_puts(out, ":nohitcount");
	if (h->times)
		sbuf_printf(out, ":clock=%s", clock_name(h->i));
	for (unsigned i = 0; i < h->nactions; i++) {
		sbuf_putc(out, ':');
		print_slice(h, h->actions[i].text, out);
	}
	if (h->filter.n > 0) {
		sbuf_puts(out, " if ");
		print_slice(h, h->filter, out);
	}
	if (state)
		sbuf_puts(out, __atomic_load_n(&h->gate, __ATOMIC_RELAXED) != 0 ? " [active]"
										: " [paused]");
}
