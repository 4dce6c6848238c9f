/*
 * locks.c - record locks, and many descriptors. It does the same on Linux (word "locks"). Plain
 * processes: each one asks what another has.
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
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define NAME "/tmp/linux_test.locks"
#define MANY 3000

static int
lock(int fd, int command, int type, off_t start, off_t len)
{
	struct flock l = {.l_type = (short)type,
			  .l_whence = SEEK_SET,
			  .l_start = start,
			  .l_len = len};

	return fcntl(fd, command, &l);
}

/* What another process finds in the way of a lock. */
struct found {
	short type;
	off_t start, len;
	pid_t pid;
	bool valid;
};

/* Asks, as another process, what keeps it from a lock; l_type F_UNLCK: nothing. */
static struct found
ask(int command, int type, off_t start, off_t len)
{
	struct found found = {0};
	int ends[2], fd;
	pid_t pid;

	if (pipe(ends) != 0)
		return found;
	pid = fork();
	if (pid == 0) {
		struct flock l = {.l_type = (short)type,
				  .l_whence = SEEK_SET,
				  .l_start = start,
				  .l_len = len};

		fd = open(NAME, O_RDWR);
		found.valid =
		    fcntl(fd, command, &l) == 0 && (l.l_type == F_UNLCK || l.l_whence == SEEK_SET);
		found.type = l.l_type;
		found.start = l.l_start;
		found.len = l.l_len;
		found.pid = l.l_pid;
		_exit(write(ends[1], &found, sizeof(found)) != sizeof(found));
	}
	close(ends[1]);
	if (read(ends[0], &found, sizeof(found)) != sizeof(found))
		found.valid = false;
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return found;
}

/* Is this in the way of a lock of bytes first to first + len - 1, for writing? */
static bool
is_held(off_t first, off_t len, int type, off_t start, off_t length)
{
	struct found f = ask(F_GETLK, F_WRLCK, first, len);

	return f.valid && f.type == type && f.start == start && f.len == length &&
	       f.pid == getpid();
}

static bool
is_free(off_t first, off_t len)
{
	struct found f = ask(F_GETLK, F_WRLCK, first, len);

	return f.valid && f.type == F_UNLCK && f.start == first && f.len == len && f.pid == 0;
}

static bool
splits_and_joins(void)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600), same = open(NAME, O_RDWR);
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -2, .l_len = -3};
	bool good = fd >= 0 && same >= 0 && lock(fd, F_SETLK, F_WRLCK, 10, 90) == 0;

	/* A hole, of another kind, in the middle; then the hole is free; then all is one again. */
	good = good && is_held(0, 0, F_WRLCK, 10, 90) && lock(fd, F_SETLK, F_RDLCK, 40, 10) == 0 &&
	       is_held(0, 0, F_WRLCK, 10, 30) && is_held(40, 1, F_RDLCK, 40, 10) &&
	       is_held(50, 1, F_WRLCK, 50, 50) && ask(F_GETLK, F_RDLCK, 40, 10).type == F_UNLCK;
	good = good && lock(fd, F_SETLK, F_UNLCK, 35, 20) == 0 && is_free(35, 20) &&
	       is_held(34, 2, F_WRLCK, 10, 25) && is_held(54, 2, F_WRLCK, 55, 45);
	good = good && lock(fd, F_SETLK, F_WRLCK, 35, 20) == 0 && is_held(0, 0, F_WRLCK, 10, 90);
	good = good && lock(fd, F_SETLK, F_WRLCK, 100, 0) == 0 && is_held(500, 1, F_WRLCK, 10, 0);
	/* From the end of the file backwards: bytes 5 to 7. */
	good = good && lock(fd, F_SETLK, F_UNLCK, 0, 0) == 0 && ftruncate(fd, 10) == 0 &&
	       fcntl(fd, F_SETLK, &l) == 0 && is_held(0, 0, F_WRLCK, 5, 3);
	l.l_start = -20;
	good = good && FAILS(fcntl(fd, F_SETLK, &l), EINVAL);
	/* A process's own locks are never in its way; any descriptor that it closes takes all. */
	good = good && lock(same, F_SETLK, F_WRLCK, 0, 0) == 0 && is_held(0, 0, F_WRLCK, 0, 0);
	good = good && close(same) == 0 && is_free(0, 0) && lock(fd, F_SETLK, F_WRLCK, 0, 1) == 0 &&
	       close(open(NAME, O_RDONLY)) == 0 && is_free(0, 0);
	close(fd);
	return good;
}

static int
locks_in_child(void *fd)
{
	return lock(*(int *)fd, F_SETLK, F_RDLCK, 0, 1) == 0 ? 0 : errno == EAGAIN ? 1 : 2;
}

static int
holds_until_end(void *fd)
{
	return lock(*(int *)fd, F_SETLK, F_WRLCK, 0, 0) != 0;
}

static bool
belongs_to_process(void)
{
	int fd = open(NAME, O_RDWR), readable = open(NAME, O_RDONLY),
	    writable = open(NAME, O_WRONLY);
	struct flock bad = {.l_type = 7, .l_whence = SEEK_SET};
	/* A child has none of its parent's locks, and takes its own along when it ends. */
	bool good = fd >= 0 && in_child(holds_until_end, &fd) == 0 && is_free(0, 0) &&
		    lock(fd, F_SETLK, F_WRLCK, 0, 1) == 0 && in_child(locks_in_child, &fd) == 1 &&
		    is_held(0, 0, F_WRLCK, 0, 1) && lock(fd, F_SETLK, F_RDLCK, 0, 1) == 0 &&
		    in_child(locks_in_child, &fd) == 0;

	good = good && FAILS(lock(readable, F_SETLK, F_WRLCK, 0, 1), EBADF) &&
	       FAILS(lock(writable, F_SETLK, F_RDLCK, 0, 1), EBADF) &&
	       lock(readable, F_GETLK, F_WRLCK, 0, 1) == 0;
	good = good && FAILS(fcntl(fd, F_SETLK, &bad), EINVAL) &&
	       FAILS(lock(fd, F_GETLK, F_UNLCK, 0, 1), EINVAL) &&
	       FAILS(lock(fd, F_SETLK, F_RDLCK, 2, INT64_MAX), EOVERFLOW) &&
	       FAILS(fcntl(fd, F_SETLK, NOWHERE), EFAULT) &&
	       FAILS(lock(999, F_SETLK, F_RDLCK, 0, 1), EBADF);
	bad.l_type = F_RDLCK;
	bad.l_whence = 7;
	good = good && FAILS(fcntl(fd, F_SETLK, &bad), EINVAL);
	close(fd);
	close(readable);
	close(writable);
	return good;
}

/* Waits for byte 1 with byte 0 locked. */
static int
waits_crosswise(void *fd)
{
	if (lock(*(int *)fd, F_SETLKW, F_WRLCK, 0, 1) != 0)
		return 1;
	return lock(*(int *)fd, F_SETLKW, F_WRLCK, 1, 1) == 0 ? 0 : errno;
}

/* Returns when that child has byte 0, and sleeps. */
static bool
await_holder(int fd, pid_t pid)
{
	struct flock l;

	do {
		l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
		if (fcntl(fd, F_GETLK, &l) != 0)
			return false;
		sched_yield();
	} while (l.l_type == F_UNLCK);
	return l.l_pid == pid && await_sleep(pid, 0);
}

static bool
waits_and_finds_deadlocks(void)
{
	int fd = open(NAME, O_RDWR), status = 0;
	bool good = lock(fd, F_SETLK, F_WRLCK, 1, 1) == 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(waits_crosswise(&fd));
	good = good && await_holder(fd, pid) && FAILS(lock(fd, F_SETLKW, F_WRLCK, 0, 1), EDEADLK);
	/* When the lock is let go, who waits has both. */
	good = good && lock(fd, F_SETLK, F_UNLCK, 1, 1) == 0 && waitpid(pid, &status, 0) == pid &&
	       status == 0;
	pid = fork();
	if (pid == 0) {
		lock(fd, F_SETLK, F_WRLCK, 0, 0);
		for (;;)
			pause();
	}
	good = good && await_holder(fd, pid);
	on_alarm(0);
	send_alarms(true);
	good = good && FAILS(lock(fd, F_SETLKW, F_RDLCK, 5, 1), EINTR);
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	kill(pid, SIGKILL);
	good = good && lock(fd, F_SETLKW, F_RDLCK, 5, 1) == 0 && waitpid(pid, &status, 0) == pid;
	close(fd);
	return good;
}

static bool
belongs_to_open_file(void)
{
	int one = open(NAME, O_RDWR), two = open(NAME, O_RDWR), same = dup(one);
	struct flock named = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_pid = 1};
	bool good = lock(one, F_OFD_SETLK, F_WRLCK, 3, 4) == 0 &&
		    lock(same, F_OFD_SETLK, F_WRLCK, 3, 4) == 0 &&
		    FAILS(lock(two, F_OFD_SETLK, F_RDLCK, 6, 1), EAGAIN) &&
		    FAILS(lock(two, F_SETLK, F_RDLCK, 6, 1), EAGAIN) &&
		    lock(two, F_OFD_SETLK, F_RDLCK, 7, 1) == 0 &&
		    FAILS(fcntl(one, F_OFD_SETLK, &named), EINVAL);
	struct found f = ask(F_GETLK, F_WRLCK, 0, 0);

	good = good && f.valid && f.type == F_WRLCK && f.start == 3 && f.len == 4 && f.pid == -1;
	/* Only the last descriptor of the open file takes it along. */
	good = good && close(one) == 0 && ask(F_GETLK, F_WRLCK, 0, 5).type == F_WRLCK &&
	       close(same) == 0 && ask(F_GETLK, F_WRLCK, 0, 5).type == F_UNLCK &&
	       ask(F_GETLK, F_WRLCK, 0, 0).type == F_RDLCK;
	close(two);
	return good && ask(F_GETLK, F_WRLCK, 0, 0).type == F_UNLCK;
}

static void *
close_later(void *fd)
{
	while (lock(*(int *)fd, F_SETLK, F_WRLCK, 0, 1) == 0)
		;
	return NULL;
}

/* A thread locks a file that another one closes. Afterwards there is no lock. */
static bool
no_lock_is_left_behind(void)
{
	bool good = true;

	for (unsigned i = 0; i < how_often(30) && good; i++) {
		int fd = open(NAME, O_RDWR);
		pthread_t t;

		good = pthread_create(&t, NULL, close_later, &fd) == 0;
		sched_yield();
		good = good && close(fd) == 0 && pthread_join(t, NULL) == 0 && is_free(0, 0);
	}
	return good;
}

/* What a thread does with a file, and what it was told. */
struct taker {
	int fd, command, error;
	pid_t tid;
};

static void *
takes(void *arg)
{
	struct taker *t = arg;
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	__atomic_store_n(&t->tid, gettid(), __ATOMIC_RELEASE);
	t->error =
	    (t->command == F_SETLKW ? fcntl(t->fd, F_SETLKW, &l) : flock(t->fd, t->command)) == 0
		? 0
		: errno;
	return NULL;
}

/* Starts it; true: it waits. */
static bool
starts_to_wait(struct taker *t, pthread_t *thread)
{
	if (pthread_create(thread, NULL, takes, t) != 0)
		return false;
	while (__atomic_load_n(&t->tid, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	return await_sleep(getpid(), t->tid);
}

/* A descriptor that another thread closes meanwhile gets no lock. */
static bool
closed_files_get_no_lock(void)
{
	int fd = open(NAME, O_RDWR), other = open(NAME, O_RDWR);
	struct taker t = {.fd = fd, .command = F_SETLKW};
	pthread_t thread;
	bool good = lock(other, F_OFD_SETLK, F_WRLCK, 0, 0) == 0 && starts_to_wait(&t, &thread) &&
		    close(fd) == 0 && lock(other, F_OFD_SETLK, F_UNLCK, 0, 0) == 0 &&
		    pthread_join(thread, NULL) == 0 && t.error == EBADF && is_free(0, 0);

	close(other);
	return good;
}

/* The lock that an open file has is never in its way, whichever thread has taken it. */
static bool
threads_change_one_lock(void)
{
	int fd = open(NAME, O_RDWR), other = open(NAME, O_RDWR);
	struct taker t = {.fd = fd, .command = LOCK_EX};
	pthread_t thread;
	bool good = flock(other, LOCK_SH) == 0 && starts_to_wait(&t, &thread) &&
		    flock(fd, LOCK_SH) == 0 && flock(other, LOCK_UN) == 0 &&
		    pthread_join(thread, NULL) == 0 && t.error == 0 &&
		    FAILS(flock(other, LOCK_SH | LOCK_NB), EWOULDBLOCK) &&
		    flock(fd, LOCK_UN) == 0 && flock(other, LOCK_EX | LOCK_NB) == 0;

	close(fd);
	close(other);
	return good;
}

static int
opens_many(void *unused)
{
	struct rlimit old, l = {MANY + 100, MANY + 100};
	static struct pollfd fds[MANY + 101];
	int high, ends[2];
	bool good =
	    getrlimit(RLIMIT_NOFILE, &old) == 0 && old.rlim_max >= l.rlim_cur && pipe(ends) == 0;

	good = good && close_range((unsigned)ends[1] + 1, ~0u, 0) == 0;
	l.rlim_max = old.rlim_max;
	good = good && setrlimit(RLIMIT_NOFILE, &l) == 0;
	for (unsigned i = 0; i < MANY && good; i++) {
		fds[i] = (struct pollfd){.fd = dup(ends[0]), .events = POLLIN};
		good = fds[i].fd == ends[1] + 1 + (int)i;
	}
	high = fds[MANY - 1].fd;
	good = good && poll(fds, MANY, 0) == 0 && write(ends[1], "x", 1) == 1 &&
	       poll(fds, MANY, -1) == MANY && fds[MANY - 1].revents == POLLIN &&
	       FAILS(poll(fds, MANY + 101, 0), EINVAL);
	good = good && fcntl(high, F_SETFD, FD_CLOEXEC) == 0 &&
	       fcntl(high, F_GETFD) == FD_CLOEXEC && fcntl(high - 1, F_GETFD) == 0;
	good = good && dup2(ends[0], MANY + 99) == MANY + 99 &&
	       FAILS(dup2(ends[0], MANY + 100), EBADF) &&
	       FAILS(fcntl(0, F_DUPFD, MANY + 100), EINVAL) &&
	       fcntl(0, F_DUPFD, high + 1) == high + 1;
	/* The lowest one is taken first, also between others. */
	good = good && close(ends[1] + 70) == 0 && dup(0) == ends[1] + 70;
	good = good && close_range((unsigned)ends[1] + 1, ~0u, 0) == 0 &&
	       FAILS(fcntl(high, F_GETFD), EBADF);
	return good ? 0 : 1;
}

static bool
selects_far(void)
{
	struct rlimit old, l;
	fd_set in;
	int ends[2];
	bool good =
	    close_range(3, ~0u, 0) == 0 && getrlimit(RLIMIT_NOFILE, &old) == 0 && pipe(ends) == 0;

	l = (struct rlimit){FD_SETSIZE, old.rlim_max};
	good = good && setrlimit(RLIMIT_NOFILE, &l) == 0 &&
	       dup2(ends[0], FD_SETSIZE - 1) == FD_SETSIZE - 1;
	FD_ZERO(&in);
	for (int fd = 100; fd < 300; fd++) {
		good = good && dup2(ends[0], fd) == fd;
		FD_SET(fd, &in);
	}
	FD_SET(FD_SETSIZE - 1, &in);
	good = good && write(ends[1], "x", 1) == 1 &&
	       select(FD_SETSIZE, &in, NULL, NULL, NULL) == 201 && FD_ISSET(FD_SETSIZE - 1, &in) &&
	       FD_ISSET(299, &in) && !FD_ISSET(300, &in);
	close_range((unsigned)ends[0], ~0u, 0);
	setrlimit(RLIMIT_NOFILE, &old);
	return good;
}

/* select() takes as many descriptors as there are: FD_SETSIZE is a limit of the C library. */
static bool
selects_beyond(void)
{
	enum { FAR = 1500, SIDE = 40 };
	unsigned long in[64] = {0}, out[64] = {0};
	struct timespec now = {0};
	struct rlimit old;
	int ends[2];
	bool good =
	    close_range(3, ~0u, 0) == 0 && getrlimit(RLIMIT_NOFILE, &old) == 0 && pipe(ends) == 0;

	good = good && setrlimit(RLIMIT_NOFILE, &(struct rlimit){4096, old.rlim_max}) == 0 &&
	       dup2(ends[0], FAR) == FAR && dup2(ends[1], FAR + SIDE) == FAR + SIDE &&
	       write(ends[1], "x", 1) == 1;
	in[FAR / 64] = 1ul << FAR % 64;
	good = good && syscall(SYS_pselect6, FAR + 1, in, NULL, NULL, &now, NULL) == 1 &&
	       in[FAR / 64] == 1ul << FAR % 64;
	/* A bit of the last word beyond the number counts as none. */
	in[FAR / 64] |= 1ul << (FAR + 1) % 64;
	good = good && syscall(SYS_pselect6, FAR + 1, in, NULL, NULL, &now, NULL) == 1 &&
	       in[FAR / 64] == 1ul << FAR % 64;
	out[(FAR + SIDE) / 64] = 1ul << (FAR + SIDE) % 64;
	good = good && syscall(SYS_pselect6, 4096, in, out, NULL, &now, NULL) == 2 &&
	       out[(FAR + SIDE) / 64] == 1ul << (FAR + SIDE) % 64;
	/* More than there is room for without the heap, all of which are looked at. */
	for (int i = 100; good && i < 2000; i++) {
		good = i == FAR || i == FAR + SIDE || dup2(ends[1], i) == i;
		in[i / 64] |= 1ul << i % 64;
	}
	good = good && syscall(SYS_pselect6, 2000, in, NULL, NULL, &now, NULL) == 1 &&
	       in[FAR / 64] == 1ul << FAR % 64 && in[100 / 64] == 0 && in[1984 / 64] == 0;
	good = good && read(ends[0], (char[1]){0}, 1) == 1 &&
	       syscall(SYS_pselect6, 2000, in, NULL, NULL, &now, NULL) == 0 && in[FAR / 64] == 0;
	/* Not open: below what is, and beyond. */
	close(FAR);
	in[FAR / 64] = 1ul << FAR % 64;
	good = good && FAILS(syscall(SYS_pselect6, FAR + 1, in, NULL, NULL, &now, NULL), EBADF);
	close_range((unsigned)ends[0], ~0u, 0);
	setrlimit(RLIMIT_NOFILE, &old);
	return good;
}

/* Children have copies of all descriptors, and exec closes those that are marked. */
static int
has_copies(void *top)
{
	int fd = *(int *)top;

	return fcntl(fd, F_GETFD) == FD_CLOEXEC && fcntl(fd - 1, F_GETFD) == 0 &&
		       FAILS(fcntl(fd - 2, F_GETFD), EBADF)
		   ? 0
		   : 1;
}

static bool
children_have_copies(void)
{
	int top = 900;
	bool good = dup2(0, top - 1) == top - 1 && dup3(0, top, O_CLOEXEC) == top &&
		    in_child(has_copies, &top) == 0;

	close(top);
	close(top - 1);
	return good;
}

/* Who waits for a lock of one file does not hear of another file's locks. */
static bool
sleeps_on(void)
{
	static const char switches[] = "\nvoluntary_ctxt_switches:";
	int fd = open(NAME, O_RDWR | O_CREAT, 0600), other = memfd_create("other", 0), status;
	bool good = lock(fd, F_SETLK, F_WRLCK, 0, 1) == 0;
	long before = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(lock(fd, F_SETLKW, F_WRLCK, 0, 1) != 0);
	good = good && await_sleep(pid, 0) && (before = status_number(pid, switches)) > 0;
	for (unsigned i = 0; good && i < 20; i++)
		good = lock(other, F_SETLK, F_WRLCK, 0, 1) == 0 &&
		       lock(other, F_SETLK, F_UNLCK, 0, 1) == 0 && await_sleep(pid, 0);
	good = good && status_number(pid, switches) == before;
	close(other);
	close(fd);
	return waitpid(pid, &status, 0) == pid && status == 0 && good;
}

static bool
creates(void)
{
	int fd = creat(NAME, 0640);
	bool good = write(fd, "text", 4) == 4 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;

	close(fd);
	fd = creat(NAME, 0600);
	good = good && lseek(fd, 0, SEEK_END) == 0 && FAILS(creat("/tmp", 0600), EISDIR);
	close(fd);
	return good;
}

void
test_locks(void)
{
	result(creates(), "creat makes a file, or empties it");
	result(splits_and_joins(), "record locks are split and joined, and found");
	result(sleeps_on(), "who waits for a record lock is not woken for another file");
	result(belongs_to_process(), "record locks belong to a process");
	result(waits_and_finds_deadlocks(),
	       "who waits for a record lock gets it, or a signal, or EDEADLK");
	result(belongs_to_open_file(), "locks of an open file end with its last descriptor");
	result(no_lock_is_left_behind(),
	       "no record lock is left of a file that is closed meanwhile");
	result(closed_files_get_no_lock(), "a descriptor that is closed meanwhile gets no lock");
	result(threads_change_one_lock(), "an open file's lock is not in its own way");
	result(in_child(opens_many, NULL) == 0,
	       "a process has thousands of descriptors, and polls them");
	result(selects_far(), "select() takes descriptors up to 1023");
	result(selects_beyond(), "select() takes as many descriptors as the process may have");
	result(children_have_copies(), "a child has copies of far descriptors");
	unlink(NAME);
}
