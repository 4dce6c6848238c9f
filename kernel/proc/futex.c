/*
 * futex.c - futex(2): threads wait until others change a word of their memory; and the words that
 * the kernel changes when a thread ends.
 *
 * A futex is a word of memory: in an address space of its own, or in an object that several spaces
 * map. A thread that waits has a struct waiter on its stack.
 *
 * Locking: futex_lock guards all waiters. While it is held, words are read that are in memory; what
 * is not is fetched before. It is given up now and then while a bucket is walked, for any user may
 * make one long.
 */
#include "kernel/abi/futex.h"

#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/time.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/list.h"
#include "kernel/lib/random.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"
#include "ktr/ktr.h"

#define BUCKET_BITS 8
#define BATCH       16u   /* so many threads are woken with interrupts off */
#define LOOKS       64u   /* so many are looked at */
#define ROBUST_MAX  2048u /* mutexes of a list, which may be a circle */

/* Which word that is: the number of an object and an offset; or of a space and an address. */
struct word {
	uint64_t of, at;
};

/* Until when a thread waits: a time since boot; or since 1970. */
struct until {
	uint64_t ns;
	bool real;
};

struct waiter {
	struct list list; /* in a bucket */
	struct word word;
	struct until until;
	uint32_t bits;
	bool woken;
	unsigned clock_sets; /* until then, when it began to sleep */
};

/* A look at the waiters of a bucket that were there when it began. */
struct walk {
	struct waiter end; /* stands in the bucket after the waiters; nobody wakes it */
	struct list *next;
	unsigned looks;
};

static struct spinlock futex_lock = SPINLOCK_INIT("futex");
static struct list buckets[1u << BUCKET_BITS]; /* one that was never used has zeroes */
static unsigned clock_sets;                    /* futex_lock; how often the clock was set */

/* FUTEX_PRIVATE_FLAG says that no other space has the word. */
static struct word
word_at(uint64_t addr, uint32_t op)
{
	struct vmspace *vm = curproc()->vm;
	struct word w;

	if ((op & FUTEX_PRIVATE_FLAG) || !vm_shared_at(vm, addr, &w.of, &w.at))
		w = (struct word){(uintptr_t)vm, addr};
	return w;
}

static struct list *
futex_bucket(struct word w)
{
	static uint64_t secret; /* else who chooses words chooses their bucket */
	uint64_t h;
	struct list *b;

	if (secret == 0)
		random_bytes(&secret, sizeof(secret));
	secret |= 1;
	h = w.of * secret;
	h = (h ^ h >> 29 ^ w.at) * secret;
	b = &buckets[h >> (64 - BUCKET_BITS)];
	if (b->next == NULL)
		list_init(b);
	return b;
}

/* Brings in a word that other spaces may have, too. 0 or -EFAULT. */
static int
futex_check_word(uint64_t addr, uint32_t op)
{
	uint32_t value;

	return (op & FUTEX_PRIVATE_FLAG) ? 0 : copy_in(&value, addr, sizeof(value));
}

/* Takes the lock, and reads the word. -EFAULT, -EINVAL: without the lock. */
static int
lock_and_read(uint64_t addr, uint32_t *value)
{
	if (addr % sizeof(*value) != 0)
		return -EINVAL;
	for (;;) {
		if (copy_in(value, addr, sizeof(*value)) != 0)
			return -EFAULT;
		spin_lock(&futex_lock);
		if (copy_in(value, addr, sizeof(*value)) == 0)
			return 0;
		spin_unlock(&futex_lock); /* it has left memory meanwhile */
	}
}

/* Sleeps until woken, or until the time that is meant, as the clock is now. futex_lock held. */
static int
sleep_once(struct waiter *w)
{
	uint64_t base = w->until.real ? clock_real_ns(0) : 0;

	w->clock_sets = clock_sets;
	return sleep_on(w, &futex_lock, "futex", SLEEP_INTR,
			w->until.ns > base ? w->until.ns - base : 0);
}

static int64_t
futex_wait(uint64_t addr, uint32_t op, uint32_t expected, uint32_t bits, struct until until)
{
	struct waiter w = {.word = word_at(addr, op), .until = until, .bits = bits};
	uint32_t value;
	int r = bits != 0 ? lock_and_read(addr, &value) : -EINVAL;

	if (r != 0)
		return r;
	if (value != expected) {
		spin_unlock(&futex_lock);
		return -EAGAIN;
	}
	list_append(futex_bucket(w.word), &w.list);
	while (!w.woken && r == 0)
		r = sleep_once(&w);
	list_remove(&w.list);
	spin_unlock(&futex_lock);
	return w.woken ? 0 : r;
}

static void
futex_walk_begin(struct walk *k, struct list *bucket)
{
	*k = (struct walk){.looks = 0};
	list_append(bucket, &k->end.list);
	k->next = bucket->next;
}

/* Gives the lock up for a moment. A test counts the calls. */
static __attribute__((noinline)) void
futex_walk_pause(struct walk *k)
{
	struct waiter place = {.bits = 0}; /* whom nobody wakes */

	list_append(k->next, &place.list);
	spin_unlock(&futex_lock);
	spin_lock(&futex_lock);
	k->next = place.list.next;
	list_remove(&place.list);
	k->looks = 0;
}

/* The next waiter. NULL: nobody. futex_lock held, which is released now and then before. */
static struct waiter *
futex_walk_next(struct walk *k)
{
	struct list *l;

	if (k->looks++ >= LOOKS)
		futex_walk_pause(k);
	l = k->next;
	if (l == &k->end.list)
		return NULL;
	k->next = l->next;
	return list_entry(l, struct waiter, list);
}

static void
futex_walk_wake(struct walk *k, struct waiter *w)
{
	wakeup(w); /* it goes when it has the lock */
	k->looks += LOOKS / BATCH;
}

/*
 * Wakes up to `count` threads, and makes up to `more` others wait at `to`. Returns how many.
 * futex_lock held, which is released now and then.
 */
static int64_t
futex_wake_word(struct word from, uint32_t bits, uint32_t count, struct word to, uint32_t more)
{
	struct walk k;
	struct waiter *w;
	int64_t n = 0;

	futex_walk_begin(&k, futex_bucket(from));
	while ((count > 0 || more > 0) && (w = futex_walk_next(&k)) != NULL) {
		if (w->word.of != from.of || w->word.at != from.at || !(w->bits & bits))
			continue;
		list_remove(&w->list);
		n++;
		if (count > 0) {
			w->woken = true;
			futex_walk_wake(&k, w);
			count--;
		} else {
			w->word = to;
			list_append(futex_bucket(to), &w->list);
			more--;
		}
	}
	list_remove(&k.end.list);
	return n;
}

static int64_t
futex_wake(uint64_t addr, uint32_t op, uint32_t bits, uint32_t count)
{
	struct word word = word_at(addr, op);
	int64_t n;

	if (bits == 0 || addr % 4 != 0)
		return -EINVAL;
	if (addr >= ARCH_USER_END || futex_check_word(addr, op) != 0)
		return -EFAULT;
	spin_lock(&futex_lock);
	n = futex_wake_word(word, bits, count, word, 0);
	spin_unlock(&futex_lock);
	return n;
}

static int64_t
futex_requeue(const uint64_t a[6], bool compare)
{
	struct word from = word_at(a[0], (uint32_t)a[1]), to = word_at(a[4], (uint32_t)a[1]);
	uint32_t value;
	int r = a[4] % 4 == 0 && (int32_t)a[2] >= 0 && (int32_t)a[3] >= 0
		    ? futex_check_word(a[4], (uint32_t)a[1])
		    : -EINVAL;
	int64_t n = -EAGAIN;

	if (r == 0)
		r = lock_and_read(a[0], &value);
	if (r != 0)
		return r;
	if (!compare || value == (uint32_t)a[5])
		n = futex_wake_word(from, UINT32_MAX, (uint32_t)a[2], to,
				    from.of != to.of || from.at != to.at ? (uint32_t)a[3] : 0);
	spin_unlock(&futex_lock);
	return n;
}

/* The end of a wait: relative, or a time of a clock. */
static int
take_until(uint64_t addr, uint32_t op, struct until *until)
{
	uint64_t again = proc_deadline(DEADLINE_NEVER);
	struct timespec ts;

	*until = (struct until){DEADLINE_NEVER, false};
	if (addr == 0)
		return 0;
	if (copy_in(&ts, addr, sizeof(ts)) != 0)
		return -EFAULT;
	if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= 1000000000)
		return -EINVAL;
	if (ts.tv_sec >= 1l << 32)
		return 0;
	until->ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	if ((op & FUTEX_CMD_MASK) == FUTEX_WAIT)
		until->ns = again != DEADLINE_NEVER ? again : until->ns + clock_ns();
	else
		until->real = op & FUTEX_CLOCK_REALTIME;
	return 0;
}

/* Wakes those who sleep until a time of the clock that was set: each asks how long that is now. */
void
futex_clock_set(void)
{
	spin_lock(&futex_lock);
	clock_sets++;
	for (unsigned i = 0; i < 1u << BUCKET_BITS; i++) {
		struct walk k;
		struct waiter *w;

		if (buckets[i].next == NULL)
			continue;
		futex_walk_begin(&k, &buckets[i]);
		while ((w = futex_walk_next(&k)) != NULL) {
			if (!w->until.real || w->clock_sets == clock_sets)
				continue;
			w->clock_sets = clock_sets;
			futex_walk_wake(&k, w);
		}
		list_remove(&k.end.list);
	}
	spin_unlock(&futex_lock);
}

int64_t
sys_futex(const uint64_t a[6])
{
	uint32_t op = (uint32_t)a[1];
	struct until until;
	int r;

	if ((op & FUTEX_CLOCK_REALTIME) && (op & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET)
		return -ENOSYS;
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		r = take_until(a[3], op, &until);
		if (r != 0)
			return r;
		return futex_wait(a[0], op, (uint32_t)a[2],
				  (op & FUTEX_CMD_MASK) == FUTEX_WAIT ? UINT32_MAX : (uint32_t)a[5],
				  until);
	case FUTEX_WAKE:
		return futex_wake(a[0], op, UINT32_MAX, (uint32_t)a[2]);
	case FUTEX_WAKE_BITSET:
		return futex_wake(a[0], op, (uint32_t)a[5], (uint32_t)a[2]);
	case FUTEX_REQUEUE:
		return futex_requeue(a, false);
	case FUTEX_CMP_REQUEUE:
		return futex_requeue(a, true);
	default:
		return -ENOSYS;
	}
}

int64_t
sys_set_robust_list(const uint64_t a[6])
{
	if (a[1] != sizeof(struct robust_list_head))
		return -EINVAL;
	curlwp()->robust = a[0];
	return 0;
}

int64_t
sys_get_robust_list(const uint64_t a[6])
{
	uint64_t size = sizeof(struct robust_list_head), head = 0;
	const struct lwp *l;
	int error = -ESRCH;

	spin_lock(&proc_lock);
	l = (uint32_t)a[0] == 0 ? curlwp() : lwp_find((uint32_t)a[0]);
	if (l != NULL) /* Linux compares real ids here, ptrace's are effective ones */
		error =
		    l->thread->proc == curproc() || proc_may_trace(l->thread->proc) ? 0 : -EPERM;
	if (error == 0)
		head = l->robust;
	spin_unlock(&proc_lock);
	if (error == 0 && (copy_out(a[2], &size, 8) != 0 || copy_out(a[1], &head, 8) != 0))
		error = -EFAULT;
	return error;
}

/*
 * A mutex whose owner, the current thread, ends: the next one to take it is told so. pending: it
 * was being taken or released. If it is free, the owner had no time to wake the next one.
 */
static void
futex_abandon(uint64_t addr, bool pending)
{
	uint32_t value;

	if (addr % 4 != 0 || copy_in(&value, addr, sizeof(value)) != 0)
		return;
	if (pending && value == 0)
		futex_wake(addr, 0, UINT32_MAX, 1);
	if ((value & FUTEX_TID_MASK) != curthread()->tid)
		return;
	/* Others may add FUTEX_WAITERS at any time: so it is set in any case. */
	value = FUTEX_OWNER_DIED | FUTEX_WAITERS;
	if (copy_out(addr, &value, sizeof(value)) == 0)
		futex_wake(addr, 0, UINT32_MAX, 1);
}

void
futex_thread_exit(struct lwp *l)
{
	struct robust_list_head head;
	uint64_t at, zero = 0;

	if (l->robust != 0 && copy_in(&head, l->robust, sizeof(head)) == 0) {
		at = head.next;
		for (unsigned i = 0; i < ROBUST_MAX && at != l->robust; i++) {
			uint64_t next;
			bool good = copy_in(&next, at & ~1ul, sizeof(next)) == 0;

			if (at != head.pending)
				futex_abandon((at & ~1ul) + head.offset, false);
			if (!good)
				break;
			at = next;
		}
		if (head.pending != 0)
			futex_abandon((head.pending & ~1ul) + head.offset, true);
	}
	if (l->clear_tid != 0 && copy_out(l->clear_tid, &zero, 4) == 0)
		futex_wake(l->clear_tid, 0, UINT32_MAX, 1);
}
