/*
 * demo.c - functions that end with a call of each other, for doc/probes.md. Only this file is built
 * with -foptimize-sibling-calls: such a call is a jump here. Locking: none is needed.
 */
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"

static bool demo_odd(unsigned n);

/* Otherwise the compiler would make one function of the two. */
__attribute__((noipa)) static bool
demo_even(unsigned n)
{
	return n == 0 ? true : demo_odd(n - 1);
}

__attribute__((noipa)) static bool
demo_odd(unsigned n)
{
	return n == 0 ? false : demo_even(n - 1);
}

static void
demo_get(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, demo_even(3) ? "3 is even" : "3 is odd");
}

SYSCTL_TEXT(debug_fbt_demo, "debug.fbt.demo", 0, demo_get, NULL,
	    "functions whose last call is a jump: doc/probes.md");
