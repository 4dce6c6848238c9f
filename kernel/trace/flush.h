/*
 * flush.h - the trace's way out of the rings: /dev/ktr, and the flush thread that writes the stream
 * to the file debug.ktr.alq_file.
 */
#pragma once

/* Starts the flush thread and registers /dev/ktr. Thread context, after vfs_init(). */
void ktr_trace_init(void);
/* From each CPU's clock tick: wakes the flush thread when it has something to do. Interrupts off.
 */
void ktr_flush_tick(void);
/*
 * Before the machine ends: hands on what is left, within a bounded time, and closes the stream.
 * Thread context; or any context when the machine is stopped by the debugger or a panic, then by
 * polling and only to a serial line.
 */
void ktr_flush_finish(void);
