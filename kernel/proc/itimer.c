/*
 * itimer.c - timers of programs. Locking: itimer.h. One thread at a time sets a timer: set_mutex.
 * reals_mutex, taken before that, guards the list of timers that follow the clock of the day, and
 * is held while that clock is set.
 */
#include "kernel/proc/itimer.h"

#include "kernel/lib/clock.h"
#include "kernel/proc/vdso.h"
#include "kernel/sched/mutex.h"

#define PAUSE_NS   1000000u
#define PAUSES_MAX 10 /* a pause is 2^10 times as long at most */

static struct mutex set_mutex = MUTEX_INIT("itimer"), reals_mutex = MUTEX_INIT("real itimer");
static struct list reals = LIST_INIT(reals);

static void
itimer_expire(void *arg)
{
	struct itimer *t = arg;
	bool due;

	spin_lock(&t->lock);
	/* The timer may be about to be stopped; or it was just moved, and has its callout again. */
	due = t->due = t->deadline_ns != 0 && t->deadline_ns <= clock_ns();
	spin_unlock(&t->lock);
	if (due)
		t->fn(t);
}

void
itimer_init(struct itimer *t, void (*fn)(struct itimer *t))
{
	callout_init(&t->callout, itimer_expire, t);
	spin_init(&t->lock, "itimer");
	t->deadline_ns = t->interval_ns = 0;
	t->due = false;
	t->ignored = 0;
	t->fn = fn;
}

struct itimer_left
itimer_rest(uint64_t deadline_ns, uint64_t interval_ns, bool due, uint64_t now)
{
	struct itimer_left l = {0, interval_ns};

	if (deadline_ns > now)
		l.left_ns = deadline_ns - now;
	else if (deadline_ns != 0 && interval_ns != 0)
		l.left_ns = interval_ns - (now - deadline_ns) % interval_ns;
	else if (deadline_ns != 0 && !due)
		l.left_ns = 1;
	return l;
}

/* lock held */
static struct itimer_left
left_of(const struct itimer *t, uint64_t now)
{
	struct itimer_left l = itimer_rest(t->deadline_ns, t->interval_ns, t->due, now);

	/* A pause is not seen. */
	if (t->ignored > 0 && l.left_ns > t->interval_ns && t->interval_ns != 0)
		l.left_ns = (l.left_ns - 1) % t->interval_ns + 1;
	return l;
}

struct itimer_left
itimer_left(struct itimer *t)
{
	struct itimer_left l;

	spin_lock(&t->lock);
	l = left_of(t, clock_ns());
	spin_unlock(&t->lock);
	return l;
}

struct itimer_left
itimer_set(struct itimer *t, uint64_t deadline_ns, uint64_t interval_ns)
{
	struct itimer_left old;

	mutex_lock(&set_mutex);
	spin_lock(&t->lock);
	old = left_of(t, clock_ns());
	t->deadline_ns = t->interval_ns = 0;
	t->due = false;
	t->ignored = 0;
	spin_unlock(&t->lock);
	callout_stop(&t->callout);
	if (deadline_ns != 0) {
		spin_lock(&t->lock);
		t->deadline_ns = deadline_ns;
		t->interval_ns = interval_ns;
		callout_set(&t->callout, deadline_ns);
		spin_unlock(&t->lock);
	}
	mutex_unlock(&set_mutex);
	return old;
}

uint64_t
itimer_take(struct itimer *t, bool heard)
{
	uint64_t n = 0, now;

	spin_lock(&t->lock);
	if (t->due) {
		t->due = false;
		n = 1;
		if (t->interval_ns == 0) {
			t->deadline_ns = 0;
		} else {
			now = clock_ns() + (heard ? 0 : (uint64_t)PAUSE_NS << t->ignored);
			n += now > t->deadline_ns ? (now - t->deadline_ns) / t->interval_ns : 0;
			t->deadline_ns += n * t->interval_ns;
			callout_set(&t->callout, t->deadline_ns);
		}
		if (heard)
			t->ignored = 0;
		else if (t->ignored < PAUSES_MAX)
			t->ignored++;
	}
	spin_unlock(&t->lock);
	return n;
}

void
itimer_resume(struct itimer *t)
{
	uint64_t now;

	spin_lock(&t->lock);
	now = clock_ns();
	/* It may be about to be stopped. */
	if (t->ignored > 0 && t->interval_ns != 0 && t->deadline_ns > now) {
		t->deadline_ns -= (t->deadline_ns - now) / t->interval_ns * t->interval_ns;
		callout_set(&t->callout, t->deadline_ns);
	}
	t->ignored = 0;
	spin_unlock(&t->lock);
}

bool
itimer_is_due(const struct itimer *t)
{
	return __atomic_load_n(&t->due, __ATOMIC_RELAXED);
}

/* ---- the clock of the day ---- */

void
real_itimer_init(struct real_itimer *t, void (*fn)(struct itimer *t),
		 void (*clock_set)(struct real_itimer *t))
{
	itimer_init(&t->timer, fn);
	list_init(&t->link);
	t->clock_set = clock_set;
}

/* Makes a time since 1970 one since boot, which is not 0. */
static uint64_t
since_boot(uint64_t real_ns)
{
	uint64_t base = clock_real_ns(0);

	return real_ns > base ? real_ns - base : 1;
}

struct itimer_left
real_itimer_set(struct real_itimer *t, struct itimer_when when)
{
	struct itimer_left old;

	mutex_lock(&reals_mutex);
	list_remove(&t->link);
	if (when.real)
		list_append(&reals, &t->link);
	if (when.real && when.deadline_ns != 0)
		when.deadline_ns = since_boot(when.deadline_ns);
	old = itimer_set(&t->timer, when.deadline_ns, when.interval_ns);
	mutex_unlock(&reals_mutex);
	return old;
}

/* The clock of the day was set: it was ahead of clock_ns() by `old`. */
static void
itimer_move(struct itimer *t, uint64_t old)
{
	spin_lock(&t->lock);
	if (t->deadline_ns != 0) {
		t->deadline_ns = since_boot(t->deadline_ns + old);
		if (!t->due)
			callout_set(&t->callout, t->deadline_ns);
	}
	spin_unlock(&t->lock);
}

void
itimers_set_clock(uint64_t real_ns)
{
	uint64_t old;

	mutex_lock(&reals_mutex);
	old = clock_real_ns(0);
	clock_set_real(real_ns);
	vdso_clock_set();
	list_for_each_entry (struct real_itimer, t, &reals, link) {
		itimer_move(&t->timer, old);
		if (t->clock_set != NULL)
			t->clock_set(t);
	}
	mutex_unlock(&reals_mutex);
}
