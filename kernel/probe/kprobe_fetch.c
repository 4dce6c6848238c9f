/*
 * kprobe_fetch.c - evaluates the arguments of a kprobe that fires.
 *
 * All memory is read with fault handling, the kernel's only where it is RAM, and a program's only
 * what is present. Texts are interned, so an event may have several. Locking: none.
 */
#include "arch/mmu.h"
#include "arch/trap.h"
#include "arch/uaccess.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/probe/kprobe_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/intern.h"

/* Reads within one page. */
static bool
read_page(void *to, uintptr_t from, size_t n, struct kfetching *in)
{
	bool good = from < ARCH_USER_END
			? arch_copy_user(to, (const void *)from, n)
			: kmap_is_ram(from) && arch_probe_copy(to, (const void *)from, n);

	if (!good) {
		in->faults++;
		in->missing = from;
	}
	return good;
}

static bool
read_memory(void *to, uintptr_t from, size_t n, struct kfetching *in)
{
	size_t first = PAGE_SIZE - from % PAGE_SIZE;

	if (n <= first)
		return read_page(to, from, n, in);
	return read_page(to, from, first, in) &&
	       read_page((char *)to + first, from + first, n - first, in);
}

/* The text at an address, cut to the size of buf. */
static bool
read_text(char buf[KPROBE_STRING], uintptr_t from, struct kfetching *in)
{
	size_t n = 0;

	while (n < KPROBE_STRING - 1) {
		size_t part = 16 - (from + n) % 16; /* never beyond a page */

		if (part > KPROBE_STRING - 1 - n)
			part = KPROBE_STRING - 1 - n;
		if (!read_page(buf + n, from + n, part, in))
			return false;
		if (strnlen(buf + n, part) < part)
			return true;
		n += part;
	}
	buf[n] = '\0';
	return true;
}

static uint64_t
text_at(uintptr_t from, struct kfetching *in)
{
	char buf[KPROBE_STRING];

	if (!read_text(buf, from, in))
		return (uint64_t)(uintptr_t)ktr_intern("(fault)");
	return (uint64_t)(uintptr_t)ktr_intern(buf);
}

static uint64_t
symbol_of(uint64_t v)
{
	char buf[KPROBE_STRING];
	uintptr_t offset;
	const char *name = ksym_lookup(v, &offset);

	if (name != NULL)
		snprintf(buf, sizeof(buf), "%s+%#lx", name, offset);
	else
		snprintf(buf, sizeof(buf), "%#lx", v);
	return (uint64_t)(uintptr_t)ktr_intern(buf);
}

/* Cuts the value to its type. */
static uint64_t
cut(const struct kfetch *f, uint64_t v)
{
	unsigned spare = 64 - 8 * f->size;

	if (f->width != 0)
		return v << (64 - f->shift - f->width) >> (64 - f->width);
	if (f->print == KFETCH_SIGNED)
		return (uint64_t)((int64_t)(v << spare) >> spare);
	return v << spare >> spare;
}

uint64_t
kprobe_fetch(const struct kfetch *f, struct kfetching *in)
{
	const struct thread *t = curthread();
	uint64_t v = f->base == KFETCH_REGISTER ? ((const uint64_t *)in->tf)[f->reg]
		     : f->base == KFETCH_FILE   ? f->number + in->file
						: f->number;

	if (f->base == KFETCH_COMM)
		return (uint64_t)(uintptr_t)ktr_intern(t != NULL ? t->name : "");
	for (unsigned i = 0; i < f->derefs; i++) {
		bool last = i + 1 == f->derefs;

		v += (uint64_t)f->offset[i];
		if (last && f->print == KFETCH_STRING)
			return text_at(v, in);
		uint64_t word = 0;
		if (!read_memory(&word, v, last ? f->size : sizeof(word), in))
			return 0;
		v = word;
	}
	return f->print == KFETCH_SYMBOL ? symbol_of(v) : cut(f, v);
}
