/* fbt.c - the sysctls of function boundary tracing, debug.fbt.*. Locking: none is needed. */
#include "kernel/probe/fbt.h"

#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "ktr/crc32c.h"

extern const char __text_start[], __text_end[];

static void
exceptions_get(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, fbt_exceptions);
}

static void
text_get(const struct sysctl *s, struct sbuf *out)
{
	sbuf_printf(out, "%08x",
		    ktr_crc32c(__text_start, (uintptr_t)__text_end - (uintptr_t)__text_start));
}

SYSCTL_TEXT(debug_fbt_exceptions, "debug.fbt.exceptions", 0, exceptions_get, NULL,
	    "functions without probes: FUNCTION REASON");
SYSCTL_TEXT(debug_fbt_text, "debug.fbt.text", 0, text_get, NULL,
	    "CRC-32C of the kernel's code as it is now: the same whenever the same probes are on");
