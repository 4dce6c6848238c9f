/*
 * patch.c - changing 5-byte trace sites while other CPUs run them.
 *
 * Cross-modifying code (SDM vol. 3A, 8.1.3) in three steps for a whole batch, with every CPU made
 * to serialise after each: a breakpoint over the first byte; the last four bytes; the first byte. A
 * CPU that runs into the breakpoint goes on as the new code would, so an NMI during a patch does no
 * harm.
 *
 * Locking: the caller serialises; `active` and `active_count` are read by the trap on any CPU.
 */
#include "arch/patch.h"
#include "arch/irq.h"
#include "arch/smp.h"
#include "arch/x86_64/x86.h"
#include "kernel/entry.h"
#include "kernel/lib/string.h"

#define SITE_SIZE 5

static const uint8_t nop5[SITE_SIZE] = {0x0f, 0x1f, 0x44, 0x00, 0x00}; /* SDM vol. 2B, NOP */

static const struct arch_patch *active;
static uint32_t generation; /* atomic: changes begun */
static size_t active_count; /* release: pairs with the acquire in x86_patch_trap() */

static void
new_code(const struct arch_patch *p, uint8_t code[SITE_SIZE])
{
	int32_t rel = (int32_t)(p->target - (p->addr + SITE_SIZE));

	if (!p->on) {
		memcpy(code, nop5, SITE_SIZE);
		return;
	}
	code[0] = 0xe9; /* JMP rel32 */
	memcpy(code + 1, &rel, sizeof(rel));
}

static bool
patch_go_on(struct arch_trapframe *tf, uintptr_t addr)
{
	size_t n = __atomic_load_n(&active_count, __ATOMIC_ACQUIRE);
	const uint8_t *code = (const uint8_t *)addr;
	int32_t rel;

	for (size_t i = 0; i < n; i++) {
		if (active[i].addr == addr) {
			tf->rip = active[i].on ? active[i].target : addr + SITE_SIZE;
			return true;
		}
	}
	/*
	 * This CPU may have fetched a breakpoint that was removed since. The instruction that is
	 * there now is emulated, not executed again: QEMU 7.2 can miss a store that comes while
	 * another of its threads translates the page, and would run the breakpoint for ever.
	 */
	if (memcmp(code, nop5, SITE_SIZE) == 0) {
		tf->rip = addr + SITE_SIZE;
	} else if (code[0] == 0xe9) {
		memcpy(&rel, code + 1, sizeof(rel));
		tf->rip = addr + SITE_SIZE + (uint64_t)(int64_t)rel;
	} else if (*(const volatile uint8_t *)code != 0xcc) {
		tf->rip = addr;
	} else {
		return false;
	}
	return true;
}

bool
x86_patch_trap(struct arch_trapframe *tf)
{
	uint32_t g;

	if (arch_tf_user(tf))
		return false;
	/* The breakpoint may be one of a change that began after we looked for it. */
	do {
		g = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
		if (patch_go_on(tf, tf->rip - 1))
			return true;
	} while (__atomic_load_n(&generation, __ATOMIC_ACQUIRE) != g);
	return false;
}

void
arch_patch(const struct arch_patch *p, size_t n)
{
	static const uint8_t int3 = 0xcc;
	uint8_t code[SITE_SIZE];

	__atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
	active = p;
	__atomic_store_n(&active_count, n, __ATOMIC_RELEASE);
	for (size_t i = 0; i < n; i++)
		entry_text_write(p[i].addr, &int3, 1);
	entry_sync_cpus();
	for (size_t i = 0; i < n; i++) {
		new_code(&p[i], code);
		entry_text_write(p[i].addr + 1, code + 1, SITE_SIZE - 1);
	}
	entry_sync_cpus();
	for (size_t i = 0; i < n; i++) {
		new_code(&p[i], code);
		entry_text_write(p[i].addr, code, 1);
	}
	entry_sync_cpus();
	/* After that, no CPU still enters the trap with one of these addresses. */
	__atomic_store_n(&active_count, 0, __ATOMIC_RELEASE);
}
