/*
 * getopt.h - command line options, short and long.
 *
 * Options end at the first word that is none, or after "--" (POSIX; no reordering of words).
 * A leading ':' in the option string silences messages and tells a missing argument by ':'.
 */
#pragma once

extern char *optarg;
extern int optind, opterr, optopt;

#define no_argument       0
#define required_argument 1
#define optional_argument 2

struct option {
	const char *name;
	int has_arg;
	int *flag; /* NULL: getopt_long returns val; else it stores val there and returns 0 */
	int val;
};

/* The option's letter, '?' after a message about a bad one, or -1 at the end. */
int getopt(int argc, char *const argv[], const char *opts);
int getopt_long(int argc, char *const argv[], const char *opts, const struct option *longs,
		int *index);
