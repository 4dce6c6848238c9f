/*
 * dtrace.h - the program engine in this kernel: consumers, their clauses at probes, the device
 * /dev/dtrace (kernel/abi/dif.h).
 *
 * Locking: dtrace_lock guards everything but what programs use. They read the lists of clauses at a
 * probe without a lock, with interrupts off.
 */
#pragma once

#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/probe.h"
#include "kernel/lib/list.h"
#include "kernel/sched/mutex.h"
#include "ktr/hook.h"

/* A clause at a probe. */
struct dtrace_ecb {
	struct dif_at at;        /* first: what the engine knows of it */
	struct dif_cpu *cpus;    /* the consumer's */
	struct dtrace_ecb *next; /* atomic; the next one at the probe, of any consumer */
	struct dtrace_consumer *consumer;
	const struct dtrace_probe *probe;
};

/* What DIF_UPCALL calls: interrupts off, any context, no locks. */
typedef void dtrace_upcall(const struct ktr_firing *f, int32_t imm, const uint64_t *args);

/* What dif_record_take() or dif_agg_take() has taken of a CPU. */
struct dtrace_taken {
	void *piece[2];
	uint32_t size[2];
};

struct dtrace_consumer {
	struct list link;
	struct dif d;
	uint64_t ran_ns;     /* CPU time of its process when that was last looked at */
	uint32_t pid;        /* of the process that asked last */
	struct kprobe *pids; /* its probes of processes */
	unsigned making;     /* of these: requests that make one, without dtrace_lock */
	uint32_t necbs, nprobes;
	uint64_t predicates; /* added to the numbers of d.predicates: no other consumer has them */
	bool enabled;        /* its clauses are at their probes */
	bool waits;          /* its programs do not run before dtrace_exchange() */
	/* For a consumer of the kernel itself, while it loads: the site of each clause, whatever
	 * its name is. NULL for others. */
	const struct ktr_site *const *only;
	dtrace_upcall *upcall; /* the kernel's own; or NULL */
	struct dtrace_ecb *ecbs;
	struct dtrace_probe *probes;
	struct dtrace_taken taken[2][DIF_CPUS]; /* records, aggregations: not given yet */
	struct dtrace_ecb *error; /* clauses of ERROR; linked by next like the others */
};

extern struct mutex dtrace_lock;

/* ---- enable.c: dtrace_lock held ---- */

/* cpuinfo_t of D. CPUs are alike, and in no groups: the others are 0. */
struct dtrace_cpu {
	int cpu_id, cpu_pset, cpu_chip, cpu_lgrp;
};
extern struct dtrace_cpu dtrace_cpus[];

/*
 * Puts the clauses of a loaded image at their probes. matches[], unless it is NULL, gets the number
 * of probes of each clause. 0; -ENOMEM; or the error of a probe that cannot be made, or -E2BIG, and
 * then err has a sentence, if errlen > 0.
 */
int dtrace_match(struct dtrace_consumer *c, uint32_t *matches, char *err, size_t errlen);
/* BEGIN, and then the probes. */
int dtrace_go(struct dtrace_consumer *c);
/* The probes off, and END unless `killed`. Returns when no CPU runs its programs any more. */
void dtrace_stop(struct dtrace_consumer *c, bool killed);
/* Frees all but the consumer itself. */
void dtrace_unload(struct dtrace_consumer *c);
/* Runs fn(arg) on a CPU, while no program runs there. */
void dtrace_on_cpu(unsigned cpu, void (*fn)(struct dtrace_consumer *c, unsigned cpu, void *arg),
		   struct dtrace_consumer *c, void *arg);
uint64_t dtrace_refused(void);
/* The dead-man's clock, in ns: CPU 0's ticks. A machine that its host stops does not age. */
uint64_t dtrace_machine_ns(void);
/* The owner `dtrace` of probes: there is one as long as there are consumers. */
int dtrace_owner_begin(void);
void dtrace_owner_end(void);

/* ---- consumer.c: dtrace_lock held, but for dtrace_consumer_open() and _boot() ---- */

/* A consumer without an image. NULL: *error. */
struct dtrace_consumer *dtrace_consumer_open(int *error);
/* Loads an image, or the arrays in c->d if image is NULL, and puts its clauses at their probes,
 * which stay off. l gets what there is to say about it. 0 or -errno. */
int dtrace_consumer_load(struct dtrace_consumer *c, struct dif_load *l, const uint8_t *image,
			 size_t size);
/* dtrace_go(), and it is stopped when it gives no sign of life. 0 or -errno. */
int dtrace_consumer_go(struct dtrace_consumer *c);
/* Commits and discards what other CPUs have ended, on all CPUs. */
void dtrace_clean(struct dtrace_consumer *c);
/*
 * Puts the one that began with the boot in the place of *by, which has no image. 0, and the caller
 * frees what was there, after dtrace_lock; -ENOENT; or -errno.
 */
int dtrace_consumer_claim(struct dtrace_consumer **by);
/* Begins with what the boot image brought, for whoever claims it. */
void dtrace_consumer_boot(const char *path);

/*
 * For the kernel's own consumers: loads what the kernel has made (dif_load_arrays()), and runs the
 * program of clause N at sites[N] until it is detached. With `waits`, the programs run only from
 * dtrace_exchange() on. 0 or -errno. dtrace_lock is not held. Thread context.
 */
int dtrace_attach(const struct dif *made, const struct ktr_site *const *sites, bool waits,
		  dtrace_upcall *upcall, struct dtrace_consumer **to);
void dtrace_detach(struct dtrace_consumer *c);
/* Frees a consumer without an image, and its probes in processes. Without dtrace_lock: this may
 * close files. */
void dtrace_consumer_free(struct dtrace_consumer *c);
/*
 * Ends the programs of `from`, and runs those of `to`, which waited, instead: each firing runs one
 * of the two. If from is NULL, those of `to` just begin. dtrace_lock is not held. Thread context.
 */
void dtrace_exchange(struct dtrace_consumer *from, struct dtrace_consumer *to);
/* The image's first variable, an integer of scope DIF_GLOBAL. */
static inline uint64_t
dtrace_global(const struct dtrace_consumer *c)
{
	return __atomic_load_n((const uint64_t *)c->d.globals, __ATOMIC_RELAXED);
}
/* Takes the aggregations of all CPUs, and gives fn() those of one CPU at a time, as struct
 * dif_entry. Thread context; dtrace_lock is not held. */
void dtrace_take(struct dtrace_consumer *c, void (*fn)(const void *entries, size_t size, void *arg),
		 void *arg);
/*
 * For upcalls: within the firing that has made the call, fires a probe that is no trace point, and
 * sets its owners. The log records it, and programs run. At most four such firings may be within
 * each other; more are refused, and counted (dtrace_refused()).
 */
void dtrace_fire_within(struct ktr_firing *f);

/* ---- place.c ---- */

bool dtrace_load_words(uintptr_t *to, uintptr_t from, unsigned words); /* unwind_load_fn */
/* Return addresses from the probe on. pcs NULL: only counts them. Any context. */
unsigned dtrace_stack(const struct ktr_firing *f, uint64_t *pcs, unsigned max);
unsigned dtrace_ustack(const struct ktr_firing *f, uint64_t *pcs, unsigned max);
/* The path of a program (DIF_IOC_PROGRAM). False: not known. Any context. */
bool dtrace_program(uint32_t number, char path[DIF_PROGRAM_PATH]);
/* The same string of the kernel's image, where programs read it soonest: in the direct map. */
const char *dtrace_direct(const char *s);
/* Finds out what memory is RAM. */
void dtrace_place_init(void);
