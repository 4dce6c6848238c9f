/*
 * status.c - /proc/PID/stat, status and statm: numbers of a process, or of a thread. Fields that
 * this kernel does not count are 0, as proc(5) says of those that are not maintained. Locking:
 * procfs.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/time.h"
#include "kernel/dev/tty.h"
#include "kernel/fs/file.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/ptrace.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "kernel/vm/vm.h"

#define NS_PER_TICK (1000000000ul / CLK_TCK)

/* A process, or one of its threads. */
struct facts {
	uint32_t pid, tid, ppid, pgid, sid, uid, ruid, suid, fsuid, gid, rgid, sgid, fsgid, umask;
	int exit_signal; /* the signal to the parent; -1: of a thread that is not the first one */
	uint32_t fd_size;
	uint32_t groups[GROUPS_MAX];
	unsigned ngroups;
	unsigned threads, cpu;
	struct sched_params sched;
	char state; /* R S D T Z */
	char name[KTR_THREAD_NAME];
	uint64_t start_ns, switches;
	struct usage usage, children_usage;
	struct caps caps;
	uint64_t queued, queued_limit, pending, shared_pending, blocked, ignored, caught;
	uint64_t rss_limit, cpus;
	bool has_space;
	uint32_t tracer;
	uint64_t tty_nr; /* its terminal, and the group in the foreground there */
	int32_t tpgid;
	struct vm_info vm; /* addresses are 0 for who may not look */
};

static char
state_of(const struct thread *t)
{
	if (t->state == THREAD_SLEEPING)
		return t->lockname != NULL ? 'D' : 'S';
	return 'R';
}

static void
take_thread(struct facts *f, const struct thread *t)
{
	f->state = state_of(t);
	f->sched = t->sched;
	f->cpu = t->cpu;
	f->cpus = t->cpus;
	f->usage = thread_usage(t);
	f->start_ns = t->start_ns;
	f->switches = t->switches;
	strlcpy(f->name, t->name, sizeof(f->name));
}

/* A thread of the kernel is a process of its own. */
static void
take_kernel_thread(const struct thread *t, void *arg)
{
	struct facts *f = arg;

	if (t->program || t->state == THREAD_DEAD)
		return;
	take_thread(f, t);
	f->threads = 1;
	f->exit_signal = SIGCHLD;
	f->sched.nice = NICE_MIN; /* as Linux shows threads of the kernel */
}

/* The whole process: its oldest thread, and the time of all threads. */
static void
take_process(struct facts *f, const struct proc *p)
{
	if (p->thread != NULL)
		take_thread(f, p->thread);
	else
		f->state = 'Z';
	strlcpy(f->name, p->name, sizeof(f->name));
	f->start_ns = p->start_ns;
	f->usage = proc_usage(p);
}

/* Drops the space. */
static void
take_space(struct facts *f, struct vmspace *vm)
{
	f->has_space = true;
	vm_info_get(vm, &f->vm);
	vm_destroy(vm);
	if (procfs_may_look(f->pid, NULL) != 0)
		f->vm = (struct vm_info){.size = f->vm.size, .resident = f->vm.resident};
}

/* -ESRCH: it has ended. */
static int
status_take(const struct procfs_node *n, struct facts *f)
{
	const struct lwp *that;
	const struct ptrace *pt;
	bool with_tty;
	uint32_t fg;
	struct vmspace *vm = NULL;
	const struct proc *p;

	*f = (struct facts){.tpgid = -1, .pid = n->pid, .tid = n->tid != 0 ? n->tid : n->pid};
	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p == NULL) {
		spin_unlock(&proc_lock);
		thread_with(f->pid, take_kernel_thread, f);
		return f->threads != 0 ? 0 : -ESRCH;
	}
	that = lwp_find(f->tid);
	if (that != NULL && that->thread->proc != p)
		that = NULL;
	pt = that != NULL ? that->ptrace : NULL;
	f->ppid = p->parent != p ? p->parent->pid : 0;
	f->pgid = p->pgid;
	f->exit_signal = f->tid == f->pid ? p->exit_signal : -1;
	f->sid = p->sid;
	f->uid = p->uid;
	f->ruid = p->ruid;
	f->suid = p->suid;
	f->fsuid = p->fsuid;
	f->gid = p->gid;
	f->rgid = p->rgid;
	f->sgid = p->sgid;
	f->fsgid = p->fsgid;
	f->ngroups = p->ngroups;
	memcpy(f->groups, p->groups, sizeof(f->groups));
	f->umask = p->umask;
	f->fd_size = p->files != NULL ? p->files->size : 0;
	f->threads = p->nthreads > 0 ? p->nthreads : 1;
	f->children_usage = p->children_usage;
	f->queued = __atomic_load_n(&p->ui->signals, __ATOMIC_RELAXED);
	f->queued_limit = p->limits[RLIMIT_SIGPENDING].rlim_cur;
	f->caps = p->caps;
	f->shared_pending = p->pending.set;
	f->ignored = p->sig_ignored;
	f->caught = p->sig_caught;
	f->rss_limit = p->limits[RLIMIT_RSS].rlim_cur;
	if (that != NULL) {
		f->pending = that->pending.set;
		f->blocked = that->sig_blocked;
	}
	if (n->tid == 0 || p->thread == NULL)
		take_process(f, p);
	else if (that != NULL)
		take_thread(f, that->thread);
	if (p->state == PROC_STOPPED && f->state != '\0')
		f->state = 'T';
	with_tty = !p->no_tty;
	if (pt != NULL && pt->tracer != NULL) {
		f->tracer = pt->tracer->pid;
		if (pt->state == PTRACE_STOPPED)
			f->state = 't';
	}
	vm = p->vm != NULL ? vm_ref(p->vm) : NULL;
	spin_unlock(&proc_lock);
	if (vm != NULL)
		take_space(f, vm);
	if (with_tty && tty_of_session(f->sid, &f->tty_nr, &fg))
		f->tpgid = (int32_t)fg;
	return f->state != '\0' ? 0 : -ESRCH;
}

int
procfs_stat(const struct procfs_node *n, struct sbuf *out)
{
	struct facts f;
	int error = status_take(n, &f);

	if (error != 0)
		return error;
	/* By the numbers that proc(5) gives the fields; the others are 0. */
	const uint64_t field[53] = {
	    [4] = f.ppid,
	    [5] = f.pgid,
	    [6] = f.sid,
	    [7] = f.tty_nr,
	    [8] = (uint64_t)f.tpgid,
	    [10] = f.usage.faults,
	    [11] = f.children_usage.faults,
	    [12] = f.usage.disk_faults,
	    [13] = f.children_usage.disk_faults,
	    [14] = f.usage.user_ns / NS_PER_TICK,
	    [15] = f.usage.system_ns / NS_PER_TICK,
	    [16] = f.children_usage.user_ns / NS_PER_TICK,
	    [17] = f.children_usage.system_ns / NS_PER_TICK,
	    [18] = (uint64_t)(f.sched.rt_prio != 0 ? -1 - f.sched.rt_prio : 20 + f.sched.nice),
	    [19] = (uint64_t)f.sched.nice,
	    [20] = f.threads,
	    [22] = f.start_ns / NS_PER_TICK,
	    [23] = f.vm.size,
	    [24] = f.vm.resident,
	    [25] = f.rss_limit,
	    [28] = f.vm.stack,
	    [31] = f.pending & INT32_MAX,
	    [32] = f.blocked & INT32_MAX,
	    [33] = f.ignored & INT32_MAX,
	    [34] = f.caught & INT32_MAX,
	    [38] = (uint64_t)f.exit_signal,
	    [39] = f.cpu,
	    [40] = (uint64_t)f.sched.rt_prio,
	    [41] = (uint64_t)f.sched.policy,
	    [47] = f.vm.brk_start,
	    [48] = f.vm.args,
	    [49] = f.vm.args_end,
	    [50] = f.vm.args_end,
	    [51] = f.vm.env_end,
	};
	const uint64_t is_signed = 1ul << 8 | 1ul << 18 | 1ul << 19 | 1ul << 38;

	sbuf_printf(out, "%u (%s) %c ", f.tid, f.name, f.state);
	for (unsigned i = 4; i < 53; i++) { /* without sbuf_printf(): programs read this often */
		bool minus = (is_signed >> i & 1) && (int64_t)field[i] < 0;

		if (minus)
			sbuf_putc(out, '-');
		sbuf_decimal(out, minus ? -field[i] : field[i], i < 52 ? ' ' : '\n');
	}
	return 0;
}

static const char *
state_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "disk sleep";
	case 'T':
		return "stopped";
	case 't':
		return "tracing stop";
	default:
		return "zombie";
	}
}

int
procfs_status(const struct procfs_node *n, struct sbuf *out)
{
	struct facts f;
	int error = status_take(n, &f);

	if (error != 0)
		return error;
	sbuf_puts(out, "Name:\t");
	for (const char *c = f.name; *c != '\0'; c++) /* a name adds no lines */
		if (*c == '\n' || *c == '\\')
			sbuf_puts(out, *c == '\n' ? "\\n" : "\\\\");
		else
			sbuf_putc(out, *c);
	sbuf_printf(out, "\nUmask:\t%04o\nState:\t%c (%s)\nTgid:\t%u\nNgid:\t0\nPid:\t%u\n",
		    f.umask, f.state, state_word(f.state), f.pid, f.tid);
	sbuf_printf(out, "PPid:\t%u\nTracerPid:\t%u\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n",
		    f.ppid, f.tracer, f.ruid, f.uid, f.suid, f.fsuid, f.rgid, f.gid, f.sgid,
		    f.fsgid);
	sbuf_printf(out, "FDSize:\t%u\nGroups:\t", f.fd_size);
	for (unsigned i = 0; i < f.ngroups; i++)
		sbuf_printf(out, "%u ", f.groups[i]);
	sbuf_puts(out, f.ngroups > 0 ? "\n" : " \n");
	if (f.has_space)
		sbuf_printf(
		    out,
		    "VmSize:\t%8lu kB\nVmLck:\t%8lu kB\nVmPin:\t%8lu kB\nVmHWM:\t%8lu kB\nVmRSS:\t%8lu kB\n",
		    f.vm.size / 1024, f.vm.locked / 1024, 0ul, f.vm.peak * PAGE_SIZE / 1024,
		    f.vm.resident * PAGE_SIZE / 1024);
	sbuf_printf(
	    out,
	    "Threads:\t%u\nSigQ:\t%lu/%lu\nSigPnd:\t%016lx\nShdPnd:\t%016lx\nSigBlk:\t%016lx\n",
	    f.threads, f.queued, f.queued_limit, f.pending, f.shared_pending, f.blocked);
	sbuf_printf(out, "SigIgn:\t%016lx\nSigCgt:\t%016lx\n", f.ignored, f.caught);
	sbuf_printf(out, "CapInh:\t%016lx\nCapPrm:\t%016lx\nCapEff:\t%016lx\nCapBnd:\t%016lx\n",
		    f.caps.inheritable, f.caps.permitted, f.caps.effective, f.caps.bounding);
	sbuf_printf(out, "CapAmb:\t%016lx\nNoNewPrivs:\t%d\n", 0ul, f.caps.no_new);
	sbuf_printf(out, "Cpus_allowed:\t%lx\nCpus_allowed_list:\t",
		    ncpus < 64 ? f.cpus & ((1ul << ncpus) - 1) : f.cpus);
	sbuf_bits(out, f.cpus, ncpus);
	sbuf_printf(out, "\nvoluntary_ctxt_switches:\t%lu\nnonvoluntary_ctxt_switches:\t%lu\n",
		    f.usage.waits, f.usage.interruptions);
	return 0;
}

int
procfs_statm(const struct procfs_node *n, struct sbuf *out)
{
	struct facts f;
	int error = status_take(n, &f);

	/* size resident shared text lib data dt, in pages */
	if (error == 0)
		sbuf_printf(out, "%lu %lu 0 0 0 0 0\n", f.vm.size / PAGE_SIZE, f.vm.resident);
	return error;
}
