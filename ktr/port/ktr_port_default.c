/*
 * ktr_port_default.c - bodies of the port's functions, for ports that use ktr_port_default.h. All
 * are weak: a function of the kernel's with the same name replaces one.
 *
 * Locking: the control lock is a spin lock. Its holder may be preempted, so only threads take it.
 */
#include "ktr/port.h"

#ifdef KTR_PORT_DEFAULT

#define WEAK __attribute__((weak))

static uint32_t default_lock;
static uint8_t default_arena[KTR_PORT_ARENA_BYTES] __attribute__((aligned(64)));
static size_t default_used; /* [control lock] of the arena */

/* The kernel's linker script may say where read-only data is. */
extern const char __rodata_start[] WEAK;
extern const char __rodata_end[] WEAK;

WEAK void
ktr_port_lock(void)
{
	while (__atomic_exchange_n(&default_lock, 1, __ATOMIC_ACQUIRE) != 0)
		;
}

WEAK void
ktr_port_unlock(void)
{
	__atomic_store_n(&default_lock, 0, __ATOMIC_RELEASE);
}

/*
 * Has no CPU a ring but this one? Then nobody else records, and what this CPU interrupted begins
 * its record again, or had interrupts off.
 */
WEAK bool
ktr_port_sync(void)
{
	uintptr_t irq = ktr_port_irq_save();
	unsigned here = ktr_port_cpu();
	bool alone = true;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		alone &= cpu == here || ktr_log_ring(&ktr_main, cpu) == NULL;
	ktr_port_irq_restore(irq);
	return alone;
}

/* Valid while no other CPU records, and for the first ring of the CPU that calls it. */
WEAK void
ktr_port_exchange(void (*fn)(void *), void *arg)
{
	uintptr_t irq = ktr_port_irq_save();
	fn(arg);
	ktr_port_irq_restore(irq);
}

WEAK void *
ktr_port_alloc(size_t size)
{
	size_t begin = default_used;
	size = (size + 63) & ~(size_t)63;
	if (size > sizeof(default_arena) - begin)
		return NULL;
	default_used += size;
	return default_arena + begin;
}

/* Gives back what was allocated last, so that a failed ktr_resize() costs nothing. */
WEAK void
ktr_port_free(void *p, size_t size)
{
	size = (size + 63) & ~(size_t)63;
	if ((uint8_t *)p + size != default_arena + default_used)
		return;
	default_used -= size;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)p)[i] = 0;
}

WEAK bool
ktr_port_string_ok(const char *p)
{
	return p >= __rodata_start && p < __rodata_end;
}

WEAK bool
ktr_port_suppressed(void)
{
	return false;
}

WEAK void
ktr_port_verbose(unsigned cpu, const struct ktr_site *site, const struct ktr_entry *entry,
		 int level)
{
	(void)cpu, (void)site, (void)entry, (void)level;
}

#endif
