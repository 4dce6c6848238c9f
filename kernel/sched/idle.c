/*
 * idle.c - the thread of each CPU that runs when nothing else can. Locking: sched.h.
 */
#include "kernel/sched/sched.h"

#include <ktr_port.h>

#include "arch/irq.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/sdt.h"

/* Takes a thread from another CPU. True: it is on our queue now. */
static bool
idle_steal(void)
{
	struct runq *rq = this_runq();
	struct thread *t;

	spin_lock(&rq->lock);
	t = balance_steal(rq);
	if (t != NULL)
		ttwu_do_wakeup(rq, t, false);
	spin_unlock(&rq->lock);
	return t != NULL;
}

void
sched_idle(void)
{
	struct runq *rq;

	arch_irq_disable();
	rq = this_runq();
	for (;;) {
		if (__atomic_load_n(&rq->load, __ATOMIC_RELAXED) > 0 || idle_steal()) {
			sched_give_away(false);
		} else {
			/*
			 * seq_cst: to queue a thread, another CPU raises load and then reads
			 * resched. It sends no interrupt if resched is already set.
			 */
			__atomic_store_n(&this_pcpu()->resched, false, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&rq->load, __ATOMIC_SEQ_CST) == 0)
				arch_irq_enable_and_wait();
		}
		arch_irq_disable();
	}
}

void
sched_begin_cpu(void)
{
	const struct thread *t = curthread();

	sched_set_thread(t);
	KTR_STATE2(KTR_SCHED, "thread", t->ident, "running", "prio:%d", t->prio, "starts:%u",
		   arch_cpu());
}

void
sched_init(void)
{
	struct thread *idle = thread_alloc("idle/0", PRIO_IDLE, NULL, NULL);

	if (idle == NULL)
		panic("no memory for the first thread");
	irq_push();
	runq_init(&runqs[0], 0, idle);
	this_pcpu()->idle = idle;
	arch_set_curthread(idle);
	sched_begin_cpu();
	irq_pop();
}

uintptr_t
sched_prepare_cpu(unsigned cpu)
{
	char name[16];
	struct thread *idle;

	snprintf(name, sizeof(name), "idle/%u", cpu);
	idle = thread_alloc(name, PRIO_IDLE, NULL, NULL);
	if (idle == NULL)
		return 0;
	runq_init(&runqs[cpu], cpu, idle);
	pcpus[cpu]->idle = idle;
	pcpus[cpu]->md.curthread = idle;
	pcpus[cpu]->md.ktr_tid = idle->tid;
	return (uintptr_t)idle->kstack + KSTACK_SIZE;
}
