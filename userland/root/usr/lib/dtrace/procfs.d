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
} psinfo_t;

translator psinfo_t < struct proc *P > {
	pr_nlwp = 1;
	pr_pid = P == NULL ? 0 : P->pid;
	pr_ppid = P == NULL || P->parent == NULL ? 0 : P->parent->pid;
	pr_pgid = P == NULL ? 0 : P->pgid;
	pr_sid = 0;
	pr_uid = P == NULL ? 0 : P->uid;
	pr_euid = P == NULL ? 0 : P->uid;
	pr_gid = 0;
	pr_egid = 0;
	pr_addr = (uintptr_t)P;
	pr_fname = P == NULL ? "kernel" : stringof(P->name);
	pr_psargs = P == NULL ? "kernel" : stringof(P->psargs);
	pr_wstat = P == NULL ? 0 : P->wait_status;
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
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curproc);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);

typedef struct cpuinfo {
	processorid_t cpu_id;
} cpuinfo_t;

translator cpuinfo_t < int C > {
	cpu_id = C;
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> ((int)cpu);
inline string zonename = "global";
