/*
 * proc.h - processes: an address space, open files, a user, one thread; and signals.
 *
 * Locking legend of struct proc:
 *   [c] constant after creation
 *   [p] proc_lock, one spin lock for the process tree and signals
 *   [t] only the process's own thread
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"
#include "ktr/intern.h"

struct filetable;
struct thread;
struct uidinfo;
struct vmspace;
struct vnode;

/* PROC_CURSOR is no process: it keeps a reader's place in the list of all. */
enum proc_state { PROC_ALIVE, PROC_STOPPED, PROC_ZOMBIE, PROC_CURSOR };

struct proc {
	uint32_t pid;       /* [c] also its thread's tid */
	uint32_t pgid;      /* [p] */
	uint32_t uid;       /* [t] written; read by anyone */
	struct uidinfo *ui; /* [t] who pays; changed under proc_lock */
	/* [t] Last part of the executed path. There is a NUL in it at every moment. */
	char name[KTR_THREAD_NAME];
	enum proc_state state;   /* [p] */
	struct proc *parent;     /* [p] */
	struct list children;    /* [p] */
	struct list sibling;     /* [p] */
	struct list all;         /* [p] */
	struct thread *thread;   /* [p] NULL when it has ended */
	struct vmspace *vm;      /* [t] changed under proc_lock; others ask for its size under it */
	struct filetable *files; /* [t] NULL when it has ended */
	struct vnode *cwd;       /* [t] a reference */
	int wait_status;         /* [p] as wait4 reports */
	bool status_new;         /* [p] a stop or continue not yet reported */
	bool doomed;             /* [p] killed for its memory */
	uint64_t sig_pending;    /* [p] bit n-1 is signal n */
	uint64_t sig_ignored;    /* [p] SIG_IGN */
	uint64_t sig_blocked;    /* [p] */
};

/* The process that runs here; NULL in kernel threads. Any context. */
struct proc *curproc(void);

/* Who pays for what is allocated here: the current process's user; kernel threads: user 0. */
struct uidinfo *curuidinfo(void);

/* Signals a process group (tty, kill). Any context but NMI. Returns how many got it. */
unsigned proc_signal_group(uint32_t pgid, int sig);
/* Signals the current process (SIGPIPE). Thread context of a process. */
void proc_signal_self(int sig);
/*
 * Job control: stops the current process's group with sig. 0: it was stopped, and has been
 * continued since. 1: the process ignores or blocks sig. -EIO: its group is orphaned, so nobody
 * would ever continue it. Thread context of a process, no lock held; a signal that kills does not
 * return.
 */
int proc_stop_group(int sig);
/* Does the current process have a signal to act on? Long kernel loops and sleeps ask. Any context.
 */
bool proc_signal_pending(void);
