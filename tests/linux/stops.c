/*
 * stops.c - what stops and ends a process of several threads, or one that waits for its vfork();
 * the stack that a handler leaves; scripts with long paths. The same on Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

/* ---- a stop is told when all threads have stopped ---- */

static volatile unsigned long *rounds;

static void *
compute(void *arg)
{
	for (;;)
		++*rounds;
	return NULL;
}

static int
has_busy_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, compute, NULL) != 0)
		return 1;
	for (;;)
		pause();
}

static void
await_more(unsigned long than)
{
	while (*rounds == than)
		sched_yield();
}

/* A process that counts rounds, and has begun. */
static pid_t
begin_rounds(int (*program)(void))
{
	pid_t pid;

	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (pid == 0)
		_exit(program());
	await_more(0);
	return pid;
}

static bool
end_rounds(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && munmap((void *)rounds, 4096) == 0;
}

static bool
stops_are_complete(void)
{
	bool good = true;
	unsigned long seen;
	int status;
	pid_t pid = begin_rounds(has_busy_thread);

	for (unsigned i = 0; i < how_often(20); i++) {
		await_sleep(pid, 0);
		good &= kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid &&
			WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
		seen = *rounds;
		for (unsigned n = 0; n < 300; n++)
			sched_yield();
		good &= seen == *rounds;
		good &= kill(pid, SIGCONT) == 0;
		await_more(seen);
	}
	return end_rounds(pid) && good;
}

static int held[2], arrived[2];

/* A thread whose vfork() lasts until `held` is closed. */
static void *
wait_for_held(void *arg)
{
	char c = 0;

	if (vfork() == 0) {
		write(arrived[1], &c, 1);
		read(held[0], &c, 1);
		_exit(0);
	}
	for (;;)
		pause();
	return NULL;
}

static int
has_waiting_thread(void)
{
	pthread_t t;

	if (close(held[1]) != 0 || pthread_create(&t, NULL, wait_for_held, NULL) != 0)
		return 1;
	for (;;)
		pause();
}

/* One thread cannot stop yet. Until it does, there is no news but the news before. */
static bool
last_thread_stops(void)
{
	int status;
	pid_t pid;
	bool good;
	char c;

	if (pipe(held) != 0 || pipe(arrived) != 0)
		return false;
	pid = fork();
	if (pid == 0)
		_exit(has_waiting_thread());
	good = read(arrived[0], &c, 1) == 1 && await_sleep(pid, 0) && kill(pid, SIGSTOP) == 0 &&
	       await_state(pid, 0, 'T') && waitpid(pid, &status, WUNTRACED | WNOHANG) == 0 &&
	       kill(pid, SIGCONT) == 0 && await_sleep(pid, 0) && kill(pid, SIGSTOP) == 0 &&
	       await_state(pid, 0, 'T') && waitpid(pid, &status, WUNTRACED | WNOHANG) == 0 &&
	       waitpid(pid, &status, WCONTINUED | WNOHANG) == pid && WIFCONTINUED(status);
	close(held[1]);
	good = good && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) &&
	       WSTOPSIG(status) == SIGSTOP;
	kill(pid, SIGKILL);
	good &= waitpid(pid, &status, 0) == pid && close(held[0]) == 0;
	return (close(arrived[0]) == 0) & (close(arrived[1]) == 0) & good;
}

static void *
ends_at_once(void *arg)
{
	syscall(SYS_exit, 0);
	return NULL;
}

static int
makes_threads(void)
{
	for (;;) {
		pthread_t t;

		if (pthread_create(&t, NULL, ends_at_once, NULL) != 0)
			return 1;
		pthread_join(t, NULL);
		++*rounds;
	}
}

/* Also if threads begin and end meanwhile. */
static bool
stops_among_ends(void)
{
	bool good = true;
	unsigned long seen;
	int status;
	pid_t pid = begin_rounds(makes_threads);

	for (unsigned i = 0; i < how_often(30); i++) {
		good &= kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid &&
			WIFSTOPPED(status);
		seen = *rounds;
		good &= kill(pid, SIGCONT) == 0 && waitpid(pid, &status, WCONTINUED) == pid &&
			WIFCONTINUED(status);
		await_more(seen);
	}
	return end_rounds(pid) && good;
}

/* ---- what kills ends the wait for a child of vfork() ---- */

static int to_parent[2];

/* The child stays, but not for ever: a parent that waits for it is seen to do so. */
static void
stay_in_vfork(void)
{
	pid_t self = getpid();
	struct pollfd nothing = {.fd = -1};

	write(to_parent[1], &self, sizeof(self));
	poll(&nothing, 1, 20000);
	write(to_parent[1], &self, sizeof(self));
	_exit(0);
}

static void *
wait_in_vfork(void *arg)
{
	pid_t pid = vfork();

	if (pid == 0)
		stay_in_vfork();
	for (;;)
		pause();
	return NULL;
}

static void
say_handled(int sig)
{
	pid_t self = getpid();

	write(to_parent[1], &self, sizeof(self));
}

/*
 * threaded: it is another thread that waits; the first one does something else. Else, but not on
 * Linux, where the second signal waits, too: a lower signal comes before. Its handler never runs:
 * its stack is the child's.
 */
static bool
dies_in_vfork(bool threaded)
{
	struct sigaction act = {.sa_handler = say_handled};
	struct utsname u;
	pthread_t t;
	pid_t pid, child, late;
	int status;
	bool good, lower = !threaded && uname(&u) == 0 && strstr(u.release, "kestrel") != NULL;

	sigfillset(&act.sa_mask);
	if (pipe(to_parent) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		signal(SIGTERM, SIG_DFL);
		sigaction(SIGUSR1, &act, NULL);
		if (!threaded || pthread_create(&t, NULL, wait_in_vfork, NULL) != 0)
			wait_in_vfork(NULL);
		for (;;)
			pause();
	}
	good = read(to_parent[0], &child, sizeof(child)) == sizeof(child) &&
	       (!lower || kill(pid, SIGUSR1) == 0) && kill(pid, SIGTERM) == 0 &&
	       waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGTERM && fcntl(to_parent[0], F_SETFL, O_NONBLOCK) == 0 &&
	       FAILS(read(to_parent[0], &late, sizeof(late)), EAGAIN) && kill(child, SIGKILL) == 0;
	return (close(to_parent[0]) == 0) & (close(to_parent[1]) == 0) & good;
}

/* ---- signals are handled by a thread that can ---- */

static void *
only_pauses(void *arg)
{
	pid_t tid = gettid();

	write(to_parent[1], &tid, sizeof(tid));
	for (;;)
		pause();
	return NULL;
}

static int
has_pausing_thread(void)
{
	char c;
	pthread_t t;

	close(held[1]);
	signal(SIGUSR1, say_handled);
	signal(SIGUSR2, say_handled);
	if (pthread_create(&t, NULL, only_pauses, NULL) != 0)
		return 1;
	if (vfork() == 0) {
		read(held[0], &c, 1);
		_exit(0);
	}
	return 0;
}

/* The first thread waits in vfork(). On Linux it may be chosen for the first signal, but is not for
 * the second. */
static bool
others_handle(void)
{
	bool good = pipe(held) == 0 && pipe(to_parent) == 0;
	pid_t pid = fork(), tid = 0, done;
	int status;

	if (pid == 0)
		_exit(has_pausing_thread());
	close(held[0]);
	good = good && read(to_parent[0], &tid, sizeof(tid)) == sizeof(tid) &&
	       await_sleep(pid, tid) && await_state(pid, 0, is_kestrel() ? 'S' : 'D') &&
	       kill(pid, SIGUSR1) == 0 && kill(pid, SIGUSR2) == 0 &&
	       read(to_parent[0], &done, sizeof(done)) == sizeof(done) && done == pid &&
	       read(to_parent[0], &done, sizeof(done)) == sizeof(done) && done == pid;
	close(held[1]);
	good &= waitpid(pid, &status, 0) == pid && status == 0;
	return (close(to_parent[0]) == 0) & (close(to_parent[1]) == 0) & good;
}

/* ---- a handler's frame has the stack for handlers ---- */

static char handler_stack[65536];
static stack_t next_stack;

static void
leave_stack(int sig, siginfo_t *info, void *context)
{
	((ucontext_t *)context)->uc_stack = next_stack;
}

static bool
stack_is(const void *at, size_t size, int flags)
{
	stack_t now;

	return sigaltstack(NULL, &now) == 0 && now.ss_sp == at && now.ss_size == size &&
	       now.ss_flags == flags;
}

static bool
frames_give_stacks(void)
{
	struct sigaction act = {.sa_sigaction = leave_stack, .sa_flags = SA_SIGINFO}, old;
	const size_t size = sizeof(handler_stack);
	bool good = sigaction(SIGUSR1, &act, &old) == 0;

	next_stack = (stack_t){.ss_sp = handler_stack, .ss_size = size};
	good = good && raise(SIGUSR1) == 0 && stack_is(handler_stack, size, 0);
	next_stack.ss_size = 1; /* as sigaltstack() says: too small; nobody is told */
	good = good && raise(SIGUSR1) == 0 && stack_is(handler_stack, size, 0);
	next_stack = (stack_t){.ss_flags = SS_DISABLE, .ss_sp = handler_stack, .ss_size = size};
	good = good && raise(SIGUSR1) == 0 && stack_is(NULL, 0, SS_DISABLE);
	return sigaction(SIGUSR1, &old, NULL) == 0 && good;
}

/* ---- the line #! of a script ---- */

/* Executes "#!", a path of so many bytes, and more text. An exit status, or 100 + the error. */
static int
run_with_path(int bytes, const char *more)
{
	static const char name[] = "/tmp/linux_test_script", program[] = "bin/true";
	int status, slashes = bytes - (int)strlen(program);
	FILE *f = fopen(name, "w");
	pid_t pid;

	if (f == NULL)
		return -1;
	fprintf(f, "#!");
	for (int i = 0; i < slashes; i++)
		fputc('/', f);
	fprintf(f, "%s%s", program, more);
	if (fclose(f) != 0 || chmod(name, 0700) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		execl(name, name, NULL);
		_exit(100 + errno);
	}
	status = waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return unlink(name) == 0 ? status : -1;
}

/* Linux reads 256 bytes. A path is executed if they contain it, and what follows it. */
static bool
paths_are_whole(void)
{
	return run_with_path(9, "\n") == 0 && run_with_path(9, "") == 0 &&
	       run_with_path(200, "\n") == 0 && run_with_path(253, "\n") == 0 &&
	       run_with_path(253, " and an argument\n") == 0 &&
	       run_with_path(254, "\n") == 100 + ENOEXEC &&
	       run_with_path(254, "") == 100 + ENOEXEC && run_with_path(400, "\n") == 100 + ENOEXEC;
}

void
test_stops(void)
{
	result(stops_are_complete(), "a stop is told when no thread runs any more");
	result(last_thread_stops(), "a stop is told when the last thread stops, no sooner");
	result(stops_among_ends(), "a stop is told also if threads begin and end meanwhile");
	result(dies_in_vfork(false), "a signal that kills ends the wait of vfork()");
	result(dies_in_vfork(true), "so it does if another thread takes it");
	result(others_handle(), "while one thread waits in vfork(), another one handles signals");
	result(frames_give_stacks(), "a handler that returns leaves the stack that its frame has");
	result(paths_are_whole(), "the path in a script's first line is executed whole, or not");
}

/* ---- for tests/system/test_linux.py ---- */

/* A probe sets it when a thread is in its call, and holds it there. */
static volatile int in_call;

static void *
exits_with_all(void *arg)
{
	syscall(SYS_exit_group, 3, &in_call);
	return NULL;
}

static void *
exits_alone(void *arg)
{
	pid_t tid = gettid();
	char c;

	write(arrived[1], &tid, sizeof(tid));
	read(held[0], &c, 1);
	syscall(SYS_exit, 5, &in_call);
	return NULL;
}

/* A thread is about to end; meanwhile the first one executes another program, or ends, too. */
static _Noreturn void
does_at_once(bool executes)
{
	pthread_t t;

	in_call = 0;
	if (pthread_create(&t, NULL, executes ? exits_with_all : exits_alone, NULL) != 0)
		_exit(9);
	while (!in_call)
		continue;
	if (executes)
		execl(linux_test_path(), linux_test_path(), "nothing", NULL);
	_exit(7);
}

static volatile unsigned long rounds_done;
static char other_action; /* its address is one */

/* Values that are no addresses: the signal is not sent. */
static void *
exchange_action(void *new)
{
	struct sigaction act = {.sa_handler = (void (*)(int)) new}, old;

	sigaction(SIGUSR1, &act, &old);
	return (void *)old.sa_handler;
}

static void *
exchanges_once(void *arg)
{
	while (rounds_done == 0)
		continue;
	return exchange_action(arg);
}

/* Another thread exchanges an action meanwhile. Does each get what was there before its own? */
static bool
actions_are_exchanged(void)
{
	pthread_t t;
	void *was = NULL, *last = NULL, *last_but_one = NULL;

	if (pthread_create(&t, NULL, exchanges_once, &other_action) != 0)
		return false;
	for (; was != &other_action; rounds_done++) {
		last_but_one = last;
		last = (void *)(rounds_done + 16);
		was = exchange_action(last);
	}
	return pthread_join(t, &was) == 0 && was == last_but_one;
}

int
stops_at_once(void)
{
	unsigned long message = 0;
	int status = -1;
	pid_t tid = 0, pid = fork();

	if (pid == 0)
		does_at_once(true);
	printf("exec: %d, ", waitpid(pid, &status, 0) == pid ? status : -1);
	fflush(stdout);
	if (pipe(held) != 0 || pipe(arrived) != 0)
		return 1;
	pid = fork();
	if (pid == 0)
		does_at_once(false);
	if (read(arrived[0], &tid, sizeof(tid)) != sizeof(tid) ||
	    ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT) != 0 || write(held[1], "", 1) != 1 ||
	    waitpid(tid, &status, __WALL) != tid ||
	    ptrace(PTRACE_GETEVENTMSG, tid, 0, &message) != 0)
		return 2;
	kill(pid, SIGKILL);
	printf("message: %#lx, actions: %d\n", message, actions_are_exchanged());
	return 0;
}

/* Asks for threads, processes and groups by their numbers, beside n processes. */
int
stops_found(unsigned n)
{
	struct f_owner_ex owner = {F_OWNER_TID, gettid()};
	cpu_set_t cpus;
	int ends[2];
	pid_t pid = 0;
	bool good;

	for (unsigned i = 0; i < n; i++) {
		pid = fork();
		if (pid == 0)
			return setsid() < 0 || pause();
		if (pid < 0)
			return 1;
	}
	while (getpgid(pid) != pid)
		sched_yield();
	good = tgkill(getpid(), gettid(), 0) == 0 && tgkill(getpid(), pid, 0) == -1 &&
	       syscall(SYS_tkill, pid, 0) == 0 && kill(-pid, 0) == 0 && kill(0, 0) == 0 &&
	       sched_getaffinity(pid, sizeof(cpus), &cpus) == 0 && kill(0x3ffffff, 0) == -1 &&
	       pipe(ends) == 0 && fcntl(ends[0], F_SETOWN_EX, &owner) == 0 &&
	       fcntl(ends[0], F_SETFL, O_ASYNC) == 0 && signal(SIGIO, SIG_IGN) != SIG_ERR &&
	       write(ends[1], "", 1) == 1 && fcntl(ends[0], F_SETOWN, -pid) == 0 &&
	       write(ends[1], "", 1) == 1 && fcntl(ends[0], F_SETOWN, getpid()) == 0 &&
	       write(ends[1], "", 1) == 1;
	printf("found: %d\n", good);
	return !good;
}

/* Makes n children, each of its own group, which stay when it ends. */
int
stops_orphans(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0 || setpgid(pid, pid) != 0)
			return 1;
		if (pid == 0)
			for (;;)
				pause();
	}
	return 0;
}

static int answers[2];

static void
answer(int sig)
{
	write(answers[1], "", 1);
}

/* A program that computes on another CPU gets n signals; each is awaited. */
int
stops_answers(unsigned n)
{
	cpu_set_t first, second;
	pid_t pid;
	char c;

	CPU_ZERO(&first);
	CPU_ZERO(&second);
	CPU_SET(0, &first);
	CPU_SET(1, &second);
	if (pipe(answers) != 0 || sched_setaffinity(0, sizeof(first), &first) != 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		signal(SIGUSR1, answer);
		if (sched_setaffinity(0, sizeof(second), &second) != 0)
			_exit(1);
		answer(0);
		for (volatile unsigned long i = 0;; i++)
			;
	}
	for (unsigned i = 0; i <= n; i++)
		if (read(answers[0], &c, 1) != 1 || (i < n && kill(pid, SIGUSR1) != 0))
			return 2;
	return kill(pid, SIGKILL);
}

#define PART (8ul << 20)

static void
nothing(int sig)
{
}

static void
touch_all(char *at, size_t size)
{
	for (size_t i = 0; i < size; i += 4096)
		at[i] = 1;
}

/* Takes memory until half a PART is left, and stays. */
static void
take_memory(void)
{
	struct sysinfo s;

	while (sysinfo(&s) == 0 && s.freeram * s.mem_unit > PART / 2)
		touch_all(mmap(NULL, PART / 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0),
			  PART / 64);
	write(answers[1], "", 1);
	for (;;)
		pause();
}

/* Reads into memory that is not there, while signals are pending. The largest process is killed. */
int
stops_shortage(void)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	char *from = mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/tmp/part", O_RDWR | O_CREAT, 0600), status;
	ssize_t n;
	pid_t pid;
	char c;

	if (pipe(answers) != 0 || write(fd, from, PART) != (ssize_t)PART || munmap(from, PART) != 0)
		return 1;
	pid = fork();
	if (pid == 0)
		take_memory();
	signal(SIGALRM, nothing);
	if (read(answers[0], &c, 1) != 1 || setitimer(ITIMER_REAL, &often, NULL) != 0)
		return 2;
	n = pread(fd, to, PART, 0);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("read %zd of %lu\n", n, PART);
	kill(pid, SIGTERM);
	return waitpid(pid, &status, 0) != pid || status != SIGKILL;
}
