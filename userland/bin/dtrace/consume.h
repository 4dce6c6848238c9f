/*
 * consume.h - traces: loads an image into the kernel, and prints what comes out.
 */
#pragma once

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/compile.h"

/* Describes the first probe whose id is at least p->id; false: there is none. */
bool consume_describe(struct dif_probe *p);
/* The path of a program that a user stack names; false: it is not known any more. */
bool consume_program(struct dif_program *p);
/* DIF_IOC_PID. False: an error, in errno. */
bool consume_pid(struct dif_pid *p);
/* The probe of an epid; 0: there is no such epid. */
uint32_t consume_probe_of(uint32_t epid);
/* Starts the command, which waits, or finds the process: $target. NULL: none. */
void consume_target(const char *command, const char *process);
/* The path of the command; NULL: there is none. */
extern const char *consume_command;
/*
 * Traces until the program, the command, the process or the user ends it. The exit status. Image
 * NULL: what has been traced since the boot; with `leave` only that.
 */
int consume(const void *image, struct source *sources, const char *output, bool leave);
