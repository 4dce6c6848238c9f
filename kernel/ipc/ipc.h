/*
 * ipc.h - System V IPC: sets of semaphores, queues of messages and segments of shared memory, which
 * processes find by keys, and which stay until somebody removes them.
 *
 * The calls are in sem.c, msg.c and shm.c. ipc.c has what all three have: the table of the objects
 * of a kind, their numbers, and who may use them. Thread context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/ipc.h"

struct sbuf;
struct uidinfo;

#define IPC_MAX   4096 /* objects of a kind */
#define IPC_HEADS 256  /* lists of them by key */

/* What an object of each kind begins with. */
struct ipc_object {
	struct ipc_perm perm; /* the key is IPC_PRIVATE once the object is removed, or is to go */
	int32_t id;           /* the index in the table, and in the upper bits perm.seq */
	int64_t changed;      /* when it was made, or its rights were set: seconds since 1970 */
	uint64_t serial;      /* of all of its kind: a number comes again, this does not */
	struct uidinfo *ui;   /* the user to whom it is counted */
	struct ipc_object *next_key; /* of the list that its key is in */
};

/* Guarded by the lock of its kind. */
struct ipc_table {
	struct ipc_object *slots[IPC_MAX];
	uint64_t taken[IPC_MAX / 64]; /* bits: who looks for a slot passes 64 at once */
	struct ipc_object *keys[IPC_HEADS];
	uint32_t seed; /* odd; keys are multiplied by it: programs choose those, and not this */
	unsigned used, end; /* how many there are; one more than the highest index */
	uint16_t seq;       /* of the next one */
	uint64_t serial;    /* of the last one */
	int max;            /* how many there may be (sysctl) */
	int next_id;        /* the id that the next object is to get; -1: any (sysctl) */
};

/* Seconds since 1970. */
int64_t ipc_now(void);
/* The object with that key, not IPC_PRIVATE. NULL: there is none. */
struct ipc_object *ipc_find_key(const struct ipc_table *t, int32_t key);
/* The object with that number. NULL: there is none, for which the call is -EINVAL. */
struct ipc_object *ipc_find(const struct ipc_table *t, int32_t id);
/*
 * Adds an object, whose `ui` is set, with the key and the rights in `flags`. Its number, or
 * -ENOSPC.
 */
int ipc_add(struct ipc_table *t, struct ipc_object *o, int32_t key, uint64_t flags);
/* Nobody finds the object by its key from now on. */
void ipc_forget_key(struct ipc_table *t, struct ipc_object *o);
/* The first slot from i on that has an object, or t->end. */
unsigned ipc_next_taken(const struct ipc_table *t, unsigned i);
/* Takes an object out of its table. */
void ipc_remove(struct ipc_table *t, struct ipc_object *o);
#define IPC_MAKE INT32_MIN
/*
 * Takes an object that was found by its key, or NULL. Returns its number; IPC_MAKE if one is to be
 * made; -ENOENT, -EEXIST, -EACCES.
 */
int ipc_get(const struct ipc_object *o, uint64_t flags);

#define IPC_READ  0444
#define IPC_WRITE 0222
/* May the current process do that: bits as of a mode? 0 or -EACCES. */
int ipc_may(const struct ipc_object *o, uint32_t access);
/* The object with that number, if the current process may do that. NULL and *error. */
struct ipc_object *ipc_find_allowed(const struct ipc_table *t, int32_t id, uint32_t access,
				    int *error);
/*
 * Finds the object that a *_STAT call asks for: with IPC_STAT by its number, otherwise by the index
 * in it. `any`: whoever asks may know it. *result becomes what the call returns. NULL after an
 * error.
 */
struct ipc_object *ipc_find_status(const struct ipc_table *t, int32_t id, int command, bool any,
				   int *result);
/* May the current process change or remove the object? 0 or -EPERM. */
int ipc_may_change(const struct ipc_object *o);
/* Sets owner, group and rights. 0 or -EINVAL. */
int ipc_set(struct ipc_object *o, const struct ipc_perm *perm);
/* The highest index that is used; 0 too if there is none. */
int ipc_last(const struct ipc_table *t);

/* Files of /proc/sysvipc. */
void ipc_print_msg(struct sbuf *out);
void ipc_print_sem(struct sbuf *out);
void ipc_print_shm(struct sbuf *out);
