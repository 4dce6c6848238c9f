/* reverse.h - the lines of a file, the last one first. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/**
 * Copies the lines of a file, each of which has its newline, from the last to the first. Reads
 * `from` in blocks, at least as long as its longest line. False: no memory, or a file failed; errno
 * says why.
 */
bool reverse_lines(FILE *from, FILE *to);
