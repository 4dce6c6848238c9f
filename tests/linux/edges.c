/*
 * edges.c - edges of calls that programs rely on. The same on Linux (word "edges").
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define DIR  "/tmp/linux_test.edges"
#define PAGE 4096ul

/* A new file with these bytes. */
static int
file_with(const char *name, const char *text)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);

	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? fd : -1;
}

/* Can a descriptor of O_PATH do nothing with the file itself? */
static bool
place_only(int fd)
{
	struct iovec v = {(char[1]){0}, 1};
	char c;

	return FAILS(read(fd, &c, 1), EBADF) && FAILS(write(fd, "x", 1), EBADF) &&
	       FAILS(lseek(fd, 0, SEEK_SET), EBADF) && FAILS(ftruncate(fd, 0), EBADF) &&
	       FAILS(fchmod(fd, 0600), EBADF) && FAILS(fsync(fd), EBADF) &&
	       FAILS(readv(fd, &v, 1), EBADF) && FAILS(ioctl(fd, FIONREAD, &c), EBADF) &&
	       FAILS(fcntl(fd, F_SETFL, O_NONBLOCK), EBADF) &&
	       mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EBADF;
}

static bool
paths_are_opened(void)
{
	int plain = file_with(DIR "/plain", "0123456789"), place, other, again, dir;
	int here = open(".", O_PATH);
	char text[16] = "", path[64];
	struct stat s;
	bool good;

	place = open(DIR "/plain", O_PATH | O_RDWR | O_TRUNC | O_CREAT, 0);
	good = place >= 0 && place_only(place) && fstat(place, &s) == 0 && s.st_size == 10 &&
	       (fcntl(place, F_GETFL) & (O_PATH | O_ACCMODE)) == O_PATH &&
	       fcntl(place, F_SETFD, FD_CLOEXEC) == 0;
	other = dup(place);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", other);
	again = open(path, O_RDONLY);
	good &= other >= 0 && place_only(other) && read(again, text, 10) == 10 &&
		strcmp(text, "0123456789") == 0;
	close(again);
	close(other);
	close(place);
	/* a link itself */
	good &= symlink("nowhere", DIR "/link") == 0;
	place = open(DIR "/link", O_PATH | O_NOFOLLOW);
	memset(text, 0, sizeof(text));
	good &= place >= 0 && fstat(place, &s) == 0 && S_ISLNK(s.st_mode) &&
		readlinkat(place, "", text, sizeof(text)) == 7 && strcmp(text, "nowhere") == 0 &&
		FAILS(readlinkat(plain, "", text, sizeof(text)), ENOENT) &&
		FAILS(open(DIR "/link", O_PATH), ENOENT) &&
		FAILS(open(DIR "/link", O_PATH | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
	close(place);
	/* a pipe, without waiting for its other end; a directory, where paths begin */
	good &= mkfifo(DIR "/fifo", 0600) == 0;
	place = open(DIR "/fifo", O_PATH);
	good &= place >= 0 && place_only(place);
	close(place);
	dir = open(DIR, O_PATH | O_DIRECTORY);
	good &= faccessat(dir, "plain", R_OK, 0) == 0 && fchdir(dir) == 0 &&
		access("plain", F_OK) == 0 && fchdir(here) == 0;
	close(dir);
	close(here);
	close(plain);
	return good;
}

/* Somebody else may know that a file is there, though not open it. */
static int
as_another(void *arg)
{
	int place;

	if (setgid(4711) != 0 || setuid(4711) != 0 || !FAILS(open(DIR "/plain", O_RDONLY), EACCES))
		return 1;
	place = open(DIR "/plain", O_PATH);
	if (place < 0 || close(place) != 0)
		return 2;
	return FAILS(open("/dev/null", O_RDONLY | O_NOATIME), EPERM) ? 0 : 3;
}

/* Where nothing can go around the cache, nobody is told that it does. */
static bool
direct_is_refused(void)
{
	int fd = open("/proc/self/comm", O_RDWR);
	bool good = FAILS(open("/dev/null", O_WRONLY | O_TRUNC | O_DIRECT), EINVAL) &&
		    FAILS(open("/proc/self/comm", O_RDONLY | O_DIRECT), EINVAL) &&
		    FAILS(fcntl(fd, F_SETFL, O_DIRECT | O_NONBLOCK), EINVAL) &&
		    !(fcntl(fd, F_GETFL) & (O_DIRECT | O_NONBLOCK));
	int place = open("/dev/null", O_PATH | O_DIRECT);

	return good && place >= 0 && close(place) == 0 && close(fd) == 0;
}

/* A signal that is ignored and blocked waits, for sigwait() or a handler. */
static bool
ignored_signals_wait(void)
{
	sigset_t set, old, pending;
	siginfo_t info;
	bool good;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	signal(SIGUSR2, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, &old);
	kill(getpid(), SIGUSR2);
	good = sigpending(&pending) == 0 && sigismember(&pending, SIGUSR2) &&
	       sigtimedwait(&set, &info, &(struct timespec){0, 0}) == SIGUSR2;
	kill(getpid(), SIGUSR2);
	sigprocmask(SIG_SETMASK, &old, NULL); /* ignored, now */
	good &= sigpending(&pending) == 0 && !sigismember(&pending, SIGUSR2);
	signal(SIGUSR2, SIG_DFL);
	return good;
}

static sigjmp_buf back;

static void
come_back(int sig)
{
	siglongjmp(back, sig);
}

/* Where there is no stack for a handler, that of SIGSEGV runs on its own. */
static bool
bad_stacks_are_handled(void)
{
	char *stack = mmap(NULL, 16 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction act = {.sa_handler = come_back}, old;
	stack_t s = {.ss_sp = stack, .ss_size = 16 * PAGE}, none = {.ss_flags = SS_DISABLE};
	int sig;

	sigaction(SIGSEGV, &act, &old);
	act.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &act, NULL);
	sigaltstack(&s, NULL);
	sig = sigsetjmp(back, 1);
	if (sig == 0)
		kill(getpid(), SIGUSR1);
	sigaltstack(&none, NULL);
	sigaction(SIGSEGV, &old, NULL);
	signal(SIGUSR1, SIG_DFL);
	munmap(stack, 16 * PAGE);
	return sig == SIGSEGV;
}

static bool
lengths_are_checked(void)
{
	char from[16] = "a", to[16] = "b";
	struct iovec good = {from, sizeof(from)}, bad = {from, (size_t)-1}, into = {to, sizeof(to)};

	return process_vm_readv(getpid(), &into, 1, &good, 1, 0) == sizeof(to) && to[0] == 'a' &&
	       FAILS(process_vm_readv(getpid(), &into, 1, &bad, 1, 0), EINVAL) &&
	       FAILS(process_vm_readv(getpid(), &bad, 1, &good, 1, 0), EINVAL) &&
	       FAILS(process_vm_writev(getpid(), &bad, 1, &good, 1, 0), EINVAL);
}

static bool
pipes_tell_and_take(void)
{
	char *many = calloc(1, 1 << 20);
	struct iovec v = {many, 1 << 20};
	int ends[2], n = 77, room;
	ssize_t taken;
	bool good;

	if (many == NULL || pipe(ends) != 0)
		return false;
	room = fcntl(ends[0], F_SETPIPE_SZ, 65536);
	good = room >= 65536 && fcntl(ends[1], F_GETPIPE_SZ) == room &&
	       fcntl(ends[1], F_SETPIPE_SZ, 1) > 0 && fcntl(ends[1], F_SETPIPE_SZ, 65536) == room &&
	       FAILS(fcntl(ends[1], F_SETPIPE_SZ, -1), EINVAL);
	good &= ioctl(ends[0], FIONREAD, &n) == 0 && n == 0 && write(ends[1], "abc", 3) == 3 &&
		ioctl(ends[0], FIONREAD, &n) == 0 && n == 3;
	/* as much as there is room for, and it does not wait for more */
	taken = vmsplice(ends[1], &v, 1, 0);
	good &= taken > 0 && taken < 1 << 20 && ioctl(ends[0], FIONREAD, &n) == 0 && n > 3 &&
		FAILS(vmsplice(ends[1], &v, 1, SPLICE_F_NONBLOCK), EAGAIN);
	close(ends[0]);
	close(ends[1]);
	free(many);
	return good;
}

/* Waits until /proc says that the first thread sleeps, while this one runs. */
static void *
see_sleep(void *arg)
{
	return await_sleep(getpid(), 0) ? arg : NULL;
}

static bool
a_process_is_its_first_thread(void)
{
	int yes = 1;
	pthread_t t;
	void *seen = NULL;

	return pthread_create(&t, NULL, see_sleep, &yes) == 0 && pthread_join(t, &seen) == 0 &&
	       seen == &yes;
}

static bool
personality_is_kept(void)
{
	int old = personality(0xffffffff);
	bool good = old >= 0 && personality(ADDR_COMPAT_LAYOUT | STICKY_TIMEOUTS) == old &&
		    personality(0xffffffff) == (ADDR_COMPAT_LAYOUT | STICKY_TIMEOUTS);

	personality((unsigned long)old);
	return good;
}

static int
execute_nameless(void *arg)
{
	char *env[] = {EDGES_NAMELESS "=1", NULL}, *none[] = {NULL};

	execve(linux_test_path(), none, env);
	return 1;
}

int
edges_nameless(int argc, char *argv[])
{
	return argc == 1 && argv[0][0] == '\0' && argv[1] == NULL ? 42 : 2;
}

static bool
maps_of_zeroes(void)
{
	int fd = open("/dev/zero", O_RDWR), status = 0;
	char *mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *ours = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool good = mine != MAP_FAILED && ours != MAP_FAILED && mine[5] == 0 && ours[5] == 0;
	pid_t pid;

	if (!good)
		return false;
	pid = fork();
	if (pid == 0) {
		mine[5] = ours[5] = 1;
		_exit(0);
	}
	good = waitpid(pid, &status, 0) == pid && mine[5] == 0 && ours[5] == 1;
	munmap(mine, PAGE);
	munmap(ours, PAGE);
	close(fd);
	return good;
}

static bool
maps_refuse_what_they_do_not_know(void)
{
	int fd = file_with(DIR "/map", "x");
	bool good = mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 0x400, fd, 0) == MAP_FAILED &&
		    errno == EOPNOTSUPP;
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | MAP_POPULATE, fd, 0);

	good &= p != MAP_FAILED && FAILS(mprotect(NULL, PAGE, PROT_READ), ENOMEM) &&
		mprotect(p, 0, PROT_READ) == 0 &&
		FAILS(mprotect((char *)p + 1, PAGE, PROT_READ), EINVAL);
	munmap(p, PAGE);
	close(fd);
	return good;
}

static bool
data_and_holes_are_found(void)
{
	int fd = file_with(DIR "/holes", "0123456789");
	bool good = lseek(fd, 3, SEEK_DATA) == 3 && lseek(fd, 3, SEEK_HOLE) == 10 &&
		    lseek(fd, 0, SEEK_CUR) == 10 && FAILS(lseek(fd, 10, SEEK_DATA), ENXIO) &&
		    FAILS(lseek(fd, 10, SEEK_HOLE), ENXIO) &&
		    FAILS(lseek(fd, -1, SEEK_DATA), ENXIO) && FAILS(lseek(fd, 0, 5), EINVAL);

	close(fd);
	return good;
}

static bool
sendfile_stores_its_offset(void)
{
	int fd = file_with(DIR "/send", "0123456789"), ends[2];
	off_t *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), own = 10;
	bool good = pipe(ends) == 0 && FAILS(sendfile(ends[1], fd, at, 4), EFAULT) &&
		    sendfile(ends[1], fd, &own, 4) == 0 && own == 10;

	good &= ftruncate(fd, 0) == 0 && FAILS(sendfile(ends[1], fd, at, 4), EFAULT);
	munmap(at, PAGE);
	close(fd);
	close(ends[0]);
	close(ends[1]);
	return good;
}

/* A child's group is its parent's to choose until it executes. */
static bool
groups_are_chosen_before(void)
{
	int ends[2], status;
	char c;
	bool good = pipe2(ends, O_CLOEXEC) == 0;
	pid_t pid = fork();

	if (pid == 0) {
		execl(linux_test_path(), "linux_test", "edges-wait", NULL);
		_exit(1);
	}
	close(ends[1]);
	good &= read(ends[0], &c, 1) == 0 && /* it executes */
		FAILS(setpgid(pid, pid), EACCES) && FAILS(setpgid(pid, getpgrp()), EACCES) &&
		getpgid(pid) == getpgrp();
	close(ends[0]);
	kill(pid, SIGKILL);
	good &= waitpid(pid, &status, 0) == pid;
	pid = fork();
	if (pid == 0)
		_exit(pause());
	good &= setpgid(pid, pid) == 0 && getpgid(pid) == pid;
	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && good;
}

static bool
wrong_arguments_are_told(void)
{
	int ends[2], status;
	struct stat s;
	char c = 'x';
	struct iovec v = {&c, 1};
	bool good = pipe(ends) == 0 && FAILS(pwrite(ends[0], &c, 1, 0), ESPIPE) &&
		    FAILS(pread(ends[1], &c, 1, 0), ESPIPE) &&
		    FAILS(pwritev(ends[0], &v, 1, 0), ESPIPE) &&
		    FAILS(fstatat(AT_FDCWD, "/", &s, 1 << 20), EINVAL) &&
		    FAILS(waitpid(INT_MIN, &status, WNOHANG), ESRCH);

	close(ends[0]);
	close(ends[1]);
	return good;
}

/* O_TRUNC takes set-id bits of a file that was there, not of a new one. */
static int
new_files_keep_bits(void *arg)
{
	struct stat s;

	if (setgid(4711) != 0 || setuid(4711) != 0)
		return 1;
	umask(0);
	if (close(open(DIR "/open/new", O_CREAT | O_TRUNC | O_WRONLY, 02775)) != 0 ||
	    stat(DIR "/open/new", &s) != 0 || (s.st_mode & 07777) != 02775)
		return 2;
	/* in a directory with the bit, whose group is not the user's */
	if (close(open(DIR "/group/new", O_CREAT | O_WRONLY, 02775)) != 0 ||
	    stat(DIR "/group/new", &s) != 0 || s.st_mode & 02000 || s.st_gid != 4712)
		return 3;
	umask(010);
	return close(open(DIR "/group/newer", O_CREAT | O_WRONLY, 02775)) == 0 &&
		       stat(DIR "/group/newer", &s) == 0 && !(s.st_mode & 02000)
		   ? 0
		   : 4;
}

/* ---- faults ---- */

static sigjmp_buf after_fault;
static siginfo_t fault_info;
static uintptr_t fault_pc;

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	fault_info = *info;
	fault_pc = frame_pc(context);
	siglongjmp(after_fault, 1);
}

static void __attribute__((noinline)) fault(const struct port_fault *f)
{
	if (sigsetjmp(after_fault, 1) == 0)
		f->make();
}

static int
faults_tell_why(void *arg)
{
	const struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	int bad = 0;

	(void)arg;
	for (const struct port_fault *f = port_faults; f->make != NULL; f++) {
		uintptr_t at;

		memset(&fault_info, 0, sizeof(fault_info));
		sigaction(f->sig, &act, NULL);
		fault(f);
		at = (uintptr_t)fault_info.si_addr;
		if (f->may_miss && fault_info.si_signo == 0)
			continue;
		if (fault_info.si_signo == f->sig && fault_info.si_code == f->code &&
		    at == (f->placed ? fault_pc : 0))
			continue;
		bad = 1;
		printf("# fault %td: signal %d code %d at %#lx, pc %#lx\n", f - port_faults,
		       fault_info.si_signo, fault_info.si_code, at, fault_pc);
		fflush(stdout);
	}
	return bad;
}

/* ---- a call that is to begin again ---- */

static void *call_code;
static volatile sig_atomic_t repaired;

static void
repair_code(int sig, siginfo_t *info, void *context)
{
	struct timespec moment = {0, 1000};

	(void)sig, (void)info, (void)context;
	repaired =
	    nanosleep(&moment, NULL) == 0 && mprotect(call_code, PAGE, PROT_READ | PROT_EXEC) == 0;
}

static void *
stop_the_sleeper(void *arg)
{
	pid_t pid = getpid();

	(void)arg;
	await_sleep(pid, 0);
	mprotect(call_code, PAGE, PROT_NONE);
	kill(pid, SIGSTOP);
	return NULL;
}

/* Is stopped while it sleeps. The instruction of the call, which is to begin again, faults then. */
static int
sleeps_on(void *arg)
{
	const struct sigaction act = {.sa_sigaction = repair_code,
				      .sa_flags = SA_SIGINFO | SA_RESTART};
	struct timespec span = {30, 0}; /* the handler ends it */
	pthread_t t;
	long r;

	(void)arg;
	call_code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code_of_call(call_code);
	mprotect(call_code, PAGE, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(call_code, (char *)call_code + PAGE);
	sigaction(SIGSEGV, &act, NULL);
	pthread_create(&t, NULL, stop_the_sleeper, NULL);
	r = call_at(call_code, SYS_nanosleep, (uint64_t)&span, 0, 0);
	pthread_join(t, NULL);
	return repaired ? r == -EINTR ? 0 : 1 : 2;
}

static bool
handler_ends_a_call_that_begins_again(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(sleeps_on(NULL));
	return waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) &&
	       kill(pid, SIGCONT) == 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
	       FAILS(syscall(SYS_restart_syscall), EINTR);
}

/* ---- programs ---- */

/* A copy of this program, whose code can be written. */
static int
code_is_writable(void *arg)
{
	static char bytes[16 << 20];
	int from = open(linux_test_path(), O_RDONLY), to;
	ssize_t n = read(from, bytes, sizeof(bytes));
	const Elf64_Ehdr *h = (const void *)bytes;
	Elf64_Phdr *ph = (void *)(bytes + h->e_phoff);

	(void)arg;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X)
			ph[i].p_flags |= PF_W;
	}
	to = open(DIR "/writable", O_CREAT | O_WRONLY, 0755);
	if (n <= 0 || n == sizeof(bytes) || write(to, bytes, (size_t)n) != n || close(to) != 0)
		return 1;
	execl(DIR "/writable", DIR "/writable", "nothing", NULL);
	return 2;
}

static bool
make_directories(void)
{
	mode_t mask = umask(0);
	bool good = mkdir(DIR "/open", 0777) == 0 && mkdir(DIR "/group", 0777) == 0 &&
		    chown(DIR "/group", 0, 4712) == 0 && chmod(DIR "/group", 02777) == 0;

	umask(mask);
	return good;
}

static void
remove_all(void)
{
	static const char *const names[] = {"plain",       "link", "fifo",     "map",
					    "holes",       "send", "open/new", "group/new",
					    "group/newer", "open", "group",    "writable"};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), DIR "/%s", names[i]);
		remove(path);
	}
	rmdir(DIR);
}

/* Of an argument that is an int, the upper half of the register does not count. */
static bool
upper_halves_do_not_count(void)
{
	const long high = 1l << 32;
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int in = file_with(DIR ".in", "hello"), out = file_with(DIR ".out", "");
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), nice = getpriority(PRIO_PROCESS, 0);
	const struct itimerspec off = {{0, 0}, {0, 0}};
	struct itimerval none = {{0, 0}, {0, 0}};
	struct stat st;
	sigset_t set;
	bool good;

	sigemptyset(&set);
	good = syscall(SYS_timerfd_settime, timer, high | TFD_TIMER_ABSTIME, &off, NULL) == 0 &&
	       lseek(in, 0, SEEK_SET) == 0 &&
	       syscall(SYS_copy_file_range, in, NULL, out, NULL, 5, high) == 5 &&
	       syscall(SYS_rt_sigprocmask, high | SIG_BLOCK, &set, NULL, 8) == 0 &&
	       syscall(SYS_setitimer, high | ITIMER_REAL, &none, NULL) == 0 &&
	       syscall(SYS_getitimer, high | ITIMER_VIRTUAL, &none) == 0;
	good = good && syscall(SYS_getpriority, high | PRIO_PROCESS, 0) == 20 - nice &&
	       syscall(SYS_setpriority, high | PRIO_PROCESS, 0, nice) == 0 &&
	       syscall(SYS_getrandom, page, 4, high) == 4 &&
	       (syscall(SYS_syslog, high | 10, NULL, 0) > 0 || (errno == EPERM && geteuid() != 0));
	good = good && syscall(SYS_madvise, page, PAGE, high | MADV_DONTNEED) == 0 &&
	       syscall(SYS_msync, page, PAGE, high | MS_ASYNC) == 0 &&
	       syscall(SYS_mlock2, page, PAGE, high | MLOCK_ONFAULT) == 0 &&
	       (syscall(SYS_mlockall, high | MCL_CURRENT | MCL_ONFAULT) == 0 ||
		(errno == ENOMEM && geteuid() != 0)) &&
	       munlockall() == 0;
	good = good && syscall(SYS_newfstatat, AT_FDCWD, DIR ".in", &st, high) == 0 &&
	       syscall(SYS_faccessat2, AT_FDCWD, DIR ".in", high | R_OK, high) == 0 &&
	       syscall(SYS_linkat, AT_FDCWD, DIR ".in", AT_FDCWD, DIR ".link", high) == 0 &&
	       syscall(SYS_unlinkat, AT_FDCWD, DIR ".link", high) == 0 &&
	       FAILS(syscall(SYS_umount2, DIR ".link", high), ENOENT);
#ifdef SYS_arch_prctl
	good = good && syscall(SYS_arch_prctl, high | 0x1003, &set) == 0; /* ARCH_GET_FS */
#endif
	munmap(page, PAGE);
	close(timer);
	close(in);
	close(out);
	return unlink(DIR ".in") == 0 && unlink(DIR ".out") == 0 && good;
}

void
test_edges(void)
{
	bool root = getuid() == 0; /* others cannot become another user, or choose a file's group */

	remove_all();
	mkdir(DIR, 0755);
	result(paths_are_opened(), "O_PATH opens a place, whatever is there");
	result(!root || in_child(as_another, NULL) == 0,
	       "O_PATH needs no right; O_NOATIME is the owner's");
	result(direct_is_refused(), "O_DIRECT is refused where there is no such thing");
	result(ignored_signals_wait(), "a signal that is ignored and blocked waits");
	result(bad_stacks_are_handled(), "no stack for a handler: SIGSEGV's runs");
	result(lengths_are_checked(), "process_vm_readv() refuses negative lengths");
	result(pipes_tell_and_take(), "a pipe tells how full it is, and takes what it can");
	result(a_process_is_its_first_thread(), "/proc/PID/stat has the first thread's state");
	result(personality_is_kept(), "personality() keeps what it is told");
	result(in_child(execute_nameless, NULL) == 42, "a program always has a name");
	result(maps_of_zeroes(), "/dev/zero is mapped as new memory");
	result(maps_refuse_what_they_do_not_know(), "MAP_SHARED_VALIDATE; mprotect() of nothing");
	result(data_and_holes_are_found(), "SEEK_DATA and SEEK_HOLE");
	result(groups_are_chosen_before(), "setpgid() moves no child that has executed");
	result(wrong_arguments_are_told(), "ESPIPE, EINVAL and ESRCH come first");
	result(!root || (make_directories() && in_child(new_files_keep_bits, NULL) == 0),
	       "new files have the set-group-id bit that they should");
	result(sendfile_stores_its_offset(), "sendfile() stores its offset, also after no byte");
	result(in_child(faults_tell_why, NULL) == 0, "handlers of faults get Linux's si_code");
	result(handler_ends_a_call_that_begins_again(),
	       "a handler that runs just before a call begins again ends it");
	result(in_child(code_is_writable, NULL) == 0, "a program's code may be writable");
	remove_all();
	result(upper_halves_do_not_count(), "the upper half of an int's register does not count");
}
