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
#include <sys/time.h>

#define THREADS 3u
#define EVENTS  4000u

bool user_thread_begin(const char *name);
void user_thread_end(void);

static struct ktr_stream stream;
static _Thread_local uint64_t signals; /* handlers that the thread has run */
static unsigned left = THREADS;        /* atomic: threads that run */

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
	if (!user_thread_begin("main"))
		fail("no number for the main thread");
	ktr_stream_open(&stream, KTR_STREAM_ACCOUNT);
	CTR0(KTR_PROC, "begin");
	flush();
	signal(SIGUSR1, handler);
	signal(SIGALRM, handler);
	const struct itimerval every = {{0, 500}, {0, 500}};
	setitimer(ITIMER_REAL, &every, NULL);
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL); /* threads begin like this */
	for (unsigned i = 0; i < THREADS; i++) {
		snprintf(name[i], sizeof(name[i]), "t%u", i);
		if (pthread_create(&threads[i], NULL, thread, name[i]) != 0)
			fail("no thread");
	}
	while (__atomic_load_n(&left, __ATOMIC_ACQUIRE) > 0)
		flush();
	const struct itimerval never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &never, NULL);
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
