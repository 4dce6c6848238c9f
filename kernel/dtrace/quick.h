/* quick.h - what the program engine's port does without a call (port.h). */
#pragma once

#include "arch/clock.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/lib/clock.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/thread.h"

static inline uint64_t
dif_port_stamp(void)
{
	return arch_clock_read();
}

static inline uint64_t
dif_port_ns(uint64_t stamp)
{
	return clock_ns_of(stamp);
}

static inline uint64_t
dif_port_time(void)
{
	return dif_port_ns(dif_port_stamp());
}

#define DIF_PORT_QUICK(X)  \
	X(DIF_B_CPU)       \
	X(DIF_B_PID)       \
	X(DIF_B_TID)       \
	X(DIF_B_EXECNAME)  \
	X(DIF_B_PROBEPROV) \
	X(DIF_B_PROBEMOD)  \
	X(DIF_B_PROBEFUNC) \
	X(DIF_B_PROBENAME) \
	X(DIF_B_ID)        \
	X(DIF_B_CURTHREAD)

static inline uint64_t
dif_port_execname(const struct thread *t)
{
	return (uintptr_t)(t->proc != NULL ? t->proc->name : t->name);
}

static inline __attribute__((always_inline)) uint64_t
dif_port_quick(const struct dif_at *at, enum dif_builtin what)
{
	const struct dtrace_ecb *e = (const struct dtrace_ecb *)at;
	switch (what) {
	case DIF_B_CPU:
		return arch_cpu();
	case DIF_B_PID:
		return curthread()->pid;
	case DIF_B_TID:
		return curthread()->tid;
	case DIF_B_EXECNAME:
		return dif_port_execname(curthread());
	case DIF_B_PROBEPROV:
		return (uintptr_t)e->probe->name.provider;
	case DIF_B_PROBEMOD:
		return (uintptr_t)e->probe->name.module;
	case DIF_B_PROBEFUNC:
		return (uintptr_t)e->probe->name.function;
	case DIF_B_PROBENAME:
		return (uintptr_t)e->probe->name.name;
	case DIF_B_ID:
		return at->probe;
	default:
		return (uintptr_t)curthread(); /* DIF_B_CURTHREAD */
	}
}
