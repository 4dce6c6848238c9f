/* machine.h - contract: set-up in order, serial lines, power. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * After memory is up: firmware tables, interrupt controller, this CPU's traps in their final form.
 * Boot CPU, interrupts off.
 */
void arch_machine_init(void);
/* I/O port and interrupt line of serial line n: 0 console, 1 trace. False: none known. Any time. */
bool arch_uart_port(unsigned n, uint16_t *port, unsigned *gsi);

/* Ends the machine with an exit status 0..127 where the platform takes one. Any context. */
_Noreturn void arch_poweroff(unsigned status);
_Noreturn void arch_reboot(void);
/* "q35", CPU features in use: one line for the boot log, by printk. */
void arch_machine_print(void);
/* Word that the trace stream carries: "x86_64". */
extern const char arch_name[];
