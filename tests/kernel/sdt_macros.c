/*
 * sdt_macros.c - a probe of each macro of ktr/sdt.h, for tests/system/test_sdt.py: the sysctl
 * debug.ktest.sdt fires all of them. Argument N of a probe is 0x1111111111111111 * (N + 1).
 * Locking: none is needed.
 */
#include <stddef.h>

#include "kernel/lib/sysctl.h"
#include "ktr/sdt.h"

#define V(n) (0x1111111111111111ul * ((n) + 1))

SDT_PROVIDER_DEFINE(macros);
/* clang-format off */
SDT_PROBE_DEFINE(macros, , , plain, plain);
SDT_PROBE_DEFINE0(macros, , , p0, p0);
SDT_PROBE_DEFINE1(macros, , , p1, p1, "long");
SDT_PROBE_DEFINE2(macros, , , p2, p2, "long", "long");
SDT_PROBE_DEFINE3(macros, , , p3, p3, "long", "long", "long");
SDT_PROBE_DEFINE4(macros, , , p4, p4, "long", "long", "long", "long");
SDT_PROBE_DEFINE5(macros, , , p5, p5, "long", "long", "long", "long", "long");
SDT_PROBE_DEFINE6(macros, , , p6, p6, "long", "long", "long", "long", "long", "long");
SDT_PROBE_DEFINE7(macros, , , p7, p7, "long", "long", "long", "long", "long", "long", "long");
SDT_PROBE_DEFINE0_XLATE(macros, , , x0, x0);
SDT_PROBE_DEFINE1_XLATE(macros, , , x1, x1, "long", "long");
SDT_PROBE_DEFINE2_XLATE(macros, , , x2, x2, "long", "long", "long", "long");
SDT_PROBE_DEFINE3_XLATE(macros, , , x3, x3, "long", "long", "long", "long", "long", "long");
SDT_PROBE_DEFINE4_XLATE(macros, , , x4, x4, "long", "long", "long", "long", "long", "long", "long",
			"long");
SDT_PROBE_DEFINE5_XLATE(macros, , , x5, x5, "long", "long", "long", "long", "long", "long", "long",
			"long", "long", "long");
SDT_PROBE_DEFINE6_XLATE(macros, , , x6, x6, "long", "long", "long", "long", "long", "long", "long",
			"long", "long", "long", "long", "long");
SDT_PROBE_DEFINE7_XLATE(macros, , , x7, x7, "long", "long", "long", "long", "long", "long", "long",
			"long", "long", "long", "long", "long", "long", "long");
/* clang-format on */
SDT_PROBE_DEFINE5(macros, , , old, old, "long", "long", "long", "long", "long");
SDT_PROBE_DEFINE7(macros, , , enabled, enabled, "long", "long", "long", "long", "long", "long",
		  "long");

static void
fire_plain(void)
{
	SDT_PROBE0(macros, , , plain);
	SDT_PROBE0(macros, , , p0);
	SDT_PROBE1(macros, , , p1, V(0));
	SDT_PROBE2(macros, , , p2, V(0), V(1));
	SDT_PROBE3(macros, , , p3, V(0), V(1), V(2));
	SDT_PROBE4(macros, , , p4, V(0), V(1), V(2), V(3));
	SDT_PROBE5(macros, , , p5, V(0), V(1), V(2), V(3), V(4));
	SDT_PROBE6(macros, , , p6, V(0), V(1), V(2), V(3), V(4), V(5));
	SDT_PROBE7(macros, , , p7, V(0), V(1), V(2), V(3), V(4), V(5), V(6));
}

static void
fire_xlate(void)
{
	SDT_PROBE0(macros, , , x0);
	SDT_PROBE1(macros, , , x1, V(0));
	SDT_PROBE2(macros, , , x2, V(0), V(1));
	SDT_PROBE3(macros, , , x3, V(0), V(1), V(2));
	SDT_PROBE4(macros, , , x4, V(0), V(1), V(2), V(3));
	SDT_PROBE5(macros, , , x5, V(0), V(1), V(2), V(3), V(4));
	SDT_PROBE6(macros, , , x6, V(0), V(1), V(2), V(3), V(4), V(5));
	SDT_PROBE7(macros, , , x7, V(0), V(1), V(2), V(3), V(4), V(5), V(6));
}

static void
fire(void)
{
	fire_plain();
	fire_xlate();
	SDT_PROBE(macros, , , old, V(0), V(1), V(2), V(3), V(4));
	if (SDT_PROBE_ENABLED(macros, , , enabled))
		SDT_PROBE7(macros, , , enabled, V(0), V(1), V(2), V(3), V(4), V(5), V(6));
}

SYSCTL_COMMAND(debug_ktest_sdt, "debug.ktest.sdt", fire, "1: fires a probe of each macro of SDT");
