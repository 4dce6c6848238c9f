/* random.h - random numbers that programs cannot predict. */
#pragma once

#include <stddef.h>

/*
 * Fills a buffer. The numbers are as good as their seed: the CPU's random number generator, if it
 * has one, else only the counter and the time of the day at boot. Any context.
 */
void random_bytes(void *buf, size_t n);
