/*
 * kdb.h - entering the kernel debugger, and what panics do.
 *
 * One CPU at a time is inside the debugger. A non-maskable interrupt stops the others, wherever
 * they are, so code inside must not wait for a lock. No events are recorded meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/entry.h"
#include "kernel/lib/printf.h"

struct arch_trapframe;

/* Registers the debugger: panics and panic_ask() use it from now on. Boot CPU. */
void kdb_init(void);
/*
 * Enters the debugger at once, through a breakpoint trap. why is read-only data, and is printed.
 * Returns when the operator continues. Any context.
 */
void kdb_request(const char *why);
/*
 * Handles a debug trap; arguments as entry_debug(). Runs the prompt, and returns when the operator
 * continues. Interrupts off.
 */
void kdb_trap(struct arch_trapframe *tf, enum entry_debug why, uintptr_t data);
/*
 * Something from outside reports that the kernel is sick: the watchdog, or an NMI that nobody sent.
 * Like kdb_request(), with tf as the place; NULL: the caller is. If panics do not ask an operator,
 * it panics. why is read-only data. Any context, also NMI.
 */
void kdb_alarm(struct arch_trapframe *tf, const char *why);
/*
 * Switches this CPU's breakpoints and watchpoints on or off. They are off while it is stopped. Any
 * context, also NMI.
 */
void kdb_points_load(bool on);
/*
 * Panics because of a fault in the kernel that nothing handles. Registers and backtrace are those
 * of tf. A fault inside a debugger command returns to the prompt instead.
 */
_Noreturn void panic_trap(struct arch_trapframe *tf, const char *fmt, ...) PRINTF_LIKE(2, 3);
