/*
 * sched.c - which thread runs where: switching, preemption, and stealing between CPUs.
 *
 * Each CPU runs the best thread of its own queue. A CPU with nothing to run steals a thread from
 * the longest queue. Ordinary threads have shares: each user the same, and each thread its part of
 * that, by its niceness (kernel/lib/fair.h). doc/scheduler.md explains it.
 *
 * A real-time thread goes before all those, and runs on any CPU it may use where a worse one runs.
 * So that no such thread keeps the machine for itself, they have a CPU for the part of the time
 * that kernel.sched_rt_runtime_us says; for the rest of it, others that wait there go first.
 *
 * Locking: a switch holds the run-queue lock (runq.h) of its CPU, and the new thread releases it.
 * So a thread on a queue is always completely switched out.
 */
#include "kernel/sched/sched.h"

#include <ktr_port.h>

#include "arch/context.h"
#include "arch/regset.h"
#include "arch/smp.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "ktr/intern.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT7(sched, , , sched_switch, "sched_switch",
		       ": prev_comm=%s prev_pid=%u prev_prio=%d prev_state=%ld ==> next_comm=%s "
		       "next_pid=%s",
		       "%u next_prio=%d", "char *", "pid_t", "int", "long", "char *", "pid_t",
		       "int");
SDT_PROBE_DEFINE_TEXT(sched, , , sched_waking, "sched_waking",
		      ": comm=%s pid=%u prio=%d target_cpu=%03u", 4, "char *", "pid_t", "int",
		      "int");
SDT_PROBE_DEFINE_TEXT(sched, , , sched_wakeup, "sched_wakeup",
		      ": comm=%s pid=%u prio=%d target_cpu=%03u", 4, "char *", "pid_t", "int",
		      "int");
SDT_PROBE_DEFINE_TEXT(sched, , , sched_wakeup_new, "sched_wakeup_new",
		      ": comm=%s pid=%u prio=%d target_cpu=%03u", 4, "char *", "pid_t", "int",
		      "int");
SDT_PROBE_DEFINE_TEXT(sched, , , on_cpu, "on-cpu", "", 0);
SDT_PROBE_DEFINE_TEXT(sched, , , off_cpu, "off-cpu", ": thread %p proc %p tid %u", 3,
		      "struct thread *", "struct proc *", "tid_t");
SDT_PROBE_DEFINE_TEXT(sched, , , remain_cpu, "remain-cpu", "", 0);
SDT_PROBE_DEFINE_TEXT(sched, , , preempt, "preempt", "", 0);
SDT_PROBE_DEFINE_TEXT(sched, , , sleep, "sleep", "", 0);
SDT_PROBE_DEFINE_TEXT(sched, , , wakeup, "wakeup", ": thread %p proc %p tid %u", 3,
		      "struct thread *", "struct proc *", "tid_t");
SDT_PROBE_DEFINE_TEXT(sched, , , change_pri, "change-pri", ": thread %p proc %p pri %d tid %u", 4,
		      "struct thread *", "struct proc *", "uint8_t", "tid_t");
SDT_PROBE_DEFINE_TEXT(sched, , , surrender, "surrender", ": thread %p proc %p tid %u", 3,
		      "struct thread *", "struct proc *", "tid_t");

struct runq runqs[MAX_CPUS];

void
sched_request(unsigned n)
{
	if (__atomic_exchange_n(&pcpus[n]->resched, true, __ATOMIC_SEQ_CST) || n == arch_cpu())
		return;
	SDT_CTR1(sched, , , surrender,
		 SDT_ARGS3(runqs[n].cur, runqs[n].cur->proc, runqs[n].cur->tid), KTR_SMP,
		 "ipi send: resched cpu %u", n);
	arch_ipi_send(n, IPI_RESCHED);
}

/* A thread's number as Linux's events have it: idle threads are 0, swapper/N. */
static uint32_t
linux_pid(const struct thread *t)
{
	return t == pcpus[t->cpu]->idle ? 0 : t->tid;
}

const char *
sched_comm(const struct thread *t)
{
	char name[24];

	if (t != pcpus[t->cpu]->idle)
		return ktr_intern(t->name);
	snprintf(name, sizeof(name), "swapper/%u", t->cpu);
	return ktr_intern(name);
}

static int
linux_prio(const struct thread *t)
{
	return t != pcpus[t->cpu]->idle ? t->prio : 120;
}

/* Linux's TASK_RUNNING, TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE (waits for a lock), EXIT_DEAD. */
static long
linux_state(const struct thread *t)
{
	if (t->state == THREAD_SLEEPING)
		return t->lockname != NULL ? 2 : 1;
	return t->state == THREAD_DEAD ? 16 : 0;
}

void
ttwu_do_wakeup(struct runq *rq, struct thread *t, bool front)
{
	t->state = THREAD_RUNNABLE;
	t->cpu = rq->cpu;
	runq_join(rq, t);
	rq->probed = t;
	CTR4(KTR_SCHED, KTR_STATE_FORMAT("thread", "prio:%d, " KTR_ATTR_LINKED), t->ident,
	     "runq add", t->prio, curthread()->ident);
	runq_insert(rq, t, front);
	if (rq->idle || runq_prefers(rq, t, rq->cur, RUNQ_MARGIN_NS))
		sched_request(rq->cpu);
}

/* Locks the last queue of a thread, and the queue that it goes to. */
static void
lock_both(struct runq *a, struct runq *b)
{
	spin_lock(a->cpu <= b->cpu ? &a->lock : &b->lock);
	if (a != b)
		spin_lock(a->cpu <= b->cpu ? &b->lock : &a->lock);
}

static void
unlock_both(struct runq *a, struct runq *b)
{
	if (a != b)
		spin_unlock(&b->lock);
	spin_unlock(&a->lock);
}

/*
 * Chooses a CPU for a thread that is on no queue, and locks the queues of that CPU and of its last
 * one. The CPUs that it may use are known only under the lock of the last one, and so are checked
 * after the choice. Nobody else changes its cpu.
 */
static struct runq *
lock_place(const struct thread *t)
{
	for (;;) {
		struct runq *last = &runqs[t->cpu], *rq = &runqs[balance_choose(t)];

		lock_both(last, rq);
		if (runq_may_run(t, rq->cpu))
			return rq;
		unlock_both(last, rq);
	}
}

void
sched_place(struct thread *t, bool front)
{
	struct runq *last = &runqs[t->cpu], *rq;
	bool lifted;

	irq_push(); /* stays on this CPU until the other one is asked to reschedule */
	rq = lock_place(t);
	lifted = ktr_port_lift(); /* of the thread that places it */
	ttwu_do_wakeup(rq, t, front);
	ktr_port_restore(lifted);
	unlock_both(last, rq);
	irq_pop();
}

/* Makes a thread that slept, or has never run, runnable. */
static void
wake_thread(struct thread *t, bool first)
{
	struct runq *last = &runqs[t->cpu], *rq;
	bool lifted;

	irq_push(); /* while a refusal is lifted */
	/* t gives up its lock only when switched out. Nobody else queues it. */
	rq = lock_place(t);
	/* Record t's wakeup even if the waker's own events are suppressed. */
	lifted = ktr_port_lift();
	fair_detach(&t->fair);
	SDT_CTR3(sched, , , wakeup, SDT_ARGS3(t, t->proc, t->tid), KTR_SCHED,
		 KTR_POINT_FORMAT("thread", KTR_ATTR_LINKED), curthread()->ident, "wokeup",
		 t->ident);
	if (!first)
		SDT_PROBE4(sched, , , sched_waking, sched_comm(t), t->tid, t->prio, t->cpu);
	ttwu_do_wakeup(rq, t, false);
	if (first)
		SDT_PROBE4(sched, , , sched_wakeup_new, sched_comm(t), t->tid, t->prio, rq->cpu);
	else
		SDT_PROBE4(sched, , , sched_wakeup, sched_comm(t), t->tid, t->prio, rq->cpu);
	ktr_port_restore(lifted);
	unlock_both(last, rq);
	irq_pop();
}

/* Makes a thread that slept runnable. Returns 1, as Linux's does, for probes of returns. */
static __attribute__((noinline)) int
try_to_wake_up(struct thread *t)
{
	wake_thread(t, false);
	return 1;
}

int
wake_up_process(struct thread *t)
{
	return try_to_wake_up(t);
}

/* Others may know the thread already, and set its CPUs meanwhile. Nobody else changes its cpu. */
void
wake_up_new_task(struct thread *t)
{
	struct runq *first, *here;

	irq_push();
	first = &runqs[t->cpu];
	here = this_runq();
	lock_both(first, here);
	if (runq_may_run(t, here->cpu))
		t->cpu = here->cpu;
	unlock_both(first, here);
	irq_pop();
	wake_thread(t, true);
}

void
sched_set_thread(const struct thread *t)
{
	ktr_port_set_thread(t->tid, t->ktr_suppress);
}

void
sched_suppress_events(bool suppress)
{
	irq_push();
	curthread()->ktr_suppress = suppress;
	sched_set_thread(curthread());
	irq_pop();
}

static uint32_t silences_ended[SILENCES + 1]; /* atomic; by number */

void
sched_silence(unsigned number)
{
	struct thread *t = curthread();

	irq_push();
	t->silence_of = number;
	t->silence = __atomic_load_n(&silences_ended[number], __ATOMIC_RELAXED);
	t->silent |= !t->ktr_suppress;
	t->ktr_suppress = true; /* with no switch in between */
	sched_set_thread(t);
	irq_pop();
}

void
sched_end_silence(unsigned number)
{
	__atomic_fetch_add(&silences_ended[number], 1, __ATOMIC_RELAXED);
	if (!curthread()->silent || curthread()->silence_of != number)
		return;
	curthread()->silent = false;
	sched_suppress_events(false);
}

/*
 * Records a switch even if one of the two threads is not recorded, or readers of the trace would
 * take the one for the other: what t does from here to resume_thread() is recorded. And saves the
 * FPU registers of a program that uses them: they are in t->fpu from here to resume_thread().
 */
static void
leave_more(struct thread *t)
{
	if (t->ktr_suppress)
		ktr_port_refuse(KTR_REFUSE_THREAD, false);
	if (t->fpu_used) {
		arch_fpu_save(&t->fpu);
		arch_fpu_off();
	}
	if (t->stepped)
		arch_user_step_switch(false);
}

static void
resume_more(struct thread *t)
{
	if (t->silent &&
	    t->silence != __atomic_load_n(&silences_ended[t->silence_of], __ATOMIC_RELAXED))
		t->silent = t->ktr_suppress = false;
	if (t->ktr_suppress)
		ktr_port_refuse(KTR_REFUSE_THREAD, true);
	if (t->fpu_used) {
		arch_fpu_on();
		arch_fpu_load(&t->fpu);
	}
	if (t->stepped)
		arch_user_step_switch(true);
}

static inline void
leave_thread(struct thread *t)
{
	if (t->on_switch != 0)
		leave_more(t);
}

static inline void
resume_thread(void)
{
	if (curthread()->on_switch != 0)
		resume_more(curthread());
}

/* The second half of a switch. Runs on the new thread's stack, with its run-queue lock held. */
static void
finish_switch(void)
{
	struct runq *rq;
	struct thread *prev;
	enum thread_state state;

	resume_thread();
	rq = this_runq();
	prev = rq->prev;
	state = prev->state;
	rq->prev = NULL;
	if (state < THREAD_DEAD) {
		spin_unlock(&rq->lock);
		return;
	}
	/* Nothing preempts this thread while only it knows of prev. */
	irq_push();
	spin_unlock(&rq->lock);
	if (state == THREAD_DEAD)
		thread_reap(prev);
	else
		sched_place(prev, thread_is_rt(prev));
	irq_pop();
}

/* Locks this CPU's queue, and counts the time of the current thread. Returns the time. */
static uint64_t
begin_switch(struct runq *rq)
{
	uint64_t now;

	spin_lock(&rq->lock);
	now = clock_ns();
	runq_charge(rq, now);
	return now;
}

/* next gets the CPU at that time. */
static void
begin_run(struct runq *rq, struct thread *next, uint64_t now)
{
	if (thread_is_fair(next))
		fair_run(&rq->users, &next->fair);
	else if (next->slice == 0)
		next->slice = SCHED_RR_SLICE;
	next->zero_ns = now - next->runtime_ns;
}

/*
 * Runs the best thread. The caller has queued the current thread, or put it to sleep. Called with
 * rq->lock held, at the time of begin_switch(), and interrupts off; on return, perhaps on another
 * CPU, the lock is released.
 */
static void
switch_out(struct runq *rq, uint64_t now)
{
	struct pcpu *pc = this_pcpu();
	struct thread *prev = rq->cur, *next = balance_best(rq, NULL);
	bool irq_was_on = pc->irq_was_on;

	/* Only rq->lock may keep interrupts off, or they would stay off in the next thread. */
	if (pc->irq_depth != 1)
		panic("thread %u gives up its CPU with %u spin locks held, interrupts off %d deep",
		      prev->tid, pc->locks - 1, pc->irq_depth - 1);
	__atomic_store_n(&pc->resched, false, __ATOMIC_RELAXED);
	if (next != NULL)
		runq_remove(rq, next);
	else
		next = pc->idle;
	rq->idle = next == pc->idle;
	next->state = THREAD_RUNNING;
	next->cpu = rq->cpu;
	__atomic_store_n(&rq->cur_prio, next->prio, __ATOMIC_RELAXED);
	begin_run(rq, next, now);
	if (next == prev) {
		SDT_CTR3(sched, , , remain_cpu, SDT_ARGS0(), KTR_SCHED,
			 KTR_STATE_FORMAT("thread", "prio:%d"), next->ident, "running", next->prio);
		resume_thread();
		spin_unlock(&rq->lock);
		return;
	}
	rq->probed = next;
	SDT_PROBE3(sched, , , off_cpu, next, next->proc, next->tid);
	SDT_PROBE7(sched, , , sched_switch, sched_comm(prev), linux_pid(prev), linux_prio(prev),
		   linux_state(prev), sched_comm(next), linux_pid(next), linux_prio(next));
	next->switches++;
	pc->switches++;
	*(prev->state == THREAD_SLEEPING ? &prev->waits : &prev->interruptions) += 1;
	rq->cur = next;
	rq->prev = prev;
	/* First the address space: an exiting process frees its own after this. */
	smp_use_root(next->root);
	arch_context_prepare((uintptr_t)next->kstack + KSTACK_SIZE, next->tls);
	arch_set_curthread(next);
	arch_ktr_set_tid(next->tid);
	SDT_CTR3(sched, , , on_cpu, SDT_ARGS0(), KTR_SCHED, KTR_STATE_FORMAT("thread", "prio:%d"),
		 next->ident, "running", next->prio);
	arch_context_switch(&prev->ctx, &next->ctx);

	this_pcpu()->irq_was_on = irq_was_on;
	finish_switch();
}

void
sched_first(void)
{
	this_pcpu()->irq_was_on = true;
	finish_switch();
}

void
schedule(struct spinlock *lk)
{
	struct thread *t = curthread();
	struct runq *rq = this_runq(); /* interrupts are off: lk is held */
	uint64_t now = begin_switch(rq);

	spin_unlock(lk);
	runq_leave(rq, t);
	t->state = THREAD_SLEEPING;
	leave_thread(t);
	if (t->lockname != NULL)
		SDT_CTR4(sched, , , sleep, SDT_ARGS0(), KTR_SCHED,
			 KTR_STATE_FORMAT("thread", "prio:%d, lockname:\"%s\""), t->ident,
			 "blocked", t->prio, t->lockname);
	else
		SDT_CTR4(sched, , , sleep, SDT_ARGS0(), KTR_SCHED,
			 KTR_STATE_FORMAT("thread", "prio:%d, wmesg:\"%s\""), t->ident, "sleep",
			 t->prio, t->wmesg);
	switch_out(rq, now);
}

void
sched_exit(void)
{
	struct thread *t = curthread();
	struct runq *rq;
	uint64_t now;

	irq_push();
	rq = this_runq();
	now = begin_switch(rq);
	this_pcpu()->irq_depth--; /* the lock keeps its own nesting */
	runq_leave(rq, t);
	leave_thread(t);
	KTR_STATE1(KTR_SCHED, "thread", t->ident, "thread exit", "prio:%d", t->prio);
	t->state = THREAD_DEAD;
	switch_out(rq, now);
	panic("thread %u runs after its end", t->tid);
}

/* Does a better thread than t, which runs here, wait, while another CPU has a worse one? */
static bool
best_leaves_cpu(const struct runq *rq, const struct thread *t)
{
	const struct thread *best = runq_best(rq);

	return best != NULL && runq_prefers(rq, best, t, 0) && balance_worst(t) != MAX_CPUS;
}

/* A thread of real time that neither yields nor has used up its slice stays first of its level. */
static bool
stays_first(const struct thread *t, bool yields)
{
	return thread_is_rt(t) && !yields && t->slice != 0;
}

/* Puts the current thread on the queue, unless it is the idle thread. rq->lock held. */
static void
requeue_current(struct runq *rq, bool yields)
{
	struct thread *t = rq->cur;

	if (t == this_pcpu()->idle) {
		t->state = THREAD_RUNNABLE;
		return;
	}
	if (!runq_may_run(t, rq->cpu) || (stays_first(t, yields) && best_leaves_cpu(rq, t))) {
		t->state = THREAD_MOVING; /* finish_switch() queues it elsewhere */
		runq_leave(rq, t);
		fair_detach(&t->fair);
		return;
	}
	if (thread_is_fair(t) && yields)
		fair_yield(&rq->users, &t->fair);
	else if (thread_is_fair(t))
		runq_renew(rq, t);
	KTR_STATE1(KTR_SCHED, "thread", t->ident, "runq add", "prio:%d", t->prio);
	t->state = THREAD_RUNNABLE;
	runq_insert(rq, t, stays_first(t, yields));
}

void
sched_give_away(bool yields)
{
	struct runq *rq;
	uint64_t now;

	irq_push(); /* stay on the CPU whose lock is taken below */
	rq = this_runq();
	now = begin_switch(rq);
	this_pcpu()->irq_depth--;
	leave_thread(rq->cur);
	requeue_current(rq, yields);
	switch_out(rq, now);
}

void
sched_yield(void)
{
	if (stop_must_not_wait())
		panic("yield: nobody else runs while the machine is stopped");
	KTR_POINT0(KTR_SCHED, "thread", curthread()->ident, "yield");
	sched_give_away(true);
}

void
sched_preempt(void)
{
	bool wanted;

	irq_push();
	wanted = __atomic_load_n(&this_pcpu()->resched, __ATOMIC_RELAXED);
	irq_pop();
	if (!wanted)
		return;
	SDT_PROBE0(sched, , , preempt);
	sched_give_away(false);
}

void
sched_preempt_irq(void)
{
	SDT_CTR2(sched, , , preempt, SDT_ARGS0(), KTR_SCHED, KTR_POINT_FORMAT("thread", "none"),
		 curthread()->ident, "preempt");
	sched_give_away(false);
}

static void
trace_running(void *arg)
{
	const struct thread *t = curthread();

	KTR_STATE1(KTR_SCHED, "thread", t->ident, "running", "prio:%d", t->prio);
}

void
sched_trace_running(void)
{
	if (runqs[0].cur != NULL)
		smp_call_all(trace_running, NULL);
}

const struct thread *
sched_probed(unsigned cpu)
{
	return runqs[cpu].probed;
}

unsigned
sched_runnable(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ncpus; i++)
		if (pcpus[i] != NULL && pcpus[i]->online)
			n += __atomic_load_n(&runqs[i].load, __ATOMIC_RELAXED) +
			     !__atomic_load_n(&runqs[i].idle, __ATOMIC_RELAXED);
	return n;
}

uint64_t
sched_idle_ns(unsigned cpu)
{
	return __atomic_load_n(&pcpus[cpu]->idle->runtime_ns, __ATOMIC_RELAXED);
}
