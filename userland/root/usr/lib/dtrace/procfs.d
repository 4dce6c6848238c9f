/*
 * procfs.d - psinfo_t and lwpsinfo_t, as the guide has them: what is known of processes and threads.
 */
typedef struct psinfo {
	int pr_nlwp;       /* threads */
	pid_t pr_pid, pr_ppid, pr_pgid, pr_sid;
	uid_t pr_uid, pr_euid;
	gid_t pr_gid, pr_egid;
	uintptr_t pr_addr; /* of the kernel's struct */
	string pr_fname;   /* the program's name */
	string pr_psargs;  /* the beginning of its arguments */
	int pr_wstat;      /* a zombie's status */
	char pr_dmodel;    /* 2: pointers have 64 bits */
	dev_t pr_ttydev;   /* and what is not known, or not there, in this kernel: 0 */
	int pr_argc;
	uintptr_t pr_argv, pr_envp;
	id_t pr_taskid, pr_projid, pr_poolid, pr_zoneid, pr_contract;
	size_t pr_size, pr_rssize; /* and what no translator knows */
} psinfo_t;

translator psinfo_t < struct proc *P > {
	pr_nlwp = 1;
	pr_pid = P == NULL ? 0 : P->pid;
	pr_ppid = P == NULL || P->parent == NULL ? 0 : P->parent->pid;
	pr_pgid = P == NULL ? 0 : P->pgid;
	pr_sid = P == NULL ? 0 : P->sid;
	pr_uid = P == NULL ? 0 : P->uid;
	pr_euid = P == NULL ? 0 : P->uid;
	pr_gid = 0;
	pr_egid = 0;
	pr_addr = (uintptr_t)P;
	pr_fname = P == NULL ? "kernel" : stringof(P->name);
	pr_psargs = P == NULL ? "kernel" : stringof(P->psargs);
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
	pr_state = (char)T->state;
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

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> ((int)cpu);
inline string zonename = "global";
