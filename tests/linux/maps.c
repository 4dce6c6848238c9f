/* maps.c - maps of files and of shared memory: prints what happens, the same on every Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PAGE       4096
#define TELL(call) tell(#call, (long)(call))

static long
tell(const char *call, long r)
{
	printf("%s: %s\n", call, r != -1 ? "good" : strerror(errno));
	fflush(stdout);
	return r;
}

static sigjmp_buf back;

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	siglongjmp(back, sig * 16 + info->si_code);
}

/* Touches a byte. 0, or signal * 16 + code. */
static int
touch(volatile char *p, bool write)
{
	int r = sigsetjmp(back, 1);

	if (r == 0 && write)
		*p = 'w';
	else if (r == 0)
		(void)*p;
	return r;
}

static void
show(const char *what, const char *p, size_t n)
{
	printf("%s:", what);
	for (size_t i = 0; i < n; i++)
		printf(p[i] >= ' ' && p[i] < 127 ? " %c" : " %02x", (unsigned char)p[i]);
	printf("\n");
}

static void
show_file(int fd, off_t at)
{
	char text[16] = "";
	ssize_t n = pread(fd, text, sizeof(text), at);

	show("file", text, n > 0 ? (size_t)n : 0);
}

/* A file of two and a half pages: aaa..., bbb..., ccc... */
static int
make(const char *name)
{
	char page[PAGE];
	int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);

	for (int i = 0; i < 3; i++) {
		memset(page, 'a' + i, PAGE);
		if (write(fd, page, i < 2 ? PAGE : PAGE / 2) < 0)
			printf("%s cannot be written\n", name);
	}
	return fd;
}

static char *
map(size_t size, int prot, int flags, int fd, off_t at)
{
	return mmap(NULL, size, prot, flags, fd, at);
}

static void
private_maps(void)
{
	int fd = make("private");
	char *p = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), *q;

	show("a", p, 4);
	show("c and then zeroes", p + 2 * PAGE + PAGE / 2 - 2, 4);
	printf("beyond the end: read %d, write %d\n", touch(p + 3 * PAGE, false),
	       touch(p + 3 * PAGE, true));
	p[0] = 'x';
	p[PAGE] = 'y';
	show_file(fd, 0);
	if (pwrite(fd, "12", 2, PAGE + 8) != 2)
		printf("not written\n");
	show("a page of its own is not changed", p + PAGE + 7, 4);
	q = map(PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE);
	show("another map", q + 7, 4);
	printf("write: %d\n", touch(q, true));
	TELL(mprotect(q, PAGE, PROT_READ | PROT_WRITE));
	printf("write: %d\n", touch(q, true));
	TELL(mprotect(p, PAGE, PROT_NONE));
	printf("read: %d\n", touch(p, false));
	TELL(mprotect(p, PAGE, PROT_READ));
	show("still there", p, 4);
	TELL(madvise(p, 2 * PAGE, MADV_DONTNEED));
	show("the file's again", p, 4);
	show("the file's again", p + PAGE + 6, 4);
	TELL(munmap(p + PAGE, PAGE));
	printf("read: %d\n", touch(p + PAGE, false));
	show("after the hole", p + 2 * PAGE, 2);
	TELL(unlink("private"));
	close(fd);
	show("after the file has gone", p + 2 * PAGE, 2);
	printf("write: %d\n", touch(p + 2 * PAGE, true));
}

static void
shared_maps(void)
{
	int fd = make("shared"), ro, status;
	char *p = map(3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *q, *r;
	pid_t pid;

	q = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	r = map(PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE);
	p[PAGE] = '!';
	show("another map", q, 2);
	show("a private one", r, 2);
	show_file(fd, PAGE);
	if (pwrite(fd, "written", 7, 2) != 7)
		printf("not written\n");
	show("what was written", p, 10);
	pid = fork();
	if (pid == 0) {
		memcpy(p + 20, "the child", 9);
		q[1] = '?';
		_exit(0);
	}
	waitpid(pid, &status, 0);
	show("the child's", p + 20, 9);
	show("the child's", p + PAGE, 2);
	TELL(msync(p, 2 * PAGE, MS_SYNC));
	TELL(msync(p + 1, PAGE, MS_SYNC));
	TELL(msync(p, PAGE, MS_SYNC | MS_ASYNC));
	TELL(madvise(p, PAGE, MADV_DONTNEED));
	show("the same", p, 4);
	/* A hole gets a page; reading into a map of the same file works. */
	TELL(ftruncate(fd, 8 * PAGE));
	q = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	show("a hole", q + 6 * PAGE, 2);
	memcpy(q + 6 * PAGE, "hole", 4);
	show_file(fd, 6 * PAGE);
	printf("read into the map: %zd\n", pread(fd, q + 7 * PAGE, 6, 0));
	show_file(fd, 7 * PAGE);
	printf("written from the map: %zd\n", pwrite(fd, q, 4, 8 * PAGE));
	/* What is after the end is zero when the file grows. */
	TELL(ftruncate(fd, 7 * PAGE + 3));
	q[7 * PAGE + 4] = 'z';
	TELL(ftruncate(fd, 8 * PAGE));
	show_file(fd, 7 * PAGE);
	ro = open("shared", O_RDONLY);
	TELL(map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0));
	q = map(PAGE, PROT_READ, MAP_SHARED, ro, 0);
	show("read only", q, 2);
	printf("write: %d\n", touch(q, true));
	TELL(mprotect(q, PAGE, PROT_READ | PROT_WRITE));
	TELL(map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0));
	close(ro);
	ro = open("shared", O_WRONLY);
	TELL(map(PAGE, PROT_READ, MAP_SHARED, ro, 0));
	close(ro);
	close(fd);
	unlink("shared");
}

/* What is mapped after a new end of the file is not there any more, in no process; then it is zero.
 */
static void
cut_maps(void)
{
	int fd = make("cut"), down[2], up[2];
	char *p = map(3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), c = 0;
	char *q = map(2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, PAGE);
	pid_t pid;

	p[PAGE] = q[0] = q[PAGE] = 'x';
	if (pipe(down) != 0 || pipe(up) != 0)
		printf("no pipes\n");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		bool there = p[2 * PAGE] == 'c' && q[PAGE] == 'x';
		if (write(up[1], &c, 1) != 1 || read(down[0], &c, 1) != 1)
			_exit(1);
		printf("the child: before %d, after %d %d %d %d\n", there, touch(p, true),
		       touch(p + PAGE, true), touch(p + 2 * PAGE, false), touch(q + PAGE, false));
		fflush(stdout);
		_exit(0);
	}
	if (read(up[0], &c, 1) != 1)
		printf("no child\n");
	TELL(ftruncate(fd, PAGE + 1));
	if (write(down[1], &c, 1) != 1)
		printf("no child\n");
	waitpid(pid, NULL, 0);
	printf("cut: %d %d %d, private %d %d\n", touch(p, true), touch(p + PAGE, true),
	       touch(p + 2 * PAGE, true), touch(q, false), touch(q + PAGE, true));
	printf("read into it: %zd\n", pread(fd, p + 2 * PAGE, 1, 0));
	show("the last page", p + PAGE, 2);
	TELL(ftruncate(fd, 3 * PAGE));
	show("larger again", p + 2 * PAGE, 2);
	show("private", q + PAGE, 2);
	TELL(ftruncate(fd, 0));
	printf("cut: %d, private %d\n", touch(p, false), touch(q, false));
	close(fd);
	unlink("cut");
}

static void
shared_memory(void)
{
	_Atomic unsigned *n =
	    (void *)map(2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[4];

	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			for (unsigned k = 0; k < 1000; k++)
				n[PAGE / 4]++;
			_exit(0);
		}
	}
	for (int i = 0; i < 4; i++)
		waitpid(pid[i], NULL, 0);
	printf("counted by four processes: %u\n", n[PAGE / 4]);
}

static void
remaps(void)
{
	char *p = map(3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
	int fd = make("remap");

	memcpy(p, "first", 5);
	memcpy(p + 2 * PAGE, "last", 4);
	q = mremap(p, 3 * PAGE, 2 * PAGE, 0);
	printf("smaller, same place: %d\n", q == p);
	printf("cut off: %d\n", touch(p + 2 * PAGE, false));
	/* Something is after it now: it must move. */
	TELL(mmap(p + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	TELL(mremap(p, 2 * PAGE, 4 * PAGE, 0));
	q = mremap(p, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	printf("moved: %d, old place %d\n", q != p && q != MAP_FAILED, touch(p, false));
	show("first", q, 6);
	show("zeroes", q + 2 * PAGE, 3);
	printf("write at the end: %d\n", touch(q + 64 * PAGE - 1, true));
	p = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	p[0] = 'M';
	p = mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	show("of a file", p, 2);
	show("its next page", p + PAGE, 2);
	TELL(mremap(p + 1, PAGE, PAGE, 0));
	TELL(mremap((void *)(PAGE * 20ul), PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	close(fd);
	unlink("remap");
}

static void
bad_input(void)
{
	int ends[2], fd = make("bad");
	char *p = map(PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	TELL(map(PAGE, PROT_READ, MAP_PRIVATE, 77, 0));
	TELL(map(PAGE, PROT_READ, MAP_PRIVATE, fd, 1));
	TELL(map(0, PROT_READ, MAP_PRIVATE, fd, 0));
	TELL(map(PAGE, PROT_READ, 0, fd, 0));
	TELL(pipe(ends));
	TELL(map(PAGE, PROT_READ, MAP_PRIVATE, ends[0], 0));
	TELL(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
	TELL(madvise(p, PAGE, 77));
	TELL(madvise(p + 1, PAGE, MADV_NORMAL));
	TELL(munmap(p + 1, PAGE));
	close(fd);
	unlink("bad");
}

int
maps_are(const char *dir)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	if (mkdir(dir, 0755) != 0 || chdir(dir) != 0)
		return 1;
	private_maps();
	shared_maps();
	cut_maps();
	shared_memory();
	remaps();
	bad_input();
	return 0;
}

/* An open file, whose name another file has now, is that file's no more. */
static void
replaced_file(void)
{
	int old = open("f", O_CREAT | O_RDWR, 0644), new = open("g", O_CREAT | O_RDWR, 0644);
	struct stat st;

	if (write(old, "old", 3) != 3 || write(new, "new", 3) != 3 || rename("g", "f") != 0)
		printf("not replaced\n");
	TELL(ftruncate(old, 0));
	TELL(fchmod(old, 0600));
	TELL(futimens(old, NULL));
	TELL(fsync(old));
	show("its page", map(PAGE, PROT_READ, MAP_PRIVATE, old, 0), 3);
	show_file(new, 0);
	fstat(new, &st);
	printf("the other one: %o %ld\n", st.st_mode & 0777, (long)st.st_size);
	unlink("f");
	close(old);
	close(new);
}

int
maps_of_host(const char *dir)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	int fd;
	char *p, *q;

	sigaction(SIGBUS, &act, NULL);
	if (chdir(dir) != 0 || (fd = make("maps")) < 0)
		return 1;
	TELL(map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	p = map(3 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	q = map(3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	TELL(mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	show("pages", p + PAGE - 2, 4);
	show("after the end", p + 2 * PAGE + PAGE / 2 - 1, 2);
	q[0] = '!';
	show_file(fd, 0);
	if (pwrite(fd, "written", 7, PAGE - 3) != 7)
		printf("not written\n");
	show("what was written", p + PAGE - 4, 9);
	show("its own page", q, 2);
	TELL(ftruncate(fd, PAGE + 2));
	printf("cut off: %d\n", touch(p + 2 * PAGE, false));
	show("the last page", p + PAGE, 4);
	TELL(unlink("maps"));
	TELL(map(PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE));
	show_file(fd, PAGE - 3);
	printf("appended: %zd\n", pwrite(fd, "end", 3, 2 * PAGE));
	show_file(fd, 2 * PAGE);
	replaced_file();
	return 0;
}

/* A file that is unlinked goes when its last map does, which may have to wait for a disk. */
int
maps_unlinked(const char *path)
{
	int fd = open(path, O_RDWR);
	const char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	bool good = fd >= 0 && p != MAP_FAILED && close(fd) == 0 && p[0] != '\0' &&
		    unlink(path) == 0 && munmap((void *)(uintptr_t)p, 4096) == 0;

	puts(good ? "ok" : "not ok");
	return good ? 0 : 1;
}

/* All pages of a file are read by a map through which it may be written, and two are written; then
 * it is synced, so often. One is written once more, and synced twice. */
int
maps_resting(const char *path, int syncs)
{
	int fd = open(path, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	volatile char *p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool good = fd >= 0 && p != MAP_FAILED;

	for (off_t at = 0; good && at < size; at += PAGE)
		good &= p[at] != '\0';
	for (int i = 0; good && i < 2; i++)
		p[i * 3 * PAGE] = 'x';
	for (int i = 0; i < syncs; i++)
		good &= fsync(fd) == 0;
	if (good)
		p[0] = 'y'; /* noticed, though the page was written before */
	good &= fsync(fd) == 0 && fsync(fd) == 0;
	puts(good ? "ok" : "not ok");
	return good ? 0 : 1;
}

/* Makes files of zeroes: writes that fail in holes, and room of `size` bytes; blocks of a disk. */
int
maps_holes(long size)
{
	int holes = open("holes", O_CREAT | O_RDWR, 0644);
	int room = open("room", O_CREAT | O_RDWR, 0644);
	bool good = holes >= 0 && room >= 0 && ftruncate(holes, 1 << 20) == 0;

	for (off_t at = 0; at < 1 << 20; at += 1024)
		good &= FAILS(pwrite(holes, NOWHERE, 1024, at), EFAULT);
	good &= posix_fallocate(room, 0, size) == 0;
	puts(good ? "ok" : "not ok");
	return good ? 0 : 1;
}

/* Writes to each page of a map of a new file, which may be larger than memory; then reads them. */
int
maps_fill(const char *path, size_t size, bool code)
{
	int fd = open(path, O_CREAT | O_RDWR, 0644);
	size_t bad = 0;
	uint64_t word;
	char *at;

	if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
		return 1;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE | (code ? PROT_EXEC : 0), MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 2;
	for (size_t i = 0; i < size; i += 4096)
		*(uint64_t *)(at + i + i / 4096 % 512 * 8) = i + 1;
	for (size_t i = 0; i < size; i += 4096)
		bad += *(uint64_t *)(at + i + i / 4096 % 512 * 8) != i + 1;
	for (size_t i = 0; i < size; i += 4096)
		bad += pread(fd, &word, 8, (off_t)(i + i / 4096 % 512 * 8)) != 8 || word != i + 1;
	printf("%zu wrong\n", bad);
	return bad != 0 || munmap(at, size) != 0 || close(fd) != 0;
}
