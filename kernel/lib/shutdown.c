/*
 * shutdown.c - orderly power-off and reboot. Locking: none; one thread ends the machine.
 */
#include "kernel/lib/shutdown.h"

#include "arch/machine.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "ktr/ktr.h"

HOOK_LIST(shutdown);

void
shutdown_poweroff(unsigned status)
{
	CTR1(KTR_INIT, "poweroff: status %u", status);
	printk("power off, status %u\n", status);
	HOOK_RUN(shutdown);
	arch_poweroff(status);
}

void
shutdown_reboot(void)
{
	CTR0(KTR_INIT, "reboot");
	printk("reboot\n");
	HOOK_RUN(shutdown);
	arch_reboot();
}

void
shutdown_before_halt(void)
{
	CTR0(KTR_INIT, "halt");
	printk("halt\n");
	HOOK_RUN(shutdown);
}
