/*
 * value.h - values of sysctls that are numbers, from text. Pure functions; any context.
 */
#pragma once

#include "kernel/lib/sysctl.h"

/* Copies val without blanks around into out; false when it does not fit there with its NUL. */
bool sysctl_value_trim(char *out, size_t size, const char *val);
/*
 * Sets the variable of a sysctl without handlers to a number: decimal with a sign, or 0x; the whole
 * of val. 0; -EINVAL: no such number; -ERANGE: out of its range. Then the variable stays, and err
 * (errlen > 0) has a sentence.
 */
int sysctl_value_set(const struct sysctl *s, const char *val, char *err, size_t errlen);
