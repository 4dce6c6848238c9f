/*
 * ktrace.h - tracing what a process does: ktrace(2), utrace(2), and the file that they fill.
 * Names, numbers of types and semantics are FreeBSD's (sys/ktrace.h).
 *
 * ktrace(path, ops, facs, pid)
 *   Sets or clears which records of a process go to the file, which must exist, be a regular file,
 *   and be writable for the caller. What is there already stays: records are appended.
 *     KTROP_SET        records of the kinds `facs` are written to path; kinds that were set stay
 *     KTROP_CLEAR      records of the kinds `facs` are not written any more; path is not used
 *     KTROP_CLEARFILE  no process is traced to path any more; pid and facs are not used
 *   With KTRFLAG_DESCEND: also for all present descendants of the process. With KTRFAC_INHERIT in
 *   `facs`: children made later are traced likewise. pid > 0 names a process, pid < 0 the process
 *   group -pid. Who has CAP_SYS_PTRACE traces all processes, and others those of their user that
 *   have not changed it, nor got more rights, since they executed a program. What was set with
 *   CAP_SYS_PTRACE is changed with it only. Returns after all records of the past are in the file.
 *   Errors: ESRCH no such process, EPERM no process may be traced, EACCES the file is not the
 *   caller's to write or is not a regular file, EINVAL bad ops or facs, ENOMEM, EAGAIN too many
 *   tracers of other kinds, EBUSY the machine is about to end, and those of opening the file.
 *
 *   Tracing to a file ends, with a line on the console, when a record cannot be written, or when
 *   the user who began it may not write the file any more.
 *
 * utrace(address, length)
 *   Writes up to KTR_USER_MAXLEN bytes as a record KTR_USER, if the process is traced for it.
 *   Errors, if it is: EINVAL it is longer, EFAULT.
 *
 * The file is a sequence of records: a struct ktr_header and then ktr_len bytes, which the type
 * describes. There is no padding between records. All numbers are little-endian. The records of a
 * file are in the order of their times, whatever process they are of, unless the clock was set. A
 * reader skips types that it does not know, and trusts no length.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KTROP_SET       0
#define KTROP_CLEAR     1
#define KTROP_CLEARFILE 2
#define KTROP(ops)      ((ops)&3)
#define KTRFLAG_DESCEND 4

#define KTR_COMM_SIZE   20
#define KTR_USER_MAXLEN 2048
#define KTR_VERSION1    1u

/* Before each record. */
struct ktr_header {
	uint32_t ktr_len;     /* bytes that follow the header, at most KTR_LEN_MAX */
	uint16_t ktr_type;    /* KTR_…; KTR_DROP is a bit of its own */
	uint16_t ktr_version; /* KTR_VERSION1 */
	uint16_t ktr_machine; /* of the kernel: ELF's e_machine. System calls and structs are its */
	uint16_t ktr_cpu;
	uint32_t ktr_dropped; /* with KTR_DROP: records of this process lost before this one */
	uint32_t ktr_pid;
	uint32_t ktr_tid;
	char ktr_comm[KTR_COMM_SIZE]; /* name of the thread, ended by a NUL */
	uint32_t ktr_spare;           /* 0 */
	int64_t ktr_sec;              /* since 1970, UTC; or since the boot without a clock */
	int64_t ktr_nsec;
};

_Static_assert(sizeof(struct ktr_header) == 64, "the file's layout");
_Static_assert(offsetof(struct ktr_header, ktr_comm) == 24 &&
		   offsetof(struct ktr_header, ktr_sec) == 48,
	       "the file's layout");

#define KTR_LEN_MAX (1u << 20)
#define KTR_DROP    0x8000u /* in ktr_type: records were lost before this one */
#define KTR_TYPE    0x3fffu /* the rest of it */

/* Types of records, and what follows the header. */
#define KTR_SYSCALL 1 /* struct ktr_syscall: a system call begins */
#define KTR_SYSRET  2 /* struct ktr_sysret: it ends */
#define KTR_NAMEI   3 /* a path, without NUL, that the system call looks up */
#define KTR_GENIO   4 /* struct ktr_genio: what was read or written */
#define KTR_PSIG    5 /* struct ktr_psig: a signal takes effect */
#define KTR_CSW     6 /* struct ktr_csw: the thread loses the CPU, or has it again */
#define KTR_USER    7 /* what the program gave to utrace() */
/*
 * A struct that went between program and kernel: its name, a NUL, its bytes as the machine lays
 * them out. "stat", "timespec", "rlimit".
 */
#define KTR_STRUCT   8
#define KTR_SYSCTL   9  /* the name of a sysctl, without NUL */
#define KTR_PROCCTOR 10 /* struct ktr_proc_ctor: tracing of the process begins */
#define KTR_PROCDTOR 11 /* struct ktr_proc_dtor: it ends */
#define KTR_FAULT    13 /* struct ktr_fault: a page fault */
#define KTR_FAULTEND 14 /* struct ktr_faultend: the fault was served, or not */

struct ktr_syscall {
	uint32_t ktr_code; /* number of the system call; too large a one as 2^32-1 */
	uint32_t ktr_narg; /* how many arguments follow */
	uint64_t ktr_args[];
};

struct ktr_sysret {
	uint32_t ktr_code;
	int32_t ktr_error; /* errno, 0: none */
	int64_t ktr_retval;
};

#define KTR_READ  0
#define KTR_WRITE 1

struct ktr_genio {
	int32_t ktr_fd;
	int32_t ktr_rw; /* KTR_READ or KTR_WRITE */
	uint64_t
	    ktr_bytes; /* moved. As many of the first follow as kern.ktrace.genio_size allows */
};

struct ktr_psig {
	int32_t ktr_signo;
	int32_t ktr_code;    /* who sent it: SI_… of signal.h */
	uint64_t ktr_action; /* 0: SIG_DFL */
	uint64_t ktr_mask;   /* signals that are blocked: bit n-1 for signal n */
};

#define KTR_WMESG_SIZE 16

struct ktr_csw {
	uint32_t ktr_out;               /* 1: loses the CPU; 0: has it again */
	uint32_t ktr_user;              /* 1: while the program itself ran, not the kernel for it */
	char ktr_wmesg[KTR_WMESG_SIZE]; /* what it waits for, with NULs after it; "": for the CPU */
};

struct ktr_proc_ctor {
	uint32_t ktr_parent; /* the parent's number */
	uint32_t ktr_facs;   /* KTRFAC_… */
};

struct ktr_proc_dtor {
	uint32_t ktr_exited; /* 1: the process ended; 0: only its tracing */
	uint32_t ktr_status; /* as wait4 tells */
};

#define KTR_ACCESS_READ  1
#define KTR_ACCESS_WRITE 2
#define KTR_ACCESS_EXEC  4

struct ktr_fault {
	uint64_t ktr_vaddr;
	uint32_t ktr_access; /* KTR_ACCESS_… */
	uint32_t ktr_spare;
};

struct ktr_faultend {
	uint64_t ktr_vaddr;
	uint32_t ktr_served; /* 1 yes, 0 no */
	uint32_t ktr_spare;
};

/* Which kinds of records a process is traced for. */
#define KTRFAC_MASK     0x00ffffffu
#define KTRFAC_SYSCALL  (1u << KTR_SYSCALL)
#define KTRFAC_SYSRET   (1u << KTR_SYSRET)
#define KTRFAC_NAMEI    (1u << KTR_NAMEI)
#define KTRFAC_GENIO    (1u << KTR_GENIO)
#define KTRFAC_PSIG     (1u << KTR_PSIG)
#define KTRFAC_CSW      (1u << KTR_CSW)
#define KTRFAC_USER     (1u << KTR_USER)
#define KTRFAC_STRUCT   (1u << KTR_STRUCT)
#define KTRFAC_SYSCTL   (1u << KTR_SYSCTL)
#define KTRFAC_PROCCTOR (1u << KTR_PROCCTOR)
#define KTRFAC_PROCDTOR (1u << KTR_PROCDTOR)
#define KTRFAC_FAULT    (1u << KTR_FAULT)
#define KTRFAC_FAULTEND (1u << KTR_FAULTEND)
#define KTRFAC_ROOT     0x80000000u /* set with CAP_SYS_PTRACE */
#define KTRFAC_INHERIT  0x40000000u /* children made later are traced, too */
