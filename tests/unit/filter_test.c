/* filter_test.c - filters of events: what they compute, and how they are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernel/dtrace/host/host.h"
#include "kernel/ftrace/event/filter.h"
#include "tests/unit/dif_help.h"

static const struct ktr_param params[] = {{"size", false, false, 64},
					  {"delta", false, true, 32},
					  {"name", true, false, 64},
					  {"flags", false, false, 8}};
static const struct filter_event event = {.id = 77, .nparams = 4, .params = params};
static struct maker m;
static struct dif d;

/* Compiles; NULL, or the error as "AT: MESSAGE". */
static const char *
compile(struct program *f, const char *text)
{
	static char said[128];
	struct filter_error error = {"no error was said", 0, 0};

	*f = (struct program){.strings_len = 1};
	if (filter_compile(f, &event, text, &error) == 0)
		return NULL;
	snprintf(said, sizeof(said), "%zu: %s", error.at, error.message);
	return said;
}

/* Fires the filter with these arguments. 1, 0, or -1: a fault. */
static int
run(const struct program *f, const uint64_t args[4])
{
	struct dif_refusal why;
	struct program whole = *f;

	program_emit(&whole, DIF_JEQ, 0, 1, 0, 2);
	program_emit(&whole, DIF_LOG, 0, 0, 0, 0);
	program_emit(&whole, DIF_RET, 0, 0, 0, 0);
	program_emit(&whole, DIF_RET, 0, 0, 0, 1);
	make(&m);
	memcpy(m.strings, f->strings, f->strings_len);
	m.h.strings.count = f->strings_len;
	put_clause(&m, whole.code, whole.count);
	if (load_made(&m, &d, 1, &why) != NULL)
		fail_msg("refused: %s at %u", why.error, why.insn);
	const struct ktr_firing firing = {.args = args, .nargs = 4};
	const struct dif_at at = dif_at(&d, 0, 0, 0);
	unsigned before = dif_host.logged;

	d.cpu[0].fired++;
	dif_fire(&at, &d.cpu[0], &firing);
	bool faulted = d.cpu[0].faulted != 0;
	dif_unload(&d);
	return faulted ? -1 : (int)(dif_host.logged - before);
}

static const char text[] = "net/socket";

static void
a_filter_computes_what_c_does(void **state)
{
	static const struct {
		const char *text;
		int expected;
	} rows[] = {
	    {"size == 4096", 1},
	    {"size != 4096", 0},
	    {"size == 0x1000", 1},
	    {"size == 010000", 1},
	    {"size > 4095 && size < 4097", 1},
	    {"size >= 4096&&size<=4096", 1},
	    {"size > 4096 || size < 4096", 0},
	    {"size & 0x1000", 1},
	    {"size & 0xfff", 0},
	    {"delta == -5", 1},
	    {"delta < 0", 1},
	    {"delta > -6 && delta <= -5", 1},
	    {"delta < -4294967296", 1},
	    {"delta == 4294967291", 1},
	    {"flags == 0x81", 1},
	    {"flags > 128", 1},
	    {"flags == -127", 1},
	    {"size < 18446744073709551615", 1},
	    {"name == net/socket", 1},
	    {"name == \"net/socket\"", 1},
	    {"name != 'net/socket'", 0},
	    {"name ~ \"net/*\"", 1},
	    {"name ~ '*sock'", 0},
	    {"name ~ 'n?t/[r-t]*'", 1},
	    {"!(name ~ '*sock')", 1},
	    {"!name == net/socket", 0},
	    {"common_type == 77", 1},
	    {"common_flags == 0", 1},
	    {"cpu == 3 || CPU == 0 || common_cpu == 0", 1},
	    /* && before ||, and parentheses */
	    {"size == 4096 || size == 1 && delta == 1", 1},
	    {"(size == 4096 || size == 1) && delta == 1", 0},
	    {"size == 1 && delta == 1 || delta == -5", 1},
	    {"!(size == 1) && !(!(delta == -5))", 1},
	    {"((((size == 4096))))", 1},
	    /* what does not matter is not computed: argument 5 has no text */
	    {"size == 1 && name == x || size == 4096", 1},
	};
	struct program f;

	dif_host.kernel = (struct dif_host_area){0x5000, (uint8_t *)text, sizeof(text)};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t args[] = {4096, (uint64_t)-5, 0x5000, 0xff81};
		const char *error = compile(&f, rows[i].text);

		if (error != NULL)
			fail_msg("%s: %s", rows[i].text, error);
		if (run(&f, args) != rows[i].expected)
			fail_msg("%s: expected %d", rows[i].text, rows[i].expected);
	}
}

static void
what_is_wrong_is_said_with_its_place(void **state)
{
	static const char *const rows[][2] = {
	    {"", "0: Meaningless filter expression"},
	    {"nosuch == 1", "7: Field not found"},
	    {"size == 1 && nosuch == 1", "20: Field not found"},
	    {"size = 1", "5: Invalid operator"},
	    {"size 1", "5: Invalid operator"},
	    {"size", "4: Invalid operator"},
	    {"size == 1 size == 2", "10: Invalid operator"},
	    {"size == ten", "8: Illegal integer value"},
	    {"size == 99999999999999999999", "8: Illegal integer value"},
	    {"size == ", "8: Invalid value (did you forget quotes)?"},
	    {"size == '1'", "8: Expecting numeric field"},
	    {"size ~ '1'", "5: Illegal operation for field type"},
	    {"name < x", "5: Illegal operation for field type"},
	    {"name == 'x", "8: Missing matching quote"},
	    {"(size == 1", "0: Too many '('"},
	    {"size == 1 && ((delta == 2)", "13: Too many '('"},
	    {"size == 1)", "9: Too few '('"},
	    {"size == 1 &&", "12: Meaningless filter expression"},
	    {"|| size == 1", "0: Meaningless filter expression"},
	};
	struct program f;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *error = compile(&f, rows[i][0]);

		if (error == NULL || strcmp(error, rows[i][1]) != 0)
			fail_msg("%s: %s, expected %s", rows[i][0], error, rows[i][1]);
	}
}

/* Appends a random expression of known truth. */
static bool
grow(char *to, size_t room, unsigned depth)
{
	size_t n = strlen(to);
	unsigned what = (unsigned)rand() % (depth == 0 ? 1 : 4);
	bool a, b, and;

	switch (what) {
	case 0:
		a = rand() % 2 == 0;
		snprintf(to + n, room - n, "size %s 4096", a ? "==" : "!=");
		return a;
	case 1:
		snprintf(to + n, room - n, "!(");
		a = grow(to, room, depth - 1);
		n = strlen(to);
		snprintf(to + n, room - n, ")");
		return !a;
	default:
		and = rand() % 2 == 0;
		snprintf(to + n, room - n, "(");
		a = grow(to, room, depth - 1);
		n = strlen(to);
		snprintf(to + n, room - n, ") %s (", and? "&&" : "||");
		b = grow(to, room, depth - 1);
		n = strlen(to);
		snprintf(to + n, room - n, ")");
		return and? a && b : a || b;
	}
}

static void
random_expressions_have_the_value_that_they_were_made_for(void **state)
{
	const uint64_t args[] = {4096, 0, 0, 0};
	unsigned done = 0;

	srand(1);
	for (unsigned i = 0; i < 3000; i++) {
		char expression[4096] = "";
		struct program f;
		bool value = grow(expression, sizeof(expression), 6);
		const char *error = compile(&f, expression);

		if (error != NULL) {
			/* Only size may be the reason. */
			assert_non_null(strstr(error, "Too many terms"));
			continue;
		}
		done++;
		if (run(&f, args) != value)
			fail_msg("%s: expected %d", expression, value);
	}
	assert_true(done > 2000);
}

static void
append(char *to, size_t room, const char *piece)
{
	size_t n = strlen(to);

	snprintf(to + n, room - n, "%s", piece);
}

static void
any_bytes_are_compiled_or_refused(void **state)
{
	static const char *const pieces[] = {"size", "name", "==", "&&", "||", "!",
					     "(",    ")",    " ",  "~",  "1",  "'",
					     "-",    "\"",   "<",  "&",  "x",  "comm"};
	srand(2);
	for (unsigned i = 0; i < 100000; i++) {
		char bytes[256] = "";
		struct program f;

		for (unsigned n = (unsigned)rand() % 20; n > 0; n--)
			append(bytes, sizeof(bytes), pieces[(unsigned)rand() % 18]);
		const char *error = compile(&f, bytes);
		assert_true(error == NULL || (size_t)atoi(error) <= strlen(bytes));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_filter_computes_what_c_does),
	    cmocka_unit_test(what_is_wrong_is_said_with_its_place),
	    cmocka_unit_test(random_expressions_have_the_value_that_they_were_made_for),
	    cmocka_unit_test(any_bytes_are_compiled_or_refused),
	};
	return cmocka_run_group_tests_name("filter_test", tests, NULL, NULL);
}
