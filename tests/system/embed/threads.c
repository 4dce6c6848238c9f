/*
 * threads.c - a user-space program over the port of ktr/README.md: threads record, and so do signal
 * handlers, while the main thread writes the stream to standard output. At its end each CPU's
 * account must be what its thread has counted.
 */
#include <ktr.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 3u
#define EVENTS  4000u
#define KILLS   2000u /* signals from outside, of which some come when one is pending */

bool user_thread_begin(const char *name);
void user_thread_end(void);

static struct ktr_stream stream;
static _Thread_local uint64_t signals; /* handlers that the thread has run */
static unsigned left = THREADS;        /* atomic: threads that run */

/* The linker gives user.c the first in place of ktr_cpu_init(), which is the second. */
int __wrap_ktr_cpu_init(unsigned cpu);
int __real_ktr_cpu_init(unsigned cpu);
static bool no_memory;

int
__wrap_ktr_cpu_init(unsigned cpu)
{
	return no_memory ? -KTR_ENOMEM : __real_ktr_cpu_init(cpu);
}

static void
fail(const char *why)
{
	fprintf(stderr, "threads: %s\n", why);
	exit(1);
}

static void
handler(int number)
{
	CTR1(KTR_SIG, "signal %d", number);
	__atomic_fetch_add(&signals, 1,
			   __ATOMIC_RELAXED); /* another handler may interrupt this one */
}

static void *
thread(void *arg)
{
	struct ktr_stats before, after;
	sigset_t all;
	sigfillset(&all);
	if (!user_thread_begin(arg) || !ktr_stats_get(user_cpu, &before))
		fail("no number for a thread");
	pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	for (unsigned n = 0; n < EVENTS; n++) {
		CTR2(KTR_PROC, "event %u of %s", n, "a thread");
		if (n % 100 == 0)
			raise(SIGUSR1);
	}
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	/* A handler that came in the middle of a record was refused, and counted. */
	if (!ktr_stats_get(user_cpu, &after) ||
	    after.recorded + after.suppressed !=
		before.recorded + before.suppressed + EVENTS + signals)
		fail("an event is neither recorded nor counted as refused");
	user_thread_end();
	__atomic_sub_fetch(&left, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void
flush(void)
{
	static uint8_t buf[4096];
	size_t n;
	while ((n = ktr_stream_read(&stream, buf, sizeof(buf))) > 0) {
		if (fwrite(buf, 1, n, stdout) != n)
			fail("standard output: cannot write");
	}
}

int
main(void)
{
	static char name[THREADS][8];
	pthread_t threads[THREADS];
	struct ktr_stats stats;
	struct ktr_info info = {.arch = "host",
				.build = "threads",
				.hz = 1000000000,
				.ncpu = THREADS + 1};
	info.boot_ticks = ktr_port_time();
	ktr_info_set(&info);
	ktr_mask_set(KTR_PROC | KTR_SIG);
	ktr_resize(USER_ENTRIES);
	no_memory = true;
	if (user_thread_begin("main"))
		fail("a thread without a ring has begun");
	no_memory = false;
	if (!user_thread_begin("main") || user_cpu != 0)
		fail("the main thread has another number than that of a thread that has no ring");
	ktr_stream_open(&stream, KTR_STREAM_ACCOUNT);
	CTR0(KTR_PROC, "begin");
	flush();
	signal(SIGUSR1, handler);
	signal(SIGALRM, handler);
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL); /* threads begin like this */
	for (unsigned i = 0; i < THREADS; i++) {
		snprintf(name[i], sizeof(name[i]), "t%u", i);
		if (pthread_create(&threads[i], NULL, thread, name[i]) != 0)
			fail("no thread");
	}
	for (unsigned n = 0; __atomic_load_n(&left, __ATOMIC_ACQUIRE) > 0; n++) {
		for (unsigned i = 0; i < THREADS && n < KILLS; i++)
			pthread_kill(threads[i], SIGALRM);
		flush();
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	user_thread_end();
	CTR0(KTR_PROC, "refused");
	if (ktr_stats_get(KTR_PORT_MAXCPU - 1, &stats))
		fail("there is a ring where none should be");
	flush();
	ktr_stream_close(&stream, false);
	flush();
	return 0;
}
