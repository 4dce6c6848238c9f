/* signals.c - signal handlers, masks and stacks; and what a forged frame may not do. */
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static volatile sig_atomic_t seen, blocked_inside;
static volatile siginfo_t last;
static sigjmp_buf back;
static volatile char *volatile nowhere = (volatile char *)16, *volatile nothing;
static volatile unsigned depth_left = 1000000;

static void
note(int sig, siginfo_t *info, void *context)
{
	sigset_t now;

	seen++;
	last = *info;
	sigprocmask(SIG_BLOCK, NULL, &now);
	blocked_inside = sigismember(&now, sig) + 2 * sigismember(&now, SIGUSR2);
}

static void
handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags};

	sigaddset(&act.sa_mask, SIGUSR2);
	sigaction(sig, &act, NULL);
	seen = 0;
}

static bool
blocked(int sig)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, sig);
}

static bool
handler_runs(void)
{
	handle(SIGUSR1, note, 0);
	if (kill(getpid(), SIGUSR1) != 0 || seen != 1 || blocked_inside != 3 || blocked(SIGUSR1))
		return false;
	if (last.si_signo != SIGUSR1 || last.si_code != SI_USER || last.si_pid != getpid() ||
	    last.si_uid != getuid())
		return false;
	handle(SIGUSR1, note, SA_NODEFER | SA_RESETHAND);
	if (raise(SIGUSR1) != 0 || seen != 1 || blocked_inside != 2 || last.si_code != SI_TKILL)
		return false;
	struct sigaction old;
	return sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL;
}

static bool
blocked_signals_wait(void)
{
	sigset_t set, old, pending;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	handle(SIGUSR1, note, 0);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGUSR1);
	raise(SIGUSR1);
	if (seen != 0 || sigpending(&pending) != 0 || !sigismember(&pending, SIGUSR1))
		return false;
	if (sigsuspend(&old) != -1 || errno != EINTR || seen != 1 || !blocked(SIGUSR1))
		return false;
	raise(SIGUSR1);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return seen == 2;
}

static bool
signals_are_awaited(void)
{
	struct timespec ms = {0, 2000000};
	sigset_t set, old;
	siginfo_t info;
	bool good;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &old);
	good = sigtimedwait(&set, &info, &ms) == -1 && errno == EAGAIN;
	raise(SIGUSR1);
	good = good && sigtimedwait(&set, &info, NULL) == SIGUSR1 && info.si_pid == getpid();
	pid_t pid = fork();
	if (pid == 0)
		_exit(7);
	good = good && sigwaitinfo(&set, &info) == SIGCHLD && info.si_pid == pid &&
	       info.si_code == CLD_EXITED && info.si_status == 7;
	waitpid(pid, NULL, 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return good;
}

/*
 * Starts a child that sends SIGUSR1 to this process again and again; not whenever that yields, or
 * it would do nothing but handle signals where there is one CPU.
 */
static pid_t
pester(void)
{
	pid_t me = getpid(), pid = fork();

	while (pid == 0 && kill(me, SIGUSR1) == 0)
		usleep(100);
	if (pid == 0)
		_exit(0);
	return pid;
}

static void
stop_pestering(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) != pid)
		; /* its last signal may come only now */
}

static long taken, interrupted;

/* Takes SIGUSR2 until SIGUSR1 comes. */
static void *
take_signals(void *set)
{
	siginfo_t info;
	int sig;

	while ((sig = sigwaitinfo(set, &info)) != SIGUSR1) {
		taken += sig == SIGUSR2;
		interrupted += sig < 0;
	}
	return NULL;
}

/*
 * This thread takes signals that have woken another one, which waits on then. Both have one CPU,
 * and this one has it as long as it wants.
 */
static int
threads_wait_on(void *arg)
{
	struct sched_param first = {.sched_priority = 1};
	struct timespec none = {0, 0}, while_it_waits = {0, 1000000};
	long own = 0, rounds = 20;
	sigset_t all, one;
	cpu_set_t cpu;
	pthread_t t;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	all = one;
	sigaddset(&all, SIGUSR1);
	sigprocmask(SIG_BLOCK, &all, NULL);
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) != 0 ||
	    pthread_create(&t, NULL, take_signals, &all) != 0 ||
	    sched_setscheduler(0, SCHED_FIFO, &first) != 0)
		return 1;
	for (long i = 0; i < rounds; i++) {
		nanosleep(&while_it_waits, NULL);
		kill(getpid(), SIGUSR2);
		own += sigtimedwait(&one, NULL, &none) == SIGUSR2;
	}
	kill(getpid(), SIGUSR1);
	pthread_join(t, NULL);
	return own == rounds && taken == 0 && interrupted == 0 ? 0 : 2;
}

static bool
calls_are_interrupted(void)
{
	struct timespec long_time = {1000, 0}, rest = {0, 0};
	int ends[2];
	pid_t pid;
	bool good;
	char c;

	if (pipe(ends) != 0)
		return false;
	handle(SIGUSR1, note, 0);
	pid = pester();
	good = read(ends[0], &c, 1) == -1 && errno == EINTR;
	handle(SIGUSR1, note, SA_RESTART);
	good = good && nanosleep(&long_time, &rest) == -1 && errno == EINTR && rest.tv_sec > 900;
	stop_pestering(pid);
	/* A second child writes after many signals. */
	pid_t me = getpid();
	seen = 0;
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 50; i++) {
			kill(me, SIGUSR1);
			sched_yield();
		}
		_exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
	}
	good = good && read(ends[0], &c, 1) == 1 && c == 'x' && seen > 0;
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	return good;
}

static void
compute(int sig, siginfo_t *info, void *context)
{
	uint64_t words[FPU_WORDS] = {0};
	volatile double x = 2;

	seen++;
	fesetround(FE_DOWNWARD);
	x = sqrt(x) * seen;
	fpu_round_trip(words, words, 1);
}

static bool
handlers_have_own_registers(void)
{
	uint64_t in[FPU_WORDS], out[FPU_WORDS];
	bool good = true;
	pid_t pid;

	for (unsigned i = 0; i < FPU_WORDS; i++)
		in[i] = 0x1234567800000000ul + i;
	handle(SIGUSR1, compute, 0);
	fesetround(FE_UPWARD);
	pid = pester();
	for (int i = 0; i < 200 || seen < 20; i++) {
		fpu_round_trip(in, out, 10);
		good = good && memcmp(in, out, fpu_words * 8) == 0 && fegetround() == FE_UPWARD;
	}
	stop_pestering(pid);
	fesetround(FE_TONEAREST);
	return good;
}

static void
jump(int sig, siginfo_t *info, void *context)
{
	stack_t now;

	last = *info;
	seen = sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK) ? 2 : 1;
	siglongjmp(back, 1);
}

/* Uses up the stack. */
static int __attribute__((noinline)) descend(volatile char *above)
{
	volatile char here[4096];

	here[0] = above[0];
	return depth_left-- > 0 ? descend(here) + here[0] : 0;
}

static bool
faults_are_handled(void)
{
	static char alternate[65536];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile char seed[1] = {0};

	if (page == MAP_FAILED || sigaltstack(&stack, NULL) != 0)
		return false;
	handle(SIGSEGV, jump, 0);
	if (sigsetjmp(back, 1) == 0)
		*nowhere = 1;
	if (seen != 1 || last.si_addr != (void *)nowhere || last.si_code != SEGV_MAPERR ||
	    blocked(SIGSEGV))
		return false;
	seen = 0;
	if (sigsetjmp(back, 1) == 0)
		*nothing = 1;
	if (seen != 1 || last.si_addr != NULL || last.si_code != SEGV_MAPERR)
		return false;
	seen = 0;
	if (sigsetjmp(back, 1) == 0)
		*(volatile char *)page = 1;
	if (seen != 1 || last.si_addr != page || last.si_code != SEGV_ACCERR)
		return false;
	handle(SIGSEGV, jump, SA_ONSTACK);
	if (sigsetjmp(back, 1) == 0)
		descend(seed);
	if (seen != 2)
		return false;
	handle(SIGILL, jump, 0);
	if (sigsetjmp(back, 1) == 0)
		undefined_instruction();
	stack.ss_flags = SS_DISABLE;
	return seen == 1 && last.si_signo == SIGILL && last.si_addr != NULL &&
	       sigaltstack(&stack, NULL) == 0 && munmap(page, 4096) == 0;
}

static void
look_for_fault(int sig, siginfo_t *info, void *context)
{
	seen += frame_tells_fault(context, (uintptr_t)nowhere);
	if (sig == SIGSEGV)
		siglongjmp(back, 1);
}

/* The frame of a fault, and of any later signal, tells of the thread's last fault, and not of the
 * faults that the kernel has served meanwhile. */
static bool
frames_tell_faults(void)
{
	volatile char *page =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	handle(SIGSEGV, look_for_fault, 0);
	if (page == MAP_FAILED)
		return false;
	if (sigsetjmp(back, 1) == 0)
		*nowhere = 1;
	if (seen != 1)
		return false;
	handle(SIGUSR1, look_for_fault, 0);
	*page = 1;
	raise(SIGUSR1);
	return seen == 1 && munmap((void *)page, 4096) == 0;
}

static int
overflows_without_a_stack(void *arg)
{
	volatile char seed[1] = {0};

	handle(SIGSEGV, jump, 0);
	return descend(seed);
}

static int
faults_while_blocked(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	handle(SIGSEGV, jump, 0);
	sigprocmask(SIG_BLOCK, &all, NULL);
	*nowhere = 1;
	return 0;
}

static int
aborts(void *arg)
{
	abort();
}

static bool
children_are_told_of(void)
{
	bool good;
	int status;
	pid_t pid;

	handle(SIGCHLD, note, 0);
	pid = fork();
	while (pid == 0)
		pause();
	kill(pid, SIGSTOP);
	while (waitpid(pid, &status, WUNTRACED) != pid)
		;
	good = WIFSTOPPED(status) && seen == 1 && last.si_code == CLD_STOPPED &&
	       last.si_status == SIGSTOP;
	kill(pid, SIGCONT);
	while (waitpid(pid, &status, WCONTINUED) != pid)
		;
	good = good && WIFCONTINUED(status) && seen == 2 && last.si_code == CLD_CONTINUED;
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) != pid)
		;
	good = good && WIFSIGNALED(status) && seen == 3 && last.si_code == CLD_KILLED &&
	       last.si_status == SIGKILL && last.si_pid == pid;
	signal(SIGCHLD, SIG_DFL);
	return good;
}

static bool
pipes_break(void)
{
	int ends[2];

	if (pipe(ends) != 0)
		return false;
	handle(SIGPIPE, note, 0);
	close(ends[0]);
	bool good = write(ends[1], "x", 1) == -1 && errno == EPIPE && seen == 1;
	close(ends[1]);
	signal(SIGPIPE, SIG_DFL);
	return good;
}

int
signals_as_executed(void)
{
	struct sigaction usr1, usr2, chld;

	sigaction(SIGCHLD, NULL, &chld);
	sigaction(SIGUSR1, NULL, &usr1);
	sigaction(SIGUSR2, NULL, &usr2);
	return usr1.sa_handler == SIG_DFL && usr2.sa_handler == SIG_IGN && blocked(SIGHUP) &&
		       chld.sa_flags == 0
		   ? 0
		   : 1;
}

static int
executes_with_handlers(void *arg)
{
	struct sigaction none = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
	sigset_t set;

	handle(SIGUSR1, note, 0);
	signal(SIGUSR2, SIG_IGN);
	sigaction(SIGCHLD, &none, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return execute_self("signals-executed");
}

static int
inherits_handler(void *arg)
{
	raise(SIGUSR1);
	return seen == 1 ? 0 : 1;
}

static bool
spawns(void)
{
	char *argv[] = {"linux_test", "fpu-executed", NULL}, *none[] = {NULL};
	int status;
	pid_t pid;

	if (posix_spawn(&pid, "/bin/linux_test", NULL, NULL, argv, none) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		return false;
	return posix_spawn(&pid, "/bin/nothing", NULL, NULL, argv, none) == ENOENT;
}

static void
forge(int sig, siginfo_t *info, void *context)
{
	seen++;
	frame_take_rights(context);
}

static int
returns_with_rights(void *arg)
{
	handle(SIGUSR1, forge, 0);
	raise(SIGUSR1);
	return seen == 1 && !has_rights() ? 0 : 1;
}

static void
misdirect(int sig, siginfo_t *info, void *context)
{
	frame_set_pc(context, 0xffff800000000000ul);
}

static int
returns_into_kernel(void *arg)
{
	handle(SIGUSR1, misdirect, 0);
	raise(SIGUSR1);
	return 0;
}

/* A frame of random words: whatever happens, happens to this process alone. */
static int
returns_by_chance(void *arg)
{
	static uint64_t words[1024];
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 1024; i++) {
		uint64_t wild = (uint64_t)rand_r(&seed) << 33 ^ (uint64_t)rand_r(&seed) << 11;
		words[i] = seed % 3 == 0 ? wild : seed % 3 == 1 ? (uint64_t)(uintptr_t)words : 0;
	}
	return_by_frame(words);
	return 0;
}

static bool
chance_frames_kill(void)
{
	for (uintptr_t i = 1; i <= how_often(60); i++)
		if (in_child(returns_by_chance, (void *)i) < 128)
			return false;
	return true;
}

/* Processes of a group, which wait until the gate is closed, and are there until then. */
struct crowd {
	int gate[2], there[2];
	_Atomic(unsigned) *made, *left;
};

static void
join_crowd(const struct crowd *c)
{
	char byte;

	close(c->gate[1]);
	close(c->there[0]);
	++*c->made;
	if (read(c->gate[0], &byte, 1) == 0)
		++*c->left;
	_exit(0);
}

/* Makes processes without an end, until somebody kills the group. */
static void
lead_crowd(const struct crowd *c)
{
	setpgid(0, 0);
	for (int i = 0; i < 50; i++)
		if (fork() == 0)
			join_crowd(c);
	join_crowd(c);
}

/* Whoever has been made when a group is killed is killed, too: so many are left. */
static unsigned
kill_crowd(unsigned size)
{
	_Atomic(unsigned) *counts =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct crowd c = {.made = counts, .left = counts + 1};
	unsigned left;
	pid_t pid;
	char byte;

	if (pipe(c.gate) != 0 || pipe(c.there) != 0)
		return UINT32_MAX;
	pid = fork();
	if (pid == 0)
		lead_crowd(&c);
	close(c.gate[0]);
	close(c.there[1]);
	while (*c.made < size)
		sched_yield();
	kill(-pid, SIGKILL);
	close(c.gate[1]);
	waitpid(pid, NULL, 0);
	read(c.there[0], &byte, 1); /* returns when the last one has ended */
	close(c.there[0]);
	left = *c.left;
	munmap(counts, 4096);
	return left;
}

static bool
groups_are_killed(void)
{
	for (unsigned i = 0; i < how_often(20); i++)
		if (kill_crowd(1 + i % 5) != 0)
			return false;
	return true;
}

/* Three children end, of which the last one waits until the others have. */
static bool
none_is_waited_for(void)
{
	struct rusage before, after;
	int status, gate[2];
	bool good = pipe(gate) == 0 && getrusage(RUSAGE_CHILDREN, &before) == 0;
	pid_t last = 0;
	char byte;

	for (int i = 0; i < 3 && good; i++) {
		last = fork();
		if (last == 0) {
			close(gate[1]);
			_exit(i < 2 || read(gate[0], &byte, 1) == 0 ? 5 : 6);
		}
	}
	close(gate[1]);
	close(gate[0]);
	return good && FAILS(waitpid(-1, &status, 0), ECHILD) &&
	       FAILS(waitpid(last, &status, WNOHANG), ECHILD) &&
	       getrusage(RUSAGE_CHILDREN, &after) == 0 &&
	       before.ru_utime.tv_usec == after.ru_utime.tv_usec &&
	       before.ru_stime.tv_usec == after.ru_stime.tv_usec;
}

/* No zombies, but with SA_NOCLDWAIT the signal. */
static int
leaves_no_zombies(void *arg)
{
	pid_t pid;

	handle(SIGCHLD, note, SA_NOCLDWAIT | SA_RESTART);
	if (!none_is_waited_for() || seen == 0)
		return 1;
	signal(SIGCHLD, SIG_IGN);
	if (!none_is_waited_for())
		return 2;
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid == 0)
		_exit(7);
	return waitpid(pid, NULL, 0) == pid ? 0 : 3;
}

void
test_signals(void)
{
	result(handler_runs(),
	       "a handler runs, with the reason, and its mask is blocked meanwhile");
	result(blocked_signals_wait(), "blocked signals wait, once each; sigsuspend lets them in");
	result(signals_are_awaited(), "sigtimedwait takes signals");
	result(in_child(threads_wait_on, NULL) == 0,
	       "a thread whose signal another one takes waits on");
	result(calls_are_interrupted(), "calls end with EINTR, or begin again with SA_RESTART");
	result(handlers_have_own_registers(), "a handler's vector registers are its own");
	result(faults_are_handled(), "faults have handlers, with address and a stack of their own");
	result(frames_tell_faults(), "each handler's frame tells of the thread's last fault");
	signal(SIGSEGV, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	result(in_child(overflows_without_a_stack, NULL) == 128 + SIGSEGV,
	       "a handler for which the stack has no room: SIGSEGV kills");
	result(in_child(faults_while_blocked, NULL) == 128 + SIGSEGV,
	       "a fault whose signal is blocked kills");
	result(in_child(aborts, NULL) == 128 + SIGABRT, "abort");
	result(in_child(leaves_no_zombies, NULL) == 0,
	       "children of a process that ignores SIGCHLD leave no zombies");
	result(groups_are_killed(), "a killed group has no members left: none is made meanwhile");
	result(children_are_told_of(), "SIGCHLD tells what happened to which child");
	result(pipes_break(), "SIGPIPE has a handler");
	result(in_child(executes_with_handlers, NULL) == 0,
	       "exec keeps the mask and what is ignored, and drops handlers");
	handle(SIGUSR1, note, 0);
	result(in_child(inherits_handler, NULL) == 0, "fork copies handlers");
	signal(SIGUSR1, SIG_DFL);
	result(spawns(), "posix_spawn, which shares memory until exec");
	result(in_child(returns_with_rights, NULL) == 0, "a forged frame gives no rights");
	result(in_child(returns_into_kernel, NULL) == 128 + SIGSEGV,
	       "a forged frame leads nowhere into the kernel");
	result(chance_frames_kill(), "a frame of random words kills its process alone");
}

static void *
spins(void *arg)
{
	for (;;)
		continue;
	return NULL;
}

/* Ends with status 0 a moment after its parent has killed it, unless it is killed. */
static int
ends_when_killed(void *arg)
{
	const atomic_bool *killed = arg;
	pthread_t t;

	for (unsigned i = 0; i < 3; i++)
		if (pthread_create(&t, NULL, spins, NULL) != 0)
			return 1;
	kill(getppid(), SIGUSR1);
	while (!*killed)
		continue;
	for (volatile unsigned i = 0; i < 1000000; i++)
		continue;
	return 0;
}

int
killed_among_threads(void)
{
	atomic_bool *killed =
	    mmap(NULL, sizeof(*killed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned rounds = 8, n = 0;
	sigset_t set;
	int status, sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (unsigned i = 0; i < rounds; i++) {
		pid_t pid;

		*killed = false;
		pid = fork();
		if (pid == 0)
			_exit(ends_when_killed(killed));
		sigwait(&set, &sig);
		kill(pid, SIGKILL);
		*killed = true;
		n += waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
	}
	printf("killed %u of %u\n", n, rounds);
	return n != rounds;
}
