/* quick.h - what the program engine's port does without a call, in other kernels (default.c). */
#pragma once

#include <ktr_port.h>

#include "kernel/abi/dif.h"
#include "kernel/dtrace/dif/port.h"

struct dif_at;

/* Nanoseconds since boot of a time of the log's clock. */
uint64_t dif_port_ns(uint64_t stamp);

static inline uint64_t
dif_port_stamp(void)
{
	return ktr_port_time();
}

static inline uint64_t
dif_port_time(void)
{
	return dif_port_ns(dif_port_stamp());
}

#define DIF_PORT_QUICK(X) X(DIF_B_CPU) X(DIF_B_PID) X(DIF_B_TID)

static inline uint64_t
dif_port_quick(const struct dif_at *at, enum dif_builtin what)
{
	(void)at;
	return what == DIF_B_CPU   ? ktr_port_cpu()
	       : what == DIF_B_PID ? dif_port_pid()
				   : ktr_port_tid();
}
