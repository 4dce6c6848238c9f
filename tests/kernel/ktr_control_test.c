/*
 * ktr_control_test.c - what is recorded: sites switched while they run, CPUs that are masked,
 * threads whose events are suppressed. And the sysctls debug.ktr.*.
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/registry.h"
#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define SWITCH_NS     200000000ull
#define SWITCH_MAX_NS 200000000000ull

static bool stop;         /* atomic */
static uint64_t on_calls; /* atomic: evaluations of the arguments, which is the number of records */

static void
run_sites(unsigned i, void *arg)
{
	uint64_t end = clock_ns() + SWITCH_MAX_NS; /* if the test fails before it stops this */

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE) && clock_ns() < end) {
		CTR1(KTR_SPARE2, "test: switched a %u",
		     (__atomic_fetch_add(&on_calls, 1, __ATOMIC_RELAXED), i));
		CTR2(KTR_SPARE3, "test: switched b %u %u", i, i + 1);
		CTR0(KTR_SPARE2 | KTR_SPARE3, "test: switched c");
	}
}

static bool
more_is_recorded(void *arg)
{
	struct ktr_stats now;

	ktr_test_sum(&now);
	return now.recorded > *(uint64_t *)arg;
}

KTEST(ktr_sites_switch_while_all_cpus_run_them)
{
	struct ktr_stats off, still_off;
	uint64_t calls, end;
	unsigned rounds = 0;

	ktr_test_begin(1024);
	stop = false;
	on_calls = 0;
	ktest_start(ktest_busy_cpus(), true, run_sites, NULL);
	/* Each change interrupts every CPU several times, which takes long on a slow host. */
	end = clock_ns() + SWITCH_NS;
	while (rounds < 2 || (rounds < 50 && clock_ns() < end) ||
	       (__atomic_load_n(&on_calls, __ATOMIC_ACQUIRE) == 0 &&
		clock_ns() < end + SWITCH_NS * 50)) {
		rounds++;
		thread_sleep_ns(1000000, 0, "ktest"); /* with one CPU, lets the other threads run */
		ktr_mask_set(KTR_SPARE2);
		ktr_mask_set(KTR_SPARE3);
		ktr_mask_set(KTR_SPARE2 | KTR_SPARE3);
		thread_sleep_ns(1000000, 0, "ktest");
		ktr_mask_set(0);
	}
	ktest_note("%u times on and off", rounds);
	calls = __atomic_load_n(&on_calls, __ATOMIC_ACQUIRE);
	KT_GT(calls, 0);
	ktr_test_sum(&off);
	thread_sleep_ns(20000000, 0, "ktest");
	ktr_test_sum(&still_off);
	/*
	 * A record in progress when the last site was switched off may finish: at most one on each
	 * CPU.
	 */
	KT_LE(still_off.recorded - off.recorded, ncpus);
	KT_LE(__atomic_load_n(&on_calls, __ATOMIC_ACQUIRE) - calls, ncpus);
	KT_GT(ktr_select(KTR_OWNER_COMMAND, "*switched b*", true, NULL, NULL, 0), 0);
	KT_ASSERT(ktest_wait(more_is_recorded, &still_off.recorded));
	KT_LE(__atomic_load_n(&on_calls, __ATOMIC_ACQUIRE) - calls, ncpus);
	KT_GT(ktr_select(KTR_OWNER_COMMAND, "*switched b*", false, NULL, NULL, 0), 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	ktest_join();
	ktr_test_accounting();
	ktr_test_end();
}

#define SITE_EVENTS 100u

static void
record_some(unsigned i, void *arg)
{
	for (unsigned n = 0; n < SITE_EVENTS; n++)
		CTR2(KTR_SPARE2, "test: some %u %u", i, n);
}

KTEST(ktr_cpumask_suppresses_events_of_other_cpus_and_counts_them)
{
	struct ktr_stats before[MAX_CPUS], s;

	ktr_test_begin(1024);
	ktr_mask_set(KTR_SPARE2);
	ktr_cpumask_set(1);
	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		KT_ASSERT(ktr_stats_get(cpu, &before[cpu]));
	ktest_start(ncpus, true, record_some, NULL);
	ktest_join();
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		KT_ASSERT(ktr_stats_get(cpu, &s));
		KT_EQ(s.recorded - before[cpu].recorded, cpu == 0 ? SITE_EVENTS : 0);
		KT_EQ(s.suppressed - before[cpu].suppressed, cpu == 0 ? 0 : SITE_EVENTS);
	}
	ktr_cpumask_set(~0ull);
	ktest_start(ncpus, true, record_some, NULL);
	ktest_join();
	ktr_mask_set(0);
	for (unsigned cpu = 1; cpu < ncpus; cpu++) {
		KT_ASSERT(ktr_stats_get(cpu, &s));
		KT_EQ(s.recorded - before[cpu].recorded, SITE_EVENTS);
		KT_EQ(s.suppressed - before[cpu].suppressed, SITE_EVENTS);
	}
	ktr_test_accounting();
	ktr_test_end();
}

static bool suppressed_done; /* atomic */

static void
suppressed_thread(void *arg)
{
	for (unsigned n = 0; n < SITE_EVENTS; n++) {
		CTR1(KTR_SPARE2, "test: suppressed %u", n);
		if (n % 10 == 0)
			sched_yield(); /* it is suppressed after a switch, too */
	}
	__atomic_store_n(&suppressed_done, true, __ATOMIC_RELEASE);
}

static bool
suppressed_is_done(void *arg)
{
	return __atomic_load_n(&suppressed_done, __ATOMIC_ACQUIRE);
}

KTEST(ktr_suppressed_threads_record_nothing_and_are_counted)
{
	struct ktr_stats before, after;
	struct thread *t;

	ktr_test_begin(1024);
	ktr_mask_set(KTR_SPARE2);
	suppressed_done = false;
	ktr_test_sum(&before);
	t = thread_alloc("suppressed", PRIO_KERN, suppressed_thread, NULL);
	KT_ASSERT(t != NULL);
	t->ktr_suppress = true;
	wake_up_new_task(t);
	KT_ASSERT(ktest_wait(suppressed_is_done, NULL));
	ktr_mask_set(0);
	ktr_test_sum(&after);
	KT_EQ(after.recorded, before.recorded);
	KT_EQ(after.suppressed - before.suppressed, SITE_EVENTS);
	ktr_test_end();
}

/* Ends the silence of a thread that waits, which is another one's of the same number. */
static void
end_silence(void *arg)
{
	sched_end_silence(1);
	__atomic_store_n(&suppressed_done, true, __ATOMIC_RELEASE);
}

/* No switch may come while only half of a silence is set: its other half would never end. */
KTEST(ktr_silences_begin_and_end_as_a_whole)
{
	struct thread *t;

	suppressed_done = false;
	sched_silence(1);
	KT_ASSERT(curthread()->silent && curthread()->ktr_suppress);
	t = thread_alloc("closes", PRIO_KERN, end_silence, NULL);
	KT_ASSERT(t != NULL);
	wake_up_new_task(t);
	KT_ASSERT(ktest_wait(suppressed_is_done, NULL));
	thread_sleep_ns(1000, 0, "ktest"); /* a switch ends it */
	KT_ASSERT(!curthread()->silent && !curthread()->ktr_suppress);
}

static struct {
	struct callout callout;
	unsigned calls;
	bool woke; /* atomic */
} interrupting;

static bool
nothing_woke(void *arg)
{
	return !__atomic_load_n(&interrupting.woke, __ATOMIC_ACQUIRE);
}

/* From the timer interrupt: it wakes who sleeps, and records before and after. */
static void
wake_between(void *arg)
{
	CTR0(KTR_SPARE2, "test: before the wakeup");
	if (wakeup(&interrupting) == 1)
		__atomic_store_n(&interrupting.woke, true, __ATOMIC_RELEASE);
	else
		callout_set(&interrupting.callout, clock_ns() + 1000000);
	interrupting.calls++;
	CTR0(KTR_SPARE2, "test: after the wakeup");
}

static void
interrupted_thread(void *arg)
{
	callout_set(&interrupting.callout, clock_ns() + 1000000);
	while (nothing_woke(NULL)) {
	}
	suppressed_thread(NULL);
}

KTEST(ktr_interrupts_of_suppressed_threads_record_all_that_they_do)
{
	struct ktr_stats before, after;
	struct thread *t;

	ktr_test_begin(1024);
	ktr_mask_set(KTR_SPARE2);
	suppressed_done = false;
	interrupting.calls = 0;
	interrupting.woke = false;
	callout_init(&interrupting.callout, wake_between, NULL);
	ktr_test_sum(&before);
	t = thread_alloc("interrupted", PRIO_KERN, interrupted_thread, NULL);
	KT_ASSERT(t != NULL);
	t->ktr_suppress = true;
	wake_up_new_task(t);
	while (nothing_woke(NULL))
		sleepq_wait(&(struct sleep_request){.chan = &interrupting,
						    .still = nothing_woke,
						    .wmesg = "ktest",
						    .deadline_ns = clock_ns() + 10000000});
	KT_ASSERT(ktest_wait(suppressed_is_done, NULL));
	ktr_mask_set(0);
	ktr_test_sum(&after);
	KT_EQ(after.recorded - before.recorded, 2 * interrupting.calls);
	KT_EQ(after.suppressed - before.suppressed, SITE_EVENTS);
	ktr_test_end();
}

KTEST(ktr_strings_of_events_are_read_only_data_or_interned)
{
	char text[64], local[] = "on the stack";
	struct ktr_site site = {.fmt = "a %s b %s", .nargs = 2};
	struct ktr_entry e = {.args = {(uintptr_t)local, (uintptr_t)ktr_intern(local)}};

	ktr_entry_text(text, sizeof(text), &site, &e, 0, KTR_SEQ_NEWEST);
	KT_ASSERT(strstr(text, "a (bad 0x") == text);
	KT_ASSERT(strstr(text, ") b on the stack") != NULL);
	e.args[0] = (uintptr_t) "constant";
	ktr_entry_text(text, sizeof(text), &site, &e, 0, KTR_SEQ_NEWEST);
	KT_STR_EQ(text, "a constant b on the stack");
}

static void
check_get(const char *name, const char *expected)
{
	const struct sysctl *s = sysctl_find(name);
	char text[256];
	struct sbuf out;

	KT_ASSERT(s != NULL);
	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(s, &out);
	if (strcmp(text, expected) != 0)
		ktest_fail(__FILE__, __LINE__, "%s: found \"%s\", expected \"%s\"", name, text,
			   expected);
}

KTEST(ktr_sysctls_round_trip)
{
	static const struct {
		const char *name, *set, *get;
	} cases[] = {
	    {"debug.ktr.mask", "SYSC | ktr_proc", "PROC,SYSC"},
	    {"debug.ktr.mask", "0x20000000", "SCHED"},
	    {"debug.ktr.mask", "ALL", "ALL"},
	    {"debug.ktr.mask", "NONE", "NONE"},
	    {"debug.ktr.cpumask", "0-1,5", "0-1,5"},
	    {"debug.ktr.cpumask", "all", "all"},
	    {"debug.ktr.entries", "1000", "1024"},
	    {"debug.ktr.entries", "4", "4"},
	    {"debug.ktr.entries", "4096", "4096"},
	    {"debug.ktr.verbose", "1", "1"},
	    {"debug.ktr.verbose", "0", "0"},
	    {"debug.ktr.clear", "1", "0"},
	    {"debug.ktr.alq_depth", "32", "32"},
	    {"debug.ktr.alq_depth", "1024", "1024"},
	    {"debug.ktr.alq_max", "12345678901", "12345678901"},
	    {"debug.ktr.alq_max", "0", "0"},
	    {"debug.ktr.alq_file", "/tmp/ktest.ktr", "/tmp/ktest.ktr"},
	    {"debug.ktr.alq_enable", "0", "0"},
	    {"debug.ktr.on", "*switched c*", "1 trace point switched on"},
	    {"debug.ktr.on", "*switched c*", "0 trace points switched on; 1 was on"},
	    {"debug.ktr.off", "*switched c*", "1 trace point switched off"},
	    {"debug.ktr.on", "INET6", "0 trace points switched on"},
	    {"debug.ktr.off", "INET6", "0 trace points switched off"},
	    {"debug.ktr.mask", "INET,INET6", "INET,INET6"},
	    {"debug.ktr.mask", "-INET", "INET6"},
	    {"debug.ktr.mask", "+INET,-INET6", "INET"},
	    {"debug.ktr.mask", "-ALL", "NONE"},
	};
	char err[160];

	ktr_test_begin(4096);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int error = sysctl_set_text(cases[i].name, cases[i].set, err, sizeof(err));

		if (error != 0)
			ktest_fail(__FILE__, __LINE__, "%s=%s: error %d, %s", cases[i].name,
				   cases[i].set, -error, err);
		check_get(cases[i].name, cases[i].get);
	}
	ktr_test_end();
}

KTEST(ktr_sysctls_refuse_nonsense_with_a_sentence)
{
	static const struct {
		const char *name, *set;
		int error;
		const char *sentence; /* must occur in it */
	} cases[] = {
	    {"debug.ktr.mask", "SCHD", -EINVAL, "no class \"SCHD\"; did you mean SCHED?"},
	    {"debug.ktr.mask", "", -EINVAL, ""},
	    {"debug.ktr.cpumask", "0-", -EINVAL, ""},
	    {"debug.ktr.cpumask", "four", -EINVAL, ""},
	    {"debug.ktr.entries", "3", -ERANGE, "expected 4 to 16777216"},
	    {"debug.ktr.entries", "many", -EINVAL, "expected a number"},
	    {"debug.ktr.verbose", "3", -ERANGE, "expected 0 to 2"},
	    {"debug.ktr.clear", "yes", -EINVAL, "expected a number"},
	    {"debug.ktr.on", "no/such/file.c:1", -ENOENT, ""},
	    {"debug.ktr.version", "1", -EPERM, ""},
	    {"debug.ktr.compile", "ALL", -EPERM, ""},
	    {"debug.ktr.stats", "0", -EPERM, ""},
	    {"debug.ktr.alq_cnt", "0", -EPERM, ""},
	    {"debug.ktr.alq_failed", "0", -EPERM, ""},
	    {"debug.ktr.alq_enable", "2", -ERANGE, "expected 0 to 1"},
	    {"debug.ktr.alq_depth", "0", -ERANGE, "expected 1 to 65536"},
	    {"debug.ktr.alq_max", "-1", -EINVAL, "expected a number"},
	    {"debug.ktr.alq_file", "relative", -EINVAL, "absolute path"},
	    {"debug.ktr.alq_file", "/no/such/dir/x", -ENOENT, "cannot open /no/such/dir/x"},
	};
	char err[160];

	ktr_test_begin(256);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int error;

		err[0] = '\0';
		error = sysctl_set_text(cases[i].name, cases[i].set, err, sizeof(err));
		if (error != cases[i].error || err[0] == '\0' ||
		    strstr(err, cases[i].sentence) == NULL)
			ktest_fail(__FILE__, __LINE__,
				   "%s=%s: found error %d, \"%s\"; expected error %d, \"%s\"",
				   cases[i].name, cases[i].set, -error, err, -cases[i].error,
				   cases[i].sentence);
	}
	KT_EQ(ktr_mask_get(), 0);
	KT_EQ(ktr_entries_get(), 256);
	ktr_test_end();
}

KTEST(ktr_sysctl_lists_have_a_line_for_each)
{
	static char text[1 << 20];
	static const char *names[] = {"debug.ktr.probes", "debug.ktr.classes", "debug.ktr.stats"};
	unsigned expected[] = {1, ktr_class_count + 1, ncpus + 1};

	for (unsigned i = 0; i < ktr_site_count(); i++)
		expected[0] += ktr_site_is_probe(ktr_site_get(i));

	for (unsigned i = 0; i < 3; i++) {
		struct sbuf out;
		unsigned lines = 1;

		sbuf_init(&out, text, sizeof(text));
		sysctl_get_text(sysctl_find(names[i]), &out);
		KT_ASSERT(!sbuf_is_cut(&out));
		for (const char *p = text; *p != '\0'; p++)
			lines += *p == '\n';
		KT_EQ(lines, expected[i]);
	}
}

static bool sites_read; /* atomic */

static void
read_sites(void *arg)
{
	struct sbuf out;

	sbuf_init(&out, NULL, 0);
	sysctl_get_text(sysctl_find("debug.ktr.sites"), &out);
	__atomic_store_n(&sites_read, true, __ATOMIC_RELEASE);
}

/* Owners, whose names are printed, come and go under this lock. */
KTEST(ktr_names_of_owners_are_read_under_the_control_lock)
{
	const struct thread *t;
	bool early = false;

	sites_read = false;
	ktr_mask_set(KTR_SPARE2);
	ktr_port_lock();
	t = thread_create("reader", PRIO_KERN, read_sites, NULL);
	KT_ASSERT(t != NULL);
	while (!early && (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) != THREAD_SLEEPING ||
			  t->lockname == NULL)) {
		sched_yield();
		early = __atomic_load_n(&sites_read, __ATOMIC_ACQUIRE);
	}
	ktr_port_unlock();
	while (!__atomic_load_n(&sites_read, __ATOMIC_ACQUIRE))
		sched_yield();
	ktr_mask_set(0);
	KT_ASSERT(!early);
}

static unsigned lists_read; /* atomic */

static void
read_lists(unsigned i, void *arg)
{
	static const char *const names[] = {"debug.ktr.sites", "debug.ktr.probes"};
	struct sbuf out;

	sbuf_init(&out, NULL, 0);
	sysctl_get_text(sysctl_find(names[i]), &out);
	KT_GT(out.len, 10000);
	__atomic_fetch_add(&lists_read, 1, __ATOMIC_RELEASE);
}

static bool
lists_are_read(void *arg)
{
	return __atomic_load_n(&lists_read, __ATOMIC_ACQUIRE) == 2;
}

/* Anybody may print them, all the time: the lock is taken for what needs it only. */
KTEST(ktr_long_lists_are_printed_without_the_control_lock)
{
	bool read;

	lists_read = 0;
	ktr_mask_set(0);
	ktr_port_lock();
	ktest_start(2, false, read_lists, NULL);
	read = ktest_wait(lists_are_read, NULL);
	ktr_port_unlock();
	ktest_join();
	KT_ASSERT(read);
}
