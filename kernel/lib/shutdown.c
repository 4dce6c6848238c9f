/*
 * shutdown.c - the last things.
 */
#include "kernel/lib/shutdown.h"

#include "arch/machine.h"
#include "kernel/lib/printf.h"
#include "kernel/trace/flush.h"
#include "ktr/ktr.h"

void
shutdown_poweroff(unsigned status)
{
	CTR1(KTR_INIT, "poweroff: status %u", status);
	printk("power off, status %u\n", status);
	ktr_flush_finish();
	arch_poweroff(status);
}

void
shutdown_reboot(void)
{
	CTR0(KTR_INIT, "reboot");
	printk("reboot\n");
	ktr_flush_finish();
	arch_reboot();
}
