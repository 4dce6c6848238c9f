/*
 * patch.c - changing trace points and probes, one instruction each, while other CPUs run them.
 *
 * NOP and B may be changed into each other while they are executed: a CPU runs the old or the new
 * one (Arm ARM B2.2.5). Once the caches are synchronised, a CPU runs the new one after its next
 * exception. QEMU 7.2 can miss a store that comes while one of its threads translates that very
 * instruction, and would then keep the old one. So each instruction is stored twice, and every CPU
 * takes an exception between the two stores.
 *
 * Locking: the caller serialises.
 */
#include "arch/patch.h"
#include "arch/insn.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "kernel/entry.h"
#include "kernel/lib/string.h"
#include "ktr/site.h"

#define INSN_NOP 0xd503201fu
#define INSN_B   0x14000000u /* and a distance of 26 bits, in words (C6.2.25) */

static uint32_t
new_code(const struct ktr_patch *p)
{
	uint32_t words = (uint32_t)((ktr_patch_target(p) - ktr_patch_at(p)) >> 2) & 0x3ffffff;

	return ktr_patch_on(p) ? INSN_B | words : INSN_NOP;
}

void
arch_patch_code(const struct ktr_patch *p, uint8_t code[ARCH_BREAK_SIZE])
{
	uint32_t insn = new_code(p);

	memcpy(code, &insn, sizeof(insn));
}

void
arch_patch_run(const struct ktr_patch *p, struct arch_trapframe *tf)
{
	tf->pc = ktr_patch_on(p) ? ktr_patch_target(p) : ktr_patch_at(p) + sizeof(uint32_t);
}

static void
store_all(void)
{
	KTR_PATCH_EACH(p)
	{
		uintptr_t at = ktr_patch_at(p);
		uint32_t insn = new_code(p);

		if (entry_probe_at(at))
			continue; /* the breakpoint stays */
		entry_text_put(at, &insn, sizeof(insn));
		arch_icache_sync((const void *)at, sizeof(insn));
	}
	entry_text_close();
	entry_sync_cpus();
}

void
arch_patch(void)
{
	store_all();
	store_all();
}
