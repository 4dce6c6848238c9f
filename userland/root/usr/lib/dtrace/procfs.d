/*
 * procfs.d - psinfo_t and lwpsinfo_t, as the guide has them: what is known of processes and threads.
 */
enum { /* pr_flag, pr_state, pr_dmodel, and what a thread waits for, in the guide's numbers */
	PR_STOPPED = 1, PR_ISTOP = 2, PR_DSTOP = 4, PR_STEP = 8, PR_ASLEEP = 0x10, PR_PCINVAL = 0x20, PR_ASLWP = 0x40,
	PR_AGENT = 0x80, PR_DETACH = 0x100, PR_DAEMON = 0x200, PR_IDLE = 0x400, PR_ISSYS = 0x1000, PR_VFORKP = 0x2000,
	PR_ORPHAN = 0x4000, PR_NOSIGCHLD = 0x8000, PR_WAITPID = 0x10000, PR_FORK = 0x100000, PR_RLC = 0x200000,
	PR_KLC = 0x400000, PR_ASYNC = 0x800000, PR_MSACCT = 0x1000000, PR_BPTADJ = 0x2000000, PR_PTRACE = 0x4000000,
	PR_MSFORK = 0x8000000, PR_MODEL_ILP32 = 1, PR_MODEL_LP64 = 2,
	SSLEEP = 1, SRUN, SZOMB, SSTOP, SIDL, SONPROC, SWAIT,
	SOBJ_NONE = 0, SOBJ_MUTEX, SOBJ_RWLOCK, SOBJ_CV, SOBJ_SEMA, SOBJ_USER, SOBJ_USER_PI, SOBJ_SHUTTLE,
	DTRACEFLT_UNKNOWN = 0, DTRACEFLT_BADADDR, DTRACEFLT_BADALIGN, DTRACEFLT_ILLOP, DTRACEFLT_DIVZERO,
	DTRACEFLT_NOSCRATCH, DTRACEFLT_KPRIV, DTRACEFLT_UPRIV, DTRACEFLT_TUPOFLOW, DTRACEFLT_BADSTACK,
	DTRACEFLT_LIBRARY = 1000
};

typedef struct psinfo {
	int pr_nlwp;       /* threads */
	pid_t pr_pid, pr_ppid, pr_pgid, pr_sid;
	uid_t pr_uid, pr_euid;
	gid_t pr_gid, pr_egid;
	uintptr_t pr_addr; /* of the kernel's struct */
	string pr_fname;   /* the program's name */
	string pr_psargs;  /* the beginning of its arguments */
	uint_t pr_arglen;  /* bytes of that, with its NUL */
	int pr_wstat;      /* a zombie's status */
	char pr_dmodel;    /* 2: pointers have 64 bits */
	dev_t pr_ttydev;   /* and what is not known, or not there, in this kernel: 0 */
	int pr_argc;
	uintptr_t pr_argv, pr_envp;
	id_t pr_taskid, pr_projid, pr_poolid, pr_zoneid, pr_contract;
	int pr_nzomb;
	size_t pr_size, pr_rssize; /* and what no translator knows */
} psinfo_t;

translator psinfo_t < struct proc *P > {
	pr_nlwp = P == NULL ? 1 : P->nthreads;
	pr_pid = P == NULL ? 0 : P->pid;
	pr_ppid = P == NULL || P->parent == NULL ? 0 : P->parent->pid;
	pr_pgid = P == NULL ? 0 : P->pgid;
	pr_sid = P == NULL ? 0 : P->sid;
	pr_uid = P == NULL ? 0 : P->ruid;
	pr_euid = P == NULL ? 0 : P->uid;
	pr_gid = P == NULL ? 0 : P->rgid;
	pr_egid = P == NULL ? 0 : P->gid;
	pr_addr = (uintptr_t)P;
	pr_fname = P == NULL ? "kernel" : stringof(P->name);
	pr_psargs = P == NULL ? "kernel" : stringof(P->psargs);
	pr_arglen = 1 + strlen(P == NULL ? "kernel" : stringof(P->psargs));
	pr_wstat = P == NULL ? 0 : P->wait_status;
	pr_dmodel = 2;
	pr_ttydev = 0;
	pr_argc = 0;
	pr_argv = 0;
	pr_envp = 0;
	pr_taskid = 0;
	pr_projid = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
	pr_contract = 0;
	pr_nzomb = 0;
};

typedef struct lwpsinfo {
	id_t pr_lwpid;
	uintptr_t pr_addr;
	uintptr_t pr_wchan; /* what it waits for */
	char pr_state;
	char pr_sname;      /* R runs, S sleeps, O on a CPU, Z has ended */
	int pr_pri;         /* a lower number runs first */
	string pr_name;
	processorid_t pr_onpro;
	string pr_clname;   /* all threads are of one scheduling class */
	processorid_t pr_bindpro; /* -1: it may run on each CPU */
	int pr_flag;        /* and what is not there in this kernel: 0 */
	int pr_bindpset;
	char pr_stype;
	short pr_syscall;
	int pr_oldpri;      /* and what no translator knows */
	char pr_cpu, pr_nice;
} lwpsinfo_t;

translator lwpsinfo_t < struct thread *T > {
	pr_lwpid = T->tid;
	pr_addr = (uintptr_t)T;
	pr_wchan = (uintptr_t)T->chan;
	pr_state = T->state == THREAD_RUNNABLE ? SRUN : T->state == THREAD_RUNNING ? SONPROC : T->state == THREAD_SLEEPING ? SSLEEP : SZOMB;
	pr_sname = T->state == THREAD_RUNNABLE ? 'R' : T->state == THREAD_RUNNING ? 'O' : T->state == THREAD_SLEEPING ? 'S' : 'Z';
	pr_pri = T->prio;
	pr_name = stringof(T->name);
	pr_onpro = T->cpu;
	pr_clname = "TS";
	pr_bindpro = -1;
	pr_flag = 0;
	pr_bindpset = -1;
	pr_stype = 0;
	pr_syscall = 0;
};

translator psinfo_t < struct thread *T > {
	pr_nlwp = xlate <psinfo_t *> (T->proc)->pr_nlwp;
	pr_pid = xlate <psinfo_t *> (T->proc)->pr_pid;
	pr_ppid = xlate <psinfo_t *> (T->proc)->pr_ppid;
	pr_pgid = xlate <psinfo_t *> (T->proc)->pr_pgid;
	pr_sid = xlate <psinfo_t *> (T->proc)->pr_sid;
	pr_uid = xlate <psinfo_t *> (T->proc)->pr_uid;
	pr_euid = xlate <psinfo_t *> (T->proc)->pr_euid;
	pr_gid = xlate <psinfo_t *> (T->proc)->pr_gid;
	pr_egid = xlate <psinfo_t *> (T->proc)->pr_egid;
	pr_addr = xlate <psinfo_t *> (T->proc)->pr_addr;
	pr_fname = xlate <psinfo_t *> (T->proc)->pr_fname;
	pr_psargs = xlate <psinfo_t *> (T->proc)->pr_psargs;
	pr_arglen = xlate <psinfo_t *> (T->proc)->pr_arglen;
	pr_wstat = xlate <psinfo_t *> (T->proc)->pr_wstat;
	pr_dmodel = xlate <psinfo_t *> (T->proc)->pr_dmodel;
	pr_ttydev = xlate <psinfo_t *> (T->proc)->pr_ttydev;
	pr_argc = xlate <psinfo_t *> (T->proc)->pr_argc;
	pr_argv = xlate <psinfo_t *> (T->proc)->pr_argv;
	pr_envp = xlate <psinfo_t *> (T->proc)->pr_envp;
	pr_taskid = xlate <psinfo_t *> (T->proc)->pr_taskid;
	pr_projid = xlate <psinfo_t *> (T->proc)->pr_projid;
	pr_poolid = xlate <psinfo_t *> (T->proc)->pr_poolid;
	pr_zoneid = xlate <psinfo_t *> (T->proc)->pr_zoneid;
	pr_contract = xlate <psinfo_t *> (T->proc)->pr_contract;
	pr_nzomb = xlate <psinfo_t *> (T->proc)->pr_nzomb;
};

translator lwpsinfo_t < struct proc *P > {
	pr_lwpid = xlate <lwpsinfo_t *> (P->thread)->pr_lwpid;
	pr_addr = xlate <lwpsinfo_t *> (P->thread)->pr_addr;
	pr_wchan = xlate <lwpsinfo_t *> (P->thread)->pr_wchan;
	pr_state = xlate <lwpsinfo_t *> (P->thread)->pr_state;
	pr_sname = xlate <lwpsinfo_t *> (P->thread)->pr_sname;
	pr_pri = xlate <lwpsinfo_t *> (P->thread)->pr_pri;
	pr_name = xlate <lwpsinfo_t *> (P->thread)->pr_name;
	pr_onpro = xlate <lwpsinfo_t *> (P->thread)->pr_onpro;
	pr_clname = xlate <lwpsinfo_t *> (P->thread)->pr_clname;
	pr_bindpro = xlate <lwpsinfo_t *> (P->thread)->pr_bindpro;
	pr_flag = xlate <lwpsinfo_t *> (P->thread)->pr_flag;
	pr_bindpset = xlate <lwpsinfo_t *> (P->thread)->pr_bindpset;
	pr_stype = xlate <lwpsinfo_t *> (P->thread)->pr_stype;
	pr_syscall = xlate <lwpsinfo_t *> (P->thread)->pr_syscall;
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curproc);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);

typedef struct cpuinfo {
	processorid_t cpu_id;
	int cpu_pset, cpu_chip, cpu_lgrp; /* CPUs are alike, and in no groups: 0 */
} cpuinfo_t;

translator cpuinfo_t < int C > {
	cpu_id = C;
	cpu_pset = 0;
	cpu_chip = 0;
	cpu_lgrp = 0;
};

translator cpuinfo_t < struct pcpu *P > {
	cpu_id = P->md.cpu;
	cpu_pset = 0;
	cpu_chip = 0;
	cpu_lgrp = 0;
};

inline cpuinfo_t *curcpu = (cpuinfo_t *)&`dtrace_cpus[cpu];
inline int chip = 0;
inline int lgrp = 0;
inline int pset = 0;
inline string zonename = "global";
