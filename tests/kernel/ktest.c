/*
 * ktest.c - finds the tests in section ktests, runs them one after the other, prints TAP.
 *
 * Locking: `failed`, `skipped`, `running` and `helpers` are atomic; the runner alone uses the rest.
 */
#include "tests/kernel/ktest.h"

#include <stdarg.h>
#include <stddef.h>

#include "kernel/fs/cache/pagecache.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/shutdown.h"
#include "kernel/lib/string.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/registry.h"
#include "kernel/sysctl/tunable.h"
#include "ktr/glob.h"

#define POLL_NS     1000000ul
#define HELPERS_MAX 64
#define LINE_MAX    256

extern const struct ktest __start_ktests[], __stop_ktests[];

struct helper {
	void (*fn)(unsigned i, void *arg);
	void *arg;
	unsigned i;
};

static bool failed;
static const char *skipped;
static bool running;     /* the test's own thread has not ended */
static unsigned helpers; /* threads of ktest_start() that have not ended */
static struct helper helper_args[HELPERS_MAX];
static struct thread *test_thread;

void
ktest_note(const char *fmt, ...)
{
	char line[LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	pr_warn("# %s\n", line);
}

static _Noreturn void
ktest_leave(void)
{
	if (curthread() == test_thread)
		__atomic_store_n(&running, false, __ATOMIC_RELEASE);
	else
		__atomic_fetch_sub(&helpers, 1, __ATOMIC_RELEASE);
	thread_exit();
}

void
ktest_fail(const char *file, int line, const char *fmt, ...)
{
	char text[LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pr_warn("# %s:%d: %s\n", file, line, text);
	__atomic_store_n(&failed, true, __ATOMIC_RELEASE);
	ktest_leave();
}

void
ktest_skip(const char *why)
{
	__atomic_store_n(&skipped, why, __ATOMIC_RELEASE);
	ktest_leave();
}

void
ktest_check_str(const char *file, int line, const char *what, const char *found,
		const char *expected)
{
	if (strcmp(found, expected) != 0)
		ktest_fail(file, line, "%s: found \"%s\", expected \"%s\"", what, found, expected);
}

static bool
wait_for(bool (*cond)(void *arg), void *arg, unsigned seconds)
{
	uint64_t deadline = clock_ns() + seconds * 1000000000ull;

	while (!cond(arg)) {
		if (clock_ns() > deadline)
			return false;
		thread_sleep_ns(POLL_NS, 0, "ktest");
	}
	return true;
}

bool
ktest_wait(bool (*cond)(void *arg), void *arg)
{
	return wait_for(cond, arg, KTEST_WAIT_S);
}

static void
helper_main(void *arg)
{
	struct helper *h = arg;

	h->fn(h->i, h->arg);
	ktest_leave();
}

void
ktest_start(unsigned n, bool cpu_of_thread, void (*fn)(unsigned i, void *arg), void *arg)
{
	if (n > HELPERS_MAX)
		ktest_fail(__FILE__, __LINE__, "%u threads, expected at most %d", n, HELPERS_MAX);
	for (unsigned i = 0; i < n; i++) {
		struct thread *t;

		helper_args[i] = (struct helper){fn, arg, i};
		t = thread_alloc("ktest helper", PRIO_KERN, helper_main, &helper_args[i]);
		if (t == NULL)
			ktest_fail(__FILE__, __LINE__, "no memory for helper thread %u", i);
		if (cpu_of_thread) {
			t->cpu = i;
			t->cpus = 1ul << t->cpu;
		}
		__atomic_fetch_add(&helpers, 1, __ATOMIC_RELAXED);
		wake_up_new_task(t);
	}
}

static bool
helpers_gone(void *arg)
{
	return __atomic_load_n(&helpers, __ATOMIC_ACQUIRE) == 0;
}

void
ktest_join(void)
{
	if (!ktest_wait(helpers_gone, NULL))
		ktest_fail(__FILE__, __LINE__, "%u helper threads did not return", helpers);
	if (__atomic_load_n(&failed, __ATOMIC_ACQUIRE))
		ktest_leave();
}

static void
test_main(void *arg)
{
	const struct ktest *t = arg;

	test_thread = curthread();
	t->fn();
	ktest_leave();
}

static bool
test_done(void *arg)
{
	return !__atomic_load_n(&running, __ATOMIC_ACQUIRE) && helpers_gone(NULL);
}

/* Counts threads. A reaper that does not sleep may still free one, so it counts as one. */
static int
count_thread(struct thread *t, void *arg)
{
	bool reaps =
	    strcmp(t->name, "reaper") == 0 && __atomic_load_n(&t->chan, __ATOMIC_ACQUIRE) == NULL;

	*(unsigned *)arg += reaps ? 2 : 1;
	return 0;
}

/* Are there no more threads than before the first test, and is the memory of the others free? */
static bool
threads_gone(void *arg)
{
	unsigned n = 0;

	thread_each(count_thread, &n);
	return n <= *(unsigned *)arg;
}

/* A test hangs: what does each thread wait for? */
static int
tell_thread(struct thread *t, void *arg)
{
	const char *why = t->lockname != NULL ? t->lockname : t->wmesg;

	ktest_note("thread %u, %s, CPU %u: %s", t->tid, t->name, t->cpu,
		   __atomic_load_n(&t->chan, __ATOMIC_RELAXED) != NULL && why != NULL
		       ? why
		       : "does not sleep");
	return 0;
}

/* True: passed or skipped. */
static bool
ktest_one(const struct ktest *t, unsigned number, unsigned threads)
{
	uint64_t start = clock_ns();

	failed = false;
	skipped = NULL;
	running = true;
	if (thread_create("ktest", PRIO_KERN, test_main, (void *)t) == NULL)
		panic("test %s: no memory for its thread", t->name);
	if (!wait_for(test_done, NULL, KTEST_DEADLINE_S)) {
		thread_each(tell_thread, NULL);
		pr_warn("# not done after %d seconds: its thread %s, %u helpers left\n"
			"not ok %u - %s\nBail out! %s hangs\n",
			KTEST_DEADLINE_S, running ? "is left" : "ended", helpers, number, t->name,
			t->name);
		shutdown_poweroff(1);
	}
	/* The next test may compare what memory is free before and after it. */
	if (!failed && !ktest_wait(threads_gone, &threads)) {
		pr_warn("# it leaves threads\n");
		failed = true;
	}
	if (skipped != NULL)
		pr_warn("ok %u - %s # SKIP %s\n", number, t->name, skipped);
	else
		pr_warn("%sok %u - %s # %llu ms\n", failed ? "not " : "", number, t->name,
			(unsigned long long)(clock_ns() - start) / 1000000);
	return !failed;
}

unsigned
ktest_times(unsigned suite, unsigned whole)
{
	const char *wanted = tunable_get("kern.test.whole");

	return wanted != NULL && strcmp(wanted, "1") == 0 ? whole : suite;
}

unsigned
ktest_busy_cpus(void)
{
	return ncpus < 4 ? ncpus : ktest_times(4, ncpus);
}

/* Benchmarks and deaths do not pass or fail here: they run only if asked for by name. */
static bool
ktest_matches(const struct ktest *t, const char *glob)
{
	static const char *const asked_for[] = {KTEST_BENCH, KTEST_DEATH};

	for (unsigned i = 0; i < 2; i++)
		if (strncmp(t->name, asked_for[i], strlen(asked_for[i])) == 0 &&
		    strncmp(glob, asked_for[i], strlen(asked_for[i])) != 0)
			return false;
	return ktr_glob(glob, t->name);
}

/* globs: one, or several with commas between them. */
static bool
ktest_chosen(const struct ktest *t, const char *globs)
{
	char glob[256];

	for (const char *end; (end = strchr(globs, ',')) != NULL; globs = end + 1) {
		size_t len = end - globs;

		strlcpy(glob, globs, len < sizeof(glob) ? len + 1 : sizeof(glob));
		if (ktest_matches(t, glob))
			return true;
	}
	return ktest_matches(t, globs);
}

/* Runs the tests whose names match, and powers off with status 0, or 1 when one failed. */
static void
ktest_run(const char *glob)
{
	unsigned count = 0, number = 0, bad = 0, threads = 0;

	for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
		count += ktest_chosen(t, glob);
	pr_warn("TAP version 13\n1..%u\n", count);
	writeback_start(); /* of the threads that the first mount starts none is a test's */
	thread_each(count_thread, &threads);
	if (count == 0)
		pr_warn("# no test matches \"%s\"; there are %lu\n", glob,
			(unsigned long)(__stop_ktests - __start_ktests));
	for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
		if (ktest_chosen(t, glob))
			bad += !ktest_one(t, ++number, threads);
	pr_warn("# %u of %u failed\n", bad, count);
	shutdown_poweroff(bad > 0 || count == 0 ? 1 : 0);
}

/* There is no operator: a panic reports and powers off. */
static void
ktest_booted(void)
{
	const char *glob = tunable_get("kern.test");
	char err[128];

	if (glob == NULL)
		return;
	sysctl_set_text("debug.panic.action", "dump", err, sizeof(err));
	ktest_run(glob);
}

HOOK(booted, ktest_booted);
TUNABLE(kern_test, "kern.test",
	"runs the in-kernel tests whose names match: globs, with commas between them");
TUNABLE(kern_test_whole, "kern.test.whole",
	"1: the tests repeat as often as they can, not as the suite wants");
