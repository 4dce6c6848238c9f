/*
 * ptrace.h - a thread that a debugger, its tracer, has attached to, stops where ptrace(2) says, and
 * waits there until the tracer lets it go on.
 *
 * A record of the two is in the tracer's list. It outlives the thread, until the tracer has waited
 * for its end. Of a thread that is stopped and left by its tracer, the thread itself frees it.
 *
 * Locking: proc_lock guards records. A stopped thread's registers are read and changed under it:
 * until it is released, the thread stays where it is, also if it is killed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/fpu.h"
#include "kernel/abi/signal.h"
#include "kernel/lib/list.h"

struct arch_trapframe;
struct lwp;
struct proc;

enum ptrace_state {
	PTRACE_RUNS,
	PTRACE_STOPPED,
	PTRACE_LISTENS, /* stopped with its group; a change of that is a new stop */
	PTRACE_ENDED,
};

enum ptrace_call { PTRACE_NO_CALL, PTRACE_CALL_ENTRY, PTRACE_CALL_EXIT };

struct ptrace {
	struct list link; /* in the tracer's tracees */
	struct uidinfo *ui;
	struct proc *tracer; /* NULL: it has left a stopped thread */
	struct lwp *lwp;     /* NULL: the thread has ended */
	uint32_t tid, pid, pgid, uid;
	uint32_t options; /* PTRACE_O_… */
	bool seized;      /* by PTRACE_SEIZE */
	bool capable;     /* the tracer had CAP_SYS_PTRACE; if PTRACE_TRACEME: the tracee had */
	bool interrupt;   /* the thread is to stop, for no reason of its own */
	bool passed;      /* the thread was let go on though its group is stopped */
	bool news;        /* the tracer has not waited for `status` */
	bool inside;      /* the thread is in its stop, and frees the record if nobody traces it */
	enum ptrace_state state;
	int status;            /* as wait4() reports */
	uint32_t mode;         /* how it was let go on: PTRACE_CONT, _SYSCALL, _SINGLESTEP */
	int sig;               /* with this signal, 0: none */
	uint64_t message;      /* of an event */
	enum ptrace_call call; /* it is stopped at a system call */
	bool has_info, has_fpu, fpu_set;
	struct siginfo info; /* why it has stopped, if has_info */
	struct arch_fpu fpu; /* while the thread is stopped; fpu_set: to be loaded */
};

/* Does somebody trace the thread? proc_lock held: a tracer that ends frees the record. */
bool ptrace_traced(const struct lwp *l);
/*
 * Does tracing allow that the thread gains rights by exec? Yes if nobody traces it, or if whoever
 * began to had CAP_SYS_PTRACE. The tracer's rights of now do not count: it could execute a set-id
 * program, and drop the rights of that when the tracee has gained its own. proc_lock held.
 */
bool ptrace_lets_gain(const struct lwp *l);

/* ---- where the current thread stops. proc_lock held, which is released meanwhile. ---- */

/* Called before sig is delivered. Returns what to deliver: 0 nothing; *info says why. */
int ptrace_signal(int sig, struct siginfo *info);
/* The group is stopped by sig, or the tracer has asked. */
void ptrace_group_stop(int sig);
void ptrace_interrupted(void);
/* A handler was prepared while the thread is stepped: that is a step. */
void ptrace_handler(void);

/* ---- the same without the lock. Thread context. ---- */

/* Tells the tracer of an event, PTRACE_EVENT_…, if it wants that. */
void ptrace_event(int event, uint64_t message);
/* The thread has executed another program; old_tid: its number before. */
void ptrace_executed(uint32_t old_tid);
/* Around a system call, if thread.traced. False: the call is not made: its tracer wants that, or
 * has killed the thread meanwhile, or its number is -1. */
bool ptrace_call_enter(struct arch_trapframe *tf);
void ptrace_call_leave(struct arch_trapframe *tf);
/* Returns to the program, from now on step by step if the tracer wants that. Interrupts off. */
void ptrace_return(struct arch_trapframe *tf);

/* ---- beginnings and ends ---- */

/*
 * Makes a record for the child of the current thread, if its tracer wants to trace children of that
 * kind, which `event` says. NULL if not; or if there is no memory, and then *error is -ENOMEM.
 */
struct ptrace *ptrace_child(int event, int *error);
/* Frees a record that is not used after all. NULL is allowed. */
void ptrace_free(struct ptrace *pt);
/* The child l exists, and does not run yet. pt: its record, or NULL. proc_lock held. */
void ptrace_child_attach(struct ptrace *pt, struct lwp *l);
/* A thread ends, or the whole process p. True if the tracer is told first, and the parent only
 * afterwards. proc_lock held. */
void ptrace_thread_ends(struct lwp *l, int wait_status);
bool ptrace_process_ends(struct proc *p, int wait_status);
/* The current process ends: leaves all that it traces. proc_lock held. */
void ptrace_tracer_ends(struct proc *p);
/* Thread l becomes the first one of its process, `first`. proc_lock held. */
void ptrace_become_first(struct lwp *first, struct lwp *l);
/* The group of p goes on; or all threads of p are to look. proc_lock held. */
void ptrace_group_goes_on(struct proc *p);
void ptrace_wake(struct proc *p);

/* ---- waiting ---- */

/* Something that the current process traces and has news of; as wait_child(). proc_lock held. */
struct ptrace *ptrace_news(bool (*wanted)(int64_t want, uint32_t tid, uint32_t pgid), int64_t want,
			   int options, bool *any);
/* The process of a thread that is traced. NULL: it is no more. proc_lock held. */
struct proc *ptrace_process(const struct ptrace *pt);
/* The tracer has waited for it. */
void ptrace_waited(struct ptrace *pt);
/* Must the parent wait until a tracer has waited for the end of p? proc_lock held. */
bool ptrace_holds(const struct proc *p);
/* If its parent traces p, which has ended, it waits for p as for any child. proc_lock held. */
bool ptrace_forget_own(struct proc *p);
/* Does its parent trace p? Then its stops are those of the thread. proc_lock held. */
bool ptrace_is_own(const struct proc *p);
