/*
 * threads.c - the threads of hwlat, osnoise and timerlat: one on each CPU, while the tracer is on.
 * Locking: ftrace_lock for start and stop; a lock for each thread, under which it decides to sleep,
 * so that neither what it waits for nor the end is missed.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/sched.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"

bool
tracer_thread_runs(const struct tracer_thread *me)
{
	return __atomic_load_n(&me->all->running, __ATOMIC_ACQUIRE);
}

bool
tracer_thread_sleep(struct tracer_thread *me, uint64_t until_ns)
{
	bool woken;

	spin_lock(&me->lock);
	while (!me->woken && tracer_thread_runs(me) && clock_ns() < until_ns)
		sleep_on(me, &me->lock, me->all->name, 0, until_ns);
	woken = me->woken;
	me->woken = false;
	spin_unlock(&me->lock);
	return woken;
}

void
tracer_thread_wake(struct tracer_thread *t)
{
	spin_lock(&t->lock);
	t->woken = true;
	wakeup(t);
	spin_unlock(&t->lock);
}

static void
tracer_thread_main(void *arg)
{
	struct tracer_thread *me = arg;

	me->all->run(me);
	spin_lock(&me->lock);
	me->alive = false;
	wakeup(me);
	spin_unlock(&me->lock);
}

static bool
tracer_thread_start(struct tracer_threads *all, unsigned cpu)
{
	struct tracer_thread *me = &all->of[cpu];
	char name[KTR_THREAD_NAME];
	struct thread *t;

	*me = (struct tracer_thread){.all = all, .cpu = cpu};
	spin_init(&me->lock, all->name);
	snprintf(name, sizeof(name), all->names, cpu);
	t = thread_alloc(name, all->prio, tracer_thread_main, me);
	if (t == NULL)
		return false;
	if (all->prio > PRIO_KERN && all->prio < PRIO_FAIR)
		t->sched =
		    (struct sched_params){.policy = SCHED_FIFO, .rt_prio = PRIO_RT - all->prio};
	t->cpu = cpu;
	t->cpus = 1ul << cpu;
	me->alive = true;
	wake_up_new_task(t);
	return true;
}

int
tracer_threads_start(struct tracer_threads *all, uint64_t cpus)
{
	__atomic_store_n(&all->running, true, __ATOMIC_RELEASE);
	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		if ((cpus >> cpu & 1) != 0 && !tracer_thread_start(all, cpu)) {
			tracer_threads_stop(all);
			return -ENOMEM;
		}
	return 0;
}

void
tracer_threads_stop(struct tracer_threads *all)
{
	__atomic_store_n(&all->running, false, __ATOMIC_RELEASE);
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		struct tracer_thread *t = &all->of[cpu];

		if (t->all == NULL)
			continue;
		spin_lock(&t->lock);
		wakeup(t);
		while (t->alive)
			sleep_on(t, &t->lock, all->name, 0, DEADLINE_NEVER);
		spin_unlock(&t->lock);
	}
}
