/*
 * thread.h - threads: what the scheduler switches between.
 *
 * Locking legend of struct thread:
 *   [c] constant after creation
 *   [r] run-queue lock of the thread's CPU (runq.h)
 *   [s] lock of the sleep queue it is on (sleepq.c)
 *   [t] only the thread itself
 *   [a] the list lock of all threads (thread.c)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/context.h"
#include "arch/fpu.h"
#include "kernel/lib/fair.h"
#include "kernel/lib/list.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/sched.h"
#include "ktr/intern.h"

struct lwp;
struct mutex;
struct proc;
struct task_cred;

/* MOVING: it was runnable on a CPU that it may not use any more, and is on no queue for a moment.
 */
enum thread_state { THREAD_RUNNABLE, THREAD_RUNNING, THREAD_SLEEPING, THREAD_DEAD, THREAD_MOVING };

/*
 * Priorities, as Linux numbers them: a lower number runs first. What programs do must not keep the
 * kernel's threads from writing out the log or freeing memory. Those of ktrace have PRIO_USER.
 */
#define PRIO_KERN     0   /* other kernel threads; and the best real-time priority, 99 */
#define PRIO_RT       99  /* real time: this less the thread's real-time priority, 0 to 98 */
#define PRIO_FAIR     100 /* from here on: shares instead of an order (kernel/lib/fair.h) */
#define PRIO_USER     120 /* less or more its niceness: 100 to 139 */
#define PRIO_USER_MAX 140 /* SCHED_IDLE */
#define PRIO_IDLE     255 /* a CPU's idle thread */

#define KSTACK_SIZE 16384ul

/* The calls of functions in which a thread is: kernel/probe/calls.h. */
#define THREAD_CALLS 50

struct thread_call {
	uint64_t start_ns;
	union {
		uint64_t child_ns; /* the profiler's: time in functions that this one calls */
		uint64_t zero_ns;  /* the graph tracer's: that of the thread when it was called */
	};
	uint32_t function;
	bool hidden; /* the graph tracer's: neither the call nor what it calls is shown */
};

struct thread_calls {
	uint32_t run, depth; /* depth may be more than THREAD_CALLS */
	uint32_t lost;       /* calls for which there was no room */
	struct thread_call call[THREAD_CALLS];
};

/* The time on a CPU of several threads, up to the last switch or tick of each. Atomic. */
struct cpu_sums {
	uint64_t runtime_ns, user_ticks;
	uint64_t told_ns; /* atomic: the most that sched_sums_ns() has returned */
};

struct thread {
	/* The predicate cache: the number of one that is false for it (kernel/dtrace/enable.c)
	 * until its pid, its tid, its process's name or its own changes; else 0. The first member:
	 * fbt.S compares it with a site's. Atomic */
	uint64_t predcache;
	uint32_t predcache_changes; /* how often one of these has changed; atomic */
	struct arch_context ctx;    /* [r] saved registers while not running */
	void *kstack; /* [c] lowest address of the kernel stack; a guard page lies below */
	uint32_t
	    tid; /* [t] of a process's first thread: equal to the pid. Only exec() changes it */
	uint32_t pid;    /* [t] of `proc`; without one 0 */
	uint64_t serial; /* [c] not 0: no other thread has, or had, this number */
	union {
		struct {
			bool ktr_suppress; /* [t] its events are suppressed: it reads them */
			bool fpu_used;     /* [t] its FPU registers are saved at switches */
			bool stepped;      /* [t] its program runs step by step */
			bool silent;       /* [t] a silence has set ktr_suppress, until it ends */
		};
		uint32_t on_switch; /* not 0: a switch from or to it has more to do */
	};
	uint32_t silence_of, silence; /* [t] a silence, and how often it ended: sched_silence() */
	/* Written by a thread of its process, under proc_lock once others can find it. Always
	 * contains a NUL, for readers without a lock. */
	char name[KTR_THREAD_NAME];
	const char *ident; /* for %s only: prints as "NAME tid N", schedgraph's id */
	struct proc *proc; /* [t] cleared under proc_lock; NULL: kernel thread, or it has ended */
	struct lwp *lwp;   /* [t] what its process knows of it; NULL: kernel thread */
	const struct task_cred *cred; /* [t] task_act_as() */
	union {
		struct {
			bool signalled; /* proc_lock: a signal, a stop or an end awaits it */
			bool holds; /* [t] files are to be released, or a call was interrupted */
		};
		uint16_t user_work; /* not 0: to be done before a return to user mode */
	};
	bool program;              /* [c] it is a thread of a process, also while `proc` is NULL */
	bool traced;               /* [t] a debugger may want to know of its system calls */
	uint64_t root;             /* [t] physical address of its page table */
	enum thread_state state;   /* [r] */
	uint8_t prio;              /* [r] of `sched` */
	struct sched_params sched; /* [r] */
	bool queued;               /* [r] the thread is on the run queue of its CPU */
	bool hurries;              /* [r] others wait for a mutex that the thread holds, or held */
	bool urgent;               /* [c] the thread always goes before others of its user */
	uint8_t slice;             /* [r] of SCHED_RR and the kernel's threads: ticks left */
	unsigned cpu;              /* [r] CPU it runs on, or ran on last; see runq.h */
	uint64_t cpus;             /* [r] bit n: the thread may run on CPU n */
	struct fair_group *groups; /* [r] its user's, of each CPU */
	struct fair_entry fair;    /* [r] from PRIO_FAIR on: its share */
	struct list runq;          /* [r] before PRIO_FAIR: in its level */
	struct list all;           /* [a] */

	const void *chan;        /* [s] what it sleeps on, NULL none */
	const char *wmesg;       /* [s] why it sleeps, read-only data */
	const char *lockname;    /* [s] the lock it is blocked on, NULL none */
	int sleep_flags;         /* [s] */
	int sleep_result;        /* [s] */
	uint64_t interrupted_ns; /* [t] deadline of the last sleep that a signal ended; 0: none */
	uint64_t sleep_number;   /* [s] of this sleep, in its queue */
	struct list sleepq;      /* [s] those who sleep on the same channel */
	struct list channel;     /* [s] of the first of them: the queue's channels */
	struct callout sleep_timer;

	bool contends;      /* [t] it waits for a mutex */
	unsigned mutexes;   /* [t] held */
	struct mutex *held; /* [t] the last of them; mutex.next_held */

	uint64_t tls;        /* [t] user thread pointer */
	uint64_t runtime_ns; /* [r] time on a CPU, up to the last switch or tick */
	uint64_t zero_ns;    /* [r] while it runs: clock_ns() less this is its time on a CPU */
	uint64_t
	    user_ticks;     /* [t] the part in user mode, up to the last entry; arch_clock_read() */
	uint64_t user_mark; /* [t] when it last went to user mode */
	uint64_t user_known;           /* [r] user_ticks when runtime_ns was counted */
	struct cpu_sums *sums;         /* [r] sums in which its time counts, too; NULL: in none */
	uint64_t switches;             /* [r] to it */
	uint64_t waits, interruptions; /* [r] switches from it: since it slept, and for others */
	uint64_t faults, disk_faults;  /* [t] page faults, as of struct usage */
	uint64_t page_reads;           /* [t] pages of files that the thread has read from a disk */
	uint64_t start_ns;             /* [c] when the thread was made, in clock_ns() time */

	void (*fn)(void *); /* [c] kernel thread's function */
	void *arg;          /* [c] */

	/* proc_lock: whose probes fire for it (kernel/probe/session.c), 0: of nobody; and after an
	 * exec */
	uint32_t follow, follow_exec;
	struct thread_calls calls; /* [t] kernel/probe/funcprof.c */
	struct arch_fpu fpu;       /* [t] while it does not run, and fpu_used */
};
_Static_assert(offsetof(struct thread, predcache) == 0, "fbt_asm.h");

/* What a thread, or several, have used. */
struct usage {
	uint64_t user_ns, system_ns;   /* time on a CPU: in the program, and in the kernel */
	uint64_t faults, disk_faults;  /* page faults that were served; which of them read a disk */
	uint64_t waits, interruptions; /* how often it gave its CPU away, and lost it */
	uint64_t pages;                /* of a process: the most that were mapped at a time */
};

static inline void
usage_add(struct usage *sum, struct usage t)
{
	sum->user_ns += t.user_ns;
	sum->system_ns += t.system_ns;
	sum->faults += t.faults;
	sum->disk_faults += t.disk_faults;
	sum->waits += t.waits;
	sum->interruptions += t.interruptions;
	sum->pages = sum->pages > t.pages ? sum->pages : t.pages;
}

/* The thread that runs here. Any context. */
static inline struct thread *
curthread(void)
{
	return arch_curthread();
}

/* Starts the thread that frees dead ones. */
void thread_init(void);
/*
 * Creates a kernel thread and makes it runnable. name is copied. The thread exits when fn returns.
 * NULL: out of memory. Thread context.
 */
struct thread *thread_create(const char *name, uint8_t prio, void (*fn)(void *), void *arg);
/* Creates a thread that is not runnable: call wake_up_new_task() or thread_discard() then. */
struct thread *thread_alloc(const char *name, uint8_t prio, void (*fn)(void *), void *arg);
/* A thread of a process, which is not runnable yet, either. */
struct thread *thread_alloc_program(const char *name, void (*fn)(void *), void *arg);
void thread_discard(struct thread *t);
/* After a change of what a predicate in the cache may ask for. Any context. */
static inline void
thread_predcache_forget(struct thread *t)
{
	__atomic_fetch_add(&t->predcache_changes, 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with thread_predcache_set() */
	__atomic_store_n(&t->predcache, 0, __ATOMIC_RELAXED);
}
static inline uint32_t
thread_predcache_changes(const struct thread *t)
{
	return __atomic_load_n(&t->predcache_changes, __ATOMIC_ACQUIRE);
}
/* The running thread: a predicate was false, as it was evaluated after `changes`. If there has been
 * one since, either this sees it, or who has made it forgets the number after it is stored. */
static inline void
thread_predcache_set(struct thread *t, uint64_t number, uint32_t changes)
{
	if (__atomic_load_n(&t->predcache, __ATOMIC_RELAXED) == number)
		return;
	__atomic_store_n(&t->predcache, number, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (thread_predcache_changes(t) != changes)
		__atomic_store_n(&t->predcache, 0, __ATOMIC_RELAXED);
}
/* Renames a thread that runs, or that others can find. proc_lock held: one renames at a time. */
void thread_rename(struct thread *t, const char *name);
/* Ends this thread, which has said `lwp-exit`. A thread of the kernel returns from its function. */
_Noreturn void thread_exit(void);
/*
 * Registers a function that says whether the number n belongs to something other than a thread;
 * then no new thread gets it. Thread context, no lock held. Once, at boot.
 */
void thread_register_numbers(bool (*is_used)(uint32_t n));
/* Waits until no thread with that number is left, dead ones too. Thread context, no lock held. */
void thread_await_gone(uint32_t tid);
/* Gives a thread that does not run yet the number, which nobody has. */
void thread_give_tid(struct thread *t, uint32_t tid);
/* Gives the current thread the number, which nobody has. For the log the old one has ended. */
void thread_change_tid(uint32_t tid);
/*
 * Calls f for every thread, under the lock of the lists, until one call does not return 0, and
 * returns that. The lock is released in between, so a thread that begins, ends or executes a
 * program meanwhile may be visited, or not, or twice.
 */
int thread_each(int (*f)(struct thread *, void *), void *arg);
/* Calls f for the thread of that number, under the same lock. False: there is none. */
bool thread_with(uint32_t tid, void (*f)(const struct thread *t, void *arg), void *arg);
/* The current thread's time on a CPU. Any context. */
uint64_t thread_cpu_ns(void);
/* What a thread has used; if it is not the current one, up to its last switch or tick. */
struct usage thread_usage(const struct thread *t);
/* What a thread, also the current one, had used at its last switch, tick or sched_count_in(). */
struct usage thread_usage_charged(const struct thread *t);
/* How many threads there are, and have been. May be a little old. */
unsigned thread_count(void);
uint32_t thread_count_made(void);
/* Bytes of the kernel stacks of threads, and of those that are kept for new ones. Any context. */
uint64_t thread_stack_bytes(void);
/* The thread after t. NULL starts, and ends. Takes no lock: for the debugger only. */
struct thread *thread_next_unlocked(struct thread *t);

/*
 * The FPU registers of the current thread. It has none until its first instruction that uses them,
 * which traps: then thread_fpu_start() gives it fresh ones, and from then on they are saved and
 * loaded at its switches. A thread that never uses them pays nothing. Thread context of a process.
 */
void thread_fpu_start(void);
/* Takes them away: the program has ended. */
void thread_fpu_end(void);
/* Copies their contents. False: it has none. */
bool thread_fpu_save(struct arch_fpu *to);
/* Gives it registers with these contents. */
void thread_fpu_load(const struct arch_fpu *from);
/* Gives a new thread, which does not run yet, the same contents. */
void thread_fpu_copy(struct thread *to);

/* Sleeps for ns nanoseconds. SLEEP_INTR as in sleep_on(). 0 or -EINTR. */
int thread_sleep_ns(uint64_t ns, int flags, const char *wmesg);
