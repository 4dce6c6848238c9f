/*
 * ktrace_private.h - between the files of kernel/ktrace.
 *
 * Each traced process has a struct ktrace with a queue of records. Its own threads, in hooks on
 * probes, put records into it, one at a time; one thread `ktrace`, that of its file, takes them
 * out, and writes them to the file. So the queue of a process with one thread needs no lock.
 *
 * A struct ktrace is there from KTR_PROCCTOR to KTR_PROCDTOR. When tracing to its file ends, the
 * process leaves it, and perhaps gets another one for another file. Only the thread of its file
 * frees it, when all of its records are there.
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
#include "kernel/lib/leftist.h"
#include "kernel/lib/list.h"
#include "kernel/proc/task.h"
#include "kernel/sched/mutex.h"

struct file;
struct proc;
struct uidinfo;
struct vnode;

/*
 * A file, whoever has set tracing to it, and the thread `ktrace` that writes it. A file that stalls
 * makes only those wait who are traced to it.
 */
struct ktrace_file {
	struct list all;        /* [l] in ktrace_files */
	const struct vnode *vn; /* [c] a file's own, while `ios` is not 0 */
	struct uidinfo *ui;     /* [c] to whom the memory of the thread is counted */
	unsigned ios;           /* [l] how many struct ktrace_io are of this file */
	unsigned waiters;       /* [l] how many wait; the thread ends when this and `ios` are 0 */
	struct list members;    /* [l] struct ktrace whose `io` is one of this file */
	struct leftist *first;  /* [l] the member whose next record is the oldest */
	struct cond asked;      /* there is something to do */
	struct cond done;       /* a pass is done */
	uint64_t passes_asked, passes_done; /* [l] */
	uint64_t change;          /* [l] the last call of ktrace(2) that meant this file */
	struct ktrace_io *unused; /* [l] the thread closes these */
	/* The thread's own: what is to be written next, how, and who is charged. */
	uint8_t *buf;
	size_t used;
	struct ktrace_io *io; /* a reference, while `used` is not 0 */
	struct uidinfo *payer;
};

/* A file as ktrace(2) has opened it, once for all callers with the same rights. */
struct ktrace_io {
	unsigned refs;            /* [l] */
	struct file *f;           /* [c] */
	struct ktrace_file *file; /* [c] */
	/* [c] Who set the tracing, as whom it is written. The group is the one that the file had
	 * then, if he was in it, or UINT32_MAX. */
	struct task_cred cred;
	uint64_t limit; /* [c] bytes that the file may have: RLIMIT_FSIZE of who set the tracing */
	bool dead;      /* [l] a record could not be written */
	struct ktrace_io *next; /* [l] of those that are unused */
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
	uint32_t dropped; /* [t] records without room since the last record that had room */
	uint64_t head;    /* [a] bytes put in; written by the process */
	uint64_t tail;    /* [a] bytes taken out; written with ktrace_lock */
	uint64_t checked; /* [t] up to here there is room, without a look at `tail` */
	uint64_t mask;    /* [c] the size of buf, a power of two, less 1 */
	uint8_t *buf;     /* [c] */
	uint32_t locked;  /* [a] of several threads of the process, one puts a record in */

	struct list all;      /* [l] */
	struct ktrace *next;  /* [l] of those that a request has */
	struct ktrace_io *io; /* [l] a reference; NULL: a request to trace has it */
	struct list member;   /* [l] of its file */
	struct leftist due;   /* [l] in a pass: its next record, or what else is next */
	struct uidinfo *ui;   /* [c] to whom this memory is counted */
	bool left;            /* [l] the process puts nothing more in, but for hooks at work */
	bool ends;            /* [l] … and those are done */
	bool ended;         /* [l] … and all is written, with KTR_PROCDTOR if KTR_PROCCTOR was */
	bool begun;         /* [l] KTR_PROCCTOR is written */
	bool exited;        /* [l] left because the process ends */
	uint64_t end_ticks; /* [l] when the process left it for another one; or 0 */
	/* [c] Since `facs` was set: the process, which is there as long as this */
	struct proc *proc;
	uint32_t pid;
	uint32_t parent;
	uint64_t begin_ticks; /* when its tracing began */
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
	uint8_t narg; /* a call's number of arguments; of a return: not 0 if it needs these */
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

extern struct list ktrace_files; /* [l] of all struct ktrace_file */

/*
 * Makes a ktrace_file, with its thread, for which ui is charged. The caller makes an io at once.
 * NULL: no memory. ktrace_lock held.
 */
struct ktrace_file *ktrace_file_make(const struct vnode *vn, struct uidinfo *ui);
/*
 * Waits until all records of the past are in the file, or until that time; killable: or until a
 * signal ends the process. ktrace_lock held; it is released meanwhile.
 */
void ktrace_sync(struct ktrace_file *file, uint64_t deadline_ns, bool killable);
/* Frees a struct ktrace to which no hook puts records any more. ktrace_lock held. */
void ktrace_destroy(struct ktrace *t);
/*
 * Finds or makes one like `open`, which stays the caller's. If nobody is traced to the file, ui is
 * charged for its thread. NULL: no memory. ktrace_lock held.
 */
struct ktrace_io *ktrace_io_get(const struct ktrace_io *open, struct uidinfo *ui);
/* Drops a reference. ktrace_lock held; spin locks may be held. */
void ktrace_io_drop(struct ktrace_io *io);
/*
 * What t does is written to io from now on. If t had another one, it was of the same file.
 * ktrace_lock held; spin locks may be held.
 */
void ktrace_give_io(struct ktrace *t, struct ktrace_io *io);
/* Closes files that nobody uses. The file's thread; ktrace_lock held, and released meanwhile. */
void ktrace_close_unused(struct ktrace_file *file);
/* Switches probes to what all processes need now. ktrace_lock held. */
void ktrace_select_needed(void);
