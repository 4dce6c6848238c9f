/* memory.c - workloads on memory and data: pipe, fault, syscall, malloc, mix. */
#include <err.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tool.h>
#include <unistd.h>

#include "userland/bin/load/load.h"

#define BLOCK_SIZE 4096
#define PAGE_SIZE  4096

static int
pipe_write_blocks(int fd, uint64_t n)
{
	static char block[BLOCK_SIZE];

	for (uint64_t i = 0; i < n; i++) {
		load_fill(block, sizeof(block), i);
		if (write_all(fd, block, sizeof(block)) < 0) {
			warn("pipe: write");
			return 1;
		}
	}
	return 0;
}

/*
 * Reads the blocks, in pieces of any size, checks them, and expects the end of the pipe after them.
 */
static bool
pipe_read_blocks(int fd, uint64_t n)
{
	static char block[BLOCK_SIZE];
	ssize_t got = 1;

	for (uint64_t i = 0; i < n; i++) {
		size_t have = 0;

		while (have < sizeof(block) &&
		       (got = read(fd, block + have, sizeof(block) - have)) > 0)
			have += (size_t)got;
		if (got < 0) {
			warn("pipe: read");
			return false;
		}
		if (have < sizeof(block)) {
			warnx("pipe: found the end in block %lu, expected %lu blocks", i, n);
			return false;
		}
		if (!load_check(block, sizeof(block), i))
			return false;
	}
	if (read(fd, block, 1) != 0) {
		warnx("pipe: found more than %lu blocks", n);
		return false;
	}
	return true;
}

bool
load_pipe(uint64_t job, uint64_t n, void *arg)
{
	int fds[2];
	pid_t pid;
	bool ok;

	if (pipe(fds) < 0) {
		warn("pipe");
		return false;
	}
	pid = load_clone();
	if (pid < 0) {
		warn("fork");
		return false;
	}
	if (pid == 0) {
		close(fds[0]);
		_exit(pipe_write_blocks(fds[1], n));
	}
	close(fds[1]);
	ok = pipe_read_blocks(fds[0], n);
	close(fds[0]); /* a writer that is not finished gets EPIPE instead of waiting for ever */
	return load_expect_exit(pid, 0) && ok;
}

/*
 * Maps pages, checks that they are zero, writes to each, reads back, unmaps: `pages` page faults.
 */
static bool
fault_map(uint64_t pages, uint64_t seed)
{
	uint64_t len = pages * PAGE_SIZE;
	volatile uint64_t *p =
	    mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t words = PAGE_SIZE / sizeof(*p);
	bool ok = true;

	if (p == MAP_FAILED) {
		warn("mmap %lu pages", pages);
		return false;
	}
	for (uint64_t i = 0; i < pages; i++) {
		p[i * words + i % words] = seed ^ i;
		for (uint64_t w = 0; w < words && ok; w++) {
			uint64_t expected = w == i % words ? seed ^ i : 0;

			if (p[i * words + w] == expected)
				continue;
			warnx("fault: page %lu word %lu: found %#lx, expected %#lx", i, w,
			      p[i * words + w], expected);
			ok = false;
		}
	}
	for (uint64_t i = 0; i < pages && ok; i++)
		if (p[i * words + i % words] != (seed ^ i)) {
			warnx("fault: page %lu: found %#lx, expected %#lx", i,
			      p[i * words + i % words], seed ^ i);
			ok = false;
		}
	if (munmap((void *)p, len) < 0) {
		warn("munmap");
		ok = false;
	}
	return ok;
}

bool
load_fault(uint64_t job, uint64_t n, void *arg)
{
	const uint64_t most = 64;

	for (uint64_t done = 0; done < n;) {
		uint64_t pages = n - done < most ? n - done : most;

		if (!fault_map(pages, (job << 32) + done + 1))
			return false;
		done += pages;
	}
	return true;
}

bool
load_syscall(uint64_t job, uint64_t n, void *arg)
{
	pid_t parent = getppid();

	for (uint64_t i = 0; i < n; i++) {
		pid_t got = getppid();

		if (got != parent) {
			warnx("syscall %lu: found parent %d, expected %d", i, got, parent);
			return false;
		}
	}
	return true;
}

/* Makes the kernel allocate and free: a pipe, its data, and its files. */
static bool
malloc_in_kernel(uint64_t seed)
{
	char out[512], in[512];
	int fds[2];
	bool ok;

	if (pipe(fds) < 0) {
		warn("malloc: pipe");
		return false;
	}
	load_fill(out, sizeof(out), seed);
	ok = write(fds[1], out, sizeof(out)) == (ssize_t)sizeof(out) &&
	     read(fds[0], in, sizeof(in)) == (ssize_t)sizeof(in);
	if (!ok)
		warn("malloc: pipe");
	close(fds[0]);
	close(fds[1]);
	return ok && load_check(in, sizeof(in), seed);
}

#define SLOTS 64

struct slot {
	char *p;
	uint64_t len, seed;
};

/* Checks what a slot holds, then frees it, enlarges it or fills it again. */
static bool
malloc_turn(struct slot *s, uint64_t turn, uint64_t *random)
{
	uint64_t kept = s->len, len = 1 + load_random(random) % (turn % 50 == 0 ? 200000 : 700);
	char *p;

	if (s->p != NULL && !load_check(s->p, s->len, s->seed))
		return false;
	if (s->p != NULL && load_random(random) % 4 != 0) {
		free(s->p);
		s->p = NULL;
		return true;
	}
	p = realloc(s->p, len);
	if (p == NULL) {
		warn("malloc %lu bytes", len);
		return false;
	}
	if (s->p != NULL && !load_check(p, kept < len ? kept : len, s->seed))
		return false;
	*s = (struct slot){.p = p, .len = len, .seed = turn};
	load_fill(p, len, turn);
	return true;
}

bool
load_malloc(uint64_t job, uint64_t n, void *arg)
{
	struct slot slots[SLOTS] = {0};
	uint64_t random = job + 1;
	bool ok = true;

	for (uint64_t i = 0; i < n && ok; i++) {
		ok = malloc_turn(&slots[load_random(&random) % SLOTS], i, &random);
		if (ok && i % 64 == 0)
			ok = malloc_in_kernel(i);
	}
	for (int i = 0; i < SLOTS; i++) {
		if (slots[i].p != NULL && ok)
			ok = load_check(slots[i].p, slots[i].len, slots[i].seed);
		free(slots[i].p);
	}
	return ok;
}

/*
 * Runs all workloads before mix in the table, one after the other. Each job starts with another
 * one, so that they meet.
 */
bool
load_mix(uint64_t job, uint64_t n, void *arg)
{
	unsigned int others = 0;

	while (load_table[others].work != load_mix)
		others++;
	for (unsigned int i = 0; i < others; i++) {
		const struct load *l = &load_table[(job + i) % others];

		if (!load_run(l, n, 1)) {
			warnx("mix: job %lu failed in %s", job, l->name);
			return false;
		}
	}
	return true;
}
