/*
 * panic.h - stops a kernel that has found an error in itself. The debugger, a layer above,
 * registers the functions that do it.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "kernel/lib/printf.h"

#define PANIC_STATUS 101 /* exit status of a machine that a panic powers off */

/*
 * Stops the machine: records the message, stops the other CPUs, and enters the debugger, or reports
 * and powers off with PANIC_STATUS. The message should contain the values. Any context.
 */
_Noreturn void panic(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Enters the debugger. Returns when the operator continues. why is read-only data. Any context. */
void panic_ask(const char *why);

struct panic_ops {
	/* A panic at pc, in the frame fp and sp. Does not return. */
	void (*stop)(uintptr_t pc, uintptr_t fp, uintptr_t sp, const char *fmt, va_list ap);
	/* As panic_ask(). */
	void (*ask)(const char *why);
};

/* Registers the functions. Before this, a panic prints its message and powers off. Boot, once. */
void panic_register(const struct panic_ops *ops);
