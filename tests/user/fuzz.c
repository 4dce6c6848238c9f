/*
 * fuzz.c - random system calls, random programs, and executables with random damage.
 *
 * Each round is a process of its own, so that all that it does to itself ends with it. A second
 * process kills it after a time, since it may wait for ever. Both work under /tmp/fuzz. User 0 may
 * do anything, so as user 0 it leaves out what would end the machine or the test: shutdown, the
 * debugger, and devices that the test uses; and it removes and renames no folder of the system. It
 * signals itself and children of its own, and sets those variables that the test sets back
 * afterwards. It also runs no random programs then.
 */
#include "tests/user/fuzz.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <kestrel.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel/abi/syscall.h"
#include "tests/user/dtrace.h"
#include "tests/user/raw.h"
#include "tests/user/real.h"

#define ROUND_MS        60
#define CALLS_A_ROUND   600
#define PROGRAM_SIZE    4096
#define THREADS         3
#define ELF_MAX         (4096 * 1024)
#define MUTATIONS_MAX   12
#define SYSTEM_CALL_MAX 1040

static __thread uint64_t seed;

/* xorshift64* (Vigna). */
static uint64_t
draw(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dull;
}

static uint64_t
below(uint64_t n)
{
	return draw() % n;
}

static char buffer[65536];

/* Meaningful names, but none of the test's own or of the system's. */
static const char *const paths[] = {"a",         "b",  "d", "d/a",  "./..",       "../fuzz/a",
				    "d/../a",    "",   "/", "/tmp", "/nowhere/x", "/dev/null",
				    "/dev/zero", "..", ".", "a/",   "d//",        "/dev"};

static uint64_t
argument(void)
{
	static const uint64_t odd[] = {0,
				       1,
				       2,
				       3,
				       7,
				       8,
				       63,
				       64,
				       4095,
				       4096,
				       4097,
				       65536,
				       0x7fffffff,
				       0x80000000,
				       0xffffffff,
				       0x100000000,
				       0x7fffffffffff,
				       0x800000000000,
				       0x7fffffffffffffff,
				       0x8000000000000000,
				       0xffff800000000000,
				       0xffffffff80200000,
				       (uint64_t)-1,
				       (uint64_t)-100,
				       (uint64_t)-4096};

	switch (below(8)) {
	case 0:
		return draw();
	case 1:
		return below(16);
	case 2:
		return (uint64_t)buffer + below(sizeof(buffer));
	case 3:
	case 4:
		return (uint64_t)paths[below(sizeof(paths) / sizeof(paths[0]))];
	case 5:
		return 1ull << below(64);
	case 6:
		return 0x700000000000 + 4096 * below(64);
	default:
		return odd[below(sizeof(odd) / sizeof(odd[0]))];
	}
}

static void
sleep_ms(unsigned ms)
{
	struct timespec t = {.tv_nsec = ms * 1000000l};

	nanosleep(&t, NULL);
}

static pid_t tester; /* the process that starts the rounds */
static bool by_root; /* it is user 0's; what it starts may become another one's, with its rights */

/*
 * Kills what a round has begun, as all processes younger than the tester. Others may come here with
 * a worker's stack, which a clone shares, and meet nobody else.
 */
static void
end(pid_t pid)
{
	if (tester > 1 && (pid > tester || pid < -tester))
		kill(pid, SIGKILL);
}

/* Processes that user 0 may signal: this one, and victims() of its own. */
#define VICTIMS 3

static pid_t own[VICTIMS + 1];

static void
victims(void)
{
	own[0] = getpid();
	for (unsigned i = 1; i <= VICTIMS; i++) {
		pid_t pid = fork();

		own[i] = pid > 0 ? pid : own[0];
		if (pid == 0) {
			while (getppid() == own[0])
				sleep_ms(500);
			_exit(0);
		}
	}
}

/* Variables that user 0 sets; tests/attack/run sets them back. And some that nobody may set. */
static const char *const settable[] = {"debug.ktr.mask",    "debug.ktr.cpumask",
				       "debug.ktr.on",      "debug.ktr.off",
				       "debug.ktr.entries", "debug.ktr.clear",
				       "debug.ktr.alq_max", "debug.ktr.alq_depth",
				       "kern.quiet",        "vm.max_map_count",
				       "debug.ktr.stats",   "kern.hz",
				       "nowhere",           ""};
static const char *const values[] = {"NONE", "ALL", "SCHED,PROC", "+LOCK",     "-ALL", "*",    "0",
				     "1",    "64",  "1024",       "16777216",  "0-3",  "all",  "",
				     "-1",   "x*x", "sysctl",     "999999999", "fork", "sched"};

static const char *
one_of(const char *const *list, size_t n)
{
	return list[below(n)];
}

#define ONE_OF(list) one_of(list, sizeof(list) / sizeof((list)[0]))

/* /tmp and /dev are the system's: another user could not go on without them. */
static void
spare(uint64_t *path)
{
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (*path == (uint64_t)paths[i] && paths[i][0] == '/')
			*path = (uint64_t)paths[0];
	}
}

/* What the table of system calls says of one: its name, and a word for each argument. */
struct described {
	const char *name, *arguments;
};

static struct described
described(long nr)
{
	switch (nr) {
#define A(name, ...) #name " "
#define SYSCALL(number, name, restart, enomem, ...) \
	case number:                                \
		return (struct described){#name, "" __VA_ARGS__};
#include <syscalls.def>
#undef SYSCALL
#undef A
	default:
		return (struct described){"", ""};
	}
}

/* Which arguments name a process or a thread: a bit each. */
static unsigned
processes_in(const char *arguments)
{
	unsigned found = 0;

	for (unsigned i = 0; *arguments != '\0'; i++) {
		if (strncmp(arguments, "pid ", 4) == 0 || strncmp(arguments, "tid ", 4) == 0)
			found |= 1u << i;
		arguments = strchr(arguments, ' ') + 1;
	}
	return found;
}

/* May user 1000 do this to a process? Not to all, to the test's group, or to the test itself. */
static bool
may_meet(bool signals, uint64_t process)
{
	int32_t pid = (int32_t)process;

	return signals ? pid > 1 && pid != tester : pid != tester;
}

/* Makes a call of user 0's harmless to the test. False: it may not be made. */
static bool
tame(long nr, uint64_t a[6])
{
	const struct described call = described(nr);
	const unsigned processes = processes_in(call.arguments);
	const pid_t whom = own[below(VICTIMS + 1)];
	const bool root = by_root;
	const char *value;
	bool signals;

	if (nr == NR_exit || nr == NR_exit_group || nr == NR_machine_shutdown)
		return false;
	/* What a round of user 0's leaves is ended by its group. */
	if (root && (nr == NR_setsid || nr == NR_setpgid))
		return false;
	if (nr == NR_tgkill || nr == NR_rt_tgsigqueueinfo)
		a[1] = a[0]; /* the thread of a process has its number */
	signals = strstr(call.name, "kill") || strstr(call.name, "sigqueueinfo");
	if (root && whom <= tester)
		return false; /* the list was overwritten */
	for (unsigned i = 0; i < 6; i++) {
		if (!(processes >> i & 1))
			continue;
		if (root)
			a[i] = (uint64_t)(int64_t)whom;
		else if (!may_meet(signals, a[i]))
			return false;
	}
	if (!root)
		return true;
	/* Also of /tmp, by one of its many names. */
	if (strstr(call.name, "chmod") != NULL || strstr(call.name, "chown") != NULL)
		return false;
	if (nr == NR_kill && below(16) == 0) {
		a[0] = -a[0]; /* a group, if it leads one */
	} else if (nr == NR_sysctl && a[0] == SYSCTL_SET) {
		value = ONE_OF(values);
		a[1] = (uint64_t)ONE_OF(settable);
		a[4] = (uint64_t)value;
		a[5] = below(8) ? strlen(value) : below(64);
	} else if (nr == NR_setuid || nr == NR_setreuid || nr == NR_setresuid) {
		a[0] = a[1] = a[2] = 1000; /* whose processes the test ends */
		return below(16) == 0;
	} else if (nr == NR_unlinkat || nr == NR_renameat || nr == NR_renameat2) {
		spare(&a[1]);
		spare(&a[3]);
	}
	return true;
}

static void
one_call(void)
{
	static const long usual[] = {NR_openat,   NR_openat,   NR_openat,     NR_mkdirat,
				     NR_unlinkat, NR_renameat, NR_mmap,       NR_munmap,
				     NR_mprotect, NR_sysctl,   NR_getdents64, NR_pipe2,
				     NR_write,    NR_read,     NR_newfstatat, NR_kill,
				     NR_setuid,   NR_sysctl,   NR_prlimit64,  NR_rt_sigprocmask};
	static const long known[] = {
#define SYSCALL(number, name, ...) number,
#include <syscalls.def>
#undef SYSCALL
	};
	long nr;
	uint64_t a[6];

	switch (below(4)) {
	case 0:
		nr = usual[below(sizeof(usual) / sizeof(usual[0]))];
		break;
	case 1:
		nr = (long)below(SYSTEM_CALL_MAX);
		break;
	default:
		nr = known[below(sizeof(known) / sizeof(known[0]))];
	}
	for (unsigned i = 0; i < 6; i++)
		a[i] = argument();
	if (nr == NR_openat && below(2))
		a[0] = (uint64_t)-100;
	if (nr == NR_sysctl && below(2))
		a[0] = SYSCTL_SET;
	if (tame(nr, a))
		syscall_raw(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4],
			    (long)a[5]);
}

static void
calls_round(void)
{
	if (getuid() == 0)
		victims();
	for (unsigned i = 0; i < CALLS_A_ROUND; i++)
		one_call();
}

static void
on_tick(int sig)
{
}

static void *
calls_of_thread(void *first)
{
	seed = (uint64_t)(uintptr_t)first | 1;
	for (unsigned i = 0; i < CALLS_A_ROUND; i++)
		one_call();
	return NULL;
}

/* Threads of one process make calls at once, and a timer's signals interrupt them. */
static void
threads_round(void)
{
	const struct itimerval often = {{0, 500}, {0, 500}};
	struct sigaction act = {.sa_handler = on_tick};
	pthread_t t;

	if (getuid() == 0)
		victims();
	act.sa_flags = below(2) ? SA_RESTART : 0;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&t, NULL, calls_of_thread, (void *)(uintptr_t)draw());
	for (unsigned i = 0; i < CALLS_A_ROUND; i++)
		one_call();
}

/* Executes random bytes. */
static void
program_round(void)
{
	char *text =
	    mmap(NULL, PROGRAM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t word;

	if (text == MAP_FAILED)
		return;
	for (size_t at = 0; at < PROGRAM_SIZE; at += sizeof(word)) {
		word = draw();
		memcpy(text + at, &word, sizeof(word));
	}
	if (mprotect(text, PROGRAM_SIZE, PROT_READ | PROT_EXEC) == 0)
		((void (*)(void))(uintptr_t)(text + 64 * below(PROGRAM_SIZE / 64)))();
}

static char file_bytes[3][ELF_MAX]; /* not in the program's file: each guest has that in memory */

/* A program of our own, which is small; one that needs Debian's dynamic linker, if the image has
 * it; and that linker. */
static struct file {
	const char *path;
	size_t size;
	char *bytes;
} small = {"/bin/su", 0, file_bytes[0]}, dynamic = {"/bin/dynamic", 0, file_bytes[1]},
  linker = {"/bin/linker", 0, file_bytes[2]};

/* Writes the file, which somebody may execute, anew. */
static void
write_file(const struct file *f, const char *name)
{
	int fd;

	unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	write(fd, f->bytes, f->size);
	close(fd);
}

/* Changes some bytes, most of them in the headers. Sometimes the end is missing. */
static void
damage(struct file *f)
{
	for (uint64_t n = 1 + below(MUTATIONS_MAX); n > 0; n--) {
		size_t at = below(below(4) ? 64 + 56 * 12 : f->size);

		if (below(2))
			f->bytes[at] ^= (char)(1 << below(8));
		else
			f->bytes[at] = (char)(below(2) ? draw() : (uint64_t) - (int64_t)below(2));
	}
	if (below(8) == 0)
		f->size = below(f->size);
}

/* Makes the program ask for another dynamic linker, whose path is not longer. */
static void
set_linker(struct file *f, const char *path)
{
	const Elf64_Ehdr *h = (const void *)f->bytes;
	const Elf64_Phdr *ph = (const void *)(f->bytes + h->e_phoff);

	for (unsigned i = 0; i < h->e_phnum; i++)
		if (ph[i].p_type == PT_INTERP)
			strncpy(f->bytes + ph[i].p_offset, path, ph[i].p_filesz);
}

/* Executes a damaged program; or a sound one, whose dynamic linker is damaged. */
static void
elf_round(void)
{
	char *const argv[] = {"elf", "nothing", NULL};
	struct file *f = dynamic.size > 0 && below(2) ? &dynamic : &small;

	if (f == &dynamic && below(2)) {
		set_linker(f, "/tmp/fuzz/ld");
		damage(&linker);
		write_file(&linker, "ld");
	} else {
		damage(f);
	}
	write_file(f, "elf");
	execv("./elf", argv);
}

/* False: there is no such file, or it is not as large as an ELF file is. */
static bool
read_file(struct file *f)
{
	int fd = open(f->path, O_RDONLY);
	ssize_t n = 0;

	if (fd < 0)
		return false;
	for (; f->size < ELF_MAX && (n = read(fd, f->bytes + f->size, ELF_MAX - f->size)) > 0;)
		f->size += (size_t)n;
	close(fd);
	errno = f->size < ELF_MAX ? ENOEXEC : EFBIG;
	return f->size > 1024 && f->size < ELF_MAX;
}

/* Discards what the children write, and gives them nothing to read. */
static void
quiet(void)
{
	int fd = open("/dev/null", O_RDWR);

	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	setpgid(0, 0);
}

/* A child does the round; another one kills it if it takes too long. True: a signal ended it. */
static bool
one_round(void (*fn)(void), uint64_t number)
{
	int status = 0;
	pid_t worker = fork(), killer;

	if (worker == 0) {
		quiet();
		seed += number * 0x9e3779b97f4a7c15ull;
		seed |= 1;
		for (int i = 0; i < 4; i++)
			draw();
		fn();
		_exit(0);
	}
	killer = worker > 0 ? fork() : -1;
	if (killer == 0) {
		sleep_ms(ROUND_MS);
		end(worker);
		_exit(0);
	}
	if (killer < 0)
		sleep_ms(ROUND_MS);
	if (worker < 0)
		return false;
	if (killer < 0)
		end(worker);
	while (waitpid(worker, &status, 0) < 0 && errno == EINTR)
		;
	/* Also ends what it left: in its group; and of a user, in any other, which it may join. */
	end(-worker);
	if (!by_root && getuid() != 0 && getpid() == tester)
		kill(-1, SIGKILL);
	if (killer > 0) {
		end(killer);
		while (waitpid(killer, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return WIFSIGNALED(status);
}

static void
files_round(void)
{
	real_round(below);
}

static void
images_round(void)
{
	dtrace_round(below);
}

int
fuzz_main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} kinds[] = {{"calls", calls_round},      {"threads", threads_round},
		     {"programs", program_round}, {"elves", elf_round},
		     {"files", files_round},      {"images", images_round}};
	const unsigned count = sizeof(kinds) / sizeof(kinds[0]);
	unsigned kind = 0, ended = 0, rounds = 0;

	while (kind < count && (argc < 4 || strcmp(argv[1], kinds[kind].name) != 0))
		kind++;
	if (kind == count || (kinds[kind].fn == program_round && getuid() == 0)) {
		fprintf(stderr,
			"usage: user_test fuzz calls|threads|programs|elves|files|images SEED "
			"ROUNDS\n");
		return 2;
	}
	mkdir("/tmp/fuzz", 0777);
	if (chdir("/tmp/fuzz") < 0 || !read_file(&small) ||
	    (access(dynamic.path, F_OK) == 0 && !(read_file(&dynamic) && read_file(&linker)))) {
		fprintf(stderr, "fuzz: /tmp/fuzz, %s, %s, %s: %s\n", small.path, dynamic.path,
			linker.path, strerror(errno));
		return 1;
	}
	tester = getpid();
	by_root = getuid() == 0;
	seed = strtoul(argv[2], NULL, 10);
	for (rounds = 0; rounds < strtoul(argv[3], NULL, 10); rounds++)
		ended += one_round(kinds[kind].fn, rounds);
	printf("fuzz %s: %u rounds, %u ended by a signal\n", argv[1], rounds, ended);
	return 0;
}
