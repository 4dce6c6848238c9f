/*
 * admin.c - groups, mounts, the machine's name and messages: what those who look after a machine
 * may do, and others not. It changes the machine, so only the guest runs it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PLACE "/tmp/linux_admin"

static bool
fails(long r, int error)
{
	return r == -1 && errno == error;
}

/* Becomes user 1000 of group 1001, and of one more. */
static bool
become_joe(void)
{
	const gid_t groups[] = {29};

	return setgroups(1, groups) == 0 && setgid(1001) == 0 && setuid(1000) == 0;
}

static int
in_groups(void *arg)
{
	gid_t g[40] = {0};
	struct stat st;
	int fd;

	if (setgroups(33, g) != -1 || errno != EINVAL || !fails(setgroups(2, (gid_t *)8), EFAULT))
		return 1;
	if (!become_joe() || getgid() != 1001 || getegid() != 1001 || getgroups(0, NULL) != 1 ||
	    getgroups(40, g) != 1 || g[0] != 29)
		return 2;
	if (!fails(setgroups(0, NULL), EPERM) || !fails(setgid(29), EPERM) || setgid(1001) != 0)
		return 3;
	/* arg: a file of root:29, mode 0640 */
	if (open(arg, O_RDONLY) < 0 || !fails(open(arg, O_RDWR), EACCES) ||
	    !fails(chown(arg, -1, 1001), EPERM))
		return 4;
	fd = open(PLACE "/own", O_RDWR | O_CREAT, 0606);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != 1000 || st.st_gid != 1001)
		return 5;
	if (fchown(fd, -1, 29) != 0 || !fails(fchown(fd, -1, 30), EPERM) ||
	    !fails(fchown(fd, 0, -1), EPERM) || fstat(fd, &st) != 0 || st.st_gid != 29)
		return 6;
	return 0;
}

/* The group's bits count for its members even if they give less than those for others. */
static int
as_member(void *arg)
{
	return become_joe() && fails(open(PLACE "/less", O_RDONLY), EACCES) ? 0 : 1;
}

static bool
groups_count(void)
{
	char file[] = PLACE "/root";
	int fd = open(file, O_RDWR | O_CREAT, 0640),
	    less = open(PLACE "/less", O_RDWR | O_CREAT, 0604);
	const gid_t two[] = {5, 6};
	gid_t g[2];

	unlink(PLACE "/own"); /* of an earlier run */
	return fd >= 0 && fchown(fd, 0, 29) == 0 && fchown(less, 0, 29) == 0 && close(fd) == 0 &&
	       close(less) == 0 && in_child(in_groups, file) == 0 &&
	       in_child(as_member, NULL) == 0 && setgroups(2, two) == 0 &&
	       fails(getgroups(1, g), EINVAL) && getgroups(2, g) == 2 && g[1] == 6 &&
	       setgroups(0, NULL) == 0;
}

static bool
type_is(const char *path, unsigned long type)
{
	struct statfs s;

	return statfs(path, &s) == 0 && (unsigned long)s.f_type == type && s.f_namelen == 255;
}

static bool
mounts_cover(void)
{
	struct stat a, b;
	char cwd[64];
	int fd;

	mkdir(PLACE "/m", 0700);
	close(open(PLACE "/m/under", O_CREAT | O_RDWR, 0600));
	close(open(PLACE "/o", O_CREAT | O_RDWR, 0600));
	if (mount("name", PLACE "/m", "tmpfs", MS_NOSUID, "mode=750") != 0 ||
	    stat(PLACE "/m", &a) != 0 || (a.st_mode & 07777) != 0750 || stat(PLACE, &b) != 0 ||
	    a.st_dev == b.st_dev || access(PLACE "/m/under", F_OK) == 0)
		return false;
	fd = open(PLACE "/m/f", O_CREAT | O_RDWR, 0600);
	if (fd < 0 || !fails(umount(PLACE "/m"), EBUSY) ||
	    !fails(rename(PLACE "/m/f", PLACE "/f"), EXDEV) ||
	    !fails(link(PLACE "/m/f", PLACE "/f"), EXDEV) || !fails(rmdir(PLACE "/m"), EBUSY) ||
	    !fails(rename(PLACE "/m", PLACE "/n"), EBUSY) ||
	    !fails(rename(PLACE "/m", PLACE "/o"), ENOTDIR) ||
	    !fails(renameat2(AT_FDCWD, PLACE "/m", AT_FDCWD, PLACE "/o", RENAME_EXCHANGE), EBUSY) ||
	    rename(PLACE "/m", PLACE "/m") != 0 || unlink(PLACE "/o") != 0 ||
	    !fails(mount("x", PLACE "/m/f", "tmpfs", 0, NULL), ENOTDIR))
		return false;
	close(fd);
	if (chdir(PLACE "/m") != 0 || getcwd(cwd, sizeof(cwd)) == NULL ||
	    strcmp(cwd, PLACE "/m") != 0 || !fails(umount(PLACE "/m"), EBUSY) || chdir("..") != 0 ||
	    getcwd(cwd, sizeof(cwd)) == NULL || strcmp(cwd, PLACE) != 0 || chdir("/") != 0)
		return false;
	if (umount(PLACE "/m") != 0 || access(PLACE "/m/under", F_OK) != 0 ||
	    !fails(umount(PLACE "/m"), EINVAL) || !fails(umount("/proc"), EBUSY) ||
	    !fails(mount("x", PLACE "/m", "nosuch", 0, NULL), ENODEV) ||
	    !fails(mount("x", PLACE "/m", "proc", MS_RDONLY, NULL), EINVAL) ||
	    !fails(mount("x", PLACE "/m", "tmpfs", 0, "nosuch=1"), EINVAL) ||
	    !fails(mount("x", PLACE "/none", "tmpfs", 0, NULL), ENOENT) ||
	    !fails(mount("x", "/dev", "tmpfs", 0, NULL), EBUSY) ||
	    !fails(mount("x", PLACE "/m", "tmpfs", MS_REMOUNT, NULL), EINVAL) ||
	    mount("x", "/", "tmpfs", MS_REMOUNT | MS_NOATIME, NULL) != 0)
		return false;
	/* What is detached lives on for those who use it. */
	mount("x", PLACE "/m", "proc", 0, NULL);
	fd = open(PLACE "/m/self/stat", O_RDONLY);
	return fails(umount(PLACE "/m"), EBUSY) && umount2(PLACE "/m", MNT_DETACH) == 0 &&
	       read(fd, cwd, 1) == 1 && close(fd) == 0 && access(PLACE "/m/under", F_OK) == 0;
}

/* Goes `levels` directories down from PLACE/m, and makes them. */
static bool
dig(unsigned levels)
{
	bool good = chdir(PLACE "/m") == 0;

	for (unsigned i = 0; good && i < levels; i++)
		good = mkdir("d", 0700) == 0 && close(open("f", O_CREAT | O_RDWR, 0600)) == 0 &&
		       chdir("d") == 0;
	return good;
}

#define DEEP 2000

static bool
mounts_nest(void)
{
	char source[4096], line[256];
	bool seen = false;
	FILE *f;

	/* A directory is in use however deep it is; without users the tree goes with its root. */
	if (mount("x", PLACE "/m", "tmpfs", 0, NULL) != 0 || !dig(DEEP) ||
	    !fails(umount(PLACE "/m"), EBUSY) || chdir("/") != 0 || umount(PLACE "/m") != 0 ||
	    mount("x", PLACE "/m", "tmpfs", 0, NULL) != 0 || !dig(DEEP) ||
	    umount2(PLACE "/m", MNT_DETACH) != 0 || !fails(mkdir("e", 0700), ENOENT) ||
	    chdir("/") != 0)
		return false;
	if (mount("x", PLACE "/m", "tmpfs", 0, NULL) != 0 || mkdir(PLACE "/m/in", 0700) != 0 ||
	    mount("x", PLACE "/m/in", "tmpfs", 0, NULL) != 0 || !fails(umount(PLACE "/m"), EBUSY) ||
	    !fails(umount2(PLACE "/m", MNT_DETACH), EBUSY) || umount(PLACE "/m/in") != 0 ||
	    umount(PLACE "/m") != 0)
		return false;
	/* The name of what is mounted is cut off: also one that never ends. */
	memset(source, 'x', sizeof(source));
	if (mount(source, PLACE "/m", "tmpfs", 0, NULL) != 0)
		return false;
	f = fopen("/proc/mounts", "r");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		seen |= strspn(line, "x") == 63 &&
			strcmp(line + 63, " " PLACE "/m tmpfs rw 0 0\n") == 0;
	fclose(f);
	return seen && umount(PLACE "/m") == 0;
}

/* What /proc shows of a process that changed its user: nothing secret, until it executes. */
static int
as_joe_reads(void *path)
{
	return become_joe() && fails(open(path, O_RDONLY), EACCES) ? 0 : 1;
}

static bool
changed_users_hide(void)
{
	int ends[2], back[2];
	char path[64], c;
	bool good = pipe(ends) == 0 && pipe(back) == 0;
	pid_t pid = fork();

	if (pid == 0) {
		close(ends[1]);
		if (become_joe() && write(back[1], "x", 1) == 1)
			read(ends[0], &c, 1);
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	good = good && read(back[0], &c, 1) == 1 && in_child(as_joe_reads, path) == 0;
	close(ends[0]);
	close(ends[1]);
	close(back[0]);
	close(back[1]);
	return waitpid(pid, NULL, 0) == pid && good;
}

static bool
types_are_told(void)
{
	int ends[2];
	struct statfs s;

	return type_is("/", 0x01021994) && type_is("/proc/self/stat", 0x9fa0) &&
	       type_is("/sys/kernel/tracing/trace", 0x74726163) &&
	       type_is("/dev/null", 0x01021994) && type_is("/sys", 0x62656572) &&
	       statfs("/", &s) == 0 && s.f_bfree > 0 && s.f_bfree < s.f_blocks && pipe(ends) == 0 &&
	       fstatfs(ends[0], &s) == 0 && s.f_type == 0x50495045 && close(ends[0]) == 0 &&
	       close(ends[1]) == 0 && fails(fstatfs(ends[0], &s), EBADF) &&
	       fails(statfs("/nosuch", &s), ENOENT);
}

static bool
names_are_set(void)
{
	char name[66] = "";
	struct utsname u;

	memset(name, 'x', 65);
	return sethostname("falcon", 6) == 0 && setdomainname("sky", 3) == 0 && uname(&u) == 0 &&
	       strcmp(u.nodename, "falcon") == 0 && strcmp(u.domainname, "sky") == 0 &&
	       fails(sethostname(name, 65), EINVAL) &&
	       fails(syscall(SYS_sethostname, 8, 3), EFAULT) && sethostname(name, 64) == 0 &&
	       uname(&u) == 0 && strlen(u.nodename) == 64 && sethostname("kestrel", 7) == 0 &&
	       setdomainname("(none)", 6) == 0;
}

static bool
messages_are_read(void)
{
	static char text[70000], again[70000];
	int size = klogctl(10, NULL, 0), n = klogctl(3, text, size), k;

	if (size < 4096 || n <= 0 || text[0] != '[' || text[n - 1] != '\n')
		return false;
	/* The newest lines that fit. */
	k = klogctl(3, again, n - 1);
	if (k <= 0 || k >= n || memcmp(text + n - k, again, (size_t)k) != 0 || again[0] != '[')
		return false;
	if (klogctl(9, NULL, 0) < n || klogctl(2, again, 10) != 10 ||
	    memcmp(again, text, 10) != 0 || klogctl(2, again, 10) != 10 ||
	    memcmp(again, text + 10, 10) != 0)
		return false;
	return klogctl(5, NULL, 0) == 0 && klogctl(3, text, size) == 0 &&
	       fails(klogctl(99, NULL, 0), EINVAL) && fails(klogctl(3, NULL, 5), EINVAL) &&
	       fails(klogctl(3, text, -1), EINVAL) && fails(klogctl(8, NULL, 9), EINVAL) &&
	       klogctl(6, NULL, 0) == 0 && klogctl(7, NULL, 0) == 0;
}

static int
as_stranger(void *arg)
{
	char text[64];

	if (!become_joe())
		return 1;
	return fails(mount("x", PLACE "/m", "tmpfs", 0, NULL), EPERM) &&
		       fails(umount("/proc"), EPERM) && fails(sethostname("x", 1), EPERM) &&
		       fails(setdomainname("x", 1), EPERM) && fails(reboot(RB_AUTOBOOT), EPERM) &&
		       fails(klogctl(5, NULL, 0), EPERM) && klogctl(3, text, sizeof(text)) >= 0
		   ? 0
		   : 2;
}

#define DAY 86400

static int64_t
seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec;
}

static bool
set_clock(int64_t s)
{
	return clock_settime(CLOCK_REALTIME, &(struct timespec){s, 0}) == 0;
}

static int64_t
modified(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mtim.tv_sec : -1;
}

/* For an hour of the clock, if nobody sets it. */
static int
sleeps(void *arg)
{
	struct timespec t = {*(int64_t *)arg + 3600, 0};

	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

static int
waits_for_futex(void *arg)
{
	struct timespec t = {*(int64_t *)arg + 3600, 0};
	uint32_t word = 0;

	return fails(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &t,
			     NULL, FUTEX_BITSET_MATCH_ANY),
		     ETIMEDOUT)
		   ? 0
		   : 1;
}

/* Timers until a time of the clock, which moves: ahead, and back. */
static bool
timers_move(void)
{
	int64_t now = seconds(CLOCK_REALTIME);
	struct itimerspec hour = {{0, 0}, {now + 3600, 0}}, left;
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK),
	    told = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
	struct pollfd p[2] = {{fd, POLLIN, 0}, {told, POLLIN, 0}};
	uint64_t n = 0;
	timer_t timer;
	bool good;

	good = timer_create(CLOCK_REALTIME, &none, &timer) == 0 &&
	       timer_settime(timer, TIMER_ABSTIME, &hour, NULL) == 0 &&
	       timerfd_settime(fd, TFD_TIMER_ABSTIME, &hour, NULL) == 0 &&
	       timerfd_settime(told, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &hour, NULL) == 0;
	good = good && set_clock(now - DAY) && timerfd_gettime(fd, &left) == 0 &&
	       left.it_value.tv_sec > DAY && timer_gettime(timer, &left) == 0 &&
	       left.it_value.tv_sec > DAY && poll(p, 2, 0) == 1 && p[1].revents == POLLIN &&
	       fails(read(told, &n, 8), ECANCELED) && fails(read(told, &n, 8), EAGAIN) &&
	       fails(read(fd, &n, 8), EAGAIN);
	good = good && set_clock(now + 7200) && poll(p, 1, -1) == 1 && read(fd, &n, 8) == 8 &&
	       n == 1 && timer_gettime(timer, &left) == 0 && left.it_value.tv_sec == 0 &&
	       left.it_value.tv_nsec == 0;
	/* It is told, and set: then it expires. */
	good =
	    good &&
	    fails(timerfd_settime(told, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &hour, NULL),
		  ECANCELED) &&
	    poll(p + 1, 1, -1) == 1 && read(told, &n, 8) == 8 && n == 1;
	close(fd);
	close(told);
	return timer_delete(timer) == 0 && good;
}

/* It is that of files, too; of those that are there only once they change. */
static bool
clock_is_set(void)
{
	int64_t real = seconds(CLOCK_REALTIME), boot = seconds(CLOCK_MONOTONIC), then;
	struct timespec t;
	struct timeval tv;
	int status = 1, other = 1;
	bool good = real > boot + 1000;
	pid_t pid, waiter;

	close(open(PLACE "/old", O_CREAT | O_RDWR, 0600));
	good = good && modified(PLACE "/old") - real <= 60 && set_clock(real + DAY);
	then = modified(PLACE "/old");
	gettimeofday(&tv, NULL);
	close(open(PLACE "/new", O_CREAT | O_RDWR, 0600));
	good = good && then - real <= 60 && tv.tv_sec >= real + DAY &&
	       tv.tv_sec < real + DAY + 60 && time(NULL) >= tv.tv_sec &&
	       modified(PLACE "/new") >= real + DAY && modified(PLACE) >= real + DAY &&
	       utimensat(AT_FDCWD, PLACE "/old", NULL, 0) == 0 &&
	       modified(PLACE "/old") >= real + DAY && seconds(CLOCK_MONOTONIC) < boot + 60;
	/* Whoever sleeps until a time of the clock sleeps until then. */
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 20 * MS;
	t.tv_sec += t.tv_nsec / (1000 * MS);
	t.tv_nsec %= 1000 * MS;
	good = good && clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0;
	then = t.tv_sec * 1000 * MS + t.tv_nsec;
	clock_gettime(CLOCK_REALTIME, &t);
	good = good && t.tv_sec * 1000 * MS + t.tv_nsec >= then;
	then = seconds(CLOCK_REALTIME);
	pid = fork();
	if (pid == 0)
		_exit(sleeps(&then));
	waiter = fork();
	if (waiter == 0)
		_exit(waits_for_futex(&then));
	good = await_sleep(pid, 0) && await_sleep(waiter, 0) && good;
	tv = (struct timeval){then + 7200, 0};
	good = syscall(SYS_settimeofday, &tv, NULL) == 0 && good &&
	       waitpid(pid, &status, 0) == pid && status == 0 &&
	       waitpid(waiter, &other, 0) == waiter && other == 0 && timers_move();
	good = good && fails(clock_settime(CLOCK_MONOTONIC, &t), EINVAL) &&
	       fails(clock_settime(99, &t), EINVAL) &&
	       fails(syscall(SYS_clock_settime, CLOCK_REALTIME, NOWHERE), EFAULT) &&
	       fails(clock_settime(CLOCK_REALTIME, &(struct timespec){-1, 0}), EINVAL) &&
	       fails(clock_settime(CLOCK_REALTIME, &(struct timespec){real, 1000 * MS}), EINVAL) &&
	       fails(clock_settime(CLOCK_REALTIME, &(struct timespec){0, 0}), EINVAL) &&
	       fails(syscall(SYS_settimeofday, &(struct timeval){real, 1000000}, NULL), EINVAL) &&
	       fails(syscall(SYS_settimeofday, NOWHERE, NULL), EFAULT);
	pid = fork();
	if (pid == 0)
		_exit(become_joe() && fails(clock_settime(CLOCK_REALTIME, &t), EPERM) ? 0 : 1);
	good = waitpid(pid, &status, 0) == pid && status == 0 && good;
	unlink(PLACE "/old");
	unlink(PLACE "/new");
	return set_clock(real + seconds(CLOCK_MONOTONIC) - boot) && good;
}

void
test_admin(void)
{
	if (!is_kestrel())
		return;
	mkdir(PLACE, 0777);
	chmod(PLACE, 0777);
	result(groups_count(), "a file's group, and supplementary groups, give rights");
	result(mounts_cover(),
	       "mount covers a directory, and umount uncovers it if nobody is there");
	result(mounts_nest(), "trees of any depth, and mounts in mounts, are unmounted");
	result(changed_users_hide(), "a process that changed its user is not that user's in /proc");
	result(types_are_told(), "statfs tells which file system it is");
	result(clock_is_set(),
	       "a clock that is set is that of files, and of sleeps, timers and futexes");
	result(names_are_set(), "sethostname and setdomainname");
	result(messages_are_read(), "klogctl reads the kernel's messages");
	result(in_child(as_stranger, NULL) == 0,
	       "users may not mount, reboot, or name the machine");
	result(fails(syscall(SYS_reboot, 1, 2, RB_AUTOBOOT, 0), EINVAL) &&
		   fails(reboot(0x12345678), EINVAL) && reboot(RB_DISABLE_CAD) == 0,
	       "reboot wants its magic numbers");
}
