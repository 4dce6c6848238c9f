/*
 * dif.h - programs for probes: the image that is loaded, and the device /dev/dtrace; dif_insn.h has
 * the instructions.
 *
 * A *consumer* is an open file of /dev/dtrace. It loads one *image*: clauses with their programs,
 * variables, aggregations, and records. The kernel verifies the image, or refuses it whole. Each
 * time a probe fires, it runs the programs of the clauses that name the probe, in the image's
 * order, with interrupts off. A program has forward branches only, so it ends. It can read memory
 * of the kernel that is RAM, and write only its own scratch memory, its variables, aggregations and
 * records. What a program writes for the consumer is a *record*.
 *
 * The engine knows no language. Integers are 64 bits. A string is the address of bytes that end
 * with a NUL, or after `strsize - 1` bytes. All structures are little-endian and have no holes.
 *
 * For each consumer, once it has stopped: fired = false + completed + faulted + dropped, counted in
 * clauses. Until then the counters of CPUs that run are read one after the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/dif_insn.h"

/*
 * ---- Image -------------------------------------------------------------------------------------
 *
 * A header, and sections at the offsets that it says, in any order, each aligned to 8 bytes.
 */
#define DIF_MAGIC   0x31464944u /* "DIF1" */
#define DIF_VERSION 1

#define DIF_MAX_IMAGE   (16u << 20)
#define DIF_MAX_CLAUSES 4096
#define DIF_MAX_CODE    16384      /* instructions of a clause */
#define DIF_MAX_ALL     (1u << 20) /* instructions of all clauses, a shared program's once each */
#define DIF_MAX_KEYS    16
#define DIF_MAX_KEY     2048 /* bytes of the keys of one aggregation or element */
#define DIF_MAX_FRAMES  128
#define DIF_MAX_LEVELS  65533 /* of lquantize(), llquantize() */
#define DIF_MAX_STRSIZE 4096
#define DIF_MAX_RECORD  65520       /* bytes of data in a record */
#define DIF_MAX_MEMORY  (1ul << 31) /* bytes of one buffer or table */
#define DIF_MAX_COST                                                                 \
	(4u << 20) /* bytes that a clause may touch at most, by the verifier's count \
		    */

struct dif_section {
	uint32_t offset; /* from the image's first byte */
	uint32_t count;  /* of elements */
};

enum dif_policy {
	DIF_SWITCH, /* two buffers for each CPU, one of which is read. Full: the record is dropped
		     */
	DIF_RING,   /* new records overwrite the oldest ones; read after DIF_IOC_STOP */
	DIF_FILL,   /* as the ring, but ends the tracing, as DIF_EXIT with 0 does, when a buffer is
		       full */
};

struct dif_options { /* 0: the default */
	uint64_t
	    bufsize; /* bytes for each CPU, and twice that by DIF_SWITCH. 0: no record possible */
	uint64_t aggsize;    /* bytes for each CPU, twice. 0: no aggregation possible */
	uint64_t dynvarsize; /* bytes. 0: no variables of threads, no elements */
	uint64_t specsize;   /* bytes for each speculation and CPU */
	uint32_t nspec;      /* 0 to 64 */
	uint32_t strsize;    /* 256; 2 to DIF_MAX_STRSIZE */
	uint32_t scratch;    /* bytes of scratch memory; 4096 + 8 * strsize */
	uint32_t policy;     /* enum dif_policy */
	uint64_t deadman_ns; /* 30 s: if its process neither asks DIF_IOC_STATUS nor runs for so
			       long, the consumer's probes go off */
};

/* As the original does while memory is short: the largest size becomes half. False: all are small.
 */
static inline bool
dif_lower_sizes(struct dif_options *o)
{
	uint64_t scratch = o->scratch, *largest = &scratch;
	uint64_t *const sizes[] = {&o->bufsize, &o->aggsize, &o->dynvarsize, &o->specsize};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		largest = *sizes[i] > *largest ? sizes[i] : largest;
	if (*largest < 65536)
		return false;
	*largest = *largest / 2 & ~7ul;
	o->scratch = (uint32_t)scratch;
	return true;
}

/* flags */
#define DIF_DESTRUCTIVE 1u /* may contain what is marked (w) */
#define DIF_KERNEL      2u /* flag of the kernel's own consumers; refused by DIF_IOC_LOAD */
#define DIF_CPU(flags) \
	((flags) >> 16) /* 1 + the CPU that is traced, besides BEGIN and END; 0: all */

struct dif_header {
	uint32_t magic, version;
	uint32_t size; /* of the image, in bytes */
	uint32_t flags;
	struct dif_options options;
	struct dif_section clauses; /* struct dif_clause, in order */
	struct dif_section code;    /* struct dif_insn of all clauses */
	struct dif_section actions; /* uint16_t for each instruction, or none: number of its action,
				       for the ERROR probe's arg2 */
	struct dif_section layouts; /* uint32_t: bytes of data, at most DIF_MAX_RECORD */
	struct dif_section vars;    /* struct dif_var */
	struct dif_section aggs;    /* struct dif_agg */
	struct dif_section strings; /* char; the last one is NUL */
	struct dif_section consumer; /* char: the consumer's own, kept and given back */
};

/*
 * probes: offset in the string table of probe names, as `provider:module:function:name` with globs
 * (ktr/probe.h), commas between them. The engine's own are dtrace:::BEGIN, END and ERROR.
 * A clause's program is [code, code + length). It is that of the clause before, or comes after it.
 */
struct dif_clause {
	uint32_t probes;
	uint32_t code, length;
	uint32_t reserved; /* 0 */
};

enum dif_scope {
	DIF_GLOBAL,
	DIF_SELF,
	DIF_THIS
}; /* of all; of the thread; of the CPU, until the
      last clause of a firing has run */
enum dif_kind { DIF_INT, DIF_BYTES, DIF_STR };

/* Kinds of keys: four bits each, the first key in the highest ones that are used. 0: no keys. */
#define DIF_K_INT             1u
#define DIF_K_STR             2u
#define DIF_K_STACK           3u
#define DIF_K_USTACK          4u
#define DIF_KEYS(k1)          (k1)
#define DIF_KEYS_AND(keys, k) ((uint64_t)(keys) << 4 | (k))

struct dif_var {
	uint8_t scope; /* enum dif_scope. DIF_THIS has no keys */
	uint8_t kind;  /* enum dif_kind */
	uint16_t reserved;
	uint32_t
	    size; /* bytes: 8 for DIF_INT, 1 to 4096 for DIF_BYTES, ignored for DIF_STR: strsize */
	uint64_t keys; /* kinds; 0: a simple variable */
};

enum dif_func {
	DIF_COUNT,
	DIF_SUM,
	DIF_MIN, /* signed */
	DIF_MAX,
	DIF_AVG,
	DIF_STDDEV,
	DIF_QUANTIZE,
	DIF_LQUANTIZE,
	DIF_LLQUANTIZE,
};

/*
 * What an aggregation's value is, in 64-bit words:
 *	DIF_COUNT DIF_SUM DIF_MIN DIF_MAX	1
 *	DIF_AVG		2: count, sum
 *	DIF_STDDEV	4: count, sum, sum of squares in 128 bits, low half first
 *	DIF_QUANTIZE	127: bucket 63 for 0, 64 + n for 2^n to 2^(n+1) - 1, 62 - n for
 *			their negatives
 *	DIF_LQUANTIZE	levels + 2, where levels = (p[1] - p[0]) / p[2]: below p[0]; the
 *			levels; from p[0] + levels * p[2] on. p[0] < p[1], p[2] > 0; at
 *			most DIF_MAX_LEVELS
 *	DIF_LLQUANTIZE	factor f = p[0], magnitudes p[1] to p[2], s = p[3] steps. Below
 *			f^p[1]; then for each magnitude m n - n / f buckets of width
 *			f^(m+1) / n from f^m on, where n is s, but at most f^(m+1); then
 *			from f^(p[2]+1) on. f >= 2, 0 <= p[1] <= p[2], f^(p[2]+1) < 2^63;
 *			s is a multiple of f, and n a divisor of f^(m+1); at most
 *			DIF_MAX_LEVELS + 2 words
 */
struct dif_agg {
	uint8_t func; /* enum dif_func */
	uint8_t reserved[7];
	uint64_t keys;
	int64_t p[4]; /* what the function does not use is 0 */
};

/*
 * ---- What comes out ----------------------------------------------------------------------------
 *
 * A buffer is a sequence of records, each a multiple of 8 bytes. Skip those of layout DIF_VOID.
 */
struct dif_record {
	uint16_t layout;
	uint16_t words; /* size in 8 bytes, header included; a string at its end is cut */
	uint32_t probe; /* id */
	uint64_t time;  /* nanoseconds since boot */
			/* the layout's data */
};
#define DIF_VOID 0xffffu

/*
 * An aggregation table is a sequence of entries. After the entry: key_words words of keys, then
 * value_words words. Keys stand in the order in which they were pushed: an integer as a word, a
 * string with its NUL padded to words by 0, a kernel stack as a word for the number of frames and
 * the frames, a user stack the same with DIF_B_PROGRAM as its first frame. An entry has what was
 * added since the last DIF_IOC_AGGS, so add it to what you have.
 */
struct dif_entry {
	uint32_t agg;  /* index */
	uint32_t hash; /* the engine's own */
	uint32_t next; /* the engine's own */
	uint16_t key_words, value_words;
};

enum dif_state {
	DIF_EMPTY,    /* no image */
	DIF_LOADED,   /* an image, probes off */
	DIF_ACTIVE,   /* probes on */
	DIF_DRAINING, /* DIF_EXIT, or a buffer full by DIF_FILL: only END is left to run */
	DIF_STOPPED,  /* probes off, END has run */
	DIF_KILLED,   /* by the dead-man: the consumer gave no sign of life */
};

struct dif_status {
	uint32_t state;      /* enum dif_state */
	int32_t exit_status; /* status of the DIF_EXIT in END, else of the first one */
	uint32_t cpus;       /* number of CPUs */
	uint32_t sites;      /* probes on for this consumer */
	uint64_t fired;      /* clauses; see above */
	uint64_t predicate_false;
	uint64_t completed;
	uint64_t faulted;
	uint64_t dropped; /* no room for a record */
	/*
	 * Counts probes that fired while the CPU was in a firing already: because an NMI came,
	 * because the engine met a probe, or because histograms made events of events, the fifth
	 * within others. These are no firings of this consumer. It counts from the first of the
	 * consumers on that are there now. Functions whose predicate is known to be false are not
	 * counted.
	 */
	uint64_t refused;
	uint64_t buf_drops; /* records without room, in a buffer */
	uint64_t agg_drops;
	uint64_t dynvar_drops;
	uint64_t spec_drops;   /* records without room in their speculation */
	uint64_t spec_none;    /* DIF_SUB_SPECULATION that returned 0 */
	uint64_t spec_busy;    /* of these: some were waiting to be committed or discarded */
	uint64_t error_faults; /* of `faulted`: those in clauses of ERROR, which fire nothing */
	uint32_t fault;        /* the last fault: enum dif_fault */
	uint32_t fault_epid;
	uint32_t fault_probe; /* id */
	uint32_t fault_insn;  /* index in the clause's program */
	uint64_t fault_addr;  /* the address, or 0 */
	uint64_t fullest;     /* DIF_SWITCH: bytes of the CPU that has most records */
	uint64_t time;        /* now, as in records: later requests find all older ones */
};

/*
 * The ERROR probe's arguments: arg1 epid, arg2 the action (dif_header.actions), arg3 the
 * instruction's index in its clause, arg4 enum dif_fault, arg5 the address. A fault in a clause of
 * ERROR fires nothing.
 */

/*
 * ---- /dev/dtrace -------------------------------------------------------------------------------
 *
 * Whoever opens it needs CAP_SYS_ADMIN, whatever its mode. Each open file is a consumer; when its
 * last descriptor closes, however that happens, its probes go off and its memory is freed. Requests
 * return 0 or more, or -errno.
 */

/*
 * Loads an image. EINVAL: it is refused, and dif_load says why and where; ENOMEM; EBUSY: there is
 * one already; ENOSPC: there is no room for probes that it makes; EAGAIN: one of these has gone
 * meanwhile; E2BIG: its names of probes are too many, or mean too many.
 */
#define DIF_IOC_LOAD 0x4401 /* struct dif_load * */
struct dif_load {
	uint64_t image; /* address */
	uint32_t size;
	uint32_t clause;  /* out, EINVAL: the clause at fault, or UINT32_MAX */
	uint32_t insn;    /* out, EINVAL: index of the instruction in it */
	uint32_t matched; /* out: clauses at probes */
	uint64_t
	    matches; /* address of uint32_t for each clause, or 0: receives the probes it matches */
	char error[96]; /* out, EINVAL, ENOSPC, EAGAIN, E2BIG: a sentence */
};
/* Fires BEGIN on this CPU, then switches the probes on. EINVAL if there is no image, or they
 * were on before. */
#define DIF_IOC_GO 0x4402
/* Switches the probes off, then fires END on this CPU. */
#define DIF_IOC_STOP 0x4403
#define DIF_IOC_STATUS                                                            \
	0x4404 /* struct dif_status *. A sign of life, and it cleans speculations \
		*/
/* Takes the records, or the aggregations, of a CPU. Returns bytes. EINVAL: too little room for all
 * of them (bufsize and aggsize are enough), no such CPU, or DIF_RING or DIF_FILL before
 * DIF_IOC_STOP. */
#define DIF_IOC_RECORDS 0x4405 /* struct dif_read * */
#define DIF_IOC_AGGS    0x4406
struct dif_read {
	uint64_t buf; /* address */
	uint64_t size;
	uint32_t cpu;
	uint32_t reserved;
};
/* Describes the first probe whose id is at least `id`. ENOENT: there is none. Needs no image. */
#define DIF_IOC_PROBE 0x4407 /* struct dif_probe * */
enum { DIF_PROBE_BEGIN = 1, DIF_PROBE_END, DIF_PROBE_ERROR };
struct dif_probe {
	uint32_t id; /* in, out */
	uint32_t nargs;
	char provider[64], module[64], function[128], name[64];
	char types[7][64]; /* of the arguments, as C writes them; "": not known (then see the
			      format) */
	char xlate[7][64]; /* what a language translates them to, or "" */
	char format[128];  /* the printf format of a trace point; else "" */
};
/* Which clause, and which probe, an epid is. ENOENT: no such epid. */
#define DIF_IOC_EPID 0x4408 /* struct dif_epid * */
struct dif_epid {
	uint32_t epid; /* in */
	uint32_t clause, probe;
	uint32_t reserved;
};
/* Copies the image: returns its size; stores nothing if `size` is less. EINVAL: there is none. */
#define DIF_IOC_IMAGE 0x4409 /* struct dif_read * */
/*
 * Before the other CPUs start, the kernel loads the image /boot/dtrace.dif, if the boot image has
 * one, and switches its probes on. This request makes that tracing the consumer's, with all that it
 * has recorded. EBUSY: the consumer has an image; ENOENT: nothing was loaded, or another one has
 * it.
 */
#define DIF_IOC_ANON 0x440a
/* What a CPU has counted. EINVAL: no image, or no such CPU. */
#define DIF_IOC_DROPS 0x440c /* struct dif_drops * */
struct dif_drops {
	uint32_t cpu; /* in */
	uint32_t reserved;
	uint64_t buf_drops, agg_drops; /* as in struct dif_status */
};
/* The path of a program, which is known for some time after the last use of its number. ENOENT. */
#define DIF_IOC_PROGRAM  0x440b /* struct dif_program * */
#define DIF_PROGRAM_PATH 256
/*
 * Makes a probe pidPID:MODULE:FUNCTION:NAME in a process, which the file keeps. It has to be there
 * before an image that names it is loaded. EINVAL: there is no such place, and why; ENOSPC: too
 * many probes; ESRCH; or the error of looking up the path.
 */
#define DIF_IOC_PID 0x440d /* struct dif_pid * */
enum { DIF_PID_ENTRY, DIF_PID_RETURN, DIF_PID_OFFSET, DIF_PID_PROGRAM };
struct dif_pid {
	uint32_t pid;
	uint32_t kind;   /* DIF_PID_PROGRAM: makes nothing, and stores the process's path */
	uint64_t offset; /* in the file: of the function, or of the instruction */
	uint64_t start;  /* an instruction at or before `offset`: none may be cut in two */
	char path[DIF_PROGRAM_PATH]; /* of the file */
	char module[64], function[128], name[32];
	char error[96]; /* out: a sentence, or "" */
};
struct dif_program {
	uint32_t program; /* in: the upper half of DIF_B_PROGRAM */
	char path[DIF_PROGRAM_PATH];
};

_Static_assert(sizeof(struct dif_insn) == 8, "no holes");
_Static_assert(sizeof(struct dif_options) == 56 && sizeof(struct dif_header) == 136, "no holes");
_Static_assert(sizeof(struct dif_clause) == 16 && sizeof(struct dif_var) == 16 &&
		   sizeof(struct dif_agg) == 48 && sizeof(struct dif_record) == 16 &&
		   sizeof(struct dif_entry) == 16 && sizeof(struct dif_status) == 160 &&
		   sizeof(struct dif_load) == 128 && sizeof(struct dif_read) == 24,
	       "no holes");
