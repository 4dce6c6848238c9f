/*
 * flush.h - how events leave the rings: /dev/ktr, and the flush thread, which writes the stream to
 * the file debug.ktr.alq_file.
 */
#pragma once

/*
 * Tells the log the clock's rate and the number of CPUs, for the streams' headers. Called each time
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
 * Waits until every character that was written to the trace's line has been counted by its stream.
 * Any context, interrupts off, after stop_claim(): no more characters are written then.
 */
void ktr_flush_settle(void);
/*
 * Before the machine ends: writes the remaining events, within a bounded time, and closes the
 * stream. Thread context. When the debugger or a panic has stopped the machine, any context; then
 * it polls, and only writes to a line to the host.
 */
void ktr_flush_finish(void);
