/*
 * uidinfo.h - what each user holds, and how much of it a user may hold.
 *
 * User 0 is counted but bound only by the limits for all users together, and the last part of all
 * memory is kept for it: so it can always look around and end what others do. The limits are
 * sysctls; kern.uidinfo shows the counts.
 *
 * A uidinfo exists as long as its user has a process or holds anything.
 *
 * Locking: one spin lock inside for the list of users; counts are atomic. Any context but NMI.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/list.h"

enum uidinfo_kind {
	UIDINFO_PROC, /* processes, with zombies */
	UIDINFO_FILE, /* open files */
	UIDINFO_PAGE, /* pages of programs and of their page tables */
	UIDINFO_DATA, /* pages of files, which stay when all processes have gone */
	UIDINFO_KMEM, /* bytes of the kernel heap */
	UIDINFO_KINDS
};

struct uidinfo {
	struct list link; /* lock of the list */
	uint32_t uid;
	uint64_t held[UIDINFO_KINDS]; /* atomic */
};

extern struct uidinfo uidinfo_root; /* user 0, and kernel threads */

/* Sets the limits that nobody set by their share of memory. Once, after page_init(). */
void uidinfo_init(void);
/* Counts one more process of the user. NULL: the user, or all together, have too many; or no
 * memory. */
struct uidinfo *uidinfo_enter(uint32_t uid);
/* Counts one process less. */
void uidinfo_leave(struct uidinfo *ui);
/* Counts n more. False, and nothing is counted: it is too much, or memory is short. */
bool uidinfo_charge(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n);
/* Counts n less. The caller may look at ui no more: others may free it. */
void uidinfo_release(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n);
/* Is the user at a limit on pages? */
bool uidinfo_is_full(const struct uidinfo *ui);
/* Does less of memory remain than is kept for user 0? */
bool uidinfo_memory_short(void);
/* The user other than 0 who holds most memory, and at least 1/share of all; its id, or 0: none. */
uint32_t uidinfo_greediest(unsigned share);

/* Zeroed heap memory on a user's account. NULL: no memory, or too much for the user. */
void *uidinfo_alloc(struct uidinfo *ui, size_t size);
/* Frees it. NULL is allowed. */
void uidinfo_free(struct uidinfo *ui, void *p);
