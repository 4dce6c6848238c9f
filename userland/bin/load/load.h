/* load.h - what a workload is: something that keeps the kernel busy and checks what it got. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct load {
	const char *name;
	uint64_t count; /* n unless -n is given */
	uint64_t jobs;  /* j unless -j is given */
	/* Does it n times in j processes; false after a message when a check failed. */
	bool (*run)(uint64_t n, uint64_t jobs);
};

extern const struct load load_table[];
extern const unsigned int load_table_len;

/*
 * Runs work(job, n, arg) in `jobs` processes and waits for all: true when each returned true. A
 * single job runs in this process, so that it makes no process of its own. With `split`, n is
 * shared out, each doing its part; else each does all n.
 */
bool load_run_jobs(bool (*work)(uint64_t job, uint64_t n, void *arg), uint64_t n, uint64_t jobs,
		   bool split, void *arg);

/* Waits for `pid` and wants exit status `expected`; else a message and false. */
bool load_expect_exit(int pid, int expected);

/* Bytes of a pattern that differs by `seed` and place: to fill and to check. */
void load_fill(void *buf, uint64_t len, uint64_t seed);
bool load_check(const void *buf, uint64_t len, uint64_t seed);

/* A small generator for sizes and such: the same on every run. */
uint32_t load_random(uint64_t *state);

bool load_switch(uint64_t n, uint64_t jobs);
bool load_lock(uint64_t n, uint64_t jobs);
bool load_fork(uint64_t n, uint64_t jobs);
bool load_pipe(uint64_t n, uint64_t jobs);
bool load_fault(uint64_t n, uint64_t jobs);
bool load_syscall(uint64_t n, uint64_t jobs);
bool load_malloc(uint64_t n, uint64_t jobs);
bool load_mix(uint64_t n, uint64_t jobs);
