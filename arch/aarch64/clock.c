/*
 * clock.c - the Generic Timer (Arm ARM D11): the virtual count, and each CPU's virtual timer. And
 * the PL031 real-time clock (Arm DDI 0224).
 */
#include "arch/clock.h"
#include "arch/aarch64/a64.h"
#include "kernel/entry.h"
#include "kernel/lib/panic.h"

#define CTL_ENABLE 1u

static uint64_t count_hz = 62500000; /* until arch_clock_init() */

uint64_t
arch_clock_hz(void)
{
	return count_hz;
}

void
arch_clock_init(void)
{
	uint64_t reported = READ_SYSREG(cntfrq_el0);

	count_hz = devtree.timer_hz != 0 ? devtree.timer_hz : reported;
	if (count_hz == 0)
		panic("neither CNTFRQ_EL0 nor the device tree has the counter's rate");
	aarch64_timer_init_cpu();
}

void
aarch64_timer_init_cpu(void)
{
	aarch64_timer_quiet();
	intc_unmask_private(devtree.timer_intid);
}

void
aarch64_timer_quiet(void)
{
	WRITE_SYSREG(cntv_ctl_el0, 0);
	ISB();
}

void
arch_timer_set(uint64_t delta_ns)
{
	uint64_t count;

	count = delta_ns * (count_hz / 1000) / 1000000;
	WRITE_SYSREG(cntv_cval_el0, arch_clock_read() + (count == 0 ? 1 : count));
	WRITE_SYSREG(cntv_ctl_el0, CTL_ENABLE);
	ISB();
}

uint64_t
arch_rtc_read(void)
{
	/* The first register counts seconds. */
	volatile uint32_t *rtc =
	    devtree.rtc_pa != 0 ? entry_map_device(devtree.rtc_pa, 4096) : NULL;

	return rtc != NULL ? *rtc : 0;
}
