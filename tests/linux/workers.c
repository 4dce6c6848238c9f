/* workers.c - processes of several threads: one to be traced, and one that computes for long. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define THREADS 8

/* ---- to be traced ---- */

static void *
work(void *arg)
{
	unsigned long who = (unsigned long)arg;
	struct timespec nap = {0, (long)who * 1000};
	char name[16], buf[16];
	int fd;

	snprintf(name, sizeof(name), "worker-%lu", who);
	prctl(PR_SET_NAME, name);
	fd = open("/etc/motd", O_RDONLY);
	if (fd < 0 || read(fd, buf, who) != (long)who)
		return (void *)1;
	close(fd);
	syscall(SYS_nanosleep, &nap, NULL);
	return NULL;
}

int
workers_traced(void)
{
	pthread_t t[3];
	pid_t ids[2] = {0, 0};
	void *r;
	int bad = 0;
	/* Of the two last arguments one is the thread's memory, which the child does not ask for.
	 */
	long pid = syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0,
			   &ids[0], &ids[1], &ids[1]);

	if (pid == 0)
		_exit(ids[1] == getpid() ? 0 : 1);
	bad |= waitpid((pid_t)pid, &bad, 0) != pid || ids[0] != pid;
	for (unsigned long i = 0; i < 3; i++) {
		bad |= pthread_create(&t[i], NULL, work, (void *)(i + 1)) != 0;
		bad |= pthread_join(t[i], &r) != 0 || r != NULL;
	}
	return bad;
}

/* ---- memory ---- */

#define UNMAPPED (512ul * 4096)

static volatile bool stop;
static atomic_uint running;

static int
stay_on(unsigned cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

static void *
run_along(void *arg)
{
	void *bad = stay_on((unsigned long)arg) == 0 ? NULL : arg;

	running++;
	while (!stop)
		;
	return bad;
}

/*
 * A thread moves 512 pages, and unmaps them, while three others run on CPUs of their own. They make
 * no system calls then, which would fill the log.
 */
int
workers_unmap(void)
{
	pthread_t t[3];
	char *p = mmap(NULL, UNMAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = p == MAP_FAILED || stay_on(0) != 0;

	for (unsigned long i = 0; i < 3; i++)
		r |= pthread_create(&t[i], NULL, run_along, (void *)(i + 1)) != 0;
	while (r == 0 && running < 3)
		;
	memset(p, 1, UNMAPPED);
	p = mremap(p, UNMAPPED, 2 * UNMAPPED, MREMAP_MAYMOVE | MREMAP_FIXED,
		   mmap(NULL, 2 * UNMAPPED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	r |= p == MAP_FAILED || p[UNMAPPED - 1] != 1 || munmap(p, UNMAPPED);
	stop = true;
	for (unsigned i = 0; i < 3; i++) {
		void *bad;

		r |= pthread_join(t[i], &bad) != 0 || bad != NULL;
	}
	return r;
}

/* ---- for long ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changes = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all_exist;
static unsigned long counted, turn, last_round;
static double in_handler;
static _Atomic bool over;

static struct worker {
	pthread_t thread;
	unsigned long rounds, counted, signals, alarms;
	const char *fault; /* what it found wrong */
} workers[THREADS];

static __thread struct worker *self;
static __thread unsigned long own_words[32];

static double
series(double from)
{
	volatile double sum = from;

	for (int i = 1; i < 2000; i++)
		sum += sin(i) / i + sqrt(i + from) * 1e-9;
	return sum;
}

static void
on_signal(int sig)
{
	double found = series(99);

	if (memcmp(&found, &in_handler, sizeof(found)) != 0)
		self->fault = "floating point in a handler";
	self->signals += sig == SIGUSR1;
	self->alarms += sig == SIGALRM;
}

static void
count_together(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++) {
		pthread_mutex_lock(&mutex);
		counted++;
		pthread_mutex_unlock(&mutex);
		self->counted++;
	}
}

/* Waits until it is this one's turn, and gives it to the next. Then waits for the others' turns. */
static void
take_turn(unsigned long who)
{
	pthread_mutex_lock(&mutex);
	while (turn % THREADS != who)
		pthread_cond_wait(&turn_changes, &mutex);
	turn++;
	self->rounds++;
	if (who == 0 && over && last_round == 0)
		last_round = self->rounds;
	pthread_cond_broadcast(&turn_changes);
	while (turn < self->rounds * THREADS)
		pthread_cond_wait(&turn_changes, &mutex);
	pthread_mutex_unlock(&mutex);
}

static bool
own_words_are(unsigned long value)
{
	for (unsigned i = 0; i < 32; i++)
		if (own_words[i] != value + i)
			return false;
	return true;
}

static void *
compute(void *arg)
{
	unsigned long who = (unsigned long)arg;
	uint64_t in[FPU_WORDS], out[FPU_WORDS];
	double expected = series((double)who), found;

	self = &workers[who];
	pthread_barrier_wait(&all_exist);
	do {
		struct worker *other = &workers[(who + 1 + self->rounds % (THREADS - 1)) % THREADS];

		for (unsigned i = 0; i < 32; i++)
			own_words[i] = (who << 32 | self->rounds) + i;
		for (unsigned i = 0; i < FPU_WORDS; i++)
			in[i] = (0x5a5aul + who) << 48 | (self->rounds & UINT32_MAX) << 8 | i;
		count_together(20);
		found = series((double)who);
		if (memcmp(&found, &expected, sizeof(found)) != 0)
			self->fault = "floating point";
		fpu_round_trip(in, out, 10);
		if (memcmp(in, out, fpu_words * 8) != 0)
			self->fault = "vector registers";
		pthread_kill(other->thread, SIGUSR1);
		if (!own_words_are(who << 32 | self->rounds))
			self->fault = "memory of a thread";
		take_turn(who);
	} while (last_round == 0 || self->rounds < last_round);
	return NULL;
}

/* 0: all results are exact. */
static int
judge(void)
{
	unsigned long sum = 0, signals = 0, alarms = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		const struct worker *w = &workers[i];

		if (w->fault != NULL || w->rounds != workers[0].rounds) {
			printf("worker %u, round %lu: %s\n", i, w->rounds,
			       w->fault != NULL ? w->fault : "fewer or more rounds than worker 0");
			return 1;
		}
		sum += w->counted;
		signals += w->signals;
		alarms += w->alarms;
	}
	if (sum != counted || sum != 20 * THREADS * last_round || turn != THREADS * last_round) {
		printf("counted %lu and %lu, turns %lu, rounds %lu\n", sum, counted, turn,
		       last_round);
		return 1;
	}
	printf("workers: rounds %lu, signals %lu, alarms %lu, exact\n", last_round, signals,
	       alarms);
	return signals == 0 || alarms == 0;
}

int
workers_compute(double seconds)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct itimerval every = {{0, 10000}, {0, 10000}};
	struct timespec nap = {0, 10 * MS};
	long begin;
	sigset_t set;

	in_handler = series(99);
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGALRM, &act, NULL);
	pthread_barrier_init(&all_exist, NULL, THREADS + 1);
	for (unsigned long i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, compute, (void *)i) != 0)
			return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_wait(&all_exist);
	setitimer(ITIMER_REAL, &every, NULL);
	begin = now_ns(CLOCK_MONOTONIC);
	do
		nanosleep(&nap, NULL);
	while ((double)(now_ns(CLOCK_MONOTONIC) - begin) / 1e9 < seconds);
	over = true;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	return judge();
}
