/*
 * uprobe.h - probes at instructions of programs, made in the language of kprobe.h:
 *
 *	p[:[GROUP/]NAME] PATH:OFFSET [ARGUMENT]...	when the instruction there is about to be
 *executed r[:[GROUP/]NAME] PATH:OFFSET [ARGUMENT]...	when the function that begins there returns
 *
 *	PATH:OFFSET  a file, and a number of bytes in it
 *	FETCH        no symbols; also @+OFFSET, what is at that offset of the file
 *
 * The probe is uprobe:FILE:OFFSET:NAME. It fires in each process that executes the file's code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe;

/* Gives processes the breakpoints of the probes that are on. Control lock. */
void uprobe_apply(void);
/* A program has hit a breakpoint at `at`. False: it is its own. Interrupts off. */
bool uprobe_trap(struct arch_trapframe *tf, uintptr_t at);
