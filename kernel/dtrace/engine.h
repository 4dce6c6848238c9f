/*
 * engine.h - the program engine: verifies images (kernel/abi/dif.h) and runs their programs. It
 * knows no language, and of the kernel only port.h; unit tests and fuzz targets run it on the host.
 *
 * In: an image; then firings of probes. Out: records, aggregations, what has been counted.
 *
 *	image ──► load.c ──► verify.c ──► decode.c ──► struct dif_at, at its probes (enable.c)
 *	                                                    │ a probe fires
 *	buffers of the CPU ◄── record.c ◄──┐                ▼
 *	tables of the CPU ◄── aggregate.c ◄┼──────────── run.c ◄──► memory.c, subr.c, string.c
 *	variables ◄────────► variable.c ◄──┤                ▲
 *	the system ◄───────────── act.c ◄──┘                └── port.h: what the kernel says
 *
 * Locking: programs run with interrupts off, and on a CPU one at a time, which the caller sees to.
 * What is per CPU is written by that CPU's programs only. The functions that read, clean or free it
 * say what must be true. In the kernel, dtrace_lock is around each request of a consumer
 * that concerns the engine.
 *
 * Files, in reading order: port.h (what the engine asks), load.c, verify.c, decode.c, run.c,
 * memory.c, subr.c, string.c, variable.c, aggregate.c, record.c, act.c, status.c; of any kernel:
 * probe.h, probe.c; then, of this one: dtrace.h, consumer.c (who traces), device.c (/dev/dtrace),
 * enable.c (clauses at probes), place.c and quick.h (what port.h asks). host/ has these for the
 * host (dtrace -r, and tests), and dif/ those of any other kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/dif.h"
#include "kernel/abi/dif_hash.h"
#include "ktr/hook.h"

#define DIF_CPUS 64u

struct dif;
struct dif_at;
struct dif_cpu;
struct dif_step;

/* What an instruction does, and then what the rest of the program does. */
typedef void dif_operation(const struct ktr_firing *f, struct dif_cpu *c, const struct dif_at *at,
			   const struct dif_step *i);

/* A clause at a probe; constant. It is a member of a structure of the port's, which says more. */
struct dif_at {
	struct dif *d;
	const struct dif_step *code; /* dif_code() */
	dif_operation *run;          /* the first operation of the code */
	uint32_t clause;
	uint32_t probe, epid; /* ids */
};

/* An instruction as it runs. */
struct dif_step {
	dif_operation *run;
	uint8_t op; /* enum dif_op or dif_own_op */
	uint8_t d, a, b;
	int32_t imm;
};

/*
 * Where the records of one CPU go: with DIF_SWITCH two buffers, otherwise one. If a ring has
 * wrapped (end != 0), its oldest record is at tail, and the records from there to `end` are older
 * than those before head. Times in the buffer are those of dif_port_stamp().
 */
struct dif_buffer {
	uint8_t *base; /* that is written */
	uint32_t size, head, tail, end;
	uint8_t *spare; /* DIF_SWITCH: the other one */
};

struct dif_spec_buffer { /* one speculation's records on one CPU */
	uint8_t *base;
	uint32_t head;
	uint32_t life; /* the speculation's, to which they belong */
};

/* A table of aggregations. It begins with an offset for each aggregation without keys; then come
 * the offsets of the hash table, and the entries. Offset 0 means none. */
struct dif_table {
	uint32_t *slots;   /* NULL: there is no table */
	uint32_t *buckets; /* the hash table's part of them */
	uint32_t head;     /* offset of the first free byte */
	uint32_t *spare;
};

struct dif_last_fault {
	uint32_t fault, epid, probe, insn;
	uint64_t addr;
};

/* The program that runs on a CPU. What is said in brackets holds while none runs. */
struct dif_run {
	uint64_t v[DIF_REGS]; /* the registers; that with number 0 is always 0 */
	uint32_t key_words;   /* that have been pushed [0] */
	enum dif_fault fault;
	struct dif_record *record;    /* the open one [NULL] */
	struct dif_spec_buffer *spec; /* where records go; NULL: to the consumer [NULL] */
	uint8_t *top;                 /* of the scratch memory in use [its beginning] */
	bool keeps;                   /* the program that has called holds elements [no] */
	struct dif *d;                /* constant */
	struct dif_cpu *c;            /* constant */
	/* What the operation that runs needs. */
	const struct dif_at *at;
	const struct ktr_firing *f;
	uint64_t temp;
	uint64_t addr;
};

struct dif_cpu {
	/* Programs of all probes but END run here while fired < limit. atomic; 0: never again */
	uint64_t limit;
	uint64_t fired, ended[2]; /* ended: by imm of DIF_RET */
	uint64_t faulted, dropped, buf_drops, agg_drops, dynvar_drops, spec_drops;
	uint64_t spec_busy, spec_full; /* speculation() that gave 0: some waited; none did */
	uint64_t error_faults;         /* in clauses of ERROR */
	uint64_t lossy;                /* firings that have counted a drop */
	struct dif_buffer buf;
	struct dif_table aggs;
	struct dif_spec_buffer *specs;
	uint8_t *locals; /* variables of scope DIF_THIS, and after them the scratch */
	uint8_t *scratch, *scratch_end;
	char *text[2]; /* copies of strings that are being worked on: strsize each */
	char *tokens;  /* the copy of strtok()'s string */
	char *token;   /* where strtok() goes on in it, in the programs of one firing */
	/* What the program that began it had: the epids of a probe's programs follow each other. */
	uint64_t token_fired;
	uint32_t token_probe, token_epid;
	uint64_t *keys; /* that have been pushed: DIF_MAX_KEY bytes */
	struct dif_last_fault fault;
	/* Counts how often a program began to have addresses of elements (variable.c), and
	 * stopped: odd while one has some. atomic */
	uint32_t holds;
	uint32_t lossy_fired; /* the lower half of `fired` of the last firing that is in `lossy` */
	struct dif_run run;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct dif_cpu) == 512, "a CPU's part is found by a shift");

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
	uint64_t free;   /* atomic: the list of freed chunks */
	uint32_t unused; /* atomic: chunks from here on were never used */
	uint32_t lock;   /* atomic; of: */
	struct dif_aside {
		uint32_t first;     /* of a list of chunks that programs may still use */
		uint64_t cpus;      /* the CPUs on which they may */
		uint32_t holds[64]; /* by CPU: dif_cpu.holds then */
	} aside, older;
	uint32_t count, mask;      /* chunks; buckets - 1 */
	uint32_t size, value_size; /* of a chunk; of the value in it */
};

struct dif_aggregation {
	uint32_t value_words;
	int64_t base; /* DIF_LLQUANTIZE: factor to the power of the lowest magnitude */
};

/* What verify.c finds out: a clause's predicate, if that has one answer for a thread until its pid,
 * tid or name changes. */
struct dif_predicate {
	uint32_t number; /* the same for equal ones; 0: there is none, or it asks for more */
	uint32_t length; /* of the instructions that decide that it is false */
	uint32_t hash;   /* the same for equal ones */
};

/* A consumer's loaded image. */
struct dif {
	uint32_t state; /* atomic: enum dif_state */
	int32_t exit_status;
	struct dif_header h;  /* a copy, with the options' defaults filled in */
	const uint8_t *image; /* NULL: the kernel made the arrays, which stand by themselves */
	const struct dif_clause *clauses;
	const struct dif_insn *code;
	struct dif_step *steps; /* the same as it runs: decode.c */
	const uint16_t *actions;
	const uint32_t *layouts;
	const struct dif_var *vars;
	const struct dif_agg *aggs;
	const char *strings;
	uint8_t *memory; /* one block: image, tables, buffers */
	size_t memory_size;
	struct dif_variable *variables;
	struct dif_aggregation *aggregations;
	struct dif_predicate *predicates; /* of each clause */
	uint8_t *globals;
	uint32_t globals_size, locals_size; /* bytes of variables of all, and of a CPU */
	struct dif_dynamic dynamic;
	struct dif_spec *specs;
	uint32_t table_slots; /* of each aggregation table: without keys, then the hash table's */
	uint32_t bucket_mask; /* of the hash table */
	uint64_t secret[2];   /* constant: for dif_hash_words() */
	unsigned cpus;
	struct dif_cpu *cpu;
	unsigned fault_cpu; /* atomic: had the last fault */
	uint64_t alive_ns;  /* atomic: the last sign of life, by the caller's clock */
	bool starved;       /* atomic: a probe has ended the tracing, for want of a sign of life */
};

/* Why an image was refused. */
struct dif_refusal {
	uint32_t clause, insn;
	const char *error;
};

/* ---- load.c, verify.c -------------------------------------------------------------------------
 */

/*
 * Takes a copy of an image, which is aligned as its structures are, for CPUs 0 to cpus - 1. 0;
 * -EINVAL, and *why has the reason; -ENOMEM. Thread context.
 */
int dif_load(struct dif *d, const void *image, size_t size, unsigned cpus, struct dif_refusal *why);
/* As dif_load(), for what the kernel has made: d->h has the options and the length of each array,
 * and d has the arrays. */
int dif_load_arrays(struct dif *d, unsigned cpus, struct dif_refusal *why);
/* No program runs, and none will. */
void dif_unload(struct dif *d);
/* Verifies the program of a clause, in an image whose sections were checked, and sets its
 * d->predicates[]. Those before have theirs. work: dif_verify_size() bytes to work in. 0 or
 * -EINVAL. */
int dif_verify(const struct dif *d, uint32_t clause, void *work, struct dif_refusal *why);
size_t dif_verify_size(const struct dif *d);
/* ---- decode.c ----------------------------------------------------------------------------------
 */

/*
 * Operations that programs only have when they run. Where one stands for several instructions, all
 * but the first are still in their places, so that a branch may lead to them.
 */
enum dif_own_op {
	/* DIF_BUILTIN for variables that need no call: + enum dif_builtin */
	DIF_OWN_BUILTIN = 160,
	/* DIF_OR of a constant, with the DIF_JEQ or DIF_JNE of a register that compares with it */
	DIF_OWN_JEQ = 192,
	DIF_OWN_JNE,
	/* Integers with a place: imm is the offset in globals, or in locals */
	DIF_OWN_LDG,
	DIF_OWN_STG,
	DIF_OWN_LDL,
	DIF_OWN_STL,
	/* DIF_AGG of a count, or of a sum, without keys; then both with keys */
	DIF_OWN_COUNT,
	DIF_OWN_SUM,
	DIF_OWN_COUNT_KEYS,
	DIF_OWN_SUM_KEYS,
	/* DIF_KEY and DIF_OWN_COUNT_KEYS, of an aggregation with this key alone */
	DIF_OWN_COUNT_KEY,
	DIF_OWN_REC,     /* to no ring, and to no speculation; imm: DIF_PLACE(layout, its words) */
	DIF_OWN_REC_64,  /* DIF_REC_MEM of 64 bytes */
	DIF_OWN_KEY_STR, /* if strsize is at least DIF_QUICK_STR */
	/* DIF_RET with 0 and with 1 of a program that does not change struct dif_run */
	DIF_OWN_DONE,
	DIF_OWN_FALSE,
	DIF_OWN_LOG_DONE, /* DIF_LOG and DIF_OWN_DONE */
	/* DIF_RET of a program that changes it: with 0 and with 1 of one that has keys, or a
	 * record; of one that does more */
	DIF_OWN_RET_RECORD,
	DIF_OWN_RET_RESET = DIF_OWN_RET_RECORD + 2,
	DIF_OWN_RET_HELD, /* … that may hold addresses of elements */
	/* For the first two instructions of a clause: a DIF_OWN_BUILTIN, and a DIF_OWN_JNE of
	 * its result that leads to DIF_OWN_FALSE: + enum dif_builtin */
	DIF_OWN_IF = 224,
};
#define DIF_QUICK_STR 64u /* bytes of a string that are read without a call */
/* Makes d->steps of an image that has been verified. */
void dif_decode(struct dif *d);
/* Where a clause's program begins. */
static inline const struct dif_step *
dif_code(const struct dif *d, uint32_t clause)
{
	return &d->steps[d->clauses[clause].code];
}
/* A clause at a probe, which has these ids. */
static inline struct dif_at
dif_at(struct dif *d, uint32_t clause, uint32_t probe, uint32_t epid)
{
	const struct dif_step *code = dif_code(d, clause);

	return (struct dif_at){d, code, code->run, clause, probe, epid};
}

/* Words of an aggregation's value; 0: its parameters are not valid. Sets *base (above). */
uint32_t dif_agg_words(const struct dif_agg *a, int64_t *base);

/* ---- run.c -------------------------------------------------------------------------------------
 */

/*
 * May a program run on this CPU, of which c is? If so, counts the firing. If not, the CPU runs no
 * more programs, or it is time to ask dif_is_alive(), and to raise c->limit.
 */
static inline bool
dif_admit(struct dif_cpu *c)
{
	uint64_t fired = c->fired;

	if (__builtin_expect(fired >= __atomic_load_n(&c->limit, __ATOMIC_RELAXED), 0))
		return false;
	c->fired = fired + 1;
	return true;
}

/* Counts a drop in one of c's counters, and the firing, whatever it drops. */
static inline void
dif_drop(struct dif_cpu *c, uint64_t *drops)
{
	++*drops;
	c->lossy += c->lossy_fired != (uint32_t)c->fired;
	c->lossy_fired = (uint32_t)c->fired;
}

/* An operation to jump to: in the register that a port's compiler wants it in (arch.mk). */
#ifdef DIF_PORT_JUMP_REGISTER
#define DIF_JUMP(operation)                                                                \
	__extension__({                                                                    \
		register dif_operation *to_ __asm__(DIF_PORT_JUMP_REGISTER) = (operation); \
		__asm__("" : "+r"(to_));                                                   \
		to_;                                                                       \
	})
#else
#define DIF_JUMP(operation) (operation)
#endif
/*
 * Runs the program of a clause on this CPU, of which c is, and counts how it ended. The firing has
 * been counted. After a fault it calls dif_port_fault().
 */
static inline void
dif_fire(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	DIF_JUMP(at->run)(f, c, at, at->code);
}
/* What each operation does; NULL: no such. */
extern dif_operation *const dif_operations[256];
/* Puts struct dif_run as it has to be before a program: after one, or at first. */
static inline void
dif_run_reset(struct dif_run *r)
{
	r->key_words = 0;
	r->record = NULL;
	r->spec = NULL;
	r->top = r->c->scratch;
}

/* Sets the fault, and returns false. */
static inline bool
dif_fail(struct dif_run *r, enum dif_fault fault, uint64_t addr)
{
	r->fault = fault;
	r->addr = addr;
	return false;
}

/* ---- status.c ----------------------------------------------------------------------------------
 */

#define DIF_ERROR_ARGS 6
void dif_error_args(const struct dif *d, unsigned cpu, uint32_t clause,
		    uint64_t args[DIF_ERROR_ARGS]);
/* Ends the tracing, but for END: no CPU is open any more. Any context. */
void dif_drain(struct dif *d, int32_t status);
/* DIF_EXIT: no more programs but END's. A status that END gives replaces an earlier one. */
void dif_exit(const struct dif_at *at, int32_t status);
/* Lets the consumer's programs run on a CPU, unless its tracing has ended. */
void dif_open_cpu(struct dif *d, unsigned cpu);
/*
 * Asked after dif_admit() has said no, or instead: may a program run on CPU c? A consumer that gave
 * no sign of life for long loses its probes: it may have starved, or be stopped. On CPU c,
 * interrupts off.
 */
bool dif_is_alive(struct dif *d, struct dif_cpu *c, uint64_t now);
/* Adds up what the CPUs have counted; leaves members 0 that the engine does not know. */
void dif_status(const struct dif *d, struct dif_status *s);
/* dif_status() in pieces: for one CPU at a time, then for that of the last fault, fault_cpu. */
void dif_status_begin(const struct dif *d, struct dif_status *s);
void dif_status_add(const struct dif *d, unsigned cpu, struct dif_status *s);
void dif_status_fault(const struct dif *d, unsigned cpu, struct dif_status *s);

/* ---- memory.c ----------------------------------------------------------------------------------
 */

/* The highest bit of the first byte that is 0, and perhaps bits above it; 0: there is none. */
static inline uint64_t
dif_nul_bit(uint64_t w)
{
	return (w - 0x0101010101010101u) & ~w & 0x8080808080808080u;
}
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

/* Runs a subroutine, and puts its result into *v. False: a fault. */
bool dif_subroutine(struct dif_run *r, unsigned sub, const uint64_t *args, uint64_t *v);
/* DIF_ARGSTR. False: a fault. */
bool dif_arg_string(struct dif_run *r, unsigned n, uint64_t *v);
bool dif_string_subroutine(struct dif_run *r, unsigned sub, const uint64_t *args, uint64_t *v);
extern const uint8_t dif_sub_args[DIF_SUB_COUNT];

/* ---- variable.c --------------------------------------------------------------------------------
 */

/* Lays out the memory given; count 0: there is none. */
void dif_dynamic_init(struct dif_dynamic *t, void *memory, size_t size, uint32_t chunk,
		      uint32_t value);
/* The size, or more if it has no room for that many chunks. */
uint64_t dif_dynamic_least(uint64_t size, uint32_t count, uint32_t chunk);
/* How large a chunk must be. */
uint32_t dif_dynamic_chunk(uint32_t key_size, uint32_t value_size);
uint64_t dif_var_load(struct dif_run *r, uint32_t var);
bool dif_var_store(struct dif_run *r, uint32_t var, uint64_t value);
/* The program on this CPU has ended, or no longer uses any address that dif_var_load() gave it.
 * The program within which it was called may still use some (run.keeps). */
static inline void
dif_var_release(struct dif_cpu *c)
{
	uint32_t holds = __atomic_load_n(&c->holds, __ATOMIC_RELAXED);

	if (c->run.keeps)
		return;
	/* release: pairs with the acquire in variable.c, whose CPU may use the chunk again */
	__atomic_store_n(&c->holds, (holds + 1) & ~1u, __ATOMIC_RELEASE);
}
/*
 * For observers from outside: the value of a variable of scope DIF_GLOBAL, as DIF_LDV has it; if it
 * is an array, of the element with these keys. A text may change meanwhile. Call it while no hook
 * can run on this CPU.
 */
uint64_t dif_var_read(struct dif *d, uint32_t var, const uint64_t *keys, uint32_t key_words);
/* Is [addr, addr + n) in variables of the consumer, or in one element's value? */
bool dif_in_variable(const struct dif_run *r, uint64_t addr, size_t n);

/* ---- aggregate.c -------------------------------------------------------------------------------
 */

#define DIF_KEY_WORDS (DIF_MAX_KEY / 8u)
/* Push a key: a string, memory, or a stack of so many frames. False: a fault. */
bool dif_key_str(struct dif_run *r, uint64_t addr);
bool dif_key_stack(struct dif_run *r, bool user, uint32_t frames);
void dif_agg_add(struct dif_run *r, uint32_t agg, uint64_t value, uint64_t weight);
/*
 * Exchanges a CPU's table, to which its programs add, for the spare one. *entries becomes the first
 * entry of the old table. Returns how many bytes of entries it has; they are valid until
 * dif_agg_done(), which must follow. On that CPU with interrupts off.
 */
uint32_t dif_agg_take(struct dif *d, unsigned cpu, void **entries);
void dif_agg_done(struct dif *d, unsigned cpu);
/* Offset of the first entry in a table. */
uint32_t dif_table_begin(const struct dif *d);
static inline uint64_t *
dif_value(const struct dif_entry *e)
{
	return (uint64_t *)(e + 1) + e->key_words;
}
/* The entry of an aggregation that has the keys of this hash on CPU c; NULL: there is none yet. */
static inline struct dif_entry *
dif_agg_find(const struct dif *d, const struct dif_cpu *c, uint32_t agg, uint32_t words,
	     uint32_t hash)
{
	uint64_t id = agg | (uint64_t)hash << 32;

	for (uint32_t at = c->aggs.buckets[hash & d->bucket_mask]; at != 0;) {
		struct dif_entry *e = (struct dif_entry *)((uint8_t *)c->aggs.slots + at);
		const uint64_t *key = (const uint64_t *)(e + 1);

		if (*(const uint64_t *)e == id && e->key_words == words) {
			uint32_t left = words;

			while (left > 0 && key[left - 1] == c->keys[left - 1])
				left--;
			if (left == 0)
				return e;
		}
		at = e->next;
	}
	return NULL;
}

/* ---- record.c ----------------------------------------------------------------------------------
 */

/* Opens a record. False: no room. */
bool dif_record_open(struct dif_run *r, uint32_t layout);
/* Takes the open record back. */
void dif_record_undo(struct dif_run *r);
/*
 * Records the string at addr, in at most `size` bytes with its NUL. If it is the last member of the
 * record, the record ends with it. False after a fault.
 */
bool dif_record_str(struct dif_run *r, uint8_t *to, uint64_t addr, uint32_t size);
/* Stores a stack into `words` words. */
void dif_record_stack(struct dif_run *r, bool user, uint8_t *to, uint32_t words);
/*
 * Takes a CPU's records: up to two pieces, in order, which are valid until the next
 * dif_record_take(). With DIF_SWITCH this exchanges the buffers: on that CPU, with interrupts off.
 * Otherwise no program may run.
 */
void dif_record_take(struct dif *d, unsigned cpu, void *piece[2], uint32_t size[2]);
/* Makes the times in copies of records, which were taken, nanoseconds. */
void dif_record_times(void *piece, uint32_t size);
/* Begins, chooses and ends speculations. False: there is none of that number; 0 is no number. */
uint64_t dif_speculation(struct dif_run *r);
bool dif_speculate(struct dif_run *r, uint64_t spec);
bool dif_spec_end(struct dif_run *r, uint64_t spec, enum dif_spec_state how);
/* Are there any to be committed or discarded on that CPU? */
bool dif_spec_waits(const struct dif *d, unsigned cpu);
/* Commits or discards a speculation that was ended, on this CPU. Interrupts off, no program. */
void dif_spec_clean(struct dif *d, unsigned cpu);
