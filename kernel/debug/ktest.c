/*
 * ktest.c - the answer of a kernel that has no tests in it; tests/kernel/ktest.c replaces it.
 */
#include "kernel/debug/ktest.h"

#include "kernel/lib/printf.h"
#include "kernel/lib/shutdown.h"
#include "kernel/sysctl/tunable.h"

TUNABLE(kern_test, "kern.test", "runs the in-kernel tests whose names match, in the test kernel");

__attribute__((weak)) void
ktest_run(const char *glob)
{
	warnk("Bail out! kern.test=%s: this kernel contains no tests; boot kestrel-test\n", glob);
	shutdown_poweroff(1);
}
