/*
 * activity.h - what threads, CPUs, interrupts, system calls, locks and page faults do, as the
 * events tell it. Only activity_meaning.c knows what Kestrel's trace points mean.
 *
 * What comes in: a decoder's events and gaps, in the order of time (merge.h). What goes out: the
 * meaning of each, the state of threads and CPUs after it, and spans, which say who did what from
 * when to when. Reports and exports are made of that.
 *
 *	merge.c --> activity.c --> activities --> span.c --> spans
 *	                |
 *	        activity_meaning.c
 *
 * In reading order: activity.c, activity_meaning.c, span.h, span.c. One thread, no locks.
 *
 * The model gets events and gaps in the order of time, and keeps the state of each thread and CPU.
 * An event has no meaning, one, or two.
 *
 * Memory is bounded by the threads that live. A thread is forgotten when it is dead. When there are
 * very many, those are forgotten of which nothing is known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/decode.h"

#define ACTIVITY_NAME 32u /* bytes of a thread's name, with the NUL */
#define ACTIVITY_MAX  2u  /* of one event */

enum activity_state {
	ACTIVITY_UNKNOWN,  /* no event has told it yet, or events were lost since then */
	ACTIVITY_RUNNING,  /* on thread->cpu */
	ACTIVITY_SPINNING, /* the same, for the lock `why` */
	ACTIVITY_RUNNABLE, /* on the run queue of thread->cpu's CPU or another */
	ACTIVITY_SLEEPING, /* on `why` */
	ACTIVITY_BLOCKED,  /* on the lock `why` */
	ACTIVITY_DEAD
};

/** A function that a thread is in. */
struct activity_call {
	const char *name; /* valid as the decoder's texts */
	uint64_t ns;      /* when it was called */
	uint64_t mark;    /* 0 at first; the user of the model may write here */
};

struct activity_thread {
	uint32_t tid;
	uint32_t number; /* small; a later thread gets the number of one that is gone */
	bool idle;       /* a CPU's idle thread */
	enum activity_state state;
	const char *why;   /* wait message or lock; NULL: none. Valid as the decoder's texts */
	uint64_t since_ns; /* when state and why began */
	bool woken;        /* WAKE came, and the thread is on no run queue yet */
	bool told;         /* an event has told the thread's state, though it may be unknown now */
	uint32_t cpu;      /* where it ran last */
	int prio;          /* as last told; less is better */
	const char *call;  /* the system call that it is in; NULL: none, or not known */
	struct activity_call *calls; /* functions of the kernel that it is in, outermost first, as
				      * far as they are traced */
	unsigned depth;              /* how many */
	size_t room;                 /* for how many there is room */
	char name[ACTIVITY_NAME];    /* the last known; "" when none is */
	const struct activity_thread *next_lost; /* see activity_gap() */

	/* the model's own */
	bool exits, listed;
	struct activity_thread *next;
	struct activity_thread *next_heard, **heard_at; /* NULL: it is not in the list */
};

enum activity_kind {
	ACTIVITY_SWITCH, /* cpu runs thread from here on, and ran other (NULL: not known) */
	ACTIVITY_STATE,  /* thread has another state, or another reason for it; its state was
			    `before` */
	ACTIVITY_WAKE,   /* other woke thread; in an interrupt, other is the interrupted thread */
	ACTIVITY_IRQ_ENTER, /* interrupt `number`, called `text`, interrupts thread */
	ACTIVITY_IRQ_EXIT,  /* … and is over */
	ACTIVITY_SYS_ENTER, /* thread enters system call `text` with args[0..5] */
	ACTIVITY_SYS_EXIT,  /* thread leaves the call; value is what it returns, or -errno */
	ACTIVITY_FORK,      /* other made thread */
	ACTIVITY_EXEC,      /* thread runs another program; its name is that one's */
	ACTIVITY_EXIT,      /* thread's process ends; value is the wait status */
	ACTIVITY_COUNTER,   /* counter `text` has `value` */
	ACTIVITY_CALL,      /* thread calls function `text`, which is its innermost call now */
	ACTIVITY_RETURN,    /* thread returns from function `text`, called at call.ns (call.name is
			       NULL: it is not known when), with `value`; calls inside it that did
			       not return are over, too */
	ACTIVITY_LOCK_WAIT, /* thread begins to wait for lock `text` at address; number is 1: a spin
			       lock, which CPU `value` has (-1: none any more); 0: a mutex */
	ACTIVITY_LOCK_TAKE, /* thread takes lock `text` at address, for the code at pc (0: not told)
			     */
	ACTIVITY_LOCK_FREE, /* lock `text` at address is free */
	ACTIVITY_FAULT,     /* page fault of thread at pc; number is 1 read, 2 write, 4 execute */
	ACTIVITY_FAULT_HOW, /* … is served by `text` */
	ACTIVITY_FAULT_END, /* … is over; value 0: it could not be served */
	ACTIVITY_TRAP,      /* exception `text` of thread at pc, of another kind */
	ACTIVITY_TIMER_SET, /* timer `address` is to run at nanosecond `value` since boot */
	ACTIVITY_TIMER_STOP, /* … is not to run */
	ACTIVITY_TIMER_RUN,  /* … runs now */
};

struct activity {
	enum activity_kind kind;
	uint32_t cpu;
	uint64_t ns; /* since boot, never less than before */
	const struct ktr_decode_event *event;
	const struct activity_thread *thread, *other; /* as they are from now on */
	enum activity_state before;                   /* thread's */
	bool fresh;    /* a STATE: `other` has made the thread, which is RUNNABLE now */
	bool starts;   /* a SWITCH: the CPU ran nothing before */
	bool inferred; /* a SWITCH that no event told: an event of another thread shows it */
	int left;      /* SWITCH: the CPU that ran thread until now, as far as was told; -1: none */
	uint32_t number;
	int64_t value;
	const char *text; /* valid as the decoder's texts */
	struct activity_call call;
	uint64_t address;
	uint64_t pc; /* where the interruption or fault was; user: in a program */
	bool user;
	uint64_t args[6];
};

struct activity_model;

/** Called for each thread that is about to be forgotten. */
typedef void activity_gone_fn(void *arg, const struct activity_thread *t);

/** gone may be NULL. NULL: no memory. */
struct activity_model *activity_create(activity_gone_fn *gone, void *arg);
/** Tells of no more threads. */
void activity_destroy(struct activity_model *m);

/**
 * Puts what the event means into out, and the thread that recorded it into *by. Returns how many
 * activities these are; -1 if there is no memory. Pointers to threads stay valid until the thread
 * is gone. The next call says that a thread is gone, and then frees it.
 */
int activity_event(struct activity_model *m, const struct ktr_decode_event *e,
		   struct activity out[ACTIVITY_MAX], const struct activity_thread **by);
/**
 * Events of a CPU are missing. What runs there is not known until its next event. And since the
 * missing events may have been about any thread that does not run on another CPU (they may have
 * woken it, run it, and put it to sleep again), the state of all those is UNKNOWN, each until its
 * next event. Returns the first of them; next_lost of each is the next one. *ran is the thread that
 * ran on the CPU, or NULL.
 */
const struct activity_thread *activity_gap(struct activity_model *m, const struct ktr_decode_gap *g,
					   const struct activity_thread **ran);

/** The time of an event of which the meaning is not asked: in place of activity_event(). */
void activity_pass(struct activity_model *m, const struct ktr_decode_event *e);

/** The time of the last event, nanoseconds since boot. */
uint64_t activity_now(const struct activity_model *m);
/** Nanoseconds since boot; never less than the time of the last event. */
uint64_t activity_ns(const struct activity_model *m, const struct ktr_decode_header *h,
		     uint64_t ticks);
/** What runs on a CPU; NULL: not known. */
const struct activity_thread *activity_running(const struct activity_model *m, uint32_t cpu);
/** Calls fn for every thread that is not gone, in no order. */
void activity_threads(const struct activity_model *m,
		      void (*fn)(void *arg, const struct activity_thread *t), void *arg);
/** One word: "running", "runnable", … */
const char *activity_state_name(enum activity_state state);

/** An event, and what it means. */
struct export_event {
	const struct ktr_decode_event *e;
	uint64_t ns;                          /* since boot; never less than before */
	uint64_t index;                       /* its number, as text has it */
	const struct activity_thread *thread; /* that recorded it; never NULL */
	bool passes;    /* the filter; only formats with sees_all see what does not */
	unsigned count; /* of activities */
	const struct activity *activities;
};

struct export_gap {
	const struct ktr_decode_gap *g;
	uint64_t from_ns, to_ns;
	bool passes;
	const struct activity_thread *thread; /* ran there; NULL: not known, or none */
	const struct activity_thread *lost;   /* threads whose states are unknown from now on */
};
