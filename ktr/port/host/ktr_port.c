/*
 * ktr_port.c - the hosted port's functions: a mutex for the control lock; for sync and exchange
 * every registered thread passes a point outside of record calls.
 *
 * Locking: host_lock guards the registry; an exchange holds it while every registered thread waits
 * in ktr_host_pass().
 */
#include <ktr_port.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "ktr/event.h"
#include "ktr/persist.h"
#include "ktr/port.h"
#include "ktr/stream.h"

#define HOST_THREADS 64

_Thread_local unsigned ktr_host_cpu;
_Thread_local uint32_t ktr_host_tid;
_Thread_local bool ktr_host_refuse;
_Thread_local unsigned ktr_host_masked;
unsigned ktr_host_cpus = 1;
unsigned ktr_host_verbose_calls;
bool ktr_host_quiet;
bool ktr_host_exchanges;
bool ktr_host_in_sync = true;
void (*ktr_host_wait)(void);
int ktr_host_alloc_left = -1;
uint64_t (*volatile ktr_host_clock)(void);
void (*volatile ktr_host_interrupt)(enum ktr_host_step step);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
struct ktr_ring *ktr_host_rings[KTR_PORT_MAXCPU] = {
    [0 ... KTR_PORT_MAXCPU - 1] = &ktr_ring_none,
    [0] = &ktr_boot_ring.ring,
};
#pragma GCC diagnostic pop

#ifdef KTR_HOST_RESTART
unsigned ktr_host_exceptions;
#endif

static pthread_mutex_t host_control = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;

struct host_thread {
	bool used;       /* host_lock */
	bool parked;     /* atomic */
	uint64_t passes; /* atomic */
};
static struct host_thread host_threads[HOST_THREADS];
static _Thread_local struct host_thread *host_me;
static bool host_stop; /* atomic: passers wait */

/* The host's clock counts nanoseconds, and tests' clocks pass for such. */
__attribute__((constructor)) static void
host_info(void)
{
	static const struct ktr_info info = {.arch = "host",
					     .build = "hosted",
					     .hz = 1000000000,
					     .ncpu = 1};

	ktr_info_set(&info);
}

static __thread bool host_controls; /* this thread has the control lock */

void
ktr_port_lock(void)
{
	pthread_mutex_lock(&host_control);
	host_controls = true;
}

void
ktr_port_unlock(void)
{
	host_controls = false;
	pthread_mutex_unlock(&host_control);
}

bool
ktr_host_enter(void)
{
	pthread_mutex_lock(&host_lock);
	for (unsigned i = 0; i < HOST_THREADS && host_me == NULL; i++)
		if (!host_threads[i].used) {
			host_me = &host_threads[i];
			host_me->used = true;
		}
	pthread_mutex_unlock(&host_lock);
	return host_me != NULL;
}

void
ktr_host_pass(void)
{
	__atomic_fetch_add(&host_me->passes, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&host_stop, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&host_me->parked, true, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&host_stop, __ATOMIC_SEQ_CST))
		sched_yield();
	__atomic_store_n(&host_me->parked, false, __ATOMIC_SEQ_CST);
}

void
ktr_host_leave(void)
{
	/* Passers do not take the lock, so that an exchange, which holds it, can wait for them. */
	while (pthread_mutex_trylock(&host_lock) != 0)
		ktr_host_pass();
	host_me->used = false;
	host_me = NULL;
	pthread_mutex_unlock(&host_lock);
}

bool
ktr_port_sync(void)
{
	uint64_t seen[HOST_THREADS];
	if (!ktr_host_in_sync)
		return false;
	if (ktr_host_wait != NULL) {
		ktr_host_wait();
		return true;
	}
	pthread_mutex_lock(&host_lock);
	for (unsigned i = 0; i < HOST_THREADS; i++)
		seen[i] = __atomic_load_n(&host_threads[i].passes, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < HOST_THREADS; i++) {
		struct host_thread *t = &host_threads[i];
		while (t->used && t != host_me &&
		       __atomic_load_n(&t->passes, __ATOMIC_SEQ_CST) == seen[i])
			sched_yield();
	}
	pthread_mutex_unlock(&host_lock);
	return true;
}

void
ktr_port_exchange(void (*fn)(void *), void *arg)
{
	pthread_mutex_lock(&host_lock);
	__atomic_store_n(&host_stop, true, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < HOST_THREADS; i++) {
		struct host_thread *t = &host_threads[i];
		while (t->used && t != host_me && !__atomic_load_n(&t->parked, __ATOMIC_SEQ_CST))
			sched_yield();
	}
	ktr_host_exchanges = true;
	fn(arg);
	ktr_host_exchanges = false;
	__atomic_store_n(&host_stop, false, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < HOST_THREADS; i++) {
		struct host_thread *t = &host_threads[i];
		while (t->used && t != host_me && __atomic_load_n(&t->parked, __ATOMIC_SEQ_CST))
			sched_yield();
	}
	pthread_mutex_unlock(&host_lock);
}

void *
ktr_port_alloc(size_t size)
{
	if (!host_controls)
		abort(); /* the kernel's port panics */
	if (ktr_host_alloc_left == 0)
		return NULL;
	if (ktr_host_alloc_left > 0)
		ktr_host_alloc_left--;
	void *p = aligned_alloc(64, (size + 63) / 64 * 64);
	for (size_t i = 0; p != NULL && i < size; i++)
		((char *)p)[i] = 0;
	return p;
}

void
ktr_port_free(void *p, size_t size)
{
	(void)size;
	free(p);
}

/* The linker's: text and read-only data lie between the first and the second. */
extern const char __executable_start[], __data_start[];

bool
ktr_port_string_ok(const char *p)
{
	return (uintptr_t)p >= (uintptr_t)__executable_start &&
	       (uintptr_t)p < (uintptr_t)__data_start;
}

bool
ktr_port_suppressed(void)
{
	return ktr_host_refuse;
}

void
ktr_port_verbose(unsigned cpu, const struct ktr_site *site, const struct ktr_entry *entry,
		 int level)
{
	char text[512];
	__atomic_fetch_add(&ktr_host_verbose_calls, 1, __ATOMIC_RELAXED);
	if (ktr_host_quiet)
		return;
	ktr_entry_text(text, sizeof(text), site, entry, cpu, KTR_SEQ_NEWEST);
	if (level > 1)
		fprintf(stderr, "cpu%u %s.%u %s\n", cpu, site->file, (unsigned)site->line, text);
	else
		fprintf(stderr, "cpu%u %s\n", cpu, text);
}
