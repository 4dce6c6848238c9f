/*
 * kdb_test.c - input at db>: words, expressions, filters of events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/debug/kdb_expr.c"
#include "kernel/debug/kdb_filter.c"

static char said[1000];
static uint64_t memory[4] = {0x1111, 0x2222, (uintptr_t)memory, UINT64_MAX};

void
kdb_printf(const char *fmt, ...)
{
	size_t at = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + at, sizeof(said) - at, fmt, ap);
	va_end(ap);
}

bool
kdb_read(void *to, uint64_t addr, size_t n)
{
	if (addr < (uintptr_t)memory || addr + n > (uintptr_t)(memory + 4))
		return false;
	memcpy(to, (const void *)addr, n);
	return true;
}

bool
kdb_register(const char *name, uint64_t *v)
{
	*v = 0x1000;
	return strcmp(name, "pc") == 0;
}

uintptr_t
ksym_address(const char *name)
{
	if (strcmp(name, "memory") == 0)
		return (uintptr_t)memory;
	return strcmp(name, "cafe") == 0 ? 0x77 : 0; /* a symbol whose name could be a number */
}

/* The value of an expression that must be the whole text. */
static uint64_t
value(const char *text)
{
	const char *at = text;
	uint64_t v = 0;

	said[0] = '\0';
	if (!kdb_expr(&at, &v))
		fail_msg("\"%s\": %s", text, said);
	assert_string_equal(at, "");
	assert_string_equal(said, "");
	return v;
}

static void
refused(const char *text, const char *why)
{
	uint64_t v;

	said[0] = '\0';
	if (kdb_expr(&text, &v))
		fail_msg("\"%s\" is %llu", text, (unsigned long long)v);
	if (strstr(said, why) == NULL || strchr(said, '\n') != said + strlen(said) - 1)
		fail_msg("\"%s\": expected one line with \"%s\", found \"%s\"", text, why, said);
}

static void
numbers_symbols_and_registers(void **state)
{
	assert_int_equal(value("18"), 18);
	assert_int_equal(value("0x12"), 18);
	assert_int_equal(value("12f"), 0x12f);
	assert_int_equal(value("cafe"), 0x77);
	assert_int_equal(value("0xcafe"), 0xcafe);
	assert_int_equal(value("$pc+4"), 0x1004);
	assert_int_equal(value("memory"), (uintptr_t)memory);
	assert_true(value("0xffffffffffffffff") == UINT64_MAX);
	assert_int_equal(value("  7"), 7);
}

static void
operators_bind_as_in_c(void **state)
{
	assert_int_equal(value("1+2*3"), 7);
	assert_int_equal(value("(1+2)*3"), 9);
	assert_int_equal(value("10-3-2"), 5);
	assert_int_equal(value("1<<4|1"), 17);
	assert_int_equal(value("7&3^1"), 2);
	assert_int_equal(value("100/7%4"), 2);
	assert_true(value("-1") == UINT64_MAX);
	assert_true(value("~0") == UINT64_MAX);
	assert_int_equal(value("1<<64"), 0);
	assert_int_equal(value("*memory"), 0x1111);
	assert_int_equal(value("*(memory+8)"), 0x2222);
	assert_int_equal(value("*memory+8"), 0x1119);
	assert_int_equal(value("**(memory+16)"), 0x1111);
	assert_int_equal(value("2**memory"), 0x2222);
}

static void
white_space_ends_an_expression(void **state)
{
	const char *text = "1+1 2";
	uint64_t v;

	assert_true(kdb_expr(&text, &v));
	assert_int_equal(v, 2);
	assert_true(kdb_more_words(&text));
	assert_true(kdb_expr(&text, &v));
	assert_int_equal(v, 2);
	assert_false(kdb_more_words(&text));
}

static void
nonsense_gets_one_line(void **state)
{
	char deep[100] = "";

	refused("", "expected a number");
	refused("zork", "no symbol \"zork\"");
	refused("1+", "expected a number");
	refused("(1", "expected )");
	refused("1)", "expected an operator");
	refused("1<2", "expected <<");
	refused("1/0", "division by 0");
	refused("1%(2-2)", "division by 0");
	refused("$zork", "no register $zork");
	refused("$", "expected a number");
	refused("*0x10", "0x10 is not readable");
	refused("*(memory+32)", "not readable");
	refused("\"", "expected a number");
	refused("99999999999999999999999", "no symbol");
	for (unsigned i = 0; i < 90; i++)
		strcat(deep, "(");
	refused(deep, "nested more than 16 deep");
	memset(deep, '~', 90);
	refused(deep, "nested more than 16 deep");
}

/* Whatever single byte of a line changes, the parser returns a value or an error. */
static void
any_byte_anywhere_is_survived(void **state)
{
	static const char line[] = "(1+*memory)<<2&~$pc";
	char text[sizeof(line)];
	const char *at;
	uint64_t v;

	for (size_t i = 0; i + 1 < sizeof(line); i++)
		for (unsigned c = 1; c < 256; c++) {
			memcpy(text, line, sizeof(line));
			text[i] = (char)c;
			said[0] = '\0';
			at = text;
			if (!kdb_expr(&at, &v) && said[0] == '\0')
				fail_msg("\"%s\" was refused without a message", text);
		}
}

static struct kdb_filter
filter(const char *args)
{
	struct kdb_filter f;
	char text[KDB_LINE_MAX];

	said[0] = '\0';
	strcpy(text, args);
	if (!kdb_filter_parse("show", text, &f))
		fail_msg("\"%s\": %s", args, said);
	return f;
}

static void
filters_let_through_what_they_say(void **state)
{
	struct kdb_filter f;

	f = filter("");
	assert_true(kdb_filter_match(&f, 63, 9, KTR_PROC, "x"));
	assert_true(f.count == UINT64_MAX);
	f = filter("-c 1");
	assert_true(kdb_filter_match(&f, 1, 9, KTR_PROC, "x"));
	assert_false(kdb_filter_match(&f, 0, 9, KTR_PROC, "x"));
	f = filter("-m proc,SCHED");
	assert_true(kdb_filter_match(&f, 0, 9, KTR_PROC | KTR_VM, "x"));
	assert_false(kdb_filter_match(&f, 0, 9, KTR_VM, "x"));
	f = filter("-t12 -n 0x10 -u 100");
	assert_int_equal(f.count, 16);
	assert_int_equal(f.us, 100);
	assert_true(kdb_filter_match(&f, 0, 12, KTR_VM, "x"));
	assert_false(kdb_filter_match(&f, 0, 13, KTR_VM, "x"));
	ktr_thread_name(44, "idle/0");
	f = filter("-t idle*");
	assert_true(kdb_filter_match(&f, 0, 44, KTR_VM, "x"));
	assert_false(kdb_filter_match(&f, 0, 45, KTR_VM, "x"));
	f = filter("/pid 7 st?tus/ -c 2");
	assert_true(kdb_filter_match(&f, 2, 1, KTR_VM, "exit: pid 7 status 0"));
	assert_false(kdb_filter_match(&f, 2, 1, KTR_VM, "exit: pid 8 status 0"));
	assert_false(kdb_filter_match(&f, 1, 1, KTR_VM, "exit: pid 7 status 0"));
	f = filter("/no end");
	assert_true(kdb_filter_match(&f, 2, 1, KTR_VM, "there is no end of it"));
	assert_true(filter("-p -f").from_place && filter("-f").newer && !filter("-f").from_place);
}

static void
filters_refuse_with_one_line(void **state)
{
	static const struct {
		const char *args, *why;
	} cases[] = {
	    {"-c", "-c: expected a number"},
	    {"-c x", "-c \"x\": expected a number"},
	    {"-c 64", "no cpu 64"},
	    {"-m", "expected classes"},
	    {"-m SCHD", "did you mean SCHED?"},
	    {"-n -1", "expected a number"},
	    {"-u", "-u: expected a number"},
	    {"-t", "a thread's id or name"},
	    {"-z", "\"-z\": expected -c CPU"},
	    {"all", "\"all\": expected -c CPU"},
	    {"//", "expected text between"},
	    {"-c 1 -", "\"-\": expected -c CPU"},
	};
	struct kdb_filter f;
	char text[KDB_LINE_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		said[0] = '\0';
		strcpy(text, cases[i].args);
		if (kdb_filter_parse("show ktr", text, &f) || strstr(said, cases[i].why) == NULL ||
		    strncmp(said, "show ktr: ", 10) != 0)
			fail_msg("%s: found \"%s\"", cases[i].args, said);
	}
}

/* The longest possible line fits as a pattern. */
static void
a_pattern_may_fill_the_line(void **state)
{
	char text[KDB_LINE_MAX], same[KDB_LINE_MAX];
	struct kdb_filter f;

	memset(text, 'a', sizeof(text) - 1);
	text[0] = '/';
	text[sizeof(text) - 1] = '\0';
	strcpy(same, text + 1);
	assert_true(kdb_filter_parse("show", text, &f));
	assert_true(kdb_filter_match(&f, 0, 0, KTR_VM, same));
	assert_false(kdb_filter_match(&f, 0, 0, KTR_VM, same + 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(numbers_symbols_and_registers),
	    cmocka_unit_test(operators_bind_as_in_c),
	    cmocka_unit_test(white_space_ends_an_expression),
	    cmocka_unit_test(nonsense_gets_one_line),
	    cmocka_unit_test(any_byte_anywhere_is_survived),
	    cmocka_unit_test(filters_let_through_what_they_say),
	    cmocka_unit_test(filters_refuse_with_one_line),
	    cmocka_unit_test(a_pattern_may_fill_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
