/* process.c - workloads on processes that run, wait for each other, and end: switch, lock, fork. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userland/bin/load/load.h"

/* Reads exactly len bytes. False: a message was printed. */
static bool
read_exactly(int fd, void *buf, size_t len, const char *what)
{
	ssize_t n = read(fd, buf, len);

	if (n == (ssize_t)len)
		return true;
	if (n < 0)
		warn("%s", what);
	else
		warnx("%s: found %zd bytes, expected %zu", what, n, len);
	return false;
}

static bool
write_exactly(int fd, const void *buf, size_t len, const char *what)
{
	if (write(fd, buf, len) == (ssize_t)len)
		return true;
	warn("%s", what);
	return false;
}

/* The other process: answers each number with the next, until the pipe ends. */
static bool
switch_answer(int in, int out, uint64_t n)
{
	uint64_t value;

	for (uint64_t i = 0; i < n; i++) {
		if (!read_exactly(in, &value, sizeof(value), "switch: request"))
			return false;
		value++;
		if (!write_exactly(out, &value, sizeof(value), "switch: answer"))
			return false;
	}
	return true;
}

static bool
switch_ask(int in, int out, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t value = i * 3;

		if (!write_exactly(out, &value, sizeof(value), "switch: request") ||
		    !read_exactly(in, &value, sizeof(value), "switch: answer"))
			return false;
		if (value != i * 3 + 1) {
			warnx("switch: found answer %lu, expected %lu", value, i * 3 + 1);
			return false;
		}
	}
	return true;
}

bool
load_switch(uint64_t job, uint64_t n, void *arg)
{
	int there[2], back[2];
	pid_t pid;
	bool ok;

	if (pipe(there) < 0 || pipe(back) < 0) {
		warn("pipe");
		return false;
	}
	pid = load_clone();
	if (pid < 0) {
		warn("fork");
		return false;
	}
	if (pid == 0) {
		close(there[1]);
		close(back[0]);
		_exit(switch_answer(there[0], back[1], n) ? 0 : 1);
	}
	close(there[0]);
	close(back[1]);
	ok = switch_ask(back[0], there[1], n);
	close(there[1]);
	close(back[0]);
	return load_expect_exit(pid, 0) && ok;
}

struct lock_shared {
	int pipe[2]; /* holds one token: a process that has read it holds the lock */
	int file;
};

/* The token carries a count, so that a turn that is lost or taken twice shows at the end. */
static bool
lock_work(uint64_t job, uint64_t n, void *arg)
{
	struct lock_shared *s = arg;
	uint64_t token;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t record[2] = {job, i};

		if (!write_exactly(s->file, record, sizeof(record), "lock: file") ||
		    !read_exactly(s->pipe[0], &token, sizeof(token), "lock: take"))
			return false;
		token++;
		if (!write_exactly(s->pipe[1], &token, sizeof(token), "lock: give"))
			return false;
	}
	return true;
}

/* Checks that all records of each job are in the file, complete and in order. */
static bool
lock_check_file(int fd, uint64_t jobs, uint64_t n)
{
	uint64_t next[64] = {0}, record[2], total = 0;
	ssize_t len;

	if (lseek(fd, 0, SEEK_SET) < 0) {
		warn("lock: file");
		return false;
	}
	while ((len = read(fd, record, sizeof(record))) == (ssize_t)sizeof(record)) {
		if (record[0] >= jobs || record[1] != next[record[0]]++) {
			warnx("lock: found record %lu of job %lu at place %lu, out of order",
			      record[1], record[0], total);
			return false;
		}
		total++;
	}
	if (len != 0 || total != jobs * n) {
		warnx("lock: found %lu records in the file, expected %lu", total, jobs * n);
		return false;
	}
	return true;
}

bool
load_lock(uint64_t n, uint64_t jobs)
{
	char path[] = "/tmp/load.lock.XXXXXX";
	struct lock_shared s = {.file = mkostemp(path, O_APPEND), .pipe = {-1, -1}};
	uint64_t token = 0;
	bool ok;

	if (s.file < 0) {
		warn("%s", path);
		return false;
	}
	ok = pipe(s.pipe) == 0;
	if (!ok)
		warn("lock: pipe");
	ok = ok && write_exactly(s.pipe[1], &token, sizeof(token), "lock: start");
	ok = ok && load_run_jobs(lock_work, n, jobs, false, &s) &&
	     read_exactly(s.pipe[0], &token, sizeof(token), "lock: end");
	if (ok && token != n * jobs) {
		warnx("lock: found %lu turns, expected %lu", token, n * jobs);
		ok = false;
	}
	ok = ok && lock_check_file(s.file, jobs, n);
	close(s.file);
	close(s.pipe[0]);
	close(s.pipe[1]);
	if (unlink(path) < 0) {
		warn("%s", path);
		ok = false;
	}
	return ok;
}

bool
load_fork(uint64_t job, uint64_t n, void *arg)
{
	volatile uint64_t copied = job; /* a change in the child must not appear in the parent */

	for (uint64_t i = 0; i < n; i++) {
		int status = (int)(i % 100) + 2;
		pid_t pid = load_clone();

		if (pid < 0) {
			warn("fork %lu", i);
			return false;
		}
		if (pid == 0) {
			copied = i + 1000;
			_exit(copied == i + 1000 ? status : 1);
		}
		if (!load_expect_exit(pid, status))
			return false;
		if (copied != job) {
			warnx("fork: found the child's value %lu in the parent, expected %lu",
			      copied, job);
			return false;
		}
	}
	if (wait(NULL) != -1 || errno != ECHILD) {
		warnx("fork: found more children than were forked");
		return false;
	}
	return true;
}
