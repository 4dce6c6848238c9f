/* files.c - readiness, rights, sizes and times of files; timers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define FILE_NAME "/tmp/linux_files"
#define MARKER    "/sys/kernel/tracing/trace_marker"

static volatile sig_atomic_t alarms;

static void
count_alarm(int sig)
{
	alarms++;
}

static bool
poll_tells(void)
{
	int ends[2];
	char c[5000] = "";
	bool good;

	if (pipe(ends) != 0)
		return false;
	struct pollfd fds[] = {{ends[0], POLLIN, 0},
			       {ends[1], POLLOUT, 0},
			       {-1, POLLIN, 9},
			       {63, POLLIN, 0}};

	good = poll(fds, 2, 0) == 1 && fds[0].revents == 0 && fds[1].revents == POLLOUT;
	good = good && poll(fds, 4, 0) == 2 && fds[2].revents == 0 && fds[3].revents == POLLNVAL;
	good = good && poll(fds, 1, 5) == 0;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], c, sizeof(c)) > 0)
		;
	good = good && errno == EAGAIN && poll(fds, 2, -1) == 1 && fds[0].revents == POLLIN;
	close(ends[1]);
	while (read(ends[0], c, sizeof(c)) > 0)
		;
	good = good && poll(fds, 1, -1) == 1 && (fds[0].revents & POLLHUP);
	close(ends[0]);
	good = good && pipe(ends) == 0 && close(ends[0]) == 0;
	fds[1].fd = ends[1];
	good = good && poll(&fds[1], 1, -1) == 1 && (fds[1].revents & POLLERR);
	close(ends[1]);
	return good && syscall(SYS_ppoll, fds, 65537, NULL, NULL, 8) == -1 && errno == EINVAL;
}

/* A wait ends when another process writes, closes, or sends a signal. */
static bool
waits_end(void)
{
	int ends[2];
	char c;
	bool good;
	pid_t me = getpid(), pid;
	sigset_t usr1, none;
	fd_set set;

	if (pipe(ends) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		usleep(1000);
		_exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
	}
	struct pollfd fd = {ends[0], POLLIN, 0};
	good = poll(&fd, 1, 100000) == 1 && fd.revents == POLLIN && read(ends[0], &c, 1) == 1;
	waitpid(pid, NULL, 0);

	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signal(SIGUSR1, count_alarm);
	alarms = 0;
	pid = fork();
	if (pid == 0) {
		kill(me, SIGUSR1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	good = good && alarms == 0 && ppoll(&fd, 1, NULL, &none) == -1 && errno == EINTR &&
	       alarms == 1;
	raise(SIGUSR1);
	good = good && alarms == 1 && pselect(0, NULL, NULL, NULL, NULL, &none) == -1 &&
	       errno == EINTR && alarms == 2;
	/* A signal ends also a wait that takes no time. */
	raise(SIGUSR1);
	good = good && ppoll(NULL, 0, &(struct timespec){0, 0}, &none) == -1 && errno == EINTR &&
	       alarms == 3;
	raise(SIGUSR1);
	good = good && ppoll(&fd, 1, &(struct timespec){0, 0}, &none) == -1 && errno == EINTR &&
	       alarms == 4;
	raise(SIGUSR1);
	good = good && pselect(0, NULL, NULL, NULL, &(struct timespec){0, 0}, &none) == -1 &&
	       errno == EINTR && alarms == 5;
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	struct timeval span = {0, 1000};
	good =
	    good && select(ends[0] + 1, &set, NULL, NULL, &span) == 0 && !FD_ISSET(ends[0], &set);
	close(ends[1]);
	FD_SET(ends[0], &set);
	good = good && select(ends[0] + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(ends[0], &set);
	close(ends[0]);
	FD_SET(60, &set);
	return good && select(61, &set, NULL, NULL, NULL) == -1 && errno == EBADF;
}

/* How often it slept, if a signal ended its wait. */
static int
waits_for_no_file(void)
{
	struct rusage before, after;
	int r;

	signal(SIGUSR1, count_alarm);
	getrusage(RUSAGE_SELF, &before);
	r = poll(NULL, 0, -1);
	getrusage(RUSAGE_SELF, &after);
	return r == -1 && errno == EINTR ? (int)(after.ru_nvcsw - before.ru_nvcsw) : 99;
}

/* While others wait for a file that changes 30 times. */
static bool
sleeps_once(void)
{
	struct pollfd fd = {.events = POLLIN};
	int to[2], back[2], status = -1;
	pid_t pid, other;
	char c = 0;

	if (pipe(to) != 0 || pipe(back) != 0)
		return false;
	fd.fd = to[0];
	other = fork();
	if (other == 0)
		while (poll(&fd, 1, -1) != 1 || read(to[0], &c, 1) != 1 ||
		       write(back[1], &c, 1) == 1)
			continue;
	pid = fork();
	if (pid == 0)
		_exit(waits_for_no_file());
	if (pid > 0)
		await_sleep(pid, 0);
	for (unsigned i = 0; i < 30 && pid > 0 && other > 0; i++)
		if (write(to[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			break;
	if (pid > 0) {
		kill(pid, SIGUSR1);
		waitpid(pid, &status, 0);
	}
	if (other > 0) {
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		close(to[i]);
		close(back[i]);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) < 10;
}

/* An error is readable; an end is nothing exceptional, and ends no wait for that. */
static bool
select_knows_errors(void)
{
	struct timeval span = {0, 20000};
	int ends[2];
	fd_set set;
	long from;
	bool good = pipe(ends) == 0 && close(ends[0]) == 0;

	FD_ZERO(&set);
	FD_SET(ends[1], &set);
	good = good && select(ends[1] + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(ends[1], &set);
	close(ends[1]);
	good = good && pipe(ends) == 0 && close(ends[1]) == 0;
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	from = now_ns(CLOCK_MONOTONIC);
	good = good && select(ends[0] + 1, NULL, NULL, &set, &span) == 0 &&
	       !FD_ISSET(ends[0], &set) && now_ns(CLOCK_MONOTONIC) - from >= 20 * MS;
	close(ends[0]);
	return good;
}

/* Another process changes the array while poll() waits. */
static bool
poll_writes_revents(void)
{
	struct pollfd *p =
	    mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2], status = -1;
	bool good = pipe(ends) == 0;
	pid_t pid;

	*p = (struct pollfd){ends[0], POLLIN, 0};
	pid = fork();
	if (pid == 0)
		_exit(poll(p, 1, -1) != 1);
	good = good && await_sleep(pid, 0);
	p->fd = 77;
	p->events = POLLPRI;
	good = good && write(ends[1], "x", 1) == 1 && waitpid(pid, &status, 0) == pid &&
	       status == 0 && p->fd == 77 && p->events == POLLPRI && p->revents == POLLIN;
	close(ends[0]);
	close(ends[1]);
	return munmap(p, sizeof(*p)) == 0 && good;
}

static int
as_another_user(void *arg)
{
	struct timespec times[2] = {{5, 0}, {5, 0}};

	if (setuid(1000) != 0)
		return 1;
	if (chmod(FILE_NAME, 0777) != -1 || errno != EPERM || chown(FILE_NAME, 1000, 1000) != -1 ||
	    errno != EPERM || utimensat(AT_FDCWD, FILE_NAME, times, 0) != -1 || errno != EPERM)
		return 2;
	if (open(FILE_NAME, O_RDONLY) != -1 || errno != EACCES || truncate(FILE_NAME, 0) != -1)
		return 3;
	return truncate("/tmp/linux_theirs", 1) == 0 && chmod("/tmp/linux_theirs", 0) == 0 &&
		       chown("/tmp/linux_theirs", 0, -1) == -1
		   ? 0
		   : 4;
}

/* Each of the two times alone, and both. */
static bool
both_times_change(void)
{
	struct timespec used[2] = {{1000, 0}, {0, UTIME_OMIT}},
			changed[2] = {{0, UTIME_OMIT}, {2000, 0}};
	struct timespec both[2] = {{3000, 0}, {4000, 0}};
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);
	struct stat before, st;
	bool good = fd >= 0 && fstat(fd, &before) == 0 && futimens(fd, used) == 0 &&
		    fstat(fd, &st) == 0 && st.st_atim.tv_sec == 1000 &&
		    st.st_mtim.tv_sec == before.st_mtim.tv_sec;

	good = good && futimens(fd, changed) == 0 && fstat(fd, &st) == 0 &&
	       st.st_atim.tv_sec == 1000 && st.st_mtim.tv_sec == 2000;
	good = good && utimensat(AT_FDCWD, FILE_NAME, both, 0) == 0 && fstat(fd, &st) == 0 &&
	       st.st_atim.tv_sec == 3000 && st.st_mtim.tv_sec == 4000;
	/* a write changes one of them */
	good = good && write(fd, "x", 1) == 1 && fstat(fd, &st) == 0 && st.st_atim.tv_sec == 3000 &&
	       st.st_mtim.tv_sec > 4000;
	good = good && utimensat(AT_FDCWD, FILE_NAME, NULL, 0) == 0 && fstat(fd, &st) == 0 &&
	       st.st_atim.tv_sec >= before.st_mtim.tv_sec;
	close(fd);
	return unlink(FILE_NAME) == 0 && good;
}

/* Is its ctime a later one than *was? Linux's clock of files is coarse, and ext2 has seconds. */
static bool
is_changed_later(int fd, struct timespec *was)
{
	struct timespec old = *was;
	struct stat st;
	bool coarse;

	if (fstat(fd, &st) != 0)
		return false;
	*was = st.st_ctim;
	coarse = !is_kestrel() || was->tv_nsec == 0;
	return was->tv_sec > old.tv_sec ||
	       (was->tv_sec == old.tv_sec && was->tv_nsec > old.tv_nsec - coarse);
}

/* What changes a file sets its ctime, which nobody chooses. */
static bool
changes_are_timed(void)
{
	struct timespec times[2] = {{1000, 0}, {1000, 0}}, was = {1600000000, 0};
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);
	bool good = fd >= 0 && futimens(fd, times) == 0 && is_changed_later(fd, &was);

	good = good && fchmod(fd, 0600) == 0 && is_changed_later(fd, &was);
	good = good && fchown(fd, geteuid() != 0 ? geteuid() : 1000, -1) == 0 &&
	       is_changed_later(fd, &was);
	good = good && write(fd, "x", 1) == 1 && is_changed_later(fd, &was);
	good = good && ftruncate(fd, 0) == 0 && is_changed_later(fd, &was);
	good = good && link(FILE_NAME, FILE_NAME "2") == 0 && is_changed_later(fd, &was);
	good = good && rename(FILE_NAME "2", FILE_NAME "3") == 0 && is_changed_later(fd, &was);
	good = good && unlink(FILE_NAME "3") == 0 && is_changed_later(fd, &was);
	close(fd);
	return unlink(FILE_NAME) == 0 && good;
}

/* FILE_NAME is root's. */
static bool
theirs_change(void)
{
	int fd = open("/tmp/linux_theirs", O_RDWR | O_CREAT, 0600);
	bool good = fd >= 0 && fchown(fd, 1000, 1000) == 0 && ftruncate(fd, -1) == -1 &&
		    errno == EINVAL && in_child(as_another_user, NULL) == 0;

	close(fd);
	return unlink("/tmp/linux_theirs") == 0 && good;
}

static bool
attributes_change(void)
{
	struct timespec times[2] = {{0, UTIME_OMIT}, {86400, 5}};
	struct stat st;
	char text[8] = "";
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, "kestrel", 7) != 7 || ftruncate(fd, 3) != 0 ||
	    ftruncate(fd, 6) != 0 || pread(fd, text, 8, 0) != 6 ||
	    memcmp(text, "kes\0\0\0", 6) != 0)
		return false;
	if (fchmod(fd, 0600) != 0 || futimens(fd, times) != 0 || fstat(fd, &st) != 0 ||
	    (st.st_mode & 07777) != 0600 || st.st_mtim.tv_sec != 86400 || st.st_mtim.tv_nsec != 5 ||
	    st.st_size != 6)
		return false;
	if (utimensat(AT_FDCWD, FILE_NAME, NULL, 0) != 0 || stat(FILE_NAME, &st) != 0 ||
	    st.st_mtim.tv_sec < 1600000000)
		return false;
	close(fd);
	if (geteuid() == 0 && !theirs_change())
		return false;
	fd = open(FILE_NAME, O_RDONLY);
	bool good = ftruncate(fd, 0) == -1 && errno == EINVAL && truncate("/tmp", 0) == -1 &&
		    errno == EISDIR;
	close(fd);
	return unlink(FILE_NAME) == 0 && good;
}

/* A file that cannot be read is no program, and interprets none. */
static bool
unreadable_is_no_program(void)
{
	static const char script[] = "#!" MARKER "\n";
	char *const none[] = {NULL};
	int fd = open(FILE_NAME, O_WRONLY | O_CREAT, 0755);
	bool good =
	    write(fd, script, strlen(script)) > 0 && close(fd) == 0 && chmod(MARKER, 0755) == 0;

	good = good && execve(MARKER, none, none) == -1 && errno == EINVAL &&
	       execve(FILE_NAME, none, none) == -1 && errno == EINVAL;
	return chmod(MARKER, 0220) == 0 && unlink(FILE_NAME) == 0 && good;
}

/* A write up to the largest size of a file ends there. */
static bool
writes_end_at_the_largest_size(void)
{
	const off_t most = 1l << 44;
	int fd = memfd_create("largest", 0); /* in memory, where that is 16 TiB */
	bool good = pwrite(fd, "text", 4, most - 3) == 3 && pwrite(fd, "x", 1, most) == -1 &&
		    errno == EFBIG && pwrite(fd, "x", 1, most - 1) == 1;

	return close(fd) == 0 && good;
}

/* memory: holes are known page by page, as those of all files of Linux are. */
static bool
is_large(int fd, bool memory)
{
	const off_t far = 5l << 30, page = 4096;
	char text[4] = "", *p = MAP_FAILED;
	struct stat st;
	bool good = pwrite(fd, "far", 4, far + page) == 4 && fstat(fd, &st) == 0 &&
		    st.st_size == far + page + 4 && st.st_blocks < 200 &&
		    pread(fd, text, 4, far) == 4 && text[0] == 0 &&
		    pread(fd, text, 4, far + page) == 4 && strcmp(text, "far") == 0;

	if (good)
		p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, far);
	good = good && p != MAP_FAILED && strcmp(p + page, "far") == 0 && p[1] == 0;
	if (p != MAP_FAILED) {
		p[page] = 'b';
		munmap(p, 2 * page);
	}
	good = good && pread(fd, text, 4, far + page) == 4 && strcmp(text, "bar") == 0 &&
	       lseek(fd, far + page + 1, SEEK_DATA) == far + page + 1 &&
	       lseek(fd, far + page + 1, SEEK_HOLE) == far + page + 4 &&
	       lseek(fd, far + page + 4, SEEK_DATA) == -1 && errno == ENXIO;
	/* Others may know it of larger pieces, or of none. */
	good = good &&
	       (!memory ||
		(ftruncate(fd, 3 * far) == 0 && pwrite(fd, "x", 1, 0) == 1 &&
		 lseek(fd, 0, SEEK_HOLE) == page && lseek(fd, page, SEEK_DATA) == far &&
		 lseek(fd, far + page, SEEK_HOLE) == far + 2 * page &&
		 lseek(fd, far + 2 * page, SEEK_DATA) == -1 && errno == ENXIO &&
		 fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page, 2 * far) == 0 &&
		 lseek(fd, page, SEEK_DATA) == -1 && errno == ENXIO));
	return good && ftruncate(fd, far) == 0 && ftruncate(fd, 2 * far) == 0 &&
	       pread(fd, text, 4, far + page) == 4 && text[0] == 0;
}

static bool
large_files(void)
{
	int fd = open(FILE_NAME, O_RDWR | O_CREAT, 0600), memory = memfd_create("large", 0);
	bool good = is_large(fd, false) && is_large(memory, true);

	return close(memory) == 0 && close(fd) == 0 && unlink(FILE_NAME) == 0 && good;
}

static int
dies_of_alarm(void *arg)
{
	alarm(1);
	alarm(0);
	ualarm(1000, 0);
	for (;;)
		pause();
	return 0;
}

static bool
timers_fire(void)
{
	struct itimerval every = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}}, old;

	signal(SIGALRM, count_alarm);
	alarms = 0;
	if (setitimer(ITIMER_REAL, &every, NULL) != 0)
		return false;
	while (alarms < 5)
		pause();
	if (getitimer(ITIMER_REAL, &old) != 0 || old.it_interval.tv_usec != 2000 ||
	    old.it_value.tv_sec * 1000000 + old.it_value.tv_usec == 0)
		return false;
	if (setitimer(ITIMER_REAL, &off, &old) != 0 || old.it_interval.tv_usec != 2000 ||
	    getitimer(ITIMER_REAL, &old) != 0 || old.it_value.tv_usec != 0)
		return false;
	signal(SIGALRM, SIG_DFL);
	alarm(100);
	if (alarm(0) != 100)
		return false;
	/* It tells the nearest second. */
	if (setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {100, 400000}}, NULL) != 0 ||
	    alarm(0) != 100)
		return false;
	every.it_value.tv_usec = 1000000;
	return setitimer(ITIMER_REAL, &every, NULL) == -1 && errno == EINVAL &&
	       in_child(dies_of_alarm, NULL) == 128 + SIGALRM;
}

#define CUT_PAGES 64
#define PAGE      4096

static volatile char *cut_map;
static uint32_t cut_round, cut_done; /* rounds that have begun; in which all pages were touched */
static volatile unsigned cut_at;     /* the page that is touched now */
static sigjmp_buf cut_back;

static void
on_cut(int sig)
{
	siglongjmp(cut_back, 1);
}

/* Writes to each page, up to where the file ends. */
static void
write_pages(void)
{
	if (sigsetjmp(cut_back, 1) == 0)
		for (unsigned i = 0; i < CUT_PAGES; i++)
			cut_map[(cut_at = i) * PAGE] = 'x';
}

/* Does it once in each round. */
static void *
touches_pages(void *rounds)
{
	for (uint32_t n = 1; n <= *(unsigned *)rounds; n++) {
		while (__atomic_load_n(&cut_round, __ATOMIC_ACQUIRE) != n)
			sched_yield();
		write_pages();
		__atomic_store_n(&cut_done, n, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Cuts a file while another thread touches its pages, and makes it as large as it was. */
static bool
cut_pages_are_gone(void)
{
	static char found[PAGE * CUT_PAGES];
	unsigned rounds = how_often(200), old = 0;
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	void *map = mmap(NULL, sizeof(found), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool good = map != MAP_FAILED && ftruncate(fd, sizeof(found)) == 0;
	pthread_t t;

	signal(SIGBUS, on_cut);
	cut_map = map;
	cut_round = cut_done = 0;
	if (!good || pthread_create(&t, NULL, touches_pages, &rounds) != 0)
		return false;
	for (uint32_t n = 1; n <= rounds; n++) {
		cut_at = 0;
		__atomic_store_n(&cut_round, n, __ATOMIC_RELEASE);
		while (cut_at < n % CUT_PAGES && __atomic_load_n(&cut_done, __ATOMIC_ACQUIRE) != n)
			sched_yield();
		good &= ftruncate(fd, 0) == 0;
		while (__atomic_load_n(&cut_done, __ATOMIC_ACQUIRE) != n)
			sched_yield();
		good &= ftruncate(fd, sizeof(found)) == 0 &&
			pread(fd, found, sizeof(found), 0) == sizeof(found);
		for (unsigned i = 0; i < CUT_PAGES; i++)
			old += found[i * PAGE] != '\0';
	}
	pthread_join(t, NULL);
	signal(SIGBUS, SIG_DFL);
	munmap(map, sizeof(found));
	return close(fd) == 0 && unlink(FILE_NAME) == 0 && good && old == 0;
}

/* A file was changed by its map. */
static bool
map_changes_time(int fd, const volatile char *p)
{
	const struct timespec old[2] = {{1000, 0}, {1000, 0}};
	struct stat before, after;
	bool good = futimens(fd, old) == 0 && mlock((void *)(uintptr_t)p, 1) == 0 && p[0] != 'x' &&
		    fstat(fd, &before) == 0;

	((volatile char *)p)[0]++;
	return good && before.st_mtime == 1000 && fstat(fd, &after) == 0 && after.st_mtime != 1000;
}

static bool
map_is_noticed(void)
{
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool good = p != MAP_FAILED && ftruncate(fd, 2 * PAGE) == 0 && map_changes_time(fd, p) &&
		    msync(p, PAGE, MS_SYNC) == 0 && map_changes_time(fd, p) &&
		    map_changes_time(fd, p + PAGE) && p[0] == 2 && p[PAGE] == 1;
	struct statfs fs;

	/* A disk's file is written back. */
	good = good && fstatfs(fd, &fs) == 0 &&
	       (fs.f_type != EXT2_SUPER_MAGIC || (fsync(fd) == 0 && map_changes_time(fd, p)));
	return munmap(p, 2 * PAGE) == 0 && close(fd) == 0 && unlink(FILE_NAME) == 0 && good;
}

static int
without_terminal(void *arg)
{
	setsid();
	return open("/dev/tty", O_RDWR) == -1 && errno == ENXIO ? 0 : 1;
}

static bool
devices_work(void)
{
	unsigned char a[64] = {0}, b[64] = {0};
	int fd = open("/dev/urandom", O_RDONLY), full = open("/dev/full", O_RDWR);
	bool good = read(fd, a, 64) == 64 && read(fd, b, 64) == 64 && memcmp(a, b, 64) != 0 &&
		    write(full, a, 1) == -1 && errno == ENOSPC;

	close(fd);
	close(full);
	return good && in_child(without_terminal, NULL) == 0;
}

static bool
system_is_told(void)
{
	struct sysinfo s;

	return sysinfo(&s) == 0 && s.totalram * s.mem_unit > 32 << 20 && s.freeram < s.totalram &&
	       s.freeram > 0 && s.procs >= 2;
}

void
test_files(void)
{
	result(poll_tells(), "poll tells what is ready");
	result(waits_end(), "poll and select end when a file is ready or a signal comes");
	result(sleeps_once(), "a wait for no file is woken by no change of one");
	result(select_knows_errors(), "select: an error is readable, an end not exceptional");
	result(poll_writes_revents(), "poll writes what it has found, and nothing else");
	result(both_times_change(),
	       "utimensat: the time of the last use, and that of the last change");
	result(changes_are_timed(), "each change of a file sets its ctime");
	result(attributes_change(), "chmod, chown, truncate and utimensat, for those who may");
	/* The marker of another system keeps its mode, and its files are larger. */
	result(!is_kestrel() || unreadable_is_no_program(),
	       "a file that cannot be read is not executed");
	result(!is_kestrel() || writes_end_at_the_largest_size(),
	       "a write ends where a file may not grow");
	result(large_files(), "files of several GiB are written, mapped and cut at their ends");
	result(map_is_noticed(), "what is written to a shared map changes the file's time");
	result(cut_pages_are_gone(), "what was cut off a file is gone, who else touches it");
	result(timers_fire(), "setitimer and alarm send SIGALRM");
	result(devices_work(), "/dev/urandom, /dev/full, /dev/tty");
	result(system_is_told(), "sysinfo");
}
