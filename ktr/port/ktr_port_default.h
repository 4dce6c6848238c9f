/*
 * ktr_port_default.h - the rest of a simple port: <ktr_port.h> says these, and includes this file.
 *
 *	KTR_PORT_MAXCPU     CPUs are numbered below it: a number, 1 to 64
 *	KTR_CPU()           the number of this CPU; called with interrupts off
 *	KTR_CLOCK()         a clock: the same on all CPUs, never runs backwards
 *	KTR_THREAD()        the id of the current thread: 32 bits; 0: there is none yet
 *	KTR_IRQ_SAVE()      turns this CPU's interrupts off, and says what they were: an integer
 *	KTR_IRQ_RESTORE(s)  turns them back to that
 *
 * Each may be used in any context. ktr_port_default.c then has bodies for the port's functions.
 * They do for a kernel that makes its rings before other CPUs run. A function of the kernel's with
 * the same name replaces any of them.
 */
#pragma once

#include <stdint.h>

#define KTR_PORT_DEFAULT 1
#ifndef KTR_PORT_PATCH
#define KTR_PORT_PATCH 0
#endif
/** Memory for rings, when the kernel has no ktr_port_alloc(): 64 bytes an entry, and 64 a ring. */
#ifndef KTR_PORT_ARENA_BYTES
#define KTR_PORT_ARENA_BYTES 64
#endif
/* How this machine's assembly names an address that the linker knows: ktr/site.h. */
#if defined(__aarch64__) && !defined(KTR_PORT_SYMBOL)
#define KTR_PORT_SYMBOL "S"
#elif defined(__riscv) && !defined(KTR_PORT_OPERAND)
#define KTR_PORT_OPERAND "%"
#endif

static inline uint64_t
ktr_port_time(void)
{
	return KTR_CLOCK();
}

static inline unsigned
ktr_port_cpu(void)
{
	return (unsigned)KTR_CPU();
}

static inline uint32_t
ktr_port_tid(void)
{
	return (uint32_t)KTR_THREAD();
}

static inline uintptr_t
ktr_port_irq_save(void)
{
	return (uintptr_t)KTR_IRQ_SAVE();
}

static inline void
ktr_port_irq_restore(uintptr_t state)
{
	KTR_IRQ_RESTORE(state);
}
