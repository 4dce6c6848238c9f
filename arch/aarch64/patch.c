/*
 * patch.c - changing trace sites, one instruction each, while other CPUs run them.
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

#define INSN_NOP 0xd503201fu
#define INSN_B   0x14000000u /* and a distance of 26 bits, in words (C6.2.25) */

static void
store_all(const struct arch_patch *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t words = (uint32_t)((p[i].target - p[i].addr) >> 2) & 0x3ffffff;
		uint32_t insn = p[i].on ? INSN_B | words : INSN_NOP;

		entry_text_write(p[i].addr, &insn, sizeof(insn));
		arch_icache_sync((const void *)p[i].addr, sizeof(insn));
	}
	entry_sync_cpus();
}

void
arch_patch(const struct arch_patch *p, size_t n)
{
	store_all(p, n);
	store_all(p, n);
}
