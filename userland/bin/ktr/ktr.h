/* ktr.h - what the files of ktr share. */
#pragma once

/*
 * ktr graph, ktr profile: argv[0] is the verb. Runs a command with functions traced or counted, for
 * the command or another process only, and prints what they did. The exit status.
 */
int session_main(int argc, char **argv, const char *usage);

/* Prints what the profiler has counted. The exit status. */
int profile_print(void);
