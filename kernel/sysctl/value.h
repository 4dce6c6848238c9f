/* value.h - values of sysctls that are numbers, from text. Any context, but for apply(). */
#pragma once

#include "kernel/lib/sysctl.h"

/* Copies val without blanks around into out; false when it does not fit there with its NUL. */
bool sysctl_value_trim(char *out, size_t size, const char *val);
/*
 * Sets a number: the variable, or by apply(). val is all of it: decimal with a sign, or 0x. 0;
 * -EINVAL: no such number; -ERANGE: out of its range; what apply() returns. But for 0 the number
 * stays as it was, and err (errlen > 0) has a sentence.
 */
int sysctl_value_set(const struct sysctl *s, const char *val, char *err, size_t errlen);
