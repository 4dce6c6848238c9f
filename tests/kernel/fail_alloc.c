/*
 * fail_alloc.c - an allocation that fails: the sysctl debug.ktest.fail_alloc=N lets the Nth one
 * fail that the group of processes of who set it makes from then on, and reads 0 when that
 * has happened; debug.ktest.fail_allocs=N: all after it fail, too, and it reads 1 then.
 * kestrel-test is linked so that all calls of the heap from other files come here (ld's --wrap).
 *
 * Locking: none is needed: `left`, `owner` and `rest` are atomic.
 */
#include <stddef.h>

#include "arch/pcpu.h"
#include "kernel/lib/sysctl.h"
#include "kernel/proc/proc.h"

void *__real_kmalloc(size_t size);
void *__real_kzalloc(size_t size);
void *__wrap_kmalloc(size_t size);
void *__wrap_kzalloc(size_t size);

static uint64_t left;
static uint32_t owner;
static bool rest; /* those after it, too */

static bool
alloc_fails(void)
{
	const struct proc *p;
	uint64_t now = __atomic_load_n(&left, __ATOMIC_RELAXED);
	uint32_t by;

	if (now == 0)
		return false;
	p = curproc();
	if (p == NULL)
		return false;
	by = __atomic_load_n(&owner, __ATOMIC_RELAXED);
	if (now == 1 && __atomic_load_n(&rest, __ATOMIC_RELAXED))
		return p->pgid == by;
	return p->pgid == by && __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0;
}

void *
__wrap_kmalloc(size_t size)
{
	return alloc_fails() ? NULL : __real_kmalloc(size);
}

void *
__wrap_kzalloc(size_t size)
{
	return alloc_fails() ? NULL : __real_kzalloc(size);
}

static uint64_t
fail_alloc_left(void)
{
	return __atomic_load_n(&left, __ATOMIC_RELAXED);
}

static int
alloc_fail_at(int64_t n, bool all)
{
	__atomic_store_n(&rest, all, __ATOMIC_RELAXED);
	__atomic_store_n(&owner, curproc()->pgid, __ATOMIC_RELAXED);
	__atomic_store_n(&left, (uint64_t)n, __ATOMIC_RELAXED);
	return 0;
}

static int
fail_alloc_set(int64_t n, char *err, size_t errlen)
{
	(void)err, (void)errlen;
	return alloc_fail_at(n, false);
}

static int
fail_allocs_set(int64_t n, char *err, size_t errlen)
{
	(void)err, (void)errlen;
	return alloc_fail_at(n, true);
}

SYSCTL_U64_CALL(debug_ktest_fail_allocs, "debug.ktest.fail_allocs", SYSCTL_WR, fail_alloc_left,
		fail_allocs_set,
		"from which allocation on those of the process group that sets this fail; 0: none");
SYSCTL_U64_CALL(debug_ktest_fail_alloc, "debug.ktest.fail_alloc", SYSCTL_WR, fail_alloc_left,
		fail_alloc_set,
		"which allocation of the process group that sets this fails; 0: none");
