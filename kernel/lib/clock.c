/*
 * clock.c - time since boot, from the counter that all CPUs share.
 *
 * Locking: none. The boot CPU writes the variables once, before others run.
 */
#include "kernel/lib/clock.h"

#include "arch/clock.h"
#include "arch/irq.h"
#include "ktr/ktr.h"

struct clock_scale clock_scale;
static uint64_t hz;
static uint64_t boot_s; /* since 1970, at clock_ns() == 0 */

void
clock_note_boot(void)
{
	clock_scale.boot_ticks = arch_clock_read();
}

void
clock_init(void)
{
	arch_clock_init();
	hz = arch_clock_hz();
	clock_scale.mult = (uint64_t)(((unsigned __int128)1000000000 << 32) / hz);
	boot_s = arch_rtc_read();
	CTR2(KTR_INIT, "clock_init: hz %lu boot ticks %lu", hz, clock_scale.boot_ticks);
}

uint64_t
clock_ns(void)
{
	return clock_ns_of(arch_clock_read());
}

uint64_t
clock_real_ns(uint64_t ns)
{
	return boot_s * 1000000000 + ns;
}

void
clock_delay_ns(uint64_t ns)
{
	uint64_t end = arch_clock_read() + ns * (arch_clock_hz() / 1000) / 1000000;

	while (arch_clock_read() < end)
		arch_relax();
}

uint64_t
clock_hz(void)
{
	return hz;
}

uint64_t
clock_boot_ticks(void)
{
	return clock_scale.boot_ticks;
}
