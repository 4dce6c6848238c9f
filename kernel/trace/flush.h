/*
 * flush.h - the trace's way out of the rings: /dev/ktr, and the flush thread that writes the stream
 * to the file debug.ktr.alq_file.
 */
#pragma once

#include <stdbool.h>

/*
 * Tells the log what it says of the machine: its clock's rate, its number of CPUs. Called each time
 * that one of them becomes known. Early boot, or thread context; one caller at a time.
 */
void trace_info_init(void);
/*
 * Gives the CPU that runs its ring of the size that others will have: as memory and the number of
 * CPUs allow, or as debug.ktr.entries says. What was recorded moves along. Thread context, before
 * other CPUs start.
 */
void trace_rings_init(unsigned cpus);
/* Starts the flush thread and registers /dev/ktr. Thread context, after vfs_init(). */
void ktr_trace_init(void);
/*
 * The flush thread wakes up at the next clock tick. It then runs the hooks flush_pass, in thread
 * context, and looks for events. Any context.
 */
void flush_kick(void);
/*
 * Returns when no character is on its way to the trace's line that its stream has not counted. Any
 * context, interrupts off, after stop_claim(): no more characters begin.
 */
void ktr_flush_settle(void);
/*
 * Before the machine ends: hands on what is left, within a bounded time, and closes the stream.
 * Thread context; or any context when the machine is stopped by the debugger or a panic, then by
 * polling and only to a serial line.
 */
void ktr_flush_finish(void);
