/*
 * syscalls_test.c - runs in the guest as an ordinary program and tries what programs must not do.
 * TAP. `user_test bench WHAT` and `user_test crowd KIND:N` measure instead (bench.c, crowd.c),
 * `user_test do WHAT` does a single act (deeds.c), `user_test fuzz KIND SEED ROUNDS` does random
 * ones (fuzz.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/abi/kestrel.h"
#include "kernel/abi/syscall.h"
#include "tests/user/bench.h"
#include "tests/user/crowd.h"
#include "tests/user/deeds.h"
#include "tests/user/dtrace.h"
#include "tests/user/failing.h"
#include "tests/user/faults.h"
#include "tests/user/fuzz.h"
#include "tests/user/ktraced.h"
#include "tests/user/limits.h"
#include "tests/user/raw.h"

static int tests, failures;

static void
is(const char *what, long found, long expected)
{
	tests++;
	if (found == expected) {
		printf("ok %d - %s\n", tests, what);
		return;
	}
	failures++;
	printf("not ok %d - %s\n# found %ld, expected %ld\n", tests, what, found, expected);
}

static const struct {
	const char *name;
	long value;
} bad[] = {
    {"null", 0x8},
    {"unmapped", 0x123456789000},
    {"kernel text", (long)0xffffffff80200000},
    {"direct map", (long)0xffff800000100000},
    {"not canonical", 0x00ff800000000000},
    {"between the halves", 0x0001000000000000},
    {"end of user space", 0x7ffffffff000 - 4},
    {"all ones", -1},
};

#define BAD (sizeof(bad) / sizeof(bad[0]))

static void
bad_pointers(void)
{
	int fd = open("/tmp/bad", O_RDWR | O_CREAT, 0644), pipes[2];
	char text[80];

	if (fd < 0 || write(fd, "0123456789abcdef", 16) != 16 || pipe(pipes) != 0) {
		is("set-up", -1, 0);
		return;
	}
	for (unsigned i = 0; i < BAD; i++) {
		long p = bad[i].value;
		const struct {
			const char *name;
			long r;
		} calls[] = {
		    {"read", (lseek(fd, 0, SEEK_SET), syscall_raw(NR_read, fd, p, 16, 0, 0, 0))},
		    {"write", syscall_raw(NR_write, pipes[1], p, 16, 0, 0, 0)},
		    {"openat", syscall_raw(NR_openat, -100, p, 0, 0, 0, 0)},
		    {"fstat", syscall_raw(NR_fstat, fd, p, 0, 0, 0, 0)},
		    {"pipe2", syscall_raw(NR_pipe2, p, 0, 0, 0, 0, 0)},
		    {"execve", syscall_raw(NR_execve, p, 0, 0, 0, 0, 0)},
		    {"execve argv", syscall_raw(NR_execve, (long)"/bin/true", p, 0, 0, 0, 0)},
		    {"nanosleep", syscall_raw(NR_nanosleep, p, 0, 0, 0, 0, 0)},
		    {"clock_gettime", syscall_raw(NR_clock_gettime, 1, p, 0, 0, 0, 0)},
		    {"rt_sigaction", syscall_raw(NR_rt_sigaction, SIGINT, p, 0, 8, 0, 0)},
		    {"writev", syscall_raw(NR_writev, pipes[1], p, 1, 0, 0, 0)},
		    {"chdir", syscall_raw(NR_chdir, p, 0, 0, 0, 0, 0)},
		    {"sysctl name", syscall_raw(NR_sysctl, SYSCTL_GET, p, (long)text, 80, 0, 0)},
		    {"sysctl buffer",
		     syscall_raw(NR_sysctl, SYSCTL_GET, (long)"hw.ncpu", p, 80, 0, 0)},
		};
		for (unsigned c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
			snprintf(text, sizeof(text), "%s with a pointer that is %s: EFAULT",
				 calls[c].name, bad[i].name);
			is(text, calls[c].r, -EFAULT);
		}
	}
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
}

static void
unknown_numbers(void)
{
	static const long numbers[] = {180, 999, 1023, 1028, 0x7fffffff, -1};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char text[60];
		snprintf(text, sizeof(text), "system call number %ld: ENOSYS", numbers[i]);
		is(text, syscall_raw(numbers[i], 0, 0, 0, 0, 0, 0), -ENOSYS);
	}
}

static void
odd_arguments(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(page, 'x', 4096);
	is("munmap of half a map", munmap(page + 4096, 4096), 0);
	is("a path that runs over the edge of a map: EFAULT",
	   syscall_raw(NR_openat, -100, (long)page + 4000, 0, 0, 0, 0), -EFAULT);
	is("mmap of nothing: EINVAL", syscall_raw(NR_mmap, 0, 0, 3, 0x22, -1, 0), -EINVAL);
	is("mmap of all there is: ENOMEM", syscall_raw(NR_mmap, 0, 0x7fffffffffff, 3, 0x22, -1, 0),
	   -ENOMEM);
	is("mmap whose size wraps: refused", syscall_raw(NR_mmap, 0, -1, 3, 0x22, -1, 0) < 0, 1);
	is("mmap into the kernel: ENOMEM",
	   syscall_raw(NR_mmap, (long)0xffff800000000000, 4096, 3, 0x32, -1, 0), -ENOMEM);
	is("munmap not aligned: EINVAL", syscall_raw(NR_munmap, 0x1001, 4096, 0, 0, 0, 0), -EINVAL);
	is("munmap that wraps: EINVAL", syscall_raw(NR_munmap, 0x10000, -4096, 0, 0, 0, 0),
	   -EINVAL);
	is("mprotect of nothing mapped: ENOMEM",
	   syscall_raw(NR_mprotect, 0x600000000000, 4096, 1, 0, 0, 0), -ENOMEM);
	is("read of a descriptor that is not open: EBADF", syscall_raw(NR_read, 63, 0, 0, 0, 0, 0),
	   -EBADF);
	is("read of a huge descriptor: EBADF", syscall_raw(NR_read, 0x7fffffff, 0, 0, 0, 0, 0),
	   -EBADF);
	is("kill of nobody: ESRCH", syscall_raw(NR_kill, 99999, 0, 0, 0, 0, 0), -ESRCH);
	is("kill with no such signal: EINVAL", syscall_raw(NR_kill, 1, 65, 0, 0, 0, 0), -EINVAL);
	is("wait4 without children: ECHILD", syscall_raw(NR_wait4, -1, 0, 0, 0, 0, 0), -ECHILD);
	is("execve of a text: ENOEXEC",
	   syscall_raw(NR_execve, (long)"/etc/motd", 0, 0, 0, 0, 0) < 0, 1);
	is("nanosleep with 10^9 ns: EINVAL",
	   syscall_raw(NR_nanosleep, (long)(int64_t[]){0, 1000000000}, 0, 0, 0, 0, 0), -EINVAL);
	is("poweroff with a status of 64: EINVAL",
	   syscall_raw(NR_machine_shutdown, 0, 64, 0, 0, 0, 0), -EINVAL);
}

/* A removed directory has no parent: its ".." names nothing, and no file can be made in it. */
static void
removed_directory(void)
{
	is("mkdir", mkdir("/tmp/gone", 0755), 0);
	is("chdir", chdir("/tmp/gone"), 0);
	is("rmdir of the current directory", rmdir("/tmp/gone"), 0);
	is("opening .. there: ENOENT", open("..", O_RDONLY) < 0 ? -errno : 0, -ENOENT);
	is("making .. there: ENOENT", open("..", O_WRONLY | O_CREAT, 0644) < 0 ? -errno : 0,
	   -ENOENT);
	is("making .. alone there: ENOENT",
	   open("..", O_WRONLY | O_CREAT | O_EXCL, 0644) < 0 ? -errno : 0, -ENOENT);
	is("making a file there: ENOENT", open("x", O_WRONLY | O_CREAT, 0644) < 0 ? -errno : 0,
	   -ENOENT);
	is("mkdir of .. there: ENOENT", mkdir("..", 0755) < 0 ? -errno : 0, -ENOENT);
	is("chdir back", chdir("/"), 0);
}

#define MUCH (1ul << 30)

/* A writer with a fast reader never sleeps. A signal ends it nevertheless. */
static void
killed_writer(void)
{
	static char buf[65536];
	int pipes[2], status = 0;
	uint64_t total = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(pipes) != 0 || (pid = fork()) < 0) {
		is("set-up", -1, 0);
		return;
	}
	if (pid == 0) {
		char *much = mmap(NULL, MUCH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		close(pipes[0]);
		_exit(write(pipes[1], much, MUCH) != (ssize_t)MUCH);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], buf, sizeof(buf))) > 0) {
		if (total == 0)
			kill(pid, SIGKILL);
		total += (uint64_t)n;
	}
	close(pipes[0]);
	waitpid(pid, &status, 0);
	is("a writer that never waits is killed", status, SIGKILL);
	is("and writes no further", total < MUCH / 4, true);
}

#define NAMES 300

/* Each name of a large directory is listed once, whatever the size of the reader's buffer. */
static void
large_directory(void)
{
	static const unsigned sizes[] = {300, 1000, 4096, 65536};
	static char buf[65536];

	mkdir("/tmp/large", 0755);
	for (unsigned i = 0; i < NAMES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "/tmp/large/%0*u", 1 + (int)(i % 40), i);
		close(open(name, O_WRONLY | O_CREAT, 0644));
	}
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		int fd = open("/tmp/large", O_RDONLY);
		unsigned found = 0;
		long n;

		while ((n = syscall_raw(NR_getdents64, fd, (long)buf, sizes[s], 0, 0, 0)) > 0) {
			for (long at = 0; at < n; at += *(uint16_t *)(buf + at + 16))
				found++;
		}
		is("names of a large directory, with . and ..", found, NAMES + 2);
		is("the end of a large directory", n, 0);
		close(fd);
	}
	is("a buffer too small for a name: EINVAL",
	   syscall_raw(NR_getdents64, open("/tmp/large", O_RDONLY), (long)buf, 20, 0, 0, 0),
	   -EINVAL);
}

/* Runs fn in a child and returns the child's wait status. */
static int
child(void (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* Hides the address from the compiler, so that it does not warn about it. */
static char *
place(uintptr_t addr)
{
	__asm__("" : "+r"(addr));
	return (char *)addr;
}

static void
read_null(void)
{
	(void)*(volatile char *)place(8);
}

static void
write_text(void)
{
	*(volatile char *)place((uintptr_t)write_text) = 0;
}

static void
read_kernel(void)
{
	(void)*(volatile char *)place(0xffffffff80200000);
}

static void
read_not_canonical(void)
{
	(void)*(volatile char *)place(0x00ff800000000000);
}

static void
jump_to_data(void)
{
	/* This instruction does not fault itself, so the page fault comes first. */
	static _Alignas(16) char code[16] = {(char)0xc3};
	((void (*)(void))(uintptr_t)place((uintptr_t)code))();
}

static char *no_access;

static void
read_no_access(void)
{
	(void)*(volatile char *)no_access;
}

static void
own_copy_of_no_access(void)
{
	bool same = mprotect(no_access, 4096, PROT_READ | PROT_WRITE) == 0 && *no_access == 'A';

	*no_access = 'C';
	_exit(same ? 0 : 1);
}

/*
 * A page that was written and then loses all access: the program cannot read it, nor can the kernel
 * for it.
 */
static void
denied_page(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int pipes[2];
	char got = 0;

	if (page == MAP_FAILED || pipe(pipes) != 0) {
		is("set-up", -1, 0);
		return;
	}
	*page = 'A';
	no_access = page;
	is("mprotect PROT_NONE", mprotect(page, 4096, PROT_NONE), 0);
	is("write from a page without access: EFAULT",
	   syscall_raw(NR_write, pipes[1], (long)page, 1, 0, 0, 0), -EFAULT);
	is("a path in a page without access: EFAULT",
	   syscall_raw(NR_openat, -100, (long)page, 0, 0, 0, 0), -EFAULT);
	is("a read of a page without access: SIGSEGV", child(read_no_access), SIGSEGV);
	is("a child finds in it what its parent left", child(own_copy_of_no_access), 0);
	is("read into a page without access: EFAULT",
	   write(pipes[1], "B", 1) == 1 ? syscall_raw(NR_read, pipes[0], (long)page, 1, 0, 0, 0)
					: -1,
	   -EFAULT);
	is("mprotect PROT_READ", mprotect(page, 4096, PROT_READ), 0);
	is("its byte is still there", *page, 'A');
	is("write from it", write(pipes[1], page, 1), 1);
	while (got != 'A' && read(pipes[0], &got, 1) == 1)
		;
	is("what was written", got, 'A');
	mprotect(page, 4096, PROT_NONE);
	is("munmap of a page without access", munmap(page, 4096), 0);
	close(pipes[0]);
	close(pipes[1]);
}

static void
jump_to_null(void)
{
	((void (*)(void))(uintptr_t)place(0))();
}

static void
jump_to_kernel(void)
{
	((void (*)(void))(uintptr_t)place(0xffffffff80200000))();
}

static void
endless_stack(void)
{
	char here;

	for (volatile char *p = place((uintptr_t)&here);; p -= 4096)
		*p = 1;
}

static void
take_all_memory(void)
{
	for (;;) {
		char *p =
		    mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			_exit(1);
		for (unsigned i = 0; i < 1 << 20; i += 4096)
			p[i] = 1;
	}
}

static void
faults(void)
{
	static const struct fault all[] = {
	    {"a read through a null pointer: SIGSEGV", read_null, SIGSEGV},
	    {"a write into text: SIGSEGV", write_text, SIGSEGV},
	    {"a read of kernel memory: SIGSEGV", read_kernel, SIGSEGV},
	    {"a read that is not canonical: SIGSEGV", read_not_canonical, SIGSEGV},
	    {"a jump into data: SIGSEGV", jump_to_data, SIGSEGV},
	    {"a jump through a null pointer: SIGSEGV", jump_to_null, SIGSEGV},
	    {"a jump into the kernel: SIGSEGV", jump_to_kernel, SIGSEGV},
	    {"a stack without end: SIGSEGV", endless_stack, SIGSEGV},
	    {"more memory than there is: SIGKILL", take_all_memory, SIGKILL},
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		is(all[i].name, child(all[i].fn), all[i].sig);
	for (const struct fault *f = arch_faults; f->name != NULL; f++)
		is(f->name, child(f->fn), f->sig);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "bench") == 0)
		return bench_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "crowd") == 0)
		return crowd_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "fuzz") == 0)
		return fuzz_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "ktrace") == 0)
		return ktraced_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "failing") == 0)
		return failing_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "do") == 0)
		return deed_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "claim") == 0)
		return dtrace_claim();
	bad_pointers();
	unknown_numbers();
	odd_arguments();
	removed_directory();
	killed_writer();
	large_directory();
	denied_page();
	limits_try(is);
	dtrace_try(is);
	faults();
	printf("1..%d\n", tests);
	return failures != 0;
}
