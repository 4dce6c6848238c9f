/*
 * memory.c - what programs ask of their maps: places, rights, copies. The same on Linux (word
 * "memory").
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PAGE 4096ul
#define RW   (PROT_READ | PROT_WRITE)
#define RWX  (RW | PROT_EXEC)
#define TO   (MREMAP_MAYMOVE | MREMAP_FIXED)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static char *
new_pages(unsigned n)
{
	return mmap(NULL, n * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Is all of the range mapped? */
static bool
mapped(void *p, unsigned n)
{
	unsigned char there[64];

	return mincore(p, n * PAGE, there) == 0;
}

/* A map moves over others, also a part of it, or onto a part of its own area. */
static bool
maps_move_to_a_place(void)
{
	char *p = new_pages(8), *q = new_pages(8);
	bool good;

	for (unsigned i = 0; i < 8; i++) {
		p[i * PAGE] = (char)('a' + i);
		q[i * PAGE] = (char)('A' + i);
	}
	good = mremap(p + PAGE, 2 * PAGE, 2 * PAGE, TO, q + 3 * PAGE) == q + 3 * PAGE &&
	       q[2 * PAGE] == 'C' && q[3 * PAGE] == 'b' && q[4 * PAGE] == 'c' &&
	       q[5 * PAGE] == 'F' && p[0] == 'a' && p[3 * PAGE] == 'd' && !mapped(p + PAGE, 1) &&
	       !mapped(p + 2 * PAGE, 1);
	/* larger, and smaller */
	good &= mremap(p + 3 * PAGE, PAGE, 2 * PAGE, TO, q) == q && q[0] == 'd' && q[PAGE] == 0 &&
		q[2 * PAGE] == 'C';
	good &= mremap(p + 4 * PAGE, 3 * PAGE, PAGE, TO, p + PAGE) == p + PAGE && p[PAGE] == 'e' &&
		!mapped(p + 4 * PAGE, 1) && !mapped(p + 6 * PAGE, 1) && p[7 * PAGE] == 'h';
	good &= mremap(q + 6 * PAGE, PAGE, PAGE, TO, q + 5 * PAGE) == q + 5 * PAGE &&
		q[5 * PAGE] == 'G' && !mapped(q + 6 * PAGE, 1) && q[7 * PAGE] == 'H';
	munmap(p, 8 * PAGE);
	munmap(q, 8 * PAGE);
	return good;
}

static bool
bad_moves_change_nothing(void)
{
	char *p = new_pages(4), *q = new_pages(2);
	bool good;

	p[0] = 'p';
	q[0] = 'q';
	good = mremap(p, PAGE, PAGE, MREMAP_FIXED, q) == MAP_FAILED && errno == EINVAL &&
	       mremap(p, PAGE, PAGE, TO, q + 1) == MAP_FAILED && errno == EINVAL &&
	       mremap(p, 2 * PAGE, 2 * PAGE, TO, p + PAGE) == MAP_FAILED && errno == EINVAL &&
	       mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MAP_FAILED &&
	       errno == EINVAL && mremap(p, PAGE, PAGE, 8) == MAP_FAILED && errno == EINVAL &&
	       mremap(p, PAGE, PAGE, TO, (char *)(1ul << 62)) == MAP_FAILED && errno == EINVAL &&
	       p[0] == 'p' && q[0] == 'q';
	munmap(p, 4 * PAGE);
	munmap(q, 2 * PAGE);
	return good;
}

static bool
maps_move_and_leave_their_place(void)
{
	char *p = new_pages(2), *q;
	bool good;

	p[0] = '1';
	p[PAGE] = '2';
	q = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (q == MAP_FAILED)
		return false;
	good =
	    q != MAP_FAILED && q != p && q[0] == '1' && q[PAGE] == '2' && p[0] == 0 && p[PAGE] == 0;
	p[0] = '3';
	good &= q[0] == '1';
	munmap(p, 2 * PAGE);
	munmap(q, 2 * PAGE);
	return good;
}

/* Maps that differ in nothing are one: it can grow, also when its parts were not the same before.
 */
static bool
neighbours_become_one_map(void)
{
	char *p = new_pages(6), *q;
	int fd = open("/proc/self/exe", O_RDONLY);
	bool good;

	memcpy(p + 2 * PAGE, "second", 7);
	good = mprotect(p, PAGE, PROT_READ) == 0 && mprotect(p + 2 * PAGE, PAGE, PROT_NONE) == 0 &&
	       FAILS((long)mremap(p + PAGE, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE), EFAULT) &&
	       mprotect(p, 3 * PAGE, RW) == 0 && madvise(p + PAGE, PAGE, MADV_DONTFORK) == 0 &&
	       madvise(p + PAGE, PAGE, MADV_DOFORK) == 0;
	q = good ? mremap(p + PAGE, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE) : MAP_FAILED;
	good = good && q != MAP_FAILED && strcmp(q + PAGE, "second") == 0;
	munmap(q, 64 * PAGE);
	/* a hole is filled; and a file's next pages come */
	good &= mmap(p + PAGE, 2 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		    p + PAGE &&
		mremap(p, 6 * PAGE, 5 * PAGE, MREMAP_MAYMOVE) == p;
	q = mremap(p, 5 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	good &= q != MAP_FAILED && mmap(q, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == q &&
		mmap(q + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, PAGE) == q + PAGE &&
		mremap(q, 2 * PAGE, 3 * PAGE, 0) == MAP_FAILED && errno == ENOMEM &&
		FAILS((long)mremap(q + PAGE, 2 * PAGE, 3 * PAGE, 0), EFAULT);
	munmap(q, 64 * PAGE);
	close(fd);
	return good;
}

/* What is locked stays; what is before that is forgotten. */
static bool
locked_memory_is_not_forgotten(void)
{
	char *p = new_pages(3);
	bool good;

	p[0] = p[PAGE] = p[2 * PAGE] = 'p';
	good = mlock(p + PAGE, PAGE) == 0 && FAILS(madvise(p, 3 * PAGE, MADV_DONTNEED), EINVAL) &&
	       p[0] == 0 && p[PAGE] == 'p' && p[2 * PAGE] == 'p' &&
	       FAILS(madvise(p + PAGE, PAGE, MADV_FREE), EINVAL) && munlock(p + PAGE, PAGE) == 0 &&
	       madvise(p, 3 * PAGE, MADV_DONTNEED) == 0 && p[PAGE] == 0 && p[2 * PAGE] == 0;
	munmap(p, 3 * PAGE);
	return good;
}

/* MADV_FREE may lose what memory holds; but not that of a file, or what is shared. */
static bool
only_private_memory_is_freed(void)
{
	char *p = new_pages(2), *s = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/exe", O_RDONLY);
	char *file = mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0);
	bool good;

	p[0] = 'p';
	s[0] = 's';
	file[0] = 'f';
	good = madvise(p, 2 * PAGE, MADV_FREE) == 0 && FAILS(madvise(s, PAGE, MADV_FREE), EINVAL) &&
	       FAILS(madvise(file, PAGE, MADV_FREE), EINVAL) && s[0] == 's' && file[0] == 'f' &&
	       madvise(file, PAGE, MADV_DONTNEED) == 0 && file[0] == 0x7f;
	munmap(p, 2 * PAGE);
	munmap(s, PAGE);
	munmap(file, PAGE);
	close(fd);
	return good;
}

/* Where no map can be, there is none. */
static bool
nothing_is_where_nothing_can_be(void)
{
	static void *volatile nowhere;
	char *high = (char *)(1ul << 62);

	return munmap(nowhere, PAGE) == 0 && FAILS(munmap(high, PAGE), EINVAL) &&
	       FAILS(madvise(nowhere, PAGE, MADV_DONTNEED), ENOMEM) &&
	       FAILS(madvise(nowhere, PAGE, MADV_DONTFORK), ENOMEM) &&
	       FAILS(madvise(high, PAGE, MADV_DONTNEED), ENOMEM) &&
	       FAILS(madvise(high, PAGE, MADV_DONTFORK), ENOMEM) &&
	       FAILS((long)mremap(nowhere, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT) &&
	       FAILS((long)mremap(high, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
}

#define FAILS_AT(at, size, how, offset, error)                                                  \
	FAILS((long)mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | (how), -1, offset), \
	      error)

/* The lowest pages are forbidden to who is not root. */
static int
maps_fail_where_nothing_can_be(void *arg)
{
	static char *volatile lowest;
	const int how[] = {MAP_FIXED, MAP_FIXED_NOREPLACE};
	char *high = (char *)(1ul << 62), *p;
	bool good = geteuid() != 0 || setuid(1000) == 0;

	for (unsigned i = 0; i < 2; i++)
		good = good && FAILS_AT(high, PAGE, how[i], 0, ENOMEM) &&
		       FAILS_AT(high + 1, PAGE, how[i], 0, ENOMEM) &&
		       FAILS_AT((char *)PAGE + 1, PAGE, how[i], 0, EINVAL) &&
		       FAILS_AT((char *)(1ul << 32), 1ul << 60, how[i], 0, ENOMEM) &&
		       FAILS_AT(lowest, PAGE, how[i], 0, EPERM);
	good = good && FAILS_AT(NULL, 1ul << 60, 0, 0, ENOMEM) && FAILS_AT(NULL, 0, 0, 0, EINVAL) &&
	       FAILS_AT(NULL, ~0ul, 0, 0, ENOMEM) && FAILS_AT(NULL, PAGE, 0, 1, EINVAL);
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, -(off_t)PAGE);
	return good && p != MAP_FAILED ? 0 : 1;
}

/* With a size of 0, mremap() maps what is shared a second time. */
static bool
shared_memory_is_mapped_again(void)
{
	char *p = mmap(NULL, 3 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *q, *r;
	char *alone = new_pages(1);
	bool good;

	q = mremap(p + PAGE, 0, 2 * PAGE, MREMAP_MAYMOVE);
	r = new_pages(1);
	if (q == MAP_FAILED || mremap(p, 0, PAGE, TO, r) != r)
		return false;
	p[PAGE] = 'p';
	q[PAGE] = 'q';
	r[0] = 'r';
	good = q[0] == 'p' && p[2 * PAGE] == 'q' && p[0] == 'r' &&
	       FAILS((long)mremap(p, 0, PAGE, 0), ENOMEM) &&
	       FAILS((long)mremap(alone, 0, PAGE, MREMAP_MAYMOVE), EINVAL) &&
	       (long)mremap(p, 0, PAGE, TO, p) == -1;
	munmap(q, 2 * PAGE);
	good &= munmap(r, PAGE) == 0 && p[PAGE] == 'p';
	munmap(p, 3 * PAGE);
	munmap(alone, PAGE);
	return good;
}

static bool
there_is_room_for_20_tib(void)
{
	const size_t size = 20ul << 40;
	char *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED && mprotect(p + size - PAGE, PAGE, RW) == 0 &&
	       (p[size - 1] = 'x') == 'x' && munmap(p, size) == 0;
}

/* Shared memory of 16 TiB and more is refused; or each of its pages is its own, and goes with it.
 */
static bool
huge_shared_memory_has_its_pages(void)
{
	const uint64_t far = 1ul << 44;
	char *p = mmap((void *)(1ul << 40), far + 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good;

	if (p == MAP_FAILED)
		return errno == ENOMEM;
	p[far] = 'f';
	p[far + PAGE] = 'g';
	good = p[0] == 0 && p[PAGE] == 0 && p[far] == 'f';
	return munmap(p, far + 2 * PAGE) == 0 && good;
}

/* Puts a function that returns n there. */
static void
make_code(void *at, uint16_t n)
{
#ifdef __x86_64__
	uint8_t code[] = {0xb8, (uint8_t)n, (uint8_t)(n >> 8), 0, 0, 0xc3};
#else
	uint32_t code[] = {0x52800000u | (uint32_t)n << 5, 0xd65f03c0u};
#endif
	memcpy(at, code, sizeof(code));
	__builtin___clear_cache((char *)at, (char *)at + sizeof(code));
}

static int
call_code(void *at)
{
	return ((int (*)(void))at)();
}

/* As compilers that run what they make do. */
static bool
code_is_written_where_it_runs(void)
{
	char *p = mmap(NULL, 2 * PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q = new_pages(1);
	bool good = p != MAP_FAILED;
	int status = 0;
	pid_t pid;

	for (unsigned i = 0; good && i < 100; i++) {
		make_code(p + 8 * i, (uint16_t)(i * 400));
		good = call_code(p + 8 * i) == (int)(i * 400);
	}
	if (!good)
		return false;
	make_code(q, 7);
	good = mprotect(q, PAGE, RWX) == 0 && call_code(q) == 7;
	pid = fork();
	make_code(p, pid == 0 ? 11 : 12);
	if (pid == 0)
		_exit(call_code(p));
	make_code(q, 8);
	good &= call_code(p) == 12 && call_code(q) == 8 && waitpid(pid, &status, 0) == pid &&
		WIFEXITED(status) && WEXITSTATUS(status) == 11;
	munmap(p, 2 * PAGE);
	munmap(q, PAGE);
	return good;
}

static bool
pages_are_made_before(void)
{
	char *p = new_pages(3);
	unsigned char there[3];
	bool good = madvise(p, PAGE, 22 /* MADV_POPULATE_READ */) == 0 &&
		    madvise(p + PAGE, PAGE, 23 /* MADV_POPULATE_WRITE */) == 0 &&
		    mincore(p, 3 * PAGE, there) == 0 && (there[1] & 1) && !(there[2] & 1) &&
		    mprotect(p + PAGE, PAGE, PROT_READ) == 0 && madvise(p + PAGE, PAGE, 22) == 0 &&
		    FAILS(madvise(p + PAGE, PAGE, 23), EINVAL) && munmap(p + 2 * PAGE, PAGE) == 0 &&
		    FAILS(madvise(p + PAGE, 2 * PAGE, 22), ENOMEM);

	munmap(p, 2 * PAGE);
	return good;
}

/* Of a range with a hole, what is there is forgotten, and what is before it gets its rights. */
static bool
a_hole_does_not_protect_the_rest(void)
{
	char *p = new_pages(4);
	bool good;

	p[0] = p[PAGE] = p[3 * PAGE] = 1;
	good = munmap(p + 2 * PAGE, PAGE) == 0 &&
	       FAILS(madvise(p + PAGE, 3 * PAGE, MADV_DONTNEED), ENOMEM) && p[PAGE] == 0 &&
	       p[3 * PAGE] == 0 && p[0] == 1 && FAILS(mprotect(p, 4 * PAGE, PROT_NONE), ENOMEM) &&
	       FAILS(write(-1, p, 1), EBADF) && FAILS(access(p, F_OK), EFAULT) &&
	       FAILS(access(p + PAGE, F_OK), EFAULT) && FAILS(access(p + 3 * PAGE, F_OK), ENOENT);
	/* what becomes smaller may be several maps */
	good = good && mprotect(p, PAGE, RW) == 0 && mremap(p, PAGE, PAGE, 0) == p &&
	       mremap(p, 4 * PAGE, PAGE, 0) == p && p[0] == 1 && !mapped(p + PAGE, 1) &&
	       !mapped(p + 3 * PAGE, 1);
	munmap(p, PAGE);
	return good;
}

/* A debugger writes where the program may not, whether or not there is a page. */
static bool
a_debugger_writes_what_the_program_may_not(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/mem", O_RDWR);
	char got = 0;
	bool good = pwrite(fd, "x", 1, (off_t)(uintptr_t)p + 5) == 1 &&
		    pread(fd, &got, 1, (off_t)(uintptr_t)p + 5) == 1 && got == 'x' &&
		    FAILS(access(p, F_OK), EFAULT) && mprotect(p, 2 * PAGE, RW) == 0 &&
		    p[5] == 'x' && p[0] == 0 && p[PAGE] == 0;

	close(fd);
	munmap(p, 2 * PAGE);
	return good;
}

struct inherited {
	char *p;
	bool there;
	char first, second;
};

static int
inherits(void *arg)
{
	const struct inherited *i = arg;

	if (mapped(i->p + PAGE, 1) != i->there)
		return 1;
	return i->p[0] == 'k' && (!i->there || i->p[PAGE] == i->first) &&
		       i->p[2 * PAGE] == i->second
		   ? 0
		   : 2;
}

static int
heap_is_kept(void *arg)
{
	const char *more = arg;

	return mapped((void *)more, 1) && *more == 'm' ? 0 : 1;
}

static bool
advice_is_not_for_what_the_heap_gets(void)
{
	char *end = sbrk((intptr_t)((-(uintptr_t)sbrk(0) & (PAGE - 1)) + PAGE)), *p, *more;
	bool good = end != (void *)-1;

	p = (char *)sbrk(0) - PAGE;
	for (int advice = 0; advice < 2 && good; advice++) {
		good = madvise(p, PAGE, advice == 0 ? MADV_DONTFORK : MADV_WIPEONFORK) == 0;
		more = sbrk(PAGE);
		*more = 'm';
		good = good && more == p + PAGE && in_child(heap_is_kept, more) == 0 &&
		       madvise(p, PAGE, advice == 0 ? MADV_DOFORK : MADV_KEEPONFORK) == 0;
		p = more;
	}
	return good;
}

static bool
advice_changes_what_a_child_has(void)
{
	char *p = new_pages(3);
	int fd = open("/proc/self/exe", O_RDONLY);
	char *file = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	bool good;

	p[0] = 'k';
	p[PAGE] = 'a';
	p[2 * PAGE] = 'b';
	good = madvise(p + PAGE, PAGE, MADV_DONTFORK) == 0 &&
	       in_child(inherits, &(struct inherited){p, false, 'a', 'b'}) == 0 &&
	       madvise(p + PAGE, PAGE, MADV_DOFORK) == 0 &&
	       madvise(p + 2 * PAGE, PAGE, MADV_WIPEONFORK) == 0 &&
	       in_child(inherits, &(struct inherited){p, true, 'a', 0}) == 0 &&
	       p[2 * PAGE] == 'b' && madvise(p + 2 * PAGE, PAGE, MADV_KEEPONFORK) == 0 &&
	       in_child(inherits, &(struct inherited){p, true, 'a', 'b'}) == 0 &&
	       FAILS(madvise(file, PAGE, MADV_WIPEONFORK), EINVAL) &&
	       FAILS(madvise(p, PAGE, MADV_REMOVE), EINVAL);
	munmap(p + PAGE, PAGE);
	good &= FAILS(madvise(p, 3 * PAGE, MADV_WILLNEED), ENOMEM) &&
		FAILS(madvise(p, 3 * PAGE, MADV_DONTFORK), ENOMEM) &&
		madvise(p, 0, MADV_NORMAL) == 0 && FAILS(madvise(p, ~0ul, MADV_NORMAL), EINVAL);
	munmap(p, 3 * PAGE);
	munmap(file, PAGE);
	close(fd);
	return good;
}

static unsigned long
pages_mapped(void)
{
	char text[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close(fd);
	return strtoul(text, NULL, 10);
}

static int
limited(void *arg)
{
	char *p = new_pages(8);
	struct rlimit all, little;

	p[0] = 'x';
	munmap(p + 4 * PAGE, 4 * PAGE);
	if (getrlimit(RLIMIT_AS, &all) != 0)
		return 1;
	little = (struct rlimit){pages_mapped() * PAGE, all.rlim_max};
	if (setrlimit(RLIMIT_AS, &little) != 0)
		return 2;
	/* More than before is too much; but not the same again. */
	if (mmap(p, 8 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED ||
	    errno != ENOMEM || !mapped(p, 4) || p[0] != 'x')
		return 3;
	if (mmap(p, 4 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p || p[0] != 0)
		return 4;
	return setrlimit(RLIMIT_AS, &all) == 0 ? 0 : 5;
}

/* The kernel's limit of areas: only in the guest. */
#define AREAS "/proc/sys/vm/max_map_count"

static bool
set_areas(unsigned n)
{
	char text[16];
	int fd = open(AREAS, O_WRONLY), length = snprintf(text, sizeof(text), "%u", n);
	bool good = fd >= 0 && write(fd, text, (size_t)length) == length;

	close(fd);
	return good;
}

static unsigned
areas(void)
{
	char text[8192];
	int fd = open("/proc/self/maps", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text));
	unsigned lines = 0;

	close(fd);
	for (ssize_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

static bool
a_move_that_fails_loses_nothing(void)
{
	char *p = new_pages(3), *q = MAP_FAILED;
	unsigned n, failed = 0;
	bool good = true;

	/* fewer areas cannot be the limit */
	for (int i = 0; i < 16; i++)
		mprotect(new_pages(1), PAGE, i % 2 == 0 ? PROT_READ : PROT_NONE);
	n = areas();
	if (access("/proc/sys/debug/ktr", F_OK) != 0)
		return true;
	memcpy(p + PAGE, "here", 5);
	/* Each limit lets it go one step farther: it cuts the area twice, and makes another. */
	for (; good && q == MAP_FAILED && failed < 10; failed += q == MAP_FAILED) {
		good = set_areas(n + failed);
		q = mremap(p + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
		good &= q != MAP_FAILED ||
			(errno == ENOMEM && mapped(p, 3) && strcmp(p + PAGE, "here") == 0);
	}
	good &= set_areas(65530) && failed >= 2 && q != MAP_FAILED && strcmp(q, "here") == 0;
	munmap(p, 3 * PAGE);
	munmap(q, 2 * PAGE);
	return good;
}

void
test_memory(void)
{
	result(maps_move_to_a_place(), "MREMAP_FIXED moves a map, whatever is there");
	result(bad_moves_change_nothing(), "what mremap() refuses changes nothing");
	result(maps_move_and_leave_their_place(), "MREMAP_DONTUNMAP leaves an empty map");
	result(a_move_that_fails_loses_nothing(), "an mremap() without memory loses no page");
	result(neighbours_become_one_map(), "neighbours that differ in nothing become one map");
	result(locked_memory_is_not_forgotten(), "madvise() keeps what memory is locked");
	result(only_private_memory_is_freed(), "MADV_FREE is for private memory of no file");
	result(nothing_is_where_nothing_can_be(), "munmap() and so on where no map can be");
	result(in_child(maps_fail_where_nothing_can_be, NULL) == 0,
	       "mmap() where no map can be says why, as on Linux");
	result(shared_memory_is_mapped_again(), "mremap() of 0 bytes maps what is shared again");
	result(there_is_room_for_20_tib(), "mmap() finds room for 20 TiB");
	result(huge_shared_memory_has_its_pages(), "shared memory may be too large");
	result(code_is_written_where_it_runs(), "memory can be written and executed at once");
	result(advice_changes_what_a_child_has(), "madvise() says what a child has of maps");
	result(advice_is_not_for_what_the_heap_gets(),
	       "madvise() of the heap's end is not for what brk() adds");
	result(pages_are_made_before(), "MADV_POPULATE_READ and _WRITE make pages");
	result(a_hole_does_not_protect_the_rest(),
	       "madvise() and mprotect() of a range with a hole");
	result(a_debugger_writes_what_the_program_may_not(), "/proc/self/mem writes PROT_NONE");
	result(in_child(limited, NULL) == 0, "MAP_FIXED counts what it replaces, and unmaps last");
}
