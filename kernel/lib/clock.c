/*
 * clock.c - time since boot, from the counter that all CPUs share.
 *
 * Locking: none. The boot CPU writes the variables once, before others run; but for boot_real_ns.
 */
#include "kernel/lib/clock.h"

#include "arch/clock.h"
#include "arch/irq.h"
#include "ktr/ktr.h"

struct clock_scale clock_scale;
static uint64_t hz;
static uint64_t boot_real_ns; /* since 1970, at clock_ns() == 0; atomic */

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
	clock_scale_set(&clock_scale, hz);
	clock_set_real(arch_rtc_read() * 1000000000);
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
	return __atomic_load_n(&boot_real_ns, __ATOMIC_RELAXED) + ns;
}

uint64_t
clock_real_now_ns(void)
{
	return clock_real_ns(clock_ns());
}

void
clock_set_real(uint64_t real_ns)
{
	__atomic_store_n(&boot_real_ns, real_ns - clock_ns(), __ATOMIC_RELAXED);
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
