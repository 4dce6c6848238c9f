/*
 * dif_insn.h - the instructions of programs for probes (dif.h), and the faults that end one.
 *
 * 16 registers of 64 bits. DIF_R0 is always 0: as a destination it is refused. The others have no
 * value when a program begins; the verifier refuses a program that could read one before it is
 * written. `a` and `b` name source registers and `d` the destination, where the table
 * (dif_ops.def) says so. Fields that the table does not name must be 0.
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
#define DIF_OP(name, code, text, form) DIF_##name = (code),
#include "kernel/abi/dif_ops.def"
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
	DIF_B_EPID,    /* number of this clause at this probe: 1, 2, … within the consumer */
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
