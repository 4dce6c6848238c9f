/*
 * dif.h - tracing by programs of D in any kernel that has the log (ktr/): one session at a time,
 * which loads an image (kernel/abi/dif.h), and whose programs run when trace points of the log and
 * probes of SDT fire. Nothing here knows the kernel, but by ktr_port.h and port.h.
 *
 * The image comes from dtrace(1) on another machine: dif_serve() takes the bytes of a line, serial
 * or any other (ktr/DIF-WIRE.md), and calls the rest. Or from anywhere else: then call the rest.
 *
 * Locking: one caller at a time, who is in no hook. They call ktr_port_lock(), so a thread calls
 * them; or a handler of interrupts of a kernel in which no thread holds that lock with interrupts
 * on: none calls what needs it (ktr/control.h) while the handler may run. A CPU without a ring
 * (ktr_cpu_init()) at the time of dif_session_load() runs no program. Errors are negative errno
 * values, Linux's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/dif.h"

/*
 * Takes a copy of an image, which is aligned to 8, and finds the probes of its clauses. *matched
 * becomes how many clauses have probes. -EINVAL if it is refused, and *why is a sentence; -ENOMEM;
 * -EBUSY if an image is loaded already.
 */
int dif_session_load(const void *image, size_t size, uint32_t *matched, const char **why);
/* Fires BEGIN on this CPU, then switches the probes on. -EINVAL if there is no image, or this
 * was called before. */
int dif_session_start(void);
/* The session's state. A sign of life: without one for options.deadman_ns, programs stop. */
void dif_session_status(struct dif_status *s);
/* What a CPU has counted. -EINVAL: no image, or no such CPU. */
int dif_session_drops(struct dif_drops *drops);

enum dif_take { DIF_TAKE_RECORDS, DIF_TAKE_AGGS };
/* What was taken, in order. It is valid until the next dif_session_take() of the same kind, or
 * the end of the session. */
struct dif_taken {
	void *piece[2];
	uint32_t size[2];
};
/*
 * Takes the records, or the aggregations, of a CPU. -EINVAL if there is no image or no such CPU, or
 * for records that are kept by DIF_RING or DIF_FILL, before dif_session_stop().
 */
int dif_session_take(enum dif_take what, unsigned cpu, struct dif_taken *to);
/* Switches the probes off, then fires END on this CPU. */
void dif_session_stop(void);
/* Switches the probes off, without END, and frees all. */
void dif_session_end(void);

/*
 * The timer's interrupt calls this on each CPU, interrupts off, with the place that it has
 * interrupted: it fires profile-N on each CPU, and tick-N on one, no oftener than it is called. Not
 * from an NMI. A kernel that never calls it has no such probes.
 */
void dif_tick(uint64_t pc, bool user);

/* Takes bytes that have come from the line, and answers by dif_port_send(). */
void dif_serve(const void *bytes, size_t n);
/* Takes a byte of a line that is a console, too. False: the byte is not of a frame. */
bool dif_serve_byte(uint8_t byte);
