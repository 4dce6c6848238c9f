/* itimer.c - timers of programs. Locking: itimer.h. One thread at a time sets a timer. */
#include "kernel/proc/itimer.h"

#include "kernel/lib/clock.h"
#include "kernel/sched/mutex.h"

static struct mutex set_mutex = MUTEX_INIT("itimer");

static void
expire(void *arg)
{
	struct itimer *t = arg;
	bool due;

	spin_lock(&t->lock);
	due = t->due = t->deadline_ns != 0; /* it may be about to be stopped */
	spin_unlock(&t->lock);
	if (due)
		t->fn(t);
}

void
itimer_init(struct itimer *t, void (*fn)(struct itimer *t))
{
	callout_init(&t->callout, expire, t);
	spin_init(&t->lock, "itimer");
	t->deadline_ns = t->interval_ns = 0;
	t->due = false;
	t->fn = fn;
}

/* lock held */
static struct itimer_left
left_of(const struct itimer *t, uint64_t now)
{
	struct itimer_left l = {0, t->interval_ns};

	if (t->deadline_ns > now)
		l.left_ns = t->deadline_ns - now;
	else if (t->deadline_ns != 0 && t->interval_ns != 0)
		l.left_ns = t->interval_ns - (now - t->deadline_ns) % t->interval_ns;
	else if (t->deadline_ns != 0 && !t->due)
		l.left_ns = 1;
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
	spin_unlock(&t->lock);
	/* It may expire now, and itimer_take() may have set it again: the last call waits for that.
	 */
	while (callout_stop(&t->callout))
		;
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
itimer_take(struct itimer *t, uint64_t pause_ns)
{
	uint64_t n = 0, now;

	spin_lock(&t->lock);
	if (t->due) {
		t->due = false;
		n = 1;
		if (t->interval_ns == 0) {
			t->deadline_ns = 0;
		} else {
			now = clock_ns() + pause_ns;
			n += now > t->deadline_ns ? (now - t->deadline_ns) / t->interval_ns : 0;
			t->deadline_ns += n * t->interval_ns;
			callout_set(&t->callout, t->deadline_ns);
		}
	}
	spin_unlock(&t->lock);
	return n;
}

bool
itimer_is_due(const struct itimer *t)
{
	return __atomic_load_n(&t->due, __ATOMIC_RELAXED);
}
