/*
 * sync_test.c - spin locks, mutexes, condition variables, sleeping and waking.
 */
#include "arch/irq.h"
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/sched.h"
#include "kernel/dev/irq.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/sched/cpu_start.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "ktr/hook.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define WORKERS 8
#define ROUNDS  3000

static struct spinlock test_spin = SPINLOCK_INIT("test spin");
static struct mutex test_mutex = MUTEX_INIT("test mutex");
static struct cond test_cond;
static unsigned counter, done; /* guarded by the lock under test; done is atomic */

static void
run_workers(void (*fn)(void *))
{
	counter = done = 0;
	for (unsigned i = 0; i < WORKERS; i++)
		KT_ASSERT(thread_create("worker", PRIO_USER, fn, NULL) != NULL);
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != WORKERS)
		thread_sleep_ns(1000000, 0, "workers");
}

static void
finished(void)
{
	__atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
}

static void
spin_worker(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		spin_lock(&test_spin);
		unsigned v = counter; /* a lost update would show in the sum */
		arch_relax();
		counter = v + 1;
		spin_unlock(&test_spin);
	}
	finished();
}

KTEST(spin_lock_excludes_on_all_cpus)
{
	run_workers(spin_worker);
	KT_EQ(counter, WORKERS * ROUNDS);
}

KTEST(spin_lock_knows_its_owner_and_turns_interrupts_off)
{
	KT_ASSERT(arch_irq_enabled());
	KT_EQ(test_spin.owner, -1);
	spin_lock(&test_spin);
	KT_EQ(test_spin.owner, (int32_t)arch_cpu());
	KT_ASSERT(!arch_irq_enabled());
	KT_ASSERT(!spin_trylock(&test_spin));
	irq_push();
	irq_pop();
	KT_ASSERT(!arch_irq_enabled());
	spin_unlock(&test_spin);
	KT_ASSERT(arch_irq_enabled());
}

static void
mutex_worker(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		mutex_lock(&test_mutex);
		unsigned v = counter;
		if (i % 64 == 0)
			sched_yield();
		counter = v + 1;
		mutex_unlock(&test_mutex);
	}
	finished();
}

KTEST(mutex_excludes_also_when_its_owner_is_switched_out)
{
	run_workers(mutex_worker);
	KT_EQ(counter, WORKERS * ROUNDS);
	KT_ASSERT(test_mutex.owner == NULL);
}

#define HOGS 16

/* The owner has the smallest share beside threads that compute, all of one user on one CPU. */
static struct {
	struct thread *owner, *hogs[HOGS];
	bool has_it, may_end, over; /* atomic */
} slow;

static void
hog(void *arg)
{
	while (!__atomic_load_n(&slow.over, __ATOMIC_ACQUIRE))
		arch_relax();
	finished();
}

static void
own_slowly(void *arg)
{
	mutex_lock(&test_mutex);
	__atomic_store_n(&slow.has_it, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&slow.may_end, __ATOMIC_ACQUIRE))
		arch_relax();
	mutex_unlock(&test_mutex);
	while (!__atomic_load_n(&slow.over, __ATOMIC_ACQUIRE))
		thread_sleep_ns(1000000, 0, "over");
	finished();
}

static void
start_on_first_cpu(struct thread **t, void (*fn)(void *))
{
	*t = thread_alloc("slow", PRIO_USER, fn, NULL);
	KT_ASSERT(*t != NULL);
	sched_set_cpus(*t, 1);
	wake_up_new_task(*t);
}

static uint64_t
hogs_ran_ns(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < HOGS; i++)
		sum += sched_runtime_ns(slow.hogs[i]);
	return sum;
}

static void
end_slow(unsigned threads)
{
	__atomic_store_n(&slow.over, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != threads)
		thread_sleep_ns(1000000, 0, "over");
}

KTEST(mutex_owner_goes_before_the_others_of_its_user_while_one_waits)
{
	static const struct sched_params idle = {.policy = SCHED_IDLE};
	uint64_t before;

	done = 0;
	slow.has_it = slow.may_end = slow.over = false;
	start_on_first_cpu(&slow.owner, own_slowly);
	while (!__atomic_load_n(&slow.has_it, __ATOMIC_ACQUIRE))
		thread_sleep_ns(1000000, 0, "owner");
	for (unsigned i = 0; i < HOGS; i++)
		start_on_first_cpu(&slow.hogs[i], hog);
	sched_set_params(slow.owner, &idle);
	while (!__atomic_load_n(&slow.owner->queued, __ATOMIC_ACQUIRE))
		thread_sleep_ns(1000000, 0, "hogs");
	__atomic_store_n(&slow.may_end, true, __ATOMIC_RELEASE);
	before = hogs_ran_ns();
	mutex_lock(&test_mutex);
	before = hogs_ran_ns() - before;
	mutex_unlock(&test_mutex);
	end_slow(HOGS + 1);
	/* By its share, it would have the CPU again after a slice of 6.8 s of each of them. */
	KT_LT(before, 2000000000ul);
}

static void
take_once(void *arg)
{
	mutex_lock(&test_mutex);
	mutex_unlock(&test_mutex);
	__atomic_store_n(&slow.has_it, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&slow.over, __ATOMIC_ACQUIRE))
		thread_sleep_ns(1000000, 0, "over");
	finished();
}

static bool
sleeps_on_mutex(const struct thread *t)
{
	const char *chan = __atomic_load_n(&t->chan, __ATOMIC_ACQUIRE);

	return chan >= (const char *)&test_mutex && chan < (const char *)(&test_mutex + 1);
}

/* The first one that waits has the smallest share, and the second one waits for it. */
KTEST(mutex_goes_on_from_one_that_waits_to_the_next_whatever_their_shares)
{
	static const struct sched_params idle = {.policy = SCHED_IDLE};
	struct thread *second;
	uint64_t before;

	done = 0;
	slow.has_it = slow.over = false;
	slow.may_end = true;
	mutex_lock(&test_mutex);
	start_on_first_cpu(&slow.owner, own_slowly);
	sched_set_params(slow.owner, &idle);
	while (!sleeps_on_mutex(slow.owner))
		thread_sleep_ns(1000000, 0, "owner");
	second = thread_create("second", PRIO_KERN, take_once, NULL);
	KT_ASSERT(second != NULL);
	while (!sleeps_on_mutex(second))
		thread_sleep_ns(1000000, 0, "second");
	for (unsigned i = 0; i < HOGS; i++)
		start_on_first_cpu(&slow.hogs[i], hog);
	before = hogs_ran_ns();
	mutex_unlock(&test_mutex);
	while (__atomic_load_n(&test_mutex.waiters, __ATOMIC_ACQUIRE) > 0 ||
	       __atomic_load_n(&test_mutex.owner, __ATOMIC_ACQUIRE) != NULL)
		thread_sleep_ns(1000000, 0, "both");
	before = hogs_ran_ns() - before;
	end_slow(HOGS + 2);
	KT_LT(before, 2000000000ul);
}

KTEST(mutex_goes_to_who_waits_though_its_owner_takes_it_again_and_again)
{
	struct thread *waiter;
	unsigned rounds = 0;

	done = 0;
	slow.has_it = slow.over = false;
	sched_set_cpus(curthread(), 1);
	sched_preempt();
	start_on_first_cpu(&waiter, take_once);
	mutex_lock(&test_mutex);
	for (; rounds < 100 && !__atomic_load_n(&slow.has_it, __ATOMIC_ACQUIRE); rounds++) {
		while (!sleeps_on_mutex(waiter) && !__atomic_load_n(&slow.has_it, __ATOMIC_ACQUIRE))
			thread_sleep_ns(1000000, 0, "waiter");
		mutex_unlock(&test_mutex);
		mutex_lock(&test_mutex);
	}
	mutex_unlock(&test_mutex);
	end_slow(1);
	KT_LT(rounds, 10);
}

/* A thread that waits for the mutex looks at its owner, which lets go of the mutex meanwhile. */
static struct {
	struct thread *owner;
	bool looks, waits, gone, gone_meanwhile; /* atomic */
} looked;

/* The hook. It is called for who looks, which holds the lock of the queue then; and for the owner,
 * when that waits for a spin lock. */
static void
look_at_owner(const struct ktr_firing *f)
{
	if (curthread() == looked.owner) {
		const struct spinlock *l = (const struct spinlock *)f->args[0];

		if (strcmp(l->name, "sleepq") == 0)
			__atomic_store_n(&looked.waits, true, __ATOMIC_RELEASE);
		return;
	}
	if ((const struct thread *)f->args[0] != looked.owner ||
	    __atomic_exchange_n(&looked.looks, true, __ATOMIC_ACQ_REL))
		return;
	while (!__atomic_load_n(&looked.waits, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&looked.gone, __ATOMIC_ACQUIRE))
		arch_relax();
	looked.gone_meanwhile = __atomic_load_n(&looked.gone, __ATOMIC_ACQUIRE);
}

static void
take_and_end(void *arg)
{
	mutex_lock(&test_mutex);
	mutex_unlock(&test_mutex);
	finished();
}

/* Holds the mutex until one has been woken too late and sleeps again, and another one looks. */
static void
own_until_looked_at(void *arg)
{
	struct thread *late;

	sched_set_cpus(curthread(), 1);
	sched_preempt();
	mutex_lock(&test_mutex);
	start_on_first_cpu(&late, take_and_end);
	while (!__atomic_load_n(&test_mutex.handoff, __ATOMIC_ACQUIRE)) {
		while (!sleeps_on_mutex(late))
			thread_sleep_ns(1000000, 0, "late");
		mutex_unlock(&test_mutex);
		mutex_lock(&test_mutex);
		thread_sleep_ns(1000000, 0, "late");
	}
	__atomic_store_n(&looked.owner, curthread(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&looked.looks, __ATOMIC_ACQUIRE))
		arch_relax();
	mutex_unlock(&test_mutex);
	__atomic_store_n(&looked.gone, true, __ATOMIC_RELEASE);
	finished();
}

KTEST(mutex_owner_does_not_go_away_while_one_that_waits_looks_at_it)
{
	struct thread *looks;
	int hook;

	if (ncpus == 1)
		ktest_skip("one CPU lets go of the mutex, and another looks at who does");
	hook = ktr_owner_register("test", look_at_owner);
	ktr_test_begin(64);
	KT_GT(hook, 1);
	KT_GT(ktr_select((unsigned)hook, "fbt::sched_hurry:entry", true, NULL, NULL, 0), 0);
	KT_GT(ktr_select((unsigned)hook, "lock:::contention_begin", true, NULL, NULL, 0), 0);
	done = 0;
	looked.owner = NULL;
	looked.looks = looked.waits = looked.gone = looked.gone_meanwhile = false;
	start_on_first_cpu(&looks, own_until_looked_at);
	while (__atomic_load_n(&looked.owner, __ATOMIC_ACQUIRE) == NULL)
		thread_sleep_ns(1000000, 0, "owner");
	looks = thread_alloc("looks", PRIO_USER, take_and_end, NULL);
	KT_ASSERT(looks != NULL);
	sched_set_cpus(looks, 2);
	wake_up_new_task(looks);
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != 3)
		thread_sleep_ns(1000000, 0, "mutex");
	KT_EQ(ktr_owner_unregister((unsigned)hook), 0);
	ktr_test_end();
	KT_ASSERT(!looked.gone_meanwhile);
}

#define MANY 9

/* Ten are held, all but the first are abandoned; whatever was released before in which order. */
KTEST(mutex_abandon_releases_those_that_were_taken_last)
{
	struct mutex first = MUTEX_INIT("first"), many[MANY];
	unsigned before = curthread()->mutexes;

	for (unsigned gone = 0; gone < MANY; gone++) {
		mutex_lock(&first);
		for (unsigned i = 0; i < MANY; i++) {
			mutex_init(&many[i], "many");
			mutex_lock(&many[i]);
		}
		mutex_unlock(&many[gone]);
		KT_EQ(curthread()->mutexes, before + MANY);
		mutex_abandon(before + 1);
		KT_EQ(curthread()->mutexes, before + 1);
		for (unsigned i = 0; i < MANY; i++)
			KT_ASSERT(many[i].owner == NULL);
		KT_ASSERT(mutex_held(&first));
		mutex_unlock(&first);
		KT_EQ(curthread()->mutexes, before);
	}
}

static void
cond_worker(void *arg)
{
	mutex_lock(&test_mutex);
	while (counter == 0)
		cond_wait(&test_cond, &test_mutex, "test", 0, DEADLINE_NEVER);
	counter--;
	mutex_unlock(&test_mutex);
	finished();
}

KTEST(cond_signal_wakes_for_each_item_and_none_is_lost)
{
	counter = done = 0;
	for (unsigned i = 0; i < WORKERS; i++)
		KT_ASSERT(thread_create("waiter", PRIO_USER, cond_worker, NULL) != NULL);
	for (unsigned i = 0; i < WORKERS; i++) {
		mutex_lock(&test_mutex);
		counter++;
		cond_signal(&test_cond);
		mutex_unlock(&test_mutex);
	}
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != WORKERS)
		thread_sleep_ns(1000000, 0, "waiters");
	KT_EQ(counter, 0);
}

KTEST(sleep_ends_at_its_deadline)
{
	static char chan;
	uint64_t before = clock_ns();

	KT_EQ(sleep_on(&chan, NULL, "test", 0, before + 20000000), -ETIMEDOUT);
	KT_ASSERT(clock_ns() >= before + 20000000);
}

static struct thread *sleepers[2]; /* atomic */

static void
sleep_a_moment(void *arg)
{
	__atomic_store_n((struct thread **)arg, curthread(), __ATOMIC_RELEASE);
	while (__atomic_load_n(&counter, __ATOMIC_ACQUIRE) == 0)
		thread_sleep_ns(1000000, 0, "moment");
	finished();
}

static const void *
channel_of(struct thread *const *t)
{
	const struct thread *sleeper = __atomic_load_n(t, __ATOMIC_ACQUIRE);

	return sleeper != NULL ? __atomic_load_n(&sleeper->chan, __ATOMIC_ACQUIRE) : NULL;
}

/* Of one channel, all would be in one queue. Nobody is woken there, and others wait for its lock.
 */
KTEST(those_that_sleep_for_a_time_have_channels_of_their_own)
{
	const void *found[2] = {NULL, NULL};

	counter = done = 0;
	for (unsigned i = 0; i < 2; i++) {
		sleepers[i] = NULL;
		KT_ASSERT(thread_create("sleeper", PRIO_USER, sleep_a_moment, &sleepers[i]) !=
			  NULL);
	}
	for (unsigned i = 0; i < 2; i++)
		while ((found[i] = channel_of(&sleepers[i])) == NULL)
			thread_sleep_ns(1000000, 0, "sleeper");
	__atomic_store_n(&counter, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != 2)
		thread_sleep_ns(1000000, 0, "sleepers");
	KT_ASSERT(found[0] != found[1]);
}

#define SLEEPERS 40

static char bed;
static struct thread *in_bed[SLEEPERS]; /* atomic */
static unsigned got_up[SLEEPERS];       /* in which order */

static void
sleep_in_bed(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;

	__atomic_store_n(&in_bed[i], curthread(), __ATOMIC_RELEASE);
	sleep_on(&bed, NULL, "bed", SLEEP_INTR, DEADLINE_NEVER);
	got_up[__atomic_load_n(&done, __ATOMIC_RELAXED)] = i;
	finished();
}

/* Each after the one before it. */
static void
go_to_bed(unsigned n)
{
	done = 0;
	for (unsigned i = 0; i < n; i++) {
		in_bed[i] = NULL;
		KT_ASSERT(thread_create("sleeper", PRIO_KERN, sleep_in_bed, (void *)(uintptr_t)i) !=
			  NULL);
		while (channel_of(&in_bed[i]) != &bed)
			thread_sleep_ns(1000000, 0, "bed");
	}
}

static void
await_up(unsigned n)
{
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != n)
		thread_sleep_ns(1000000, 0, "up");
}

/* Also if one of them has left meanwhile, wherever it was. */
KTEST(those_that_sleep_are_woken_in_the_order_in_which_they_came)
{
	for (unsigned gone = 0; gone <= 3; gone++) {
		unsigned up = 0;

		go_to_bed(3);
		if (gone < 3) {
			sleepq_interrupt(in_bed[gone]);
			await_up(++up);
		}
		for (unsigned i = 0; i < 3; i++) {
			if (i == gone)
				continue;
			KT_EQ(wakeup_one(&bed), 1);
			await_up(++up);
			KT_EQ(got_up[up - 1], i);
		}
		KT_EQ(wakeup_one(&bed), 0);
	}
}

KTEST(a_channel_is_handed_over_and_tells_whether_others_sleep_there)
{
	struct thread *owner;
	bool more;

	go_to_bed(3);
	for (unsigned i = 0; i < 3; i++) {
		const struct thread *t = in_bed[i];

		KT_ASSERT(sleepq_hand_over(&bed, &owner, &more));
		KT_ASSERT(owner == t);
		KT_EQ(more, i < 2);
		await_up(i + 1);
	}
	owner = curthread();
	KT_ASSERT(!sleepq_hand_over(&bed, &owner, &more));
	KT_ASSERT(owner == curthread() && !more);
}

KTEST(wakeup_wakes_all_though_it_does_so_some_at_a_time)
{
	go_to_bed(SLEEPERS);
	KT_EQ(wakeup(&bed), SLEEPERS);
	await_up(SLEEPERS);
}

static int waited;

static void
wait_or_be_interrupted(void *arg)
{
	mutex_lock(&test_mutex);
	__atomic_store_n(&sleepers[0], curthread(), __ATOMIC_RELEASE);
	waited = cond_wait(&test_cond, &test_mutex, "test", SLEEP_INTR, DEADLINE_NEVER);
	mutex_unlock(&test_mutex);
	finished();
}

/* Its waiter is to look again: what came may have been there before the signal. */
KTEST(cond_wait_tells_of_a_signal_only_if_nothing_came_meanwhile)
{
	for (unsigned comes = 0; comes < 2; comes++) {
		done = 0;
		sleepers[0] = NULL;
		KT_ASSERT(thread_create("waiter", PRIO_USER, wait_or_be_interrupted, NULL) != NULL);
		while (channel_of(&sleepers[0]) != &test_cond)
			thread_sleep_ns(1000000, 0, "waiter");
		mutex_lock(&test_mutex);
		sleepq_interrupt(sleepers[0]);
		if (comes)
			cond_broadcast(&test_cond);
		mutex_unlock(&test_mutex);
		while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != 1)
			thread_sleep_ns(1000000, 0, "waiter");
		KT_EQ(waited, comes ? 0 : -EINTR);
	}
}

static char ping, pong;
static unsigned ball; /* test_spin */

static void
ping_worker(void *arg)
{
	spin_lock(&test_spin);
	while (ball < 2000) {
		if (ball % 2 == 0)
			sleep_on(&ping, &test_spin, "ping", 0, DEADLINE_NEVER);
		if (ball % 2 == 1) {
			ball++;
			wakeup(&pong);
		}
	}
	spin_unlock(&test_spin);
	finished();
}

KTEST(no_wakeup_is_lost_between_two_that_take_turns)
{
	ball = done = 0;
	KT_ASSERT(thread_create("ping", PRIO_KERN, ping_worker, NULL) != NULL);
	spin_lock(&test_spin);
	while (ball < 2000) {
		if (ball % 2 == 0) {
			ball++;
			wakeup(&ping);
		}
		if (ball % 2 == 1)
			sleep_on(&pong, &test_spin, "pong", 0, DEADLINE_NEVER);
	}
	wakeup(&ping);
	spin_unlock(&test_spin);
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != 1)
		thread_sleep_ns(1000000, 0, "ping");
}

static void
count_cpus(unsigned i, void *arg)
{
	KT_LE(ncpus, cpu_count());
	smp_call_all(NULL, NULL); /* ends when all CPUs have answered */
}

/* The port looks for the CPUs only once, on the boot CPU. */
KTEST(cpu_count_can_be_asked_on_any_cpu)
{
	ktest_start(ncpus, true, count_cpus, NULL);
	ktest_join();
}

/* What /proc/interrupts tells of other CPUs: nothing, which is a word of its own, too. */
KTEST(device_interrupts_go_to_the_boot_cpu)
{
	for (unsigned line = 0; line < IRQ_LINES; line++)
		for (unsigned cpu = 1; cpu < ncpus; cpu++)
			KT_EQ(irq_line_count(line, cpu), 0);
}
