/* intc.h - contract: interrupt lines from devices. The table of handlers is kernel/dev/irq.c. */
#pragma once

/* Routes line gsi to the boot CPU and unmasks it. 0, or -EINVAL: no such line. */
int arch_irq_unmask(unsigned gsi);
