/*
 * kprobe_print.c - events of kprobes and uprobes as Linux prints them: place, then NAME=VALUE for
 * each argument. Locking: the control lock guards the probes.
 */
#include "kernel/ftrace/event/event.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/probe/kprobe.h"
#include "ktr/fmt.h"
#include "ktr/intern.h"

/* Bytes of the function that begins at that address. */
static size_t
function_size(uintptr_t start)
{
	size_t low = 0, high = 16;
	uintptr_t offset;

	/* The byte at `low` belongs to the function, and the one at `high` does not. */
	while (ksym_lookup(start + high, &offset) != NULL && offset == high)
		low = high, high *= 2;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (ksym_lookup(start + middle, &offset) != NULL && offset == middle)
			low = middle;
		else
			high = middle;
	}
	return high;
}

void
print_address(struct sbuf *out, uintptr_t at)
{
	uintptr_t offset;
	const char *name = ksym_lookup(at, &offset);

	if (name == NULL)
		sbuf_printf(out, "0x%lx", at);
	else
		sbuf_printf(out, "%s+0x%lx/0x%lx", name, offset, function_size(at - offset));
}

/* The event's probes. */
struct probes {
	const struct ktr_site *site;
	uintptr_t at; /* an address: */
	bool is_at;   /* is one of them there? */
	unsigned n;
	struct kprobe_info first;
};

static void
find_probes(const struct kprobe_info *k, void *arg)
{
	struct probes *p = arg;

	if (k->site != p->site)
		return;
	p->is_at |= k->kind == KPROBE_KERNEL && k->address == p->at;
	if (p->n++ == 0)
		p->first = *k;
}

/* An address in the kernel, of which this is the low half. */
static uintptr_t
address_of(uint64_t half)
{
	return (uintptr_t)(int32_t)half;
}

/* Finds the places of a probe in a program: where it is, and where the function returns to. They
 * are recorded after the arguments that the format shows. */
static void
user_places(const struct kprobe_info *k, const struct ktr_entry *e, uint64_t v[2])
{
	unsigned n = k->site->nargs;

	v[0] = n < KTR_MAXARGS ? e->args[n] : 0;
	v[1] = k->is_return && n + 1 < KTR_MAXARGS ? e->args[n + 1] : 0;
}

static void
kernel_places(const struct probes *p, const struct ktr_entry *e, uint64_t v[2])
{
	const struct kprobe_info *k = &p->first;
	bool known = k->site->nargs < KTR_MAXARGS;
	uint64_t where = known ? e->args[k->site->nargs] : 0;

	if (k->is_return) {
		v[0] = known ? address_of(where) : p->n == 1 ? k->address : 0;
		v[1] = known ? address_of(where >> 32) : 0;
	} else { /* the place is recorded only since there has been a second one */
		v[0] = known && p->is_at ? p->at : known || p->n == 1 ? k->address : 0;
	}
}

static void
find_places(struct probes *p, const struct ktr_site *site, const struct ktr_entry *e, uint64_t v[2])
{
	*p = (struct probes){
	    .site = site,
	    .at = site->nargs < KTR_MAXARGS ? address_of(e->args[site->nargs]) : 0,
	};
	v[0] = v[1] = 0;
	kprobe_each(find_probes, p);
	if (p->n > 0 && p->first.kind != KPROBE_AT_EVENT)
		(p->first.kind == KPROBE_USER ? user_places(&p->first, e, v)
					      : kernel_places(p, e, v));
}

void
kprobes_places(const struct ktr_site *site, const struct ktr_entry *e, uint64_t v[2])
{
	struct probes p;

	find_places(&p, site, e, v);
}

static void
print_places(struct sbuf *out, const struct kprobe_info *k, const uint64_t v[2])
{
	bool user = k->kind == KPROBE_USER;
	uintptr_t offset;

	if (v[0] == 0) {
		sbuf_putc(out, '?');
	} else if (user) {
		sbuf_printf(out, k->is_return && v[1] != 0 ? "0x%lx <- 0x%lx" : "0x%lx",
			    k->is_return && v[1] != 0 ? v[1] : v[0], v[0]);
	} else if (!k->is_return) {
		print_address(out, v[0]);
	} else {
		if (v[1] != 0)
			print_address(out, v[1]);
		sbuf_printf(out, " <- %s", ksym_lookup(v[0], &offset));
	}
}

/* A text as Linux prints it: in ", unless it says why there is none. */
static void
print_text(struct sbuf *out, uint64_t value, bool quoted)
{
	char buf[KTR_STRING_MAX];
	const char *text = ktr_string_text(value, buf);

	if (text == NULL)
		text = "(fault)";
	sbuf_printf(out, quoted && strcmp(text, "(fault)") != 0 ? "\"%s\"" : "%s", text);
}

static void
kprobe_print_value(struct sbuf *out, const struct fmt_spec *s, uint64_t value)
{
	switch (s->conv) {
	case 's':
		print_text(out, value, !s->left);
		break;
	case 'c':
		sbuf_printf(out, "'%c'", (char)value);
		break;
	case 'd':
		sbuf_printf(out, "%ld", value);
		break;
	case 'x':
		sbuf_printf(out, "0x%lx", value);
		break;
	default:
		sbuf_printf(out, "%lu", value);
	}
}

/* Is it the site of a kprobe, or of a uprobe? */
static bool
is_probe(const struct ktr_site *site)
{
	return site->kind >= KTR_SITE_MADE && strncmp(site->fmt + 1, "probe:::", 8) == 0;
}

unsigned
kprobe_event_places(const struct ktr_site *site)
{
	struct probes p = {.site = site};

	if (!is_probe(site))
		return 0;
	kprobe_each(find_probes, &p);
	return p.n > 0 && p.first.kind == KPROBE_AT_EVENT ? 0 : 1 + (p.n > 0 && p.first.is_return);
}

bool
kprobe_event_format(const struct ktr_site *site, const char *from, char *fmt)
{
	struct sbuf out;

	if (!is_probe(site))
		return false;
	/* "fd %#lx name %s" becomes fd=%#lx name="%s". */
	sbuf_init(&out, fmt, EVENT_FORMAT);
	while (*from != '\0') {
		const char *percent = strchr(from, '%'), *end = percent + 1;
		const char *quote;
		struct fmt_spec s;

		fmt_scan(&end, &s);
		quote = s.conv == 's' && !s.left ? "\"" : s.conv == 'c' ? "'" : "";
		sbuf_printf(&out, "%.*s=%s%.*s%s", (int)(percent - 1 - from), from, quote,
			    (int)(end - percent), percent, quote);
		if (*end == ' ')
			sbuf_putc(&out, *end++);
		from = end;
	}
	return true;
}

bool
kprobes_print(struct sbuf *out, const struct ktr_site *site, const struct ktr_entry *e)
{
	const char *params;
	struct probes p;
	uint64_t v[2];

	if (!is_probe(site))
		return false;
	find_places(&p, site, e, v);
	sbuf_putc(out, '(');
	if (p.n == 0)
		sbuf_putc(out, '?'); /* they were removed */
	else if (p.first.kind == KPROBE_AT_EVENT)
		kprobe_print_target(&p.first, out);
	else
		print_places(out, &p.first, v);
	sbuf_putc(out, ')');
	/* "kprobe:::NAME: fd %#lx" is printed as " fd=0x3". */
	params = strstr(site->fmt, ": ");
	for (unsigned i = 0; params != NULL && i < site->nargs; i++) {
		const char *end = strchr(params + 2, ' ');
		struct fmt_spec s;

		sbuf_putc(out, ' ');
		params += params[0] == ':' ? 2 : 1;
		if (strncmp(params, KPROBE_REST " ", sizeof(KPROBE_REST)) != 0) {
			sbuf_write(out, params, (size_t)(end - params));
			sbuf_putc(out, '=');
		}
		params = end + 2;
		fmt_scan(&params, &s);
		kprobe_print_value(out, &s, e->args[i]);
	}
	return true;
}
