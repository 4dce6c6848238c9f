/*
 * stop.h - stopping the machine: one CPU continues, all others stand still. For the debugger and
 * for panics. Code that would wait asks here whether anyone can ever answer.
 *
 * A CPU claims the machine, then stops the others. A second CPU that wants the machine waits.
 * Unless said: any context, also NMI.
 */
#pragma once

#include <stdbool.h>

struct arch_trapframe;

#define STOP_NOBODY (-1)

struct stop {
	int owner;     /* atomic: the CPU that has claimed the machine, or STOP_NOBODY */
	bool panicked; /* atomic: the machine will never continue */
	bool command;  /* the owner runs an operator's command, which may be abandoned */
};

extern struct stop stop;

/* Has a CPU claimed the machine? */
bool stop_active(void);
/*
 * Has this CPU claimed the machine? Then nobody else runs, and locks must not be taken. While a
 * thread runs, only the thread itself changes the answer, unlike that of stop_active().
 */
bool stop_inside(void);
/* Has the machine panicked? */
bool stop_panicked(void);
/*
 * Is this CPU, in a command or a panic, the only one that runs? Then a wait for another CPU or
 * thread would never end, and must panic() instead. False during a single step.
 */
bool stop_must_not_wait(void);

/*
 * Claims the machine for this CPU, which must not have it. If another CPU has it, waits; if tf is
 * not NULL, this CPU counts as stopped at tf meanwhile. No hook of a probe runs on it from now on.
 * Interrupts off.
 */
void stop_claim(struct arch_trapframe *tf);
/* Releases the machine: all CPUs continue. */
void stop_release(void);

/*
 * Stops all other CPUs, wherever they are; with interrupts off too, if arch_nmi_send() can reach
 * them. Waits some seconds for each. Returns how many stopped; pcpu's `stopped` has their trap
 * frames. Interrupts off.
 */
unsigned stop_others(void);
/* Lets the other CPUs continue. Returns when all have. */
void stop_resume_others(void);
/* In an NMI: if a stop was asked for, stops here, at tf, until released. False: it was not. */
bool stop_here(struct arch_trapframe *tf);
