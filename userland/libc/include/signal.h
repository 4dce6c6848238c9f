/* signal.h - signals: default action or ignored; Kestrel runs no handlers in programs. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/signal.h"

/* The kernel's constants are plain numbers; C's are function pointers. */
#undef SIG_DFL
#undef SIG_IGN
#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define SIG_ERR ((void (*)(int)) - 1)

/* `action` is SIG_DFL or SIG_IGN. Returns the action before, or SIG_ERR with errno. */
void (*signal(int sig, void (*action)(int)))(int);
/* pid > 0 a process, < -1 the group -pid, 0 the own group. */
int kill(pid_t pid, int sig);
int raise(int sig);
/* "INT" for SIGINT; NULL for a number that has no name. */
const char *signal_name(int sig);
/* Number of "INT", "SIGINT" (any case) or "2"; -1 for anything else. */
int signal_number(const char *name);

/* Sets of signals; always 0. */
typedef uint64_t sigset_t; /* the standard's name */
int sigemptyset(sigset_t *set);
int sigaddset(sigset_t *set, int sig);
#define SIG_BLOCK   0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
/* Signals that are blocked wait. `old` may be NULL. */
int sigprocmask(int how, const sigset_t *set, sigset_t *old);
struct timespec;
/*
 * Waits until one of the signals, which are blocked, comes, and takes it: its number. -1 with
 * EAGAIN after that time, with EINTR if another signal came. info is NULL.
 */
int sigtimedwait(const sigset_t *set, void *info, const struct timespec *time);
