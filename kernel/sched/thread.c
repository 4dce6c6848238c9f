/*
 * thread.c - creates, names, lists and frees threads.
 *
 * All threads are in lists by their numbers, so that one is found, and the lock is not held while
 * all are visited. A list is short unless a user goes round all numbers again and again for it.
 *
 * Locking: threads_lock guards these lists and the list of dead threads.
 */
#include "kernel/sched/thread.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sync/spinlock.h"
#include "ktr/intern.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE_TEXT(proc, , , lwp_create, "lwp-create", ": thread %p tid %u", 2,
		      "struct thread *", "tid_t");
SDT_PROBE_DEFINE_TEXT(proc, , , lwp_start, "lwp-start", "", 0);
SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT(sched, , , sched_process_free, "sched_process_free",
		      ": comm=%s pid=%u prio=%d", 3, "char *", "pid_t", "int");
SDT_PROBE_DEFINE_TEXT(proc, , , lwp_exit, "lwp-exit", "", 0);

/*
 * Kept for new threads. Freeing a stack interrupts every CPU, which costs much more than creating a
 * thread: with fewer stacks kept, dead threads would pile up faster than they can be freed.
 */
#define STACK_CACHE 128

#define THREAD_LISTS 512

static struct spinlock threads_lock = SPINLOCK_INIT("threads");
static struct list threads[THREAD_LISTS]; /* of 64 numbers each, and again from the first one on */
static unsigned count;                    /* threads_lock */
static struct list dead = LIST_INIT(dead);
uint64_t thread_next = 2; /* atomic; 1 is reserved for process 1 */
static void *stack_cache[STACK_CACHE];
static unsigned stacks_cached; /* threads_lock */
static uint64_t stacks;        /* atomic; of threads, and those that are kept */
static unsigned gone_waiters;  /* threads_lock; of thread_await_gone() */

/* The list of a number. threads_lock held. */
static struct list *
threads_of(uint32_t tid)
{
	struct list *l = &threads[tid / 64 % THREAD_LISTS];

	if (l->next == NULL)
		list_init(l);
	return l;
}

static void *
stack_alloc(void)
{
	void *stack = NULL;

	spin_lock(&threads_lock);
	if (stacks_cached > 0)
		stack = stack_cache[--stacks_cached];
	spin_unlock(&threads_lock);
	if (stack != NULL)
		return stack;
	stack = kmap_alloc(KSTACK_SIZE);
	if (stack != NULL)
		__atomic_fetch_add(&stacks, 1, __ATOMIC_RELAXED);
	return stack;
}

static void
free_stacks(void *const *stack, unsigned n)
{
	kmap_free_all(stack, n);
	__atomic_fetch_sub(&stacks, n, __ATOMIC_RELAXED);
}

uint64_t
thread_stack_bytes(void)
{
	return __atomic_load_n(&stacks, __ATOMIC_RELAXED) * KSTACK_SIZE;
}

/* Keeps a stack for a later thread. False: enough are kept; the caller frees it. */
static bool
stack_keep(void *stack)
{
	bool kept;

	spin_lock(&threads_lock);
	kept = stacks_cached < STACK_CACHE;
	if (kept)
		stack_cache[stacks_cached++] = stack;
	spin_unlock(&threads_lock);
	return kept;
}

static void
thread_begin(void *arg)
{
	struct thread *t = arg;

	sched_first();
	if (t->proc == NULL) /* of a thread of a process, kernel/proc says it, after `start` */
		SDT_PROBE0(proc, , , lwp_start);
	t->fn(t->arg);
	SDT_PROBE0(proc, , , lwp_exit);
	thread_exit();
}

void
thread_rename(struct thread *t, const char *name)
{
	strlcpy(t->name, name, sizeof(t->name));
	t->ident = ktr_thread_ident(t->tid);
	ktr_thread_name(t->tid, t->name);
	thread_predcache_forget(t);
}

static bool
no_number(uint32_t n)
{
	return false;
}

static bool (*number_is_used)(uint32_t n) = no_number;

void
thread_register_numbers(bool (*is_used)(uint32_t n))
{
	number_is_used = is_used;
}

/* threads_lock held. */
static struct thread *
thread_of_tid(uint32_t tid)
{
	list_for_each_entry (struct thread, t, threads_of(tid), all)
		if (t->tid == tid)
			return t;
	return NULL;
}

/* From the second time round on, numbers may have remained in use. */
static bool
tid_is_free(uint32_t tid)
{
	bool used;

	spin_lock(&threads_lock);
	used = thread_of_tid(tid) != NULL;
	spin_unlock(&threads_lock);
	return !used && !number_is_used(tid);
}

/* Gives a thread a number: not 0 or 1, and positive as a pid_t. */
static void
thread_choose_tid(struct thread *t)
{
	do {
		t->serial = __atomic_fetch_add(&thread_next, 1, __ATOMIC_RELAXED);
		t->tid = t->serial & TID_MAX;
	} while (t->tid < 2 || (t->serial > TID_MAX && !tid_is_free(t->tid)));
}

static struct thread *
thread_make(const char *name, uint8_t prio, void (*fn)(void *), void *arg, bool program)
{
	struct thread *t = kzalloc(sizeof(*t));

	if (t == NULL)
		return NULL;
	t->kstack = stack_alloc();
	if (t->kstack == NULL) {
		kfree(t);
		return NULL;
	}
	thread_choose_tid(t);
	t->prio = prio;
	t->program = program;
	t->cpus = UINT64_MAX;
	t->slice = SCHED_RR_SLICE;
	t->groups = uidinfo_root.groups;
	t->fair.weight = FAIR_WEIGHT;
	t->root = kmap_root();
	t->start_ns = clock_ns();
	t->fn = fn;
	t->arg = arg;
	list_init(&t->runq);
	list_init(&t->sleepq);
	list_init(&t->channel);
	callout_init(&t->sleep_timer, NULL, NULL);
	thread_rename(t, name);
	arch_context_init(&t->ctx, t->kstack, KSTACK_SIZE, thread_begin, t);
	spin_lock(&threads_lock);
	list_append(threads_of(t->tid), &t->all);
	count++;
	spin_unlock(&threads_lock);
	SDT_CTR2(proc, , , lwp_create, SDT_ARGS2(t, t->tid), KTR_PROC,
		 "thread create: tid %u name %s", t->tid, ktr_intern(t->name));
	return t;
}

struct thread *
thread_alloc(const char *name, uint8_t prio, void (*fn)(void *), void *arg)
{
	return thread_make(name, prio, fn, arg, false);
}

struct thread *
thread_alloc_program(const char *name, void (*fn)(void *), void *arg)
{
	return thread_make(name, PRIO_USER, fn, arg, true);
}

struct thread *
thread_create(const char *name, uint8_t prio, void (*fn)(void *), void *arg)
{
	struct thread *t = thread_alloc(name, prio, fn, arg);

	if (t != NULL)
		wake_up_new_task(t);
	return t;
}

/* Frees all of t but its stack, which it returns. */
static void *
thread_dissolve(struct thread *t)
{
	void *stack = t->kstack;
	bool awaited;

	spin_lock(&threads_lock);
	list_remove(&t->all);
	count--;
	awaited = gone_waiters > 0;
	spin_unlock(&threads_lock);
	if (awaited)
		wakeup(&gone_waiters);
	kfree(t);
	return stack;
}

void
thread_discard(struct thread *t)
{
	ktr_thread_gone(t->tid);
	void *stack = thread_dissolve(t);
	if (!stack_keep(stack))
		free_stacks(&stack, 1);
}

void
thread_exit(void)
{
	CTR1(KTR_PROC, "thread exit: tid %u", curthread()->tid);
	sched_exit();
}

/* Only puts t on the list: the next thread calls it during the switch, perhaps in an interrupt. */
void
thread_reap(struct thread *t)
{
	ktr_thread_gone(t->tid);
	spin_lock(&threads_lock);
	list_append(&dead, &t->runq);
	spin_unlock(&threads_lock);
	wakeup(&dead);
}

/* Takes the next dead thread. Sleeps until there is one if `wait`, else returns NULL. */
static struct thread *
next_dead(bool wait)
{
	struct list *l;

	spin_lock(&threads_lock);
	while ((l = list_first(&dead)) == NULL && wait)
		sleep_on(&dead, &threads_lock, "reaper", 0, DEADLINE_NEVER);
	if (l != NULL)
		list_remove(l);
	spin_unlock(&threads_lock);
	return l != NULL ? list_entry(l, struct thread, runq) : NULL;
}

static void
thread_reaper(void *arg)
{
	static void *gone[64]; /* stacks, collected, and freed by one kmap_free_all() */
	unsigned n = 0;

	for (;;) {
		struct thread *t = next_dead(n == 0);

		if (t != NULL)
			SDT_PROBE3(sched, , , sched_process_free, ktr_intern(t->name), t->tid,
				   t->prio);
		void *stack = t != NULL ? thread_dissolve(t) : NULL;

		if (stack != NULL && !stack_keep(stack))
			gone[n++] = stack;
		if (n == sizeof(gone) / sizeof(gone[0]) || (t == NULL && n > 0)) {
			free_stacks(gone, n);
			n = 0;
		}
	}
}

void
thread_init(void)
{
	if (thread_create("reaper", PRIO_KERN, thread_reaper, NULL) == NULL)
		panic("no memory for the reaper thread");
}

void
thread_fpu_load(const struct arch_fpu *from)
{
	irq_push();
	curthread()->fpu_used = true;
	arch_fpu_on();
	arch_fpu_load(from);
	irq_pop();
}

void
thread_fpu_start(void)
{
	struct arch_fpu fresh;

	CTR1(KTR_TRAP, "fpu: first use by tid %u", curthread()->tid);
	arch_fpu_init(&fresh);
	thread_fpu_load(&fresh);
}

bool
thread_fpu_save(struct arch_fpu *to)
{
	if (curthread()->fpu_used)
		arch_fpu_save(to);
	return curthread()->fpu_used;
}

void
thread_fpu_end(void)
{
	irq_push();
	curthread()->fpu_used = false;
	arch_fpu_off();
	irq_pop();
}

void
thread_fpu_copy(struct thread *to)
{
	to->fpu_used = thread_fpu_save(&to->fpu);
}

int
thread_each(int (*f)(struct thread *, void *), void *arg)
{
	for (unsigned i = 0; i < THREAD_LISTS; i++) {
		int r = 0;

		spin_lock(&threads_lock);
		list_for_each_entry (struct thread, t, threads_of(i * 64), all) {
			r = f(t, arg);
			if (r != 0)
				break;
		}
		spin_unlock(&threads_lock);
		if (r != 0)
			return r;
	}
	return 0;
}

bool
thread_with(uint32_t tid, void (*f)(const struct thread *, void *), void *arg)
{
	const struct thread *t;

	spin_lock(&threads_lock);
	t = thread_of_tid(tid);
	if (t != NULL)
		f(t, arg);
	spin_unlock(&threads_lock);
	return t != NULL;
}

uint64_t
thread_cpu_ns(void)
{
	const struct thread *t = curthread();
	uint64_t zero, ns;

	do { /* again if the thread was switched out in between */
		zero = __atomic_load_n(&t->zero_ns, __ATOMIC_RELAXED);
		ns = clock_ns() - zero;
	} while (zero != __atomic_load_n(&t->zero_ns, __ATOMIC_RELAXED));
	return ns;
}

static struct usage
thread_usage_of(const struct thread *t, uint64_t user_ticks, uint64_t all)
{
	uint64_t user = clock_span_ns(user_ticks);

	/* The two are not read at the same moment; and one clock is rounded more often. */
	if (user > all)
		user = all;
	return (struct usage){.user_ns = user,
			      .system_ns = all - user,
			      .faults = t->faults,
			      .disk_faults = t->disk_faults,
			      .waits = t->waits,
			      .interruptions = t->interruptions};
}

struct usage
thread_usage_charged(const struct thread *t)
{
	return thread_usage_of(t, t->user_known, t->runtime_ns);
}

struct usage
thread_usage(const struct thread *t)
{
	return t == curthread() ? thread_usage_of(t, t->user_ticks, thread_cpu_ns())
				: thread_usage_charged(t);
}

unsigned
thread_count(void)
{
	return __atomic_load_n(&count, __ATOMIC_RELAXED);
}

uint32_t
thread_count_made(void)
{
	return (uint32_t)__atomic_load_n(&thread_next, __ATOMIC_RELAXED) - 1;
}

void
thread_await_gone(uint32_t tid)
{
	spin_lock(&threads_lock);
	gone_waiters++;
	while (thread_of_tid(tid) != NULL)
		sleep_on(&gone_waiters, &threads_lock, "gone", 0, DEADLINE_NEVER);
	gone_waiters--;
	spin_unlock(&threads_lock);
}

void
thread_give_tid(struct thread *t, uint32_t tid)
{
	spin_lock(&threads_lock);
	list_remove(&t->all);
	t->tid = tid;
	list_append(threads_of(tid), &t->all);
	spin_unlock(&threads_lock);
}

void
thread_change_tid(uint32_t tid)
{
	struct thread *t = curthread();
	uint32_t old = t->tid;

	CTR2(KTR_PROC, "thread change: tid %u to %u", old, tid);
	irq_push();
	spin_lock(&threads_lock);
	list_remove(&t->all);
	t->tid = tid;
	thread_predcache_forget(t);
	list_append(threads_of(tid), &t->all);
	spin_unlock(&threads_lock);
	/* Each event is of the thread that runs, and a thread that runs was queued. */
	KTR_STATE1(KTR_SCHED, "thread", t->ident, "thread exit", "prio:%d", t->prio);
	t->ident = ktr_thread_ident(tid);
	KTR_STATE1(KTR_SCHED, "thread", t->ident, "runq add", "prio:%d", t->prio);
	arch_ktr_set_tid(tid);
	KTR_STATE1(KTR_SCHED, "thread", t->ident, "running", "prio:%d", t->prio);
	irq_pop();
	ktr_thread_name(tid, t->name);
	ktr_thread_gone(old);
}

struct thread *
thread_next_unlocked(struct thread *t)
{
	struct list *end = threads + THREAD_LISTS, *l = threads;

	if (t != NULL) {
		l = t->all.next;
		if (l < threads || l >= end)
			return l != NULL ? list_entry(l, struct thread, all) : NULL;
		l++;
	}
	for (; l < end; l++)
		if (l->next != NULL && !list_empty(l))
			return list_entry(l->next, struct thread, all);
	return NULL;
}

int
thread_sleep_ns(uint64_t ns, int flags, const char *wmesg)
{
	/* a channel of its own, which nobody wakes: so sleepers are spread over all queues */
	int r = sleep_on(&curthread()->sleep_timer, NULL, wmesg, flags, clock_ns() + ns);

	return r == -ETIMEDOUT ? 0 : r;
}
