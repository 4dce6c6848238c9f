/* strerror.c - texts of errors and names of signals. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const error_texts[] = {
    [0] = "Success",
    [EPERM] = "Operation not permitted",
    [ENOENT] = "No such file or directory",
    [ESRCH] = "No such process",
    [EINTR] = "Interrupted system call",
    [EIO] = "Input/output error",
    [ENXIO] = "No such device or address",
    [E2BIG] = "Argument list too long",
    [ENOEXEC] = "Exec format error",
    [EBADF] = "Bad file descriptor",
    [ECHILD] = "No child processes",
    [EAGAIN] = "Resource temporarily unavailable",
    [ENOMEM] = "Cannot allocate memory",
    [EACCES] = "Permission denied",
    [EFAULT] = "Bad address",
    [EBUSY] = "Device or resource busy",
    [EEXIST] = "File exists",
    [EXDEV] = "Invalid cross-device link",
    [ENODEV] = "No such device",
    [ENOTDIR] = "Not a directory",
    [EISDIR] = "Is a directory",
    [EINVAL] = "Invalid argument",
    [ENFILE] = "Too many open files in system",
    [EMFILE] = "Too many open files",
    [ENOTTY] = "Inappropriate ioctl for device",
    [EFBIG] = "File too large",
    [ENOSPC] = "No space left on device",
    [ESPIPE] = "Illegal seek",
    [EROFS] = "Read-only file system",
    [EPIPE] = "Broken pipe",
    [EDOM] = "Numerical argument out of domain",
    [ERANGE] = "Result out of range",
    [ENAMETOOLONG] = "File name too long",
    [ENOSYS] = "Function not implemented",
    [ENOTEMPTY] = "Directory not empty",
    [ELOOP] = "Too many levels of symbolic links",
    [EOVERFLOW] = "Value too large for its type",
    [EOPNOTSUPP] = "Operation not supported",
    [ETIMEDOUT] = "Timed out",
};

static const char *const signal_names[NSIG + 1] = {
    [SIGHUP] = "HUP",     [SIGINT] = "INT",   [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP",   [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
    [SIGKILL] = "KILL",   [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE",   [SIGALRM] = "ALRM", [SIGTERM] = "TERM", [SIGCHLD] = "CHLD",
    [SIGCONT] = "CONT",   [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP", [SIGTTIN] = "TTIN",
    [SIGTTOU] = "TTOU",   [SIGURG] = "URG",   [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ",
    [SIGWINCH] = "WINCH", [SIGSYS] = "SYS",
};

char *
strerror(int error)
{
	static char unknown[24];

	if (error >= 0 && (size_t)error < sizeof(error_texts) / sizeof(error_texts[0]) &&
	    error_texts[error] != NULL)
		return (char *)error_texts[error];
	snprintf(unknown, sizeof(unknown), "error %d", error);
	return unknown;
}

void
perror(const char *what)
{
	int error = errno;

	fprintf(stderr, "%s: %s\n", what, strerror(error));
}

const char *
signal_name(int sig)
{
	return sig > 0 && sig <= NSIG ? signal_names[sig] : NULL;
}

int
signal_number(const char *name)
{
	char *end;
	long n = strtol(name, &end, 10);

	if (end != name && *end == '\0')
		return n >= 0 && n <= NSIG ? (int)n : -1;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (int sig = 1; sig <= NSIG; sig++) {
		if (signal_names[sig] != NULL && strcasecmp(name, signal_names[sig]) == 0)
			return sig;
	}
	return -1;
}
