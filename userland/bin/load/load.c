/* load.c - runs a workload for tracing, checks its results, and prints how long it took. */
#include "userland/bin/load/load.h"

#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] =
    "load NAME [-n COUNT] [-j JOBS]\n"
    "  switch   each job: two processes pass a number back and forth over pipes, COUNT times\n"
    "  lock     JOBS processes compete for one pipe and one file, COUNT turns each\n"
    "  fork     COUNT children are forked, exit, and are waited for\n"
    "  pipe     each job: COUNT blocks of 4096 bytes go through a pipe\n"
    "  fault    COUNT new pages are written, checked and unmapped\n"
    "  syscall  COUNT calls of getppid\n"
    "  malloc   COUNT allocations in the program, and in the kernel through pipes\n"
    "  mix      all of these, each with COUNT; each job in another order\n"
    "  file     each job: COUNT files are written, read, checked and removed\n";

#define COUNT_MAX 1000000000
#define JOBS_MAX  64

static char worker_name[16]; /* name of the processes that do the work, such as `load:fork` */

const struct load load_table[] = {
    {"switch", 1000, 1, false, load_switch, NULL}, {"lock", 1000, 2, false, NULL, load_lock},
    {"fork", 100, 1, true, load_fork, NULL},       {"pipe", 1000, 1, false, load_pipe, NULL},
    {"fault", 1000, 1, true, load_fault, NULL},    {"syscall", 10000, 1, true, load_syscall, NULL},
    {"malloc", 10000, 1, true, load_malloc, NULL}, {"mix", 100, 1, false, load_mix, NULL},
    {"file", 100, 1, false, load_file, NULL},
};
const unsigned int load_table_len = sizeof(load_table) / sizeof(load_table[0]);

static const struct load *
load_find(const char *name)
{
	for (unsigned int i = 0; i < load_table_len; i++)
		if (strcmp(load_table[i].name, name) == 0)
			return &load_table[i];
	return NULL;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) < 0)
		err(1, "clock");
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int
main(int argc, char **argv)
{
	const struct load *load = NULL;
	uint64_t n = 0, jobs = 0, start, ns;
	const char *name = NULL;
	struct ktr_counts counts[KTR_COUNTS_MAX] = {0};
	bool ok;

	/* The name may come before or after the options. */
	while (optind < argc) {
		int c = tool_getopt(argc, argv, "n:j:", usage);

		if (c == 'n')
			n = tool_number("count", optarg, 1, COUNT_MAX);
		else if (c == 'j')
			jobs = tool_number("jobs", optarg, 1, JOBS_MAX);
		else if (optind < argc && name == NULL)
			name = argv[optind++];
		else if (optind < argc)
			tool_usage(usage);
	}
	if (name == NULL)
		tool_usage(usage);
	load = load_find(name);
	if (load == NULL)
		errx(2, "found \"%s\", expected a workload (load --help lists them)", name);
	snprintf(worker_name, sizeof(worker_name), "load:%s", load->name);
	n = n != 0 ? n : load->count;
	jobs = jobs != 0 ? jobs : load->jobs;
	ktr_counts_get(counts);
	start = now_ns();
	ok = load_run(load, n, jobs);
	ns = now_ns() - start;
	printf("load %s: n=%lu jobs=%lu %s, %lu ms\n", load->name, n, jobs, ok ? "ok" : "FAILED",
	       ns / 1000000);
	ktr_losses_print(stdout, "load: lost ", counts);
	return tool_finish(!ok);
}

int
load_clone(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
}

bool
load_expect_exit(int pid, int expected)
{
	int status, got;

	got = waitpid(pid, &status, 0);
	if (got != pid) {
		warn("wait for process %d", pid);
		return false;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == expected)
		return true;
	if (WIFSIGNALED(status))
		warnx("process %d was killed by signal %d", pid, WTERMSIG(status));
	else if (WEXITSTATUS(status) != 1 || expected != 0) /* 1: it has printed why */
		warnx("process %d: found exit status %d, expected %d", pid, WEXITSTATUS(status),
		      expected);
	return false;
}

bool
load_run_jobs(bool (*work)(uint64_t job, uint64_t n, void *arg), uint64_t n, uint64_t jobs,
	      bool split, void *arg)
{
	pid_t pids[JOBS_MAX];
	uint64_t started;
	bool ok = true;

	if (jobs == 1)
		return work(0, n, arg);
	for (started = 0; started < jobs; started++) {
		uint64_t part = split ? n / jobs + (started < n % jobs) : n;

		pids[started] = load_clone();
		if (pids[started] == 0)
			prctl(PR_SET_NAME, worker_name);
		if (pids[started] == 0)
			_exit(work(started, part, arg) ? 0 : 1);
		if (pids[started] < 0) {
			warn("fork job %lu", started);
			ok = false;
			break;
		}
	}
	while (started > 0)
		ok &= load_expect_exit(pids[--started], 0);
	return ok;
}

bool
load_run(const struct load *load, uint64_t n, uint64_t jobs)
{
	return load->run != NULL ? load->run(n, jobs)
				 : load_run_jobs(load->work, n, jobs, load->split, NULL);
}

uint32_t
load_random(uint64_t *state)
{
	*state = *state * 6364136223846793005UL + 1442695040888963407UL;
	return (uint32_t)(*state >> 33);
}

void
load_fill(void *buf, uint64_t len, uint64_t seed)
{
	uint8_t *p = buf;

	for (uint64_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

bool
load_check(const void *buf, uint64_t len, uint64_t seed)
{
	const uint8_t *p = buf;

	for (uint64_t i = 0; i < len; i++) {
		uint8_t expected = (uint8_t)(seed + i * 7 + (i >> 8));

		if (p[i] != expected) {
			warnx("byte %lu of %lu: found %#x, expected %#x", i, len, p[i], expected);
			return false;
		}
	}
	return true;
}
