/* real.h - the files of the system as a hostile program finds them: /proc, /sys and /dev. */
#pragma once

#include <stdint.h>

/*
 * Random acts on a random file there: opens, writes that its readers understand, reads of odd
 * sizes, maps, ioctls, pipes. below(n) draws a number less than n.
 */
void real_round(uint64_t (*below)(uint64_t n));
/*
 * Reads all that the user may, and prints `leak: FILE: ADDRESS` for each file with an address of
 * the kernel in it, and how many files it has read. Returns an exit status.
 */
int real_leaks(void);
