/*
 * dif.h - programs for probes: instructions, the image that is loaded, and the device /dev/dtrace.
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
 * For each consumer: fired = false + completed + faulted + dropped, counted in clauses.
 */
#pragma once

#include <stdint.h>

/*
 * ---- Instructions ------------------------------------------------------------------------------
 *
 * 16 registers of 64 bits. DIF_R0 is always 0: as a destination it is refused. The others have no
 * value when a program begins; the verifier refuses a program that could read one before it is
 * written. `a` and `b` name source registers and `d` the destination, where the table says so.
 * Fields that the table does not name must be 0.
 */
#define DIF_REGS 16

struct dif_insn {
	uint8_t op; /* enum dif_op */
	uint8_t d, a, b;
	int32_t imm;
};

/* An arithmetic operation with DIF_IMM set has imm, sign-extended, in the place of register b. */
#define DIF_IMM 0x80

/* A place in a record: `size` bytes, 1 to 65535, at offset `off`, 0 to 65535. */
#define DIF_PLACE(off, size) ((int32_t)((uint32_t)(size) << 16 | (uint32_t)(off)))

enum dif_op {
	/*
	 * Ends the program. imm 0: completed; 1: the predicate was false. The last instruction must
	 * be DIF_RET; others may be, too. With 1 no record may be open.
	 */
	DIF_RET = 0,

	/* d = a OP b, or a OP imm with DIF_IMM. Shifts use the low 6 bits of b. */
	DIF_ADD = 1,
	DIF_SUB = 2,
	DIF_MUL = 3,
	DIF_SDIV = 4, /* truncates; by 0: DIF_FAULT_DIVZERO. INT64_MIN / -1 is INT64_MIN, rest 0 */
	DIF_UDIV = 5,
	DIF_SREM = 6,
	DIF_UREM = 7,
	DIF_AND = 8,
	DIF_OR = 9, /* d = DIF_R0 | b: a copy; d = DIF_R0 | imm: a constant */
	DIF_XOR = 10,
	DIF_SHL = 11,
	DIF_SHR = 12,
	DIF_SAR = 13,
	/* d = 1 if true, else 0. The other comparisons exchange a and b, or invert the branch. */
	DIF_SEQ = 14,
	DIF_SNE = 15,
	DIF_SLT = 16, /* signed a < b */
	DIF_SLE = 17,
	DIF_ULT = 18,
	DIF_ULE = 19,

	DIF_HIGH = 32, /* d = (d & 0xffffffff) | imm << 32: the upper half of a constant */
	DIF_EXT = 33,  /* d = a, cut to imm bytes and extended; imm 1 2 4 zero, -1 -2 -4 sign */
	/* d = -1, 0 or 1: compares the strings a and b, byte by byte, unsigned. */
	DIF_SCMP = 34,

	/* Goes on at the instruction imm after the next one, imm >= 0, if a and b compare so. */
	DIF_JA = 40, /* always */
	DIF_JEQ = 41,
	DIF_JNE = 42,
	DIF_JLT = 43, /* signed */
	DIF_JLE = 44,
	DIF_JULT = 45,
	DIF_JULE = 46,

	/*
	 * d = memory at a + imm, of 1, 2, 4, 8 bytes, zero-extended (DIF_LD), or sign-extended
	 * (DIF_LDS, 1, 2, 4). Any alignment. Memory: the kernel's as far as it is RAM, and the
	 * addresses that the engine hands out (scratch, strings, variables). Else
	 * DIF_FAULT_BADADDR. User memory is read by DIF_SUB_COPYIN and its kin.
	 */
	DIF_LD1 = 48,
	DIF_LD2 = 49,
	DIF_LD4 = 50,
	DIF_LD8 = 51,
	DIF_LDS1 = 52,
	DIF_LDS2 = 53,
	DIF_LDS4 = 54,
	/* The low bytes of b to a + imm, which must be scratch memory or lie in a variable. Else
	 * DIF_FAULT_BADADDR. */
	DIF_ST1 = 56,
	DIF_ST2 = 57,
	DIF_ST4 = 58,
	DIF_ST8 = 59,

	DIF_STRING = 64, /* d = the address of the string at offset imm of the string table */
	/*
	 * d = argument imm of the probe, 0 to 9; 0: it has no such argument. At syscall:::return,
	 * arguments 0 and 1 are the result, or -1 if the call failed (DIF_B_ERRNO).
	 */
	DIF_ARG = 65,
	DIF_BUILTIN = 66, /* d = value of imm, enum dif_builtin */
	/*
	 * d = the user mode's register number a, else DIF_FAULT_ILLOP. x86_64, from 0: r15 r14 r13
	 * r12 r11 r10 r9 r8 rbp rdi rsi rdx rcx rbx rax vector error rip cs rflags rsp ss. aarch64:
	 * x0 to x30, sp, pc, pstate.
	 */
	DIF_UREG = 67,
	DIF_CALL = 68, /* d = subroutine imm, enum dif_sub, of a, a + 1, … */
	/*
	 * d = a copy in scratch of the text for which argument imm, 0 to 9, of a trace point stands
	 * (%s in its format); no text: DIF_FAULT_BADADDR.
	 */
	DIF_ARGSTR = 69,

	/*
	 * Keys are pushed one after the other, and used up by the next DIF_LDV, DIF_STV or DIF_AGG
	 * that has keys. Their kinds must be those that its declaration says. At most DIF_MAX_KEY
	 * bytes, else DIF_FAULT_TUPOFLOW.
	 */
	DIF_KEY = 72,        /* the integer a */
	DIF_KEY_STR = 73,    /* the string a */
	DIF_KEY_STACK = 74,  /* the kernel stack, imm frames at most */
	DIF_KEY_USTACK = 75, /* the user stack, imm frames at most */

	/*
	 * Variables: imm is the index of the declaration. Of kind DIF_INT: d = its value. Else d =
	 * the address of its bytes. A thread's variable, or an element of an array, that was never
	 * stored is 0, and so is what was stored from address 0; one of kind DIF_BYTES is made, of
	 * zeroes, when it is loaded (no memory: dynvar_drops, and the address 0).
	 */
	DIF_LDV = 80,
	/*
	 * Stores register a; or the string or bytes at a. To a thread's variable or an element,
	 * integer 0 or address 0 frees its memory. Without memory: dynvar_drops, and the program
	 * goes on.
	 */
	DIF_STV = 81,
	/*
	 * Adds the value a, with weight b, to aggregation imm. The value counts for all functions
	 * but DIF_COUNT, and the weight for the three quantize functions (b = DIF_R0: 1). Without
	 * memory: agg_drops, and the program goes on.
	 */
	DIF_AGG = 82,

	/*
	 * Opens a record of layout imm. The record ends with the program, or with the next DIF_REC;
	 * it is taken back if the program faults. No room: the program ends, dropped. Bytes that
	 * are not stored are undefined.
	 */
	DIF_REC = 96,
	/* The low 1, 2, 4, 8 bytes of a to offset imm of the open record. */
	DIF_REC1 = 97,
	DIF_REC2 = 98,
	DIF_REC4 = 99,
	DIF_REC8 = 100,
	/* imm is a DIF_PLACE. The string at a, cut to size - 1 bytes, and a NUL; no string at 0. If
	   the place is the record's last, the record ends with the string. */
	DIF_REC_STR = 101,
	DIF_REC_MEM = 102, /* size bytes at the address a; b not DIF_R0: at most b bytes */
	/* size is a multiple of 8: so many frames, one address each, 0 after the last if there is
	   room. */
	DIF_REC_STACK = 103,
	DIF_REC_USTACK = 104, /* DIF_B_PROGRAM first, then the frames */

	/* Actions. Those with (w) are refused unless the image has DIF_DESTRUCTIVE. */
	/* The records that follow go to speculation a. None may be open. If a is not active, the
	 * program ends. */
	DIF_SPECULATE = 112,
	/* Speculation a goes to the consumer; is thrown away. None may be open for COMMIT. Not
	   active: nothing. */
	DIF_COMMIT = 113,
	DIF_DISCARD = 114,
	/* After this program no other of the consumer runs, but those of END. a: the status. */
	DIF_EXIT = 115,
	DIF_RAISE = 116, /* (w) signal a to the current process, when it returns to user mode */
	DIF_STOP = 117,  /* (w) stops it likewise */
	DIF_BREAK = 118, /* (w) enters the kernel's debugger */
	DIF_PANIC = 119, /* (w) */
	/* (w) waits a nanoseconds; more than 500 ms in a second and CPU, of all consumers:
	   DIF_FAULT_ILLOP */
	DIF_CHILL = 120,
	DIF_LOG = 121, /* the log records the probe's event, if it does not do so anyway */
	/*
	 * Calls the function of a consumer of the kernel's own (dtrace_attach() in
	 * kernel/dtrace/dtrace.h) with imm and the registers a to a + b - 1; b, a number, is at
	 * most 8. Strings in scratch memory may have changed afterwards. Refused unless the image
	 * has DIF_KERNEL.
	 */
	DIF_UPCALL = 122,
};

enum dif_builtin {
	DIF_B_TIMESTAMP,     /* nanoseconds since boot */
	DIF_B_VTIMESTAMP,    /* nanoseconds that the thread has run */
	DIF_B_WALLTIMESTAMP, /* nanoseconds since 1970, UTC */
	DIF_B_CPU,
	DIF_B_PID,
	DIF_B_PPID,
	DIF_B_TID,
	DIF_B_UID,
	DIF_B_GID,
	DIF_B_EXECNAME, /* string */
	DIF_B_PROBEPROV,
	DIF_B_PROBEMOD,
	DIF_B_PROBEFUNC,
	DIF_B_PROBENAME,
	DIF_B_ID,      /* of the probe */
	DIF_B_EPID,    /* of this clause at this probe: 1, 2, … within the consumer */
	DIF_B_ERRNO,   /* at a system call's return: the error, or 0 */
	DIF_B_CALLER,  /* return address of the probed function */
	DIF_B_UCALLER, /* of the user function */
	DIF_B_STACKDEPTH,
	DIF_B_USTACKDEPTH,
	DIF_B_IPL,       /* 0 interrupts on, 1 off, 2 NMI: at the probe, as far as it is known */
	DIF_B_CURTHREAD, /* struct thread * */
	DIF_B_CURPROC,   /* struct proc *, 0: a kernel thread */
	DIF_B_PC,        /* of the probe */
	DIF_B_NARGS,
	DIF_B_DATA, /* the long text of a trace point that has one, else 0 */
	DIF_B_DATALEN,
	DIF_B_PROGRAM, /* the pid, and in the upper half the number of its program: DIF_IOC_PROGRAM
			*/
	DIF_B_COUNT
};

/*
 * Subroutines: name, number of arguments, what it returns. New strings and memory are scratch,
 * which is empty when a program begins; no room: DIF_FAULT_NOSCRATCH. The names are those of the
 * DTrace guide, which says what they do; here stands only what it leaves open.
 */
#define DIF_SUBS(X)                                                                              \
	X(RAND, 0)                                                                               \
	X(COPYIN, 2)     /* address, size */                                                     \
	X(COPYINSTR, 2)  /* address, most bytes with the NUL; 0: strsize */                      \
	X(COPYINTO, 3)   /* address, size, scratch address */                                    \
	X(COPYOUT, 3)    /* (w) address, user address, size */                                   \
	X(COPYOUTSTR, 3) /* (w) string, user address, most bytes */                              \
	X(ALLOCA, 1)     /* size; aligned to 8 */                                                \
	X(BCOPY, 3)      /* from, to (scratch), size */                                          \
	X(STRLEN, 1)                                                                             \
	X(STRJOIN, 2)                                                                            \
	X(STRCHR, 2) /* 0: not found */                                                          \
	X(STRRCHR, 2)                                                                            \
	X(STRSTR, 2)                                                                             \
	X(STRTOK, 2) /* string, or 0 to go on; separators. 0: no more */                         \
	X(SUBSTR, 3) /* string, index, length; without a length: INT64_MAX */                    \
	X(INDEX, 3)  /* string, string, start; without a start: 0. -1: not found */              \
	X(RINDEX, 3) /* without a start: INT64_MAX */                                            \
	X(BASENAME, 1)                                                                           \
	X(DIRNAME, 1)                                                                            \
	X(CLEANPATH, 1)                                                                          \
	X(TOUPPER, 1)                                                                            \
	X(TOLOWER, 1)                                                                            \
	X(LLTOSTR, 2) /* number, base 2 to 36 */                                                 \
	X(STRTOLL, 2) /* string, base 2 to 36 */                                                 \
	X(JSON, 2) /* text, names with `.` and `[number]`; the value as written. 0: not found */ \
	X(STRINGOF, 1)    /* a copy of the string in scratch */                                  \
	X(MUTEX_OWNED, 1) /* struct mutex * */                                                   \
	X(MUTEX_OWNER, 1) /* struct thread *, or 0 */                                            \
	X(PROGENYOF, 1)   /* pid: is the current process it, or did it descend from it? */       \
	X(HTONS, 1)       /* the same as ntohs, and so on */                                     \
	X(HTONL, 1)                                                                              \
	X(HTONLL, 1)                                                                             \
	X(INET_NTOA, 1)   /* address of 4 bytes */                                               \
	X(INET_NTOA6, 1)  /* address of 16 bytes */                                              \
	X(GLOB, 2)        /* string, pattern of ktr/glob.h: does it match? */                    \
	X(SPECULATION, 0) /* a new speculation, 1 to nspec; 0: none is free */

enum dif_sub {
#define DIF_SUB_(name, nargs) DIF_SUB_##name,
	DIF_SUBS(DIF_SUB_)
#undef DIF_SUB_
	    DIF_SUB_COUNT
};

/* Faults, numbered as DTrace's. They end the clause; then the ERROR probe fires. */
enum dif_fault {
	DIF_FAULT_NONE,
	DIF_FAULT_BADADDR = 1,
	DIF_FAULT_BADALIGN = 2, /* not used */
	DIF_FAULT_ILLOP = 3,
	DIF_FAULT_DIVZERO = 4,
	DIF_FAULT_NOSCRATCH = 5,
	DIF_FAULT_UPRIV = 7, /* not used: a bad user address is DIF_FAULT_BADADDR */
	DIF_FAULT_TUPOFLOW = 8,
	DIF_FAULT_BADSTACK = 9, /* not used: a stack that cannot be read ends there */
};

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
#define DIF_MAX_ALL     (1u << 20) /* of all clauses, those that share a program each */
#define DIF_MAX_KEYS    16
#define DIF_MAX_KEY     2048 /* bytes of the keys of one aggregation or element */
#define DIF_MAX_FRAMES  128
#define DIF_MAX_LEVELS  65533 /* of lquantize() */
#define DIF_MAX_STRSIZE 4096
#define DIF_MAX_RECORD  65520 /* bytes of data in a record */
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
	uint64_t
	    deadman_ns; /* 30 s: without DIF_IOC_STATUS for so long, the consumer's probes go off */
};

/* flags */
#define DIF_DESTRUCTIVE 1u /* may contain what is marked (w) */
#define DIF_KERNEL      2u /* of the kernel's own consumers; refused by DIF_IOC_LOAD */
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
 *	DIF_QUANTIZE	127: bucket 63 for 0, 64 + n for 2^n to 2^(n+1) - 1, 62 - n for their
 *negatives DIF_LQUANTIZE	levels + 2, levels = (p[1] - p[0]) / p[2]: below p[0], the levels,
 *from p[0] + levels * p[2] on. p[0] < p[1], p[2] > 0; at most DIF_MAX_LEVELS
 *	DIF_LLQUANTIZE	factor f = p[0], magnitudes p[1] to p[2], s = p[3] steps. Below f^p[1]; then
 *for each magnitude m: n - n / f buckets of width f^(m+1) / n from f^m on, where n is s, but at
 *most f^(m+1); then from f^(p[2]+1) on. f >= 2, 0 <= p[1] <= p[2], f^(p[2]+1) < 2^63; s is a
 *multiple of f, and n a divisor of f^(m+1); at most 1024 words
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
	int32_t exit_status; /* of DIF_EXIT: that in END, else the first one */
	uint32_t cpus;       /* number of CPUs */
	uint32_t sites;      /* probes on for this consumer */
	uint64_t fired;      /* clauses: fired = predicate_false + completed + faulted + dropped */
	uint64_t predicate_false;
	uint64_t completed;
	uint64_t faulted;
	uint64_t dropped; /* no room for a record */
	/* Since the boot, and no firings of this consumer: probes that fired while the CPU was in a
	 * firing, because an NMI came, or because the engine met a probe. */
	uint64_t refused;
	uint64_t buf_drops; /* records without room, in a buffer */
	uint64_t agg_drops;
	uint64_t dynvar_drops;
	uint64_t spec_drops; /* records without room in their speculation */
	uint64_t spec_none;  /* DIF_SUB_SPECULATION that returned 0 */
	uint64_t spec_busy;  /* of these: some were waiting to be committed or discarded */
	uint32_t fault;      /* the last fault: enum dif_fault */
	uint32_t fault_epid;
	uint32_t fault_probe; /* id */
	uint32_t fault_insn;  /* index in the clause's program */
	uint64_t fault_addr;  /* the address, or 0 */
};

/*
 * The ERROR probe's arguments: arg1 epid, arg2 the action (dif_header.actions), arg3 the
 * instruction's index in its clause, arg4 enum dif_fault, arg5 the address. A fault in a clause of
 * ERROR fires nothing.
 */

/*
 * ---- /dev/dtrace -------------------------------------------------------------------------------
 *
 * Only user 0 may open it. Each open file is a consumer; when its last descriptor closes, however
 * that happens, its probes go off and its memory is freed. Requests return 0 or more, or -errno.
 */

/* Loads an image. EINVAL: refused, and why and where; ENOMEM; EBUSY: there is one already. */
#define DIF_IOC_LOAD 0x4401 /* struct dif_load * */
struct dif_load {
	uint64_t image; /* address */
	uint32_t size;
	uint32_t clause;  /* out, EINVAL: the clause at fault, or UINT32_MAX */
	uint32_t insn;    /* out, EINVAL: index of the instruction in it */
	uint32_t matched; /* out: clauses at probes */
	uint64_t
	    matches; /* address of uint32_t for each clause, or 0: receives the probes it matches */
	char error[96]; /* out, EINVAL: a sentence */
};
/* Fires BEGIN on this CPU, then switches the probes on. EINVAL: no image, or not for the first
 * time. */
#define DIF_IOC_GO 0x4402
/* Switches the probes off, then fires END on this CPU. */
#define DIF_IOC_STOP 0x4403
#define DIF_IOC_STATUS                                                            \
	0x4404 /* struct dif_status *. A sign of life, and it cleans speculations \
		*/
/* Takes the records, or the aggregations, of a CPU. Returns bytes. EINVAL: too little room for all
 * of them (bufsize and aggsize are enough), no such CPU, or DIF_RING before DIF_IOC_STOP. */
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
	char format[128];  /* the printf format of a trace point */
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
 * Makes the tracing of the file /boot/dtrace.dif, an image that the kernel loads before the other
 * CPUs start, this consumer's: its probes are on. EBUSY: it has an image; ENOENT: there is
 * none.
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
 * before an image that names it is loaded. EINVAL: not there, and why; ENOSPC: too many; ESRCH.
 */
#define DIF_IOC_PID 0x440d /* struct dif_pid * */
enum { DIF_PID_ENTRY, DIF_PID_RETURN, DIF_PID_OFFSET, DIF_PID_PROGRAM };
struct dif_pid {
	uint32_t pid;
	uint32_t kind;   /* DIF_PID_PROGRAM: makes nothing, and stores the process's path */
	uint64_t offset; /* in the file: of the function, or of the instruction */
	uint64_t start;  /* an instruction at or before it: none may be cut in two */
	char path[DIF_PROGRAM_PATH]; /* of the file */
	char module[64], function[128], name[32];
	char error[96]; /* out, EINVAL or ENOSPC: a sentence */
};
struct dif_program {
	uint32_t program; /* in: the upper half of DIF_B_PROGRAM */
	char path[DIF_PROGRAM_PATH];
};

_Static_assert(sizeof(struct dif_insn) == 8, "no holes");
_Static_assert(sizeof(struct dif_options) == 56 && sizeof(struct dif_header) == 136, "no holes");
_Static_assert(sizeof(struct dif_clause) == 16 && sizeof(struct dif_var) == 16 &&
		   sizeof(struct dif_agg) == 48 && sizeof(struct dif_record) == 16 &&
		   sizeof(struct dif_entry) == 16 && sizeof(struct dif_status) == 136 &&
		   sizeof(struct dif_load) == 128 && sizeof(struct dif_read) == 24,
	       "no holes");
