/*
 * dif_insn.h - the instructions of programs for probes (dif.h), and the faults that end one.
 *
 * 16 registers of 64 bits. DIF_R0 is always 0: as a destination it is refused. The others have no
 * value when a program begins; the verifier refuses a program that could read one before it is
 * written. `a` and `b` name source registers and `d` the destination, where the table says so.
 * Fields that the table does not name must be 0.
 */
#pragma once

#include <stdint.h>
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
