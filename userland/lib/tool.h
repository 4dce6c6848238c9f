/*
 * tool.h - what the command line tools share: options with help, numbers, writing, tables.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
/* Writes all of buf, in as many calls as it takes. 0, or -1 with errno. */
int write_all(int fd, const void *buf, size_t len);

/*
 * Prints lines of words as columns under the words of `heads`: as wide as their longest word, to
 * the right when all are numbers. The last column is the rest of its line. Cuts `text` up.
 */
void tool_table(const char *heads, char *text);
/* After a table: a message, if stdout is a terminal that has wrapped lines of so many characters.
 */
void tool_say_width(size_t widest);
