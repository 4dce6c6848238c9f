/*
 * uprobe.c - probes at instructions of programs.
 *
 * A probe is at an offset of a file. While it is on, a breakpoint stands there in the copy of the
 * page that each process has which maps the page as code (kernel/vm/code.c); neither the file nor
 * what others map is changed. A process that hits one finds the probes by file and offset, fires
 * those that want it, and runs the instruction: it is emulated, or runs from a copy in the
 * process's memory, which ends with another breakpoint (kernel/proc/step.c).
 *
 * A probe r: has its breakpoint at the first instruction of a function. There the function's return
 * address is replaced by that of another breakpoint.
 *
 * If the probe of a breakpoint went off meanwhile, the program runs into the breakpoint again,
 * until its page is gone. So no program gets a signal for it. For a breakpoint of its own, a
 * program does get one.
 *
 * Locking: the control lock, and table_lock for the table, before proc_lock. A handler reads the
 * table with interrupts off. So a probe that has left the table is freed after each CPU has taken
 * an interrupt.
 */
#include "kernel/probe/uprobe.h"

#include <ktr_port.h>

#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "arch/uaccess.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/signal.h"
#include "kernel/entry.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/probe/kprobe_private.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "kernel/vm/vm.h"
#include "ktr/hook.h"
#include "ktr/port.h"

#define BUCKETS   256u
#define FETCHES   32  /* how often memory is brought in for the arguments of a probe */
#define BACK_SIZE 128 /* bytes before an instruction that tell whether a probe may be there */

static struct spinlock table_lock = SPINLOCK_INIT("uprobes");
static struct uprobe *buckets[BUCKETS]; /* by file and page */
static uint32_t changes;                /* atomic; of the table */
static uint64_t last_number;            /* table_lock; of the probe that came last */

static struct uprobe **
uprobe_bucket(const void *object, uint64_t index)
{
	return &buckets[((uintptr_t)object / 64 + index) % BUCKETS];
}

/* The first probe at that place; or the next one after u. */
static struct uprobe *
next_at(const struct uprobe *u, const void *object, uint64_t offset)
{
	struct uprobe *next = u != NULL ? u->next
					: __atomic_load_n(uprobe_bucket(object, offset / PAGE_SIZE),
							  __ATOMIC_ACQUIRE);

	while (next != NULL && (next->vn != object || next->offset != offset))
		next = next->next;
	return next;
}

/* Does the probe fire in the current process? */
static bool
is_mine(const struct uprobe *u)
{
	return u->on && (u->pid == 0 || (curproc() != NULL && curproc()->pid == u->pid));
}

/* ---- breakpoints ---- */

/* Puts the breakpoint into a page, if the page has the instruction. */
static void
put_break(const struct uprobe *u, uint8_t *page)
{
	size_t at = u->offset % PAGE_SIZE, size = arch_insn_length(u->insn);

	if (size > PAGE_SIZE - at)
		size = PAGE_SIZE - at;
	if (memcmp(page + at, u->insn, size) == 0)
		memcpy(page + at, arch_break_insn, ARCH_BREAK_SIZE);
}

/* May the probe fire in this space? Processes share it from vfork() on. proc_lock held. */
static bool
is_wanted_in(const struct uprobe *u, const struct vmspace *vm)
{
	const struct proc *p = u->on && u->pid != 0 ? proc_find(u->pid) : NULL;

	return u->on && (u->pid == 0 || (p != NULL && p->vm == vm));
}

static bool
patch_page(const struct vmspace *vm, const void *object, uint64_t index, uint8_t *page)
{
	bool any = false;

	if (*uprobe_bucket(object, index) == NULL)
		return false;
	spin_lock(&table_lock);
	spin_lock(&proc_lock);
	for (struct uprobe *u = *uprobe_bucket(object, index); u != NULL; u = u->next) {
		if (u->vn != object || u->offset / PAGE_SIZE != index || !is_wanted_in(u, vm))
			continue;
		any = true;
		if (page != NULL)
			put_break(u, page);
	}
	spin_unlock(&proc_lock);
	spin_unlock(&table_lock);
	return any;
}

static void
link_probe(struct uprobe *u)
{
	struct uprobe **at = uprobe_bucket(u->vn, u->offset / PAGE_SIZE);

	spin_lock(&table_lock);
	u->on = true;
	u->number = ++last_number;
	u->next = *at;
	__atomic_store_n(at, u, __ATOMIC_RELEASE);
	__atomic_fetch_add(&changes, 1, __ATOMIC_RELEASE);
	spin_unlock(&table_lock);
}

static void
unlink_probe(struct uprobe *u)
{
	struct uprobe **at = uprobe_bucket(u->vn, u->offset / PAGE_SIZE);

	spin_lock(&table_lock);
	while (*at != u)
		at = &(*at)->next;
	__atomic_store_n(at, u->next, __ATOMIC_RELEASE);
	__atomic_fetch_add(&changes, 1, __ATOMIC_RELEASE);
	spin_unlock(&table_lock);
}

void
uprobe_apply(void)
{
	bool any = false;

	if (curthread() == NULL || stop_inside() || ktr_port_final)
		return; /* the next change will do it */
	list_for_each_entry (struct kprobe, k, &kprobes, link) {
		bool on = kprobe_wanted(k);

		if (k->user.vn == NULL || k->user.on == on)
			continue;
		if (on)
			link_probe(&k->user);
		__atomic_store_n(&k->user.on, on, __ATOMIC_RELEASE);
		vm_code_reset(k->user.vn, k->user.offset / PAGE_SIZE);
		if (on)
			continue;
		/* nobody comes to the breakpoint any more; who is there finds that it has gone */
		unlink_probe(&k->user);
		any = true;
	}
	if (any)
		ktr_port_sync();
}

/* ---- a breakpoint is hit ---- */

/* What is fired: the probes of one kind at a place. */
struct hit {
	struct arch_trapframe *tf;
	const void *object;
	uint64_t offset;
	uintptr_t at;      /* the instruction, or the function that returns */
	uintptr_t ret;     /* where it returns to; 0: it does not return now */
	uint64_t before;   /* those have fired, or came later, that have this number or more */
	unsigned tries;    /* how often memory was brought in for the next one */
	unsigned others;   /* probes of the other kind */
	unsigned given_up; /* so many memories that the next probe lacks will never be there */
	bool found, final; /* there is a probe; no memory is brought in any more */
	uint8_t insn[ARCH_INSN_MAX];
};

/* At a function's first instruction: the address to which it will return; 0: unknown. */
static uintptr_t
returns_to(const struct arch_trapframe *tf)
{
	uintptr_t ret = arch_tf_link(tf), sp = arch_tf_sp(tf);

	if (ARCH_CALL_PUSHES > 0 && (sp > ARCH_USER_END - sizeof(ret) ||
				     !arch_copy_user(&ret, (const void *)sp, sizeof(ret))))
		return 0;
	return ret;
}

/* Fires a probe. False: memory at *missing is to be brought in. */
static bool
fire_one(struct kprobe *k, struct hit *h, uintptr_t *missing)
{
	struct kfetching in = {.tf = h->tf,
			       .definition = k->text,
			       .file = h->at - h->offset,
			       .faults = -(int64_t)h->given_up};
	uint64_t args[KTR_MAXARGS];
	unsigned n = kprobe_fetch_values(&k->def, &in, args);

	if (in.faults > 0 && !h->final) {
		*missing = in.missing;
		return false;
	}
	in.faults += h->given_up;
	/* Where the probe was comes after what the format shows, if there is room. */
	if (n < KTR_MAXARGS)
		args[n++] = h->at;
	if (h->ret != 0 && n < KTR_MAXARGS)
		args[n++] = h->ret;
	__atomic_fetch_add(&k->hits, 1, __ATOMIC_RELAXED);
	if (in.faults != 0)
		__atomic_fetch_add(&k->faults, (uint64_t)in.faults, __ATOMIC_RELAXED);
	ktr_fire(&(struct ktr_firing){.site = k->site,
				      .args = args,
				      .nargs = (uint16_t)n,
				      .where = {.ret = k->user.entry ? returns_to(h->tf) : 0}});
	return true;
}

/*
 * Fires the probes at the place that have not fired yet. False as for fire_one(). Interrupts off.
 * The list may have changed since the last call. New probes come first in it, so the numbers fall
 * along it.
 */
static bool
fire_some(struct hit *h, uintptr_t *missing)
{
	h->others = 0;
	for (struct uprobe *u = NULL; (u = next_at(u, h->object, h->offset)) != NULL;) {
		h->found = true;
		memcpy(h->insn, u->insn, sizeof(h->insn));
		if (!is_mine(u))
			continue;
		if (u->probe->def.is_return != (h->ret != 0)) {
			h->others++;
		} else if (u->number < h->before) {
			if (!fire_one(u->probe, h, missing))
				return false;
			h->before = u->number;
			h->tries = h->given_up = 0;
			h->final = false;
		}
	}
	return true;
}

static void
uprobe_fire(struct hit *h)
{
	uintptr_t missing;
	uint8_t byte;
	bool all;

	h->before = UINT64_MAX;
	for (;;) {
		arch_irq_disable();
		all = fire_some(h, &missing);
		arch_irq_enable();
		if (all)
			break;
		if (copy_in(&byte, missing, 1) != 0)
			h->given_up++;
		h->final = ++h->tries > FETCHES;
	}
}

/* Counts a call that the r: probes of its function miss, since there was no room for it. */
static void
uprobe_count_miss(const struct hit *h)
{
	arch_irq_disable();
	for (struct uprobe *u = NULL; (u = next_at(u, h->object, h->offset)) != NULL;)
		if (u->probe->def.is_return && is_mine(u))
			__atomic_fetch_add(&u->probe->misses, 1, __ATOMIC_RELAXED);
	arch_irq_enable();
}

static bool
make_break(const struct vm_code *c, uint64_t va, uint8_t *bytes)
{
	memset(bytes, 0, c->size);
	memcpy(bytes, arch_break_insn, ARCH_BREAK_SIZE);
	return true;
}

/* Makes the function that begins return to a breakpoint. */
static void
await_return(const struct hit *h)
{
	const struct vm_code c = {.near = h->at, .size = ARCH_USER_SLOT, .make = make_break};
	struct lwp *l = curlwp();
	uintptr_t sp = arch_tf_sp(h->tf), ret = arch_tf_link(h->tf);
	uintptr_t returner = vm_code_add(curproc()->vm, &c);
	struct lwp_call *call;

	if (ARCH_CALL_PUSHES > 0 && copy_in(&ret, sp, sizeof(ret)) != 0)
		return; /* the program will see */
	/* A call that was left by a jump, and whose room on the stack is used again. */
	while ((call = lwp_call_find(l, sp)) != NULL && ret != call->returner)
		lwp_call_end(l, call);
	call = returner != 0 ? lwp_call_begin(l, sp) : NULL;
	if (call == NULL) {
		uprobe_count_miss(h);
		return;
	}
	call->ret = ret;
	call->returner = returner;
	call->function = h->at;
	call->object = h->object;
	call->offset = h->offset;
	if (ARCH_CALL_PUSHES == 0)
		arch_tf_set_link(h->tf, returner);
	else if (copy_out(sp, &returner, sizeof(returner)) != 0)
		lwp_call_end(l, call);
}

/* A function has returned to its breakpoint; perhaps several, of which one jumped to the next. */
static bool
uprobe_returned(struct arch_trapframe *tf, uintptr_t at)
{
	uintptr_t sp = arch_tf_sp(tf) - ARCH_CALL_PUSHES, to = at;
	struct lwp *l = curlwp();
	struct lwp_call *call;

	while ((call = lwp_call_find(l, sp)) != NULL && call->returner == to) {
		struct hit h = {.tf = tf,
				.object = call->object,
				.offset = call->offset,
				.at = call->function,
				.ret = call->ret};

		to = call->ret;
		lwp_call_end(l, call);
		arch_tf_set_pc(tf, to < ARCH_USER_END ? to : 0); /* an address that faults */
		uprobe_fire(&h);
	}
	return to != at;
}

static bool
make_copy(const struct vm_code *c, uint64_t va, uint8_t *bytes)
{
	const struct hit *h = c->arg;

	return arch_insn_user_slot(h->insn, h->at, va, bytes) > 0;
}

/* Runs the instruction in whose place the breakpoint is. */
static void
uprobe_run(struct hit *h)
{
	struct vm_code c = {.near = h->at, .size = ARCH_USER_SLOT, .make = make_copy, .arg = h};
	struct lwp *l = curlwp();
	uint8_t bytes[ARCH_USER_SLOT];
	uintptr_t copy, va = h->at;
	unsigned access;
	int size = arch_insn_user_slot(h->insn, h->at, h->at, bytes);

	if (size == 0) {
		access = arch_insn_emulate(h->insn, h->at, h->tf, &va);
		arch_irq_disable();
		if (access != 0)
			entry_page_fault(h->tf, va, access);
		return;
	}
	for (size_t i = 0; i < sizeof(h->insn); i++)
		c.hash = c.hash * 31 + h->insn[i];
	copy = vm_code_add(curproc()->vm, &c);
	arch_irq_disable();
	if (copy == 0) {
		entry_fault(h->tf, SIGBUS, "no memory for a probed instruction", va, FAULT_CODE);
		return;
	}
	l->step.copy = copy;
	l->step.end = copy + (unsigned)size;
	l->step.at = h->at;
	l->step.next = h->at + (unsigned)size;
	arch_tf_set_pc(h->tf, copy);
}

static bool
uprobe_hit(struct arch_trapframe *tf, uintptr_t at)
{
	uint32_t seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
	struct hit h = {.tf = tf, .at = at};
	uint8_t there[ARCH_BREAK_SIZE];
	uintptr_t pc = arch_tf_pc(tf);

	arch_tf_set_pc(tf, at);
	if (vm_code_at(curproc()->vm, at, &h.object, &h.offset))
		uprobe_fire(&h);
	if (!h.found) {
		/* It is gone, or the program's own. */
		if (copy_in(there, at, sizeof(there)) != 0 ||
		    memcmp(there, arch_break_insn, sizeof(there)) != 0 ||
		    __atomic_load_n(&changes, __ATOMIC_ACQUIRE) != seen)
			return true;
		arch_tf_set_pc(tf, pc);
		return false;
	}
	if (h.others > 0)
		await_return(&h);
	uprobe_run(&h);
	return true;
}

bool
uprobe_trap(struct arch_trapframe *tf, uintptr_t at)
{
	struct lwp *l = curlwp();
	bool mine;

	if (l->step.copy != 0 && at == l->step.end) {
		arch_tf_set_pc(tf, l->step.next);
		l->step.copy = 0;
		return true;
	}
	arch_irq_enable();
	mine = uprobe_returned(tf, at) || uprobe_hit(tf, at);
	arch_irq_disable();
	return mine;
}

/* ---- probes ---- */

/* Reads the instruction, and checks that a probe may be there. */
static int
uprobe_check(struct ktold *t, struct uprobe *u)
{
	uint8_t code[BACK_SIZE + ARCH_INSN_MAX] = {0};
	size_t back = u->offset < BACK_SIZE ? u->offset : BACK_SIZE;
	int64_t n = vnode_read(u->vn, code, back + ARCH_INSN_MAX, u->offset - back);
	const char *why;

	if (n < 0)
		return (int)n;
	if ((size_t)n <= back || u->offset % ARCH_INSN_ALIGN != 0)
		return kprobe_refuse(t->err, t->errlen, t->at + u->probe->def.path + 1,
				     "no instruction is at that offset of the file");
	memcpy(u->insn, code + back, sizeof(u->insn));
	why = arch_insn_refuse(code, back);
	return why != NULL ? kprobe_refuse(t->err, t->errlen, t->at, "%s", why) : 0;
}

int
uprobe_open(struct uprobe *u, const char *path, struct ktold *t)
{
	int error = 0;

	vm_code_patch = patch_page;
	u->vn = vnode_lookup(proc_cwd(), path, &error);
	if (u->vn == NULL) {
		kprobe_refuse(t->err, t->errlen, t->at, "no file \"%.60s\"", path);
		return error;
	}
	if (!S_ISREG(u->vn->mode) || u->vn->ops->page == NULL)
		error = kprobe_refuse(t->err, t->errlen, t->at, "\"%.60s\" is no program", path);
	else
		error = uprobe_check(t, u);
	if (error != 0)
		uprobe_close(u);
	return error;
}

void
uprobe_close(struct uprobe *u)
{
	vnode_unref(u->vn);
	u->vn = NULL;
}
