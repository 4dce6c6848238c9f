/*
 * page_poison.c - with debug.mm.poison, what is freed is filled with a pattern, and still has it
 * when it is allocated: else somebody has used it after it was freed. Of a page that is free, the
 * descriptor says who freed it: the allocator itself needs only the list, the order and `free`.
 */
#include "kernel/mm/page_poison.h"

#include "arch/pcpu.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"

#define POISON 0x6b

int page_poison;
SYSCTL_INT(debug_mm_poison, "debug.mm.poison", SYSCTL_TUN, &page_poison, 0, 1,
	   "1: panic when memory is allocated that was written to after it was freed");

void
page_poison_fill(void *va, size_t n)
{
	memset(va, POISON, n);
}

void
page_poison_look(const void *va, size_t n, const struct page *of)
{
	const uint8_t *byte = va;
	uintptr_t offset = 0;
	const char *name;
	size_t i = 0;

	while (i < n && byte[i] == POISON)
		i++;
	if (i == n)
		return;
	name = of != NULL ? ksym_lookup((uintptr_t)of->objects, &offset) : "kfree";
	panic("%p was written to after it was freed: offset %#lx has %#lx; freed by %s+%#lx, CPU "
	      "%d",
	      va, i & ~7ul, *(const uint64_t *)(byte + (i & ~7ul)), name != NULL ? name : "?",
	      offset, of != NULL ? (int)of->index : -1);
}

void
page_poison_block(struct page *p, unsigned order, const void *caller)
{
	page_poison_fill(page_address(p), PAGE_SIZE << order);
	for (struct page *q = p; q < p + (1ul << order); q++) {
		q->objects = (void *)(uintptr_t)caller;
		q->index = arch_cpu();
		q->poisoned = true;
	}
}

void
page_poison_check(struct page *p, unsigned order)
{
	for (struct page *q = p; q < p + (1ul << order); q++) {
		if (q->poisoned) /* a page that is free since the boot is not poisoned */
			page_poison_look(page_address(q), PAGE_SIZE, q);
		q->poisoned = false;
		q->objects = NULL;
	}
}
