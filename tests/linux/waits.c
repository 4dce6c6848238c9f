/*
 * waits.c - calls that wait while the process is stopped and continued; what fails and must leave
 * everything as it was; and small rules of signals, maps and groups. The same on Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PAGE 4096ul
#define SPAN                \
	(struct timespec)   \
	{                   \
		0, 200 * MS \
	}

static void
nap(long ns)
{
	nanosleep(&(struct timespec){0, ns}, NULL);
}

static long
futex(uint32_t *word, int op, uint32_t value, const struct timespec *until)
{
	return syscall(SYS_futex, word, op, value, until, NULL, 0);
}

/* ---- waits that stops interrupt ---- */

static bool
waits_for_futex(void)
{
	uint32_t word = 0;

	return FAILS(futex(&word, FUTEX_WAIT, 0, &SPAN), ETIMEDOUT);
}

static bool
waits_by_sleep(void)
{
	return nanosleep(&SPAN, NULL) == 0;
}

static bool
waits_by_clock(void)
{
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &SPAN, NULL) == 0;
}

static bool
waits_by_poll(void)
{
	return poll(NULL, 0, 200) == 0;
}

static bool
waits_by_ppoll(void)
{
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, &SPAN, &none) == 0;
}

static bool
waits_by_select(void)
{
	return select(0, NULL, NULL, NULL, &(struct timeval){0, 200000}) == 0;
}

static bool
waits_by_pselect(void)
{
	return pselect(0, NULL, NULL, NULL, &SPAN, NULL) == 0;
}

/*
 * A process waits for 200 ms, and is stopped and continued more often than that, until it ends. Its
 * wait goes on until its deadline: a span that began anew would never end.
 */
static bool
ends_in_time(bool (*wait_for)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(wait_for() && wait_for() ? 0 : 1);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		kill(pid, SIGSTOP);
		nap(2 * MS);
		kill(pid, SIGCONT);
		nap(20 * MS);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- what fails leaves everything as it was ---- */

static int
replaces_too_much(void *arg)
{
	size_t size = 64ul << 20;
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit limit = {32ul << 20, 32ul << 20};

	*p = 'x';
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		return 1;
	if (mmap(p, size, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 2;
	return errno != ENOMEM ? 3 : *p != 'x' ? 4 : 0;
}

static int
shrinks_over_limit(void *arg)
{
	size_t size = 1ul << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit limit = {64ul << 10, 64ul << 10};

	if (setrlimit(RLIMIT_AS, &limit) != 0 || mremap(p, size, size, 0) != p)
		return 1;
	return mremap(p, size, PAGE, 0) == p ? 0 : 2;
}

/* ---- a place in the tree of names is no open file ---- */

static int
finds_lock(void *fd)
{
	struct flock l = {.l_type = F_WRLCK};

	return fcntl(*(int *)fd, F_GETLK, &l) == 0 && l.l_type == F_WRLCK ? 0 : 1;
}

static bool
locks_outlive_places(void)
{
	struct flock l = {.l_type = F_WRLCK};
	char path[] = "/tmp/waits-XXXXXX";
	int fd = mkstemp(path);
	bool good = fd >= 0 && fcntl(fd, F_SETLK, &l) == 0 && close(open(path, O_PATH)) == 0 &&
		    in_child(finds_lock, &fd) == 0;

	close(fd);
	unlink(path);
	return good;
}

/* ---- the memory of others ---- */

static long
others(long call, void *own, const void *other, size_t n)
{
	struct iovec here = {own, n}, there = {(void *)other, n};

	return syscall(call, getpid(), &here, 1, &there, 1, 0);
}

static bool
rights_hold_for_others(void)
{
	char mine[16] = "0123456789abcde", *p;
	bool good;

	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(p, "kept");
	mprotect(p, PAGE, PROT_READ);
	good = FAILS(others(SYS_process_vm_writev, mine, p, 5), EFAULT) && strcmp(p, "kept") == 0 &&
	       FAILS(others(SYS_process_vm_writev, mine, (void *)others, 5), EFAULT) &&
	       others(SYS_process_vm_writev, mine, p + PAGE, 5) == 5 && p[PAGE] == '0';
	mprotect(p, PAGE, PROT_NONE);
	good = good && FAILS(others(SYS_process_vm_readv, mine, p, 5), EFAULT) && mine[0] == '0';
	munmap(p, 2 * PAGE);
	return good;
}

static bool
signals_do_no_harm(void)
{
	char from[64] = "x", to[64];
	bool good = true;

	on_alarm(0);
	send_alarms(true);
	for (unsigned n = how_often(4000); n > 0 && good; n--)
		good = others(SYS_process_vm_readv, to, from, sizeof(to)) == sizeof(to);
	send_alarms(false);
	return good;
}

/* ---- the clock of a process ---- */

static long latest;
static bool went_back;

static void *
reads_clock(void *turns)
{
	for (unsigned n = *(unsigned *)turns; n > 0; n--) {
		long before = __atomic_load_n(&latest, __ATOMIC_SEQ_CST);
		long now = now_ns(CLOCK_PROCESS_CPUTIME_ID);

		if (now < before)
			went_back = true;
		while (before < now &&
		       !__atomic_compare_exchange_n(&latest, &before, now, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST))
			;
	}
	return NULL;
}

static bool
clock_never_goes_back(void)
{
	unsigned turns = how_often(10000);
	pthread_t other;

	pthread_create(&other, NULL, reads_clock, &turns);
	reads_clock(&turns);
	pthread_join(other, NULL);
	return !went_back;
}

/* ---- signals ---- */

static bool
ignored_signals_wait_while_blocked(void)
{
	struct signalfd_siginfo info;
	sigset_t set, old;
	int fd;
	bool good;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	signal(SIGINT, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, &old);
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	kill(getpid(), SIGINT);
	good = read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGINT;
	kill(getpid(), SIGINT);
	signal(SIGINT, SIG_IGN); /* drops what is pending */
	good = good && FAILS(read(fd, &info, sizeof(info)), EAGAIN);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGINT, SIG_DFL);
	close(fd);
	return good;
}

/* Is SIGCHLD pending when a child has ended; and before, if it has stopped? */
static bool
child_is_pending(bool stops)
{
	sigset_t pending;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (stops)
			raise(SIGSTOP);
		_exit(0);
	}
	if (stops && (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status) ||
		      sigpending(&pending) != 0 || sigismember(&pending, SIGCHLD)))
		return true;
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	sigpending(&pending);
	return sigismember(&pending, SIGCHLD);
}

/* Of children, what is ignored does not wait, also if it is blocked. */
static int
ignores_children(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGCHLD, SIG_IGN);
	if (child_is_pending(false) || child_is_pending(true))
		return 1;
	sigaction(SIGCHLD, &(struct sigaction){.sa_flags = SA_NOCLDWAIT}, NULL);
	return !child_is_pending(false);
}

static bool
default_drops_what_it_ignores(void)
{
	sigset_t set, old, pending;
	bool was, is;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &old);
	kill(getpid(), SIGCHLD);
	sigpending(&pending);
	was = sigismember(&pending, SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	sigpending(&pending);
	is = sigismember(&pending, SIGCHLD);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return was && !is;
}

static int
continues(void *pid)
{
	pid_t other = *(pid_t *)pid;

	if (setuid(1001) != 0 || !FAILS(kill(other, SIGTERM), EPERM))
		return 1;
	if (kill(other, SIGCONT) != 0)
		return 2;
	return setsid() > 0 && FAILS(kill(other, SIGCONT), EPERM) ? 0 : 3;
}

/* As fg does with a stopped su. */
static bool
a_session_continues_its_own(void)
{
	pid_t pid;
	int status, r;

	if (getuid() != 0)
		return true;
	pid = fork();
	if (pid == 0) {
		setuid(1000);
		raise(SIGSTOP);
		_exit(7);
	}
	waitpid(pid, &status, WUNTRACED);
	r = in_child(continues, &pid);
	if (r != 0)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

/* ---- a mutex between its release and the wakeup ---- */

static uint32_t free_word;
static struct robust_list_head list = {.list = {&list.list}};

static int
ends_in_between(void *arg)
{
	list.futex_offset = 0;
	list.list_op_pending = (struct robust_list *)&free_word;
	syscall(SYS_set_robust_list, &list, sizeof(list));
	syscall(SYS_exit, 0);
	return 0;
}

static void *
starts_owner(void *arg)
{
	await_sleep(getpid(), 0);
	ends_in_between(NULL);
	return NULL;
}

static bool
the_next_is_woken(void)
{
	pthread_t owner;
	long r;

	pthread_create(&owner, NULL, starts_owner, NULL);
	r = futex(&free_word, FUTEX_WAIT, 0, &(struct timespec){20, 0});
	pthread_join(owner, NULL);
	return r == 0;
}

/* ---- small rules ---- */

static bool
ranges(void)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p + PAGE, PAGE);
	return mprotect(p, 0, PROT_READ) == 0 &&
	       FAILS(mprotect(p + PAGE, PAGE, PROT_READ), ENOMEM) &&
	       FAILS(mprotect(p + 1, PAGE, PROT_READ), EINVAL) &&
	       FAILS(mprotect((void *)(1ul << 62), PAGE, PROT_READ), ENOMEM) &&
	       FAILS(msync(p, 3 * PAGE, MS_SYNC), ENOMEM) && msync(p, PAGE, MS_SYNC) == 0 &&
	       FAILS(madvise(p, 3 * PAGE, MADV_WILLNEED), ENOMEM) &&
	       madvise(p, PAGE, MADV_WILLNEED) == 0 && munmap(p, 3 * PAGE) == 0;
}

static bool
groups(void)
{
	int ready[2], done[2];
	char c;
	pid_t pid;
	bool good;

	if (pipe(ready) != 0 || pipe(done) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		dup2(ready[1], 1);
		dup2(done[0], 0);
		close(done[1]);
		execl(linux_test_path(), linux_test_path(), "wait", NULL);
		_exit(1);
	}
	good = read(ready[0], &c, 1) == 1 && FAILS(setpgid(pid, pid), EACCES);
	close(done[1]);
	waitpid(pid, NULL, 0);
	close(done[0]);
	close(ready[0]);
	close(ready[1]);
	return good && FAILS(waitpid(INT_MIN, NULL, 0), ESRCH);
}

int
waits_as_executed(void)
{
	char c = 'x';

	return write(1, &c, 1) == 1 && read(0, &c, 1) == 0 ? 0 : 1;
}

static bool
futexes(void)
{
	uint32_t word = 0, *gone = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool good = gone != MAP_FAILED && FAILS(futex(gone, FUTEX_WAKE, 1, NULL), EFAULT) &&
		    futex(gone, FUTEX_WAKE_PRIVATE, 1, NULL) == 0 &&
		    FAILS(syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE, 1, 1ul, gone, 0), EFAULT) &&
		    syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1ul, gone, 0) == 0;

	munmap(gone, PAGE);
	return good && FAILS(futex(&word, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 0, &SPAN), ENOSYS) &&
	       FAILS(futex((uint32_t *)(1ul << 62), FUTEX_WAKE_PRIVATE, 1, NULL), EFAULT);
}

static volatile pid_t thread_number;
static pthread_mutex_t thread_goes_on = PTHREAD_MUTEX_INITIALIZER;

static void *
tells_number(void *arg)
{
	__atomic_store_n(&thread_number, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&thread_goes_on);
	return NULL;
}

/* kill() takes the number of any thread, and signals its process. */
static int
threads_name_processes(void *arg)
{
	siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE}, got;
	pthread_t other;
	sigset_t set;
	bool good;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_mutex_lock(&thread_goes_on);
	if (pthread_create(&other, NULL, tells_number, NULL) != 0)
		return 1;
	while (__atomic_load_n(&thread_number, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
	good = thread_number != getpid() && kill(thread_number, 0) == 0 &&
	       kill(thread_number, SIGUSR1) == 0 && sigwaitinfo(&set, &got) == SIGUSR1 &&
	       got.si_code == SI_USER &&
	       syscall(SYS_rt_sigqueueinfo, thread_number, SIGUSR1, &info) == 0 &&
	       sigwaitinfo(&set, &got) == SIGUSR1 && got.si_code == SI_QUEUE;
	pthread_mutex_unlock(&thread_goes_on);
	pthread_join(other, NULL);
	return good ? 0 : 2;
}

/* Who may only read the device cannot write to what it maps of it shared. */
static bool
zeroes_are_only_read(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	void *q = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	bool good = p != MAP_FAILED && q != MAP_FAILED &&
		    FAILS(mprotect(p, PAGE, PROT_READ | PROT_WRITE), EACCES) &&
		    mprotect(q, PAGE, PROT_READ | PROT_WRITE) == 0;

	close(fd);
	return munmap(p, PAGE) == 0 && munmap(q, PAGE) == 0 && good;
}

static int
uses_membarrier(void *arg)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 ? 0 : 1;
}

static bool
membarrier_is_inherited(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
	       in_child(uses_membarrier, NULL) == 0 &&
	       syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

static void
handled(int sig)
{
}

static bool
a_child_counts_before_its_signal(void)
{
	struct sigaction act = {.sa_handler = handled}, old;
	bool good = sigaction(SIGCHLD, &act, &old) == 0;

	for (unsigned i = how_often(200); i > 0; i--) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(7);
		good = good && waitpid(pid, NULL, 0) == pid;
	}
	return sigaction(SIGCHLD, &old, NULL) == 0 && good;
}

#define IDLE 1000

/* A set of many files, many times: a look at all takes long. */
static int
polls_what_is_idle(int fd)
{
	static struct pollfd fds[IDLE];
	struct epoll_event ev = {.events = EPOLLIN};
	int set = epoll_create1(0);

	for (unsigned i = 0; i < IDLE / 10; i++)
		if (epoll_ctl(set, EPOLL_CTL_ADD, dup(fd), &ev) != 0)
			return 1;
	for (unsigned i = 0; i < IDLE; i++)
		fds[i] = (struct pollfd){.fd = set, .events = POLLIN};
	return poll(fds, IDLE, -1);
}

/* Writes and reads until it is killed. Tells `told` when it has begun. */
static void
is_busy(int told)
{
	int pair[2];
	char c = 0;

	if (pipe(pair) != 0)
		return;
	for (unsigned long i = 0; write(pair[1], &c, 1) == 1 && read(pair[0], &c, 1) == 1; i++)
		if (i == 1000 && write(told, &c, 1) != 1)
			return;
}

/* The other one wakes it again and again before it has looked at all its files. */
static bool
a_signal_ends_a_poll_beside_others(void)
{
	int idle[2], told[2], status = 0;
	pid_t polls, busy;
	time_t end;
	bool good;
	char c;

	if (pipe(idle) != 0 || pipe(told) != 0)
		return false;
	polls = fork();
	if (polls == 0)
		_exit(polls_what_is_idle(idle[0]));
	good = await_sleep(polls, 0);
	busy = fork();
	if (busy == 0)
		is_busy(told[1]);
	if (busy == 0)
		_exit(1);
	good = good && read(told[0], &c, 1) == 1 && kill(polls, SIGKILL) == 0;
	for (end = time(NULL) + 30; good && waitpid(polls, &status, WNOHANG) == 0;) {
		good = time(NULL) < end;
		nap(MS);
	}
	good = good && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	good = kill(busy, SIGKILL) == 0 && waitpid(busy, NULL, 0) == busy && good;
	if (status == 0)
		waitpid(polls, NULL, 0);
	close(idle[0]);
	close(idle[1]);
	close(told[0]);
	close(told[1]);
	return good;
}

void
test_waits(void)
{
	result(ends_in_time(waits_for_futex) && ends_in_time(waits_by_sleep) &&
		   ends_in_time(waits_by_clock),
	       "futex and nanosleep: stops do not make a wait longer, and do not end it");
	result(ends_in_time(waits_by_poll) && ends_in_time(waits_by_ppoll) &&
		   ends_in_time(waits_by_select) && ends_in_time(waits_by_pselect),
	       "poll and select: stops do not make a wait longer, and do not end it");
	result(in_child(replaces_too_much, NULL) == 0,
	       "a MAP_FIXED that goes over a limit leaves what was there");
	result(in_child(shrinks_over_limit, NULL) == 0,
	       "over the limit of memory, a map may shrink");
	result(locks_outlive_places(), "closing a file of O_PATH takes no record lock away");
	result(rights_hold_for_others(), "process_vm_writev and readv: as the memory's rights are");
	result(signals_do_no_harm(), "process_vm_readv takes all bytes beside signals");
	result(clock_never_goes_back(), "threads never see the process's time go back");
	result(ignored_signals_wait_while_blocked(),
	       "a signal that is ignored waits while blocked");
	result(in_child(ignores_children, NULL) == 0,
	       "SIGCHLD of a child does not wait if it is ignored");
	result(default_drops_what_it_ignores(), "SIG_DFL for SIGCHLD drops one that is pending");
	result(a_session_continues_its_own(), "SIGCONT goes to any process of the session");
	result(the_next_is_woken(), "who ends between a mutex's release and the wakeup wakes one");
	result(ranges(), "mprotect, msync and madvise: empty ranges, and ranges with holes");
	result(groups(), "setpgid after the child's exec, and waitpid for no group, fail");
	result(futexes(), "futex: a clock without use, and an address without memory");
	result(in_child(threads_name_processes, NULL) == 0,
	       "kill: the number of a thread means its process");
	result(zeroes_are_only_read(), "/dev/zero, mapped shared by who may only read it");
	result(membarrier_is_inherited(), "a child has its parent's registration for membarrier");
	result(a_child_counts_before_its_signal(),
	       "waitpid: a child that has ended counts before SIGCHLD");
	result(a_signal_ends_a_poll_beside_others(),
	       "poll: a signal ends it, however busy other files are");
}
