/*
 * kprobe_test.c - kprobes inside the kernel: a probed function does what it does without probes,
 * whichever way its instructions are run, on all CPUs at once, and nothing is left of a probe.
 */
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/errno.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/probe/kprobe.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define PLACES 400 /* more than a test function has bytes */

static char err[256];

static __attribute__((noipa)) uint64_t
twice(uint64_t v)
{
	return 2 * v;
}

static __attribute__((noipa)) uint64_t
half(uint64_t v)
{
	return v / 2;
}

/* Each conditional branch, taken or not by the flags of a comparison: a bit of the result. */
#if defined(__x86_64__)
#define BRANCH(cc, bit)                                     \
	__asm__("cmp %2, %1\n\tj" cc " 1f\n\tor %3, %0\n1:" \
		: "+r"(seen)                                \
		: "r"(a), "r"(b), "r"(1ul << (bit))         \
		: "cc")
#else
#define BRANCH(cc, bit)                                           \
	__asm__("cmp %1, %2\n\tb." cc " 1f\n\torr %0, %0, %3\n1:" \
		: "+r"(seen)                                      \
		: "r"(a), "r"(b), "r"(1ul << (bit))               \
		: "cc")
#define REGISTER(insn, bit) \
	__asm__(insn "\n\torr %0, %0, %2\n1:" : "+r"(seen) : "r"(a), "r"(1ul << (bit)))
#endif

static __attribute__((noipa)) uint64_t
kprobe_victim_branches(uint64_t a, uint64_t b)
{
	uint64_t seen = 0;

#if defined(__x86_64__)
	BRANCH("o", 0);
	BRANCH("no", 1);
	BRANCH("b", 2);
	BRANCH("ae", 3);
	BRANCH("e", 4);
	BRANCH("ne", 5);
	BRANCH("be", 6);
	BRANCH("a", 7);
	BRANCH("s", 8);
	BRANCH("ns", 9);
	BRANCH("p", 10);
	BRANCH("np", 11);
	BRANCH("l", 12);
	BRANCH("ge", 13);
	BRANCH("le", 14);
	BRANCH("g", 15);
#else
	BRANCH("eq", 0);
	BRANCH("ne", 1);
	BRANCH("cs", 2);
	BRANCH("cc", 3);
	BRANCH("mi", 4);
	BRANCH("pl", 5);
	BRANCH("vs", 6);
	BRANCH("vc", 7);
	BRANCH("hi", 8);
	BRANCH("ls", 9);
	BRANCH("ge", 10);
	BRANCH("lt", 11);
	BRANCH("gt", 12);
	BRANCH("le", 13);
	REGISTER("cbz %1, 1f", 14);
	REGISTER("cbnz %w1, 1f", 15);
	REGISTER("tbz %1, #63, 1f", 16);
	REGISTER("tbnz %1, #2, 1f", 17);
	REGISTER("tbz %1, #33, 1f", 18);
	__asm__("adr %0, 2f\n\tsub %0, %0, %1\n2:" : "=&r"(b) : "r"(&kprobe_victim_branches));
	seen ^= b << 32;
	__asm__(
	    "ldr %0, 3f\n\t.pushsection .rodata\n\t.balign 8\n3: .quad 0x1122334455667788\n\t.popsection"
	    : "=r"(b));
	seen += b;
	__asm__(
	    "ldrsw %0, 3f\n\t.pushsection .rodata\n\t.balign 8\n3: .quad 0x87654321\n\t.popsection"
	    : "=r"(b));
	seen += b;
#endif
	return seen;
}

static uint64_t (*const volatile functions[])(uint64_t) = {twice, half};

/* Calls, direct and by pointers, in memory and in a register; a jump table; data of its own. */
static __attribute__((noipa)) uint64_t
kprobe_victim_calls(uint64_t a, uint64_t b)
{
	static volatile uint64_t count;
	uint64_t sum = twice(a) + functions[b & 1](a), array[4] = {a, b, a ^ b, a + b};
	uint64_t (*pointer)(uint64_t) = functions[a & 1];

	for (unsigned i = 0; i < 4; i++) {
		switch ((array[i] >> i) % 7) {
		case 0:
			sum += pointer(array[i]);
			break;
		case 1:
			sum = sum << 3 | sum >> 61;
			break;
		case 2:
			sum *= 5;
			break;
		case 3:
			sum ^= half(sum);
			break;
		case 4:
			sum -= array[3 - i];
			break;
		case 5:
			sum = ~sum;
			break;
		default:
			sum += (int64_t)sum >> 7;
		}
	}
	count = count + 1;
	return sum;
}

static uint64_t (*const victims[])(uint64_t, uint64_t) = {kprobe_victim_branches,
							  kprobe_victim_calls};
static const char *const victim_names[] = {"kprobe_victim_branches", "kprobe_victim_calls"};
static const uint64_t values[] = {
    0, 1, 2, 3, 5, 77, 1ul << 33, 1ul << 63, INT64_MAX, UINT64_MAX, 0x123456789abcdef};
#define VALUES (sizeof(values) / sizeof(values[0]))

/* What the victims return for all values. */
static uint64_t
run_victims(unsigned which)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < VALUES; i++)
		for (unsigned j = 0; j < VALUES; j++)
			sum = sum * 31 + victims[which](values[i], values[j]);
	return sum;
}

/* Puts a probe at each instruction of a victim that begins at a multiple of step. Returns how many.
 */
static unsigned
probe_each(unsigned which, unsigned step)
{
	char text[100];
	unsigned made = 0;

	for (uintptr_t at = 0, in; at < PLACES; at += step) {
		if (ksym_lookup((uintptr_t)victims[which] + at, &in) == NULL || in != at)
			break;
		snprintf(text, sizeof(text), "p:kt%lu %s+%lu %%sp $stack0", at, victim_names[which],
			 at);
		made += kprobe_add(text, KPROBE_KERNEL, err, sizeof(err)) == 0;
	}
	return made;
}

static void
remove_all(void)
{
	char name[20];

	for (unsigned at = 0; at < PLACES; at++) {
		snprintf(name, sizeof(name), "kt%u", at);
		kprobe_del(name, KPROBE_KERNEL, err, sizeof(err));
	}
}

/* The sum of the hits of all probes, from the list. */
static uint64_t
all_hits(void)
{
	static char text[1 << 16];
	struct sbuf out;
	uint64_t sum = 0;

	sbuf_init(&out, text, sizeof(text));
	kprobe_list(&out);
	KT_ASSERT(!sbuf_is_cut(&out));
	for (const char *line = strchr(text, '\n'); line != NULL; line = strchr(line + 1, '\n')) {
		const char *p = strchr(strchr(line, ' ') + 1, ' ') + 1;
		uint64_t n = 0;

		for (; *p >= '0' && *p <= '9'; p++)
			n = n * 10 + (uint64_t)(*p - '0');
		sum += n;
	}
	return sum;
}

static unsigned
made_sites(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < KTR_DYNAMIC_SITES; i++)
		n += ktr_dynamic_sites[i].kind == KTR_SITE_MADE;
	return n;
}

KTEST(kprobe_at_each_instruction_changes_nothing)
{
	for (unsigned which = 0; which < 2; which++) {
		uint64_t expected = run_victims(which), hits;
		unsigned made = probe_each(which, 1);

		KT_GT(made, 40);
		KT_EQ(run_victims(which), expected);
		KT_EQ(all_hits(), 0);
		KT_EQ(ktr_select(KTR_OWNER_COMMAND, "kprobe:::kt*", true, NULL, err, sizeof(err)),
		      made);
		KT_EQ(run_victims(which), expected);
		hits = all_hits();
		KT_GT(hits, VALUES * VALUES * 30);
		ktr_select(KTR_OWNER_COMMAND, "kprobe:::kt*", false, NULL, err, sizeof(err));
		KT_EQ(run_victims(which), expected);
		KT_EQ(all_hits(), hits);
		remove_all();
	}
	KT_EQ(made_sites(), 0);
}

static bool stop;               /* atomic */
static unsigned running, wrong; /* atomic */

static void
runner(void *arg)
{
	uint64_t expected[2] = {run_victims(0), run_victims(1)};

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		for (unsigned which = 0; which < 2; which++)
			if (run_victims(which) != expected[which])
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
}

KTEST(kprobe_made_switched_and_removed_while_all_cpus_run_there)
{
	uint64_t hits = 0;

	ktr_test_begin(256);
	stop = false;
	wrong = 0;
	running = ncpus > 1 ? ktest_busy_cpus() - 1
			    : 1; /* with this thread, one a CPU: it need not wait for its turn */
	for (unsigned i = running; i > 0; i--)
		KT_ASSERT(thread_create("victim", PRIO_KERN, runner, NULL) != NULL);
	for (unsigned round = 0; round < 2; round++) {
		/* Each that comes or goes stops all CPUs. */
		probe_each(round % 2, ktest_times(16 * ncpus, 1));
		for (unsigned i = 0; i < 2; i++) {
			ktr_select(KTR_OWNER_COMMAND, "kprobe:::kt*", true, NULL, err, sizeof(err));
			run_victims(round % 2);
			sched_yield();
			/* In the end some are removed as they are. */
			ktr_select(KTR_OWNER_COMMAND, i < 1 ? "kprobe:::kt*" : "kprobe:::kt*[1-9]",
				   false, NULL, err, sizeof(err));
		}
		hits += all_hits();
		remove_all();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) != 0)
		sched_yield();
	KT_EQ(wrong, 0);
	KT_GT(hits, 1000);
	KT_EQ(made_sites(), 0);
	ktr_test_accounting();
	ktr_test_end();
}

/* Bit N: a probe can be at offset N of the function, where an instruction begins. */
static uint64_t
boundaries(const char *function)
{
	uint64_t begin = 0;
	char text[100];

	for (unsigned at = 1; at < 24; at++) {
		snprintf(text, sizeof(text), "p:ktnext %s+%u", function, at);
		if (kprobe_add(text, KPROBE_KERNEL, err, sizeof(err)) != 0)
			continue;
		kprobe_del("ktnext", KPROBE_KERNEL, err, sizeof(err));
		begin |= 1ull << at;
	}
	return begin;
}

KTEST(kprobe_and_fbt_at_one_place_leave_the_next_instructions_where_they_are)
{
	static const char *const names[] = {"kprobe_victim_branches",
					    "kprobe_victim_calls",
					    "twice",
					    "half",
					    "sys_getcwd",
					    "sys_read",
					    "sys_lseek",
					    "sys_dup"};
	bool (*taken)(const char *, const char *) = kprobe_name_taken;
	char text[100];

	kprobe_name_taken = NULL; /* it takes most of the time */
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t before = boundaries(names[i]);

		snprintf(text, sizeof(text), "p:ktin %s", names[i]);
		KT_EQ(kprobe_add(text, KPROBE_KERNEL, err, sizeof(err)), 0);
		snprintf(text, sizeof(text), "r:ktout %s", names[i]);
		KT_EQ(kprobe_add(text, KPROBE_KERNEL, err, sizeof(err)), 0);
		ktr_select(KTR_OWNER_COMMAND, "kprobe:::kt*", true, NULL, err, sizeof(err));
		snprintf(text, sizeof(text), "fbt::%s:", names[i]);
		KT_GT(ktr_select(KTR_OWNER_COMMAND, text, true, NULL, err, sizeof(err)), 1);
		KT_EQ(boundaries(names[i]), before);
		ktr_select(KTR_OWNER_COMMAND, text, false, NULL, err, sizeof(err));
		KT_EQ(boundaries(names[i]), before);
		ktr_select(KTR_OWNER_COMMAND, "kprobe:::kt*", false, NULL, err, sizeof(err));
		KT_EQ(kprobe_del("ktin", KPROBE_KERNEL, err, sizeof(err)), 0);
		KT_EQ(kprobe_del("ktout", KPROBE_KERNEL, err, sizeof(err)), 0);
	}
	kprobe_name_taken = taken;
}

/* Groups stay: no other test may make one afterwards. */
KTEST(kprobe_groups_have_a_limit_which_is_told)
{
	bool (*taken)(const char *, const char *) = kprobe_name_taken;
	char text[100], which[32];
	unsigned n = 0;
	int error;

	if (ncpus != 1)
		ktest_skip("one CPU is enough");
	kprobe_name_taken = NULL;
	do {
		snprintf(text, sizeof(text), "p:ktgroup%u/x kprobe_victim_calls", n);
		snprintf(which, sizeof(which), "ktgroup%u/x", n);
		error = kprobe_add(text, KPROBE_KERNEL, err, sizeof(err));
	} while (error == 0 && kprobe_del(which, KPROBE_KERNEL, err, sizeof(err)) == 0 &&
		 ++n <= KTR_DYNAMIC_SITES);
	KT_EQ(error, -ENOSPC);
	KT_ASSERT(strstr(err, "groups since the boot") != NULL);
	KT_ASSERT(n <= 512); /* a look into events/ takes time for each */
	KT_EQ(kprobe_add("p:ktgroup0/x kprobe_victim_calls", KPROBE_KERNEL, err, sizeof(err)), 0);
	KT_EQ(kprobe_del("ktgroup0/x", KPROBE_KERNEL, err, sizeof(err)), 0);
	KT_EQ(made_sites(), 0);
	kprobe_name_taken = taken;
}

KTEST(kprobe_made_and_removed_many_times_leaves_nothing)
{
	unsigned times = ktest_times(3000, 100000);
	size_t used = heap_bytes_used();
	bool (*taken)(const char *, const char *) = kprobe_name_taken;

	if (ncpus != 1)
		ktest_skip("one CPU is enough");
	kprobe_name_taken = NULL; /* it looks through all events, which takes most of the time */
	for (unsigned i = 0; i < times; i++) {
		if (kprobe_add("p:many kprobe_victim_calls+8 $stack0", KPROBE_KERNEL, err,
			       sizeof(err)) != 0 &&
		    kprobe_add("p:many kprobe_victim_calls $stack0", KPROBE_KERNEL, err,
			       sizeof(err)) != 0)
			KT_STR_EQ(err, "");
		if (i % 1000 == 0) {
			ktr_select(KTR_OWNER_COMMAND, "kprobe:::many", true, NULL, err,
				   sizeof(err));
			run_victims(1);
		}
		KT_EQ(kprobe_del("many", KPROBE_KERNEL, err, sizeof(err)), 0);
	}
	kprobe_name_taken = taken;
	KT_EQ(heap_bytes_used(), used);
	KT_EQ(made_sites(), 0);
}

KTEST(kprobe_without_memory_is_refused_and_leaves_nothing)
{
	void *all = NULL, *p;
	unsigned refused = 0;
	int error = 0;
	size_t used = heap_bytes_used();

	/* Takes all blocks of all sizes. */
	for (size_t size = 1 << 16; size >= 16; size /= 2) {
		while ((p = kmalloc(size)) != NULL) {
			*(void **)p = all;
			all = p;
		}
	}
	/* Gives them back, one by one, until a probe can be made. */
	while (all != NULL) {
		error = kprobe_add("p:poor kprobe_victim_calls $stack0 $stack1 $stack2",
				   KPROBE_KERNEL, err, sizeof(err));
		if (error == 0)
			break;
		refused += strcmp(err, "no memory for a probe") == 0;
		for (unsigned i = 0; i < 3 && all != NULL; i++) {
			p = all;
			all = *(void **)p;
			kfree(p);
		}
	}
	while (all != NULL) {
		p = all;
		all = *(void **)p;
		kfree(p);
	}
	KT_EQ(error, 0);
	KT_GT(refused, 0);
	KT_EQ(made_sites(), 1);
	KT_EQ(kprobe_del("poor", KPROBE_KERNEL, err, sizeof(err)), 0);
	KT_EQ(heap_bytes_used(), used);
}
