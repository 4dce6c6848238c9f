/*
 * registry.h - finding, printing and setting sysctls (kernel/lib/sysctl.h) by their names. Thread
 * context, or early boot, unless said. Results are negative errnos; err gets a sentence that says
 * what was found and what was expected.
 */
#pragma once

#include <stddef.h>

#include "kernel/lib/sysctl.h"

struct ktr_suggestion;

#define SYSCTL_NAME_MAX  64   /* with NUL */
#define SYSCTL_VALUE_MAX 1024 /* of a value that is set, with NUL */

/* From now on functions of sysctls run under the lock: threads exist. */
void sysctl_start(void);
/* Any context. NULL: there is none. */
const struct sysctl *sysctl_find(const char *name);
/* The first whose name comes after `name` in order, "" gives the first; NULL: there is none. Any
 * context. */
const struct sysctl *sysctl_after(const char *name);
void sysctl_get_text(const struct sysctl *s, struct sbuf *out);
/* The same without the lock: for the debugger, on a stopped machine. */
void sysctl_print(const struct sysctl *s, struct sbuf *out);
int sysctl_set_text(const char *name, const char *val, char *err, size_t errlen);
/* Sets s as sysctl_set_text() does, whether or not it may be written at run time. */
int sysctl_apply(const struct sysctl *s, const char *val, char *err, size_t errlen);
/* Tries all names that have these flags. Any context. */
void sysctl_suggest(struct ktr_suggestion *sug, unsigned flags);
