/*
 * sched_test.c - threads, preemption, the timer, callouts, calls on all CPUs.
 */
#include "arch/irq.h"
#include "arch/pcpu.h"
#include "arch/smp.h"
#include "kernel/abi/sched.h"
#include "kernel/lib/clock.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "kernel/sysctl/registry.h"
#include "ktr/control.h"
#include "ktr/hook.h"
#include "tests/kernel/ktest.h"

#define MS 1000000ul

static uint32_t flag; /* atomic */

static bool
flag_is(void *arg)
{
	return __atomic_load_n(&flag, __ATOMIC_ACQUIRE) == *(uint32_t *)arg;
}

static bool
wait_flag(uint32_t value)
{
	return ktest_wait(flag_is, &value);
}

static void
raise_flag(void *arg)
{
	__atomic_fetch_add(&flag, 1, __ATOMIC_RELEASE);
}

KTEST(clock_never_goes_back_and_agrees_with_sleeps)
{
	uint64_t last = clock_ns(), start = last;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t now = clock_ns();
		KT_ASSERT(now >= last);
		last = now;
	}
	thread_sleep_ns(50 * MS, 0, "test");
	KT_ASSERT(clock_ns() - start >= 50 * MS);
}

static bool spin_on;

static void
spinner(void *arg)
{
	while (__atomic_load_n(&spin_on, __ATOMIC_ACQUIRE))
		arch_relax();
	raise_flag(NULL);
}

KTEST(a_better_thread_preempts_spinning_ones_on_every_cpu)
{
	unsigned n = ncpus + 2;

	flag = 0;
	spin_on = true;
	for (unsigned i = 0; i < n; i++)
		KT_ASSERT(thread_create("spinner", PRIO_USER, spinner, NULL) != NULL);
	for (unsigned i = 0; i < 20; i++) /* without preemption this would never return */
		thread_sleep_ns(MS, 0, "test");
	__atomic_store_n(&spin_on, false, __ATOMIC_RELEASE);
	KT_ASSERT(wait_flag(n));
}

KTEST(threads_of_one_priority_share_a_cpu)
{
	/* One spinning thread more than there are CPUs: all end only if each gets a turn. */
	flag = 0;
	spin_on = true;
	for (unsigned i = 0; i < ncpus + 1; i++)
		KT_ASSERT(thread_create("sharer", PRIO_USER, spinner, NULL) != NULL);
	KT_ASSERT(thread_create("switch", PRIO_USER, raise_flag, NULL) != NULL);
	KT_ASSERT(wait_flag(1));
	__atomic_store_n(&spin_on, false, __ATOMIC_RELEASE);
	KT_ASSERT(wait_flag(ncpus + 2));
}

KTEST(callouts_run_in_order_and_not_early)
{
	static struct callout c[3];
	uint64_t now = clock_ns();

	flag = 0;
	for (unsigned i = 0; i < 3; i++)
		callout_init(&c[i], raise_flag, NULL);
	callout_set(&c[2], now + 30 * MS);
	callout_set(&c[0], now + 10 * MS);
	callout_set(&c[1], now + 20 * MS);
	KT_ASSERT(wait_flag(3));
	KT_ASSERT(clock_ns() >= now + 30 * MS);
}

#define MANY 200

static struct callout many[MANY];
static const struct callout *first_run[MANY];

static void
note_run(void *arg)
{
	first_run[flag++] = arg;
}

/* On a CPU whose interrupts are off. How many in a row are due is what others wait for. */
KTEST(callouts_that_are_due_together_run_in_order_and_some_at_a_time)
{
	uint64_t now, last = 0, random = 1, next;
	const struct callout *c = NULL;
	unsigned listed = 0, before = 0, most = 0, runs = 0;
	bool ascends = true;

	flag = 0;
	irq_push();
	now = clock_ns();
	for (unsigned i = 0; i < MANY; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		callout_init(&many[i], note_run, &many[i]);
		callout_set(&many[i], now - (random >> 33) % MS);
	}
	for (unsigned i = 0; i < MANY; i += 7)
		callout_stop(&many[i]);
	while ((c = callout_next_unlocked(arch_cpu(), c)) != NULL) {
		ascends &= c->deadline_ns >= last;
		last = c->deadline_ns;
		listed += c->fn == note_run;
	}
	do {
		next = callout_run(now);
		most = flag - before > most ? flag - before : most;
		before = flag;
		runs++;
	} while (next <= now);
	irq_pop();
	KT_ASSERT(ascends);
	KT_EQ(listed, MANY - (MANY + 6) / 7);
	KT_EQ(flag, listed);
	KT_LE(most, 64);
	KT_GE(runs, 3);
	for (unsigned i = 1; i < flag; i++)
		KT_ASSERT(first_run[i - 1]->deadline_ns <= first_run[i]->deadline_ns);
}

KTEST(a_stopped_callout_does_not_run)
{
	static struct callout c;
	bool stopped;

	flag = 0;
	callout_init(&c, raise_flag, NULL);
	irq_push(); /* or it might run before it is stopped */
	callout_set(&c, clock_ns() + 20 * MS);
	stopped = callout_stop(&c);
	irq_pop();
	KT_ASSERT(stopped);
	KT_ASSERT(!callout_stop(&c));
	thread_sleep_ns(40 * MS, 0, "test");
	KT_EQ(__atomic_load_n(&flag, __ATOMIC_ACQUIRE), 0);
}

/* Waits with interrupts off for what another CPU does, but not for ever: it may have to wait. */
static void
wait_a_little(const uint32_t *event)
{
	uint64_t start = clock_ns();

	while (__atomic_load_n(event, __ATOMIC_ACQUIRE) == 0 && clock_ns() - start < 20 * MS)
		arch_relax();
}

static struct {
	struct callout c;
	bool sets_itself;
	uint32_t begun, ended, never; /* atomic */
} slow;

static void
run_slowly(void *arg)
{
	__atomic_store_n(&slow.begun, 1, __ATOMIC_RELEASE);
	wait_a_little(&slow.never);
	if (slow.sets_itself)
		callout_set(&slow.c, clock_ns() + 1000000 * MS);
	__atomic_fetch_add(&slow.ended, 1, __ATOMIC_RELEASE);
}

/* CPU 0 runs the callout; CPU 1 stops it meanwhile, and may have set it again. */
static void
run_or_stop(unsigned cpu, void *arg)
{
	if (cpu == 0) {
		callout_set(&slow.c, clock_ns());
		return;
	}
	while (__atomic_load_n(&slow.begun, __ATOMIC_ACQUIRE) == 0)
		arch_relax();
	if (!slow.sets_itself)
		callout_set(&slow.c, clock_ns() + 1000000 * MS);
	bool was_set = callout_stop(&slow.c);
	if (!slow.sets_itself) /* or it may have set itself before */
		KT_ASSERT(was_set);
	KT_EQ(__atomic_load_n(&slow.ended, __ATOMIC_ACQUIRE), 1);
	KT_ASSERT(!callout_stop(&slow.c));
}

KTEST(a_stopped_callout_does_not_run_any_more_and_is_not_set)
{
	if (ncpus == 1)
		ktest_skip("one CPU runs the callout, and another stops it");
	for (unsigned i = 0; i < 2; i++) {
		slow.sets_itself = i > 0;
		slow.begun = slow.ended = 0;
		callout_init(&slow.c, run_slowly, NULL);
		ktest_start(2, true, run_or_stop, NULL);
		ktest_join();
	}
}

static uint32_t visited[MAX_CPUS];

static void
visit(void *arg)
{
	visited[arch_cpu()]++;
}

KTEST(smp_call_all_runs_once_on_every_cpu)
{
	for (unsigned n = 0; n < ncpus; n++)
		visited[n] = 0;
	for (unsigned i = 0; i < 50; i++)
		smp_call_all(visit, NULL);
	for (unsigned n = 0; n < ncpus; n++)
		KT_EQ(visited[n], 50);
}

KTEST(smp_call_one_runs_on_that_cpu_alone)
{
	for (unsigned n = 0; n < ncpus; n++)
		visited[n] = 0;
	for (unsigned n = 0; n < ncpus; n++)
		for (unsigned i = 0; i <= n; i++)
			smp_call_one(n, visit, NULL);
	for (unsigned n = 0; n < ncpus; n++)
		KT_EQ(visited[n], n + 1);
}

static void
caller(void *arg)
{
	/* Few rounds: on a busy host each takes a time slice for every CPU. */
	for (unsigned i = 0; i < 4; i++) {
		smp_call_all(visit, NULL);
		smp_call_one(i % ncpus, visit, NULL);
		smp_stop_run(visit, NULL);
	}
	raise_flag(NULL);
}

KTEST(smp_calls_from_many_threads_at_once_all_return)
{
	flag = 0;
	for (unsigned i = 0; i < 4; i++)
		KT_ASSERT(thread_create("caller", PRIO_USER, caller, NULL) != NULL);
	KT_ASSERT(wait_flag(4));
}

static uint64_t before_stop[MAX_CPUS], moved;
static uint64_t beats[MAX_CPUS]; /* each written by one thread */

static void
beater(void *arg)
{
	uint64_t *beat = arg;

	while (__atomic_load_n(&spin_on, __ATOMIC_ACQUIRE))
		__atomic_store_n(beat, *beat + 1, __ATOMIC_RELEASE);
	raise_flag(NULL);
}

static void
look_twice(void *arg)
{
	for (unsigned n = 0; n < ncpus; n++)
		before_stop[n] = __atomic_load_n(&beats[n], __ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < 10000; i++)
		arch_relax();
	for (unsigned n = 0; n < ncpus; n++)
		moved += __atomic_load_n(&beats[n], __ATOMIC_ACQUIRE) != before_stop[n];
}

KTEST(smp_stop_run_stands_everything_else_still)
{
	flag = 0;
	moved = 0;
	spin_on = true;
	for (unsigned n = 0; n < ncpus; n++)
		KT_ASSERT(thread_create("beater", PRIO_USER, beater, &beats[n]) != NULL);
	thread_sleep_ns(20 * MS, 0, "test");
	for (unsigned i = 0; i < 10; i++)
		smp_stop_run(look_twice, NULL);
	__atomic_store_n(&spin_on, false, __ATOMIC_RELEASE);
	KT_ASSERT(wait_flag(ncpus));
	KT_EQ(moved, 0);
}

static bool go; /* atomic */

/* Runs with interrupts off, so that only an NMI reaches its CPU. */
static void
deaf_beater(void *arg)
{
	uint64_t *beat = arg;

	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		arch_relax();
	irq_push();
	raise_flag(NULL);
	while (__atomic_load_n(&spin_on, __ATOMIC_ACQUIRE))
		__atomic_store_n(beat, *beat + 1, __ATOMIC_RELEASE);
	irq_pop();
	raise_flag(NULL);
}

/*
 * All CPUs turn interrupts off; the others are stopped and released. False: a call on all CPUs by
 * another thread was in progress, which holds one CPU until all answer; or the host did not run
 * one.
 */
static bool
stop_deaf_cpus(uint64_t wait_ns, unsigned *stopped)
{
	uint64_t end;
	bool all;

	flag = 0;
	moved = 0;
	go = false;
	spin_on = true;
	for (unsigned n = 1; n < ncpus; n++)
		KT_ASSERT(thread_create("deaf", PRIO_USER, deaf_beater, &beats[n]) != NULL);
	irq_push();
	__atomic_store_n(&go, true, __ATOMIC_RELEASE);
	end = clock_ns() + wait_ns;
	while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) != ncpus - 1 && clock_ns() < end)
		arch_relax();
	all = __atomic_load_n(&flag, __ATOMIC_ACQUIRE) == ncpus - 1;
	if (all) {
		*stopped = stop_others();
		look_twice(NULL);
		stop_resume_others();
	}
	__atomic_store_n(&spin_on, false, __ATOMIC_RELEASE);
	irq_pop();
	KT_ASSERT(wait_flag(2 * (ncpus - 1)));
	return all;
}

KTEST(smp_stop_others_reaches_cpus_with_interrupts_off)
{
	unsigned stopped = 0;
	bool reaches, done = false;

	irq_push();
	reaches = arch_nmi_send(arch_cpu());
	irq_pop();
	/* Less than the watchdog waits, and all less than KTEST_DEADLINE_S. */
	for (unsigned tries = 1; !done && tries < 50; tries++)
		done = stop_deaf_cpus(tries * 80 * MS, &stopped);
	KT_ASSERT(done);
	KT_EQ(stopped, reaches ? ncpus - 1 : 0);
	if (reaches)
		KT_EQ(moved, 0);
}

static void
short_life(void *arg)
{
	raise_flag(arg);
}

KTEST(many_threads_are_born_and_buried)
{
	flag = 0;
	for (unsigned i = 0; i < 200; i++)
		KT_ASSERT(thread_create("short", PRIO_KERN, short_life, NULL) != NULL);
	KT_ASSERT(wait_flag(200));
}

#define MOVED 4

static struct thread *moved_threads[MOVED];
static struct spinlock moved_lock = SPINLOCK_INIT("moved");

static void
sleep_often(void *arg)
{
	while (__atomic_load_n(&spin_on, __ATOMIC_ACQUIRE)) {
		spin_lock(&moved_lock);
		sleep_on(&moved_threads, &moved_lock, "test", 0, clock_ns() + MS);
		spin_unlock(&moved_lock);
	}
	raise_flag(NULL);
}

/* The first one wakes them; the others say where they may run, and in which class. */
static void
wake_or_move(unsigned i, void *arg)
{
	uint64_t random = i;

	for (unsigned round = 0; round < 20000; round++) {
		struct thread *t;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		t = moved_threads[(random >> 33) % MOVED];
		if (i == 0)
			wakeup(&moved_threads);
		else
			sched_set_cpus(t, 1ul << (random >> 40) % ncpus);
		if (i == 1 && round % 64 == 0)
			sched_set_params(t,
					 &(struct sched_params){
					     .policy = random >> 60 & 1 ? SCHED_FIFO : SCHED_OTHER,
					     .rt_prio = random >> 60 & 1,
					 });
	}
}

/* runq_insert() panics if a thread may not run where it is queued. */
KTEST(a_thread_that_is_woken_is_queued_where_it_may_run_now)
{
	if (ncpus == 1)
		ktest_skip("threads move between CPUs");
	flag = 0;
	spin_on = true;
	for (unsigned i = 0; i < MOVED; i++) {
		moved_threads[i] = thread_alloc("moved", PRIO_USER, sleep_often, NULL);
		KT_ASSERT(moved_threads[i] != NULL);
	}
	for (unsigned i = 0; i < MOVED; i++)
		wake_up_new_task(moved_threads[i]);
	ktest_start(4, false, wake_or_move, NULL);
	ktest_join();
	__atomic_store_n(&spin_on, false, __ATOMIC_RELEASE);
	KT_ASSERT(wait_flag(MOVED));
}

/* A new thread starts on CPU 1, while one on CPU 0 keeps it to CPU 0. */
static struct {
	struct thread *thread;          /* atomic */
	uint32_t setting, set, placing; /* atomic */
} birth;

/* It is about to set the CPUs, with the lock of the queue that it has found. */
static void
hold_setting(const struct ktr_firing *f)
{
	if (arch_cpu() != 0 || __atomic_load_n(&birth.thread, __ATOMIC_ACQUIRE) == NULL)
		return;
	__atomic_store_n(&birth.setting, 1, __ATOMIC_RELEASE);
	wait_a_little(&birth.placing);
}

/* CPU 1 has chosen a CPU for the thread. */
static void
hold_placing(const struct ktr_firing *f)
{
	if (f->args[1] != (uintptr_t)__atomic_load_n(&birth.thread, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&birth.placing, 1, __ATOMIC_RELEASE);
	wait_a_little(&birth.set);
}

static void
start_or_set(unsigned cpu, void *arg)
{
	struct thread *t = arg;

	if (cpu == 1) {
		while (__atomic_load_n(&birth.setting, __ATOMIC_ACQUIRE) == 0)
			sched_yield();
		wake_up_new_task(t);
		return;
	}
	__atomic_store_n(&birth.thread, t, __ATOMIC_RELEASE);
	sched_set_cpus(t, 1);
	__atomic_store_n(&birth.set, 1, __ATOMIC_RELEASE);
}

/* Likewise. */
KTEST(a_thread_that_starts_is_queued_where_it_may_run_now)
{
	int setting, placing;
	struct thread *t;

	if (ncpus == 1)
		ktest_skip("it may run on two CPUs");
	setting = ktr_owner_register("setting", hold_setting);
	placing = ktr_owner_register("placing", hold_placing);
	t = thread_alloc("new", PRIO_USER, raise_flag, NULL);
	KT_ASSERT(setting > 0 && placing > 0 && t != NULL);
	flag = 0;
	sched_set_cpus(t, 3);
	KT_EQ(ktr_select((unsigned)setting, "*\"thread\"*cpus:*", true, NULL, NULL, 0), 1);
	KT_EQ(ktr_select((unsigned)placing, "fbt::ttwu_do_wakeup:entry", true, NULL, NULL, 0), 1);
	ktest_start(2, true, start_or_set, t);
	ktest_join();
	KT_ASSERT(wait_flag(1));
	KT_EQ(birth.setting + birth.placing, 2);
	KT_EQ(ktr_owner_unregister((unsigned)placing), 0);
	KT_EQ(ktr_owner_unregister((unsigned)setting), 0);
}

/* Runs as a real-time thread between two ticks, and not at the second one. */
static bool
owes_between_ticks(void)
{
	static const struct sched_params rt = {.policy = SCHED_FIFO, .rt_prio = 1}, other = {0};
	uint64_t end;
	unsigned cpu;

	irq_push();
	cpu = arch_cpu();
	sched_set_params(curthread(), &rt);
	end = clock_ns() + 60 * MS;
	while (clock_ns() < end)
		arch_relax();
	sched_set_params(curthread(), &other);
	irq_pop(); /* here comes the tick */
	return __atomic_load_n(&runqs[cpu].throttled, __ATOMIC_RELAXED);
}

KTEST(real_time_threads_owe_what_they_run_between_ticks)
{
	char err[64];
	bool owes = false;

	KT_EQ(sysctl_set_text("kernel.sched_rt_runtime_us", "400000", err, sizeof(err)), 0);
	for (unsigned i = 0; i < 10 && !owes; i++)
		owes = owes_between_ticks();
	KT_EQ(sysctl_set_text("kernel.sched_rt_runtime_us", "950000", err, sizeof(err)), 0);
	KT_ASSERT(owes);
}

/* Makes a thread when the next number is n. Returns the one that it got. */
static uint32_t
made_at(uint64_t n)
{
	struct thread *t;
	uint32_t tid;

	__atomic_store_n(&thread_next, n, __ATOMIC_RELAXED);
	t = thread_alloc("numbered", PRIO_USER, raise_flag, NULL);
	KT_ASSERT(t != NULL);
	tid = t->tid;
	thread_discard(t);
	return tid;
}

static int
count_visit(struct thread *t, void *visits)
{
	(*(unsigned *)visits)++;
	return 0;
}

static void
take_thread(const struct thread *t, void *found)
{
	*(const struct thread **)found = t;
}

KTEST(each_thread_is_visited_once_and_found_by_its_number)
{
	static struct thread *made[100];
	const struct thread *found = NULL;
	unsigned visits = 0, before;

	for (unsigned i = 0; i < 100; i++) {
		made[i] = thread_alloc("visited", PRIO_USER, NULL, NULL);
		KT_ASSERT(made[i] != NULL);
	}
	do { /* again if others came or went meanwhile */
		visits = 0;
		before = thread_count();
		KT_EQ(thread_each(count_visit, &visits), 0);
	} while (thread_count() != before);
	KT_EQ(visits, before);
	for (unsigned i = 0; i < 100; i++) {
		KT_ASSERT(thread_with(made[i]->tid, take_thread, &found));
		KT_ASSERT(found == made[i]);
		thread_discard(made[i]);
	}
	KT_ASSERT(!thread_with(TID_MAX, take_thread, &found));
}

KTEST(numbers_that_are_in_use_are_not_given_again)
{
	uint64_t next = thread_next, round = TID_MAX + 1ul, at = round + 1000000;
	struct proc *p;
	int error;

	thread_register_numbers(proc_has_number); /* as at the end of the boot */
	thread_next = at;
	p = proc_alloc("numbered", 0, raise_flag, &error);
	KT_ASSERT(p != NULL);
	KT_EQ(p->pid, 1000000);
	p->pgid = p->pid + 1;
	p->sid = p->pid + 3;
	spin_lock(&proc_lock);
	proc_join(p);
	spin_unlock(&proc_lock);
	KT_ASSERT(made_at(2 * round) > 2); /* the reaper has 2 */
	KT_EQ(made_at(at), 1000002);
	KT_EQ(made_at(at + 3), 1000004);
	KT_EQ(made_at(round + curthread()->tid) != curthread()->tid, true);
	spin_lock(&proc_lock);
	proc_leave(p);
	spin_unlock(&proc_lock);
	KT_EQ(made_at(at + 1), 1000001);
	KT_EQ(made_at(at) != 1000000, true); /* p's thread is still there */
	proc_discard(p);
	KT_EQ(made_at(at), 1000000);
	thread_next = round + next; /* so that those that were made meanwhile are seen */
}
