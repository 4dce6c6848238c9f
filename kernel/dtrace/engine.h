/*
 * engine.h - the program engine: verifies images (kernel/abi/dif.h) and runs their programs. It
 * knows no language, and of the kernel only port.h; unit tests and fuzz targets run it on the host.
 *
 * Locking: programs run with interrupts off, and on a CPU one at a time, which the caller sees to.
 * What is per CPU is written by that CPU's programs only. The functions that read, clean or free it
 * say what must be true.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/dif.h"

#define DIF_CPUS 64u

/* What a program asks of the probe that fires. */
struct dif_context {
	const uint64_t *args;
	unsigned nargs;
	uint32_t probe, epid; /* ids */
	const void *place;    /* the port's own */
};

/* Where records go, for one CPU: two buffers by DIF_SWITCH, else one. In a ring that has wrapped
 * (end != 0) the oldest record is at tail, and those before `end` are older than those before head.
 */
struct dif_buffer {
	uint8_t *base; /* that is written; its size is that of the options */
	uint32_t head, tail, end;
	uint8_t *spare; /* DIF_SWITCH: the other one */
};

struct dif_spec_buffer { /* one speculation's records on one CPU */
	uint8_t *base;
	uint32_t head;
	uint32_t life; /* the speculation's, to which they belong */
};

/* A table of aggregations: an array of offsets, one for each aggregation without keys; the hash
 * table's offsets; the entries. Offset 0: none. */
struct dif_table {
	uint32_t *slots;
	uint32_t head; /* offset of the first free byte */
	uint32_t *spare;
};

struct dif_last_fault {
	uint32_t fault, epid, probe, insn;
	uint64_t addr;
};

struct dif_cpu {
	bool open;                /* atomic: programs of all probes but END run here */
	uint64_t fired, ended[2]; /* ended: by imm of DIF_RET */
	uint64_t faulted, dropped, buf_drops, agg_drops, dynvar_drops, spec_drops;
	uint64_t spec_none, spec_busy;
	struct dif_buffer buf;
	struct dif_table aggs;
	struct dif_spec_buffer *specs;
	struct dif_record *nowhere; /* for the records of a speculation that is not active */
	uint8_t *locals;            /* variables of scope DIF_THIS, and after them the scratch */
	uint8_t *scratch, *scratch_end;
	char *text[2];  /* copies of strings that are being worked on: strsize each */
	uint64_t *keys; /* that have been pushed: DIF_MAX_KEY bytes */
	uint64_t chill_ns, chill_since;
	struct dif_last_fault fault;
} __attribute__((aligned(64)));

/* A speculation's state is its life << 2 | enum dif_spec_state, in one word. */
enum dif_spec_state { DIF_SPEC_FREE, DIF_SPEC_ACTIVE, DIF_SPEC_COMMITTED, DIF_SPEC_DISCARDED };

struct dif_spec {
	uint64_t state; /* atomic */
	uint64_t cpus;  /* atomic; bit N: CPU N may have records of it */
};

struct dif_variable {
	uint32_t size;
	uint32_t place; /* offset in globals or locals. Dynamic ones have none */
	bool dynamic;   /* of a thread, or an array's element */
};

/* Memory for the variables of threads and the elements of arrays (variable.c). */
struct dif_dynamic {
	struct dif_bucket *buckets;
	uint8_t *chunks;
	uint64_t free;             /* atomic: the list of freed chunks */
	uint32_t unused;           /* atomic: chunks from here on were never used */
	uint32_t count, mask;      /* chunks; buckets - 1 */
	uint32_t size, value_size; /* of a chunk; of the value in it */
};

struct dif_aggregation {
	uint32_t value_words;
	int64_t base; /* DIF_LLQUANTIZE: factor to the power of the lowest magnitude */
};

/* A consumer's loaded image. */
struct dif {
	uint32_t state; /* atomic: enum dif_state */
	int32_t exit_status;
	struct dif_header h; /* a copy, with the options' defaults filled in */
	uint8_t *image;
	const struct dif_clause *clauses;
	const struct dif_insn *code;
	const uint16_t *actions;
	const uint32_t *layouts;
	const struct dif_var *vars;
	const struct dif_agg *aggs;
	const char *strings;
	uint8_t *memory; /* one block: image, tables, buffers */
	size_t memory_size;
	struct dif_variable *variables;
	struct dif_aggregation *aggregations;
	uint8_t *globals;
	uint32_t globals_size;
	struct dif_dynamic dynamic;
	struct dif_spec *specs;
	uint32_t table_slots; /* of each aggregation table: without keys, then the hash table's */
	unsigned cpus;
	struct dif_cpu *cpu;
	unsigned fault_cpu; /* atomic: had the last fault */
};

/* Why an image was refused. */
struct dif_refusal {
	uint32_t clause, insn;
	const char *error;
};

/* ---- load.c, verify.c -------------------------------------------------------------------------
 */

/*
 * Takes a copy of an image for CPUs 0 to cpus - 1. 0; -EINVAL, and why; -ENOMEM. Thread context.
 */
int dif_load(struct dif *d, const void *image, size_t size, unsigned cpus, struct dif_refusal *why);
/* No program runs, and none will. */
void dif_unload(struct dif *d);
/* Verifies a clause's program, with dif_verify_size() bytes of memory to work in. The sections have
 * been checked. 0 or -EINVAL. */
int dif_verify(const struct dif *d, uint32_t clause, void *work, struct dif_refusal *why);
size_t dif_verify_size(const struct dif *d);
/* Bytes of a variable's, or an aggregation's keys, at most; 0: the kinds are not valid. */
uint32_t dif_keys_size(const struct dif *d, uint64_t kinds);
/* Words of an aggregation's value; 0: its parameters are not valid. Sets *base (above). */
uint32_t dif_agg_words(const struct dif_agg *a, int64_t *base);

/* ---- run.c -------------------------------------------------------------------------------------
 */

/*
 * Runs the program that begins at `start` on this CPU, which is c, and counts how it ended. Returns
 * enum dif_fault; after a fault the caller fires ERROR, with the arguments that dif_error_args()
 * stores.
 */
enum dif_fault dif_fire(struct dif *d, struct dif_cpu *c, const struct dif_insn *start,
			const struct dif_context *x);
/*
 * Clauses that need no interpreter: those that do nothing, and those that count in an aggregation
 * without keys.
 */
struct dif_simple {
	uint16_t ended; /* offset in struct dif_cpu of what counts its end; 0: it is not simple */
	bool count;
	uint32_t agg;
};
struct dif_simple dif_simple(const struct dif *d, uint32_t clause);
/* Runs such a clause. False: run it by dif_fire(). */
static inline bool
dif_fire_simple(struct dif_cpu *c, const struct dif_simple *s)
{
	if (s->ended == 0)
		return false;
	if (s->count) {
		uint8_t *table = (uint8_t *)c->aggs.slots;
		uint32_t entry = c->aggs.slots[s->agg];

		if (entry == 0)
			return false;
		(*(uint64_t *)(table + entry + sizeof(struct dif_entry)))++;
	}
	c->fired++;
	(*(uint64_t *)((uint8_t *)c + s->ended))++;
	return true;
}
#define DIF_ERROR_ARGS 6
void dif_error_args(const struct dif *d, unsigned cpu, uint32_t clause,
		    uint64_t args[DIF_ERROR_ARGS]);
/* Ends the tracing, but for END: no CPU is open any more. Any context. */
void dif_drain(struct dif *d, int32_t status);
/* Adds up what the CPUs have counted; leaves members 0 that the engine does not know. */
void dif_status(const struct dif *d, struct dif_status *s);

/* A program that runs. */
struct dif_run {
	struct dif *d;
	struct dif_cpu *c;
	const struct dif_context *x;
	uint32_t key_words;
	uint8_t *top; /* of the scratch memory in use */
	struct dif_record *record;
	struct dif_spec_buffer *spec; /* that records go to; NULL: to the consumer */
	bool nowhere;                 /* records are for no reader */
	char *token;                  /* where strtok() goes on */
	enum dif_fault fault;
	uint64_t addr;
};

/* Sets the fault, and returns false. */
static inline bool
dif_fail(struct dif_run *r, enum dif_fault fault, uint64_t addr)
{
	r->fault = fault;
	r->addr = addr;
	return false;
}

/* ---- memory.c ----------------------------------------------------------------------------------
 */

/* Copies from kernel memory that a program may read. False: DIF_FAULT_BADADDR. */
bool dif_copy(struct dif_run *r, void *dst, uint64_t addr, size_t n);
/* Copies a string with its NUL, cut to size bytes. Returns its length, or -1: DIF_FAULT_BADADDR. */
long dif_copy_str(struct dif_run *r, char *dst, uint64_t addr, size_t size);
/* -1, 0, 1, or -2: DIF_FAULT_BADADDR. */
int dif_compare(struct dif_run *r, uint64_t a, uint64_t b);
/* Is [addr, addr + n) scratch memory, or in variables? */
bool dif_writable(const struct dif_run *r, uint64_t addr, size_t n);
/* n bytes of scratch memory, aligned to 8. NULL: DIF_FAULT_NOSCRATCH. */
void *dif_scratch(struct dif_run *r, uint64_t n);

/* ---- subr.c, string.c --------------------------------------------------------------------------
 */

/* A subroutine: its result into *v. False: a fault. */
bool dif_subroutine(struct dif_run *r, unsigned sub, const uint64_t *args, uint64_t *v);
bool dif_string_subroutine(struct dif_run *r, unsigned sub, const uint64_t *args, uint64_t *v);
extern const uint8_t dif_sub_args[DIF_SUB_COUNT];

/* ---- variable.c --------------------------------------------------------------------------------
 */

/* Lays out the memory given; count 0: there is none. */
void dif_dynamic_init(struct dif_dynamic *t, void *memory, size_t size, uint32_t chunk,
		      uint32_t value);
/* How large a chunk must be. */
uint32_t dif_dynamic_chunk(uint32_t key_size, uint32_t value_size);
uint64_t dif_var_load(struct dif_run *r, uint32_t var);
bool dif_var_store(struct dif_run *r, uint32_t var, uint64_t value);
/* Is [addr, addr + n) in variables of the consumer, or in one element's value? */
bool dif_in_variable(const struct dif_run *r, uint64_t addr, size_t n);

/* ---- aggregate.c -------------------------------------------------------------------------------
 */

void dif_agg_add(struct dif_run *r, uint32_t agg, uint64_t value, uint64_t weight);
/*
 * Takes the table that is written away, and puts the spare one in its place. On the table's CPU
 * with interrupts off. Returns how many bytes of entries there are from *entries on; they are valid
 * until dif_agg_done(), which must follow.
 */
uint32_t dif_agg_take(struct dif *d, unsigned cpu, const void **entries);
void dif_agg_done(struct dif *d, unsigned cpu);
/* Offset of the first entry in a table. */
uint32_t dif_table_begin(const struct dif *d);
/* Hashes words. */
static inline uint32_t
dif_hash(uint64_t seed, const uint64_t *w, uint32_t n)
{
	const uint64_t mix = 0x9e3779b97f4a7c15u;
	uint64_t h = seed * mix;

	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ w[i]) * mix;
		h ^= h >> 32;
	}
	return (uint32_t)h;
}

/* ---- record.c ----------------------------------------------------------------------------------
 */

/* Opens a record. False: no room. */
bool dif_record_open(struct dif_run *r, uint32_t layout);
/* Takes the open record back. */
void dif_record_undo(struct dif_run *r);
/* Up to two pieces, in order. By DIF_SWITCH the buffer that was written is exchanged: on its CPU
 * with interrupts off. Else: no program runs. They are valid until the next dif_record_take(). */
void dif_record_take(struct dif *d, unsigned cpu, const void *piece[2], uint32_t size[2]);
/* The same for speculations. */
uint64_t dif_speculation(struct dif_run *r);
void dif_speculate(struct dif_run *r, uint64_t spec);
void dif_spec_end(struct dif_run *r, uint64_t spec, enum dif_spec_state how);
/* Commits and discards on this CPU what has ended on another one. Interrupts off, no program. */
void dif_spec_clean(struct dif *d, unsigned cpu);
