/* load.h - workloads: each keeps the kernel busy and checks the results. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct load {
	const char *name;
	uint64_t count; /* default of -n */
	uint64_t jobs;  /* default of -j */
	/* The jobs share COUNT; else each does all of it. */
	bool split;
	/* A job: runs n times. False: a check failed, and a message was printed. */
	bool (*work)(uint64_t job, uint64_t n, void *arg);
	/* Instead: runs all jobs, which have something in common. */
	bool (*run)(uint64_t n, uint64_t jobs);
};

extern const struct load load_table[];
extern const unsigned int load_table_len;

/*
 * Runs work(job, n, arg) in `jobs` processes and waits for them. True: each returned true. A single
 * job runs in this process. With `split`, the jobs share n; otherwise each does all n.
 */
bool load_run_jobs(bool (*work)(uint64_t job, uint64_t n, void *arg), uint64_t n, uint64_t jobs,
		   bool split, void *arg);

/*
 * fork() by the one system call, the same on all architectures: the libc's fork() also blocks
 * signals and takes locks, with eight more calls.
 */
int load_clone(void);

/*
 * Waits for `pid` and expects exit status `expected`. Otherwise prints a message and returns false.
 */
bool load_expect_exit(int pid, int expected);

/* Fills with, and checks, a pattern that depends on `seed` and position. */
void load_fill(void *buf, uint64_t len, uint64_t seed);
bool load_check(const void *buf, uint64_t len, uint64_t seed);

/* A random number generator whose numbers are the same in each run. */
uint32_t load_random(uint64_t *state);

bool load_run(const struct load *load, uint64_t n, uint64_t jobs);

bool load_switch(uint64_t job, uint64_t n, void *arg);
bool load_lock(uint64_t n, uint64_t jobs);
bool load_fork(uint64_t job, uint64_t n, void *arg);
bool load_pipe(uint64_t job, uint64_t n, void *arg);
bool load_fault(uint64_t job, uint64_t n, void *arg);
bool load_syscall(uint64_t job, uint64_t n, void *arg);
bool load_malloc(uint64_t job, uint64_t n, void *arg);
bool load_file(uint64_t job, uint64_t n, void *arg);
bool load_mix(uint64_t job, uint64_t n, void *arg);
