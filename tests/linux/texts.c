/* texts.c - files that are executed: nobody writes to them meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define COPY "/tmp/linux_text"

static bool
copy_self(void)
{
	int from = open(linux_test_path(), O_RDONLY), to = open(COPY, O_WRONLY | O_CREAT, 0755);
	struct stat st;
	bool good = from >= 0 && to >= 0 && fstat(from, &st) == 0;

	while (good && st.st_size > 0) {
		ssize_t n = sendfile(to, from, NULL, (size_t)st.st_size);

		good = n > 0;
		st.st_size -= n;
	}
	return close(from) == 0 && close(to) == 0 && good;
}

/* Executes the copy with a word. Its exit status; 100 + the error that exec had. */
static int
execute(const char *word)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(COPY, COPY, word, NULL);
		_exit(100 + errno);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The copy, as linux_test "stay": a process that ends, and its child, which waits. */
int
texts_stay(void)
{
	char c;

	return fork() == 0 && read(0, &c, 1) != 0;
}

static bool
refuses_writers(void)
{
	return FAILS(open(COPY, O_WRONLY), ETXTBSY) && FAILS(open(COPY, O_RDWR), ETXTBSY) &&
	       FAILS(open(COPY, O_WRONLY | O_TRUNC), ETXTBSY) &&
	       FAILS(open(COPY, O_WRONLY | O_CREAT, 0755), ETXTBSY) &&
	       FAILS(truncate(COPY, 0), ETXTBSY);
}

/* While a child of a process that has executed the copy lives, and its name changes. */
static bool
running(void)
{
	struct stat before, after;
	int ends[2], status, fd;
	pid_t pid;
	bool good = copy_self() && stat(COPY, &before) == 0 && pipe2(ends, O_CLOEXEC) == 0;

	pid = good ? fork() : -1;
	if (pid == 0) {
		dup2(ends[0], 0);
		execl(COPY, COPY, "stay", NULL);
		_exit(100 + errno);
	}
	good = good && waitpid(pid, &status, 0) == pid && status == 0 && refuses_writers();
	fd = open(COPY, O_RDONLY);
	good = good && fd >= 0 && close(fd) == 0 && execute("nothing") == 0 && refuses_writers() &&
	       stat(COPY, &after) == 0 && after.st_size == before.st_size;
	/* Its names may change, and another file come to its place. */
	good = good && rename(COPY, COPY "2") == 0 && rename(COPY "2", COPY) == 0 &&
	       refuses_writers() && link(COPY, COPY "2") == 0 && unlink(COPY) == 0 && copy_self() &&
	       FAILS(open(COPY "2", O_WRONLY), ETXTBSY) && rename(COPY, COPY "2") == 0 &&
	       copy_self();
	close(ends[0]);
	close(ends[1]);
	unlink(COPY "2");
	return good;
}

/* The file can be written to when the last process has ended, and is executed after that. */
static bool
ended(void)
{
	int ends[2], fd;
	pid_t pid;
	bool good = copy_self() && pipe2(ends, O_CLOEXEC) == 0;

	pid = good ? fork() : -1;
	if (pid == 0) {
		dup2(ends[0], 0);
		execl(COPY, COPY, "stay", NULL);
		_exit(100 + errno);
	}
	good = good && waitpid(pid, NULL, 0) == pid && FAILS(open(COPY, O_WRONLY), ETXTBSY);
	close(ends[0]);
	close(ends[1]);
	while ((fd = open(COPY, O_WRONLY | O_APPEND)) == -1 && errno == ETXTBSY)
		sched_yield();
	return good && write(fd, "x", 1) == 1 && close(fd) == 0 && execute("nothing") == 0;
}

static bool
written(void)
{
	int fd, text;
	char *p;
	bool good = copy_self();

	fd = open(COPY, O_RDWR);
	good = good && execute("nothing") == 100 + ETXTBSY;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	good = good && p != MAP_FAILED && execute("nothing") == 100 + ETXTBSY &&
	       munmap(p, 4096) == 0 && execute("nothing") == 0;
	/* Maps that do not write through. */
	fd = open(COPY, O_RDONLY);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	good = good && p != MAP_FAILED && execute("nothing") == 0 && munmap(p, 4096) == 0;
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	good = good && p != MAP_FAILED && execute("nothing") == 0 && munmap(p, 4096) == 0;
	close(fd);
	/* A script. */
	text = open(COPY, O_WRONLY | O_TRUNC);
	good = good && write(text, "#!/bin/true\n", 12) == 12 && execute("x") == 100 + ETXTBSY &&
	       close(text) == 0 && execute("x") == 0;
	return good;
}

/* A process that executes a memfd with a word; fd 0 is `input`. */
static pid_t
execute_memfd(int fd, const char *word, int input)
{
	pid_t pid = fork();

	if (pid == 0) {
		char *const argv[] = {"text", (char *)word, NULL}, *const env[] = {NULL};

		dup2(input, 0);
		fexecve(fd, argv, env);
		_exit(100 + errno);
	}
	return pid;
}

static bool
has_status_0(pid_t pid)
{
	int status;

	return pid != -1 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A memfd that was executed while it is mapped, and mapped while it is executed, is as it was. */
static bool
mapped_memfd(int fd)
{
	int ends[2];
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool good = p != MAP_FAILED && has_status_0(execute_memfd(fd, "nothing", 0)) &&
		    munmap(p, 4096) == 0 && pipe2(ends, O_CLOEXEC) == 0;

	if (!good || !has_status_0(execute_memfd(fd, "stay", ends[0])))
		return false;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	good = p != MAP_FAILED && munmap(p, 4096) == 0;
	close(ends[0]);
	close(ends[1]);
	while (ftruncate(fd, 4096) == -1 && errno == ETXTBSY)
		sched_yield();
	return good;
}

/* A memfd is executed while it is open, and a library that is mapped can be written to. */
static bool
others_may(void)
{
	int from = open(linux_test_path(), O_RDONLY), fd = memfd_create("text", 0);
	struct stat st;
	bool good = fstat(from, &st) == 0;

	while (good && st.st_size > 0) {
		ssize_t n = sendfile(fd, from, NULL, (size_t)st.st_size);

		good = n > 0;
		st.st_size -= n;
	}
	close(from);
	good = good && has_status_0(execute_memfd(fd, "nothing", 0)) && mapped_memfd(fd);
	close(fd);
	fd = open("/lib/libc.so.6", O_WRONLY);
	return good && (fd >= 0 ? close(fd) == 0 : errno == ENOENT || errno == EACCES);
}

void
test_texts(void)
{
	result(running(), "nobody writes to a file that is executed: ETXTBSY");
	result(ended(), "a program's file is written to after its last process has ended");
	result(written(), "a file that somebody writes to is not executed: ETXTBSY");
	result(others_may(), "a memfd is executed though it is open for writing, or mapped so");
	unlink(COPY);
}
