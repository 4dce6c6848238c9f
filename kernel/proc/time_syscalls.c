/*
 * time_syscalls.c - system calls on clocks, sleeping and used time.
 * Locking: real_lock while a sleep until a time of the clock of the day begins.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/resource.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/time.h"
#include "kernel/lib/clock.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/cpu_clock.h"
#include "kernel/proc/itimer.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define NS_PER_S 1000000000l

static struct spinlock real_lock = SPINLOCK_INIT("real time"); /* of the clock of the day */

static struct timespec
to_timespec(uint64_t ns)
{
	return (struct timespec){(int64_t)(ns / NS_PER_S), (int64_t)(ns % NS_PER_S)};
}

static struct timeval
to_timeval(uint64_t ns)
{
	return (struct timeval){(int64_t)(ns / NS_PER_S), (int64_t)(ns % NS_PER_S / 1000)};
}

#define SECONDS_MAX (1l << 33) /* 272 years, or until 2242; longer spans count as this */

static bool
good_timeval(const struct timeval *t)
{
	return t->tv_sec >= 0 && t->tv_usec >= 0 && t->tv_usec < 1000000;
}

static uint64_t
from_timeval(const struct timeval *t)
{
	int64_t s = t->tv_sec < SECONDS_MAX ? t->tv_sec : SECONDS_MAX;

	return (uint64_t)(s * NS_PER_S + t->tv_usec * 1000);
}

/* Reads a span, or a time since 1970. 0, -EFAULT or -EINVAL. */
static int
take_timespec(uint64_t from, uint64_t *ns)
{
	struct timespec ts;

	if (copy_in(&ts, from, sizeof(ts)) != 0)
		return -EFAULT;
	if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= NS_PER_S)
		return -EINVAL;
	if (ts.tv_sec > SECONDS_MAX)
		ts = (struct timespec){SECONDS_MAX, 0};
	*ns = (uint64_t)(ts.tv_sec * NS_PER_S + ts.tv_nsec);
	return 0;
}

/* The current process's. */
static struct usage
own_usage(void)
{
	struct usage t;

	spin_lock(&proc_lock);
	t = proc_usage(curproc());
	spin_unlock(&proc_lock);
	return t;
}

/* The time of a clock. False: there is no such clock. */
static bool
read_clock(uint32_t id, uint64_t *ns)
{
	switch (id) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		*ns = clock_real_now_ns();
		return true;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		*ns = clock_ns();
		return true;
	default:
		return cpu_clock_read(id, ns);
	}
}

int64_t
sys_clock_gettime(const uint64_t a[6])
{
	uint64_t now;
	struct timespec ts;

	if (!read_clock(cpu_clock_to_read((uint32_t)a[0]), &now))
		return -EINVAL;
	ts = to_timespec(now);
	return copy_out(a[1], &ts, sizeof(ts));
}

bool
clock_has_timers(uint32_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

int
take_itimerspec(uint64_t from, uint32_t clock, bool absolute, struct itimer_when *when)
{
	uint64_t value;
	int r = take_timespec(from, &when->interval_ns);

	if (r == 0)
		r = take_timespec(from + sizeof(struct timespec), &value);
	if (r != 0)
		return r;
	when->deadline_ns = value == 0 || absolute ? value : clock_ns() + value;
	when->real = absolute && clock == CLOCK_REALTIME;
	return 0;
}

int
give_itimerspec(uint64_t to, const struct itimer_left *left)
{
	struct timespec t[2] = {to_timespec(left->interval_ns), to_timespec(left->left_ns)};

	return copy_out(to, t, sizeof(t));
}

int64_t
sys_clock_getres(const uint64_t a[6])
{
	struct timespec ts = {0, 1};
	uint64_t now;

	if (!read_clock((uint32_t)a[0], &now))
		return -EINVAL;
	return a[1] != 0 ? copy_out(a[1], &ts, sizeof(ts)) : 0;
}

int64_t
sys_gettimeofday(const uint64_t a[6])
{
	static const int32_t utc[2]; /* struct timezone */
	struct timeval now = to_timeval(clock_real_now_ns());

	if (a[0] != 0 && copy_out(a[0], &now, sizeof(now)) != 0)
		return -EFAULT;
	return a[1] != 0 ? copy_out(a[1], utc, sizeof(utc)) : 0;
}

int64_t
sys_time(const uint64_t a[6])
{
	int64_t now = (int64_t)(clock_real_now_ns() / NS_PER_S);

	return a[0] != 0 && copy_out(a[0], &now, sizeof(now)) != 0 ? -EFAULT : now;
}

/*
 * Sets the clock of the day, from which files get their times. Whoever waits until a time of that
 * clock, in clock_nanosleep(), for a timer or for a futex, waits until the clock shows it.
 */
static int64_t
set_real(const struct timespec *t)
{
	uint64_t ns;

	if (t->tv_sec < 0 || t->tv_sec >= SECONDS_MAX || t->tv_nsec < 0 || t->tv_nsec >= NS_PER_S)
		return -EINVAL;
	if (!capable(CAP_SYS_TIME))
		return -EPERM;
	ns = (uint64_t)(t->tv_sec * NS_PER_S + t->tv_nsec);
	if (ns < clock_ns())
		return -EINVAL; /* before 1970 at the boot */
	CTR1(KTR_PROC, "clock set: ns %lu", ns);
	itimers_set_clock(ns);
	spin_lock(&real_lock); /* a thread that has looked at the old time is asleep by now */
	spin_unlock(&real_lock);
	wakeup(&real_lock);
	futex_clock_set();
	return 0;
}

/* Linux's numbers of a clock that nobody has corrected. None can be set, but that it has nothing to
 * catch up with. */
static int64_t
adjtimex_read(uint64_t utimex)
{
	uint64_t now = clock_real_now_ns();
	struct timex t = {.maxerror = 16000000,
			  .esterror = 16000000,
			  .status = STA_UNSYNC,
			  .constant = 2,
			  .precision = 1,
			  .tolerance = 32768000,
			  .time = {(int64_t)(now / 1000000000), (int64_t)(now % 1000000000 / 1000)},
			  .tick = 1000000 / CLK_TCK};
	struct timex to;
	bool reads;

	if (copy_in(&to, utimex, sizeof(to)) != 0)
		return -EFAULT;
	reads = to.modes == 0 || to.modes == ADJ_OFFSET_SS_READ;
	if (!reads && !capable(CAP_SYS_TIME))
		return -EPERM;
	if (!reads && !(to.modes == ADJ_OFFSET_SINGLESHOT && to.offset == 0))
		return -EOPNOTSUPP;
	t.modes = to.modes;
	return copy_out(utimex, &t, sizeof(t)) != 0 ? -EFAULT : TIME_ERROR;
}

SYSCALL_IS(adjtimex, adjtimex_read(a[0]))
SYSCALL_IS(clock_adjtime, (uint32_t)a[0] == CLOCK_REALTIME ? adjtimex_read(a[1]) : -EOPNOTSUPP)

int64_t
sys_clock_settime(const uint64_t a[6])
{
	struct timespec t;
	uint64_t now;

	if ((uint32_t)a[0] != CLOCK_REALTIME)
		return (int32_t)a[0] < 0 && cpu_clock_read((uint32_t)a[0], &now) ? -EPERM : -EINVAL;
	return copy_in(&t, a[1], sizeof(t)) != 0 ? -EFAULT : set_real(&t);
}

int64_t
sys_settimeofday(const uint64_t a[6])
{
	int32_t zone[2]; /* struct timezone: minutes; taken, and not used */
	struct timeval t;

	if (a[0] != 0 && copy_in(&t, a[0], sizeof(t)) != 0)
		return -EFAULT;
	if (a[0] != 0 && (t.tv_usec < 0 || t.tv_usec >= 1000000))
		return -EINVAL;
	if (a[1] != 0 && copy_in(zone, a[1], sizeof(zone)) != 0)
		return -EFAULT;
	if (a[0] == 0)
		return capable(CAP_SYS_TIME) ? 0 : -EPERM;
	return set_real(&(struct timespec){t.tv_sec, t.tv_usec * 1000});
}

/* Linux's numbers of what a sleeper's time counts from: since boot, from now on. */
enum hrtimer_mode { HRTIMER_MODE_ABS, HRTIMER_MODE_REL };

/* Sleeps until then, which becomes a time of clock_ns(). 0 or -EINTR. */
static __attribute__((noinline)) int
do_nanosleep(uint64_t *ns, enum hrtimer_mode mode)
{
	uint64_t now = clock_ns();

	if (mode == HRTIMER_MODE_REL)
		*ns += now;
	return now < *ns ? thread_sleep_ns(*ns - now, SLEEP_INTR, "nanslp") : 0;
}

/*
 * Sleeps for ns, or until `again`, a deadline of proc_deadline(). After a signal, *urest gets the
 * rest, if urest is not 0.
 */
static int64_t
hrtimer_nanosleep(uint64_t again, uint64_t ns, uint64_t urest)
{
	bool is_rest = again != DEADLINE_NEVER;
	uint64_t end = is_rest ? again : ns, now;
	struct timespec rest;
	int r = do_nanosleep(&end, is_rest ? HRTIMER_MODE_ABS : HRTIMER_MODE_REL);

	if (r != -EINTR || urest == 0)
		return r;
	now = clock_ns();
	rest = to_timespec(now < end ? end - now : 0);
	return copy_out(urest, &rest, sizeof(rest)) != 0 ? -EFAULT : r;
}

/* Sleeps until a time since 1970, which comes sooner or later if the clock is set meanwhile. */
static int64_t
sleep_until_real(uint64_t real_ns)
{
	uint64_t now = 0;
	int r = 0;

	spin_lock(&real_lock);
	while (r == 0 && (now = clock_real_now_ns()) < real_ns)
		r = sleep_on(&real_lock, &real_lock, "nanslp", SLEEP_INTR,
			     clock_ns() + (real_ns - now));
	spin_unlock(&real_lock);
	return r == -ETIMEDOUT ? 0 : r;
}

int64_t
sys_nanosleep(const uint64_t a[6])
{
	uint64_t ns, again = proc_deadline(DEADLINE_NEVER);
	int r = take_timespec(a[0], &ns);

	return r != 0 ? r : hrtimer_nanosleep(again, ns, a[1]);
}

int64_t
sys_clock_nanosleep(const uint64_t a[6])
{
	uint64_t ns, now, again = proc_deadline(DEADLINE_NEVER);
	int r = take_timespec(a[2], &ns);

	if (!read_clock((uint32_t)a[0], &now))
		return -EINVAL;
	if (!clock_has_timers((uint32_t)a[0]))
		return cpu_clock_sleep((uint32_t)a[0], again, a[1] & TIMER_ABSTIME, r, ns, a[3]);
	if (r != 0)
		return r;
	if (!(a[1] & TIMER_ABSTIME))
		return hrtimer_nanosleep(again, ns, a[3]);
	if ((uint32_t)a[0] == CLOCK_REALTIME)
		return sleep_until_real(ns);
	if (ns <= now)
		return 0;
	return hrtimer_nanosleep(again != DEADLINE_NEVER ? again : clock_ns() + (ns - now), 0, 0);
}

static struct usage
children_usage(void)
{
	struct usage t;

	spin_lock(&proc_lock);
	t = curproc()->children_usage;
	spin_unlock(&proc_lock);
	return t;
}

int64_t
sys_times(const uint64_t a[6])
{
	const uint64_t unit = NS_PER_S / CLK_TCK;
	const struct usage own = own_usage(), children = children_usage();
	struct tms t = {(int64_t)(own.user_ns / unit), (int64_t)(own.system_ns / unit),
			(int64_t)(children.user_ns / unit), (int64_t)(children.system_ns / unit)};

	if (a[0] != 0 && copy_out(a[0], &t, sizeof(t)) != 0)
		return -EFAULT;
	return (int64_t)(clock_ns() / unit);
}

int
rusage_give(uint64_t to, struct usage u)
{
	const struct rusage r = {.ru_utime = to_timeval(u.user_ns),
				 .ru_stime = to_timeval(u.system_ns),
				 .ru_maxrss = (long)(u.pages * PAGE_SIZE / 1024),
				 .ru_minflt = (long)u.faults,
				 .ru_majflt = (long)u.disk_faults,
				 .ru_nvcsw = (long)u.waits,
				 .ru_nivcsw = (long)u.interruptions};

	return copy_out(to, &r, sizeof(r));
}

int64_t
sys_getrusage(const uint64_t a[6])
{
	struct usage u;

	switch ((int32_t)a[0]) {
	case RUSAGE_SELF:
		return rusage_give(a[1], own_usage());
	case RUSAGE_THREAD:
		u = thread_usage(curthread());
		u.pages = own_usage().pages; /* the process's */
		return rusage_give(a[1], u);
	case RUSAGE_CHILDREN:
		return rusage_give(a[1], children_usage());
	default:
		return -EINVAL;
	}
}

/* Sets the process's timer, 0: none. */
static struct itimer_left
set_alarm(uint64_t ns, uint64_t interval_ns)
{
	return itimer_set(&curproc()->alarm, ns != 0 ? clock_ns() + ns : 0, interval_ns);
}

int64_t
sys_alarm(const uint64_t a[6])
{
	uint64_t left = set_alarm((uint32_t)a[0] * (uint64_t)NS_PER_S, 0).left_ns;

	/* The nearest second, but not 0 before it expires. */
	return (int64_t)(left > 0 && left < NS_PER_S ? 1 : (left + NS_PER_S / 2) / NS_PER_S);
}

int64_t
sys_setitimer(const uint64_t a[6])
{
	struct itimerval new = {{0, 0}, {0, 0}}, old;
	struct itimer_left left;

	if ((uint32_t)a[0] > ITIMER_PROF)
		return -EINVAL;
	if (a[1] != 0 && copy_in(&new, a[1], sizeof(new)) != 0)
		return -EFAULT;
	if (!good_timeval(&new.it_interval) || !good_timeval(&new.it_value))
		return -EINVAL;
	left = (struct itimer_left){from_timeval(&new.it_value), from_timeval(&new.it_interval)};
	left = (uint32_t)a[0] == ITIMER_REAL
		   ? set_alarm(left.left_ns, left.interval_ns)
		   : cpu_timer_set((unsigned)a[0] - ITIMER_VIRTUAL, &left);
	old = (struct itimerval){to_timeval(left.interval_ns), to_timeval(left.left_ns)};
	return a[2] != 0 && copy_out(a[2], &old, sizeof(old)) != 0 ? -EFAULT : 0;
}

int64_t
sys_getitimer(const uint64_t a[6])
{
	struct itimer_left left;
	struct itimerval t;

	if ((uint32_t)a[0] > ITIMER_PROF)
		return -EINVAL;
	left = (uint32_t)a[0] == ITIMER_REAL ? itimer_left(&curproc()->alarm)
					     : cpu_timer_set((unsigned)a[0] - ITIMER_VIRTUAL, NULL);
	if (left.left_ns > 0 && left.left_ns < 1000)
		left.left_ns = 1000; /* it runs */
	t = (struct itimerval){to_timeval(left.interval_ns), to_timeval(left.left_ns)};
	return copy_out(a[1], &t, sizeof(t));
}

uint64_t
proc_deadline(uint64_t ns)
{
	struct lwp *l = curlwp();
	uint64_t again = l != NULL ? l->again_ns : 0;

	if (again != 0)
		l->again_ns = 0;
	else if (ns != DEADLINE_NEVER)
		again = clock_ns() + ns;
	return again != 0 ? again : DEADLINE_NEVER;
}
