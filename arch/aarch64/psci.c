/*
 * psci.c - calls of the firmware that starts CPUs and powers off (Power State Coordination
 * Interface, DEN 0022, 5; function numbers of version 0.2 and later).
 */
#include "arch/aarch64/a64.h"

#define PSCI_CPU_ON        0xc4000003u
#define PSCI_SYSTEM_OFF    0x84000008u
#define PSCI_SYSTEM_RESET  0x84000009u
#define PSCI_NOT_SUPPORTED (-1)

/*
 * SMC Calling Convention (DEN 0028): x0 to x3 are arguments, x0 the result, x4 to x17 may change.
 */
static int
psci_call(uint64_t function, uint64_t a1, uint64_t a2, uint64_t a3)
{
	register uint64_t x0 __asm__("x0") = function;
	register uint64_t x1 __asm__("x1") = a1;
	register uint64_t x2 __asm__("x2") = a2;
	register uint64_t x3 __asm__("x3") = a3;

#define CLOBBERS                                                                             \
	"x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", \
	    "x17", "memory"
	if (!devtree.psci)
		return PSCI_NOT_SUPPORTED;
	if (devtree.psci_smc)
		__asm__ volatile("smc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : CLOBBERS);
	else
		__asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : CLOBBERS);
	return (int)x0;
}

int
psci_cpu_on(uint64_t mpidr, uint64_t entry_pa, uint64_t context)
{
	return psci_call(PSCI_CPU_ON, mpidr, entry_pa, context);
}

void
psci_system_off(void)
{
	psci_call(PSCI_SYSTEM_OFF, 0, 0, 0);
}

void
psci_system_reset(void)
{
	psci_call(PSCI_SYSTEM_RESET, 0, 0, 0);
}
