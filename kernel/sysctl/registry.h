/* registry.h - what the files of kernel/sysctl share. */
#pragma once

#include <stddef.h>

#include "kernel/lib/sysctl.h"

struct ktr_suggestion;

#define SYSCTL_NAME_MAX  64   /* with NUL */
#define SYSCTL_VALUE_MAX 1024 /* of a value that is set, with NUL */

/* From now on handlers run under the lock: threads exist. */
void sysctl_start(void);
/* The first name behind `name` in order, NULL after the last. */
const struct sysctl *sysctl_after(const char *name);
/* Sets s as sysctl_set_text() does, whether or not it may be written at run time. */
int sysctl_apply(const struct sysctl *s, const char *val, char *err, size_t errlen);
/* Tries all names that have these flags. */
void sysctl_suggest(struct ktr_suggestion *sug, unsigned flags);
