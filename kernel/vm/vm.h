/*
 * vm.h - user address spaces: areas, whose pages are new or those of a file, filled on demand. What
 * is private is copied on write.
 *
 * Locking: a space has a mutex, which guards its areas, its page table and its counts; functions
 * take it. It is the innermost of all mutexes, since any copy to or from user memory may take it.
 * When several threads run on a space, whoever takes a page or a right away flushes the TLB of
 * every CPU that runs it before the page is used for something else. All functions: thread context,
 * no spin lock held; but vm_ref(), vm_user(), vm_resident() and vm_peak() in any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct area_source;
struct uidinfo;
struct vmspace;

/*
 * Where pages of files come from. Its functions are called with the lock of a space held. They take
 * spin locks, and mutexes that are `below` (kernel/sched/mutex.h), and may wait for a disk.
 */
struct vm_pager {
	/*
	 * Returns page `index`, with a reference. NULL, and *err: -ENOMEM; -EFAULT if it is beyond
	 * the end; 0 if there is no such page yet, so that it reads as zeroes, and `make` was not
	 * set.
	 */
	void *(*page)(void *object, uint64_t index, bool make, int *err);
	/*
	 * Adds a reference for an area. writes: the area counts as an open file that writes; when
	 * it begins, there is such a file, or another such area. A pager without such files may
	 * give `writes` another meaning: kernel/ipc/shm.c counts the area.
	 */
	void (*ref)(void *object, bool writes);
	void (*unref)(void *object, bool writes);
	/* A number that no other object has while this one is there. */
	uint64_t (*id)(const void *object);
	/*
	 * A page that is mapped shared is about to be written for the first time in this space, or
	 * since its vm_clean() or vm_clean_object(). Later writes are not told. The space's lock is
	 * held until the page is written, or can be.
	 */
	void (*written)(void *object, void *page);
};

#define VM_STACK_SIZE (8ul << 20)
#define VM_STACK_TOP  0x00007ffffff00000ul /* below ARCH_USER_END on every port */

/* An empty space, counted for ui with all it gets. NULL: out of memory, or the user's limit. */
struct vmspace *vm_create(struct uidinfo *ui);
/* Adds a reference to the space, for a process that shares it. */
struct vmspace *vm_ref(struct vmspace *vm);
/*
 * Drops a reference. The last one frees every page and the space; then no CPU may use its page
 * table.
 */
void vm_destroy(struct vmspace *vm);
/* Keeps the struct, but not the memory, which goes with the last reference. Any context. */
struct vmspace *vm_hold(struct vmspace *vm);
/* Adds a reference to a space that the caller holds. False: its memory has gone. Any context. */
bool vm_enter(struct vmspace *vm);
/* Ends a vm_hold(). Any context. */
void vm_unhold(struct vmspace *vm);
/* Copies a space, counted for ui. Both share all pages until one writes. NULL: as vm_create(). */
struct vmspace *vm_fork(struct vmspace *vm, struct uidinfo *ui);
/* The user to whom all of the space is counted: the one who made it. */
const struct uidinfo *vm_user(const struct vmspace *vm);
/* From now on several threads may run on the space, or a debugger changes it while one does. */
void vm_share(struct vmspace *vm);
/* The current thread is its process's only one: the space is its own if nobody else has it. */
void vm_unshare(struct vmspace *vm);
/* Physical address of the page table. */
uint64_t vm_root(const struct vmspace *vm);

/* Removes all pages and areas in the range. An area may be cut. -EINVAL, -ENOMEM. */
int vm_unmap(struct vmspace *vm, uint64_t start, uint64_t size);
#define VM_PROTECT_DOWN 1u /* from the start of the range's first area, which must grow down */
#define VM_PROTECT_EXEC 2u /* with MMU_EXEC where that is allowed */
/*
 * Changes the protection of a range; how: VM_PROTECT_…. -EINVAL if VM_PROTECT_DOWN is given and the
 * area does not grow; -ENOMEM if a part is not mapped, -EACCES if a part may not have it: what is
 * before that part is changed. -ENOMEM also without memory.
 */
int vm_protect(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot, unsigned how);
/*
 * Call this after an object was cut to `size` bytes: takes pages after these out of all spaces,
 * also private copies. No space's lock held.
 */
void vm_cut_object(const void *object, uint64_t size);
/*
 * From now on the object's pager is told again, in all spaces, when bytes between `from` and `to`
 * are written; those that are written while this runs may be left out. The object may be gone. No
 * space's lock held, and no page of the object busy.
 */
void vm_clean_object(const void *object, uint64_t from, uint64_t to);
/*
 * Takes the object's pages with these bytes (of all objects, if it is NULL) out of all spaces that
 * share them, so that they can be given up, but for code that nobody writes. They come back when
 * they are used. Conditions as for vm_clean_object().
 */
void vm_drop_object(const void *object, uint64_t from, uint64_t to);
/*
 * Takes the pages of a new hole in the object, whole ones, out of all spaces. What a program has
 * changed in private copies stays. Conditions as for vm_clean_object().
 */
void vm_punch_object(const void *object, uint64_t from, uint64_t to);
/* Does a space map the object shared, so that it is, or may be, written? No space's lock held. */
bool vm_object_is_written(const void *object);
/* Where an area goes: where room is, at its start if that is free; there, or -EEXIST; there. */
enum vm_place { VM_ANYWHERE, VM_IF_FREE, VM_REPLACE };
/*
 * Adds an area, whose pages come from `from`, or are new ones if that is NULL. prot: MMU_READ,
 * MMU_WRITE, MMU_EXEC. limit: how many bytes the space may have then. Returns its address; -EINVAL
 * if it is not of whole pages; -EEXIST; -EPERM for the lowest pages; -ENOMEM, also if it would
 * reach beyond a program's half.
 */
int64_t vm_map_any(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot,
		   enum vm_place place, const struct area_source *from, uint64_t limit);
/* What is asked of mremap(). */
struct remap {
	uint64_t start,
	    old_size; /* one area, or a part of one; 0: what is shared stays there, too */
	uint64_t size;
	unsigned flags; /* MREMAP_… */
	uint64_t to; /* with MREMAP_FIXED, where it goes; with MREMAP_DONTUNMAP, if that is free */
};
/*
 * Gives a range another size or place. limit: as for vm_map_any(). Returns its address. After an
 * error nothing has changed: -EINVAL; -EFAULT if what has to grow or move is not one area; -ENOMEM.
 * But after -ENOMEM, MREMAP_FIXED may have unmapped what was in the way, and the end of a range
 * that was to become smaller.
 */
int64_t vm_remap(struct vmspace *vm, struct remap r, uint64_t limit);
/*
 * Forgets the contents of private pages: they are new ones again, or the file's. The range is whole
 * pages. -ENOMEM if a part is not mapped; the rest is forgotten. -EINVAL at the first area that is
 * locked or, if not `files`, that maps an object; what is before that is forgotten.
 */
int vm_forget(struct vmspace *vm, uint64_t start, uint64_t size, bool files);
/* What a copy of the space has of a range; and whether that counts as locked. */
enum vm_inherit { VM_INHERIT, VM_INHERIT_NOTHING, VM_WIPE, VM_WIPE_NOT, VM_LOCK, VM_LOCK_NOT };
/* Sets one of these for a range. -ENOMEM if a part is not mapped; the rest is set. -ENOMEM, too, if
 * more would be locked than vm_limit_locks() said. -EINVAL for VM_WIPE if a part is of a file. */
int vm_set_inherit(struct vmspace *vm, uint64_t start, uint64_t size, enum vm_inherit how);
/* No more bytes of the space than these may be locked from now on. */
void vm_limit_locks(struct vmspace *vm, uint64_t bytes);
/* Counts all areas as locked, or none; and those that come later, if `later`. -ENOMEM: that is too
 * much. */
int vm_lock_all(struct vmspace *vm, bool now, bool later);
/* The pagers are told again of pages in the range that are written from now on. */
void vm_clean(struct vmspace *vm, uint64_t start, uint64_t size);
/* Sets the start of the heap. For exec(). */
void vm_set_brk_start(struct vmspace *vm, uint64_t start);
/*
 * Moves the end of the heap, as far as the space has `limit` bytes then; prot: of what is new.
 * Returns the end, which on failure is unchanged (as in Linux).
 */
uint64_t vm_brk(struct vmspace *vm, uint64_t end, unsigned prot, uint64_t limit);

enum vm_fault {
	VM_FAULT_SERVED,
	VM_FAULT_NO_AREA,
	VM_FAULT_DENIED, /* the area does not allow it */
	VM_FAULT_BEYOND, /* after the end of the area's file */
	VM_FAULT_MEMORY, /* there is none */
};

/* Handles a page fault in the current space. access: one MMU_ bit. */
enum vm_fault vm_fault(struct vmspace *vm, uint64_t va, unsigned access);
/* Is va in an area that allows this access? access 0: in any. */
bool vm_allows(struct vmspace *vm, uint64_t va, unsigned access);
/* Is all of the range in areas? */
bool vm_is_mapped(struct vmspace *vm, uint64_t start, uint64_t size);
/* Writes into pages of a space, which it makes or copies. For exec(). -EFAULT, -ENOMEM. */
int vm_write(struct vmspace *vm, uint64_t va, const void *src, uint64_t n);
/* ---- code that probes change ---- */

/*
 * Puts the breakpoints of a space, whose lock is held, into a copy of page `index` of an object. If
 * page is NULL, only asks whether there are any. NULL while no probe is in a program.
 */
typedef bool vm_code_patch_fn(const struct vmspace *vm, const void *object, uint64_t index,
			      uint8_t *page);
extern vm_code_patch_fn *vm_code_patch;
/* The breakpoints of a page have changed: when this returns, each program has the new ones. */
void vm_code_reset(const void *object, uint64_t index);
/*
 * Finds the object, and the offset in it, of the code at va. False if no breakpoints may stand
 * there: it is of no object, or of a page that the program or its debugger has changed.
 */
bool vm_code_at(struct vmspace *vm, uint64_t va, const void **object, uint64_t *offset);

#define VM_CODE_MAX 16
/* A piece of code that runs wherever it is put. Its size is a divisor of PAGE_SIZE, and at most
 * VM_CODE_MAX. */
struct vm_code {
	uint64_t near; /* not farther than 1 GiB from there */
	uint32_t hash; /* pieces that differ should differ in it */
	uint32_t size;
	/* Writes the piece as it has to be at va, not all zeroes. False: it cannot be there. */
	bool (*make)(const struct vm_code *c, uint64_t va, uint8_t *bytes);
	const void *arg;
};
/*
 * Puts this piece of code into the space, unless it is there, and returns its address. It stays as
 * long as the program lets it. 0 if there is no memory, or no room.
 */
uint64_t vm_code_add(struct vmspace *vm, const struct vm_code *c);

/* The first area that ends above *start. False: none. Takes no lock: for the debugger only. */
bool vm_next_unlocked(const struct vmspace *vm, uint64_t *start, uint64_t *end, unsigned *prot);
/* Where exec() has put the arguments, and after them the environment; the first stack pointer; and
 * the auxiliary vector. */
void vm_set_args(struct vmspace *vm, uint64_t start, uint64_t end, uint64_t env_end, uint64_t stack,
		 uint64_t auxv);

struct vm_info {
	uint64_t size;                                 /* bytes of all areas */
	uint64_t locked;                               /* bytes of the areas that are locked */
	uint64_t resident;                             /* pages mapped */
	uint64_t peak;                                 /* the most at a time */
	uint64_t brk_start, brk_end;                   /* the heap */
	uint64_t args, args_end, env_end, stack, auxv; /* vm_set_args() */
};
void vm_info_get(struct vmspace *vm, struct vm_info *info);

struct vm_range {
	uint64_t start, end;
	unsigned prot;
	bool shared, locked;
	uint64_t offset; /* of what it maps */
	void *object;    /* the object that is mapped, with a reference; NULL: new pages */
	const struct vm_pager *pager;
};
/* The first area that ends after r->end: 0 starts. False: none. */
bool vm_range_next(struct vmspace *vm, struct vm_range *r);
struct vm_pages {
	uint64_t resident; /* pages mapped */
	uint64_t shared;   /* pages of these that others have, too: a space, or a file's cache */
	uint64_t share;    /* bytes, when each page is divided among those who have it */
};
/* Counts the pages of an area. */
void vm_range_pages(struct vmspace *vm, const struct vm_range *r, struct vm_pages *n);
/* Unmaps that area, if it is still there and maps the same. 0; else -ENOENT, or -ENOMEM. */
int vm_range_unmap(struct vmspace *vm, const struct vm_range *r);
/*
 * Read and write memory of any space, where its program has the rights `access` (MMU_READ, …). For
 * debuggers access is 0: then its program's rights do not matter, except that what is shared and
 * cannot be written stays as it is. A page of code that is written loses its probes. Return how
 * many bytes, up to the first that is not mapped, that may not be touched, or for which there is no
 * memory.
 */
size_t vm_peek(struct vmspace *vm, uint64_t va, void *to, size_t n, unsigned access);
size_t vm_poke(struct vmspace *vm, uint64_t va, const void *from, size_t n, unsigned access);
/* Copies from the pages of a space that is not current. Returns how many bytes, up to the first
 * page that is not there. */
size_t vm_read(struct vmspace *vm, uint64_t va, void *to, size_t n);
/* Is the memory at va shared with other spaces? Then *id is its object's, and *offset is there. */
bool vm_shared_at(struct vmspace *vm, uint64_t va, uint64_t *id, uint64_t *offset);
/* Pages mapped now. Other threads may ask too; then the number may be out of date. */
uint64_t vm_resident(const struct vmspace *vm);
/* The most that were at a time. The same holds. */
uint64_t vm_peak(const struct vmspace *vm);
