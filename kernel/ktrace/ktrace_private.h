/*
 * ktrace_private.h - between the files of kernel/ktrace.
 *
 * Each traced process has a struct ktrace with a queue of records. Its own threads, in hooks on
 * probes, put records into it, one at a time; the thread `ktrace` is the only one that takes them
 * out, and writes them to the file. So the queue of a process with one thread needs no lock.
 *
 * Locking legend:
 *   [c] constant
 *   [l] ktrace_lock, a mutex; taken before proc_lock
 *   [t] the process's own threads, which have `locked` if they are several
 *   [a] atomic
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/ktrace.h"
#include "kernel/lib/list.h"
#include "kernel/sched/mutex.h"

struct file;
struct proc;
struct uidinfo;

/* A file that is being written. */
struct ktrace_io {
	unsigned refs;  /* [l] */
	struct file *f; /* [c] */
	/*
	 * [c] Who set the tracing, and must be allowed to write at each write: the user; the group
	 * that the file had then, if he was in it, or UINT32_MAX; his rights.
	 */
	uint32_t uid, gid;
	uint64_t caps;
	uint64_t limit; /* [c] bytes that the file may have: RLIMIT_FSIZE of who set the tracing */
	bool dead;      /* [l] a record could not be written */
	struct ktrace_io *next; /* [l] of those that nobody uses */
	char path[64];          /* [c] for messages; longer ones are cut */
};

/* A record in a queue. Positions are multiples of 8. */
struct ktrace_record {
	uint32_t len;  /* bytes that follow */
	uint16_t type; /* KTR_…; 0: nothing up to the end of the buffer */
	uint16_t cpu;
	uint64_t ticks;
	uint32_t dropped; /* records lost before this one */
	uint32_t tid;
	char comm[KTR_COMM_SIZE];
	uint64_t data[];
};

_Static_assert(sizeof(struct ktrace_record) % 8 == 0, "a queue's records are aligned");

struct ktrace {
	/* [a] KTRFAC_…; 0 while the process is not traced. Set with ktrace_lock, and with
	 * proc_lock, too, if the process runs; cleared with one of them. */
	uint32_t facs;
	uint32_t dropped; /* [t] records that had no room since the last one that had */
	uint64_t head;    /* [a] bytes put in; written by the process */
	uint64_t tail;    /* [a] bytes taken out; written by the thread ktrace */
	uint64_t checked; /* [t] up to here there is room, without a look at `tail` */
	uint64_t mask;    /* [c] the size of buf, a power of two, less 1 */
	uint8_t *buf;     /* [c] */
	uint32_t locked;  /* [a] of several threads, one puts a record in */

	struct list all;      /* [l] */
	struct ktrace *next;  /* [l] of those that a request has */
	struct ktrace_io *io; /* [l] a reference, or NULL */
	/* [l] Takes its place when KTR_PROCDTOR stands in `io`'s file: a reference, or NULL. */
	struct ktrace_io *next_io;
	struct uidinfo *ui; /* [c] to whom this memory is counted */
	uint64_t limit;     /* [l] `head` when the thread ktrace began its pass */
	bool begun;         /* [l] KTR_PROCCTOR was written, and no KTR_PROCDTOR after it */
	bool exited;        /* [l] */
	bool told;          /* [l] there was no memory for the last child's */
	/* Before `facs` is set for the first time: */
	uint32_t pid; /* the process; 0: none yet */
	uint32_t parent;
	uint64_t begin_ticks; /* when its tracing began */
	uint64_t last_ticks;  /* [l] of the last record in `io`'s file */
	uint32_t status;      /* [t] of exit */
	/* The CPU of the last record that was taken out, and the name of the process's first
	 * thread then; [l] once `begun`: */
	char comm[KTR_COMM_SIZE];
	uint16_t cpu;
};

extern struct mutex ktrace_lock;
extern struct list ktrace_all; /* [l] of all struct ktrace */
#define KTRACE_GENIO_MAX 65536u
extern unsigned ktrace_genio;   /* kern.ktrace.genio_size */
extern unsigned ktrace_request; /* kern.ktrace.request_pool */

/* What to do at a site. */
enum what {
	NOTHING,
	CALL,
	RETURN,
	NAME,
	EXEC,
	READ,
	WRITE,
	SIGNAL,
	OFF_CPU,
	ON_CPU,
	FAULT,
	FAULT_END,
	EXIT,
};

struct ktrace_action {
	uint8_t what;
	uint8_t narg; /* a call's number of arguments; of a return, not 0 if it needs them */
	uint16_t code;
};

#define KTRACE_UNKNOWN UINT16_MAX /* the code of all unknown calls */

/* By the site's number; constant after ktrace_hook_init(). */
extern struct ktrace_action *ktrace_actions;
struct ktr_firing;
/* The hook. */
void ktrace_hook(const struct ktr_firing *f);
/* Is a struct of this call recorded? Tells the hook the call's code. */
bool ktrace_has_struct(const char *call, uint16_t code);
/* Registers the hook. Once. 0 or -errno. ktrace_lock held. */
int ktrace_hook_init(void);
/* Switches the probes on that the kinds of records need, and others off. ktrace_lock held. */
void ktrace_hook_select(uint32_t facs);
/* Records bytes for the current process, if it is traced for the type. Thread context. */
void ktrace_put(unsigned type, const void *data, size_t len);
/*
 * Makes room, as `checked` says, for one more record of `total` bytes. If there is none, returns
 * false, and the record counts as dropped. Interrupts off; the process itself.
 */
bool ktrace_make_room(struct ktrace *t, size_t total);
/* Should the process wait for the file, since half of its queue is used? Any context. */
bool ktrace_is_full(const struct ktrace *t);

/* Starts the thread. Once. 0 or -errno. ktrace_lock held. */
int ktrace_writer_init(void);
/*
 * Waits until all records of the past are in their files. ktrace_lock held; it is released
 * meanwhile.
 */
void ktrace_sync(void);
/* Closes the files that nobody is traced to any more. ktrace_lock held. May sleep. */
void ktrace_close_unused(void);
/*
 * Drops a reference; ktrace_close_unused() has to follow. NULL is allowed. ktrace_lock held; spin
 * locks may be held.
 */
void ktrace_io_drop(struct ktrace_io *io);
/* The file of what the process does from now on. NULL: none. ktrace_lock held. */
struct ktrace_io *ktrace_target(const struct ktrace *t);
/* Switches probes to what all processes need now. ktrace_lock held. */
void ktrace_select_needed(void);
