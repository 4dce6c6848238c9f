/*
 * registry.h - finds, prints and sets sysctls (kernel/lib/sysctl.h) by name.
 *
 * Unless said otherwise: thread context or early boot; results are negative errnos; err gets a
 * sentence that says what was found and what was expected.
 */
#pragma once

#include <stddef.h>

#include "kernel/lib/sysctl.h"

struct ktr_suggestion;

#define SYSCTL_NAME_MAX  64   /* with NUL */
#define SYSCTL_VALUE_MAX 1024 /* of a value to set, with NUL */

/* Threads exist: sysctl functions now run under the lock. */
void sysctl_start(void);
/* Finds a sysctl by its name. NULL: there is none. Any context. */
const struct sysctl *sysctl_find(const char *name);
/* The first sysctl, in order of names, after `name`; "" starts. NULL: none. Any context. */
const struct sysctl *sysctl_after(const char *name);
void sysctl_get_text(const struct sysctl *s, struct sbuf *out);
/* sysctl_find() without the lock: for the debugger, on a stopped machine. */
void sysctl_print(const struct sysctl *s, struct sbuf *out);
int sysctl_set_text(const char *name, const char *val, char *err, size_t errlen);
/* As sysctl_set_text(), but also sets what cannot be written at run time. */
int sysctl_apply(const struct sysctl *s, const char *val, char *err, size_t errlen);
/* Considers all names with these flags as suggestions. Any context. */
void sysctl_suggest(struct ktr_suggestion *sug, unsigned flags);
