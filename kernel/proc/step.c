/*
 * step.c - threads that run a copy of an instruction, since a breakpoint stands in its place; and
 * calls whose return is awaited (kernel/probe/uprobe.c). Locking: the thread's own.
 *
 *	hit at `at` ──► uprobe_run(): sets step, the program goes on at `copy`
 *	                  │ the copy runs
 *	                  ├─► a second breakpoint at `end` ──► uprobe_trap(): on to `next`
 *	                  ├─► a jump, or a return: the program has left the copy; nothing to do
 *	                  └─► a fault, or a step of its tracer's ──► lwp_step_end(): at lwp_pc()
 *
 * uprobe_run() alone sets `step`; uprobe_trap(), lwp_step_end() and exec end it. After a jump it
 * stays, and means nothing, since in_copy() asks where the program is, too. Whoever shows a
 * program's address asks lwp_pc(), which is `at` inside of the copy and `next` at its end: a
 * stack, a page fault's event, a tracer. Signals but SIGKILL wait for the end (lwp_stepping()), so
 * that no handler returns into a copy.
 *
 * A function whose return is awaited returns to a breakpoint. Its struct lwp_call has the true
 * address, by the stack pointer that it returns with; uprobe.c takes it when it is hit.
 */
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/signal.h"
#include "kernel/mm/heap.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"

/* Is the current thread's program in the copy? Jumps and returns leave it by themselves. */
static bool
in_copy(const struct lwp *l, const struct arch_trapframe *tf)
{
	return l->step.copy != 0 && arch_tf_pc(tf) >= l->step.copy && arch_tf_pc(tf) <= l->step.end;
}

uintptr_t
lwp_pc(const struct lwp *l, const struct arch_trapframe *tf)
{
	if (l == NULL || !in_copy(l, tf))
		return arch_tf_pc(tf);
	return arch_tf_pc(tf) == l->step.end ? l->step.next : l->step.at;
}

void
lwp_step_end(struct arch_trapframe *tf)
{
	arch_tf_set_pc(tf, lwp_pc(curlwp(), tf));
	curlwp()->step.copy = 0;
}

bool
lwp_stepping(const struct arch_trapframe *tf)
{
	const struct lwp *l = curlwp();
	const struct proc *p = curproc();

	return in_copy(l, tf) && !p->exiting && !l->dying &&
	       !((p->pending.set | l->pending.set) & 1ul << (SIGKILL - 1));
}

struct lwp_call *
lwp_call_find(struct lwp *l, uintptr_t sp)
{
	struct lwp_call *c = l->calls;

	while (c != NULL && c->sp != sp)
		c = c->next;
	return c;
}

void
lwp_call_end(struct lwp *l, struct lwp_call *call)
{
	struct lwp_call **at = &l->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	l->ncalls--;
	kfree(call);
}

/* Was the call left by a jump? sp is the stack pointer with which another function begins now. */
static bool
was_left(const struct lwp *l, const struct lwp_call *c, uintptr_t sp)
{
	bool handler = sigframe_of_handler(l, sp);

	if (sigframe_of_handler(l, c->sp) != handler)
		return !handler; /* the handler's calls; what it has interrupted goes on later */
	return c->sp < sp;
}

struct lwp_call *
lwp_call_begin(struct lwp *l, uintptr_t sp)
{
	struct lwp_call *c = l->ncalls == LWP_CALLS ? l->calls : NULL, *next;

	for (; c != NULL; c = next) {
		next = c->next;
		if (was_left(l, c, sp))
			lwp_call_end(l, c);
	}
	c = l->ncalls < LWP_CALLS ? kzalloc(sizeof(*c)) : NULL;
	if (c == NULL)
		return NULL;
	c->sp = sp;
	c->next = l->calls;
	l->calls = c;
	l->ncalls++;
	return c;
}

void
lwp_calls_forget(struct lwp *l)
{
	while (l->calls != NULL)
		lwp_call_end(l, l->calls);
}

int
lwp_calls_copy(struct lwp *to, const struct lwp *from)
{
	struct lwp_call **at = &to->calls;

	for (const struct lwp_call *c = from->calls; c != NULL; c = c->next) {
		*at = kmalloc(sizeof(*c));
		if (*at == NULL)
			return -ENOMEM;
		**at = *c;
		(*at)->next = NULL;
		at = &(*at)->next;
		to->ncalls++;
	}
	return 0;
}
