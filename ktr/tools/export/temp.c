/*
 * temp.c - the temporary name of an export, which a signal removes.
 *
 * The signal handler removes the files itself, because the program may be reading, sorting or
 * drawing for long. Signals are blocked while the list of names and the files on the disk differ.
 */
#include "ktr/tools/export/temp.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktr/decode.h"

#define NAMES (KTR_DECODE_CPUS + 8) /* a file for each CPU, and some more */

static char *volatile names[NAMES]; /* the first is the export; those in a directory follow it */
static volatile sig_atomic_t name_count;
static bool to_terminal; /* standard error is a terminal, which may show a line of progress */

static void
names_remove(void)
{
	for (int i = name_count; i-- > 0;)
		if (unlink(names[i]) != 0)
			rmdir(names[i]);
}

/* All signals are blocked in the handler. */
static void
on_signal(int sig)
{
	static const char text[] = "\rktrdump: interrupted: nothing is left of the export\n";
	unsigned from = to_terminal ? 0 : 1;
	sigset_t own;
	names_remove();
	if (name_count > 0 && write(STDERR_FILENO, text + from, sizeof(text) - 1 - from) < 0)
		name_count = 0; /* nobody reads standard error */
	signal(sig, SIG_DFL);
	raise(sig);
	sigemptyset(&own);
	sigaddset(&own, sig);
	sigprocmask(SIG_UNBLOCK, &own, NULL);
}

/* A signal that is ignored, as under nohup, stays ignored. SIGXFSZ is ignored too: then a file that
 * grows too large is a write error like others. */
static void
signals_catch(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU};
	struct sigaction catch = {.sa_handler = on_signal}, before;
	sigfillset(&catch.sa_mask);
	to_terminal = isatty(STDERR_FILENO);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &catch, NULL);
	signal(SIGXFSZ, SIG_IGN);
}

static sigset_t
signals_block(void)
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	return before;
}

static void
signals_restore(sigset_t before)
{
	int error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
}

/* Signals are blocked here. */
static void
names_forget(void)
{
	while (name_count > 0)
		free(names[--name_count]);
}

bool
export_temp_add(const char *name)
{
	char *copy = name_count < (int)NAMES ? strdup(name) : NULL;
	if (copy == NULL)
		return false;
	names[name_count] = copy;
	name_count++;
	return true;
}

static bool
template_make(const char *path, char temp[EXPORT_PATH])
{
	const char *slash = strrchr(path, '/');
	int n = snprintf(temp, EXPORT_PATH, "%.*s.ktrdump.XXXXXX",
			 slash != NULL ? (int)(slash - path) + 1 : 0, path);
	if (n < (int)EXPORT_PATH)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

static FILE *
file_make(const char *path, char temp[EXPORT_PATH])
{
	int fd = template_make(path, temp) ? mkstemp(temp) : -1;
	FILE *f = fd >= 0 ? fdopen(fd, "w+b") : NULL;
	if (f == NULL && fd >= 0) {
		unlink(temp);
		close(fd);
	}
	return f;
}

static mode_t
mode_of_new(mode_t mode)
{
	mode_t mask = umask(0);
	umask(mask);
	return mode & ~mask;
}

FILE *
export_temp_file(const char *path, char temp[EXPORT_PATH])
{
	signals_catch();
	sigset_t before = signals_block();
	FILE *f = file_make(path, temp);
	if (f != NULL && (fchmod(fileno(f), mode_of_new(0666)) != 0 || !export_temp_add(temp))) {
		unlink(temp);
		fclose(f);
		f = NULL;
	}
	signals_restore(before);
	return f;
}

int
export_temp_directory(const char *path, char temp[EXPORT_PATH])
{
	signals_catch();
	sigset_t before = signals_block();
	bool made = template_make(path, temp) && mkdtemp(temp) != NULL;
	if (made && (chmod(temp, mode_of_new(0777)) != 0 || !export_temp_add(temp))) {
		rmdir(temp);
		made = false;
	}
	signals_restore(before);
	return made ? 0 : -1;
}

FILE *
export_temp_nameless(const char *path)
{
	char temp[EXPORT_PATH];
	sigset_t before = signals_block();
	FILE *f = file_make(path, temp);
	if (f != NULL)
		unlink(temp);
	signals_restore(before);
	return f;
}

bool
export_temp_rename(const char *path)
{
	sigset_t before = signals_block();
	bool done = rename(names[0], path) == 0;
	if (done)
		names_forget();
	signals_restore(before);
	return done;
}

void
export_temp_remove(void)
{
	sigset_t before = signals_block();
	names_remove();
	names_forget();
	signals_restore(before);
}
