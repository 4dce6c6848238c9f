/*
 * kdb.h - entering the kernel debugger; and what panics do.
 *
 * One CPU at a time is inside. The others are stopped by a non-maskable interrupt, wherever they
 * are, so nothing inside may wait for a lock. No event is recorded meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/entry.h"
#include "kernel/lib/printf.h"

struct arch_trapframe;

/* From now on panics, and whoever asks below (panic_ask()), come here. Boot CPU. */
void kdb_init(void);
/*
 * Enters the debugger as soon as can be: at once, through a breakpoint trap. why is read-only data
 * and is printed. Returns when the operator continues. Any context.
 */
void kdb_request(const char *why);
/* A trap that can be continued from: the db> prompt. As entry_debug(). Interrupts off. */
void kdb_trap(struct arch_trapframe *tf, enum entry_debug why, uintptr_t data);
/*
 * Something outside the program's course says that the kernel is sick (the watchdog, an NMI that
 * nobody sent): as kdb_request(), with tf as the place; or a panic where no operator is to be
 * asked. why is read-only data. Any context, also NMI.
 */
void kdb_alarm(struct arch_trapframe *tf, const char *why);
/*
 * This CPU watches the operator's places (on), or none: off while it is stopped. Any context, also
 * NMI.
 */
void kdb_points_load(bool on);
/*
 * As panic(), for a fault in the kernel that nothing handles: registers and backtrace are those of
 * tf. A fault inside a debugger command goes back to the prompt instead.
 */
_Noreturn void panic_trap(struct arch_trapframe *tf, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Settings made in the debugger that need a running machine (debug.ktr.mask=… patches code on all
 * CPUs) are kept until it runs. kdb_deferred(): are there any? Any context. kdb_apply_deferred()
 * makes them: thread context; the trace's flush thread calls it.
 */
bool kdb_deferred(void);
void kdb_apply_deferred(void);
