/*
 * ktr_port.c - the functions of the record benchmark's port.
 *
 * Locking: none is needed; these functions run while no thread records.
 */
#include <ktr_port.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ktr/port.h"

_Thread_local struct bench_cpu bench_cpu;
struct bench_cpu *bench_cpus[KTR_PORT_MAXCPU];

void
ktr_port_lock(void)
{
}

void
ktr_port_unlock(void)
{
}

/* Writes code, which lies in a page or two. */
static void
write_text(uint8_t *at, const uint8_t *insn, size_t len)
{
	uintptr_t page = (uintptr_t)at & ~0xfffull;

	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		abort();
	memcpy(at, insn, len);
	if (mprotect((void *)page, 8192, PROT_READ | PROT_EXEC) != 0)
		abort();
}

void
ktr_port_patch(void)
{
	KTR_PATCH_EACH(p)
	{
		uint8_t insn[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
		uintptr_t at = ktr_patch_at(p);
		int32_t distance = (int32_t)(ktr_patch_target(p) - (at + sizeof(insn)));

		if (ktr_patch_on(p)) {
			insn[0] = 0xe9; /* JMP rel32 */
			memcpy(&insn[1], &distance, sizeof(distance));
		}
		write_text((uint8_t *)at, insn, sizeof(insn));
	}
}

bool
ktr_port_sync(void)
{
	return true;
}

void
ktr_port_exchange(void (*fn)(void *), void *arg)
{
	fn(arg);
}

void *
ktr_port_alloc(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~4095ul);

	return p == NULL ? NULL : memset(p, 0, size);
}

void
ktr_port_free(void *p, size_t size)
{
	(void)size;
	free(p);
}

bool
ktr_port_string_ok(const char *p)
{
	(void)p;
	return false;
}

bool
ktr_port_suppressed(void)
{
	return false;
}

void
ktr_port_verbose(unsigned cpu, const struct ktr_site *site, const struct ktr_entry *entry,
		 int level)
{
	(void)cpu, (void)site, (void)entry, (void)level;
}
