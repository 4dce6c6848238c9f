/*
 * vm.h - user address spaces: areas of anonymous private memory, filled on demand, copied on write.
 *
 * Locking: none. A space belongs to the one thread of its process; fork and exec touch a space that
 * no other thread runs on. All functions: thread context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct uidinfo;
struct vmspace;

#define VM_STACK_SIZE (8ul << 20)
#define VM_STACK_TOP  0x00007ffffff00000ul /* below ARCH_USER_END on every port */

/* An empty space; its pages, tables and areas are the user's. NULL: out of memory, or too much. */
struct vmspace *vm_create(struct uidinfo *ui);
/* Frees every page. Must not be any CPU's current table. */
void vm_destroy(struct vmspace *vm);
/* A copy that shares all pages until one side writes; ui's. NULL: out of memory, or too much. */
struct vmspace *vm_fork(struct vmspace *vm, struct uidinfo *ui);
/* Physical address of its page table. */
uint64_t vm_root(const struct vmspace *vm);

/* prot: MMU_READ, MMU_WRITE, MMU_EXEC. -EINVAL bad range, -EEXIST overlaps an area, -ENOMEM. */
int vm_map(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot);
/* Removes pages and areas, or parts of them. -EINVAL, -ENOMEM. */
int vm_unmap(struct vmspace *vm, uint64_t start, uint64_t size);
/* -EINVAL, -ENOMEM when part of the range is not mapped, or out of memory. */
int vm_protect(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot);
/* A free place for size bytes, at hint if that is free; 0: none. */
uint64_t vm_find_free(struct vmspace *vm, uint64_t hint, uint64_t size);
/* Where the heap begins; set by exec. */
void vm_set_brk_start(struct vmspace *vm, uint64_t start);
/* Moves the heap's end; returns the end as it is then (Linux: unchanged on failure). */
uint64_t vm_brk(struct vmspace *vm, uint64_t end);

/* Serves a fault of the current space. access is one MMU_ bit. False: nothing there, or not
 * allowed. */
bool vm_fault(struct vmspace *vm, uint64_t va, unsigned access);
/* Is access allowed there? When vm_fault() failed nevertheless, memory is out. */
bool vm_allows(const struct vmspace *vm, uint64_t va, unsigned access);
/* Writes into a space that is not current (exec): demand pages are made. -EFAULT, -ENOMEM. */
int vm_write(struct vmspace *vm, uint64_t va, const void *src, uint64_t n);
/*
 * For the debugger only, no lock taken: the first area that ends above *start. False: there is
 * none.
 */
bool vm_next_unlocked(const struct vmspace *vm, uint64_t *start, uint64_t *end, unsigned *prot);
/* Pages mapped now; also of a space that its own thread changes meanwhile. */
uint64_t vm_resident(const struct vmspace *vm);
