/*
 * panic.h - what a kernel does that finds itself wrong: it calls the debugger, which is far above,
 * through the functions that the debugger has registered.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "kernel/lib/printf.h"

#define PANIC_STATUS 101 /* of a machine that a panic powers off */

/*
 * Stops the machine: records the message, stops the other CPUs, and enters the debugger, or reports
 * and powers off with PANIC_STATUS. Any context. Put the values into the message.
 */
_Noreturn void panic(const char *fmt, ...) PRINTF_LIKE(1, 2);

#define kassert(c)                                                                    \
	do {                                                                          \
		if (__builtin_expect(!(c), 0))                                        \
			panic("%s:%d: assertion failed: %s", __FILE__, __LINE__, #c); \
	} while (0)

/* Enters the debugger and returns when the operator continues. why is read-only data. Any context.
 */
void panic_ask(const char *why);

struct panic_ops {
	/* A panic at pc, whose frame is fp and sp. Does not return. */
	void (*stop)(uintptr_t pc, uintptr_t fp, uintptr_t sp, const char *fmt, va_list ap);
	/* As panic_ask(). */
	void (*ask)(const char *why);
};

/* Who answers from now on. Before, a panic prints its message and powers off. Boot, once. */
void panic_register(const struct panic_ops *ops);
