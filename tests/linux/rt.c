/* rt.c - policies of scheduling: what the calls promise, and who runs before whom. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define CHILDREN 8
#define ROUNDS   200000

/* Memory that all processes of a test share. */
struct board {
	int order[64]; /* who has run */
	unsigned steps, ready, count;
	long rounds[64]; /* of the ordinary thread on each CPU */
	bool over;
};

static struct board *board;

struct attr { /* Debian 12's glibc does not know it */
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

static int
set(pid_t pid, int policy, int priority)
{
	return sched_setscheduler(pid, policy, &(struct sched_param){priority});
}

/* Is it of this policy and priority, for all that ask? */
static bool
is(pid_t pid, int policy, int priority)
{
	struct sched_param p = {-1};
	struct attr a = {0};
	char path[64], line[1024];
	int prio, rt, as, flags = policy & SCHED_RESET_ON_FORK;
	FILE *f;
	bool good;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid != 0 ? pid : getpid());
	f = fopen(path, "r");
	good = f != NULL && fgets(line, sizeof(line), f) != NULL;
	if (f != NULL)
		fclose(f);
	/* fields 18, 40 and 41 */
	good = good &&
	       sscanf(strrchr(line, ')'),
		      ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %d %*d %*d "
		      "%*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d "
		      "%*d %d %d",
		      &prio, &rt, &as) == 3;
	policy &= ~SCHED_RESET_ON_FORK;
	return good && sched_getscheduler(pid) == (policy | flags) &&
	       sched_getparam(pid, &p) == 0 && p.sched_priority == priority && as == policy &&
	       rt == priority && (priority != 0 ? prio == -1 - priority : prio >= 0) &&
	       syscall(SYS_sched_getattr, pid, &a, sizeof(a), 0) == 0 && a.size == sizeof(a) &&
	       (int)a.policy == policy && (int)a.priority == priority &&
	       a.flags == (flags != 0 ? 1 : 0);
}

static int
child_is(void *arg)
{
	const int *expected = arg;

	return is(0, expected[0], expected[1]) ? 0 : 1;
}

static bool
policy_told(void)
{
	static const int all[][2] = {
	    {SCHED_FIFO, 1}, {SCHED_FIFO, 99}, {SCHED_RR, 50}, {SCHED_BATCH, 0}, {SCHED_IDLE, 0}};
	int other[2] = {SCHED_OTHER, 0};
	bool good = is(0, SCHED_OTHER, 0);

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int now[2] = {all[i][0], all[i][1]};

		good = good && set(0, now[0], now[1]) == 0 && is(0, now[0], now[1]) &&
		       in_child(child_is, now) == 0;
	}
	good = good && set(0, SCHED_FIFO | SCHED_RESET_ON_FORK, 7) == 0 &&
	       is(0, SCHED_FIFO | SCHED_RESET_ON_FORK, 7) && in_child(child_is, other) == 0 &&
	       sched_setparam(0, &(struct sched_param){9}) == 0 &&
	       is(0, SCHED_FIFO | SCHED_RESET_ON_FORK, 9);
	return set(0, SCHED_OTHER, 0) == 0 && good && is(0, SCHED_OTHER, 0);
}

/* A niceness is kept while a thread is of real time, and given to it afterwards. */
static int
nice_kept(void *arg)
{
	struct attr a = {.size = 48, .policy = SCHED_OTHER, .nice = 11};

	if (setpriority(PRIO_PROCESS, 0, 5) != 0 || set(0, SCHED_RR, 3) != 0 ||
	    getpriority(PRIO_PROCESS, 0) != 5 || set(0, SCHED_OTHER, 0) != 0 ||
	    getpriority(PRIO_PROCESS, 0) != 5)
		return 1;
	if (syscall(SYS_sched_setattr, 0, &a, 0) != 0 || getpriority(PRIO_PROCESS, 0) != 11)
		return 2;
	a = (struct attr){.size = sizeof(a), .flags = 8 | 16}; /* keep all */
	if (syscall(SYS_sched_setattr, 0, &a, 0) != 0 || getpriority(PRIO_PROCESS, 0) != 11)
		return 3;
	set(0, SCHED_OTHER | SCHED_RESET_ON_FORK, 0);
	setpriority(PRIO_PROCESS, 0, -5);
	if (fork() == 0)
		_exit(getpriority(PRIO_PROCESS, 0) == 0 && sched_getscheduler(0) == SCHED_OTHER
			  ? 0
			  : 1);
	return wait(&(int){0}) > 0 ? 0 : 4;
}

int
rt_as_executed(void)
{
	return is(0, SCHED_RR, 42) ? 0 : 1;
}

int
rt_naps(void)
{
	if (set(0, SCHED_RR, 42) != 0)
		return 1;
	for (int i = 0; i < 5; i++)
		usleep(10000);
	return 0;
}

static int
executes(void *arg)
{
	return set(0, SCHED_RR, 42) == 0 ? execute_self("rt-executed") : 99;
}

static bool
limits(void)
{
	struct timespec t = {9, 9};
	struct sched_param p;
	bool good = true;

	for (int policy = 0; policy <= 6; policy++) {
		bool rt = policy == SCHED_FIFO || policy == SCHED_RR, is_one = policy != 4;

		good = good && sched_get_priority_max(policy) == (is_one ? rt ? 99 : 0 : -1) &&
		       sched_get_priority_min(policy) == (is_one ? rt ? 1 : 0 : -1);
	}
	good = good && FAILS(sched_get_priority_max(-1), EINVAL) &&
	       FAILS(sched_get_priority_min(7), EINVAL);
	good = good && sched_rr_get_interval(0, &t) == 0 && t.tv_sec == 0 && t.tv_nsec > 0 &&
	       set(0, SCHED_RR, 1) == 0 && sched_rr_get_interval(0, &t) == 0 && t.tv_sec == 0 &&
	       t.tv_nsec == 100 * MS && set(0, SCHED_FIFO, 1) == 0 &&
	       sched_rr_get_interval(0, &t) == 0 && t.tv_sec == 0 && t.tv_nsec == 0;
	good = set(0, SCHED_OTHER, 0) == 0 && good;
	return good && FAILS(sched_rr_get_interval(-1, &t), EINVAL) &&
	       FAILS(sched_rr_get_interval(999999999, &t), ESRCH) &&
	       FAILS(sched_rr_get_interval(0, NOWHERE), EFAULT) &&
	       FAILS(sched_getparam(0, NULL), EINVAL) && FAILS(sched_getparam(-1, &p), EINVAL) &&
	       FAILS(sched_getparam(999999999, &p), ESRCH) &&
	       FAILS(sched_getparam(0, NOWHERE), EFAULT) && FAILS(sched_getscheduler(-1), EINVAL) &&
	       FAILS(sched_getscheduler(999999999), ESRCH);
}

static bool
refused(void)
{
	struct attr a = {.size = sizeof(a), .policy = SCHED_FIFO, .priority = 1};
	char more[128] = {0};
	bool good = FAILS(set(0, SCHED_FIFO, 0), EINVAL) &&
		    FAILS(set(0, SCHED_FIFO, 100), EINVAL) && FAILS(set(0, SCHED_RR, -1), EINVAL) &&
		    FAILS(set(0, SCHED_OTHER, 1), EINVAL) && FAILS(set(0, 4, 0), EINVAL) &&
		    FAILS(set(0, -1, 1), EINVAL) && FAILS(set(0, 99, 1), EINVAL) &&
		    FAILS(set(-1, SCHED_FIFO, 1), EINVAL) &&
		    FAILS(set(999999999, SCHED_FIFO, 1), ESRCH) &&
		    FAILS(sched_setscheduler(0, SCHED_FIFO, NULL), EINVAL) &&
		    FAILS(sched_setscheduler(0, SCHED_FIFO, NOWHERE), EFAULT) &&
		    FAILS(sched_setparam(0, NULL), EINVAL) &&
		    FAILS(sched_setparam(0, &(struct sched_param){1}), EINVAL);

	good = good && FAILS(syscall(SYS_sched_setattr, 0, NULL, 0), EINVAL) &&
	       FAILS(syscall(SYS_sched_setattr, 0, &a, 1), EINVAL) &&
	       FAILS(syscall(SYS_sched_setattr, 0, NOWHERE, 0), EFAULT) &&
	       FAILS(syscall(SYS_sched_setattr, 999999999, &a, 0), ESRCH) &&
	       FAILS(syscall(SYS_sched_getattr, 0, &a, 47, 0), EINVAL) &&
	       FAILS(syscall(SYS_sched_getattr, 0, &a, 48, 1), EINVAL) &&
	       FAILS(syscall(SYS_sched_getattr, 0, NOWHERE, 48, 0), EFAULT);
	a.size = 47;
	good = good && FAILS(syscall(SYS_sched_setattr, 0, &a, 0), E2BIG) && a.size == sizeof(a);
	a.size = sizeof(more);
	memcpy(more, &a, sizeof(a));
	more[100] = 1;
	good = good && FAILS(syscall(SYS_sched_setattr, 0, more, 0), E2BIG);
	a.size = sizeof(more);
	memcpy(more, &a, sizeof(a));
	more[100] = 0;
	good = good && syscall(SYS_sched_setattr, 0, more, 0) == 0 && is(0, SCHED_FIFO, 1);
	return set(0, SCHED_OTHER, 0) == 0 && good;
}

/* A user without a limit may do nothing, and with one up to it; and not to others' processes. */
static int
as_user(void *arg)
{
	const rlim_t *limit = arg;

	if (setrlimit(RLIMIT_RTPRIO, &(struct rlimit){*limit, *limit}) != 0 ||
	    (*limit == 0 && set(0, SCHED_RR, 30) != 0) || setgid(1000) != 0 || setuid(1000) != 0)
		return 1;
	if (!FAILS(set(1, SCHED_OTHER, 0), EPERM) || !FAILS(set(1, SCHED_FIFO, 1), EPERM))
		return 2;
	if (*limit == 0) { /* it may lower what it has */
		if (!FAILS(set(0, SCHED_FIFO, 1), EPERM) || !FAILS(set(0, SCHED_RR, 31), EPERM) ||
		    set(0, SCHED_RR, 20) != 0 || !FAILS(set(0, SCHED_RR, 30), EPERM) ||
		    set(0, SCHED_OTHER, 0) != 0 || !FAILS(set(0, SCHED_RR, 1), EPERM))
			return 3;
	} else if (set(0, SCHED_FIFO, (int)*limit) != 0 ||
		   !FAILS(set(0, SCHED_FIFO, (int)*limit + 1), EPERM)) {
		return 4;
	}
	if (set(0, SCHED_OTHER | SCHED_RESET_ON_FORK, 0) != 0 ||
	    !FAILS(set(0, SCHED_OTHER, 0), EPERM))
		return 5;
	if (set(0, SCHED_IDLE | SCHED_RESET_ON_FORK, 0) != 0 ||
	    !FAILS(set(0, SCHED_OTHER | SCHED_RESET_ON_FORK, 0), EPERM))
		return 6;
	return 0;
}

static int
nice_limit(void *arg)
{
	struct rlimit l = {0}, five = {25, 25}; /* as nice as -5 */

	if (getrlimit(RLIMIT_NICE, &l) != 0 || l.rlim_max != 0 ||
	    getrlimit(RLIMIT_RTPRIO, &l) != 0 || l.rlim_max != 0)
		return 1;
	if (setrlimit(RLIMIT_NICE, &five) != 0 || setgid(1000) != 0 || setuid(1000) != 0)
		return 2;
	return setpriority(PRIO_PROCESS, 0, -5) == 0 &&
		       FAILS(setpriority(PRIO_PROCESS, 0, -6), EACCES)
		   ? 0
		   : 3;
}

static bool
privileges(void)
{
	rlim_t none = 0, some = 10;

	return in_child(as_user, &none) == 0 && in_child(as_user, &some) == 0 &&
	       in_child(nice_limit, NULL) == 0;
}

/* ---- who runs ---- */

static void
note(int who)
{
	unsigned n = __atomic_fetch_add(&board->steps, 1, __ATOMIC_SEQ_CST);

	if (n < 64)
		board->order[n] = who;
}

static void
stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void
await_ready(unsigned n)
{
	while (__atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
}

/* A child that waits until a byte comes, says that it runs, and does fn(who). */
static pid_t
start(int policy, int priority, int in, void (*fn)(int), int who)
{
	pid_t pid = fork();
	char c;

	if (pid != 0)
		return pid;
	if (set(0, policy, priority) != 0)
		_exit(1);
	__atomic_fetch_add(&board->ready, 1, __ATOMIC_SEQ_CST);
	if (read(in, &c, 1) != 1)
		_exit(2);
	note(who);
	fn(who);
	note(who);
	_exit(0);
}

static void
nothing(int who)
{
}

/* Keeps its CPU for 15 ticks, three slices of an ordinary thread. */
static void
spin(int who)
{
	long until = now_ns(CLOCK_PROCESS_CPUTIME_ID) + 150 * MS;

	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

static void
yield_often(int who)
{
	for (int i = 0; i < 3; i++) {
		sched_yield();
		note(who);
	}
}

/* Until they have run in turns four times. A pause of the host counts as time that one has used. */
static void
take_turns(int who)
{
	alarm(60);
	while (__atomic_load_n(&board->count, __ATOMIC_SEQ_CST) < 4) {
		unsigned n = __atomic_load_n(&board->steps, __ATOMIC_SEQ_CST);

		if (board->order[n - 1] != who) {
			board->count++;
			note(who);
		}
	}
}

/* How much of a second real-time threads may have: all of it, or what is usual. */
static bool
rt_runtime(const char *us)
{
	FILE *f = fopen("/proc/sys/kernel/sched_rt_runtime_us", "w");
	bool good = f != NULL && fputs(us, f) >= 0;

	return f != NULL && fclose(f) == 0 && good;
}

struct runner {
	int policy, priority;
	void (*fn)(int);
};

/*
 * Starts the children on CPU 0, wakes them in their order while none of them gets the CPU, and lets
 * them run. True: the numbers of those that ran are `expected`, two for each child, or more. The
 * share of others is taken away: on a slow host it would come in the midst of it.
 */
static bool
run_in_order(const struct runner *runners, unsigned n, const char *expected)
{
	int pipes[CHILDREN][2], status;
	pid_t pid[CHILDREN];
	char found[65] = "";
	cpu_set_t all;
	bool good = sched_getaffinity(0, sizeof(all), &all) == 0;

	memset(board, 0, sizeof(*board));
	stay_on(0);
	good = rt_runtime("-1") && set(0, SCHED_FIFO, 99) == 0 && good;
	for (unsigned i = 0; i < n; i++) {
		good = pipe(pipes[i]) == 0 && good;
		pid[i] = start(runners[i].policy, runners[i].priority, pipes[i][0], runners[i].fn,
			       (int)i);
	}
	await_ready(n);
	usleep(1000); /* they are of worse priorities; those that wait for the pipe get there */
	for (unsigned i = 0; i < n; i++)
		good = write(pipes[i][1], "", 1) == 1 && good;
	for (unsigned i = 0; i < n; i++)
		good = waitpid(pid[i], &status, 0) == pid[i] && status == 0 && good;
	set(0, SCHED_OTHER, 0);
	good = rt_runtime("950000") && good;
	sched_setaffinity(0, sizeof(all), &all);
	for (unsigned i = 0; i < n; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	for (unsigned i = 0; i < board->steps && i < 64; i++)
		found[i] = (char)('0' + board->order[i]);
	if (strcmp(found, expected) != 0 && *expected != '\0')
		printf("# ran %s, expected %s\n", found, expected);
	return good && (*expected == '\0' || strcmp(found, expected) == 0);
}

static bool
by_priority(void)
{
	return run_in_order((struct runner[]){{SCHED_OTHER, 0, nothing},
					      {SCHED_FIFO, 1, nothing},
					      {SCHED_RR, 40, nothing},
					      {SCHED_FIFO, 39, nothing},
					      {SCHED_RR, 41, nothing},
					      {SCHED_FIFO, 98, nothing}},
			    6, "554422331100");
}

static bool
fifo_keeps(void)
{
	return run_in_order((struct runner[]){{SCHED_OTHER, 0, spin},
					      {SCHED_FIFO, 10, spin},
					      {SCHED_FIFO, 10, spin},
					      {SCHED_IDLE, 0, nothing}},
			    4, "11220033");
}

static bool
fifo_yields(void)
{
	return run_in_order((struct runner[]){{SCHED_FIFO, 10, yield_often},
					      {SCHED_FIFO, 10, yield_often}},
			    2, "0101010011");
}

static bool
rr_alternates(void)
{
	bool good =
	    run_in_order((struct runner[]){{SCHED_RR, 10, take_turns}, {SCHED_RR, 10, take_turns}},
			 2, "");

	return good && board->count >= 4;
}

/* The first keeps the CPU, wakes a better one, and goes on when that has ended. */
static int wake_fd;

static void
wake_other(int who)
{
	if (write(wake_fd, "", 1) != 1)
		_exit(3);
	note(who);
}

static bool
better_preempts(void)
{
	int better[2];
	bool good = pipe(better) == 0;
	struct runner r[] = {{SCHED_FIFO, 10, wake_other}, {SCHED_FIFO, 10, nothing}};
	cpu_set_t all;
	pid_t pid;

	memset(board, 0, sizeof(*board));
	sched_getaffinity(0, sizeof(all), &all);
	stay_on(0);
	pid = start(SCHED_FIFO, 11, better[0], nothing, 7);
	await_ready(1);
	wake_fd = better[1];
	good = run_in_order(r, 2, "") && good;
	good = waitpid(pid, NULL, 0) == pid && good;
	sched_setaffinity(0, sizeof(all), &all);
	close(better[0]);
	close(better[1]);
	/* 0 runs, wakes 7, and is still the first of its priority */
	return good && board->steps == 7 &&
	       memcmp(board->order, (int[]){0, 7, 7, 0, 0, 1, 1}, 7 * sizeof(int)) == 0;
}

/* Real-time threads that never wait do not keep the others off for good. */
static bool
all_go_on(void)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	pid_t pid[64];
	bool good = true;

	board->count = 0;
	for (int i = 0; i < cpus; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			stay_on(i);
			if (set(0, SCHED_FIFO, 99) != 0)
				_exit(1);
			__atomic_fetch_add(&board->count, 1, __ATOMIC_SEQ_CST);
			for (;;)
				;
		}
	}
	while (__atomic_load_n(&board->count, __ATOMIC_SEQ_CST) < (unsigned)cpus)
		sched_yield();
	for (int i = 0; i < cpus; i++) {
		kill(pid[i], SIGKILL);
		good = waitpid(pid[i], NULL, 0) == pid[i] && good;
	}
	return good;
}

static void
says_so(int who)
{
	__atomic_store_n(&board->over, true, __ATOMIC_SEQ_CST);
}

/*
 * Until the other says so, or each of the ordinary threads on other CPUs has gone on for ROUNDS
 * system calls. A CPU that the host does not run makes none, though its clock goes on.
 */
static void
waits_for_it(int who)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	long from[64];

	for (int i = 0; i < cpus; i++)
		from[i] = __atomic_load_n(&board->rounds[i], __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&board->over, __ATOMIC_SEQ_CST)) {
		bool longer = true;

		for (int i = 1; i < cpus; i++)
			longer &= __atomic_load_n(&board->rounds[i], __ATOMIC_SEQ_CST) - from[i] >=
				  ROUNDS;
		if (longer)
			_exit(1);
	}
}

/*
 * One that waits for a better one on CPU 0, to which it was bound, moves to a CPU where an ordinary
 * thread runs as soon as it may. No CPU is idle.
 */
static bool
goes_where_worse_run(void)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN), status;
	cpu_set_t all;
	pid_t pid[64 + 2];
	int wakes[2];
	bool good;

	if (cpus < 2)
		return true;
	memset(board, 0, sizeof(*board));
	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < cpus; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			stay_on(i);
			for (;; getppid())
				__atomic_fetch_add(&board->rounds[i], 1, __ATOMIC_SEQ_CST);
		}
	}
	good = pipe(wakes) == 0 && set(0, SCHED_FIFO, 99) == 0;
	stay_on(0);
	pid[cpus] = start(SCHED_FIFO, 19, wakes[0], says_so, 1);
	pid[cpus + 1] = start(SCHED_FIFO, 20, wakes[0], waits_for_it, 0);
	await_ready(2);
	stay_on(1);
	usleep(1000); /* both wait for the pipe */
	kill(pid[cpus], SIGSTOP);
	good = write(wakes[1], "", 1) == 1 && good;
	while (__atomic_load_n(&board->steps, __ATOMIC_SEQ_CST) == 0)
		usleep(1000);
	kill(pid[cpus], SIGCONT);
	good = write(wakes[1], "", 1) == 1 && good;
	sched_setaffinity(pid[cpus], sizeof(all), &all);
	for (int i = 0; i < 2; i++)
		good = waitpid(pid[cpus + i], &status, 0) == pid[cpus + i] && status == 0 && good;
	for (int i = 0; i < cpus; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	set(0, SCHED_OTHER, 0);
	sched_setaffinity(0, sizeof(all), &all);
	close(wakes[0]);
	close(wakes[1]);
	return good;
}

void
test_rt(void)
{
	board =
	    mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	result(policy_told(), "a policy and its priority are told, and inherited");
	result(in_child(nice_kept, NULL) == 0, "a real-time thread's niceness is remembered");
	result(in_child(executes, NULL) == 0, "exec keeps the policy");
	result(limits(), "priorities and slices of each policy");
	result(refused(), "sched_setscheduler and sched_setattr refuse what is not allowed");
	result(privileges(), "users set what RLIMIT_RTPRIO and RLIMIT_NICE allow");
	result(by_priority(), "threads that were woken run in the order of their priorities");
	result(fifo_keeps(), "SCHED_FIFO runs to its end, before others of its priority");
	result(fifo_yields(), "SCHED_FIFO lets others of its priority run when it yields");
	result(rr_alternates(), "SCHED_RR takes turns with others of its priority");
	result(better_preempts(),
	       "a better thread preempts at once, and the preempted one stays the first");
	result(all_go_on(), "real-time threads on all CPUs do not keep the others off for good");
	result(goes_where_worse_run(),
	       "a real-time thread that waits moves to where an ordinary one runs");
	munmap(board, sizeof(*board));
}
