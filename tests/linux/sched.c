/* sched.c - which CPUs a thread may run on, and how nice it is. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define ROUNDS 300

static int
cpus(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static int
allow(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(pid, sizeof(set), &set);
}

/* Is it on this CPU alone, whatever it does? */
static bool
stays_on(int cpu)
{
	cpu_set_t set;

	for (int i = 0; i < (int)how_often(ROUNDS); i++) {
		if (sched_getcpu() != cpu)
			return false;
		if (i % 3 == 0)
			sched_yield();
		if (i % 100 == 0)
			usleep(100);
	}
	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1 &&
	       CPU_ISSET(cpu, &set);
}

static int
child_inherits(void *arg)
{
	return stays_on(*(int *)arg) ? 0 : 1;
}

static bool
each_cpu_in_turn(void)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) != cpus())
		return false;
	for (int turn = 0; turn < 3; turn++)
		for (int cpu = 0; cpu < cpus(); cpu++)
			if (allow(0, cpu) != 0 || !stays_on(cpu) ||
			    (turn == 2 && in_child(child_inherits, &cpu) != 0))
				return false;
	return sched_setaffinity(0, sizeof(all), &all) == 0;
}

static void *
thread_on(void *cpu)
{
	return allow(0, *(int *)cpu) == 0 && stays_on(*(int *)cpu) ? cpu : NULL;
}

/* Each thread has CPUs of its own. */
static bool
threads_apart(void)
{
	int cpu[4];
	pthread_t thread[4];
	bool good = true;
	cpu_set_t set;
	void *r;

	for (int i = 0; i < 4; i++) {
		cpu[i] = i % cpus();
		pthread_create(&thread[i], NULL, thread_on, &cpu[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &r);
		good = good && r != NULL;
	}
	return good && sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == cpus();
}

#define BURNERS 8
#define STAYERS 6

static pid_t burner[BURNERS];
static unsigned ready, over, moved;

static void *
burn(void *arg)
{
	long i = (long)arg;
	int cpu = i < STAYERS ? 1 : 2;

	if (allow(0, cpu) != 0)
		return arg;
	burner[i] = gettid();
	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		if (sched_getcpu() != cpu)
			__atomic_store_n(&moved, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/*
 * A CPU without work takes a thread from a queue, even if the longest queue has none that may
 * leave: 6 threads stay on CPU 1, and 2 threads of CPU 2 may go elsewhere from now on.
 */
static bool
idle_cpus_take_work(void)
{
	pthread_t thread[BURNERS];
	bool good = true;
	cpu_set_t all;
	void *r;

	if (cpus() < 4)
		return true;
	ready = over = moved = 0;
	for (long i = 0; i < BURNERS; i++)
		good &= pthread_create(&thread[i], NULL, burn, (void *)i) == 0;
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < BURNERS)
		sched_yield();
	good &= sched_getaffinity(0, sizeof(all), &all) == 0;
	for (int i = STAYERS; i < BURNERS; i++)
		good &= sched_setaffinity(burner[i], sizeof(all), &all) == 0;
	while (good && !__atomic_load_n(&moved, __ATOMIC_SEQ_CST))
		usleep(1000);
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < BURNERS; i++)
		good &= pthread_join(thread[i], &r) == 0 && r == NULL;
	return good;
}

/* Others' threads move, too: while they run, wait for a CPU, or sleep. */
static bool
others_move(void)
{
	int *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int last = cpus() - 1;
	bool good = true;
	pid_t pid[4];

	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			for (;;) {
				__atomic_store_n(&at[i], sched_getcpu() + 1, __ATOMIC_RELAXED);
				if (i == 3)
					usleep(100);
			}
		}
	}
	for (int turn = 0; turn < 1 + (int)how_often(5); turn++) {
		int to = turn % 2 == 0 ? 0 : last;

		for (int i = 0; i < 4; i++)
			good = good && allow(pid[i], to) == 0;
		for (int i = 0; i < 4 && good; i++) {
			at[i] = 0;
			while (__atomic_load_n(&at[i], __ATOMIC_RELAXED) != to + 1)
				usleep(100);
		}
	}
	for (int i = 0; i < 4; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	munmap(at, 4096);
	return good;
}

static int
as_stranger(void *arg)
{
	if (setgid(1000) != 0 || setuid(1000) != 0 || allow(1, 0) != -1 || errno != EPERM ||
	    setpriority(PRIO_PROCESS, 1, 5) != -1 || errno != EPERM)
		return 1;
	if (setpriority(PRIO_PROCESS, 0, 5) != 0 || setpriority(PRIO_PROCESS, 0, 4) != -1 ||
	    errno != EACCES || getpriority(PRIO_PROCESS, 0) != 5)
		return 2;
	return getpriority(PRIO_USER, 0) == 5 ? 0 : 3;
}

static bool
refusals(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_setaffinity(0, sizeof(set), &set) != -1 || errno != EINVAL ||
	    allow(0, cpus()) != -1 || errno != EINVAL || allow(999999999, 0) != -1 ||
	    errno != ESRCH || sched_setaffinity(0, sizeof(set), (cpu_set_t *)8) != -1 ||
	    errno != EFAULT || sched_getaffinity(999999999, sizeof(set), &set) != -1 ||
	    errno != ESRCH)
		return false;
	if (setpriority(9, 0, 0) != -1 || errno != EINVAL ||
	    setpriority(PRIO_PROCESS, 999999999, 0) != -1 || errno != ESRCH)
		return false;
	errno = 0;
	return getpriority(PRIO_PROCESS, 999999999) == -1 && errno == ESRCH &&
	       in_child(as_stranger, NULL) == 0;
}

/* The child of a nice process is as nice; user 0 may be the opposite. */
static int
nice_child(void *arg)
{
	char line[512];
	int nice = 99;
	FILE *f = fopen("/proc/self/stat", "r");

	if (f == NULL || fgets(line, sizeof(line), f) == NULL ||
	    sscanf(strrchr(line, ')'),
		   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
		   "%*d %d",
		   &nice) != 1 ||
	    nice != 7 || getpriority(PRIO_PROCESS, 0) != 7)
		return 1;
	return setpriority(PRIO_PROCESS, 0, -99) == 0 && getpriority(PRIO_PROCESS, 0) == -20 ? 0
											     : 2;
}

/* The whole group becomes as nice. */
static int
nice_group(void *arg)
{
	pid_t pid;
	int nice;

	setpgid(0, 0);
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	nice = setpriority(PRIO_PGRP, 0, 3) == 0 ? getpriority(PRIO_PROCESS, (id_t)pid) : 99;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return nice == 3 && getpriority(PRIO_PROCESS, 0) == 3 ? 0 : 1;
}

static bool
niceness_is_told(void)
{
	bool good = getpriority(PRIO_PROCESS, 0) == 0 && setpriority(PRIO_PROCESS, 0, 7) == 0 &&
		    in_child(nice_child, NULL) == 0;

	return setpriority(PRIO_PROCESS, 0, 0) == 0 && good && in_child(nice_group, NULL) == 0;
}

/* How much a process counts in 300 ms: 30 times the best of five times 10 ms. */
static long
work_of_300_ms(void)
{
	volatile long counted;
	long best = 0;

	for (int i = 0; i < 5; i++) {
		long until = now_ns(CLOCK_PROCESS_CPUTIME_ID) + 10 * MS;

		for (counted = 0; now_ns(CLOCK_PROCESS_CPUTIME_ID) < until;)
			counted = counted + 1;
		best = counted > best ? counted : best;
	}
	return 30 * best;
}

/*
 * Two processes want the same CPU: the nicer one has done less when the other has done its work.
 * What they did is compared, not their time: that may hold a while in which the host let the guest
 * wait.
 */
static bool
the_nice_get_less(void)
{
	long work = work_of_300_ms();
	long *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[2];
	bool good;

	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			allow(0, 0);
			setpriority(PRIO_PROCESS, 0, i == 0 ? 0 : 19);
			__atomic_fetch_add(&done[2], 1, __ATOMIC_SEQ_CST);
			while (__atomic_load_n(&done[2], __ATOMIC_SEQ_CST) < 2)
				sched_yield();
			while (i == 1 || done[0] < work) {
				now_ns(CLOCK_PROCESS_CPUTIME_ID);
				__atomic_fetch_add(&done[i], 1, __ATOMIC_RELAXED);
			}
			_exit(0);
		}
	}
	waitpid(pid[0], NULL, 0);
	good = __atomic_load_n(&done[1], __ATOMIC_RELAXED) < done[0] / 2;
	kill(pid[1], SIGKILL);
	waitpid(pid[1], NULL, 0);
	munmap(done, 4096);
	return good;
}

void
test_sched(void)
{
	result(each_cpu_in_turn(),
	       "a process runs on the CPUs that it chose, and so do its children");
	result(threads_apart(), "each thread has CPUs of its own");
	result(others_move(),
	       "processes that run, wait or sleep move to the CPU that another chose");
	result(idle_cpus_take_work(),
	       "an idle CPU takes a thread that may move, though another queue is longer");
	result(refusals(), "sched_setaffinity and setpriority refuse what is not allowed");
	result(niceness_is_told(),
	       "getpriority tells how nice a process, its child and its group are");
	result(the_nice_get_less(), "a nice process gets less of its CPU");
}
