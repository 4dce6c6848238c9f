/*
 * ldisc_test.c - the line discipline: editing, lines, end of file, raw mode, signals, echo.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/dev/ldisc.c"

static struct ldisc l;
static char shown[65536];
static size_t shown_len;

static void
show(void *arg, const char *text, size_t n)
{
	assert_true(shown_len + n < sizeof(shown));
	memcpy(shown + shown_len, text, n);
	shown_len += n;
	shown[shown_len] = '\0';
}

static int
setup(void **state)
{
	shown_len = 0;
	shown[0] = '\0';
	ldisc_init(&l, show, NULL);
	return 0;
}

/* Types text. Returns the last signal. */
static int
type(const char *text)
{
	int sig = 0;
	bool wake;

	for (; *text != '\0'; text++) {
		int s = ldisc_input(&l, *text, &wake);

		sig = s != 0 ? s : sig;
	}
	return sig;
}

static void
reads(const char *expected)
{
	char buf[LDISC_SIZE + 1];
	size_t n = ldisc_read(&l, buf, LDISC_SIZE);

	buf[n] = '\0';
	assert_string_equal(buf, expected);
}

static void
a_line_is_readable_only_when_it_is_whole(void **state)
{
	type("abc");
	assert_int_equal(ldisc_ready(&l), 0);
	type("d\rnext");
	assert_int_equal(ldisc_ready(&l), 5);
	reads("abcd\n");
	reads("");
	assert_string_equal(shown, "abcd\r\nnext");
}

static void
a_read_gets_one_line_or_what_fits(void **state)
{
	char two[2];

	type("one\ntwo\n");
	assert_int_equal(ldisc_read(&l, two, 2), 2);
	assert_memory_equal(two, "on", 2);
	reads("e\n");
	reads("two\n");
}

static void
erase_and_kill_edit_the_line_but_not_the_one_before(void **state)
{
	type("ab\n\x7f\x7fxy\x7fz\n");
	reads("ab\n");
	reads("xz\n");
	type("gone\x15kept\n");
	reads("kept\n");
	setup(NULL);
	type("a\x7f");
	assert_string_equal(shown, "a\b \b");
	setup(NULL);
	type("\xc3\xa4\x7f!\n"); /* two bytes, one character */
	reads("!\n");
	/* Only the key that is set erases. */
	type("a\bb\n");
	reads("a\bb\n");
	l.t.c_cc[VERASE] = '\b';
	type("a\x7f\b\bb\n");
	reads("b\n");
}

/* The echo of one key is short, however much it erases. */
static void
much_is_erased_in_a_new_line(void **state)
{
	for (unsigned i = 0; i < LDISC_SIZE - 1; i++)
		type("x");
	shown_len = 0;
	type("\x15");
	assert_string_equal(shown, "^U\r\n");
	type("last\n");
	reads("last\n");
	type("one ");
	for (unsigned i = 0; i < 1000; i++)
		type("x");
	shown_len = 0;
	type("\x17");
	assert_in_range(shown_len, 4, 400);
	assert_string_equal(shown + shown_len - 4, "^W\r\n");
	type("two\n");
	reads("one two\n");
	for (unsigned i = 0; i < 60; i++)
		type("\xe4\xb8\xad"); /* a column, as it is counted: not three */
	shown_len = 0;
	type("\x15");
	assert_int_equal(shown_len, 180);
	for (unsigned i = 0; i < 60; i++)
		type("\x02"); /* "^B": two */
	shown_len = 0;
	type("\x17");
	assert_string_equal(shown, "^W\r\n");
	l.t.c_lflag &= ~ECHOE;
	for (unsigned i = 0; i < 100; i++)
		type("x");
	shown_len = 0;
	type("\x15");
	assert_int_equal(shown_len, 0);
	type("\n");
	reads("\n");
}

static void
a_word_is_erased_and_a_literal_key_is_text(void **state)
{
	struct termios raw;

	type("one two  \x17\x17\x17\x17last\n");
	reads("last\n");
	setup(NULL);
	assert_int_equal(type("a\x16\x03\x16\x15\n"), 0);
	reads("a\x03\x15\n");
	assert_string_equal(shown, "a^\b^C^\b^U\r\n");
	type("\x16\x04\x16\n\n"); /* neither the end of a file nor of a line */
	reads("\x04\n\n");
	type("\x16");
	raw = l.t;
	raw.c_lflag &= ~ICANON;
	ldisc_set(&l, &raw);
	type("b"); /* a new mode: the key before it is forgotten */
	reads("b");
	setup(NULL);
	l.t.c_lflag &= ~(IEXTEN | ECHOCTL);
	type("a\x16\x17\n");
	reads("a\x16\x17\n");
	l.t.c_cc[VEOL] = ';';
	type("one;two");
	reads("one;");
}

static void
returns_and_newlines_are_translated(void **state)
{
	l.t.c_iflag = INLCR;
	l.t.c_cc[VEOL] = '\r';
	type("a\n");
	reads("a\r");
	l.t.c_iflag = IGNCR;
	type("\ra\r\n");
	reads("a\n");
}

static void
there_is_room_unless_something_was_not_read(void **state)
{
	for (unsigned i = 0; i < LDISC_SIZE; i++)
		type("x"); /* what is too much for a line falls off */
	assert_true(ldisc_room(&l));
	type("\n");
	assert_false(ldisc_room(&l));
	assert_int_equal(ldisc_ready(&l), LDISC_SIZE);
}

static void
end_of_file_ends_a_read(void **state)
{
	char buf[8];

	type("\x04");
	assert_int_equal(ldisc_ready(&l), 1);
	assert_int_equal(ldisc_read(&l, buf, sizeof(buf)), 0);
	assert_int_equal(ldisc_ready(&l), 0);
	type("ab\x04");
	assert_int_equal(ldisc_read(&l, buf, sizeof(buf)), 2);
}

static void
an_end_of_file_is_taken_with_the_last_byte_that_fits(void **state)
{
	char buf[8];

	type("ab\x04next\n");
	assert_int_equal(ldisc_read(&l, buf, 1), 1);
	assert_int_equal(ldisc_read(&l, buf, 1), 1);
	reads("next\n");
	type("ab\x04\x04");
	assert_int_equal(ldisc_read(&l, buf, 2), 2);
	assert_int_equal(ldisc_read(&l, buf, 2), 0); /* the second one is another file's end */
	assert_int_equal(ldisc_ready(&l), 0);
	type("a\n\x04"); /* the line has ended already */
	assert_int_equal(ldisc_read(&l, buf, 2), 2);
	assert_int_equal(ldisc_ready(&l), 1);
	reads("");
}

static void
what_was_typed_stays_what_it_was_when_settings_change(void **state)
{
	struct termios canonical = l.t, raw = l.t;

	type("ab\x04");
	assert_int_equal(ldisc_ready(&l), 3);
	assert_int_equal(ldisc_text(&l), 2);
	l.t.c_cc[VEOF] = 5;
	reads("ab");
	raw.c_lflag &= ~ICANON;
	ldisc_set(&l, &raw);
	type("raw");
	ldisc_set(&l, &canonical);
	type("line\n");
	reads("raw");
	reads("line\n");
	type("a\nb\nc");
	ldisc_set(&l, &raw);
	ldisc_set(&l, &canonical);
	reads("a\nb\nc");
	assert_int_equal(ldisc_ready(&l), 0);
	type("\x16"); /* other settings of the same mode */
	ldisc_set(&l, &canonical);
	type("\x04\n");
	reads("\x04\n");
}

static void
keys_mean_signals_and_drop_the_input(void **state)
{
	assert_int_equal(type("line\npart\x03"), SIGINT);
	assert_int_equal(ldisc_ready(&l), 0);
	assert_string_equal(shown, "line\r\npart^C");
	assert_int_equal(type("\x1c"), SIGQUIT);
	assert_int_equal(type("\x1a"), SIGTSTP);
	type("ok\n");
	reads("ok\n");
	l.t.c_lflag &= ~ISIG;
	assert_int_equal(type("\x03\n"), 0);
	reads("\x03\n");
	l.t.c_lflag |= ISIG | NOFLSH;
	assert_int_equal(type("kept\x03\n"), SIGINT);
	reads("kept\n");
}

static void
raw_mode_gives_every_byte_at_once(void **state)
{
	struct termios t = l.t;

	type("typed");
	t.c_lflag &= ~(ICANON | ECHO | ISIG);
	t.c_iflag &= ~ICRNL;
	ldisc_set(&l, &t);
	reads("typed"); /* what was typed before is not lost */
	shown_len = shown[0] = 0;
	type("\r\x7f\x04\x03");
	reads("\r\x7f\x04\x03");
	assert_string_equal(shown, "");
}

static void
a_full_buffer_still_takes_the_end_of_the_line(void **state)
{
	char buf[LDISC_SIZE];
	bool wake;

	for (unsigned i = 0; i < 2 * LDISC_SIZE; i++)
		ldisc_input(&l, 'x', &wake);
	ldisc_input(&l, '\n', &wake);
	assert_true(wake);
	assert_int_equal(ldisc_read(&l, buf, sizeof(buf)), LDISC_SIZE);
	assert_int_equal(buf[LDISC_SIZE - 1], '\n');
	/* The ring has wrapped around. The next line is complete. */
	type("next\n");
	reads("next\n");
}

static void
output_gets_carriage_returns_and_fits(void **state)
{
	char out[4];
	size_t n = 4;

	assert_int_equal(ldisc_output(&l.t, "a\nb\n", &n, out, sizeof(out)), 4);
	assert_int_equal(n, 3);
	assert_memory_equal(out, "a\r\nb", 4);
	n = 1; /* a pair is not split */
	assert_int_equal(ldisc_output(&l.t, "\n", &n, out, 1), 0);
	assert_int_equal(n, 0);
	l.t.c_oflag = 0;
	n = 2;
	assert_int_equal(ldisc_output(&l.t, "a\n", &n, out, sizeof(out)), 2);
	assert_memory_equal(out, "a\n", 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_line_is_readable_only_when_it_is_whole, setup),
	    cmocka_unit_test_setup(a_read_gets_one_line_or_what_fits, setup),
	    cmocka_unit_test_setup(erase_and_kill_edit_the_line_but_not_the_one_before, setup),
	    cmocka_unit_test_setup(much_is_erased_in_a_new_line, setup),
	    cmocka_unit_test_setup(a_word_is_erased_and_a_literal_key_is_text, setup),
	    cmocka_unit_test_setup(returns_and_newlines_are_translated, setup),
	    cmocka_unit_test_setup(there_is_room_unless_something_was_not_read, setup),
	    cmocka_unit_test_setup(end_of_file_ends_a_read, setup),
	    cmocka_unit_test_setup(an_end_of_file_is_taken_with_the_last_byte_that_fits, setup),
	    cmocka_unit_test_setup(what_was_typed_stays_what_it_was_when_settings_change, setup),
	    cmocka_unit_test_setup(keys_mean_signals_and_drop_the_input, setup),
	    cmocka_unit_test_setup(raw_mode_gives_every_byte_at_once, setup),
	    cmocka_unit_test_setup(a_full_buffer_still_takes_the_end_of_the_line, setup),
	    cmocka_unit_test_setup(output_gets_carriage_returns_and_fits, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("ldisc", tests, NULL, NULL);
}
