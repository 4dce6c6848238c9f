/*
 * hook.c - makes records: the hook on the probes of the providers syscall, proc, sched, vfs and on
 * two trace points of the page fault.
 *
 * The hook runs with interrupts off and records what the current process does. Where there is no
 * room, a record is counted as dropped, and the next one says so. User memory is read here, when
 * the kernel has just used it: what is not present is left out, since nothing may sleep.
 */
#include "ktr/hook.h"

#include "arch/clock.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/resource.h"
#include "kernel/abi/stat.h"
#include "kernel/abi/syscall.h"
#include "kernel/abi/time.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/vfs.h"
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/ktrace/queue.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/control.h"
#include "ktr/probe.h"
#include "ktr/sdt.h"

/* Structs of system calls that succeed, by the argument that points to them. */
static const struct call_struct {
	const char *call;
	unsigned arg;
	const char *name;
	uint32_t size;
} structs[] = {
    {"stat", 1, "stat", sizeof(struct stat)},
    {"lstat", 1, "stat", sizeof(struct stat)},
    {"fstat", 1, "stat", sizeof(struct stat)},
    {"newfstatat", 2, "stat", sizeof(struct stat)},
    {"clock_gettime", 1, "timespec", sizeof(struct timespec)},
    {"nanosleep", 0, "timespec", sizeof(struct timespec)},
    {"getrlimit", 1, "rlimit", sizeof(struct rlimit)},
    {"setrlimit", 1, "rlimit", sizeof(struct rlimit)},
    {"prlimit64", 2, "rlimit", sizeof(struct rlimit)},
    {"prlimit64", 3, "rlimit", sizeof(struct rlimit)},
};

#define STRUCTS (sizeof(structs) / sizeof(structs[0]))

static uint16_t struct_codes[STRUCTS]; /* of the calls in structs[]; 0: this machine lacks it */

struct ktrace_action *ktrace_actions;

static void
ktrace_hook_put(struct ktrace *t, unsigned type, const void *data, size_t len)
{
	struct ktrace_record *r;

	if (!(t->facs & 1u << type))
		return;
	r = ktrace_claim(t, type, len);
	if (r == NULL)
		return;
	memcpy(r->data, data, len);
	ktrace_commit(t, r, len);
}

static void record_again(struct ktrace *t, const struct ktr_firing *f);

/* Makes a record of a system call, if there is room for it after all. */
static __attribute__((noinline)) void
put_again(struct ktrace *t, size_t len, const struct ktr_firing *f)
{
	if (ktrace_make_room(t, ktrace_total(len)))
		record_again(t, f);
}

/* Remembers the arguments for other records of the call. */
static inline void
keep_args(struct ktrace_lwp *k, const struct ktr_firing *f)
{
	__builtin_memcpy(k->args, f->args, sizeof(k->args));
	k->has_args = true;
}

static inline __attribute__((always_inline)) void
put_call(struct ktrace *t, const struct thread *th, struct ktrace_action a,
	 const struct ktr_firing *f)
{
	struct ktrace_lwp *k = &th->lwp->trace;
	size_t narg = a.narg, len = sizeof(struct ktr_syscall) + narg * 8;
	uint32_t code = a.code;
	uint64_t end;
	struct ktrace_record *r;
	struct ktr_syscall *s;

	k->in_call = true;
	if (__builtin_expect(a.code == KTRACE_UNKNOWN, 0))
		k->code = code = f->args[0] < UINT32_MAX ? (uint32_t)f->args[0] : UINT32_MAX;
	else if (t->facs & (KTRFAC_GENIO | KTRFAC_STRUCT | KTRFAC_SYSCTL))
		keep_args(k, f);
	if (!(t->facs & KTRFAC_SYSCALL))
		return;
	end = t->head + ktrace_total(len);
	if (__builtin_expect(end > t->checked, 0)) {
		put_again(t, len, f);
		return;
	}
	r = ktrace_begin(t, th, KTR_SYSCALL, len);
	s = (void *)r->data;
	s->ktr_code = code;
	s->ktr_narg = (uint32_t)narg;
	for (size_t n = 0; n < narg; n++)
		s->ktr_args[n] = f->args[n];
	ktrace_end(t, end);
}

/* Copies a struct from the address in user memory, if it is there. */
static void
put_struct(struct ktrace *t, const struct proc *p, const struct call_struct *s, uint64_t addr)
{
	size_t name = strlen(s->name) + 1;
	struct ktrace_record *r = ktrace_claim(t, KTR_STRUCT, name + s->size);

	if (r == NULL)
		return;
	memcpy(r->data, s->name, name);
	if (copy_in((char *)r->data + name, addr, s->size) == 0)
		ktrace_commit(t, r, name + s->size);
}

static void
put_sysctl(struct ktrace *t, const struct proc *p, uint64_t addr)
{
	struct ktrace_record *r = ktrace_claim(t, KTR_SYSCTL, 256);
	int n;

	if (r == NULL)
		return;
	n = copy_in_str((char *)r->data, addr, 256);
	if (n >= 0)
		ktrace_commit(t, r, (size_t)n);
}

/* Structs and names that a system call, which returns now, has used. Then the return itself. */
static __attribute__((noinline)) void
put_used(struct ktrace *t, const struct proc *p, struct ktrace_action a, const struct ktr_firing *f)
{
	struct ktrace_lwp *k = &curlwp()->trace;
	bool failed = f->args[0] > (uint64_t)-4096;

	k->has_args = false;
	if ((t->facs & KTRFAC_STRUCT) && !failed) {
		for (unsigned i = 0; i < STRUCTS; i++)
			if (struct_codes[i] == a.code && k->args[structs[i].arg] != 0)
				put_struct(t, p, &structs[i], k->args[structs[i].arg]);
	}
	if ((t->facs & KTRFAC_SYSCTL) && a.code == NR_sysctl)
		put_sysctl(t, p, k->args[1]);
	record_again(t, f);
}

static inline __attribute__((always_inline)) void
put_return(struct ktrace *t, const struct thread *th, struct ktrace_action a,
	   const struct ktr_firing *f)
{
	struct ktrace_lwp *k = &th->lwp->trace;
	int64_t value = (int64_t)f->args[0];
	uint64_t end;
	struct ktrace_record *r;
	struct ktr_sysret *s;

	if (__builtin_expect(k->has_args && a.narg > 0, 0)) {
		put_used(t, th->proc, a, f);
		return;
	}
	k->has_args = false;
	k->in_call = false;
	if (!(t->facs & KTRFAC_SYSRET))
		return;
	end = t->head + ktrace_total(sizeof(*s));
	if (__builtin_expect(end > t->checked, 0)) {
		put_again(t, sizeof(*s), f);
		return;
	}
	r = ktrace_begin(t, th, KTR_SYSRET, sizeof(*s));
	s = (void *)r->data;
	/* An unknown call that was not traced when it began has no number here. */
	s->ktr_code = __builtin_expect(a.code == KTRACE_UNKNOWN, 0) ? k->code : a.code;
	s->ktr_error = 0;
	s->ktr_retval = value;
	if ((uint64_t)value > (uint64_t)-4096) {
		s->ktr_error = (int32_t)-value;
		s->ktr_retval = -1;
	}
	ktrace_end(t, end);
}

/* The first bytes that were moved, unless another thread has changed them meanwhile. */
static size_t
copy_moved(uint8_t *to, const struct uio *u, size_t n)
{
	size_t done = 0;

	for (const struct uio_vec *v = u->first; done < n; v++) {
		size_t piece = v->len < n - done ? v->len : n - done;

		if (copy_in(to + done, v->base, piece) != 0)
			break;
		done += piece;
	}
	return done;
}

static void
put_io(struct ktrace *t, const struct proc *p, int rw, const struct uio *u, int64_t bytes)
{
	size_t n = bytes < (int64_t)ktrace_genio ? (size_t)bytes : ktrace_genio;
	const struct ktrace_lwp *k;
	struct ktrace_record *r;
	struct ktr_genio *g;

	if (!(t->facs & KTRFAC_GENIO) || bytes < 0 || u->space != UIO_USER)
		return;
	if (n > t->mask / 4)
		n = t->mask / 4;
	r = ktrace_claim(t, KTR_GENIO, sizeof(*g) + n);
	if (r == NULL)
		return;
	g = (void *)r->data;
	k = &curlwp()->trace;
	*g = (struct ktr_genio){.ktr_fd = k->has_args ? (int32_t)k->args[0] : -1,
				.ktr_rw = rw,
				.ktr_bytes = (uint64_t)bytes};
	n = copy_moved((uint8_t *)(g + 1), u, n);
	ktrace_commit(t, r, sizeof(*g) + n);
}

static void
put_switch(struct ktrace *t, const struct proc *p, bool out)
{
	const struct thread *th = curthread();
	struct ktrace_lwp *k = &th->lwp->trace;
	struct ktr_csw c = {.ktr_out = out};

	/* A thread that waits has a reason. One that was preempted has none; it may have been in
	 * its program. */
	if (out)
		k->waits = th->state != THREAD_SLEEPING ? ""
			   : th->lockname != NULL       ? th->lockname
							: th->wmesg;
	if (k->waits == NULL)
		return; /* the thread loses the CPU for ktrace, or has it for the first time */
	strlcpy(c.ktr_wmesg, k->waits, sizeof(c.ktr_wmesg));
	c.ktr_user = k->waits[0] == '\0' && !k->in_call;
	if (!out)
		k->waits = NULL;
	ktrace_hook_put(t, KTR_CSW, &c, sizeof(c));
}

/* All but system calls, which are to cost little. */
static __attribute__((noinline)) void
ktrace_hook_act(struct ktrace *t, struct proc *p, struct ktrace_action a,
		const struct ktr_firing *f)
{
	struct ktr_psig sig;
	struct ktr_fault fault;
	struct ktr_faultend end;

	switch (a.what) {
	case NAME:
	case EXEC:
		ktrace_hook_put(t, KTR_NAMEI, f->data, f->len);
		break;
	case READ:
	case WRITE:
		put_io(t, p, a.what == READ ? KTR_READ : KTR_WRITE,
		       (const struct uio *)(uintptr_t)f->args[1], (int64_t)f->args[2]);
		break;
	case SIGNAL:
		sig = (struct ktr_psig){.ktr_signo = (int32_t)f->args[0],
					.ktr_code = (int32_t)f->args[1],
					.ktr_action = f->args[2],
					.ktr_mask = curlwp()->sig_blocked};
		ktrace_hook_put(t, KTR_PSIG, &sig, sizeof(sig));
		break;
	case OFF_CPU:
	case ON_CPU:
		put_switch(t, p, a.what == OFF_CPU);
		/* The work may have been noted on another CPU. */
		if (ktrace_is_full(t))
			this_pcpu()->work = true;
		break;
	case FAULT:
		fault =
		    (struct ktr_fault){.ktr_vaddr = f->args[0], .ktr_access = (uint32_t)f->args[1]};
		ktrace_hook_put(t, KTR_FAULT, &fault, sizeof(fault));
		break;
	case FAULT_END:
		end = (struct ktr_faultend){.ktr_vaddr = f->args[0],
					    .ktr_served = (uint32_t)f->args[1]};
		ktrace_hook_put(t, KTR_FAULTEND, &end, sizeof(end));
		break;
	case EXIT:
		t->status = (uint32_t)f->args[1];
		break;
	}
}

static inline __attribute__((always_inline)) void
ktrace_record_firing(struct ktrace *t, const struct thread *th, const struct ktr_firing *f)
{
	/* all sites that are on for ktrace have one */
	struct ktrace_action a = ktrace_actions[ktr_site_number(f->site)];

	if (a.what == CALL)
		put_call(t, th, a, f);
	else if (a.what == RETURN)
		put_return(t, th, a, f);
	else
		ktrace_hook_act(t, th->proc, a, f);
}

static __attribute__((noinline)) void
record_again(struct ktrace *t, const struct ktr_firing *f)
{
	ktrace_record_firing(t, curthread(), f);
}

/*
 * Takes the one of the process, for one of its threads. Who gives the process another one has the
 * old one's lock meanwhile: so nothing is put into the old one after what is put into the new one.
 */
static struct ktrace *
ktrace_lock_current(const struct proc *p)
{
	for (;;) {
		struct ktrace *t = __atomic_load_n(&p->trace, __ATOMIC_ACQUIRE);

		if (t == NULL)
			return NULL;
		hook_lock(&t->locked);
		if (t == __atomic_load_n(&p->trace, __ATOMIC_ACQUIRE))
			return t;
		hook_unlock(&t->locked);
	}
}

/* Several threads share the queue, one at a time. A CPU that is in a hook gets no other hook. */
static __attribute__((noinline)) void
record_locked(const struct proc *p, const struct ktr_firing *f)
{
	struct ktrace *t = ktrace_lock_current(p);

	if (t == NULL)
		return;
	if (t->facs != 0)
		ktrace_record_firing(t, curthread(), f);
	hook_unlock(&t->locked);
}

void
ktrace_hook(const struct ktr_firing *f)
{
	const struct thread *th = curthread(); /* the rest of this kernel has long begun */
	struct proc *p = th->proc;
	struct ktrace *t = p != NULL ? __atomic_load_n(&p->trace, __ATOMIC_ACQUIRE) : NULL;

	if (t == NULL || t->facs == 0 || th->lwp->trace.busy)
		return;
	/* acquire: pairs with the release in do_exit(); what other threads put in comes before */
	if (__builtin_expect(__atomic_load_n(&p->nthreads, __ATOMIC_ACQUIRE) > 1, 0))
		record_locked(p, f);
	else
		ktrace_record_firing(t, th, f);
}

void
ktrace_put(unsigned type, const void *data, size_t len)
{
	struct ktrace *t;

	irq_push();
	t = ktrace_lock_current(curproc());
	if (t != NULL) {
		ktrace_hook_put(t, type, data, len);
		hook_unlock(&t->locked);
	}
	irq_pop();
}

bool
ktrace_has_struct(const char *call, uint16_t code)
{
	bool any = false;

	for (unsigned i = 0; i < STRUCTS; i++) {
		if (strcmp(structs[i].call, call) != 0)
			continue;
		struct_codes[i] = code;
		any = true;
	}
	return any;
}
