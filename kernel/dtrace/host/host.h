/*
 * host.h - the program engine's port to the host, for tests: the kernel that programs see is what a
 * test puts here. One thread on one CPU at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel/dtrace/port.h"

#define DIF_HOST_STACK 128

struct dif_host_area { /* memory that a program may read; address: what it has to say */
	uint64_t address;
	uint8_t *bytes;
	size_t size;
};

extern _Thread_local struct dif_host {
	struct dif_host_area kernel, user;
	uint64_t time, step;        /* step: by how much the time goes on when a program reads it */
	uint64_t thread, curthread; /* thread: what tells threads apart; its low half is the tid */
	uint64_t builtin[DIF_B_COUNT]; /* of the others */
	uint64_t stack[DIF_HOST_STACK], ustack[DIF_HOST_STACK], pid;
	unsigned frames, uframes;
	uint64_t mutex, owner;    /* the one mutex */
	uint64_t random, secrets; /* what rand() gives; how many secrets were given */
	bool random_changes;      /* rand() gives another number each time */
	unsigned acts;            /* actions so far, and the last one */
	enum dif_op act;
	uint64_t act_arg;
	uint64_t chill_max;              /* a longer DIF_CHILL is refused */
	unsigned logged, upcalls, loads; /* loads: of the kernel's memory */
	void (*log)(void);               /* DIF_LOG; or NULL */
	int32_t upcall;                  /* the last one */
	uint64_t upcall_arg;             /* … and its first register */
	/* ERROR; NULL: nothing fires */
	void (*fault)(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f);
	size_t alloc_most; /* bytes of an allocation; 0: 64 MiB */
	int alloc_left;    /* allocations that still succeed; -1: all */
} dif_host;

/** Copies a text, or as much of it as there is room for; much faster than snprintf(). */
static inline void
dif_host_text(char *to, const char *from, size_t size)
{
	if (memccpy(to, from, '\0', size) == NULL)
		to[size - 1] = '\0';
}
