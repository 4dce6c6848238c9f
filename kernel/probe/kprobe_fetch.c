/*
 * kprobe_fetch.c - evaluates the arguments of a kprobe that fires.
 *
 * All memory is read with fault handling, the kernel's only where it is RAM, and a program's only
 * what is present. Texts are interned, so an event may have several. Locking: none.
 */
#include "arch/mmu.h"
#include "arch/uaccess.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/probe/kprobe.h"
#include "kernel/probe/kprobe_private.h"
#include "kernel/sched/thread.h"
#include "ktr/intern.h"

/* Reads bytes of one page; user: of the program's memory only. */
static bool
read_page(void *to, uintptr_t from, size_t n, bool user, struct kfetching *in)
{
	bool good = from < ARCH_USER_END
			? arch_copy_user(to, (const void *)from, n)
			: !user && kmap_is_ram(from) && arch_probe_copy(to, (const void *)from, n);

	if (!good && ++in->faults == 1)
		in->missing = from;
	return good;
}

static bool
kfetch_read_memory(void *to, uintptr_t from, size_t n, bool user, struct kfetching *in)
{
	size_t first = PAGE_SIZE - from % PAGE_SIZE;

	if (n <= first)
		return read_page(to, from, n, user, in);
	return read_page(to, from, first, user, in) &&
	       read_page((char *)to + first, from + first, n - first, user, in);
}

/* The text at an address, cut to the size of buf. */
static bool
kfetch_read_text(char buf[KPROBE_STRING], uintptr_t from, bool user, struct kfetching *in)
{
	size_t n = 0;

	while (n < KPROBE_STRING - 1) {
		size_t part = 16 - (from + n) % 16; /* never beyond a page */

		if (part > KPROBE_STRING - 1 - n)
			part = KPROBE_STRING - 1 - n;
		if (!read_page(buf + n, from + n, part, user, in))
			return false;
		if (strnlen(buf + n, part) < part)
			return true;
		n += part;
	}
	buf[n] = '\0';
	return true;
}

static uint64_t
kfetch_text_at(uintptr_t from, bool user, struct kfetching *in)
{
	char buf[KPROBE_STRING];

	if (!kfetch_read_text(buf, from, user, in))
		return (uint64_t)(uintptr_t)ktr_intern("(fault)");
	return (uint64_t)(uintptr_t)ktr_intern(buf);
}

static void
kfetch_print_symbol(struct sbuf *out, uint64_t v)
{
	uintptr_t offset;
	const char *name = ksym_lookup(v, &offset);

	if (name != NULL)
		sbuf_printf(out, "%s+%#lx", name, offset);
	else
		sbuf_printf(out, "%#lx", v);
}

static uint64_t
symbol_of(uint64_t v)
{
	char buf[KPROBE_STRING];
	struct sbuf out;

	sbuf_init(&out, buf, sizeof(buf));
	kfetch_print_symbol(&out, v);
	return (uint64_t)(uintptr_t)ktr_intern(buf);
}

/* Cuts the value to its type. */
static uint64_t
kfetch_cut(const struct kfetch *f, uint64_t v)
{
	unsigned spare = 64 - 8 * f->size;

	if (f->width != 0)
		return v << (64 - f->shift - f->width) >> (64 - f->width);
	if (f->print == KFETCH_SIGNED)
		return (uint64_t)((int64_t)(v << spare) >> spare);
	return v << spare >> spare;
}

/* An element as Linux prints it. */
static void
print_element(struct sbuf *out, const struct kfetch *f, uint64_t v, bool user, struct kfetching *in)
{
	char text[KPROBE_STRING];

	switch (f->print) {
	case KFETCH_UNSIGNED:
		sbuf_printf(out, "%lu", v);
		break;
	case KFETCH_SIGNED:
		sbuf_printf(out, "%ld", v);
		break;
	case KFETCH_HEX:
		sbuf_printf(out, "0x%lx", v);
		break;
	case KFETCH_CHAR:
		sbuf_printf(out, (char)v != '\0' ? "'%c'" : "''", (char)v); /* a text goes on */
		break;
	case KFETCH_STRING: /* the elements are pointers */
		if (kfetch_read_text(text, v, user, in))
			sbuf_printf(out, "\"%s\"", text);
		else
			sbuf_puts(out, "(fault)");
		break;
	case KFETCH_SYMBOL:
		kfetch_print_symbol(out, v);
		break;
	}
}

/* Makes a text of an array: "{1,2}". What it has no room for is cut off. */
static uint64_t
array_at(const struct kfetch *f, uintptr_t from, bool user, struct kfetching *in)
{
	char buf[KTR_STRING_MAX];
	struct sbuf out;
	bool good = true;

	sbuf_init(&out, buf, sizeof(buf));
	for (unsigned i = 0; i < f->count && !sbuf_is_cut(&out); i++) {
		uint64_t v = 0;

		sbuf_putc(&out, i == 0 ? '{' : ',');
		/* After the first that cannot be read the rest is not tried: each try takes time.
		 */
		good = good && kfetch_read_memory(&v, from + i * f->size, f->size, user, in);
		if (good || f->print != KFETCH_STRING)
			print_element(&out, f, good ? kfetch_cut(f, v) : 0, user, in);
		else
			sbuf_puts(&out, "(fault)");
	}
	sbuf_putc(&out, '}');
	return (uint64_t)(uintptr_t)ktr_intern(buf);
}

static uint64_t
immediate_text(const struct kfetch *f, const struct kfetching *in)
{
	char buf[KPROBE_ARGUMENT + 1];

	strlcpy(buf, in->definition + f->number, f->text_len + 1u);
	return (uint64_t)(uintptr_t)ktr_intern(buf);
}

uint64_t
kprobe_fetch(const struct kfetch *f, struct kfetching *in)
{
	const struct thread *t = curthread();
	uint64_t v = f->base == KFETCH_REGISTER ? ((const uint64_t *)in->tf)[f->reg]
		     : f->base == KFETCH_FILE   ? f->number + in->file
		     : f->base == KFETCH_FIELD  ? in->fields[f->reg]
						: f->number;

	if (f->base == KFETCH_COMM)
		return (uint64_t)(uintptr_t)ktr_intern(t != NULL ? t->name : "");
	if (f->base == KFETCH_TEXT)
		return immediate_text(f, in);
	for (unsigned i = 0; i < f->derefs; i++) {
		bool last = i + 1 == f->derefs, user = (f->user >> i & 1) != 0;

		v += (uint64_t)f->offset[i];
		if (last && f->count > 0)
			return array_at(f, v, user, in);
		if (last && f->print == KFETCH_STRING)
			return kfetch_text_at(v, user, in);
		uint64_t word = 0;
		if (!kfetch_read_memory(&word, v, last ? f->size : sizeof(word), user, in))
			return 0;
		v = word;
	}
	return f->print == KFETCH_SYMBOL ? symbol_of(v) : kfetch_cut(f, v);
}

/* A value as Linux prints it. */
static void
kfetch_print_value(struct sbuf *out, const struct kfetch *f, uint64_t v, struct kfetching *in)
{
	char buf[KTR_STRING_MAX];
	const char *text;

	if (f->count == 0 && f->print != KFETCH_STRING && f->print != KFETCH_SYMBOL) {
		print_element(out, f, v, false, in);
		return;
	}
	text = ktr_string_text(v, buf);
	if (text == NULL) /* a pointer on the way to the text was bad */
		text = "(fault)";
	sbuf_printf(out,
		    f->count == 0 && f->print == KFETCH_STRING && strcmp(text, "(fault)") != 0
			? "\"%s\""
			: "%s",
		    text);
}

uint64_t
kprobe_fetch_rest(const struct kdefinition *d, struct kfetching *in)
{
	char buf[KTR_STRING_MAX];
	struct sbuf out;

	sbuf_init(&out, buf, sizeof(buf));
	for (unsigned i = KPROBE_FIRST; i < d->nargs && !sbuf_is_cut(&out); i++) {
		const struct kfetch *f = &d->args[i];

		sbuf_printf(&out, "%s%s=", i > KPROBE_FIRST ? " " : "", f->name);
		kfetch_print_value(&out, f, kprobe_fetch(f, in), in);
	}
	return (uint64_t)(uintptr_t)ktr_intern(buf);
}

unsigned
kprobe_fetch_values(const struct kdefinition *d, struct kfetching *in, uint64_t args[KTR_MAXARGS])
{
	unsigned n = kprobe_first(d);

	for (unsigned i = 0; i < n; i++)
		args[i] = kprobe_fetch(&d->args[i], in);
	if (n < d->nargs)
		args[n++] = kprobe_fetch_rest(d, in);
	return n;
}

unsigned
kprobe_fetch_all(struct kprobe *k, const uint64_t *fields, uint64_t *args)
{
	struct kfetching in = {.definition = k->text, .fields = fields};

	unsigned n = kprobe_fetch_values(&k->def, &in, args);

	__atomic_fetch_add(&k->hits, 1, __ATOMIC_RELAXED);
	if (in.faults != 0)
		__atomic_fetch_add(&k->faults, (uint64_t)in.faults, __ATOMIC_RELAXED);
	return n;
}
