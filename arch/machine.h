/* machine.h - contract: set-up in order, serial lines, power. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * After memory is up: firmware tables, interrupt controller, this CPU's traps in their final form.
 * Boot CPU, interrupts off.
 */
void arch_machine_init(void);

enum arch_uart_kind { ARCH_UART_NONE, ARCH_UART_16550, ARCH_UART_PL011 };

#define ARCH_NO_IRQ (~0u)

struct arch_uart {
	enum arch_uart_kind kind;
	uint16_t port;       /* 16550: the first of its I/O ports */
	volatile void *regs; /* PL011: its registers, mapped */
	unsigned gsi;        /* interrupt line, or ARCH_NO_IRQ */
};

/*
 * Serial line n: 0 console, 1 trace. ARCH_UART_NONE: the platform names none; the trace's is then
 * looked for on PCI. Any time; gsi is right after arch_machine_init().
 */
struct arch_uart arch_uart(unsigned n);

/* Ends the machine with an exit status 0..127 where the platform takes one. Any context. */
_Noreturn void arch_poweroff(unsigned status);
_Noreturn void arch_reboot(void);
/* "q35", CPU features in use: one line for the boot log, by printk. */
void arch_machine_print(void);
/* Word that the trace stream carries: "x86_64". */
extern const char arch_name[];
