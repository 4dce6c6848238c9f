/*
 * tool.h - what the command line tools share: options with help, numbers, tests.
 */
#pragma once

#include <sys/types.h>

/*
 * getopt() for a tool: -h and --help print `usage` on stdout and exit 0, a bad option prints it on
 * stderr and exits 2. `usage` is what follows "usage: ", lines ended by \n.
 */
int tool_getopt(int argc, char **argv, const char *opts, const char *usage);
/* Prints the usage on stderr and exits 2. */
void tool_usage(const char *usage) __attribute__((noreturn));
/* A decimal or 0x number in [min, max]; anything else: a message that names `what`, exit 2. */
uint64_t tool_number(const char *what, const char *text, uint64_t min, uint64_t max);
/* Flushes stdout; when that or an earlier write failed: a message, 1. Else `status`. */
int tool_finish(int status);
/* Joins directory and name into buf: 0, or -1 with ENAMETOOLONG after a message. */
int tool_join_path(char *buf, size_t size, const char *dir, const char *name);

/*
 * Prints lines of words as columns under the words of `heads`: as wide as their longest word, to
 * the right when all are numbers. The last column is the rest of its line. Cuts `text` up.
 */
void tool_table(const char *heads, char *text);

/*
 * Operands "SOURCE TARGET" or "SOURCE… FOLDER": calls f(source, target) for each, with a target
 * inside the folder. Returns f's results or-ed. Fewer than two operands: usage, exit 2.
 */
int tool_each_to(int argc, char **argv, const char *usage, int (*f)(const char *, const char *));

/*
 * Judges a test(1) expression, argv[0..argc) without the name and without a closing ].
 * Returns 0 true, 1 false, 2 after a message about a bad expression.
 */
int test_evaluate(int argc, char **argv);
