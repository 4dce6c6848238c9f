/* proc_private.h - between the files of kernel/proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/resource.h"
#include "kernel/proc/proc.h"
#include "kernel/syscall.h"

struct arch_trapframe;
struct file;
struct itimer;
struct itimer_left;
struct kernel_sigaction;
struct poll_source;
struct siginfo;
struct sigpending;
struct sigqueue;
struct thread;
struct vmspace;
struct vnode;

extern struct list procs; /* proc_lock */

/* p is in the list of all processes from now on, or no longer. proc_lock held. */
void proc_join(struct proc *p);
void proc_leave(struct proc *p);

/* The timer of setitimer() has expired: sends SIGALRM to the process. */
void proc_alarm(struct itimer *t);
/*
 * Call this when a signal of p was taken or dropped: the timer that sent it runs on, and info gets
 * how often it has expired in addition. kept: as from sigqueue_take(). proc_lock held.
 */
void proc_timers_take(struct proc *p, struct siginfo *info, bool kept, bool dropped);
/* Somebody may hear these signals now: no timer of p that sends one pauses any more. proc_lock
 * held. */
void proc_timers_resume(struct proc *p, uint64_t signals);
/* Deletes the timers of the current process, p. */
void proc_timers_end(struct proc *p);
/* Can this clock, CLOCK_…, have timers? */
bool clock_has_timers(uint32_t clock);
/* Reads Linux's struct itimerspec: when a timer of a clock is to expire. 0, -EFAULT or -EINVAL. */
int take_itimerspec(uint64_t from, uint32_t clock, bool absolute, struct itimer_when *when);
/* Stores one. 0 or -EFAULT. */
int give_itimerspec(uint64_t to, const struct itimer_left *left);
/* Sets a timer of the current process, if `new` is not NULL. Returns what was left. */
struct itimer_left cpu_timer_set(unsigned timer, const struct itimer_left *new);
/* A timer of the process, or RLIMIT_CPU, is another: must ticks look? proc_lock held. */
void cpu_timers_update(struct proc *p);
/* Stores Linux's struct rusage. 0 or -EFAULT. */
int rusage_give(uint64_t to, struct usage u);
/* The limits of process 1. */
void rlimit_init(struct rlimit limits[RLIMIT_NLIMITS]);
/* Loads a new image into the current process, and fills tf. On error the old one is intact. */
int exec_image(struct proc *p, const char *path, char *const argv[], char *const envp[],
	       struct arch_trapframe *tf);
/*
 * Makes vm the address space of the current process, p; NULL leaves p with the kernel's alone. The
 * caller then destroys the old space. proc_lock held.
 */
void proc_set_space(struct proc *p, struct vmspace *vm);
/* The current process, p, has left the address space of its parent, which may wait for that. */
void proc_vfork_done(struct proc *p);
/*
 * The hooks proc_exit run when the current process has no memory and no files any more, and is not
 * a zombie yet: thread context. The hooks user_return run before a return to user mode, if
 * pcpu.work is set and whenever signals or rescheduling are looked for: thread context, no lock
 * held.
 */
/*
 * Tells the parent of the end of p. If the parent wants no zombies, and does not trace p (awaited),
 * process 1 waits for p instead. proc_lock held.
 */
void proc_tell_end(struct proc *p, bool awaited);
/* Tells the parent by SIGCHLD what happened to p: code is CLD_…, status a status or a signal.
 * proc_lock held. */
void proc_signal_child(struct proc *p, int sig, int code, int status);
/* Ends the current process with a wait status: its other threads, too. */
_Noreturn void do_group_exit(int wait_status);
/*
 * Its first part: the process has the status, and its other threads are told to end; unless it ends
 * already, or the current thread does. Returns the status with which that is to end. proc_lock
 * held, but not all the time.
 */
int proc_exit_begin(int wait_status);
/* Ends the current thread; and its process, with that status, if it is the last one. */
_Noreturn void do_exit(int wait_status);
/* A process no longer executes the file. NULL is allowed. */
void proc_exe_drop(struct vnode *exe);
/* Ends all other threads of the current process. -EINTR: the current one has to end, too. */
int proc_single(void);
/* The current thread, which is alone, becomes the first one: with the process's number. */
void proc_become_first(void);
/* What a thread that ends does for others that wait: robust mutexes and clear_tid. */
void futex_thread_exit(struct lwp *l);
/* The clock of the day was set: threads that wait until a time of it look again. Thread context. */
void futex_clock_set(void);
extern struct proc *init_proc; /* constant once it has started */

/* id_syscalls.c: who a process is. */
struct creds {
	uint32_t uid, ruid, suid, fsuid, gid, rgid, sgid, fsgid;
	unsigned ngroups;
	uint32_t groups[GROUPS_MAX];
	struct caps caps;
	bool undumpable;
};
/* The credentials of the current process, all of one moment. */
void creds_get(struct creds *c);
/* Who a process becomes when it executes a file whose set-id bits count, or do not. */
struct exec_ids {
	uint32_t uid, gid;
	uint32_t was[4]; /* real and effective user, then group, that it had */
	bool secure;     /* the program has rights that its user has not: AT_SECURE */
	bool unreadable; /* the user may not read the program, or its interpreter */
};
/* Takes the vnode's lock, then proc_lock. */
void exec_ids_get(struct vnode *vn, struct exec_ids *ids);
/*
 * The current process, which has one thread, will take these ids: until then nobody attaches to it.
 * -EAGAIN if its ids have changed since exec_ids_get(), or it may no longer gain rights.
 */
int exec_ids_hold(const struct exec_ids *ids);
/*
 * The current process takes these ids. If it gets other ids or rights, or its user may not look
 * into it, the hooks exec_gains run. proc_lock held.
 */
void exec_ids_take(const struct exec_ids *ids);
/* Gives the credentials to a new process, which does not run yet. */
void creds_give(struct proc *p, const struct creds *c);

/*
 * Makes a process that is charged to the user, with a thread that will run fn. It is not in the
 * tree yet. NULL and *err: -EAGAIN too many processes, -ENOMEM.
 */
struct proc *proc_alloc(const char *name, uint32_t uid, void (*fn)(void *), int *err);
/* Frees a process that was never in the tree. */
void proc_discard(struct proc *p);
/* Frees a process that has no thread and is not in the tree. */
void proc_free(struct proc *p);
/* Makes t a thread of p. l is zeroed. */
void lwp_init(struct lwp *l, struct proc *p, struct thread *t);
/* The lwp counts as one of p from now on. proc_lock held, or p is not in the tree yet. */
void lwp_join(struct proc *p, struct lwp *l);
/* Frees a thread's lwp, unless it is the first one, which is a part of its process. */
void lwp_free(struct lwp *l);
/* Threads of p look whether a signal, a stop or the end awaits them. proc_lock held. */
void proc_signals_update(struct proc *p);
/* One thread, whose mask has changed, looks whether something awaits it. proc_lock held. */
void proc_signals_update_thread(struct proc *p, struct lwp *l);
/*
 * The current thread blocks these signals from now on, but not SIGKILL and SIGSTOP. If others may
 * take what is pending and this one no longer takes, they are woken. Takes proc_lock.
 */
void proc_signals_block(uint64_t mask);
/* Has p's user more processes than he, or the current process, may have? */
bool proc_is_crowded(const struct proc *p);
/*
 * For signals of the set that are pending for p: ends the sleep of a thread for each, unless the
 * current one takes it. Also after the thread that was chosen for one has ended or blocks it. One
 * walk serves all signals, for there may be many threads. proc_lock held.
 */
void proc_signals_retarget(struct proc *p, uint64_t set);
/*
 * The thread l of the stopped process p stops, or ends. When all have, the parent is told.
 * proc_lock held.
 */
void proc_thread_stops(struct proc *p, struct lwp *l);
/* Will the current process end, or stop, when it returns from its system call? proc_lock held. */
bool proc_signal_ends(bool or_stops);
/*
 * Takes a pending signal that kills the current process, even if one of a lower number has a
 * handler. Returns its number; 0 if there is none, or the process or thread ends already. proc_lock
 * held.
 */
int proc_signal_take_fatal(struct siginfo *info);
/*
 * Ends the current process by such a signal, of that si_code, if nobody has chosen another wait
 * status. proc_lock held, since the signal was taken or that was looked at; it is released.
 */
_Noreturn void proc_signal_die(int sig, int code);
/*
 * Is n the number of a process, a group or a session, or of a thread that a tracer knows? Takes
 * proc_lock.
 */
bool proc_has_number(uint32_t n);
/* p leaves its group for the group pgid, which may be new. proc_lock held. */
void proc_set_group(struct proc *p, uint32_t pgid);
/* Has no member of p's group, but perhaps `except`, a parent that could? proc_lock held. */
bool proc_orphaned(struct proc *p, const struct proc *except);
/* Forgets p's pending signals of the set; all that only l may take. proc_lock held. */
void proc_signals_drop(struct proc *p, uint64_t set);
void proc_signals_drop_thread(struct lwp *l);
/* Does p, a parent or a tracer, get SIGCHLD of stops? proc_lock held. */
bool proc_hears_stops(const struct proc *p);
/* Would sig have no effect on p? proc_lock held, or p is the current process. */
bool proc_signal_ignored(const struct proc *p, int sig);
/*
 * Sends the signal in info to process p or, if l is not NULL, to its thread l only. own: the
 * sender's queue entry; NULL: one is allocated. Returns 0. -EAGAIN: a real-time signal was not
 * sent, because its entry could not be allocated (too many, or no memory); with SI_USER or
 * SI_KERNEL it is sent without an entry. proc_lock held.
 */
int proc_signal_send(struct proc *p, struct lwp *l, const struct siginfo *info,
		     struct sigqueue *own);
/*
 * Allocates a queue entry for a signal to p, which counts for p's user. NULL if there is no memory;
 * or, if it is `limited`, if the user has as many as RLIMIT_SIGPENDING allows. Any context but NMI.
 */
struct sigqueue *sigqueue_alloc(struct proc *p, bool limited);
/* The owner of q needs it no longer. proc_lock held, as for the next two. */
void sigqueue_free(struct sigqueue *q);
/* The signal of q is pending from now on. */
void sigqueue_add(struct sigpending *to, struct sigqueue *q);
/* Takes the oldest pending signal `sig`. True: its owner keeps its sigqueue. */
bool sigqueue_take(struct sigpending *from, int sig, struct siginfo *info);
/* `from`, if it is queued there, has moved to `to` in memory. */
void sigqueue_moved(struct sigpending *in, const struct sigqueue *from, struct sigqueue *to);
/* Forgets signals of the set, of p, that are pending there. proc_lock held. */
void sigpending_drop(struct proc *p, struct sigpending *from, uint64_t set);
/*
 * The same of those that the timers of p, the current process, have sent: it has one thread, and no
 * timer any more.
 */
void proc_signals_drop_timers(struct proc *p);
/*
 * Takes a signal of the set that is pending for the current thread or its process. Returns its
 * number, or 0. proc_lock held.
 */
int proc_signal_take(uint64_t set, struct siginfo *info);
/* pidfd.c: the open file of that descriptor, if it is one of pidfd_open(). NULL: it is none. */
struct file *pidfd_get(uint64_t fd);
/* The same; it may also be a directory /proc/PID, as for pidfd_send_signal(). */
struct file *pidfd_get_or_dir(uint64_t fd);
/* The process of a file of pidfd_open(), also a zombie. NULL: it is gone. proc_lock held. */
struct proc *pidfd_proc(const struct file *f);
/* A file of a process that does not run yet. NULL and *error. Without proc_lock. */
struct file *pidfd_make(const struct proc *p, int *error);
extern struct poll_source proc_end_news;    /* counts processes that ended */
extern uint32_t proc_end_files;             /* atomic: open pidfds; 0: nobody is told of ends */
extern struct poll_source proc_signal_news; /* counts signals that became pending, of all */
extern uint32_t proc_signal_files;          /* atomic: open signalfds; 0: nobody is told of those */
/* Forgets handlers, and their stack, since a new program has none. */
void proc_signals_exec(struct proc *p);
/*
 * Gives a new process the signal actions of its parent (with `clear`, without the handlers) and the
 * mask of the current thread. proc_lock held.
 */
void proc_signals_fork(struct proc *p, const struct proc *parent, bool clear);
/* Is that stack pointer in the stack of sigaltstack()? Never, as on Linux, with SS_AUTODISARM. */
bool sigframe_on_stack(const struct sigaltstack *s, uint64_t sp);
/* Is sp in the stack of sigaltstack(), also if SS_AUTODISARM has disabled that for a handler? */
bool sigframe_of_handler(const struct lwp *l, uint64_t sp);
/*
 * Makes the current process run a handler when it returns to user mode; `mask` is restored after
 * that. False if its stack has no room, or the handler is not an address.
 */
bool sigframe_enter(struct proc *p, struct arch_trapframe *tf, int sig,
		    const struct kernel_sigaction *act, const struct siginfo *info, uint64_t mask);
/*
 * A system call of the current process has failed for lack of memory. True if it should try again:
 * pages of disks were given up; or the process is user 0's, and a process of a user who holds too
 * much was killed. Thread context, no lock held.
 */
bool proc_reclaim(void);
/* ---- restart.c: a system call that a signal has interrupted ---- */

struct interrupted {
	enum syscall_restart how; /* RESTART_NOT: there is no interrupted call, or no more */
	bool rewound;             /* the frame is as of the call's next beginning, at `again` */
	uintptr_t pc, again;
};

/* Is tf, the frame of the current program, that of an interrupted call? */
struct interrupted interrupted_find(const struct arch_trapframe *tf);
/* Before a stop for a tracer, and after it: that sees the call as on Linux, and may change it. */
void interrupted_show(struct interrupted *c, struct arch_trapframe *tf);
void interrupted_look(struct interrupted *c, const struct arch_trapframe *tf);
/* A handler is about to run. restarts: it has SA_RESTART. */
void interrupted_handler(struct interrupted *c, struct arch_trapframe *tf, bool restarts);
/* No more handler runs. any: there was a signal. */
void interrupted_end(struct interrupted *c, struct arch_trapframe *tf, bool any);

/* Acts on pending signals of the current process before it returns to user mode by tf. */
void proc_deliver_signals(struct arch_trapframe *tf);
