/* threads.c - pthreads of glibc: futexes, thread-local storage, signals to threads, ends. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define THREADS 8
#define TURNS   5000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned long counter, next;
static __thread unsigned long own;

static void *
nothing(void *arg)
{
	return NULL;
}

/* Runs fn in THREADS threads. True: all return NULL. */
static bool
in_threads(void *(*fn)(void *))
{
	pthread_t t[THREADS];
	bool good = true;
	void *r;

	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, fn, (void *)i) != 0)
			return false;
	for (int i = 0; i < THREADS; i++)
		good &= pthread_join(t[i], &r) == 0 && r == NULL;
	return good;
}

static void *
count(void *arg)
{
	for (unsigned i = 0; i < how_often(TURNS); i++) {
		pthread_mutex_lock(&mutex);
		counter++;
		pthread_mutex_unlock(&mutex);
		own += (unsigned long)arg;
	}
	return own == how_often(TURNS) * (unsigned long)arg ? NULL : arg;
}

/* Threads take turns, in order. */
static void *
take_turns(void *arg)
{
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < how_often(60); i++) {
		while (next % THREADS != (unsigned long)arg)
			pthread_cond_wait(&cond, &mutex);
		next++;
		pthread_cond_broadcast(&cond);
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static double
series(unsigned long who)
{
	volatile double sum = (double)who;

	for (int i = 1; i < 30000; i++)
		sum += sin(i) / i + sqrt(i) * 1e-9;
	return sum;
}

static double expected[THREADS];

static void *
compute(void *arg)
{
	uint64_t in[FPU_WORDS], out[FPU_WORDS];
	unsigned long who = (unsigned long)arg;

	for (unsigned i = 0; i < FPU_WORDS; i++)
		in[i] = 0x5a5a000000000000ul | who << 16 | i;
	for (int i = 0; i < 5; i++) {
		double found = series(who);

		fpu_round_trip(in, out, 100);
		if (memcmp(&found, &expected[who], sizeof(found)) != 0 ||
		    memcmp(in, out, fpu_words * 8) != 0)
			return (void *)1;
	}
	return NULL;
}

static pthread_barrier_t barrier;

/* Maps, fills, protects and unmaps memory while the others do the same. */
static void *
change_memory(void *arg)
{
	const size_t size = 16 * 4096;

	for (unsigned long i = 0; i < how_often(20); i++) {
		unsigned char *p =
		    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return (void *)1;
		memset(p, (int)((unsigned long)arg * 16 + i % 16), size);
		if (mprotect(p, size / 2, PROT_READ) != 0)
			return (void *)2;
		for (size_t at = 0; at < size; at++)
			if (p[at] != (unsigned char)((unsigned long)arg * 16 + i % 16))
				return (void *)3;
		if (munmap(p, size) != 0)
			return (void *)4;
	}
	return NULL;
}

/* A page whose contents all threads see, while one of them forks again and again. */
static volatile unsigned *shared_words;

static void *
see_writes(void *arg)
{
	unsigned long who = (unsigned long)arg;
	volatile unsigned *mine = &shared_words[who], *theirs = &shared_words[(who + 1) % THREADS];
	unsigned last = 0;

	for (unsigned i = 1; i <= 300; i++) {
		int status = 0;
		pid_t pid;

		*mine = i;
		if (who == 0 && i % 30 == 0) {
			pid = fork();
			if (pid == 0) {
				unsigned before = shared_words[1];
				sched_yield();
				_exit(shared_words[1] != before || shared_words[0] != i);
			}
			if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
				return (void *)1;
		}
		if (*theirs < last || *mine != i)
			return (void *)2;
		last = *theirs;
	}
	pthread_barrier_wait(&barrier);
	return shared_words[(who + 1) % THREADS] == 300 ? NULL : (void *)3;
}

static _Atomic unsigned caught[THREADS], got_usr2;
static __thread unsigned self_number;

static void
on_usr1(int sig)
{
	caught[self_number]++;
}

static void
on_usr2(int sig)
{
	got_usr2++;
}

static _Atomic bool go_on;

static void *
be_signalled(void *arg)
{
	sigset_t set;

	self_number = (unsigned)(unsigned long)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (self_number == 3) /* the others block it as the thread that made them */
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_barrier_wait(&barrier);
	while (!go_on) {
		struct timespec ts = {0, 1000000};
		nanosleep(&ts, NULL);
	}
	return NULL;
}

/* Signals for one thread reach it alone; one for the process reaches a thread that takes it. */
static bool
directed_signals(void)
{
	struct sigaction act = {.sa_handler = on_usr1}, act2 = {.sa_handler = on_usr2};
	pthread_t t[THREADS];
	bool good = true;
	sigset_t set;

	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR2, &act2, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, be_signalled, (void *)i);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		for (int n = 0; n <= i; n++) {
			unsigned before = caught[i];
			good &= pthread_kill(t[i], SIGUSR1) == 0;
			while (caught[i] == before)
				sched_yield();
		}
	kill(getpid(), SIGUSR2);
	while (got_usr2 == 0)
		sched_yield();
	go_on = true;
	for (int i = 0; i < THREADS; i++) {
		good &= pthread_join(t[i], NULL) == 0;
		good &= caught[i] == (unsigned)i + 1;
	}
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return good && got_usr2 == 1;
}

static void *
die_with_lock(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

static bool
robust_mutex(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;
	pthread_t t;
	bool good;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&m, &attr);
	pthread_create(&t, NULL, die_with_lock, &m);
	pthread_join(t, NULL);
	good = pthread_mutex_lock(&m) == EOWNERDEAD && pthread_mutex_consistent(&m) == 0 &&
	       pthread_mutex_unlock(&m) == 0;
	return good && pthread_mutex_lock(&m) == 0;
}

static void *
lock_and_execute(void *m)
{
	if (pthread_mutex_lock(m) == 0)
		execl(linux_test_path(), linux_test_path(), "nothing", NULL);
	return NULL;
}

static int
thread_locks_and_executes(void *m)
{
	pthread_t t;

	return pthread_create(&t, NULL, lock_and_execute, m) != 0 ? 1 : (int)sleep(UINT_MAX);
}

static int
locks_and_executes(void *m)
{
	lock_and_execute(m);
	return 1;
}

/* An owner of a mutex in shared memory becomes another program. */
static bool
robust_mutex_executed(int (*owner)(void *))
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *m =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = m != MAP_FAILED;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	good = good && pthread_mutex_init(m, &attr) == 0 && in_child(owner, m) == 0 &&
	       pthread_mutex_trylock(m) == EOWNERDEAD;
	return munmap(m, 4096) == 0 && good;
}

static bool
times_out(void)
{
	struct timespec at, now;
	int r;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += 20000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&mutex);
	do
		r = pthread_cond_timedwait(&cond, &mutex, &at);
	while (r == 0);
	pthread_mutex_unlock(&mutex);
	clock_gettime(CLOCK_REALTIME, &now);
	return r == ETIMEDOUT &&
	       (now.tv_sec > at.tv_sec || (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec));
}

static uint32_t first_word, second_word;

static long
futex(uint32_t *word, int op, uint32_t value, long more, uint32_t *other, uint32_t third)
{
	return syscall(SYS_futex, word, op, value, more, other, third);
}

static void *
wait_for_word(void *arg)
{
	while (first_word == 0)
		futex(&first_word, FUTEX_WAIT, 0, 0, NULL, 0);
	return NULL;
}

/* Wakes one of four that wait, and makes the others wait for another word. */
static bool
requeues(void)
{
	pthread_t t[4];
	long moved = 0;
	bool good;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, wait_for_word, NULL);
	good =
	    futex(&first_word, FUTEX_CMP_REQUEUE, 0, 4, &second_word, 7) == -1 && errno == EAGAIN;
	while (moved < 3) {
		moved += futex(&first_word, FUTEX_CMP_REQUEUE, 0, 4, &second_word, 0);
		sched_yield();
	}
	first_word = 1;
	futex(&first_word, FUTEX_REQUEUE, 1, 4, &second_word, 0);
	good &= futex(&first_word, FUTEX_WAKE, 4, 0, NULL, 0) == 0;
	for (int woken = 0; woken < 3;)
		woken += (int)futex(&second_word, FUTEX_WAKE, 1, 0, NULL, 0);
	for (int i = 0; i < 4; i++)
		futex(&second_word, FUTEX_WAKE, 1, 0, NULL, 0), pthread_join(t[i], NULL);
	return good;
}

static volatile bool never;

static void *
spin(void *arg)
{
	while (!never)
		counter++;
	return NULL;
}

static void *
wait_for_ever(void *arg)
{
	pause();
	return NULL;
}

static void *
exit_all(void *arg)
{
	exit(42);
}

/* Threads run, sleep, and wait for each other: exit() of one ends all. */
static int
exits(void *arg)
{
	pthread_t t;

	pthread_create(&t, NULL, spin, NULL);
	pthread_create(&t, NULL, wait_for_ever, NULL);
	pthread_create(&t, NULL, exit_all, NULL);
	pthread_join(t, NULL);
	return 1;
}

static void *
execute(void *arg)
{
	char *const argv[] = {"/bin/true", NULL};

	execv("/bin/true", argv);
	return NULL;
}

static int
executes(void *arg)
{
	pthread_t t;

	pthread_create(&t, NULL, spin, NULL);
	pthread_create(&t, NULL, wait_for_ever, NULL);
	pthread_create(&t, NULL, execute, NULL);
	pthread_join(t, NULL);
	return 1;
}

/* What is executed by a thread, with the number of its process: it is that process's only thread.
 */
int
threads_as_executed(const char *pid)
{
	char path[64], word[64] = "";
	struct dirent *e;
	int n = 0, fd;
	DIR *d;

	if (getpid() != atoi(pid) || syscall(SYS_gettid) != getpid())
		return 1;
	d = opendir("/proc/self/task");
	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' && (++n > 1 || atoi(e->d_name) != getpid()))
			return 2;
	closedir(d);
	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", pid);
	fd = open(path, O_RDONLY);
	if (n != 1 || read(fd, word, sizeof(word)) != 11 || strcmp(word, "linux_test\n") != 0)
		return 3;
	close(fd);
	if (getenv("PS") != NULL && system("/bin/ps") != 0)
		return 6;
	/* It can be signalled, by either number, and have threads and children. */
	signal(SIGUSR1, SIG_IGN);
	if (syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1) != 0 || kill(getpid(), SIGUSR1) != 0 ||
	    !in_threads(nothing))
		return 4;
	return fork() == 0 ? 0 : wait(&n) > 0 && n == 0 ? 0 : 5;
}

static void *
execute_here(void *arg)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	execl(linux_test_path(), linux_test_path(), "alone", pid, NULL);
	return NULL;
}

/* A thread executes; the first one waits, computes, sleeps in the kernel, or has ended. */
static int
execute_in_thread(void *how)
{
	pthread_t t, other;

	pthread_create(&other, NULL, spin, NULL);
	pthread_create(&t, NULL, execute_here, NULL);
	switch (*(int *)how) {
	case 0:
		pthread_join(t, NULL);
		break;
	case 1:
		spin(NULL);
		break;
	case 2:
		wait_for_ever(NULL);
		break;
	default:
		pthread_exit(NULL);
	}
	return 77;
}

int
threads_execute(int how)
{
	setenv("PS", "1", 1);
	return execute_in_thread(&how);
}

static bool
threads_execute_alone(void)
{
	bool good = true;

	for (int i = 0; i < 3 + (int)how_often(20); i++) {
		int how = i % 4, r = in_child(execute_in_thread, &how);

		if (r != 0)
			printf("# case %d: %d\n", how, r);
		good &= r == 0;
	}
	return good;
}

static void *
end_later(void *arg)
{
	struct timespec ts = {0, 5000000};

	nanosleep(&ts, NULL);
	exit(7);
}

/* The first thread ends before the others. */
static int
first_ends(void *arg)
{
	pthread_t t;

	pthread_create(&t, NULL, end_later, NULL);
	pthread_exit(NULL);
}

/* All that threads of a user, who outlive their first thread, were counted for is given back. */
static int
ends_are_counted(void *arg)
{
	struct rlimit few = {20, 20};

	if (setuid(1000) != 0 || setrlimit(RLIMIT_NPROC, &few) != 0)
		return 1;
	for (int i = 0; i < 24; i++)
		if (in_child(first_ends, NULL) != 7)
			return 2;
	return 0;
}

/* What belongs to the process and not to a thread is changed by all at once. */
static void *
change_process(void *arg)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "/tmp/linux_threads%ld", (long)arg);
	for (int i = 0; i < (int)how_often(200); i++) {
		alarm(100);
		if (mkdir(dir, 0755) != 0 || chdir(dir) != 0 || rmdir(dir) != 0)
			return &counter;
		close(open("../.", O_RDONLY)); /* from where others have gone */
		if (chdir("/") != 0 || syscall(SYS_setuid, 0) != 0)
			return &counter;
		alarm(0);
	}
	return NULL;
}

static int
changes_process(void *arg)
{
	return in_threads(change_process) ? 0 : 1;
}

static void *
write_into_nothing(void *arg)
{
	sigset_t set;
	int ends[2];

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pipe(ends) != 0 || close(ends[0]) != 0)
		return &counter;
	return write(ends[1], "x", 1) == -1 && errno == EPIPE ? NULL : &counter;
}

/* SIGPIPE goes to the thread that wrote. */
static int
survives_pipe(void *arg)
{
	pthread_t t;
	void *r;

	pthread_create(&t, NULL, write_into_nothing, NULL);
	pthread_join(t, &r);
	return r == NULL ? 0 : 1;
}

static void
nothing_to_do(int sig)
{
}

/* A handler ends a wait with a timeout, also with SA_RESTART: else it might never time out. */
static int
wait_is_interrupted(void *arg)
{
	struct sigaction act = {.sa_handler = nothing_to_do, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 10000}, {0, 10000}};
	struct timespec long_time = {100, 0};
	int word = 0;

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &long_time, NULL, 0) == -1 && errno == EINTR
		   ? 0
		   : 1;
}

static void *
spawn(void *arg)
{
	static char *const argv[] = {"linux_test", "auxv", NULL};

	for (int i = 0; i < 1 + (int)how_often(5); i++) {
		int status;
		pid_t pid;

		if (posix_spawn(&pid, linux_test_path(), NULL, NULL, argv, NULL) != 0 ||
		    waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			return argv[0];
	}
	return NULL;
}

static void *
crash(void *arg)
{
	volatile int *volatile nowhere = (volatile int *)8;

	*nowhere = 1;
	return NULL;
}

static int
crashes(void *arg)
{
	pthread_t t;

	pthread_create(&t, NULL, spin, NULL);
	pthread_create(&t, NULL, crash, NULL);
	pthread_join(t, NULL);
	return 1;
}

static int fds[2];

static void *
open_and_close(void *arg)
{
	char c;

	for (unsigned i = 0; i < how_often(300); i++) {
		int fd = open("/etc/motd", O_RDONLY);

		/* Any thread may close any descriptor: a call works, or fails, and nothing else. */
		if (fd >= 0 && read(fd, &c, 1) < 0 && errno != EBADF)
			return (void *)1;
		close((int)((unsigned long)arg + i) % THREADS + fds[1] + 1);
	}
	return NULL;
}

/* Stops and continues a process whose threads run. */
static int
stops(void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		pthread_t t;

		pthread_create(&t, NULL, wait_for_ever, NULL);
		pthread_create(&t, NULL, spin, NULL);
		spin(NULL);
	}
	for (int i = 0; i < 5; i++) {
		kill(pid, SIGSTOP);
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
			return 1;
		kill(pid, SIGCONT);
		if (waitpid(pid, &status, WCONTINUED) != pid || !WIFCONTINUED(status))
			return 2;
	}
	kill(pid, SIGTERM);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? 0 : 3;
}

/* Two pages that processes share: a file's, or new ones. */
static uint32_t *
shared_pages(int fd)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);

	return mmap(NULL, 8192, PROT_READ | PROT_WRITE, flags, fd, 0);
}

/* A child waits for its word, and is woken by ours, if it is the same; else it is killed. */
static bool
wakes_child(uint32_t *ours, uint32_t *childs, bool same)
{
	pid_t pid = fork();
	int status;
	bool good;

	if (pid == 0)
		_exit(futex(childs, FUTEX_WAIT, 0, 0, NULL, 0) == 0 ? 0 : 1);
	good = await_sleep(pid, 0) && futex(ours, FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0) == 0 &&
	       futex(ours, FUTEX_WAKE, 9, 0, NULL, 0) == same;
	if (!good || !same)
		kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && good && (!same || status == 0);
}

/* Words of memory that processes share, also at other addresses; and of memory that they do not. */
static bool
futexes_are_shared(void)
{
	int fd = open("/tmp/futex", O_RDWR | O_CREAT, 0600);
	uint32_t *mine, *memory = shared_pages(-1), *file, *again, *to;
	pid_t pid;
	int status;
	bool good;

	unlink("/tmp/futex");
	good = ftruncate(fd, 8192) == 0;
	mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	file = shared_pages(fd);
	again = shared_pages(fd);
	close(fd);
	good = good && mine != MAP_FAILED && memory != MAP_FAILED && again != MAP_FAILED &&
	       wakes_child(memory + 1025, memory + 1025, true) &&
	       wakes_child(file + 1025, again + 1025, true) &&
	       wakes_child(file + 1025, again + 1, false) &&
	       wakes_child(file + 1025, memory + 1025, false) && wakes_child(mine, mine, false);
	/* From one word to another. */
	to = memory + 1;
	pid = fork();
	if (pid == 0)
		_exit(futex(file, FUTEX_WAIT, 0, 0, NULL, 0) == 0 ? 0 : 1);
	good = good && await_sleep(pid, 0) && futex(again, FUTEX_REQUEUE, 0, 9, to, 0) == 1 &&
	       futex(file, FUTEX_WAKE, 9, 0, NULL, 0) == 0 &&
	       futex(to, FUTEX_WAKE, 9, 0, NULL, 0) == 1;
	if (!good)
		kill(pid, SIGKILL);
	good = waitpid(pid, &status, 0) == pid && status == 0 && good;
	munmap(mine, 4096);
	munmap(memory, 8192);
	munmap(file, 8192);
	munmap(again, 8192);
	return good;
}

#define FAR 256 /* words from one word to the next */

static uint32_t **far_words; /* the first is that of no thread */
static atomic_int *far_tids;
static int far_private; /* FUTEX_PRIVATE_FLAG or 0 */

/*
 * The word i: in memory of this process; or in a file of its own, which has the number after that
 * of the file before, and where the number and the place have about the same sum for all.
 */
static uint32_t *
far_word(unsigned i)
{
	static uint32_t *memory;
	static ino_t first;
	struct stat st;
	int fd;

	if (far_private) {
		if (i % 64 == 0)
			memory = calloc(64 * FAR, sizeof(*memory));
		return memory + i % 64 * FAR;
	}
	fd = (int)syscall(SYS_memfd_create, "far", 0);
	if (ftruncate(fd, 4096) != 0 || fstat(fd, &st) != 0)
		return NULL;
	if (first == 0)
		first = st.st_ino;
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory + 512 - (st.st_ino / 64 - first / 64);
}

/* The first thread may be woken alone. */
static void *
wait_far_away(void *arg)
{
	size_t i = (size_t)arg;

	far_tids[i] = (int)syscall(SYS_gettid);
	syscall(SYS_futex, far_words[i + 1], FUTEX_WAIT_BITSET | far_private, 0, NULL, NULL,
		i == 0 ? 5 : 1);
	return NULL;
}

static long
far_wake(unsigned i, unsigned n, uint32_t bits)
{
	return syscall(SYS_futex, far_words[i], FUTEX_WAKE_BITSET | far_private, n, NULL, NULL,
		       bits);
}

/* Prints how long it takes to wake nobody where n threads wait for words, each for another one. */
int
threads_far(unsigned n, bool shared)
{
	struct timespec now;
	pthread_attr_t small;
	pthread_t t;
	long begin;

	far_private = shared ? 0 : FUTEX_PRIVATE_FLAG;
	far_words = calloc(n + 1, sizeof(*far_words));
	far_tids = calloc(n, sizeof(*far_tids));
	for (unsigned i = 0; i <= n; i++)
		far_words[i] = far_word(i);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	for (size_t i = 0; i < n; i++)
		if (pthread_create(&t, &small, wait_far_away, (void *)i) != 0)
			return 1;
	for (unsigned i = 0; i < n; i++) {
		while (far_tids[i] == 0)
			sched_yield();
		await_sleep(getpid(), far_tids[i]);
	}
	begin = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 1000; i++)
		far_wake(0, 1, 1);
	printf("beside %u waiters %ld ns\n", n, (now_ns(CLOCK_MONOTONIC) - begin) / 1000);
	/* Now all wait for one: who looks at many of them finds each once. */
	for (unsigned i = 1; i < n; i++)
		if (syscall(SYS_futex, far_words[i + 1], FUTEX_CMP_REQUEUE | far_private, 0, 1,
			    far_words[1], 0) != 1)
			return 2;
	clock_gettime(CLOCK_REALTIME, &now);
	return far_wake(1, n, 2) == 0 && clock_settime(CLOCK_REALTIME, &now) == 0 &&
		       far_wake(1, 1, 4) == 1 && far_wake(1, n, 1) == n - 1
		   ? 0
		   : 3;
}

void
test_threads(void)
{
	for (unsigned long i = 0; i < THREADS; i++)
		expected[i] = series(i);
	result(in_threads(count) && counter == THREADS * how_often(TURNS),
	       "8 threads: a mutex, and memory of each");
	result(in_threads(take_turns) && next == THREADS * how_often(60),
	       "8 threads take turns by a condition variable");
	result(in_threads(compute), "each thread has its floating point registers");
	result(in_threads(change_memory), "8 threads map, protect and unmap memory");
	pthread_barrier_init(&barrier, NULL, THREADS);
	shared_words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	result(in_threads(see_writes), "threads see what others write, while one forks");
	result(directed_signals(), "a signal reaches the thread for which it is");
	result(robust_mutex(), "a robust mutex tells that its owner has ended");
	result(robust_mutex_executed(locks_and_executes) &&
		   robust_mutex_executed(thread_locks_and_executes),
	       "also that it has become another program");
	result(times_out(), "a condition variable has a timeout");
	result(requeues(), "a futex's waiters go over to another futex");
	result(futexes_are_shared(), "a futex in memory that processes share is theirs");
	result(in_child(exits, NULL) == 42, "exit() of a thread ends all");
	result(in_child(executes, NULL) == 0, "exec of a thread ends the others");
	result(threads_execute_alone(),
	       "what a thread executes is the only thread, with the process's number");
	result(in_child(first_ends, NULL) == 7, "a process outlives its first thread");
	result(in_child(ends_are_counted, NULL) == 0, "a thread's end gives back what it counted");
	result(in_child(changes_process, NULL) == 0,
	       "threads change the directory, the timer and the user at once");
	result(in_child(survives_pipe, NULL) == 0, "SIGPIPE is for the thread that wrote");
	result(in_child(wait_is_interrupted, NULL) == 0, "a handler ends a wait with a timeout");
	result(in_threads(spawn), "threads spawn programs at once");
	result(in_child(crashes, NULL) == 128 + SIGSEGV, "a fault of a thread ends all");
	result(in_child(stops, NULL) == 0, "SIGSTOP stops all threads");
	result(pipe(fds) == 0 && in_threads(open_and_close),
	       "threads open, read and close files of each other");
	for (unsigned i = 0; i < how_often(40); i++)
		if (!in_threads(nothing))
			result(false, "threads come and go");
	result(true, "threads come and go");
}
