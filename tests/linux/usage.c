/*
 * usage.c - what a process has used, and may use: getrusage(), limits, the time that select()
 * leaves, timer slack. The same on Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PAGE 4096ul
#define MIB  (1ul << 20)

/* ---- select ---- */

/* pselect6(), as the kernel has it: the C library's copies the time. */
static long
raw_pselect(int nfds, fd_set *in, struct timespec *left)
{
	return syscall(SYS_pselect6, nfds, in, NULL, NULL, left, NULL);
}

static bool
select_leaves_time(void)
{
	struct timespec whole = {100, 0}, part = {0, 2 * MS}, never = {0, 0};
	struct timeval tv = {100, 0};
	fd_set in;
	int ends[2];
	bool good;

	if (pipe(ends) != 0)
		return false;
	FD_ZERO(&in);
	FD_SET(ends[0], &in);
	good = raw_pselect(ends[0] + 1, &in, &part) == 0 && part.tv_sec == 0 && part.tv_nsec == 0;
	FD_SET(ends[0], &in);
	good = good && raw_pselect(ends[0] + 1, &in, &never) == 0 && never.tv_nsec == 0;
	good = good && write(ends[1], "x", 1) == 1;
	FD_SET(ends[0], &in);
	good = good && raw_pselect(ends[0] + 1, &in, &whole) == 1 && whole.tv_sec < 100 &&
	       whole.tv_sec > 50;
	FD_SET(ends[0], &in);
	good = good && select(ends[0] + 1, &in, NULL, NULL, &tv) == 1 && tv.tv_sec < 100 &&
	       tv.tv_sec > 50 && tv.tv_usec < 1000000;
	close(ends[0]);
	close(ends[1]);
	return good;
}

static bool
failed_select_leaves_time(void)
{
	struct timespec left = {100, 0}, polled = {100, 0};
	const struct itimerval soon = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
	bool good;

	on_alarm(0);
	setitimer(ITIMER_REAL, &soon, NULL);
	good = FAILS(raw_pselect(0, NULL, &left), EINTR) && left.tv_sec == 99 &&
	       FAILS(syscall(SYS_ppoll, NULL, 0, &polled, NULL, 8), EINTR) && polled.tv_sec == 99;
	setitimer(ITIMER_REAL, &none, NULL);
	return good;
}

static bool
time_that_is_only_read_stays(void)
{
	struct timespec *t =
	    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool good;

	t->tv_nsec = MS;
	good =
	    mprotect(t, PAGE, PROT_READ) == 0 && raw_pselect(0, NULL, t) == 0 && t->tv_nsec == MS;
	munmap(t, PAGE);
	return good;
}

/* ---- getrusage ---- */

/* Touches new memory. */
static void
touch(size_t bytes)
{
	volatile char *p =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)p, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += PAGE)
		p[i] = 1;
	munmap((void *)p, bytes);
}

static bool
faults_are_counted(void)
{
	struct rusage before, after, thread;

	getrusage(RUSAGE_SELF, &before);
	touch(MIB);
	getrusage(RUSAGE_SELF, &after);
	getrusage(RUSAGE_THREAD, &thread);
	return after.ru_minflt - before.ru_minflt >= 256 &&
	       after.ru_minflt - before.ru_minflt < 512 && thread.ru_minflt <= after.ru_minflt &&
	       thread.ru_minflt >= 256 && thread.ru_maxrss >= after.ru_maxrss;
}

static int
use_memory(void *bytes)
{
	touch((size_t)bytes);
	return 0;
}

static bool
largest_size_is_kept(void)
{
	struct rusage before, after, child;

	getrusage(RUSAGE_SELF, &before);
	touch((size_t)before.ru_maxrss * 1024 + 4 * MIB);
	getrusage(RUSAGE_SELF, &after);
	if (after.ru_maxrss < before.ru_maxrss + 4096 || after.ru_maxrss > before.ru_maxrss + 65536)
		return false;
	if (in_child(use_memory, (void *)((size_t)after.ru_maxrss * 1024 + 4 * MIB)) != 0)
		return false;
	getrusage(RUSAGE_CHILDREN, &child);
	getrusage(RUSAGE_SELF, &before);
	return child.ru_maxrss >= after.ru_maxrss + 4096 && before.ru_maxrss < child.ru_maxrss &&
	       child.ru_minflt > 1024;
}

static bool
wait4_tells_of_the_child(void)
{
	struct rusage r;
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(use_memory((void *)(8 * MIB)));
	return wait4(pid, &status, 0, &r) == pid && status == 0 && r.ru_maxrss >= 8 * 1024 &&
	       r.ru_minflt >= 2048 && r.ru_minflt < 4096;
}

/* Both when the tracee stops, and when it ends. */
static bool
wait4_tells_of_the_tracee(void)
{
	struct rusage stopped, ended;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < 30 * MS)
			;
		raise(SIGSTOP);
		_exit(use_memory((void *)(8 * MIB)));
	}
	return wait4(pid, &status, 0, &stopped) == pid && WIFSTOPPED(status) &&
	       stopped.ru_utime.tv_usec + stopped.ru_stime.tv_usec >= 20000 &&
	       ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 && wait4(pid, &status, 0, &ended) == pid &&
	       status == 0 && ended.ru_minflt - stopped.ru_minflt >= 2048;
}

static bool
waits_are_counted(void)
{
	struct rusage before, after;
	const struct timespec t = {0, 2 * MS}; /* a shorter time may be over before it waits */

	getrusage(RUSAGE_SELF, &before);
	for (unsigned i = 0; i < 10; i++)
		nanosleep(&t, NULL);
	getrusage(RUSAGE_SELF, &after);
	return after.ru_nvcsw - before.ru_nvcsw >= 10 && after.ru_nvcsw - before.ru_nvcsw < 30;
}

/* Runs on one CPU beside a child that never waits. */
static int
compete(void *arg)
{
	struct rusage r;
	cpu_set_t one;
	pid_t pid;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	pid = fork();
	if (pid == 0)
		for (;;)
			;
	for (unsigned i = 0; i == 0 || (r.ru_nivcsw < 3 && i < 5000000); i++)
		getrusage(RUSAGE_SELF, &r);
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) != pid || r.ru_nivcsw < 3;
}

long
status_number(pid_t pid, const char *word)
{
	char path[32], text[4096] = "";
	const char *at;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) < 0)
		return -1;
	close(fd);
	at = strstr(text, word);
	return at != NULL ? atol(at + strlen(word)) : -1;
}

static bool
proc_tells_them(void)
{
	char text[1024] = "";
	unsigned long minflt = 0, cminflt = 0, majflt = 1;
	int fd = open("/proc/self/stat", O_RDONLY);
	struct rusage r, children;

	getrusage(RUSAGE_SELF, &r);
	getrusage(RUSAGE_CHILDREN, &children);
	if (read(fd, text, sizeof(text) - 1) < 0)
		return false;
	close(fd);
	return sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u %lu %lu %lu", &minflt,
		      &cminflt, &majflt) == 3 &&
	       minflt >= (unsigned long)r.ru_minflt && minflt < (unsigned long)r.ru_minflt + 100 &&
	       cminflt == (unsigned long)children.ru_minflt &&
	       majflt == (unsigned long)r.ru_majflt &&
	       status_number(getpid(), "VmHWM:") >= status_number(getpid(), "VmRSS:") &&
	       status_number(getpid(), "VmHWM:") > 4096 &&
	       status_number(getpid(), "\nvoluntary_ctxt_switches:") >= r.ru_nvcsw &&
	       status_number(getpid(), "\nnonvoluntary_ctxt_switches:") >= r.ru_nivcsw;
}

/* ---- limits ---- */

static int
limits_are_kept(void *arg)
{
	static const int resources[] = {RLIMIT_STACK, RLIMIT_DATA, RLIMIT_CORE, RLIMIT_RSS};
	struct rlimit old, new;

	for (unsigned i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		if (getrlimit(resources[i], &old) != 0)
			return 1;
		new = (struct rlimit){64 * MIB, old.rlim_max};
		if (setrlimit(resources[i], &new) != 0 || getrlimit(resources[i], &old) != 0 ||
		    old.rlim_cur != 64 * MIB)
			return 2;
	}
	return execute_self("usage-executed") != 0 ? 3 : 0;
}

/* Uses so much stack. */
static unsigned
descend(unsigned depth)
{
	volatile char room[4000];

	room[depth % sizeof(room)] = (char)depth;
	return depth == 0 ? 0 : descend(depth - 1) + (unsigned)room[depth % sizeof(room)] % 2;
}

/* With a stack of 64 MiB: 40 of it, as the limit says. */
int
usage_as_executed(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_STACK, &r) != 0 || r.rlim_cur != 64 * MIB ||
	       getrlimit(RLIMIT_DATA, &r) != 0 || r.rlim_cur != 64 * MIB || descend(10000) > 10000;
}

static int
any_stack_leaves_room(void *arg)
{
	const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}, some = {512 * MIB, 512 * MIB};

	if (setrlimit(RLIMIT_STACK, &all) != 0 || setrlimit(RLIMIT_AS, &some) != 0)
		return 1;
	return execute_self("usage-room") != 0 ? 2 : 0;
}

/* Linux kills the process: its old program is gone. */
static int
program_has_no_room(void *arg)
{
	const struct rlimit little = {64 << 10, 64 << 10};

	if (setrlimit(RLIMIT_AS, &little) != 0)
		return 1;
	execl(linux_test_path(), linux_test_path(), "usage-room", NULL);
	return errno == ENOMEM ? 2 : 3;
}

/* A stack counts as far as it is needed. */
static int
small_program_has_room(void *arg)
{
	const struct rlimit little = {8 * MIB, 8 * MIB};

	if (setrlimit(RLIMIT_AS, &little) != 0)
		return 1;
	execl("/bin/true", "true", NULL);
	return 2;
}

/* As usage_as_executed(), with 512 MiB of memory. */
int
room_as_executed(void)
{
	return mmap(NULL, 64 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ||
	       descend(10000) > 10000;
}

static int
heap_has_a_limit(void *arg)
{
	char *end = sbrk(0);
	struct rlimit r;

	getrlimit(RLIMIT_DATA, &r);
	r.rlim_cur = MIB;
	if (setrlimit(RLIMIT_DATA, &r) != 0 || sbrk((intptr_t)(2 * MIB)) != (void *)-1 ||
	    errno != ENOMEM || sbrk(0) != end)
		return 1;
	r.rlim_cur = 64 * MIB;
	return setrlimit(RLIMIT_DATA, &r) != 0 || sbrk((intptr_t)(2 * MIB)) != end;
}

static bool
stack_limit_can_be_raised(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_STACK, &r) == 0 && r.rlim_cur == 8 * MIB &&
	       r.rlim_max == RLIM_INFINITY;
}

/* ---- timers of CPU time ---- */

static volatile sig_atomic_t timer_signals;

static void
count_signal(int sig)
{
	timer_signals++;
}

/* Before a timer is set: its first signal may come at once. */
static void
catch_signal(int sig)
{
	struct sigaction act = {.sa_handler = count_signal};

	timer_signals = 0;
	sigaction(sig, &act, NULL);
}

/* Computes until the handler has run n times. */
static bool
compute_until(int n)
{
	for (unsigned i = 0; i < 2000000000 && timer_signals < n; i++)
		;
	return timer_signals >= n;
}

static int
timer_runs(void *arg)
{
	const int which = *(const int *)arg;
	const struct itimerval often = {{0, 1000}, {0, 1000}}, once = {{0, 0}, {1000, 0}};
	const struct timespec nap = {0, 100 * MS};
	struct itimerval left;
	int64_t before, counted;
	pid_t pid;
	int status;

	catch_signal(which == ITIMER_PROF ? SIGPROF : SIGVTALRM);
	if (setitimer(which, &often, NULL) != 0 || !compute_until(3))
		return 1;
	before = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (setitimer(which, &once, &left) != 0 || left.it_interval.tv_usec != 1000)
		return 2;
	/* Who sleeps has no CPU: what is counted is at most the process's time, but for ticks. */
	if (getitimer(which, &left) != 0 || nanosleep(&nap, NULL) != 0 ||
	    setitimer(which, &(struct itimerval){0}, &left) != 0)
		return 3;
	counted = (1000000000l - left.it_value.tv_sec * 1000000 - left.it_value.tv_usec) * 1000;
	if (counted > now_ns(CLOCK_PROCESS_CPUTIME_ID) - before + 50 * MS)
		return 4;
	setitimer(which, &once, NULL);
	pid = fork();
	if (pid == 0)
		_exit(getitimer(which, &left) != 0 || left.it_value.tv_sec != 0);
	return waitpid(pid, &status, 0) != pid || status != 0 ||
	       !FAILS(setitimer(3, &once, NULL), EINVAL);
}

static int
time_is_limited(void *arg)
{
	const struct rlimit none = {0, 1000};
	struct rlimit now;

	catch_signal(SIGXCPU);
	if (setrlimit(RLIMIT_CPU, &none) != 0 || !compute_until(1))
		return 1;
	/* By one second; by more where the machine stood still meanwhile. */
	return getrlimit(RLIMIT_CPU, &now) != 0 || now.rlim_cur < 1 || now.rlim_max != 1000;
}

/* ---- memory that grows ---- */

static sigjmp_buf *volatile back;

static void
go_back(int sig)
{
	siglongjmp(*back, sig);
}

/* Does a write there fault? */
static bool
write_faults(volatile char *at)
{
	struct sigaction act = {.sa_handler = go_back}, old;
	sigjmp_buf buf;
	bool faulted = true;

	back = &buf;
	sigaction(SIGSEGV, &act, &old);
	if (sigsetjmp(buf, 1) == 0) {
		*at = 1;
		faulted = false;
	}
	sigaction(SIGSEGV, &old, NULL);
	return faulted;
}

/* 4 MiB of room, of which the last page is one that grows down. */
static bool
memory_grows_down(void)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS;
	char *room = mmap(NULL, 4 * MIB, PROT_NONE, how, -1, 0), *top = room + 4 * MIB;
	volatile char *area;
	bool good;

	if (room == MAP_FAILED || munmap(room, 4 * MIB) != 0)
		return false;
	area =
	    mmap(top - PAGE, PAGE, PROT_READ | PROT_WRITE, how | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
	if (area == MAP_FAILED)
		return false;
	good = !write_faults(top - PAGE) && !write_faults(top - 2 * PAGE) &&
	       !write_faults(top - 64 * PAGE) && top[-(long)(63 * PAGE)] == 0 &&
	       munmap(top - 64 * PAGE, 64 * PAGE) == 0 && write_faults(top - 64 * PAGE);
	/* Another map, but for a gap of a MiB below, ends it. */
	good = good && mmap(room, PAGE, PROT_READ, how | MAP_FIXED, -1, 0) == room &&
	       mmap(top - PAGE, PAGE, PROT_READ | PROT_WRITE, how | MAP_FIXED | MAP_GROWSDOWN, -1,
		    0) == top - PAGE &&
	       !write_faults(room + 2 * MIB) && write_faults(room + MIB / 2) &&
	       munmap(room, 4 * MIB) == 0;
	return good &&
	       mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) ==
		   MAP_FAILED &&
	       errno == EINVAL;
}

/* With 64 pages more. */
static int
growth_is_limited(void *arg)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS;
	char *room = mmap(NULL, 4 * MIB, PROT_NONE, how, -1, 0), *top = room + 4 * MIB;
	struct rlimit r;

	if (munmap(room, 4 * MIB) != 0 || getrlimit(RLIMIT_AS, &r) != 0)
		return 1;
	r.rlim_cur = (size_t)status_number(getpid(), "VmSize:") * 1024 + 64 * PAGE;
	if (setrlimit(RLIMIT_AS, &r) != 0 ||
	    mmap(top - PAGE, PAGE, PROT_READ | PROT_WRITE, how | MAP_FIXED | MAP_GROWSDOWN, -1,
		 0) != top - PAGE)
		return 2;
	return write_faults(top - 32 * PAGE) || !write_faults(top - 128 * PAGE) ? 3 : 0;
}

/* ---- the rest ---- */

static int
slack_has_a_default(void *arg)
{
	pid_t pid;
	int status;

	if (prctl(PR_SET_TIMERSLACK, 70000) != 0)
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(prctl(PR_GET_TIMERSLACK) != 70000 || prctl(PR_SET_TIMERSLACK, 10) != 0 ||
		      prctl(PR_GET_TIMERSLACK) != 10 || prctl(PR_SET_TIMERSLACK, 0) != 0 ||
		      prctl(PR_GET_TIMERSLACK) != 70000);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 2;
	return prctl(PR_SET_TIMERSLACK, 0) != 0 || prctl(PR_GET_TIMERSLACK) != 50000 ? 3 : 0;
}

static void *
sleep_for_ever(void *arg)
{
	return (void *)(intptr_t)pause();
}

int
usage_beside(unsigned n)
{
	pthread_t t;

	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&t, NULL, sleep_for_ever, NULL) != 0)
			return 1;
	if (setrlimit(RLIMIT_CPU, &(struct rlimit){1000000, 1000000}) != 0 ||
	    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = 1000000}, NULL) != 0)
		return 2;
	for (clock_t end = clock() + CLOCKS_PER_SEC; clock() < end;)
		for (volatile int i = 0; i < 1000000; i++)
			;
	return 0;
}

void
test_usage(void)
{
	int child;

	result(select_leaves_time(), "select and pselect6 store the time that is left");
	result(failed_select_leaves_time(), "so do pselect6 and ppoll that a signal ends");
	result(time_that_is_only_read_stays(), "a time that cannot be stored is no error");
	result(faults_are_counted(), "getrusage counts page faults");
	result(largest_size_is_kept(),
	       "it knows the largest size of a process, and of its children");
	result(wait4_tells_of_the_child(), "wait4 tells both of the child");
	result(wait4_tells_of_the_tracee(), "and of a tracee, when it stops and when it ends");
	result(waits_are_counted(), "it counts waits");
	result(in_child(compete, NULL) == 0, "and switches of which another thread is the reason");
	result(proc_tells_them(), "stat and status in /proc tell the same");
	result(stack_limit_can_be_raised(), "RLIMIT_STACK is 8 MiB, and may be more");
	result(in_child(limits_are_kept, NULL) == 0,
	       "limits are kept by fork and exec; the stack is as large");
	result(in_child(any_stack_leaves_room, NULL) == 0,
	       "a stack without a limit leaves room for a program with RLIMIT_AS");
	child = in_child(program_has_no_room, NULL);
	result(child == 2 || child > 128, "a program that is larger than RLIMIT_AS does not run");
	result(in_child(small_program_has_room, NULL) == 0, "a small one does, with its stack");
	result(in_child(heap_has_a_limit, NULL) == 0, "RLIMIT_DATA limits the heap");
	result(in_child(timer_runs, &(int){ITIMER_VIRTUAL}) == 0,
	       "ITIMER_VIRTUAL counts the time in the program");
	result(in_child(timer_runs, &(int){ITIMER_PROF}) == 0, "ITIMER_PROF the time on a CPU");
	result(in_child(time_is_limited, NULL) == 0,
	       "RLIMIT_CPU sends SIGXCPU, and is raised for the next one");
	result(memory_grows_down(),
	       "MAP_GROWSDOWN: an area grows down to what is used, but not near others");
	result(in_child(growth_is_limited, NULL) == 0, "nor beyond RLIMIT_AS");
	result(in_child(slack_has_a_default, NULL) == 0,
	       "PR_SET_TIMERSLACK of 0 sets what the parent had");
}
