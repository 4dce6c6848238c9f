/*
 * patch.c - changing trace points and probes, five bytes each, while other CPUs run them.
 *
 * Cross-modifying code (SDM vol. 3A, 8.1.3) in three steps for all of them at once, with every CPU
 * made to serialise after each: a breakpoint over the first byte; the last four bytes; the first
 * byte. A CPU that runs into the breakpoint goes on as the new code would, so an NMI during a patch
 * does no harm.
 *
 * Locking: the caller serialises. The trap may come on any CPU, and reads what is constant, the
 * text, and the sites' owners: while these change, the old and the new answer are both right.
 */
#include "arch/patch.h"
#include "arch/insn.h"
#include "arch/x86_64/x86.h"
#include "kernel/entry.h"
#include "ktr/site.h"

#define SITE_SIZE 5
#define INT3      0xcc
#define JMP       0xe9 /* and the distance in 32 bits */
#define RET       0xc3

/* The last records of ktr_patch: of functions' entries and returns, by address
 * (kernel/probe/fbt.h). */
extern const struct ktr_patch __start_fbt_patch[];

/* The stubs of jumps from one function to another (fbt.S). */
extern const char __fbt_tails[];

/* What an instruction is built as (SDM vol. 2B, NOP; md/fbt_return.h). */
static const uint8_t nop5[SITE_SIZE] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t ret5[SITE_SIZE] = {RET, INT3, INT3, INT3, INT3};

/* Where the instruction jumps as it was built; 0: it is no jump. The jump after the CALL in its
 * stub goes there, too. */
static uintptr_t
tail_target(const struct ktr_patch *p)
{
	uintptr_t jump = ktr_patch_target(p) + SITE_SIZE;

	if (jump < (uintptr_t)__fbt_tails)
		return 0;
	return jump + SITE_SIZE + (uintptr_t)(intptr_t) * (const int32_t *)(jump + 1);
}

static void
new_code(const struct ktr_patch *p, uint8_t code[SITE_SIZE])
{
	bool ret = ktr_patch_site(p)->kind == KTR_SITE_RETURN;
	const uint8_t *from = ret ? ret5 : nop5;
	uint8_t jump[SITE_SIZE] = {JMP};
	uintptr_t to = ktr_patch_on(p) ? ktr_patch_target(p) : tail_target(p);
	uint32_t distance = (uint32_t)(to - (ktr_patch_at(p) + SITE_SIZE));

	if (to != 0) {
		for (unsigned i = 1; i < SITE_SIZE; i++)
			jump[i] = (uint8_t)(distance >> 8 * (i - 1));
		from = jump;
	}
	for (unsigned i = 0; i < SITE_SIZE; i++)
		code[i] = from[i];
}

/* The record of the instruction at an address. NULL: that instruction is never changed. */
static const struct ktr_patch *
patch_find(uintptr_t at)
{
	const struct ktr_patch *p = __start_fbt_patch;

	for (size_t n = (size_t)(__stop_ktr_patch - p); n > 0; n /= 2) {
		const struct ktr_patch *middle = p + n / 2;

		if (ktr_patch_at(middle) == at)
			return middle;
		if (ktr_patch_at(middle) < at) {
			p = middle + 1;
			n--;
		}
	}
	for (p = __start_ktr_patch; p < __start_fbt_patch; p++)
		if (ktr_patch_at(p) == at)
			return p;
	return NULL;
}

void
arch_patch_code(const struct ktr_patch *p, uint8_t code[ARCH_BREAK_SIZE])
{
	uint8_t all[SITE_SIZE];

	new_code(p, all);
	code[0] = all[0];
}

void
arch_patch_run(const struct ktr_patch *p, struct arch_trapframe *tf)
{
	uintptr_t at = ktr_patch_at(p);
	const volatile uint8_t *text = (const volatile uint8_t *)at;
	bool on = ktr_patch_on(p);

	/*
	 * This CPU may have fetched a breakpoint that was removed since. The instruction that is
	 * there now is emulated, not executed again: QEMU 7.2 can miss a store that comes while
	 * another of its threads translates the page, and would run the breakpoint for ever.
	 */
	if (*text != INT3 && tail_target(p) == 0)
		on = *text == JMP;
	if (on) {
		tf->rip = ktr_patch_target(p);
	} else if (tail_target(p) != 0) {
		tf->rip = tail_target(p);
	} else if (ktr_patch_site(p)->kind == KTR_SITE_RETURN) {
		tf->rip = *(uint64_t *)tf->rsp;
		tf->rsp += 8;
	} else {
		tf->rip = at + SITE_SIZE;
	}
}

bool
x86_patch_trap(struct arch_trapframe *tf)
{
	const struct ktr_patch *p = arch_tf_user(tf) ? NULL : patch_find(tf->rip - 1);

	if (p != NULL)
		arch_patch_run(p, tf);
	return p != NULL;
}

void
arch_patch(void)
{
	static const uint8_t int3 = INT3;
	uint8_t code[SITE_SIZE];

	KTR_PATCH_EACH(p)
	entry_text_put(ktr_patch_at(p), &int3, 1);
	entry_text_close();
	entry_sync_cpus();
	KTR_PATCH_EACH(p)
	{
		new_code(p, code);
		entry_text_put(ktr_patch_at(p) + 1, code + 1, SITE_SIZE - 1);
	}
	entry_text_close();
	entry_sync_cpus();
	KTR_PATCH_EACH(p)
	{
		if (entry_probe_at(ktr_patch_at(p)))
			continue; /* the breakpoint stays */
		new_code(p, code);
		entry_text_put(ktr_patch_at(p), code, 1);
	}
	entry_text_close();
	entry_sync_cpus();
}
