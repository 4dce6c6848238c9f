/*
 * kdb_trap.c - deaths on request, under FreeBSD's names: what a kernel must be seen to survive long
 * enough to tell of.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/sysctl/sysctl.h"

static void
zero_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_puts(out, "0");
}

static bool
asked(const char *val, char *err, size_t errlen, int *error)
{
	bool ok = strcmp(val, "0") == 0 || strcmp(val, "1") == 0;

	if (!ok)
		snprintf(err, errlen, "\"%s\": expected 1 to do it", val);
	*error = ok ? 0 : -EINVAL;
	return ok && val[0] == '1';
}

static int
trap_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	volatile uint32_t *volatile nowhere = (volatile uint32_t *)16;
	int error;

	(void)s;
	if (asked(val, err, errlen, &error))
		*nowhere = 1;
	return error;
}

static __attribute__((noinline)) uint64_t
recurse(volatile uint64_t *from)
{
	volatile uint64_t here[16];

	here[0] = *from + 1;
	return here[0] != 0 ? recurse(here) + here[0] : 0;
}

static int
stack_overflow_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	volatile uint64_t start = 0;
	int error;

	(void)s;
	if (asked(val, err, errlen, &error))
		recurse(&start);
	return error;
}

SYSCTL_PROC(debug_kdb_trap, "debug.kdb.trap", SYSCTL_TYPE_INT, SYSCTL_WR, zero_get, trap_set,
	    "write 1 to write through a bad pointer in the kernel");
SYSCTL_PROC(debug_kdb_stack_overflow, "debug.kdb.stack_overflow", SYSCTL_TYPE_INT, SYSCTL_WR,
	    zero_get, stack_overflow_set, "write 1 to run out of kernel stack");
