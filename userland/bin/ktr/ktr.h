/* ktr.h - what the files of ktr share. */
#pragma once

/*
 * ktr graph, ktr profile: argv[0] is the verb. Runs a command with functions traced or counted, for
 * the command or for another process only, and prints what they did. Returns the exit status.
 */
int session_main(int argc, char **argv, const char *usage);

/* Prints what the profiler has counted. The exit status. */
int profile_print(void);

/* Reads the types of the kernel's functions. Without the file of types there are none. */
void probe_types_open(void);
/* The types of the arguments of a function's `entry` or `return`: " (TYPE, ...)", or "". */
const char *probe_types(const char *function, const char *name);
