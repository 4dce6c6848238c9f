/*
 * stop.h - stopping the machine: one CPU goes on, and all others stand where they were. For the
 * debugger and for panics, which tell by it every lock and every wait that nobody will answer.
 *
 * A CPU claims the machine, then stops the others; two that want it come one after the other. All
 * of it: any context, also NMI, unless said.
 */
#pragma once

#include <stdbool.h>

struct arch_trapframe;

#define STOP_NOBODY (-1)

struct stop {
	int owner;     /* atomic: the CPU that has claimed the machine, STOP_NOBODY */
	bool panicked; /* atomic: the machine will never go on */
	bool command;  /* the owner's: it runs a command of the operator, which may be left */
};

extern struct stop stop;

/* Has a CPU claimed the machine? */
bool stop_active(void);
/*
 * Is it this CPU that has? Then nobody else runs, and locks need not and must not be taken. Unlike
 * stop_active(), the answer changes between two calls of one thread only by what that thread does.
 */
bool stop_inside(void);
/* Has the machine panicked? */
bool stop_panicked(void);
/*
 * Does this CPU alone run, in a command or a panic? What waits for another CPU or a thread would
 * then wait for ever, and must panic() instead. False during a single step.
 */
bool stop_must_not_wait(void);

/*
 * Claims the machine for this CPU, which must not have it yet; waits for a CPU that has it, and
 * stands still for that one meanwhile, at tf, if tf is not NULL. Interrupts off.
 */
void stop_claim(struct arch_trapframe *tf);
/* The machine goes on. */
void stop_release(void);

/*
 * Stops all other CPUs, wherever they are, also with interrupts off where arch_nmi_send() reaches
 * them; waits a second for each and returns how many stopped. Interrupts off. Their frames are then
 * in pcpu's `stopped`.
 */
unsigned stop_others(void);
/* Lets them go on, and returns when they do. */
void stop_resume_others(void);
/* NMI: this CPU was asked to stop, did so at tf, and goes on now. False: it was not asked. */
bool stop_here(struct arch_trapframe *tf);
