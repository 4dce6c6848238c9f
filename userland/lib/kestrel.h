/*
 * kestrel.h - what Kestrel has beyond Linux: sysctls, tracing, and the end of the machine.
 *
 * Numbers and errors: kernel/abi/kestrel.h. Where nothing else is said, a failure is -1 with errno.
 */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "kernel/abi/kestrel.h"
#include "kernel/abi/ktrace.h"

/* Value of a sysctl as text: its full length; what fits is stored, always with a NUL (len > 0). */
ssize_t sysctl_get(const char *name, char *buf, size_t len);
/* As sysctl_get(), of any length, in memory that the caller frees. NULL with errno. */
char *sysctl_get_text(const char *name);
/* A value that is one number. */
int sysctl_get_u64(const char *name, uint64_t *value);
/* Sets a value; on failure `why` gets the kernel's sentence, or errno's text when there is none. */
int sysctl_set(const char *name, const char *value, char *why, size_t why_len);
/* Name that follows `name` in order ("" starts); ENOENT after the last. */
ssize_t sysctl_next(const char *name, char *buf, size_t len);
/* "TYPE FLAGS DESCRIPTION" */
ssize_t sysctl_info(const char *name, char *buf, size_t len);

/* A CPU's row of debug.ktr.stats. */
struct ktr_counts {
	uint64_t recorded, delivered, resident, overwritten, suppressed, lost;
};

#define KTR_COUNTS_MAX 64

/* Fills in the counts of each CPU. Returns how many CPUs there are; 0: the kernel does not tell. */
unsigned int ktr_counts_get(struct ktr_counts counts[KTR_COUNTS_MAX]);
/*
 * Says on f how many of the events that were recorded since `before` (NULL: since the boot) are
 * lost, if any, and how large a ring would have held all of a CPU's. Lost are those that were
 * overwritten before the trace file took them; without such a file, those that are not in the rings
 * any more.
 */
void ktr_losses_print(FILE *f, const char *prefix, const struct ktr_counts *before);

/* kernel/abi/ktrace.h describes these. */
int ktrace(const char *file, int ops, uint32_t facs, pid_t pid);
int utrace(const void *data, size_t len);

/* SHUTDOWN_POWEROFF with status 0 to 63. Returns only when it fails. */
int machine_shutdown(int how, int status);
