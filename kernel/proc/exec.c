/*
 * exec.c - execve: ELF64 executables (System V ABI, ELF-64 Object File Format 1.5). If one names an
 * interpreter (the dynamic linker), both are loaded, and the interpreter starts it.
 *
 * Anyone can supply the file, so every field is checked before use. The new address space is
 * complete before the old one is freed: after an error the caller continues unchanged. But if its
 * other threads were ended for this already, the caller ends, too, as on Linux.
 */
#include <abi_md.h>

#include "arch/machine.h"
#include "arch/mmu.h"
#include "arch/signal.h"
#include "arch/trap.h"
#include "kernel/abi/auxvec.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/personality.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/time.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/random.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/load.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/proc/vdso.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"
#include "ktr/sdt.h"

/* Of strings and the pointers to them, on the stack: as Linux's `_STK_LIM / 4 * 3` and ARG_MAX. */
#define ARG_BYTES_MAX (VM_STACK_SIZE / 4 * 3)
#define ARG_BYTES_MIN 131072u
#define SCRIPTS_MAX   5   /* the longest chain of scripts: Linux's limit */
#define HEAD_SIZE     256 /* bytes of a file that are looked at for #!, as on Linux */

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE_DATA(proc, , , exec, "exec", ": path %s");
SDT_PROBE_DEFINE_DATA(proc, , , exec_success, "exec-success", ": path %s");
SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT(sched, , , sched_process_exec, "sched_process_exec",
		      ": filename=%s pid=%u old_pid=%u", 3, "char *", "pid_t", "pid_t");
SDT_PROBE_DEFINE_TEXT(proc, , , exec_failure, "exec-failure", ": error %d", 1, "int");

struct args {               /* copies of the argument and environment strings */
	struct uidinfo *ui; /* to whom it is counted */
	unsigned argc, envc;
	size_t used, args_used; /* bytes of all strings, and of those for arguments */
	size_t room;            /* bytes at strings */
	size_t limit;           /* of strings and pointers: a quarter of the stack */
	char *strings;          /* one after the other, each with its NUL */
};

/* Doubles the room for the strings. */
static int
args_grow(struct args *s)
{
	char *more;

	if (s->room >= s->limit)
		return -E2BIG;
	more = uidinfo_alloc(s->ui, s->room * 2);
	if (more == NULL)
		return -ENOMEM;
	memcpy(more, s->strings, s->used);
	uidinfo_free(s->ui, s->strings);
	s->strings = more;
	s->room *= 2;
	return 0;
}

/* Counts a string of n bytes that is in place. */
static int
args_count(struct args *s, unsigned *count, size_t n)
{
	s->used += n;
	(*count)++;
	if (count == &s->argc)
		s->args_used = s->used;
	return s->used + (s->argc + s->envc) * sizeof(char *) > s->limit ? -E2BIG : 0;
}

/* Adds a string. count: &argc or &envc. */
static int
args_add(struct args *s, unsigned *count, const char *text)
{
	size_t n = strlen(text) + 1;

	while (n > s->room - s->used) {
		int r = args_grow(s);

		if (r != 0)
			return r;
	}
	memcpy(s->strings + s->used, text, n);
	return args_count(s, count, n);
}

/* Copies a NULL-terminated vector of user strings. */
static int
args_copy_in(struct args *s, uint64_t vector, unsigned *count)
{
	for (; vector != 0; vector += 8) {
		uint64_t str;
		int n;

		if (copy_in(&str, vector, sizeof(str)) != 0)
			return -EFAULT;
		if (str == 0)
			return 0;
		while (s->used == s->room ||
		       (n = copy_in_str(s->strings + s->used, str, s->room - s->used)) ==
			   -ENAMETOOLONG) {
			int r = args_grow(s);

			if (r != 0)
				return r;
		}
		n = n < 0 ? n : args_count(s, count, (size_t)n + 1);
		if (n != 0)
			return n;
	}
	return 0;
}

/* The bytes of all arguments, without the last one's NUL. */
static size_t
args_length(const struct args *s)
{
	return s->args_used > 0 ? s->args_used - 1 : 0;
}

#define RANDOM_BYTES 16

/* Builds the initial stack of the System V ABI: argc, argv, NULL, envp, NULL, the auxiliary vector;
 * and above these the path, 16 random bytes, and the strings. *sp becomes its address. */
static int
build_stack(struct vmspace *vm, const char *path, const struct args *s,
	    const struct program *program, const struct exec_ids *ids, uint64_t *sp)
{
	const struct elf_image *img = &program->img;
	const struct proc *p = curproc();
	const char *string = s->strings;
	uint64_t path_at = VM_STACK_TOP - (strlen(path) + 1);
	uint64_t random_at = (path_at - RANDOM_BYTES) & ~15ul;
	uint64_t strings = (random_at - s->used) & ~15ul;
	const uint64_t aux[] = {AT_PHDR,         img->phdr,
				AT_PHENT,        sizeof(struct elf64_phdr),
				AT_PHNUM,        img->phnum,
				AT_PAGESZ,       PAGE_SIZE,
				AT_BASE,         program->interp_base,
				AT_FLAGS,        0,
				AT_ENTRY,        img->entry,
				AT_UID,          p->ruid,
				AT_EUID,         ids->uid,
				AT_GID,          p->rgid,
				AT_EGID,         ids->gid,
				AT_HWCAP,        arch_hwcap(),
				AT_CLKTCK,       CLK_TCK,
				AT_SECURE,       ids->secure,
				AT_RANDOM,       random_at,
				AT_EXECFN,       path_at,
				AT_SYSINFO_EHDR, VDSO_AT,
				AT_MINSIGSTKSZ,  ARCH_MINSIGSTKSZ,
				AT_NULL,         0};
	uint64_t words = 1 + s->argc + 1 + s->envc + 1 + sizeof(aux) / 8;
	uint64_t at = (strings - words * 8) & ~15ul, n = 0;
	uint8_t random[RANDOM_BYTES];
	uint64_t *w = uidinfo_alloc(s->ui, words * 8);
	int r;

	if (w == NULL)
		return -ENOMEM;
	w[n++] = s->argc;
	for (unsigned i = 0; i < s->argc; i++, string += strlen(string) + 1)
		w[n++] = strings + (size_t)(string - s->strings);
	w[n++] = 0;
	for (unsigned i = 0; i < s->envc; i++, string += strlen(string) + 1)
		w[n++] = strings + (size_t)(string - s->strings);
	w[n++] = 0;
	memcpy(&w[n], aux, sizeof(aux));
	random_bytes(random, sizeof(random));
	r = vm_write(vm, random_at, random, sizeof(random));
	if (r == 0)
		r = vm_write(vm, path_at, path, strlen(path) + 1);
	if (r == 0)
		r = vm_write(vm, strings, s->strings, s->used);
	if (r == 0)
		r = vm_write(vm, at, w, words * 8);
	uidinfo_free(s->ui, w);
	vm_set_args(vm, strings, strings + s->args_used, strings + s->used, at,
		    at + words * 8 - sizeof(aux));
	*sp = at;
	return r;
}

void
proc_exe_drop(struct vnode *exe)
{
	if (exe != NULL)
		vnode_execute_end(exe);
	vnode_unref(exe);
}

/*
 * The current process becomes the new image, of the file exe, which proc_exe_drop() will drop. In
 * one section of proc_lock it gets the new space and the new ids, so that nobody who may look at
 * the old program looks at the new one.
 */
static void
exec_become(struct proc *p, struct vmspace *vm, const char *name, struct vnode *exe,
	    const struct exec_ids *ids)
{
	struct vnode *old_exe = p->exe;
	struct vmspace *old = p->vm;
	const char *slash = strrchr(name, '/');

	futex_thread_exit(curlwp()); /* others may share the memory in which the thread has locks */
	proc_become_first();
	spin_lock(&proc_lock);
	exec_ids_take(ids);
	proc_set_space(p, vm);
	p->exe = exe;
	curthread()->tls = 0;
	p->membarrier = false;
	p->personality &= ~(ids->secure ? PER_CLEAR_ON_SETID : READ_IMPLIES_EXEC);
	p->executed = true;
	p->exit_signal = SIGCHLD;
	p->execs++;
	curlwp()->clear_tid = curlwp()->robust = 0;
	curlwp()->step.copy = 0; /* ends a step of the old program, which perhaps a jump has left */
	proc_signals_exec(p);
	thread_fpu_end();
	arch_context_prepare((uintptr_t)curthread()->kstack + KSTACK_SIZE, 0);
	spin_unlock(&proc_lock);
	proc_exe_drop(old_exe);
	if (old != NULL)
		vm_destroy(old);
	lwp_calls_forget(curlwp());
	proc_vfork_done(p);
	proc_timers_end(p);
	filetable_close_on_exec(p->files);
	spin_lock(&proc_lock);
	proc_signals_drop_timers(p);
	proc_rename(curlwp(), slash != NULL ? slash + 1 : name);
	spin_unlock(&proc_lock);
}

static void
set_program(struct proc *p, const char *path)
{
	char whole[PROC_PROGRAM];
	size_t n = 0;

	if (path[0] != '/' && vnode_path(proc_cwd(), whole, sizeof(whole), NULL) > 0) {
		n = strlen(whole);
		if (n > 1 && n + 1 < sizeof(whole))
			whole[n++] = '/';
	}
	strlcpy(whole + n, path, sizeof(whole) - n);
	spin_lock(&proc_lock);
	strlcpy(p->program, whole, sizeof(p->program));
	spin_unlock(&proc_lock);
}

/* The arguments as one text, with blanks between them: for the log, after their last use. */
static const char *
args_join(struct args *s)
{
	for (size_t i = 0; i < args_length(s); i++)
		if (s->strings[i] == '\0')
			s->strings[i] = ' ';
	return s->strings;
}

static struct args *
args_create(void)
{
	struct uidinfo *ui = curproc()->ui; /* another thread may change it meanwhile */
	struct args *s = uidinfo_alloc(ui, sizeof(*s));
	uint64_t limit = proc_limit(RLIMIT_STACK) / 4;

	if (s == NULL)
		return NULL;
	s->ui = ui;
	s->limit = limit < ARG_BYTES_MIN   ? ARG_BYTES_MIN
		   : limit > ARG_BYTES_MAX ? ARG_BYTES_MAX
					   : limit;
	s->room = PAGE_SIZE;
	s->strings = uidinfo_alloc(ui, s->room);
	if (s->strings == NULL) {
		uidinfo_free(ui, s);
		return NULL;
	}
	return s;
}

static void
args_destroy(struct args *s)
{
	uidinfo_free(s->ui, s->strings);
	uidinfo_free(s->ui, s);
}

/* Returns the next word of a line, which ends at one of the blanks or at the line's end. *line
 * moves after it. Blanks before the word, and at the line's end, do not belong to it. */
static char *
take_word(char **line, const char *blanks)
{
	char *word = *line, *end;

	while (*word == ' ' || *word == '\t')
		word++;
	for (end = word; *end != '\0' && *end != '\n' && strchr(blanks, *end) == NULL;)
		end++;
	*line = end + (*end == ' ' || *end == '\t');
	for (*end = '\0'; end > word && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r');)
		*--end = '\0';
	return word;
}

/* Adds the strings of s after its first argument. */
static int
args_add_rest(struct args *all, const struct args *s)
{
	const char *at = s->strings + (s->argc > 0 ? strlen(s->strings) + 1 : 0);
	int r = 0;

	for (unsigned i = 1; r == 0 && i < s->argc; i++, at += strlen(at) + 1)
		r = args_add(all, &all->argc, at);
	for (unsigned i = 0; r == 0 && i < s->envc; i++, at += strlen(at) + 1)
		r = args_add(all, &all->envc, at);
	return r;
}

/* What is executed, and by which way it was found. */
struct target {
	const char *path;
	const char *name; /* what was asked for: the path of the first script, or of the program */
	unsigned scripts; /* that led to it */
	struct vnode *vn; /* what is at `path`, which leads there only while it runs; NULL: look */
	bool unreachable; /* not even then: an interpreter could not open it */
};

#define FD_NAME 24 /* bytes of "/dev/fd/N/" */

static int do_execveat_common(struct proc *p, const struct target *to, struct args *s,
			      struct arch_trapframe *tf);

/* Does the first word of a line go on to `end`, where the line may have been cut? */
static bool
word_is_cut(const char *line, const char *end)
{
	while (*line == ' ' || *line == '\t')
		line++;
	while (strchr(" \t\n", *line) == NULL)
		line++;
	return line == end;
}

/*
 * Executes a file that begins with #!. The rest of its first line is the path of the program, and
 * at most one argument; the file's path and the other arguments follow that. head: the first
 * HEAD_SIZE bytes of the file, or all of it, and a NUL. If the path does not end within these, it
 * is not executed; an argument is cut.
 */
static int
exec_script(struct proc *p, const struct target *script, char *head, struct args *s,
	    struct arch_trapframe *tf)
{
	struct target to = {.name = script->name, .scripts = script->scripts + 1};
	struct args *all;
	char *line = head + 2, *interpreter, *arg;
	int r;

	if (to.scripts > SCRIPTS_MAX)
		return -ELOOP;
	if (word_is_cut(line, head + HEAD_SIZE))
		return -ENOEXEC;
	all = args_create();
	if (all == NULL)
		return -ENOMEM;
	interpreter = take_word(&line, " \t");
	head[HEAD_SIZE - 1] = '\0'; /* Linux's place for a cut argument's */
	arg = take_word(&line, "");
	r = *interpreter != '\0' ? args_add(all, &all->argc, interpreter) : -ENOEXEC;
	if (r == 0 && *arg != '\0')
		r = args_add(all, &all->argc, arg);
	if (r == 0)
		r = args_add(all, &all->argc, script->path);
	if (r == 0)
		r = args_add_rest(all, s);
	to.path = interpreter;
	if (r == 0)
		r = do_execveat_common(p, &to, all, tf);
	args_destroy(all);
	return r;
}

static int
do_execveat_common(struct proc *p, const struct target *to, struct args *s,
		   struct arch_trapframe *tf)
{
	const char *path = to->path, *name = to->name;
	char head[HEAD_SIZE + 1];
	int64_t head_size;
	struct program program;
	struct vmspace *vm;
	struct exec_ids ids;
	struct vnode *vn;
	uint64_t sp = 0;
	uint32_t old_tid;
	bool ended_others = false;
	int r;

	SDT_FIRE(proc, , , exec, SDT_ARGS_DATA0(path, strlen(path)));
	vn = to->vn != NULL ? vnode_ref(to->vn) : vnode_lookup(proc_cwd(), path, &r);
	if (vn == NULL)
		return r;
	r = vnode_may_execute(vn);
	if (r == 0)
		r = vnode_execute_begin(vn);
	if (r != 0) {
		vnode_unref(vn);
		return r;
	}
	vnode_execute_notify(vn);
	head_size = vnode_read(vn, head, HEAD_SIZE, 0);
	if (head_size > 2 && head[0] == '#' && head[1] == '!') {
		proc_exe_drop(vn);
		if (to->unreachable)
			return -ENOENT;
		head[head_size] = '\0';
		return exec_script(p, to, head, s, tf);
	}
	vm = vm_create(p->ui);
	if (vm == NULL) {
		proc_exe_drop(vn);
		return -ENOMEM;
	}
	exec_ids_get(vn, &ids);
	program.secure = ids.secure;
	r = program_load(vm, vn, &program);
	if (r == 0)
		r = vdso_map(vm);
	ids.unreadable = r == 0 && program.unreadable;
	if (r == 0)
		r = build_stack(vm, name, s, &program, &ids, &sp);
	if (r == 0) {
		ended_others = p->nthreads > 1;
		r = proc_single();
		ended_others &= r == 0;
	}
	if (r == 0)
		r = proc_unshare_files();
	old_tid = curthread()->tid;
	if (r == 0)
		r = exec_ids_hold(&ids);
	if (r != 0) {
		if (ended_others)
			proc_signal_self(SIGKILL); /* the old program is no more */
		proc_exe_drop(vn);
		vm_destroy(vm);
		return r;
	}
	exec_become(p, vm, name, vn, &ids);
	set_program(p, path);
	strlcpy(p->psargs, args_join(s), sizeof(p->psargs));
	arch_tf_init_user(tf, program.start, sp);
	proc_follow_executed();
	SDT_CTR_DATA4(proc, , , exec_success, SDT_ARGS_DATA0(path, strlen(path)), KTR_PROC,
		      "exec: pid %u name %s entry %#lx argc %u args %s", p->pid,
		      ktr_intern(p->name), program.img.entry, s->argc, s->strings, args_length(s));
	SDT_PROBE3(sched, , , sched_process_exec, ktr_intern(name), p->pid, old_tid);
	ptrace_executed(old_tid);
	return 0;
}

int
exec_image(struct proc *p, const char *path, char *const argv[], char *const envp[],
	   struct arch_trapframe *tf)
{
	struct args *s = args_create();
	int r = 0;

	if (s == NULL)
		return -ENOMEM;
	while (r == 0 && argv[s->argc] != NULL)
		r = args_add(s, &s->argc, argv[s->argc]);
	while (r == 0 && envp[s->envc] != NULL)
		r = args_add(s, &s->envc, envp[s->envc]);
	if (r == 0)
		r = do_execveat_common(p, &(struct target){.path = path, .name = path}, s, tf);
	args_destroy(s);
	return r;
}

/* Finds what execveat() is to execute, and what it is called: by the path, which has FD_NAME bytes
 * of room before it; or by the descriptor. 0 or -errno. */
static int
exec_take_target(struct target *to, uint64_t dirfd, uint64_t upath, char *path, uint64_t flags)
{
	int error = 0;

	to->path = to->name = path;
	if (flags & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (flags == 0 && (int)dirfd == AT_FDCWD)
		return 0;
	to->vn = vnode_of_user(dirfd, upath, flags, &error);
	if (to->vn != NULL && S_ISLNK(to->vn->mode))
		error = -ELOOP;
	if (error == 0 && (int)dirfd != AT_FDCWD && *path != '/') {
		char name[FD_NAME];
		int n = snprintf(name, sizeof(name), "/dev/fd/%d%s", (int)dirfd,
				 *path != '\0' ? "/" : "");

		to->path = to->name = memcpy(path - n, name, (size_t)n);
		to->unreachable = filetable_is_cloexec(curproc()->files, (unsigned)dirfd);
	}
	return error;
}

static int64_t
do_execveat(uint64_t dirfd, uint64_t upath, uint64_t uargv, uint64_t uenvp, uint64_t flags)
{
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)curthread()->kstack + KSTACK_SIZE);
	struct args *s = args_create();
	struct uidinfo *ui = curproc()->ui;
	char *path = uidinfo_alloc(ui, FD_NAME + PATH_MAX);
	struct target to = {0};
	int r = -ENOMEM;
	bool crowds;

	spin_lock(&proc_lock);
	crowds = curproc()->crowds &= proc_is_crowded(curproc());
	spin_unlock(&proc_lock);
	if (crowds) { /* setuid() has not failed, as on Linux, but this does */
		r = -EAGAIN;
	} else if (s != NULL && path != NULL) {
		r = copy_in_str(path + FD_NAME, upath, PATH_MAX);
		if (r >= 0)
			r = exec_take_target(&to, dirfd, upath, path + FD_NAME, flags);
		if (r == 0)
			r = args_copy_in(s, uargv, &s->argc);
		if (r == 0 && s->argc == 0) /* a program may rely on its name */
			r = args_add(s, &s->argc, "");
		if (r == 0)
			r = args_copy_in(s, uenvp, &s->envc);
		if (r == 0) {
			r = do_execveat_common(curproc(), &to, s, tf);
			if (r != 0)
				SDT_PROBE1(proc, , , exec_failure, -r);
		}
	}
	vnode_unref(to.vn);
	uidinfo_free(ui, path);
	if (s != NULL)
		args_destroy(s);
	return r;
}

SYSCALL_IS(execve, do_execveat((uint64_t)AT_FDCWD, a[0], a[1], a[2], 0))
SYSCALL_IS(execveat, do_execveat(a[0], a[1], a[2], a[3], (uint32_t)a[4]))
