/* decimal.h - numbers in texts. Pure code. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Takes a decimal number from the beginning of *text, which is then after it. max: up to
 * UINT64_MAX / 16. False: there is no digit, or the number is larger; *text stays.
 */
bool take_decimal(const char **text, uint64_t max, uint64_t *n);
