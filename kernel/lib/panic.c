/*
 * panic.c - lets any layer reach the debugger, which is above.
 * Locking: none; the functions are registered once, before other CPUs run.
 */
#include "kernel/lib/panic.h"

#include "arch/machine.h"

static const struct panic_ops *panic_ops;

void
panic_register(const struct panic_ops *ops)
{
	panic_ops = ops;
}

void
panic(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (panic_ops != NULL)
		panic_ops->stop((uintptr_t)__builtin_return_address(0),
				*(uintptr_t *)__builtin_frame_address(0),
				(uintptr_t)__builtin_dwarf_cfa(), fmt, ap);
	vprintk(fmt, ap);
	va_end(ap);
	arch_poweroff(PANIC_STATUS);
}

void
panic_ask(const char *why)
{
	if (panic_ops != NULL)
		panic_ops->ask(why);
}
