/* ptrace.c - debuggers: stops, registers, memory, events and steps. The same on Linux. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#ifdef __x86_64__
typedef struct user_regs_struct registers;
#define PC(r)     ((r).rip)
#define SP(r)     ((r).rsp)
#define RESULT(r) ((r).rax)
#define BREAK     0xcc
#define BREAK_LEN 1
#else
typedef struct user_regs_struct registers;
#define PC(r)     ((r).pc)
#define SP(r)     ((r).sp)
#define RESULT(r) ((r).regs[0])
#define BREAK     0xd4200000
#define BREAK_LEN 4
#endif

static volatile long target = 7;

static bool
is_stop(int status, int what)
{
	return WIFSTOPPED(status) && status >> 8 == what;
}

static long
get_registers(pid_t pid, registers *r)
{
	struct iovec v = {r, sizeof(*r)};

	return ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v);
}

static long
set_registers(pid_t pid, registers *r)
{
	struct iovec v = {r, sizeof(*r)};

	return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v);
}

/* The system call at whose entry it stands becomes another one. */
static long
set_call(pid_t pid, int nr)
{
#ifdef __x86_64__
	registers r;

	if (get_registers(pid, &r) != 0)
		return -1;
	r.orig_rax = (unsigned long)nr;
	return set_registers(pid, &r);
#else
	struct iovec v = {&nr, sizeof(nr)};

	return ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &v);
#endif
}

/* The next status of pid, which is not -1 or 0. */
static int
next(pid_t pid)
{
	int status;

	return waitpid(pid, &status, __WALL) == pid ? status : -1;
}

/* A child that is traced and has stopped itself; then it runs fn. */
static __attribute__((noinline, noclone)) pid_t
start(int (*fn)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
			_exit(99);
		raise(SIGSTOP);
		_exit(fn());
	}
	return is_stop(next(pid), SIGSTOP) ? pid : -1;
}

int
ptraced_target(void)
{
	return (int)target;
}

static bool
memory_changes(void)
{
	pid_t pid = start(ptraced_target);
	long word;
	char path[64];
	int fd, value = 11;
	struct iovec own = {&word, sizeof(word)}, other = {(void *)&target, sizeof(target)};
	bool good = pid > 0 && (errno = 0, ptrace(PTRACE_PEEKDATA, pid, &target, 0)) == 7 &&
		    errno == 0 && ptrace(PTRACE_POKEDATA, pid, &target, 9) == 0 &&
		    FAILS(ptrace(PTRACE_PEEKDATA, pid, 16, 0), EIO);

	good = good && process_vm_readv(pid, &own, 1, &other, 1, 0) == sizeof(word) && word == 9;
	word = 10;
	good = good && process_vm_writev(pid, &own, 1, &other, 1, 0) == sizeof(word) &&
	       ptrace(PTRACE_PEEKDATA, pid, &target, 0) == 10 && target == 7;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR);
	good = good && fd >= 0 && pread(fd, &word, sizeof(word), (off_t)&target) == 8 &&
	       word == 10 && pwrite(fd, &value, sizeof(value), (off_t)&target) == 4;
	close(fd);
	return good && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && next(pid) == 11 << 8;
}

int
ptraced_calls(void)
{
	return (int)syscall(SYS_getppid) == 1234 && (int)syscall(SYS_getpid) == getpid() ? 5 : 6;
}

/* Each call stops twice; the tracer changes the result of one. */
static bool
calls_stop(void)
{
	pid_t pid = start(ptraced_calls);
	struct __ptrace_syscall_info info;
	bool good = pid > 0 && ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD) == 0;
	int status, found = 0;
	registers r;

	for (;;) {
		if (!good || ptrace(PTRACE_SYSCALL, pid, 0, 0) != 0)
			return false;
		status = next(pid);
		if (!WIFSTOPPED(status))
			break;
		good = is_stop(status, SIGTRAP | 0x80) &&
		       ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		       info.op == PTRACE_SYSCALL_INFO_ENTRY;
		if (!good || info.entry.nr == SYS_exit_group) {
			good &= ptrace(PTRACE_CONT, pid, 0, 0) == 0;
			status = next(pid);
			break;
		}
		found += info.entry.nr == SYS_getppid;
		good = info.entry.nr == SYS_getppid || info.entry.nr == SYS_getpid;
		good = good && ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 &&
		       is_stop(next(pid), SIGTRAP | 0x80);
		if (good && info.entry.nr == SYS_getppid)
			good = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
			       info.op == PTRACE_SYSCALL_INFO_EXIT && info.exit.rval == getpid() &&
			       !info.exit.is_error && get_registers(pid, &r) == 0 &&
			       (RESULT(r) = 1234) && set_registers(pid, &r) == 0;
	}
	return good && found == 1 && status == 5 << 8;
}

/* Goes on to the next entry of a system call. Its number; -1: there is none. */
static long
next_call(pid_t pid)
{
	struct __ptrace_syscall_info info = {.op = PTRACE_SYSCALL_INFO_NONE};

	do
		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) != 0 || !WIFSTOPPED(next(pid)) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
			return -1;
	while (info.op != PTRACE_SYSCALL_INFO_ENTRY);
	return (long)info.entry.nr;
}

static int
sleeps_twice(void)
{
	nanosleep(&(struct timespec){1000000, 0}, NULL);
	return nanosleep(&(struct timespec){0, MS}, NULL) == 0 ? 5 : 6;
}

/* A sleep that a signal interrupts begins again, as another call: the next sleep has its own time.
 */
static bool
calls_are_replaced(void)
{
	pid_t pid = start(sleeps_twice);
	bool good = pid > 0 && ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD) == 0;
	long call = 0;

	while (good && call != -1 && call != SYS_clock_nanosleep && call != SYS_nanosleep)
		call = next_call(pid);
	good = good && call != -1 && ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 &&
	       await_sleep(pid, 0) && kill(pid, SIGWINCH) == 0 && WIFSTOPPED(next(pid)) &&
	       next_call(pid) != -1 && set_call(pid, SYS_getpid) == 0 &&
	       ptrace(PTRACE_CONT, pid, 0, 0) == 0 && next(pid) == 5 << 8;
	if (!good && pid > 0)
		kill(pid, SIGKILL);
	return good;
}

static int
polls_once(void)
{
	return poll(NULL, 0, 2000) == 0 ? 5 : 6;
}

/* Does a thread that goes on stop before it has slept for a second? One whose time is over may
 * sleep until the timer's interrupt, which comes at once. */
static bool
stops_awake(pid_t pid)
{
	long awake = now_ns(CLOCK_MONOTONIC);
	char state;

	do {
		sched_yield();
		state = state_of(pid, 0);
		if (state != 'S')
			awake = now_ns(CLOCK_MONOTONIC);
	} while (state == 'R' || state == 'D' ||
		 (state == 'S' && now_ns(CLOCK_MONOTONIC) - awake < 1000 * MS));
	return state == 't';
}

/* Is it at the end of a call that does not begin again? */
static bool
call_has_ended(pid_t pid)
{
	struct __ptrace_syscall_info info;

	return ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
	       info.op == PTRACE_SYSCALL_INFO_EXIT && info.exit.rval == 0;
}

/* A call whose time is over when it begins again ends, though a signal comes that is taken back. */
static bool
time_stays_over(void)
{
	pid_t pid = start(polls_once);
	int status = 0;
	bool good = pid > 0 && ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD) == 0 &&
		    ptrace(PTRACE_CONT, pid, 0, 0) == 0 && await_sleep(pid, 0) &&
		    kill(pid, SIGWINCH) == 0 && is_stop(next(pid), SIGWINCH) &&
		    poll(NULL, 0, 2000) == 0 && next_call(pid) != -1 && kill(pid, SIGUSR1) == 0;

	do {
		good = good && ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && stops_awake(pid);
		status = good ? next(pid) : -1;
	} while (good && (is_stop(status, SIGUSR1) || !call_has_ended(pid)));
	good = good && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && next(pid) == 5 << 8;
	if (!good && pid > 0)
		kill(pid, SIGKILL);
	return good;
}

static volatile sig_atomic_t handled;

static void
handle(int sig)
{
	handled += sig;
}

static int
raises(void)
{
	signal(SIGUSR1, handle);
	signal(SIGUSR2, handle);
	raise(SIGUSR1);
	raise(SIGUSR2);
	raise(SIGCHLD); /* ignored, but told */
	return handled == 2 * SIGUSR2 ? 5 : 6;
}

/* A signal is told, and the tracer says what becomes of it. */
static bool
signals_stop(void)
{
	pid_t pid = start(raises);
	siginfo_t info;
	bool good = pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGUSR1) &&
		    ptrace(PTRACE_GETSIGINFO, pid, 0, &info) == 0 && info.si_signo == SIGUSR1 &&
		    info.si_pid == pid && ptrace(PTRACE_CONT, pid, 0, SIGUSR2) == 0;

	good = good && waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 &&
	       info.si_code == CLD_TRAPPED && info.si_status == SIGUSR2 &&
	       ptrace(PTRACE_CONT, pid, 0, SIGUSR2) == 0 && is_stop(next(pid), SIGCHLD) &&
	       ptrace(PTRACE_CONT, pid, 0, 0) == 0;
	return good && next(pid) == 5 << 8;
}

static int
blocks_one(void)
{
	sigset_t set;

	signal(SIGUSR1, handle);
	signal(SIGUSR2, handle);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	return handled == 0 && sigpending(&set) == 0 && sigismember(&set, SIGUSR2) == 1 ? 5 : 6;
}

/* Instead of a signal the tracer gives one that the thread blocks: that waits. */
static bool
blocked_ones_wait(void)
{
	pid_t pid = start(blocks_one);
	bool good = pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGUSR1);
	sigset_t set;

	good = good && ptrace(PTRACE_GETSIGMASK, pid, 8, &set) == 0 &&
	       sigismember(&set, SIGUSR2) == 1 &&
	       FAILS(ptrace(PTRACE_GETSIGMASK, pid, 8, NOWHERE), EFAULT);
	return good && ptrace(PTRACE_CONT, pid, 0, SIGUSR2) == 0 && next(pid) == 5 << 8;
}

/* Sets a handler of SIGUSR1 that ends calls. */
static void
end_calls(void)
{
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle}, NULL);
}

static int
writes_a_byte(void)
{
	int ends[2];

	end_calls();
	return pipe(ends) == 0 && write(ends[1], "x", 1) == 1 && handled == SIGUSR1 ? 5 : 6;
}

/* A signal that comes when a write has begun does not end it while the pipe has room. */
static bool
write_has_room(void)
{
	pid_t pid = start(writes_a_byte);
	bool good = pid > 0 && ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD) == 0;
	long call = 0;

	while (good && call != -1 && call != SYS_write)
		call = next_call(pid);
	return good && call == SYS_write && kill(pid, SIGUSR1) == 0 &&
	       ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGUSR1) &&
	       ptrace(PTRACE_CONT, pid, 0, SIGUSR1) == 0 && next(pid) == 5 << 8;
}

static int tell[2], empty[2];

static int
reads_a_byte(void)
{
	char c = 99;

	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_RESTART}, NULL);
	end_calls();
	return read(empty[0], &c, 1) == -1 && errno == EINTR ? 6 : c;
}

/* At the stop for a signal: is the call that it has interrupted shown as on Linux? */
static bool
shows_call(pid_t pid, const registers *r)
{
#ifdef __x86_64__
	return r->orig_rax == SYS_read && (long)r->rax < 0;
#else
	return r->regs[0] == (unsigned long)empty[0] && r->regs[8] == SYS_read &&
	       (int)ptrace(PTRACE_PEEKTEXT, pid, r->pc, 0) == (int)0xd4000001; /* svc #0 */
#endif
}

/* A signal interrupts a call; the debugger calls a function before that begins again, or ends. */
static bool
functions_are_called(int sig, int status)
{
	bool good = pipe(empty) == 0;
	pid_t pid = start(reads_a_byte);
	registers own, r;

	good = good && pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && await_sleep(pid, 0) &&
	       kill(pid, SIGUSR2) == 0 && is_stop(next(pid), SIGUSR2) &&
	       get_registers(pid, &own) == 0 && shows_call(pid, &own);
	r = own;
	PC(r) = (uintptr_t)breakpoint;
	SP(r) = (SP(r) - 256) & ~15ul;
#ifdef __x86_64__
	r.orig_rax = -1ul;
#endif
	good = good && set_registers(pid, &r) == 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 &&
	       is_stop(next(pid), SIGTRAP) && set_registers(pid, &own) == 0;
	/* Without a function: a handler ends it. */
	if (sig == SIGUSR1)
		good = good && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && await_sleep(pid, 0) &&
		       kill(pid, SIGUSR1) == 0 && is_stop(next(pid), SIGUSR1) &&
		       get_registers(pid, &own) == 0 && shows_call(pid, &own);
	good = good && ptrace(PTRACE_CONT, pid, 0, sig) == 0;
	if (sig == 0 || sig == SIGUSR2)
		good = good && write(empty[1], "\5", 1) == 1;
	good = good && next(pid) == status << 8;
	if (!good && pid > 0)
		kill(pid, SIGKILL);
	close(empty[0]);
	close(empty[1]);
	return good;
}

#ifdef __x86_64__
#define TF 0x100ul

static int
steps_itself(void)
{
	__asm__ volatile(
	    "lea -128(%%rsp), %%rsp; pushf; orq %0, (%%rsp); popf; nop; nop; nop; pushf; "
	    "andq %1, (%%rsp); popf; lea 128(%%rsp), %%rsp"
	    :
	    : "i"(TF), "i"(~TF)
	    : "memory", "cc");
	return 5;
}

/* A program that has set its own TF keeps it at the stops for its tracer. */
static bool
own_steps_go_on(void)
{
	pid_t pid = start(steps_itself);
	bool good = pid > 0;
	int steps = 0, status = 0;
	registers r;

	while (good && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(status = next(pid), SIGTRAP))
		good = get_registers(pid, &r) == 0 && (++steps == 6 || (r.eflags & TF));
	return good && steps == 6 && status == 5 << 8;
}
#endif

static void *
sleeps(void *arg)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char c;

	write(tell[1], &tid, sizeof(tid));
	read(empty[0], &c, 1);
	_exit(handled == SIGUSR1 ? 5 : 6);
}

static int
has_a_sleeper(void)
{
	pthread_t t;

	end_calls();
	if (pthread_create(&t, NULL, sleeps, NULL) != 0)
		return 1;
	raise(SIGSTOP);
	for (;;)
		pause();
}

/* A process's signal wakes a thread that can take it, and not one that its tracer has stopped. */
static bool
sleepers_are_woken(void)
{
	bool good = pipe(tell) == 0 && pipe(empty) == 0;
	pid_t pid = start(has_a_sleeper), tid;

	good = good && pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 &&
	       is_stop(next(pid), SIGSTOP) && read(tell[0], &tid, sizeof(tid)) == sizeof(tid) &&
	       await_sleep(pid, tid) && kill(pid, SIGUSR1) == 0 && next(pid) == 5 << 8;
	for (int i = 0; i < 2; i++) {
		close(tell[i]);
		close(empty[i]);
	}
	return good;
}

int __attribute__((noinline)) ptraced_sum(int a, int b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

static int
runs_on(void)
{
	return ptraced_sum((int)target, 1);
}

/* A breakpoint that the tracer puts, takes away, and steps over. */
static bool
breakpoints_stop(void)
{
	pid_t pid = start(runs_on);
	uintptr_t at = (uintptr_t)ptraced_sum, word_at = at & ~7ul;
	unsigned shift = (unsigned)(at % 8 * 8);
	long code = ptrace(PTRACE_PEEKTEXT, pid, word_at, 0);
	unsigned long mask = (BREAK_LEN == 1 ? 0xfful : 0xfffffffful) << shift;
	registers r, after;
	int steps = 0, status;
	bool good = pid > 0 &&
		    ptrace(PTRACE_POKETEXT, pid, word_at,
			   ((unsigned long)code & ~mask) | (unsigned long)BREAK << shift) == 0 &&
		    ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGTRAP) &&
		    get_registers(pid, &r) == 0 && PC(r) == at + (BREAK_LEN == 1 ? 1 : 0);

	PC(r) = at;
	good =
	    good && set_registers(pid, &r) == 0 && ptrace(PTRACE_POKETEXT, pid, word_at, code) == 0;
	/* It returns after a few steps, each of which comes to another place. */
	for (; good && steps < 50; steps++, r = after) {
		good = ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0 && is_stop(next(pid), SIGTRAP) &&
		       get_registers(pid, &after) == 0 && PC(after) != PC(r);
		if (PC(after) - at >= 64)
			break;
	}
	good = good && steps > 0 && RESULT(after) == 8 && ptrace(PTRACE_CONT, pid, 0, 0) == 0;
	status = next(pid);
	return good && status == 8 << 8;
}

int
ptraced_steps(void)
{
	signal(SIGUSR1, handle);
	for (int i = 0; i < 3; i++)
		syscall(SYS_getppid);
	raise(SIGUSR1);
	return handled == SIGUSR1 ? 5 : 6;
}

/* Steps through a program to its end: through calls, and into a handler. */
static bool
steps_end(void)
{
	pid_t pid = start(ptraced_steps);
	int status = 0, sig = 0, steps = 0, signals = 0;

	if (pid < 0)
		return false;
	while (ptrace(PTRACE_SINGLESTEP, pid, 0, sig) == 0) {
		status = next(pid);
		if (!WIFSTOPPED(status))
			break;
		sig = WSTOPSIG(status) != SIGTRAP ? WSTOPSIG(status) : 0;
		signals += sig == SIGUSR1;
		steps++;
	}
	return status == 5 << 8 && steps > 50 && signals == 1;
}

static void *
nothing(void *arg)
{
	return arg;
}

static int
makes_others(void)
{
	pthread_t t;
	pid_t pid;
	int status;

	if (pthread_create(&t, NULL, nothing, NULL) != 0 || pthread_join(t, NULL) != 0)
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(3);
	if (waitpid(pid, &status, 0) != pid || status != 3 << 8)
		return 2;
	execl(linux_test_path(), "linux_test", "nothing", NULL);
	return 4;
}

/* Its thread and its child are traced, too; each event is told once. In a process that has no other
 * children. */
static int
await_events(void *arg)
{
	const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEEXEC |
			     PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
	pid_t pid = start(makes_others), who = 0, child = 0;
	unsigned seen[8] = {0}, begins = 0, ends = 0;
	unsigned long message, messages[8] = {0};
	int status = 0;
	bool good = pid > 0 && ptrace(PTRACE_SETOPTIONS, pid, 0, options) == 0 &&
		    ptrace(PTRACE_CONT, pid, 0, 0) == 0;

	while (good && (who = waitpid(-1, &status, __WALL)) > 0) {
		int sig = 0;

		if (!WIFSTOPPED(status)) {
			/* The child may have ended before its parent tells of the fork. */
			ends++;
			if (status == 3 << 8)
				child = who;
			good = status == 0 || (status == 3 << 8 && who != pid);
			if (who == pid)
				break;
			continue;
		}
		if (status >> 16 != 0) {
			seen[status >> 16]++;
			good = ptrace(PTRACE_GETEVENTMSG, who, 0, &message) == 0;
			messages[status >> 16] = message;
		} else if (WSTOPSIG(status) == SIGSTOP) {
			begins++;
		} else {
			sig = WSTOPSIG(status);
		}
		good &= ptrace(PTRACE_CONT, who, 0, sig) == 0;
	}
	good = good && seen[PTRACE_EVENT_CLONE] == 1 && seen[PTRACE_EVENT_FORK] == 1 &&
	       seen[PTRACE_EVENT_EXEC] == 1 && seen[PTRACE_EVENT_EXIT] == 3 && begins == 2 &&
	       ends == 3 && messages[PTRACE_EVENT_FORK] == (unsigned long)child &&
	       messages[PTRACE_EVENT_EXEC] == (unsigned long)pid;
	if (!good)
		printf(
		    "# clone %u, fork %u, exec %u, exit %u; %u began, %u ended, %d by %#x; child %d, told %lu\n",
		    seen[PTRACE_EVENT_CLONE], seen[PTRACE_EVENT_FORK], seen[PTRACE_EVENT_EXEC],
		    seen[PTRACE_EVENT_EXIT], begins, ends, who, status, child,
		    messages[PTRACE_EVENT_FORK]);
	return good ? 0 : 1;
}

static _Noreturn void
wait_for_ever(void)
{
	for (;;)
		pause();
}

static bool
told_by(pid_t pid, const char *line)
{
	char path[64], text[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return strstr(text, line) != NULL;
}

/* Attaches to a process that sleeps, stops it, and leaves it again. */
static bool
attached(bool seize)
{
	pid_t pid = fork();
	char line[64];
	int status;
	siginfo_t info;
	bool good;

	if (pid == 0)
		wait_for_ever();
	await_sleep(pid, 0);
	if (!seize)
		good = ptrace(PTRACE_ATTACH, pid, 0, 0) == 0 && is_stop(next(pid), SIGSTOP);
	else
		good = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 &&
		       waitpid(pid, &status, WNOHANG) == 0 &&
		       FAILS(ptrace(PTRACE_CONT, pid, 0, 0), ESRCH) &&
		       ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 &&
		       is_stop(next(pid), SIGTRAP | PTRACE_EVENT_STOP << 8);
	snprintf(line, sizeof(line), "TracerPid:\t%d\n", getpid());
	good = good && told_by(pid, line) && told_by(pid, "State:\tt (tracing stop)\n") &&
	       FAILS(ptrace(PTRACE_ATTACH, pid, 0, 0), EPERM) &&
	       ptrace(PTRACE_CONT, pid, 0, 0) == 0;
	/* The group stops; one that was seized listens until it goes on. */
	good = good && kill(pid, SIGTSTP) == 0 && is_stop(next(pid), SIGTSTP) &&
	       ptrace(PTRACE_CONT, pid, 0, SIGSTOP) == 0;
	if (seize)
		good = good && is_stop(next(pid), SIGSTOP | PTRACE_EVENT_STOP << 8) &&
		       ptrace(PTRACE_LISTEN, pid, 0, 0) == 0 && kill(pid, SIGCONT) == 0 &&
		       is_stop(next(pid), SIGTRAP | PTRACE_EVENT_STOP << 8) &&
		       ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGCONT) &&
		       ptrace(PTRACE_DETACH, pid, 0, 0) == 0;
	else
		good = good && is_stop(next(pid), SIGSTOP) &&
		       FAILS(ptrace(PTRACE_GETSIGINFO, pid, 0, &info), EINVAL) &&
		       kill(pid, SIGCONT) == 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 &&
		       is_stop(next(pid), SIGCONT) && ptrace(PTRACE_DETACH, pid, 0, SIGTERM) == 0;
	good = good && (!seize || (told_by(pid, "TracerPid:\t0\n") && kill(pid, SIGTERM) == 0));
	return good && waitpid(pid, &status, 0) == pid && status == SIGTERM;
}

/* A tracer ends: what it traces goes on, or ends with it. */
static bool
tracer_ends(long options)
{
	pid_t pid = fork(), tracer;
	int status;
	bool good;

	if (pid == 0)
		wait_for_ever();
	tracer = fork();
	if (tracer == 0)
		_exit(ptrace(PTRACE_SEIZE, pid, 0, options) == 0 &&
			      ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && WIFSTOPPED(next(pid))
			  ? 0
			  : 1);
	good = waitpid(tracer, &status, 0) == tracer && status == 0;
	if (options == 0)
		good = good && await_sleep(pid, 0) && kill(pid, SIGTERM) == 0;
	return waitpid(pid, &status, 0) == pid && good &&
	       status == (options == 0 ? SIGTERM : SIGKILL);
}

/* The parent learns of the end when the tracer has. */
static bool
end_is_told_twice(void)
{
	pid_t pid = fork(), tracer;
	int status, end[2];
	char c;
	bool good = pipe(end) == 0;

	if (pid == 0)
		wait_for_ever();
	tracer = fork();
	if (tracer == 0) {
		bool seized = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 && write(end[1], "x", 1) == 1;
		siginfo_t info;

		seized = seized && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 &&
			 info.si_code == CLD_KILLED && info.si_status == SIGKILL;
		_exit(seized && next(pid) == SIGKILL ? 0 : 1);
	}
	good = good && read(end[0], &c, 1) == 1 && kill(pid, SIGKILL) == 0 &&
	       waitpid(pid, &status, 0) == pid && status == SIGKILL &&
	       waitpid(tracer, &status, 0) == tracer && status == 0;
	close(end[0]);
	close(end[1]);
	return good;
}

static int
stops_and_forks(void)
{
	int status;
	pid_t pid;

	raise(SIGSTOP);
	pid = fork();
	if (pid == 0)
		_exit(3);
	return waitpid(pid, &status, 0) == pid && status == 3 << 8 ? 7 : 1;
}

/* A tracer lets a thread go on though its group is stopped: its calls do not wait for the group. */
static bool
forks_in_a_stop(void)
{
	pid_t pid = start(stops_and_forks);

	return pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGSTOP) &&
	       ptrace(PTRACE_CONT, pid, 0, SIGSTOP) == 0 && is_stop(next(pid), SIGSTOP) &&
	       ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGCHLD) &&
	       ptrace(PTRACE_CONT, pid, 0, SIGCHLD) == 0 && next(pid) == 7 << 8;
}

static int
stops_itself(void)
{
	raise(SIGSTOP);
	return 7;
}

/* SIGCONT comes while the tracer holds the signal that stops: it stops nothing any more. */
static bool
stop_is_called_off(void)
{
	pid_t pid = start(stops_itself);

	return pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGSTOP) &&
	       kill(pid, SIGCONT) == 0 && ptrace(PTRACE_CONT, pid, 0, SIGSTOP) == 0 &&
	       is_stop(next(pid), SIGCONT) && ptrace(PTRACE_CONT, pid, 0, 0) == 0 &&
	       next(pid) == 7 << 8;
}

/* A tracer that ignores SIGCHLD still learns how its child ends. */
static int
awaits_its_own(void *arg)
{
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	pid = start(stops_itself);
	return pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGSTOP) &&
		       ptrace(PTRACE_CONT, pid, 0, 0) == 0 && next(pid) == 7 << 8
		   ? 0
		   : 1;
}

/*
 * Waits until the child sleeps in a program that it has executed as that group and user 1000. One
 * that were attached in the midst of exec would tell of that first.
 */
static pid_t
executed_as(gid_t gid)
{
	int ends[2];
	char byte;
	pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;

	if (pid == 0 && setgid(gid) == 0 && setuid(1000) == 0)
		execl("/bin/sleep", "sleep", "1000", NULL);
	if (pid == 0)
		_exit(1);
	close(ends[1]);
	read(ends[0], &byte, 1);
	close(ends[0]);
	await_sleep(pid, 0);
	return pid;
}

static int
attaches(void *pid)
{
	if (setgid(1000) != 0 || setuid(1000) != 0)
		return 1;
	if (ptrace(PTRACE_ATTACH, *(pid_t *)pid, 0, 0) != 0)
		return errno == EPERM ? 2 : 3;
	/* It ends while it holds the signal; whoever sent SIGKILL meanwhile waits for the end. */
	return is_stop(next(*(pid_t *)pid), SIGSTOP) ? 0 : 4;
}

/* User 1000 traces what has its user and its group. */
static bool
groups_count(void)
{
	pid_t own = executed_as(1000), other = executed_as(1001);
	bool good = in_child(attaches, &own) == 0 && in_child(attaches, &other) == 2;

	kill(own, SIGKILL);
	kill(other, SIGKILL);
	return waitpid(own, NULL, 0) == own && waitpid(other, NULL, 0) == other && good;
}

/* Who has fewer rights than its child does not become its tracer. */
static int
child_has_more(void *arg)
{
	int ends[2], status;
	pid_t pid = pipe(ends) == 0 ? fork() : -1;
	char c;

	if (pid == 0) {
		close(ends[1]);
		read(ends[0], &c, 1); /* until the parent has dropped its rights */
		_exit(FAILS(ptrace(PTRACE_TRACEME, 0, 0, 0), EPERM) ? 5 : 6);
	}
	if (setuid(1000) != 0)
		return 2;
	close(ends[1]);
	return waitpid(pid, &status, 0) == pid && status == 5 << 8 ? 0 : 1;
}

static void
note_signal(int sig)
{
}

/* It waits with another mask for a signal, and then tells the one that it has got meanwhile. */
static int
suspends(void)
{
	sigset_t set, none, now;

	signal(SIGUSR1, note_signal);
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_SETMASK, &set, NULL);
	if (!FAILS(sigsuspend(&none), EINTR) || sigprocmask(SIG_BLOCK, NULL, &now) != 0)
		return 1;
	return sigismember(&now, SIGUSR2) && !sigismember(&now, SIGUSR1) ? 5 : 2;
}

/* The mask is the one that a call which has its own will leave. */
static bool
masks_are_saved(void)
{
	uint64_t first = 1ul << (SIGUSR1 - 1), second = 1ul << (SIGUSR2 - 1), mask = 0;
	pid_t pid = start(suspends);
	bool good = pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && await_sleep(pid, 0) &&
		    kill(pid, SIGUSR1) == 0 && is_stop(next(pid), SIGUSR1) &&
		    ptrace(PTRACE_GETSIGMASK, pid, 8, &mask) == 0 && mask == first &&
		    ptrace(PTRACE_SETSIGMASK, pid, 8, &second) == 0 &&
		    ptrace(PTRACE_GETSIGMASK, pid, 8, &mask) == 0 && mask == second;

	return good && ptrace(PTRACE_CONT, pid, 0, SIGUSR1) == 0 && next(pid) == 5 << 8;
}

static int go_on[2], seized[2];

static void *
executes_when_told(void *arg)
{
	char c;

	read(go_on[0], &c, 1);
	execl(linux_test_path(), linux_test_path(), "nothing", NULL);
	return NULL;
}

static int
waits_for_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, executes_when_told, NULL) == 0)
		pthread_join(t, NULL);
	return 1;
}

/* It traces the first thread of a process that is not its child. */
static int
awaits_first(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0 || write(seized[1], "", 1) != 1)
		return 1;
	return FAILS(waitpid(-1, &status, __WALL), ECHILD) ? 5 : 2;
}

/* A tracer whose thread is no more, since another one of its process executed, is told so. */
static bool
first_is_replaced(void)
{
	pid_t pid, tracer;
	int status;
	bool good = pipe(go_on) == 0 && pipe(seized) == 0;
	char c;

	pid = fork();
	if (pid == 0)
		_exit(waits_for_thread());
	tracer = fork();
	if (tracer == 0)
		_exit(awaits_first(pid));
	good = good && close(seized[1]) == 0 && read(seized[0], &c, 1) == 1 &&
	       await_sleep(tracer, 0) && write(go_on[1], "", 1) == 1 && next(pid) == 0 &&
	       poll(&(struct pollfd){.fd = seized[0]}, 1, 60000) == 1; /* it has ended */
	kill(tracer, SIGKILL);
	good = good && waitpid(tracer, &status, 0) == tracer && status == 5 << 8;
	return (close(go_on[0]) == 0) & (close(go_on[1]) == 0) & (close(seized[0]) == 0) & good;
}

/* ---- who is stopped is killed; ends of processes that were stopped ---- */

enum end { BY_EXIT, BY_EXEC, BY_SIGTERM, BY_SIGKILL, ENDS };

static void *
exits_when_told(void *arg)
{
	pid_t tid = gettid();
	char c;

	write(seized[1], &tid, sizeof(tid));
	read(go_on[0], &c, 1);
	syscall(SYS_exit, 5);
	return NULL;
}

/* One thread exits when it is told, and the first one does then what ends it, too. */
static void
ends_as_told(enum end how)
{
	pthread_t t;
	char c;

	if (pthread_create(&t, NULL, exits_when_told, NULL) != 0)
		_exit(1);
	read(empty[0], &c, 1);
	if (how == BY_EXIT)
		_exit(7);
	if (how == BY_EXEC)
		execl(linux_test_path(), linux_test_path(), "nothing", NULL);
	for (;;)
		pause();
}

/* A thread stands in its last stop; it goes on when its process ends, or becomes another. */
static bool
last_stop_ends(enum end how)
{
	static const int of_thread[ENDS] = {7 << 8, 5 << 8, SIGTERM, SIGKILL};
	static const int of_process[ENDS] = {7 << 8, 0, SIGTERM, SIGKILL};
	unsigned long message = 0;
	pid_t pid, tid = 0;
	int status;
	bool good = pipe(go_on) == 0 && pipe(seized) == 0 && pipe(empty) == 0;

	pid = fork();
	if (pid == 0)
		ends_as_told(how);
	good = good && read(seized[0], &tid, sizeof(tid)) == sizeof(tid) &&
	       ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT) == 0 &&
	       write(go_on[1], "", 1) == 1 &&
	       is_stop(next(tid), SIGTRAP | PTRACE_EVENT_EXIT << 8) &&
	       ptrace(PTRACE_GETEVENTMSG, tid, 0, &message) == 0 && message == 5 << 8 &&
	       await_sleep(pid, 0) && write(empty[1], "", 1) == 1;
	if (how == BY_SIGTERM || how == BY_SIGKILL)
		good = good && await_sleep(pid, 0) &&
		       kill(pid, how == BY_SIGTERM ? SIGTERM : SIGKILL) == 0;
	status = good ? next(tid) : -1;
	if (how == BY_SIGKILL && is_kestrel() && status == 5 << 8)
		status = SIGKILL; /* if it ends before the other thread has taken the signal */
	good = good && status == of_thread[how] && next(pid) == of_process[how];
	for (unsigned i = 0; i < 2; i++)
		good &= (close(go_on[i]) == 0) & (close(seized[i]) == 0) & (close(empty[i]) == 0);
	return good;
}

static int
terminates(void)
{
	raise(SIGTERM);
	return 5;
}

/* A signal that the tracer holds back does not count when SIGKILL comes. */
static bool
held_ones_are_dropped(void)
{
	pid_t pid = start(terminates);
	bool good = pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGTERM) &&
		    kill(pid, SIGKILL) == 0 && next(pid) == SIGKILL;

	pid = start(terminates);
	return pid > 0 && ptrace(PTRACE_CONT, pid, 0, 0) == 0 && is_stop(next(pid), SIGTERM) &&
	       ptrace(PTRACE_KILL, pid, 0, 0) == 0 && next(pid) == SIGKILL && good;
}

/* It leaves a mate in its group, which tells whether it still lives. */
static int
leaves_a_mate(void)
{
	char c;

	if (setpgid(0, 0) != 0)
		return 1;
	if (fork() == 0) {
		close(go_on[1]);
		read(go_on[0], &c, 1);
		write(seized[1], "", 1);
		_exit(0);
	}
	return 7;
}

/* A process that was stopped and ends is no stopped one of its group, which may go on. */
static bool
ends_though_stopped(void)
{
	bool good = pipe(go_on) == 0 && pipe(seized) == 0;
	pid_t pid = start(leaves_a_mate);
	char c;

	good = good && pid > 0 && ptrace(PTRACE_CONT, pid, 0, SIGSTOP) == 0 &&
	       is_stop(next(pid), SIGSTOP) && ptrace(PTRACE_CONT, pid, 0, 0) == 0 &&
	       next(pid) == 7 << 8;
	close(go_on[1]);
	close(seized[1]);
	good = good && read(seized[0], &c, 1) == 1;
	return (close(go_on[0]) == 0) & (close(seized[0]) == 0) & good;
}

static bool
others_are_refused(void)
{
	registers r;

	return FAILS(ptrace(PTRACE_ATTACH, getpid(), 0, 0), EPERM) &&
	       FAILS(ptrace(PTRACE_SEIZE, 0x3fffffff, 0, 0), ESRCH) &&
	       FAILS(ptrace(PTRACE_CONT, getppid(), 0, 0), ESRCH) &&
	       FAILS(get_registers(getppid(), &r), ESRCH);
}

/* A subreaper traces its grandchild, which ends before its parent does: that is told once. */
static int
end_is_told_once(void *arg)
{
	int go[2][2], told[2], status = 0;
	pid_t parent, child;
	siginfo_t info;
	char c;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || pipe(go[0]) != 0 || pipe(go[1]) != 0 ||
	    pipe(told) != 0)
		return 1;
	parent = fork();
	if (parent == 0) {
		child = fork();
		close(go[0][1]);
		close(go[1][1]);
		if (child != 0)
			write(told[1], &child, sizeof(child));
		read(go[child != 0][0], &c, 1);
		_exit(child == 0 ? 7 : 0);
	}
	if (read(told[0], &child, sizeof(child)) != sizeof(child) ||
	    ptrace(PTRACE_SEIZE, child, 0, 0) != 0 || write(go[0][1], "", 1) != 1 ||
	    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0)
		return 2;
	if (write(go[1][1], "", 1) != 1 || waitpid(parent, &status, 0) != parent)
		return 3;
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
		return 4;
	return FAILS(waitpid(-1, &status, 0), ECHILD) ? 0 : 5;
}

void
test_ptrace(void)
{
	result(memory_changes(), "a debugger reads and writes a program's memory");
	result(calls_stop(), "each system call stops twice, and its result is changed");
	result(calls_are_replaced(), "a call that begins again may become another one");
	result(time_stays_over(), "a call whose time is over ends, also if a signal is taken back");
	result(signals_stop(), "signals are told before they are delivered, and changed");
	result(blocked_ones_wait(),
	       "a signal that the thread blocks waits, also if it is the tracer's");
	result(in_child(end_is_told_once, NULL) == 0,
	       "a tracer that becomes the parent waits for an end once");
	result(write_has_room(), "a signal does not end a write to a pipe that has room");
	result(sleepers_are_woken(),
	       "a signal wakes a thread that sleeps, not one that is stopped");
	result(functions_are_called(0, 5) && functions_are_called(SIGUSR2, 5) &&
		   functions_are_called(SIGUSR1, 6),
	       "a debugger calls a function while a call is interrupted, which then begins again");
#ifdef __x86_64__
	result(own_steps_go_on(), "a program that steps itself does so under a tracer, too");
#endif
	result(breakpoints_stop(), "a breakpoint in the program's code, and steps after it");
	result(steps_end(), "a program runs to its end step by step");
	result(in_child(await_events, NULL) == 0, "threads, children, exec and ends are events");
	result(attached(false), "PTRACE_ATTACH stops a process, and DETACH lets it go on");
	result(attached(true), "PTRACE_SEIZE, INTERRUPT and LISTEN do, too");
	result(tracer_ends(0) && tracer_ends(PTRACE_O_EXITKILL),
	       "a debugger that ends leaves its programs, or kills them");
	result(end_is_told_twice(), "a traced process's end is told to both, the tracer first");
	result(forks_in_a_stop(), "a thread that goes on in a stopped group forks");
	result(stop_is_called_off(), "SIGCONT calls off a stop that the tracer holds");
	result(in_child(awaits_its_own, NULL) == 0,
	       "a tracer that ignores SIGCHLD awaits its child");
	if (getuid() == 0)
		result(in_child(child_has_more, NULL) == 0,
		       "a child that has more rights than its parent is not traced by it");
	result(masks_are_saved(), "the mask of a call that has its own is not the thread's");
	result(first_is_replaced(),
	       "a tracer is told if its thread is replaced by one that executes");
	for (enum end how = 0; how < ENDS; how++)
		result(last_stop_ends(how), "a thread in its last stop ends with its process");
	result(held_ones_are_dropped(), "SIGKILL counts, not the signal that the tracer holds");
	result(ends_though_stopped(), "a stopped process that ends leaves its group as it is");
	result(others_are_refused(), "what is not traced is refused");
	if (getuid() == 0 && access("/proc/sys/kernel/yama/ptrace_scope", F_OK) != 0)
		result(groups_count(), "a user traces what has his user and group");
}
