/*
 * uidinfo.h - what each user holds, and how much a user may hold.
 *
 * User 0 is counted too, but only the limits for all users together apply to it. A part of all
 * memory is reserved for user 0, so that it can always look around and stop what others do. The
 * limits are sysctls; kern.uidinfo shows the counts.
 *
 * A uidinfo is made with its user's first process, and stays: while one thread changes the user of
 * its process, another one may still charge the old user. New users come by CAP_SETUID only, or by
 * a program whose file has a set-id bit.
 *
 * Locking: one spin lock inside, for the list of users; counts are atomic. Any context but NMI.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/fair.h"
#include "kernel/lib/list.h"

enum uidinfo_kind {
	UIDINFO_PROC, /* processes, with zombies */
	UIDINFO_FILE, /* open files */
	UIDINFO_PAGE, /* pages of programs and of their page tables */
	UIDINFO_DATA, /* pages of files; they remain after all processes of the user ended */
	UIDINFO_KMEM, /* bytes of the kernel heap */
	UIDINFO_KINDS
};

struct uidinfo {
	struct list link; /* guarded by the list's lock */
	uint32_t uid;
	uint64_t held[UIDINFO_KINDS]; /* atomic */
	uint64_t signals;             /* atomic; that are queued for its processes */
	uint64_t in_flight;           /* atomic; files that it has sent, and nobody received */
	uint64_t inotify_instances;   /* atomic; open files of inotify */
	uint64_t inotify_watches;     /* atomic; what these watch */
	uint64_t dnotify_marks;       /* directories that it watches by F_NOTIFY: inotify_lock's */
	uint64_t async_files;         /* files whose news are told by a signal: fasync_lock's */
	struct fair_group *groups;    /* its threads on each CPU (kernel/sched/runq.h) */
};

extern struct uidinfo uidinfo_root; /* user 0, and kernel threads but for ktrace's */

/* Sets each limit that the loader did not set to a share of memory. Once, after page_init(). */
void uidinfo_init(void);
/* Counts one process more. NULL: too many of this user or of all, or no memory. */
struct uidinfo *uidinfo_enter(uint32_t uid);
/* Counts one process more, whatever the limits are. NULL: no memory. */
struct uidinfo *uidinfo_enter_anyway(uint32_t uid);
/* Has the user more processes than its limit? */
bool uidinfo_is_crowded(const struct uidinfo *ui);
/* Counts one process less. */
void uidinfo_leave(struct uidinfo *ui);
/* Counts n more. False: a limit is reached or memory is short, and nothing is counted. */
bool uidinfo_charge(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n);
/* Counts n more, whatever the limits are. */
void uidinfo_charge_anyway(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n);
/* Counts n less. */
void uidinfo_release(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n);
/* How much the user holds now. Any context. */
static inline uint64_t
uidinfo_held(const struct uidinfo *ui, enum uidinfo_kind kind)
{
	return __atomic_load_n(&ui->held[kind], __ATOMIC_RELAXED);
}
/* How much all users hold. Any context. */
uint64_t uidinfo_held_by_all(enum uidinfo_kind kind);
/* Has the user reached its limit on pages? */
bool uidinfo_is_full(const struct uidinfo *ui);
/* Is less memory left than is reserved for user 0? */
bool uidinfo_memory_short(void);
/* The user, not 0, who holds the most memory, if it is at least 1/share of all. 0: nobody. */
uint32_t uidinfo_greediest(unsigned share);

/* Allocates zeroed heap memory and counts it for the user. NULL: no memory, or the user's limit. */
void *uidinfo_alloc(struct uidinfo *ui, size_t size);
/* Frees what uidinfo_alloc() returned. NULL is allowed. */
void uidinfo_free(struct uidinfo *ui, void *p);
