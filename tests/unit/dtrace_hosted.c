/*
 * dtrace_hosted.c - dtrace(1) and the program engine on the host, for D programs whose probes are
 * BEGIN, END and ERROR. One CPU.
 */
#include <errno.h>

#include "kernel/dtrace/host/device.h"
#include "kernel/dtrace/host/host.h"

static const char execname[4096] = "dtrace"; /* more than strings that programs read */

__attribute__((constructor)) static void
plug(void)
{
	program_invocation_short_name = "dtrace"; /* with which messages begin */
	device_plug(1);
	dif_host.step = 1;
	dif_host.builtin[DIF_B_PROGRAM] = 1ull << 32;
	dif_host.builtin[DIF_B_EXECNAME] = (uintptr_t)execname;
	dif_port_direct[1] = (struct dif_port_range){(uintptr_t)execname, sizeof(execname)};
}
