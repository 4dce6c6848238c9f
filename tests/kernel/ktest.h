/*
 * ktest.h - tests that run inside the kernel (build/ARCH/kestrel-test, tunable kern.test=GLOB,...).
 *
 *	KTEST(heap_gives_aligned_memory)
 *	{
 *		void *p = kmalloc(24);
 *		KT_ASSERT(p != NULL);
 *		KT_EQ((uintptr_t)p % 16, 0);
 *		kfree(p);
 *	}
 *
 * A test runs in a kernel thread of its own, which a failed assertion ends. Results are TAP on the
 * console, with found and expected values as diagnostics. A test that takes longer than
 * KTEST_DEADLINE_S seconds ends the run. Tests whose names begin with KTEST_BENCH are benchmarks,
 * which only a glob that begins so chooses: kern.test=bench_*. So are tests that end in a panic,
 * KTEST_DEATH, which tests/system/test_deaths.py asks for one by one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KTEST_DEADLINE_S 300
#define KTEST_WAIT_S     240 /* for a single wait, after which a test can still say what is missing */
#define KTEST_BENCH      "bench_"
#define KTEST_DEATH      "death_"

struct ktest {
	const char *name;
	void (*fn)(void);
};

#define KTEST(ident)                                                                           \
	static void ktest_fn_##ident(void);                                                    \
	static const struct ktest ktest_entry_##ident                                          \
	    __attribute__((section("ktests"), used, aligned(8))) = {#ident, ktest_fn_##ident}; \
	static void ktest_fn_##ident(void)

/* Prints a diagnostic line that begins with "# ". Any context but NMI. */
void ktest_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Fails the test and ends the calling thread. Thread context, no spin lock held. */
_Noreturn void ktest_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends the test as skipped: the machine lacks something. why is read-only data. */
_Noreturn void ktest_skip(const char *why);

/*
 * Runs fn(i, arg) in n more threads, i from 0. cpu_of_thread: thread i stays on CPU i. They may use
 * assertions. ktest_join() waits until all have returned, and fails if one of them failed.
 */
void ktest_start(unsigned n, bool cpu_of_thread, void (*fn)(unsigned i, void *arg), void *arg);
void ktest_join(void);
/*
 * How often a test repeats something: suite times, or whole times with kern.test.whole=1. What
 * stops all CPUs takes time in proportion to their number, and much more where the host has fewer.
 */
unsigned ktest_times(unsigned suite, unsigned whole);
/* How many CPUs a test keeps busy while it stops all of them again and again: in the suite at most
 * four. */
unsigned ktest_busy_cpus(void);
/* Waits until cond(arg) is true; false after KTEST_WAIT_S seconds. */
bool ktest_wait(bool (*cond)(void *arg), void *arg);

#define KT_ASSERT(c)                                                                     \
	do {                                                                             \
		if (!(c))                                                                \
			ktest_fail(__FILE__, __LINE__, "found false, expected: %s", #c); \
	} while (0)
#define KT_COMPARE_(a, op, b)                                                                   \
	do {                                                                                    \
		long long ktest_a_ = (long long)(a), ktest_b_ = (long long)(b);                 \
		if (!(ktest_a_ op ktest_b_))                                                    \
			ktest_fail(__FILE__, __LINE__,                                          \
				   "%s: found %lld (%#llx), expected " #op " %lld (%#llx)", #a, \
				   ktest_a_, (unsigned long long)ktest_a_, ktest_b_,            \
				   (unsigned long long)ktest_b_);                               \
	} while (0)
#define KT_EQ(a, b)     KT_COMPARE_(a, ==, b)
#define KT_NE(a, b)     KT_COMPARE_(a, !=, b)
#define KT_GE(a, b)     KT_COMPARE_(a, >=, b)
#define KT_GT(a, b)     KT_COMPARE_(a, >, b)
#define KT_LE(a, b)     KT_COMPARE_(a, <=, b)
#define KT_LT(a, b)     KT_COMPARE_(a, <, b)
#define KT_STR_EQ(a, b) ktest_check_str(__FILE__, __LINE__, #a, a, b)

void ktest_check_str(const char *file, int line, const char *what, const char *found,
		     const char *expected);
