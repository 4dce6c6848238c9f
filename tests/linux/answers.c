/* answers.c - what calls answer to what programs seldom ask. The same on Linux. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif
#define NOSYMFOLLOW 0x2000 /* of statfs() */
#define PAGE        4096u
#define NOBODY      65534
#define DIR_NAME    "/tmp/linux_test.answers"

/* The first thing that is wrong is told. */
static bool
errors_of_maps(void)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool good =
	    p != MAP_FAILED && mlock(p, PAGE) == 0 && FAILS(msync(p, PAGE, MS_INVALIDATE), EBUSY) &&
	    FAILS(msync(p, PAGE, MS_SYNC | MS_INVALIDATE), EBUSY) && msync(p, PAGE, MS_SYNC) == 0 &&
	    munlock(p, PAGE) == 0 && msync(p, PAGE, MS_INVALIDATE) == 0 && munmap(p, PAGE) == 0;

	return good && mmap(NULL, 0, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED &&
	       errno == EBADF &&
	       mmap(NULL, 0, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	       errno == EINVAL;
}

static void
ignores(int sig)
{
}

static int
keeps_timeouts(void *arg)
{
	struct timespec t = {0, 2 * MS};
	struct timeval v = {0, 2000};
	struct timespec most = {3600, 0};
	timer_t timer;
	struct itimerspec soon = {.it_value = {0, 2 * MS}, .it_interval = {0, 2 * MS}};

	signal(SIGALRM, ignores);
	if (timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0)
		return 0;
	if (personality(0x4000000) == -1) /* STICKY_TIMEOUTS */
		return 0;
	if (syscall(SYS_ppoll, NULL, 0, &t, NULL, 8) != 0 || t.tv_nsec != 2 * MS)
		return 0;
	if (syscall(SYS_pselect6, 0, NULL, NULL, NULL, &t, NULL) != 0 || t.tv_nsec != 2 * MS)
		return 0;
#ifdef SYS_select
	if (syscall(SYS_select, 0, NULL, NULL, NULL, &v) != 0 || v.tv_usec != 2000)
		return 0;
#endif
	if (timer_settime(timer, 0, &soon, NULL) != 0 ||
	    !FAILS(syscall(SYS_ppoll, NULL, 0, &most, NULL, 8), EINTR) || most.tv_sec != 3600 ||
	    most.tv_nsec != 0 || timer_delete(timer) != 0)
		return 0;
	return personality(0) != -1 && syscall(SYS_ppoll, NULL, 0, &t, NULL, 8) == 0 &&
	       t.tv_nsec == 0 && v.tv_sec == 0;
}

/* A process's directory in /proc stands for it, but nothing in it does. */
static bool
signals_by_directory(void)
{
	char path[64];
	int status, dir, task;
	pid_t pid = fork();
	bool good;

	while (pid == 0)
		pause();
	snprintf(path, sizeof(path), "/proc/%d", pid);
	dir = open(path, O_DIRECTORY | O_RDONLY);
	strcat(path, "/task");
	task = open(path, O_DIRECTORY | O_RDONLY);
	good = FAILS(syscall(SYS_pidfd_send_signal, task, SIGTERM, NULL, 0), EBADF) &&
	       FAILS(syscall(SYS_pidfd_send_signal, 0, SIGTERM, NULL, 0), EBADF) &&
	       syscall(SYS_pidfd_send_signal, dir, SIGTERM, NULL, 0) == 0 &&
	       waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGTERM &&
	       FAILS(syscall(SYS_pidfd_send_signal, dir, 0, NULL, 0), ESRCH);
	close(dir);
	close(task);
	return good;
}

/* Which list of mutexes a thread has, others of the same user may ask. */
static int
robust_list_of(void *arg)
{
	pid_t pid = *(pid_t *)arg;
	void *head = NULL, *own = NULL;
	size_t size;

	if (syscall(SYS_get_robust_list, pid, &head, &size) != 0 ||
	    syscall(SYS_get_robust_list, 0, &own, &size) != 0 || head != own || head == NULL)
		return 0;
	if (!FAILS(syscall(SYS_get_robust_list, 0x3ffffff0, &head, &size), ESRCH))
		return 0;
	return geteuid() != 0 ||
	       (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0 &&
		FAILS(syscall(SYS_get_robust_list, pid, &head, &size), EPERM));
}

/* Only what may have to be waited for is in a set of epoll. */
static bool
waits_for_devices(void)
{
	static const struct {
		const char *name;
		bool can;
	} devs[] = {{"/dev/null", false},
		    {"/dev/zero", false},
		    {"/dev/full", false},
		    {"/dev/random", true}};
	int set = epoll_create1(0);
	bool good = set >= 0;

	for (unsigned i = 0; i < sizeof(devs) / sizeof(devs[0]); i++) {
		int fd = open(devs[i].name, O_RDONLY);
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int r = watch(set, EPOLL_CTL_ADD, fd, EPOLLIN, 0);

		good = good && fd >= 0 && (devs[i].can ? r == 0 : FAILS(r, EPERM));
		good = good && poll(&p, 1, 0) == 1 && p.revents == POLLIN;
		/* When there is enough, nothing waits to be written. */
		p.events = POLLIN | POLLOUT;
		good = good && (!devs[i].can || (poll(&p, 1, 0) == 1 && p.revents == POLLIN));
		close(fd);
	}
	close(set);
	return good;
}

static bool
tells_entropy(void)
{
	FILE *f = fopen("/proc/sys/kernel/random/entropy_avail", "r");
	int fd = open("/dev/urandom", O_RDONLY), n = -1, told = -2;
	bool good = f != NULL && fscanf(f, "%d", &n) == 1 && ioctl(fd, RNDGETENTCNT, &told) == 0 &&
		    n == told && n > 0 && FAILS(ioctl(fd, TCGETS, NOWHERE), EINVAL);

	if (f != NULL)
		fclose(f);
	close(fd);
	return good;
}

/* System V's settings of a terminal are the others, in short. */
static bool
sets_terminal_as_of_old(void)
{
	struct termio old;
	struct termios now, then;
	unsigned char bytes[sizeof(old)];
	int master, slave;
	bool good = ptys_pair(&master, &slave) && ioctl(slave, TCGETS, &now) == 0 &&
		    ioctl(slave, TCGETA, &old) == 0 && old.c_lflag == (unsigned short)now.c_lflag &&
		    old.c_iflag == (unsigned short)now.c_iflag &&
		    memcmp(old.c_cc, now.c_cc, sizeof(old.c_cc)) == 0;
	memset(bytes, 0, sizeof(bytes));
	good = good && ioctl(slave, TCGETA, bytes) == 0 && bytes[sizeof(bytes) - 1] == 0;

	old.c_lflag &= (unsigned short)~ECHO;
	old.c_cc[VEOF] = 'z';
	good = good && ioctl(slave, TCSETA, &old) == 0 && ioctl(slave, TCGETS, &then) == 0;
	now.c_lflag &= ~(tcflag_t)ECHO;
	now.c_cc[VEOF] = 'z';
	good = good && then.c_lflag == now.c_lflag && then.c_iflag == now.c_iflag &&
	       memcmp(then.c_cc, now.c_cc, sizeof(now.c_cc)) == 0;
	good = good && ioctl(slave, TCSETAW, &old) == 0 && ioctl(slave, TCSETAF, &old) == 0 &&
	       FAILS(ioctl(slave, TCGETA, NOWHERE), EFAULT) &&
	       FAILS(ioctl(slave, TCSETA, NOWHERE), EFAULT);
	close(master);
	close(slave);
	return good;
}

/* Which requests and levels a socket knows. */
static bool
knows_levels(void)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0), v = 0;
	int ping = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), who = -getpgrp();
	socklen_t len = sizeof(v);
	bool good = FAILS(getsockopt(tcp, 500, 1, &v, &len), EOPNOTSUPP) &&
		    FAILS(getsockopt(tcp, IPPROTO_UDP, 1, &v, &len), EOPNOTSUPP) &&
		    FAILS(getsockopt(udp, IPPROTO_TCP, 1, &v, &len), EOPNOTSUPP) &&
		    FAILS(getsockopt(tcp, IPPROTO_TCP, -1, &v, &len), ENOPROTOOPT) &&
		    FAILS(getsockopt(tcp, IPPROTO_IP, -1, &v, &len), ENOPROTOOPT) &&
		    FAILS(getsockopt(udp, IPPROTO_UDP, -1, &v, &len), ENOPROTOOPT) &&
		    FAILS(setsockopt(tcp, 500, 1, &v, len), ENOPROTOOPT) &&
		    (ping < 0 || /* not everybody may */
		     FAILS(getsockopt(ping, IPPROTO_UDP, 1, &v, &len), EOPNOTSUPP)) &&
		    FAILS(ioctl(udp, SIOCATMARK, &v), ENOTTY);

	v = 5;
	good = good && ioctl(tcp, SIOCATMARK, &v) == 0 && v == 0 &&
	       FAILS(ioctl(tcp, SIOCATMARK, NOWHERE), EFAULT);
	good = good && ioctl(udp, SIOCGPGRP, &v) == 0 && v == 0 &&
	       ioctl(udp, SIOCSPGRP, &who) == 0 && ioctl(udp, FIOGETOWN, &v) == 0 && v == who;
	who = getpid();
	good = good && ioctl(tcp, FIOSETOWN, &who) == 0 && fcntl(tcp, F_GETOWN) == who &&
	       FAILS(ioctl(tcp, FIOSETOWN, NOWHERE), EFAULT);
	close(ping);
	close(tcp);
	close(udp);
	return good;
}

/* Who sends through a connection is known: it is not told. */
static bool
tells_no_sender(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int to = socket(AF_INET, SOCK_STREAM, 0), by = socket(AF_INET, SOCK_STREAM, 0), end;
	char c = 0;
	bool good = bind(to, (struct sockaddr *)&a, len) == 0 && listen(to, 1) == 0 &&
		    getsockname(to, (struct sockaddr *)&a, &len) == 0 &&
		    connect(by, (struct sockaddr *)&a, len) == 0;

	end = accept(to, NULL, NULL);
	good = good && end >= 0 && write(end, "xy", 2) == 2 &&
	       recvfrom(by, &c, 1, 0, (struct sockaddr *)-1, &len) == 1 && len == 0 && c == 'x';
	len = sizeof(a);
	good = good && recvfrom(by, &c, 1, 0, (struct sockaddr *)&a, &len) == 1 && len == 0;
	close(end);
	close(by);
	close(to);
	return good;
}

static int
sets_bits(void *arg)
{
	if (prctl(PR_SET_SECUREBITS, 16) != 0 || prctl(PR_GET_SECUREBITS) != 16 ||
	    prctl(PR_GET_KEEPCAPS) != 1 || prctl(PR_SET_SECUREBITS, 0) != 0 ||
	    prctl(PR_GET_KEEPCAPS) != 0)
		return 0;
	if (!FAILS(prctl(PR_SET_SECUREBITS, 16 | 1 << 12), EPERM) || prctl(PR_GET_SECUREBITS) != 0)
		return 0;
	return setresuid(NOBODY, NOBODY, NOBODY) == 0 && FAILS(prctl(PR_SET_SECUREBITS, 0), EPERM);
}

/* What was set is told; what was not is 0, not what follows from the niceness. */
static int
tells_own_priority(void *arg)
{
	return syscall(SYS_ioprio_set, 1, 0, 0) == 0 && syscall(SYS_ioprio_get, 1, 0) == 0 &&
	       syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 5) == 0 &&
	       syscall(SYS_ioprio_get, 1, 0) == (2 << 13 | 5);
}

/* /proc has what the program was told as it began. */
static bool
tells_auxv(void)
{
	unsigned long pair[2], seen = 0;
	FILE *f = fopen("/proc/self/auxv", "r");
	bool good = f != NULL;

	while (good && fread(pair, sizeof(pair), 1, f) == 1 && pair[0] != AT_NULL) {
		/* glibc has an AT_HWCAP of its own */
		good = pair[0] == AT_HWCAP || getauxval(pair[0]) == pair[1];
		seen |= pair[0] == AT_PAGESZ || pair[0] == AT_ENTRY ? pair[0] : 0;
	}
	good = good && pair[0] == AT_NULL && seen == (AT_PAGESZ | AT_ENTRY) && fgetc(f) == EOF;
	if (f != NULL)
		fclose(f);
	return good;
}

/* Of the first process, from which all have it; elsewhere somebody may have changed it. */
static bool
limits_locks_at_first(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_MEMLOCK, &r) == 0 &&
	       (!is_kestrel() || (r.rlim_cur == 8 << 20 && r.rlim_max == 8 << 20));
}

#define GONE "LINUX_TEST_GONE"

/* The rest of the environment moves over what is taken away, and two NULLs end it. */
int
answers_as_executed(void)
{
	return unsetenv(GONE) == 0 && tells_auxv() ? 0 : 1;
}

static bool
tells_auxv_later(void)
{
	bool good = setenv(GONE, "", 1) == 0 && execute_self("answers-executed") == 0;

	unsetenv(GONE);
	return good;
}

static int
follows_no_links(void *arg)
{
	struct statvfs s;
	bool good =
	    mkdir(DIR_NAME, 0700) == 0 && mount("t", DIR_NAME, "tmpfs", MS_NOSYMFOLLOW, NULL) == 0;

	good = good && close(open(DIR_NAME "/file", O_CREAT | O_RDWR, 0600)) == 0 &&
	       symlink("file", DIR_NAME "/link") == 0 && symlink(".", DIR_NAME "/here") == 0 &&
	       FAILS(open(DIR_NAME "/link", O_RDONLY), ELOOP) &&
	       FAILS(open(DIR_NAME "/here/file", O_RDONLY), ELOOP) &&
	       close(open(DIR_NAME "/link", O_PATH | O_NOFOLLOW)) == 0 &&
	       statvfs(DIR_NAME, &s) == 0 && (s.f_flag & NOSYMFOLLOW);
	good = good && mount(NULL, DIR_NAME, NULL, MS_REMOUNT, NULL) == 0 &&
	       close(open(DIR_NAME "/here/link", O_RDONLY)) == 0 && statvfs(DIR_NAME, &s) == 0 &&
	       !(s.f_flag & NOSYMFOLLOW);
	umount(DIR_NAME);
	return (rmdir(DIR_NAME) == 0) & good;
}

void
test_answers(void)
{
	pid_t self = getpid();

	result(errors_of_maps(), "mmap and msync say what is wrong first");
	result(in_child(keeps_timeouts, NULL) == 1,
	       "STICKY_TIMEOUTS: what is left of a time is not told");
	result(signals_by_directory(), "pidfd_send_signal takes /proc/PID for the process");
	result(in_child(robust_list_of, &self) == 1,
	       "get_robust_list tells another thread's list, to who may trace it");
	result(waits_for_devices(), "a set of epoll takes no device that is always ready");
	result(tells_entropy(), "/dev/urandom tells its entropy as /proc/sys does");
	result(sets_terminal_as_of_old(), "TCGETA and TCSETA are TCGETS and TCSETS in short");
	result(knows_levels(), "getsockopt of a level that is not the socket's is EOPNOTSUPP");
	result(limits_locks_at_first(), "without CAP_IPC_LOCK, 8 MiB may be locked");
	result(tells_auxv(), "/proc/PID/auxv is what the program was told");
	result(tells_auxv_later(), "/proc/PID/auxv stays where the environment changes");
	result(tells_no_sender(), "recvfrom of a connection tells no address");
	result(in_child(tells_own_priority, NULL) == 1,
	       "ioprio_get of a thread tells what was set");
	if (geteuid() != 0)
		return;
	result(in_child(sets_bits, NULL) == 1, "PR_SET_SECUREBITS keeps rights, for who may");
	result(in_child(follows_no_links, NULL) == 1,
	       "on a mount with nosymfollow no link is followed");
}
