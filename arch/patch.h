/* patch.h - contract: changing the code at trace points and probes while other CPUs run it. */
#pragma once

/*
 * ktr_port_patch() of ktr/port.h: every instruction of ktr_patch follows its site. Before other
 * CPUs run, any context; later thread context with interrupts on and no spin lock held. The caller
 * serialises. Each call interrupts every CPU two or three times, however much it changes.
 */
void arch_patch(void);
