/* vm_private.h - between the files of kernel/vm. */
#pragma once

#include "kernel/lib/list.h"
#include "kernel/sched/mutex.h"
#include "kernel/vm/vm.h"

struct area;

#define VM_CODE_ROOMS 4
#define MMAP_BASE     0x0000700000000000ul
#define VM_LOWEST     0x10000ul /* the lowest pages stay unmapped, so that null pointers fault */

struct vmspace {
	uint32_t refs;  /* atomic: who uses the memory */
	uint32_t holds; /* atomic: references to the struct; all users together have one */
	/* Flushes go to all CPUs that run this space. So it is while several threads may run, or
	 * vm_poke() has written to it. Only vm_unshare() clears this. */
	bool shared;
	bool has_shared_areas;
	bool has_odd_areas; /* some areas' pages are not copied by fork() */
	uint64_t root;      /* constant */
	struct mutex lock;
	struct area *areas;
	struct area *gone; /* areas with pagers, by `left`: vm_unlock() lets go of what they map */
	unsigned area_count;
	uint64_t brk_start, brk_end;
	uint64_t args, args_end, env_end, stack, auxv; /* vm_set_args() */
	uint64_t size;                                 /* bytes of all areas */
	uint64_t locked;                               /* bytes of the areas that are locked */
	uint64_t locked_max;                           /* vm_limit_locks() */
	bool locks_new;                                /* those that come later are locked */
	uint64_t resident;                             /* pages mapped */
	uint64_t peak;                                 /* the most before the last one went */
	uint64_t tables;                               /* pages of the page table */
	struct uidinfo *ui;                            /* the user to whom the memory is counted */
	struct list all;                               /* spaces.c */
	unsigned visits;              /* spaces.c: it stays on the list until they have ended */
	uint64_t code[VM_CODE_ROOMS]; /* where the space has room for code; 0: nowhere */
};

/* A page less is mapped. */
static inline void
vm_count_gone(struct vmspace *vm)
{
	vm->peak = vm->peak > vm->resident ? vm->peak : vm->resident;
	vm->resident--;
}

/* The area that contains va, or NULL. lock held, as for all functions here. */
struct area *vm_find(const struct vmspace *vm, uint64_t va);
/*
 * Adds an area where there is none. Its pages come from `from`, or are new ones if that is NULL.
 * NULL if there is no memory, or there are too many areas.
 */
struct area *vm_insert(struct vmspace *vm, uint64_t start, uint64_t end, unsigned prot,
		       const struct area_source *from);
/* Joins neighbours that differ in nothing, in the range and at its edges, into one area.
 * vm_unlock() must follow. */
void vm_join_areas(struct vmspace *vm, uint64_t start, uint64_t end);
/* Makes the page tables for va. Counts them, and n pages more, for the user. */
uint64_t *vm_make_entry(struct vmspace *vm, uint64_t va, unsigned n);
/* Copies a page for the space, which is counted already. NULL: the user has none left. */
void *vm_copy_page(const struct vmspace *vm, const void *page);
/* Can a program have this range? */
bool vm_good_range(uint64_t start, uint64_t size);
/* Is a part of it mapped? */
bool vm_overlaps(const struct vmspace *vm, uint64_t start, uint64_t end);
/* Finds room for size bytes: at hint if that is free. 0: there is none. */
uint64_t vm_find_free(struct vmspace *vm, uint64_t hint, uint64_t size);
/* Finds room for size bytes, at or above `from`. 0: there is none. */
uint64_t vm_gap(const struct vmspace *vm, uint64_t from, uint64_t size);
/* How many bytes of the range are mapped? And how many are locked? */
uint64_t vm_mapped(const struct vmspace *vm, uint64_t start, uint64_t size);
uint64_t vm_locked(const struct vmspace *vm, uint64_t start, uint64_t size);
/* May the space have `more` bytes more, while it loses `less`? */
bool vm_may_grow(const struct vmspace *vm, uint64_t more, uint64_t less, uint64_t limit);
/* May so many bytes more be locked? */
static inline bool
vm_may_lock(const struct vmspace *vm, uint64_t more)
{
	uint64_t max = __atomic_load_n(&vm->locked_max, __ATOMIC_RELAXED);

	return vm->locked <= max && more <= max - vm->locked;
}

/* If va lies inside an area, makes two areas of it. -ENOMEM. */
int vm_split(struct vmspace *vm, uint64_t va);
/* Moves the end of an area. */
void vm_set_end(struct vmspace *vm, struct area *a, uint64_t end);
/* Is there a page at va, in an area; or can one be made? The space's lock held. */
bool vm_bring(struct vmspace *vm, uint64_t va);
/* vm_clean() with the lock held, and without a flush: true, one is needed. */
bool vm_clean_locked(struct vmspace *vm, uint64_t start, uint64_t end);
/* vm_allows() with the lock held. */
bool vm_allows_locked(const struct vmspace *vm, uint64_t va, unsigned access);
/* vm_write() with the lock held. */
int vm_write_locked(struct vmspace *vm, uint64_t va, const void *src, uint64_t n);
/*
 * Adds an area, as vm_map_any() with VM_IF_FREE. -EINVAL: a bad range; -EEXIST: it overlaps another
 * area; -ENOMEM. Lock held.
 */
int vm_map_area(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot,
		const struct area_source *from);
/* As vm_unmap(), with the lock held, which vm_unlock() then releases. -ENOMEM only where it cuts
 * an area. */
int vm_unmap_locked(struct vmspace *vm, uint64_t start, uint64_t size);
/* Releases the lock. Then files that are not mapped any more may go, which may wait for a disk. */
void vm_unlock(struct vmspace *vm);
/* Takes all pages of the range out. The other CPUs flush once for many. */
void vm_drop_pages(struct vmspace *vm, uint64_t start, uint64_t end);
/* When this returns, no CPU uses an old entry of the page, or of any page. */
void vm_flush_page(const struct vmspace *vm, uint64_t va);
void vm_flush_all(const struct vmspace *vm);
/* Puts the space on the list of all, and takes it off. No space's lock held. */
void vm_spaces_join(struct vmspace *vm);
void vm_spaces_leave(struct vmspace *vm);
/*
 * Calls f for each space that is used, and was there when this began, with its lock held. No other
 * space's lock held.
 */
void vm_spaces_each(void (*f)(struct vmspace *vm, void *arg), void *arg);
/* Returns the page that is mapped in place of a file's page, whose reference this takes over.
 * NULL if there is no memory. */
void *vm_code_page(const struct vmspace *vm, const struct area *a, uint64_t va, void *page);
/* Takes the breakpoints off the page at va of an area: it is the file's. False: no memory. */
bool vm_code_unmark(struct vmspace *vm, const struct area *a, uint64_t va);
/* May the page at va have other breakpoints than its area, which has changed, should have? */
bool vm_code_stale(const struct vmspace *vm, uint64_t va, void *page);
