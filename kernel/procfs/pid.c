/*
 * pid.c - /proc/PID: which processes there are, their threads, and what else each has.
 * Locking: procfs.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"

#define PID_MAX 0x3fffffff

/* ---- who is there ---- */

/* Is it a thread of the kernel, but none of the idle ones? */
static bool
is_kernel_thread(const struct thread *t)
{
	return !t->program && t->state != THREAD_DEAD && t->prio != PRIO_IDLE;
}

static void
look_for_kernel(const struct thread *t, void *found)
{
	*(bool *)found = is_kernel_thread(t);
}

bool
procfs_user(uint32_t pid, uint32_t *uid)
{
	const struct proc *p;
	bool kernel = false;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	/* As ktrace: until it executes a program. It may look at itself, as in Linux. */
	*uid = p != NULL && (!p->undumpable || p == curproc()) ? p->uid : 0;
	spin_unlock(&proc_lock);
	return p != NULL || (thread_with(pid, look_for_kernel, &kernel) && kernel);
}

/* The lowest numbers of processes, or threads, above `from`, in order. */
struct batch {
	uint32_t from;
	unsigned n;
	uint32_t pid[64];
};

#define BATCH (sizeof(((struct batch *)0)->pid) / sizeof(uint32_t))

static void
pid_batch_add(struct batch *b, uint32_t pid)
{
	unsigned i = b->n;

	if (pid <= b->from || (b->n == BATCH && pid > b->pid[BATCH - 1]))
		return;
	if (b->n < BATCH)
		b->n++;
	else
		i--;
	for (; i > 0 && b->pid[i - 1] > pid; i--)
		b->pid[i] = b->pid[i - 1];
	b->pid[i] = pid;
}

static int
batch_add_thread(struct thread *t, void *b)
{
	if (is_kernel_thread(t))
		pid_batch_add(b, t->tid);
	return 0;
}

bool
procfs_pid_find(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	const struct proc *p;

	child->file = &procfs_pid;
	if (!procfs_number(name, PID_MAX, &child->pid) || child->pid == 0)
		return false;
	spin_lock(&proc_lock);
	p = proc_find(child->pid);
	if (p == NULL && (p = proc_find_any(child->pid)) != NULL) { /* a thread; it is not listed */
		child->tid = child->pid;
		child->pid = p->pid;
	}
	child->start_ns = p != NULL ? p->start_ns : 0;
	spin_unlock(&proc_lock);
	return true;
}

/* Processes, and threads of the kernel. */
static void
batch_add_pids(struct batch *b, uint32_t pid)
{
	thread_each(batch_add_thread, b);
	spin_lock(&proc_lock);
	for_each_proc (p)
		pid_batch_add(b, p->pid);
	spin_unlock(&proc_lock);
}

/* Lists the numbers that `fill` adds, those after b->from, a batch at a time. */
static void
batch_list(struct batch *b, void (*fill)(struct batch *b, uint32_t pid), uint32_t pid,
	   uint32_t mode, procfs_add_fn *add, void *arg)
{
	char name[16];

	do {
		b->n = 0;
		fill(b, pid);
		for (unsigned i = 0; i < b->n; i++) {
			b->from = b->pid[i];
			snprintf(name, sizeof(name), "%u", b->from);
			if (!add(arg, name, mode, b->from))
				return;
		}
	} while (b->n == BATCH);
}

void
procfs_pid_list(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg)
{
	struct batch b = {.from = (uint32_t)from};

	batch_list(&b, batch_add_pids, 0, procfs_pid.mode, add, arg);
}

/* ---- task: the threads of a process ---- */

static const struct procfs_file procfs_task;

/* Lists threads of a process. A zombie, and a thread of the kernel, has one. */
static void
batch_add_tids(struct batch *b, uint32_t pid)
{
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	if (p == NULL || p->thread == NULL)
		pid_batch_add(b, pid);
	else
		for_each_lwp(l, p) pid_batch_add(b, l->thread->tid);
	spin_unlock(&proc_lock);
}

static bool
find_task(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	const struct proc *p;
	const struct lwp *l;
	bool found;

	child->file = &procfs_task;
	if (!procfs_number(name, PID_MAX, &child->tid) || child->tid == 0)
		return false;
	spin_lock(&proc_lock);
	p = proc_find(dir->pid);
	l = lwp_find(child->tid);
	found = p == NULL || p->thread == NULL ? child->tid == dir->pid
					       : l != NULL && l->thread->proc == p;
	spin_unlock(&proc_lock);
	return found;
}

static void
list_tasks(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg)
{
	struct batch b = {.from = (uint32_t)from};

	batch_list(&b, batch_add_tids, dir->pid, procfs_task.mode, add, arg);
}

/* ---- other words ---- */

/* A thread's name, and where it sleeps. */
struct words {
	uint32_t tid;
	char name[KTR_THREAD_NAME];
	const char *wmesg;
};

static void
take_words(const struct thread *t, void *arg)
{
	struct words *w = arg;

	strlcpy(w->name, t->name, sizeof(w->name));
	w->wmesg = t->state == THREAD_SLEEPING ? t->wmesg : NULL;
}

/* Takes the words of the thread, or of the process's first one. False: it has ended. */
static bool
words_of(const struct procfs_node *n, struct words *w)
{
	const struct proc *p;

	*w = (struct words){.tid = n->tid != 0 ? n->tid : n->pid};
	if (thread_with(w->tid, take_words, w))
		return true;
	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p != NULL)
		strlcpy(w->name, p->name, sizeof(w->name));
	spin_unlock(&proc_lock);
	return p != NULL;
}

static int
comm_show(const struct procfs_node *n, struct sbuf *out)
{
	struct words w;

	if (!words_of(n, &w))
		return -ESRCH;
	sbuf_printf(out, "%s\n", w.name);
	return 0;
}

/* As on Linux, a process names its own threads only. */
static int
comm_store(const struct procfs_node *n, char *text)
{
	struct proc *p = curproc();
	uint32_t tid = n->tid != 0 ? n->tid : n->pid;
	int error = p != NULL && p->pid == n->pid ? -ESRCH : -EINVAL;

	if (error == -EINVAL)
		return error;
	text[strlen(text) < 15 ? strlen(text) : 15] = '\0';
	spin_lock(&proc_lock);
	for_each_lwp(l, p)
	{
		if (l->thread->tid != tid)
			continue;
		proc_rename(l, text);
		error = 0;
	}
	spin_unlock(&proc_lock);
	return error;
}

static int
wchan_show(const struct procfs_node *n, struct sbuf *out)
{
	struct words w;

	if (!words_of(n, &w))
		return -ESRCH;
	sbuf_puts(out, w.wmesg != NULL && procfs_may_look(n->pid, NULL) == 0 ? w.wmesg : "0");
	return 0;
}

static int
limits_show(const struct procfs_node *n, struct sbuf *out)
{
	static const struct {
		const char *name, *unit;
	} rows[RLIMIT_NLIMITS] = {
	    {"Max cpu time", "seconds"},     {"Max file size", "bytes"},
	    {"Max data size", "bytes"},      {"Max stack size", "bytes"},
	    {"Max core file size", "bytes"}, {"Max resident set", "bytes"},
	    {"Max processes", "processes"},  {"Max open files", "files"},
	    {"Max locked memory", "bytes"},  {"Max address space", "bytes"},
	    {"Max file locks", "locks"},     {"Max pending signals", "signals"},
	    {"Max msgqueue size", "bytes"},  {"Max nice priority", ""},
	    {"Max realtime priority", ""},   {"Max realtime timeout", "us"},
	};
	struct rlimit limits[RLIMIT_NLIMITS];
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p != NULL)
		memcpy(limits, p->limits, sizeof(limits));
	spin_unlock(&proc_lock);
	if (p == NULL)
		return -ESRCH;
	sbuf_printf(out, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
	for (unsigned i = 0; i < RLIMIT_NLIMITS; i++) {
		const uint64_t value[] = {limits[i].rlim_cur, limits[i].rlim_max};

		sbuf_printf(out, "%-25s ", rows[i].name);
		for (unsigned k = 0; k < 2; k++) {
			if (value[k] == RLIM_INFINITY)
				sbuf_printf(out, "%-20s ", "unlimited");
			else
				sbuf_printf(out, "%-20lu ", value[k]);
		}
		sbuf_printf(out, "%-10s\n", rows[i].unit);
	}
	return 0;
}

/* There is one namespace of each kind, with the number that Linux gives its first one. */
static int
namespace_link(struct procfs_node *n)
{
	static const struct {
		const char *name, *type;
		unsigned number;
	} spaces[] = {
	    {"ipc", "ipc", 4026531839u},
	    {"uts", "uts", 4026531838u},
	    {"user", "user", 4026531837u},
	    {"pid", "pid", 4026531836u},
	    {"pid_for_children", "pid", 4026531836u},
	    {"cgroup", "cgroup", 4026531835u},
	    {"time", "time", 4026531834u},
	    {"time_for_children", "time", 4026531834u},
	    {"mnt", "mnt", 4026531841u},
	    {"net", "net", 4026531840u},
	};
	int error = procfs_may_look(n->pid, NULL);

	for (size_t i = 0; error == 0 && i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (strcmp(spaces[i].name, n->file->name) == 0)
			n->text = procfs_text(n, "%s:[%u]", spaces[i].type, spaces[i].number);
	return error;
}

#define NAMESPACE(name_)                                                      \
	{                                                                     \
		.name = name_, .mode = S_IFLNK | 0777, .link = namespace_link \
	}

static const struct procfs_file ns_files[] = {
    NAMESPACE("cgroup"), NAMESPACE("ipc"),
    NAMESPACE("mnt"),    NAMESPACE("net"),
    NAMESPACE("pid"),    NAMESPACE("pid_for_children"),
    NAMESPACE("time"),   NAMESPACE("time_for_children"),
    NAMESPACE("user"),   NAMESPACE("uts"),
};

static const struct procfs_file task_files[] = {
    {.name = "stat", .mode = S_IFREG | 0444, .show = procfs_stat},
    {.name = "status", .mode = S_IFREG | 0444, .show = procfs_status},
    {.name = "comm", .mode = S_IFREG | 0644, .show = comm_show, .store = comm_store},
    {.name = "mem", .mode = S_IFREG | 0600, .private = true, .ops = &procfs_mem_ops},
    {.name = "maps", .mode = S_IFREG | 0444, .private = true, .show = procfs_maps},
    {.name = "wchan", .mode = S_IFREG | 0444, .show = wchan_show},
};

static const struct procfs_file procfs_task = {.mode = S_IFDIR | 0555, PROCFS_DIR(task_files)};

static const struct procfs_file pid_files[] = {
    {.name = "stat", .mode = S_IFREG | 0444, .show = procfs_stat},
    {.name = "status", .mode = S_IFREG | 0444, .show = procfs_status},
    {.name = "statm", .mode = S_IFREG | 0444, .show = procfs_statm},
    {.name = "cmdline", .mode = S_IFREG | 0444, .show = procfs_strings},
    {.name = "comm", .mode = S_IFREG | 0644, .show = comm_show, .store = comm_store},
    {.name = "auxv", .mode = S_IFREG | 0400, .private = true, .show = procfs_auxv},
    {.name = "environ", .mode = S_IFREG | 0400, .private = true, .show = procfs_strings},
    {.name = "mem", .mode = S_IFREG | 0600, .private = true, .ops = &procfs_mem_ops},
    {.name = "maps", .mode = S_IFREG | 0444, .private = true, .show = procfs_maps},
    {.name = "smaps", .mode = S_IFREG | 0444, .private = true, .show = procfs_maps},
    {.name = "limits", .mode = S_IFREG | 0444, .show = limits_show},
    {.name = "wchan", .mode = S_IFREG | 0444, .show = wchan_show},
    {.name = "mountinfo", .mode = S_IFREG | 0444, .show = procfs_mountinfo},
    {.name = "mounts", .mode = S_IFREG | 0444, .show = procfs_mounts},
    {.name = "cwd", .mode = S_IFLNK | 0777, .link = procfs_place_link},
    {.name = "exe", .mode = S_IFLNK | 0777, .link = procfs_place_link},
    {.name = "root", .mode = S_IFLNK | 0777, .link = procfs_place_link},
    {.name = "fd", .mode = S_IFDIR | 0500, .find = procfs_fd_find, .list = procfs_fd_list},
    {.name = "fdinfo", .mode = S_IFDIR | 0500, .find = procfs_fd_find, .list = procfs_fd_list},
    {.name = "ns", .mode = S_IFDIR | 0511, PROCFS_DIR(ns_files)},
    {.name = "task", .mode = S_IFDIR | 0555, .find = find_task, .list = list_tasks},
};

const struct procfs_file procfs_pid = {.mode = S_IFDIR | 0555, PROCFS_DIR(pid_files)};
