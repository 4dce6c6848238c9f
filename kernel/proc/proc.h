/*
 * proc.h - processes: an address space, open files, a user, threads; and signals.
 *
 * Locking legend of struct proc and struct lwp:
 *   [c] constant after creation
 *   [p] proc_lock, one spin lock for the process tree, threads and signals
 *   [t] only the thread itself; in struct proc: one word, which any of its threads may write
 *   [1] changes only while the process has one thread
 * An address space and a table of files have locks of their own (vm.h, file.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/signal.h"
#include "kernel/abi/resource.h"
#include "kernel/abi/signal.h"
#include "kernel/lib/list.h"
#include "kernel/proc/itimer.h"
#include "kernel/proc/task.h"
#include "kernel/sched/thread.h"
#include "ktr/intern.h"

struct arch_trapframe;
struct filetable;
struct ktrace;
struct ptrace;
struct sbuf;
struct uidinfo;
struct vmspace;
struct vnode;

/* PROC_CURSOR is not a process: it marks a reader's position in the list of all processes. */
enum proc_state { PROC_ALIVE, PROC_STOPPED, PROC_ZOMBIE, PROC_CURSOR };

/*
 * A signal that was sent and not taken yet. Those of one number are a ring. The last ones of all
 * rings are a list, in no order. So a process that has many of one number does not make looking for
 * another one slow.
 */
struct sigqueue {
	struct sigqueue *next;  /* the next one of its number; of the last one: the first */
	struct sigqueue *other; /* of the last one of a signal: the last one of another signal */
	struct uidinfo *ui;     /* [c] the user for whom it counts; NULL: it does not */
	bool queued, kept;      /* kept: its owner frees it */
	struct siginfo info;
};

/*
 * What is pending for a process or a thread. A signal in `set` may not be in the queue, because
 * there was no room; then it is taken as SI_USER from process 0.
 */
struct sigpending {
	uint64_t set;           /* bit n-1 is signal n */
	struct sigqueue *queue; /* the last ones of each number */
};

/* What kernel/ktrace keeps of a thread. Only the thread itself. */
struct ktrace_lwp {
	bool busy; /* the thread is in ktrace itself: what it does is not recorded */
	/* The system call that it is in. */
	bool in_call, has_args;
	uint32_t code;     /* of one that is unknown */
	uint64_t args[4];  /* if has_args: those that were needed when the call began */
	const char *waits; /* why it lost the CPU, for the record of its return; NULL: none */
};

#define LWP_CALLS 64

/* A call of a function whose return a probe awaits. */
struct lwp_call {
	struct lwp_call *next;
	uintptr_t sp;       /* when the function began */
	uintptr_t returner; /* where it returns to now */
	uintptr_t ret;      /* where the program has called it from */
	uintptr_t function;
	const void *object; /* the object whose code it is, and where in it: vm_code_at() */
	uint64_t offset;
};

/* A thread of a process. */
struct lwp {
	struct thread *thread;    /* [c] NULL: not a thread, but a reader's position in the list */
	struct list sibling;      /* [p] in proc.lwps */
	struct uidinfo *ui;       /* [c] for whom it counts; NULL: the process's first thread */
	bool dying;               /* [p] the thread ends when it would return to its program */
	bool woken;               /* [p] ... and was woken for that */
	bool sig_restore;         /* [t] */
	bool call_final;          /* [t] proc_call_final() */
	uint64_t again_ns;        /* [t] proc_deadline(): of the call that begins again; 0: none */
	uint64_t again_pc;        /* [t] where it does */
	bool sig_stops;           /* [p] neither SIGCONT nor SIGKILL came since it took a signal */
	bool stops;               /* [p] the thread has still to stop, with its process */
	uint64_t set_tid;         /* [c] where the thread stores its number first; 0: nowhere */
	struct proc *vfork_child; /* [p] the thread waits until this executes or ends; NULL: none */
	uint64_t clear_tid;       /* [t] where the thread stores 0 when it ends; 0: nowhere */
	uint64_t robust;          /* [t] the thread's list of robust mutexes; 0: none */
	struct sigpending pending;    /* [p] for this thread */
	struct sigqueue fault;        /* [p] why it has caused one */
	struct arch_fault fault_regs; /* [t] of the last one */
	uint64_t sig_blocked;         /* [p] */
	uint64_t sig_awaited; /* [p] by sigtimedwait: sent even if its default is to do nothing */
	uint64_t sig_saved;   /* [t] if sig_restore, sig_blocked after the next delivery */
	uint16_t ioprio;      /* [p] ioprio_set()'s: stored and reported; no effect */
	uint64_t timer_slack; /* [t] ns, as it was set */
	uint64_t timer_slack_default;  /* [t] timer_slack when the thread began */
	struct sigaltstack sig_stack;  /* [t] */
	struct sigaltstack left_stack; /* [t] SS_AUTODISARM: of the handler that runs */
	struct held held;              /* [t] */
	struct ktrace_lwp trace;       /* [t] */
	struct { /* [t] the thread runs a copy of the instruction at `at`; copy 0: none */
		uintptr_t copy, end; /* where the copy is, and where it ends */
		uintptr_t at, next;
	} step;
	struct ptrace *ptrace;  /* [p] a debugger's record of it (ptrace.h); NULL: nobody's */
	struct lwp_call *calls; /* [t] the last one first */
	unsigned ncalls;        /* [t] at most LWP_CALLS */
};

/* Rights, as bits: 1 << CAP_…. */
struct caps {
	uint64_t effective;   /* rights that count */
	uint64_t permitted;   /* rights that may be effective */
	uint64_t inheritable; /* exec gives user 0 these */
	uint64_t bounding;    /* and these, both together */
	bool keep;            /* permitted rights stay when no user id is 0 any more, until exec */
	bool no_new;          /* exec gives none: PR_SET_NO_NEW_PRIVS */
};

#define GROUPS_MAX 16 /* supplementary groups */

#define PROC_ARGS    80  /* bytes of a program's arguments that dtrace can read */
#define PROC_PROGRAM 128 /* bytes of its path */

/* A timer of the time that the process has a CPU (cpu_timers.c). */
enum { CPU_TIMER_VIRTUAL, CPU_TIMER_PROF, CPU_TIMERS };
struct cpu_timer {
	uint64_t deadline_ns; /* when it expires, by that time; 0: it does not run */
	uint64_t interval_ns;
};

struct proc {
	uint32_t pid;                /* [c] also its first thread's tid */
	uint32_t pgid;               /* [p] */
	uint32_t sid;                /* [p] session: the pid of the process that began it */
	bool no_tty;                 /* [t] the process has given up the session's terminal */
	uint32_t uid;                /* [t] effective; written by its own thread, read by anyone */
	uint32_t ruid, suid;         /* [p] real and saved */
	uint32_t fsuid, fsgid;       /* [t] for access to files; read by anyone, as uid */
	uint32_t gid;                /* [p] its own thread reads these ids without the lock */
	uint32_t rgid, sgid;         /* [p] */
	unsigned ngroups;            /* [p] how many supplementary groups */
	uint32_t groups[GROUPS_MAX]; /* [p] the supplementary groups */
	struct caps caps;            /* [p] as gid */
	struct uidinfo *ui;          /* [t] the user who is charged; changed under proc_lock */
	/* [p] Last part of the executed path, or the first thread's new name; as thread.name. */
	char name[KTR_THREAD_NAME];
	char program[PROC_PROGRAM]; /* [p] the path that was executed, from the root; as `name` */
	char psargs[PROC_ARGS]; /* [t] the beginning of the arguments; contains a NUL, as `name` */
	enum proc_state state;  /* [p] */
	unsigned nthreads;      /* [p] threads in `lwps`; a thread that is alone may read it */
	struct proc *parent;    /* [p] */
	struct list children;   /* [p] */
	struct list tracees;    /* [p] the threads that the process traces: struct ptrace */
	struct list sibling;    /* [p] */
	struct list all;        /* [p] */
	struct list group;      /* [p] the ring of the processes with its pgid, also zombies */
	bool loses_parent;      /* [p] its group may be orphaned: give_children_away() */
	struct proc *same_hash, *next_group; /* [p] (proc_find.c) */
	struct lwp first;                    /* its first thread, which may have ended */
	struct list lwps;                    /* [p] the threads that live */
	struct thread *thread;               /* [p] the oldest thread that lives; NULL: none does */
	bool exiting;               /* [p] all threads end, and the process with exit_status */
	int exit_status;            /* [p] */
	uint64_t start_ns;          /* [c] in clock_ns() time */
	struct usage threads_usage; /* [p] of threads that have ended */
	struct vmspace *vm;      /* [1] changed under proc_lock, so that others may read its size */
	struct filetable *files; /* [1] changed under proc_lock; NULL: the process is ending */
	bool shares_files;       /* [t] another process has the table, too, or had it */
	uint8_t exit_signal;     /* [p] signal that its parent gets when it ends; 0: none */
	uint64_t execs;          /* [p] how many programs it has executed */
	uint64_t parent_execs;   /* [p] `execs` of its parent when that chose exit_signal */
	struct vnode *cwd;       /* [p] a reference */
	struct vnode *root;      /* [p] and vfs_lock; a reference; NULL: that of the machine */
	struct vnode *exe;       /* [p] the file that it executes, a reference and a
				    vnode_execute_begin(); NULL: none */
	uint32_t umask;          /* [t] */
	uint32_t personality;    /* [t] all but READ_IMPLIES_EXEC kept only for who asks */
	bool executed;           /* [p] the process has executed a program since its fork() */
	int wait_status;         /* [p] as wait4 reports */
	int stop_sig;            /* [p] what stopped it last */
	unsigned stopping;       /* [p] threads that have still to stop; then the parent is told */
	struct usage children_usage; /* [p] of children that it has waited for, with theirs */
	struct itimer alarm;         /* SIGALRM */
	struct cpu_sums sums;        /* of all threads of the process, if it ever had several */
	struct cpu_timer cpu_timers[CPU_TIMERS]; /* [p] ticks read deadline_ns without it */
	struct leftist *cpu_alarms;              /* [p] by its CPU clock (cpu_clock.h) */
	struct list thread_alarms;               /* [p] by its threads' CPU clocks */
	uint64_t cpu_alarm_ns;    /* atomic: when to look at alarms, by its CPU clock */
	bool cpu_timed;           /* atomic: the process has such an alarm, or RLIMIT_CPU */
	struct list timers;       /* [p] of timer_create() */
	struct list sem_undos;    /* what semop() has to undo (kernel/ipc/sem.c: sem_mutex) */
	uint32_t next_timer;      /* number of the next timer (posix_timers.c: timer_mutex) */
	struct lwp *vfork_waiter; /* [p] waits until this process executes or ends; NULL: none */
	bool undumpable;  /* [t] its user may not look into it: it has changed its ids since it, or
			   * the parent, has executed a program; or the real ones are others; or
			   * he may execute the program, but not read it */
	bool crowds;      /* [p] its user had too many processes when it became his */
	bool execing;     /* [p] exec_ids_hold(): who wants to attach to the process waits */
	bool membarrier;  /* [t] it has registered for membarrier() */
	bool subreaper;   /* [t] PR_SET_CHILD_SUBREAPER */
	int death_signal; /* [t] when its parent ends; 0: none */
	bool status_new;  /* [p] a stop or continue that wait4 has not reported yet */
	uint64_t doomed_ns;        /* [p] when the out-of-memory code first killed it; 0: never */
	struct sigpending pending; /* [p] for any thread */
	uint64_t sig_ignored;      /* [p] SIG_IGN */
	uint64_t paused;           /* [p] signals of timers that pause, since they were ignored */
	struct kernel_sigaction sig_action[NSIG]; /* [p] */
	uint64_t sig_caught;                      /* [p] signals with a handler */
	struct ktrace *trace;  /* kernel/ktrace's; NULL: the process is not traced */
	unsigned traces;       /* how many there are of it, with those that it has left */
	uint32_t trace_change; /* [p] the last change of tracing that named it, or an ancestor */
	struct rlimit limits[RLIMIT_NLIMITS]; /* [p] the process itself reads rlim_cur without it */
};

_Static_assert(sizeof(struct proc) <= 4096, "a fork takes one page for it");

/* Set once by ktrace: the current process has made a child, which does not run yet. Thread context,
 * no locks. */
extern void (*proc_fork_hook)(struct proc *child);

/* The current process; NULL in kernel threads. Any context. */
struct proc *curproc(void);
/* The current thread of a process. */
struct lwp *curlwp(void);

/*
 * Marks the threads of a process, and those of processes that it makes from now on (thread.h:
 * follow); with at_exec, when it executes a program. 0; -ESRCH; -EBUSY if it has a mark for which
 * is_used() is true. Thread context.
 */
int proc_follow(uint64_t pid, uint32_t follow, bool at_exec, bool (*is_used)(uint32_t follow));
/* The current process, of one thread, has executed a program. Thread context, no lock held. */
void proc_follow_executed(void);

/* Prints a line for each thread of a program: its number, and that of its process. */
void proc_print_threads(struct sbuf *out);
/* The process of a thread, also an ended one; 0: a kernel's thread, or forgotten. Any context. */
uint32_t proc_number_of(uint32_t tid);
/* The path of what a process executes, from the root. False: there is no such process. */
bool proc_program(uint32_t pid, char path[PROC_PROGRAM]);

/*
 * Signals a process group of a session; not one of another, which has got the number of a group
 * that ended. Any context but NMI. Returns how many processes got it.
 */
unsigned proc_signal_group(uint32_t sid, uint32_t pgid, int sig);
/* Signals one process, if it is there. Any context but NMI. */
void proc_signal_one(uint32_t pid, int sig);
/* The session of a process group. 0: there is no such group. */
uint32_t proc_group_session(uint32_t pgid);
/* Is in that group of the current process's session one of its user, or a child, or none at all? */
bool proc_group_own(uint32_t pgid);
/*
 * Job control: sends sig, which stops, to the current process's group. -EINTR: it is sent, and the
 * system call ends with this error; it begins again when the process is continued. 1: the process
 * ignores or blocks sig. -EIO: the group is orphaned, so nobody would continue it. Thread context
 * of a process, no lock held.
 */
int proc_stop_group(int sig);

/* ---- the tree of processes ---- */

extern struct spinlock proc_lock;
/* The process after p in the list of all; NULL starts, and ends. proc_lock held. */
struct proc *proc_next(const struct proc *p);
#define for_each_proc(p) for (struct proc *p = proc_next(NULL); p != NULL; p = proc_next(p))
/* Each process of p's group, p first. NULL: of none. proc_lock held. */
#define for_each_member(m, p)                                     \
	for (struct proc *m = (p), *m##_end = NULL; m != m##_end; \
	     m##_end = (p), m = list_entry(m->group.next, struct proc, group))
/* The process with that number, also a zombie. NULL: there is none. proc_lock held. */
struct proc *proc_find(uint32_t pid);
/* The thread with that number, of a process. NULL: there is none. proc_lock held. */
struct lwp *lwp_find(uint32_t tid);
/* The process of which a vnode is the directory in /proc, and its start unless start_ns is NULL;
 * 0: it is none. procfs.c defines it. */
uint32_t proc_of_dir(const struct vnode *vn, uint64_t *start_ns);
/* The thread with that number, if it is one of p. NULL: it is not. proc_lock held. */
struct lwp *lwp_of(const struct proc *p, uint32_t tid);
/* The process that has that number, or a thread of it has. NULL: there is none. proc_lock held. */
struct proc *proc_find_any(uint32_t tid);
/* A process of the group. NULL: there is none. proc_lock held. */
struct proc *proc_find_group(uint32_t pgid);
/* The thread of p after l. NULL starts, and ends. proc_lock held. */
struct lwp *lwp_next(const struct proc *p, const struct lwp *l);
#define for_each_lwp(l, p) for (struct lwp *l = lwp_next(p, NULL); l != NULL; l = lwp_next(p, l))
/* Renames a thread, and with its first thread the process. proc_lock held. */
void proc_rename(struct lwp *l, const char *name);
/* What p has used: the sum over all threads, also ended ones, and the largest size. proc_lock
 * held. */
struct usage proc_usage(const struct proc *p);
/* May the current process look into p, and change it? proc_lock held. */
bool proc_may_trace(const struct proc *p);
/* Sends sig to one process. proc_lock held. */
void proc_signal_locked(struct proc *p, int sig);
/*
 * Sends the current process the signal of a fault. If it blocks or ignores the signal, it is
 * killed, since it would fault for ever. proc_lock held.
 */
void proc_signal_fault_locked(struct proc *p, const struct siginfo *info);
/*
 * A page fault of the current process found no memory: gives up pages of disks; if there are none,
 * kills a process (oom.c) and waits a short time for its end. True: try again. False: nothing can
 * be freed, or the current process has to die. Thread context, no spin lock held.
 */
bool proc_out_of_memory(void);
/*
 * May another line of this kind be printed? Otherwise a user's programs would fill the console, and
 * dmesg, with them. A later line says how many were left out. Any context but NMI.
 */
struct proc_told {
	uint64_t since_ns;
	unsigned count;
};
bool proc_may_tell(struct proc_told *told, const char *what);

/* ---- step.c: of the current thread, in an entry from user mode ---- */

/* The program's pc: of the instruction if the thread l, whose frame is tf, runs a copy of it. */
uintptr_t lwp_pc(const struct lwp *l, const struct arch_trapframe *tf);
/* The copy has been run, or cannot be: makes that the frame's pc. */
void lwp_step_end(struct arch_trapframe *tf);
/* Must signals wait, since the thread is in a copy? Those that end the thread need not. */
bool lwp_stepping(const struct arch_trapframe *tf);
/* The last call with that stack pointer; NULL: none. */
struct lwp_call *lwp_call_find(struct lwp *l, uintptr_t sp);
void lwp_call_end(struct lwp *l, struct lwp_call *call);
/*
 * A call begins, with that stack pointer. When room is needed, the calls that were left by jumps
 * lose theirs. NULL if there are too many calls, or no memory.
 */
struct lwp_call *lwp_call_begin(struct lwp *l, uintptr_t sp);
void lwp_calls_forget(struct lwp *l);
/* Copies the calls for a child, which will return from them, too. 0 or -ENOMEM. */
int lwp_calls_copy(struct lwp *to, const struct lwp *from);
