/*
 * shutdown.c - orderly power-off and reboot. Locking: none; one thread ends the machine.
 */
#include "kernel/lib/shutdown.h"

#include "arch/machine.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "ktr/ktr.h"

HOOK_LIST(shutdown);
HOOK_LIST(shutdown_sync);

static void
run_hooks(void)
{
	HOOK_RUN(shutdown);
	HOOK_RUN(shutdown_sync);
}

void
shutdown_poweroff(unsigned status)
{
	CTR1(KTR_INIT, "poweroff: status %u", status);
	printk("power off, status %u\n", status);
	run_hooks();
	arch_poweroff(status);
}

void
shutdown_reboot(void)
{
	CTR0(KTR_INIT, "reboot");
	printk("reboot\n");
	run_hooks();
	arch_reboot();
}

void
shutdown_before_halt(void)
{
	CTR0(KTR_INIT, "halt");
	printk("halt\n");
	run_hooks();
}
