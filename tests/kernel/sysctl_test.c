/*
 * sysctl_test.c - the registry of sysctls, text buffers, and the kernel's printf.
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/sysctl/registry.h"
#include "kernel/sysctl/tunable.h"
#include "tests/kernel/ktest.h"

static int test_int = 5;
static uint64_t test_u64 = 7;
static int64_t applied = 3;
SYSCTL_INT(test_int, "test.int", SYSCTL_WR, &test_int, -3, 30, "a number for tests");
SYSCTL_U64(test_u64, "test.u64", SYSCTL_WR, &test_u64, "a large number for tests");
SYSCTL_U64(test_const, "test.const", 0, &test_u64, "a number that tests cannot set");

static uint64_t
applied_value(void)
{
	return (uint64_t)applied;
}

/* Accepts even numbers only. */
static int
apply_even(int64_t v, char *err, size_t errlen)
{
	if (v % 2 != 0) {
		snprintf(err, errlen, "%d is odd", (int)v);
		return -EINVAL;
	}
	applied = v;
	return 0;
}

SYSCTL_INT_CALL(test_call, "test.call", SYSCTL_WR, applied_value, apply_even, 0, 30,
		"a number that functions give and take");
static int runs;

static void
run(void)
{
	runs++;
}

/* SYSCTL_FREE: the getter waits until another variable has been read. */
static bool free_inside, free_others = true; /* atomic */

static bool
free_is(void *flag)
{
	return __atomic_load_n((bool *)flag, __ATOMIC_ACQUIRE);
}

static void
get_free(const struct sysctl *s, struct sbuf *out)
{
	__atomic_store_n(&free_inside, true, __ATOMIC_RELEASE);
	sbuf_puts(out, ktest_wait(free_is, &free_others) ? "others were read" : "others wait");
}

SYSCTL_TEXT(test_free, "test.free", SYSCTL_FREE, get_free, NULL, "keeps nobody from the others");

SYSCTL_COMMAND(test_command, "test.command", run, "a command");

static const char *
value(const char *name)
{
	static char text[64];
	const struct sysctl *s = sysctl_find(name);
	struct sbuf out;

	KT_ASSERT(s != NULL);
	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(s, &out);
	return text;
}

static void
read_free(unsigned i, void *arg)
{
	char text[32];
	struct sbuf out;

	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(sysctl_find("test.free"), &out);
	KT_STR_EQ(text, "others were read");
}

KTEST(sysctl_that_takes_long_keeps_nobody_from_others)
{
	free_inside = free_others = false;
	ktest_start(1, false, read_free, NULL);
	KT_ASSERT(ktest_wait(free_is, &free_inside));
	KT_ASSERT(value("test.const")[0] != '\0');
	__atomic_store_n(&free_others, true, __ATOMIC_RELEASE);
	ktest_join();
}

static void
set_fails(const char *name, const char *val, int error, const char *sentence)
{
	char err[128] = "";

	KT_EQ(sysctl_set_text(name, val, err, sizeof(err)), error);
	KT_STR_EQ(err, sentence);
}

KTEST(sysctl_set_takes_what_is_in_range)
{
	char err[64];

	KT_EQ(sysctl_set_text("test.int", " 30\n", err, sizeof(err)), 0);
	KT_STR_EQ(value("test.int"), "30");
	KT_EQ(sysctl_set_text("test.int", "-3", err, sizeof(err)), 0);
	KT_EQ(test_int, -3);
	KT_EQ(sysctl_set_text("test.int", "0x1e", err, sizeof(err)), 0);
	KT_EQ(test_int, 30);
	KT_EQ(sysctl_set_text("test.u64", "18446744073709551615", err, sizeof(err)), 0);
	KT_STR_EQ(value("test.u64"), "18446744073709551615");
	KT_STR_EQ(value("test.const"), "18446744073709551615");
}

KTEST(sysctl_of_functions_takes_what_is_in_range_and_what_they_allow)
{
	char err[64];

	applied = 3;
	KT_STR_EQ(value("test.call"), "3");
	KT_EQ(sysctl_set_text("test.call", "0x10", err, sizeof(err)), 0);
	KT_STR_EQ(value("test.call"), "16");
	set_fails("test.call", "31", -ERANGE, "31 is out of range, expected 0 to 30");
	set_fails("test.call", "5", -EINVAL, "5 is odd");
	KT_STR_EQ(value("test.call"), "16");
}

KTEST(sysctl_command_is_run_when_1_is_written)
{
	char err[64];

	runs = 0;
	KT_EQ(sysctl_set_text("test.command", "0", err, sizeof(err)), 0);
	KT_EQ(runs, 0);
	KT_EQ(sysctl_set_text("test.command", "1", err, sizeof(err)), 0);
	KT_EQ(runs, 1);
	KT_STR_EQ(value("test.command"), "0");
	set_fails("test.command", "2", -ERANGE, "2 is out of range, expected 0 to 1");
}

KTEST(sysctl_set_says_what_was_expected)
{
	test_int = 5;
	set_fails("test.int", "31", -ERANGE, "31 is out of range, expected -3 to 30");
	set_fails("test.int", "99999999999999999999999", -ERANGE,
		  "99999999999999999999999 is out of range, expected -3 to 30");
	set_fails("test.int", "", -EINVAL, "found \"\", expected a number from -3 to 30");
	set_fails("test.int", "5x", -EINVAL, "found \"5x\", expected a number from -3 to 30");
	set_fails("test.u64", "-1", -EINVAL, "found \"-1\", expected a number from 0");
	test_u64 = 7;
	set_fails("test.u64", "18446744073709551616", -ERANGE,
		  "18446744073709551616 is out of range, expected at most 64 bits");
	KT_EQ(test_u64, 7);
	set_fails("test.const", "1", -EPERM, "read-only");
	set_fails("test.imt", "1", -ENOENT, "no such sysctl; did you mean test.int?");
	set_fails("zzzzzzzz", "1", -ENOENT, "no such sysctl; sysctl -a lists all");
	KT_EQ(test_int, 5);
}

KTEST(sysctl_names_are_unique_and_come_in_order)
{
	extern const struct sysctl __start_sysctls[], __stop_sysctls[];
	const struct sysctl *last = NULL;
	long n = 0;

	for (const struct sysctl *s = sysctl_after(""); s != NULL; s = sysctl_after(s->name)) {
		KT_ASSERT(last == NULL || strcmp(last->name, s->name) < 0);
		KT_ASSERT(sysctl_find(s->name) == s);
		KT_ASSERT(s->descr != NULL && s->descr[0] != '\0');
		KT_ASSERT(s->var != NULL || s->get != NULL || s->value != NULL || s->run != NULL ||
			  s->apply != NULL);
		last = s;
		n++;
	}
	KT_EQ(n, __stop_sysctls - __start_sysctls);
}

KTEST(sysctl_every_value_and_its_length_can_be_read)
{
	char small[8];

	for (const struct sysctl *s = sysctl_after(""); s != NULL; s = sysctl_after(s->name)) {
		struct sbuf out;

		sbuf_init(&out, small, sizeof(small));
		sysctl_get_text(s, &out);
		KT_EQ(strlen(small), sbuf_stored(&out));
	}
}

KTEST(tunable_of_an_unknown_name_is_null)
{
	KT_ASSERT(tunable_get("no.such") == NULL);
	KT_ASSERT(tunable_get("kern.test") != NULL); /* set, since this test runs */
}

KTEST(sbuf_cuts_at_its_end_and_counts_on)
{
	char buf[8];
	struct sbuf s;

	sbuf_init(&s, buf, sizeof(buf));
	sbuf_puts(&s, "abc");
	sbuf_printf(&s, "%d", 12345);
	KT_STR_EQ(buf, "abc1234");
	KT_EQ(s.len, 8);
	KT_ASSERT(sbuf_is_cut(&s));
	sbuf_putc(&s, 'x');
	KT_STR_EQ(buf, "abc1234");
	KT_EQ(s.len, 9);
	KT_EQ(sbuf_stored(&s), 7);
	sbuf_init(&s, NULL, 0);
	sbuf_printf(&s, "%s", "count");
	KT_EQ(s.len, 5);
	KT_EQ(sbuf_stored(&s), 0);
}

KTEST(dmesg_keeps_the_newest_lines_with_their_time)
{
	const struct sysctl *s = sysctl_find("kern.msgbuf");
	size_t size = 80 * 1024;
	char *text = kmalloc(size), *mark;
	struct sbuf out;

	KT_ASSERT(text != NULL && s != NULL);
	/* kern.quiet does not matter: this checks the message buffer. */
	for (unsigned i = 0; i < 3; i++)
		printk("# dmesg test line %u\n", i);
	printk("# dmesg piece one, ");
	printk("piece two\n");
	sbuf_init(&out, text, size);
	sysctl_get_text(s, &out);
	KT_ASSERT(!sbuf_is_cut(&out));
	KT_LE(out.len, 65536);
	mark = strstr(text, "] # dmesg test line 0\n[");
	KT_ASSERT(mark != NULL);
	KT_ASSERT(strstr(mark, "] # dmesg test line 2\n[") != NULL);
	KT_ASSERT(strstr(mark, "] # dmesg piece one, piece two\n") != NULL);
	KT_EQ(text[0], '[');
	kfree(text);
}

/* Copies of all alignments and overlaps must equal those of a plain loop. */
KTEST(string_copies_of_all_alignments_and_overlaps)
{
	static uint8_t a[160], expected[160];

	for (unsigned from = 0; from < 20; from++) {
		for (unsigned to = 0; to < 20; to++) {
			for (unsigned n = 0; n < 100; n += 7) {
				for (unsigned i = 0; i < sizeof(a); i++)
					a[i] = expected[i] = (uint8_t)(i * 7 + n);
				for (unsigned i = 0; i < n; i++)
					expected[to + i] = (uint8_t)((from + i) * 7 + n);
				memmove(a + to, a + from, n);
				KT_EQ(memcmp(a, expected, sizeof(a)), 0);
			}
		}
	}
	memset(a + 3, 0x5a, 37);
	KT_EQ(a[3], 0x5a);
	KT_EQ(a[39], 0x5a);
	KT_ASSERT(a[40] == expected[40] && a[2] == expected[2]);
	KT_GT(memcmp("abcdefgh\xff", "abcdefgh\x01", 9), 0);
	KT_LT(strcmp("ab", "abc"), 0);
	KT_ASSERT(strstr("a needle here", "needle") != NULL && strstr("a", "aa") == NULL);
}
