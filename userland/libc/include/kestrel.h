/*
 * kestrel.h - what Kestrel has beyond Linux: sysctls and the end of the machine.
 *
 * Numbers and errors: kernel/abi/kestrel.h. All return -1 with errno on failure.
 */
#pragma once

#include <sys/types.h>

#include "kernel/abi/kestrel.h"

/* Value of a sysctl as text: its full length; what fits is stored, always with a NUL (len > 0). */
ssize_t sysctl_get(const char *name, char *buf, size_t len);
/* Likewise, however long it is, in memory that the caller frees; NULL with errno. */
char *sysctl_get_text(const char *name);
/* A value that is one number. */
int sysctl_get_u64(const char *name, uint64_t *value);
/* Sets a value; on failure `why` gets the kernel's sentence, or errno's text when there is none. */
int sysctl_set(const char *name, const char *value, char *why, size_t why_len);
/* Name that follows `name` in order ("" starts); ENOENT after the last. */
ssize_t sysctl_next(const char *name, char *buf, size_t len);
/* "TYPE FLAGS DESCRIPTION" */
ssize_t sysctl_info(const char *name, char *buf, size_t len);

/* SHUTDOWN_POWEROFF with status 0 to 63, or SHUTDOWN_REBOOT. Returns only when it fails. */
int machine_shutdown(int how, int status);
