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
/* Starts the flush thread and registers /dev/ktr. Thread context, after vfs_init(). */
void ktr_trace_init(void);
/*
 * Before the machine is stopped: no piece of the flush's work begins any more, and the one that is
 * under way ends, if it does within half a second. Any context, interrupts off.
 */
void ktr_flush_hold(void);
/* The machine goes on. Any context. */
void ktr_flush_release(void);
/*
 * Around a wait for all CPUs that the encoder asks for: what is stopped in it can be gone on with,
 * and whoever stops the machine would wait in vain. begin is false when it is not the flush that
 * waits, and then there is no end. Thread context.
 */
bool ktr_flush_rest_begin(void);
void ktr_flush_rest_end(void);
/*
 * Before the machine ends: hands on what is left, within a bounded time, and closes the stream.
 * Thread context; or any context when the machine is stopped by the debugger or a panic, then by
 * polling and only to a serial line.
 */
void ktr_flush_finish(void);
