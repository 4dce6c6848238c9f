/*
 * value.h - parses and sets sysctls that are numbers. Any context, but for apply().
 */
#pragma once

#include "kernel/lib/sysctl.h"

/* Copies val to out without the white space around it. False: it does not fit with its NUL. */
bool sysctl_value_trim(char *out, size_t size, const char *val);
/*
 * Sets a number: writes the variable or calls apply(). val: decimal with optional sign, or 0x. 0;
 * -EINVAL: not a number; -ERANGE: out of range; or apply()'s error. After an error the number is
 * unchanged and err (errlen > 0) has a sentence.
 */
int sysctl_value_set(const struct sysctl *s, const char *val, char *err, size_t errlen);
