/*
 * pids.c - set_ftrace_pid, set_event_pid, and their opposites: of which threads functions, or
 * events, are recorded. Locking: ftrace_lock; hooks read a list while it changes.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/ftrace_private.h"
#include "kernel/sched/thread.h"

static unsigned
count(const struct pids *p)
{
	return __atomic_load_n(&p->n, __ATOMIC_ACQUIRE);
}

static bool
has(const struct pids *p, uint32_t pid)
{
	for (unsigned i = count(p); i-- > 0;)
		if (__atomic_load_n(&p->pid[i], __ATOMIC_RELAXED) == pid)
			return true;
	return false;
}

bool
pids_have(const struct instance *i, enum pid_list list)
{
	uint32_t pid = curthread()->tid;

	return (count(&i->pids[list]) == 0 || has(&i->pids[list], pid)) &&
	       !has(&i->pids[list + 1], pid);
}

static int
changed(uintptr_t list)
{
	return list >= PIDS_EVENT ? events_pids_changed() : 0;
}

void
pids_show(uintptr_t arg, struct sbuf *out)
{
	const struct pids *p = &instance_now->pids[arg];

	if (p->n == 0 && arg < PIDS_EVENT)
		sbuf_puts(out, "no pid\n");
	for (unsigned i = 0; i < p->n; i++)
		sbuf_printf(out, "%u\n", p->pid[i]);
}

int
pids_store(uintptr_t arg, char *text)
{
	struct pids *p = &instance_now->pids[arg];
	unsigned n = p->n;
	char *word;

	/* They count when all are there. */
	while ((word = tracefs_word(&text)) != NULL) {
		uint64_t pid;

		if (tracefs_number(word, &pid) != 0 || pid > INT32_MAX)
			return -EINVAL;
		if (n == PIDS_MAX)
			return -ENOSPC;
		__atomic_store_n(&p->pid[n++], (uint32_t)pid, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&p->n, n, __ATOMIC_RELEASE);
	return changed(arg);
}

int
pids_clear(uintptr_t arg)
{
	__atomic_store_n(&instance_now->pids[arg].n, 0, __ATOMIC_RELEASE);
	return changed(arg);
}
