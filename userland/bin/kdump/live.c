/*
 * live.c - how long kdump -l waits for more records.
 *
 * A file has a record when the tracing of a process begins, and one when it ends, unless the kernel
 * could not write it. Who is the parent of the first process (--child) need not wait for what never
 * comes: the end of a process is in the file before it is gone.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "userland/bin/kdump/kdump.h"

static uint64_t begun, ended; /* tracings of processes */

/* With --child: the processes whose end is not in the file yet. */
static pid_t *traced;
static size_t ntraced;
static bool were_gone; /* all processes were gone before the last look at the end of the file */
static bool missing;   /* they were gone, and it brought nothing */

static void
add(pid_t pid)
{
	traced = reallocarray(traced, ntraced + 1, sizeof(*traced));
	if (traced == NULL)
		errx(1, "no memory for %zu processes", ntraced + 1);
	traced[ntraced++] = pid;
}

static void
drop(pid_t pid)
{
	for (size_t i = 0; i < ntraced; i++)
		if (traced[i] == pid)
			traced[i--] = traced[--ntraced];
}

void
kdump_child(int64_t pid)
{
	kdump_options.child = pid;
	add((pid_t)pid);
}

void
kdump_lives(const struct ktr_header *h)
{
	unsigned type = h->ktr_type & KTR_TYPE;

	begun += type == KTR_PROCCTOR;
	ended += type == KTR_PROCDTOR;
	were_gone = false;
	if (kdump_options.child == 0 || (type != KTR_PROCCTOR && type != KTR_PROCDTOR))
		return;
	drop((pid_t)h->ktr_pid);
	if (type == KTR_PROCCTOR)
		add((pid_t)h->ktr_pid);
}

static bool
is_gone(pid_t pid)
{
	if (pid == kdump_options.child)
		return waitpid(pid, NULL, WNOHANG) != 0;
	return kill(pid, 0) < 0 && errno == ESRCH;
}

static bool
all_gone(void)
{
	for (size_t i = 0; i < ntraced; i++)
		if (!is_gone(traced[i]))
			return false;
	return true;
}

bool
kdump_live(void)
{
	if (!kdump_options.live || missing)
		return false;
	if (kdump_options.child == 0)
		return begun == 0 || begun > ended;
	if (ntraced == 0)
		return false;
	missing = were_gone;
	were_gone = all_gone();
	return !missing;
}

bool
kdump_misses(void)
{
	if (missing)
		warnx("process %d has ended, but its last records are missing: dmesg says why",
		      (int)traced[0]);
	return missing;
}
