/*
 * kdb_lock.c - the commands show lock and show alllocks: who holds a lock, and who waits for it.
 * CPUs and threads keep lists of the locks that they hold. All memory is read by probes. No locks.
 */
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

#define THREADS_MAX 65536

extern const char __rodata_start[], __rodata_end[];

/* Prints "at 0x… name+0 ". */
static void
print_at(const void *lock)
{
	uintptr_t offset;

	kdb_printf("at %p", lock);
	if (ksym_lookup((uintptr_t)lock, &offset) != NULL) {
		kdb_printf(" ");
		kdb_print_symbol((uintptr_t)lock);
	}
}

static void
spin_locks_of(unsigned cpu)
{
	const struct pcpu *pc = pcpus[cpu];
	char name[KDB_NAMELEN];
	struct spinlock l;

	for (unsigned i = 0; i < pc->locks && i < PCPU_LOCKS; i++) {
		if (!arch_probe_copy(&l, pc->held[i], sizeof(l)))
			continue;
		kdb_printf("cpu %u holds spin lock %s ", cpu, kdb_text(l.name, name, sizeof(name)));
		print_at(pc->held[i]);
		kdb_printf("%s\n",
			   l.owner == (int32_t)cpu ? "" : ", but the lock names another owner");
	}
	if (pc->locks > PCPU_LOCKS)
		kdb_printf("cpu %u holds %u more\n", cpu, pc->locks - PCPU_LOCKS);
}

static void
mutexes_of(const struct thread *t, const struct thread *copy)
{
	char name[KDB_NAMELEN];
	const struct mutex *at = copy->held;
	struct mutex m;

	for (unsigned i = 0; i < copy->mutexes && !kdb.quit; i++, at = m.next_held) {
		if (!arch_probe_copy(&m, at, sizeof(m)))
			return;
		kdb_print_thread(t);
		kdb_printf(" holds mutex %s ", kdb_text(m.name, name, sizeof(name)));
		print_at(at);
		kdb_printf(", waiters %u\n", m.waiters);
	}
}

void
kdb_show_alllocks(char *args)
{
	const struct thread *t = NULL;
	static struct thread copy; /* too large for the stack */
	unsigned found = 0;

	for (unsigned i = 0; i < MAX_CPUS; i++)
		if (pcpus[i] != NULL) {
			found += pcpus[i]->locks;
			spin_locks_of(i);
		}
	for (unsigned n = 0; n < THREADS_MAX && (t = kdb_thread_next(t, &copy)) != NULL; n++) {
		found += copy.mutexes;
		mutexes_of(t, &copy);
	}
	if (found == 0)
		kdb_printf("no lock is held\n");
}

/* Can p be the name of a lock: printable text in read-only data? */
static bool
kdb_is_lock_name(const char *p)
{
	char text[KDB_NAMELEN];

	return p >= __rodata_start && p < __rodata_end &&
	       kdb_text(p, text, sizeof(text))[0] > ' ' && strchr(text, '?') == NULL;
}

static void
show_waiters(uint64_t addr)
{
	const struct thread *t = NULL;
	static struct thread copy; /* too large for the stack */

	for (unsigned n = 0; n < THREADS_MAX && (t = kdb_thread_next(t, &copy)) != NULL; n++)
		if ((uintptr_t)copy.chan - addr < sizeof(struct mutex)) {
			kdb_printf("  waits: ");
			kdb_print_thread(t);
			kdb_printf("\n");
		}
}

/* name NULL: any. False: there is no lock of that name. */
static bool
show_lock(uint64_t addr, const char *name)
{
	struct spinlock s;
	struct mutex m;

	if (!arch_probe_copy(&s, (void *)addr, sizeof(s)))
		return false;
	if (s.owner >= -1 && s.owner < MAX_CPUS && kdb_is_lock_name(s.name) &&
	    (name == NULL || strcmp(s.name, name) == 0)) {
		kdb_printf("spin lock %s ", s.name);
		print_at((void *)addr);
		if (s.owner < 0)
			kdb_printf(": free\n");
		else
			kdb_printf(": held by cpu %d\n", s.owner);
		return true;
	}
	if (arch_probe_copy(&m, (void *)addr, sizeof(m)) && kdb_is_lock_name(m.name) &&
	    (name == NULL || strcmp(m.name, name) == 0)) {
		kdb_printf("mutex %s ", m.name);
		print_at((void *)addr);
		kdb_printf(": %s", m.owner != NULL ? "held by " : "free");
		if (m.owner != NULL)
			kdb_print_thread(m.owner);
		kdb_printf(", waiters %u\n", m.waiters);
		show_waiters(addr);
		return true;
	}
	return false;
}

/* Is the lock a variable, not a part of one? Then show_named() also finds it if nobody holds it. */
static bool
is_variable(const void *lock)
{
	uintptr_t offset;

	return ksym_lookup((uintptr_t)lock, &offset) != NULL && offset == 0;
}

/* The locks of a name: variables, and others that are held. False: there are none. */
static bool
show_named(const char *name)
{
	const struct thread *t = NULL;
	static struct thread copy; /* too large for the stack */
	bool found = false;
	uintptr_t at;

	for (uint32_t i = 0; ksym_at(i, &at) != NULL && !kdb.quit; i++)
		if (at >= (uintptr_t)__rodata_end)
			found |= show_lock(at, name);
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		for (unsigned i = 0; pcpus[cpu] != NULL && i < pcpus[cpu]->locks && i < PCPU_LOCKS;
		     i++)
			if (!is_variable(pcpus[cpu]->held[i]))
				found |= show_lock((uintptr_t)pcpus[cpu]->held[i], name);
	for (unsigned n = 0; n < THREADS_MAX && (t = kdb_thread_next(t, &copy)) != NULL; n++) {
		struct mutex m, *held = copy.held;

		for (unsigned i = 0; i < copy.mutexes && !kdb.quit; i++, held = m.next_held) {
			if (!is_variable(held))
				found |= show_lock((uintptr_t)held, name);
			if (!arch_probe_copy(&m, held, sizeof(m)))
				break;
		}
	}
	return found;
}

void
kdb_show_lock(char *args)
{
	const char *text = args;
	uint64_t addr;
	char c;

	kdb_more_words(&text);
	if (*text == '\0') {
		kdb_printf("show lock: expected an address or a lock's name, such as vfs\n");
		return;
	}
	if (show_named(text) || !kdb_expr(&text, &addr) || show_lock(addr, NULL))
		return;
	kdb_printf("show lock: %#lx is %s\n", addr,
		   kdb_read(&c, addr, 1) ? "neither a spin lock nor a mutex" : "not readable");
}
