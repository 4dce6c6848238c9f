/* machine.h - contract: ordered set-up, serial lines, power. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Called when memory works: firmware tables, interrupt controller, and the final trap set-up of
 * this CPU. Boot CPU, interrupts off.
 */
void arch_machine_init(void);

struct sbuf; /* kernel/lib/sbuf.h */

enum arch_uart_kind { ARCH_UART_NONE, ARCH_UART_16550, ARCH_UART_PL011 };

#define ARCH_NO_IRQ (~0u)

struct arch_uart {
	enum arch_uart_kind kind;
	uint16_t port;       /* 16550: the first of its I/O ports */
	volatile void *regs; /* PL011: its registers, mapped */
	unsigned gsi;        /* interrupt line, or ARCH_NO_IRQ */
};

/*
 * Serial line n: 0 console, 1 trace. ARCH_UART_NONE: the platform has none; for the trace, PCI is
 * searched then. Any time; gsi is valid after arch_machine_init().
 */
struct arch_uart arch_uart(unsigned n);

/*
 * Powers off. status, 0 to 127, becomes the exit status if the platform supports that. Any context.
 */
_Noreturn void arch_poweroff(unsigned status);
_Noreturn void arch_reboot(void);
/* Prints one line for the boot log: machine and CPU features, such as "q35". */
void arch_machine_print(void);
/* Prints what Linux's /proc/cpuinfo says of a CPU after its number. All are alike. */
void arch_cpu_describe(struct sbuf *out);
/* A number from the CPU's random number generator. False: it has none, or none now. Any context. */
bool arch_random(uint64_t *v);
/* What the CPU can do for programs, as Linux's AT_HWCAP says it. Any context. */
uint64_t arch_hwcap(void);
/* Name of the architecture in the trace stream: "x86_64". */
extern const char arch_name[];
