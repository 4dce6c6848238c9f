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
#include "arch/mmu.h"
#include "kernel/entry.h"
#include "ktr/site.h"

#define INSN_NOP 0xd503201fu
#define INSN_B   0x14000000u /* and a distance of 26 bits, in words (C6.2.25) */

static void
store_all(void)
{
	KTR_PATCH_EACH(p)
	{
		uintptr_t at = ktr_patch_at(p);
		uint32_t words = (uint32_t)((ktr_patch_target(p) - at) >> 2) & 0x3ffffff;
		uint32_t insn = ktr_patch_on(p) ? INSN_B | words : INSN_NOP;

		entry_text_write(at, &insn, sizeof(insn));
		arch_icache_sync((const void *)at, sizeof(insn));
	}
	entry_sync_cpus();
}

void
arch_patch(void)
{
	store_all();
	store_all();
}
