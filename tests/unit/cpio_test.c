/*
 * cpio_test.c - the archive reader: archives of the standard tool, cut, damaged and joined ones.
 */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/fs/cpio.h"

struct archive {
	char *bytes;
	size_t size;
};

/* The archive that `cpio -o -H newc` makes of a small tree. */
static struct archive
make_archive(const char *commands)
{
	struct archive a = {malloc(1 << 20), 0};
	char command[512];
	FILE *p;

	assert_non_null(a.bytes);
	snprintf(command, sizeof(command),
		 "d=$(mktemp -d) && cd $d && (%s) && find . -mindepth 1 | LC_ALL=C sort | "
		 "cpio -o -H newc --quiet; rm -rf $d",
		 commands);
	p = popen(command, "r");
	assert_non_null(p);
	a.size = fread(a.bytes, 1, 1 << 20, p);
	assert_int_equal(pclose(p), 0);
	assert_true(a.size > 0);
	return a;
}

static struct archive
sample(void)
{
	return make_archive("mkdir bin boot; printf hello >bin/a; printf '12345678' >bin/b; "
			    ": >bin/empty; printf 'x=1\\n' >boot/loader.conf");
}

/* Reads data from an exact allocation, so that tools detect any access after it. */
static unsigned
walk(const char *bytes, size_t size, char *names, size_t names_size, unsigned *damages)
{
	char *copy = malloc(size > 0 ? size : 1);
	struct cpio c;
	struct cpio_entry e;
	unsigned entries = 0;
	int got;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	*damages = 0;
	if (names != NULL)
		names[0] = '\0';
	cpio_init(&c, copy, size);
	while ((got = cpio_next(&c, &e)) != 0) {
		volatile unsigned sum = 0;

		assert_true(c.at <= size);
		if (got < 0) {
			assert_true(c.error_at <= size);
			assert_non_null(c.expected);
			(*damages)++;
			continue;
		}
		entries++;
		assert_true(strlen(e.name) < 1024);
		for (size_t i = 0; i < e.size; i++)
			sum += ((const unsigned char *)e.data)[i];
		if (names != NULL)
			snprintf(names + strlen(names), names_size - strlen(names), "%s:%zu ",
				 e.name, e.size);
	}
	free(copy);
	return entries;
}

static void
reads_what_the_tool_writes(void **state)
{
	struct archive a = sample();
	char names[512];
	unsigned damages;

	walk(a.bytes, a.size, names, sizeof(names), &damages);
	assert_int_equal(damages, 0);
	assert_string_equal(names, "bin:0 bin/a:5 bin/b:8 bin/empty:0 boot:0 boot/loader.conf:4 ");
	free(a.bytes);
}

static void
finds_the_last_file_of_a_name(void **state)
{
	struct archive a = sample(), b = make_archive("mkdir boot; printf y=22 >boot/loader.conf");
	char *both = malloc(a.size + b.size);
	const char *file = NULL;
	size_t size = 0;

	assert_true(cpio_find(a.bytes, a.size, "boot/loader.conf", &file, &size));
	assert_int_equal(size, 4);
	assert_memory_equal(file, "x=1\n", 4);
	assert_non_null(both);
	memcpy(both, a.bytes, a.size);
	memcpy(both + a.size, b.bytes, b.size);
	assert_true(cpio_find(both, a.size + b.size, "boot/loader.conf", &file, &size));
	assert_int_equal(size, 4);
	assert_memory_equal(file, "y=22", 4);
	assert_false(cpio_find(both, a.size + b.size, "boot", &file, &size)); /* a directory */
	assert_false(cpio_find(both, a.size + b.size, "none", &file, &size));
	free(both);
	free(a.bytes);
	free(b.bytes);
}

static void
hard_links_share_a_number_and_the_last_has_the_data(void **state)
{
	struct archive a = make_archive("printf data >one; ln one two");
	struct cpio c;
	struct cpio_entry first, last;

	cpio_init(&c, a.bytes, a.size);
	assert_int_equal(cpio_next(&c, &first), 1);
	assert_int_equal(cpio_next(&c, &last), 1);
	assert_int_equal(first.ino, last.ino);
	assert_int_equal(first.nlink, 2);
	assert_int_equal(first.size, 0);
	assert_int_equal(last.size, 4);
	free(a.bytes);
}

static void
a_cut_at_every_byte_is_reported_and_keeps_what_came_before(void **state)
{
	struct archive a = sample();
	unsigned damages, whole = walk(a.bytes, a.size, NULL, 0, &damages), last = 0;

	for (size_t cut = 0; cut < a.size; cut++) {
		unsigned n = walk(a.bytes, cut, NULL, 0, &damages);

		assert_true(n >= last && n <= whole);
		last = n;
	}
	assert_int_equal(last, whole);
	/* Damage in a file's data: the file is not returned. */
	walk(a.bytes, 110 + 2, NULL, 0, &damages);
	assert_int_equal(damages, 1);
	free(a.bytes);
}

static void
a_damaged_header_costs_one_entry(void **state)
{
	struct archive a = sample();
	char names[512], *second = memmem(a.bytes + 6, a.size - 6, "070701", 6);
	unsigned damages;

	assert_non_null(second);
	second[0] = '9'; /* bin/a */
	walk(a.bytes, a.size, names, sizeof(names), &damages);
	assert_int_equal(damages, 1);
	assert_string_equal(names, "bin:0 bin/b:8 bin/empty:0 boot:0 boot/loader.conf:4 ");
	free(a.bytes);
}

static void
flipped_bytes_never_lead_outside(void **state)
{
	struct archive a = sample();
	unsigned damages;

	for (size_t i = 0; i < a.size; i++) {
		for (unsigned bit = 0; bit < 8; bit += 3) {
			a.bytes[i] ^= (char)(1 << bit);
			walk(a.bytes, a.size, NULL, 0, &damages);
			a.bytes[i] ^= (char)(1 << bit);
		}
	}
	free(a.bytes);
}

static void
foreign_bytes_are_one_complaint(void **state)
{
	char junk[4096];
	unsigned damages;

	memset(junk, 'j', sizeof(junk));
	assert_int_equal(walk(junk, sizeof(junk), NULL, 0, &damages), 0);
	assert_int_equal(damages, 1);
	memset(junk, 0, sizeof(junk));
	assert_int_equal(walk(junk, sizeof(junk), NULL, 0, &damages), 0);
	assert_int_equal(damages, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reads_what_the_tool_writes),
	    cmocka_unit_test(finds_the_last_file_of_a_name),
	    cmocka_unit_test(hard_links_share_a_number_and_the_last_has_the_data),
	    cmocka_unit_test(a_cut_at_every_byte_is_reported_and_keeps_what_came_before),
	    cmocka_unit_test(a_damaged_header_costs_one_entry),
	    cmocka_unit_test(flipped_bytes_never_lead_outside),
	    cmocka_unit_test(foreign_bytes_are_one_complaint),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("cpio", tests, NULL, NULL);
}
