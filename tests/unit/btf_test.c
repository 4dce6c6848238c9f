/*
 * btf_test.c - the reader of BTF: types, members, and damage of every byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userland/bin/dtrace/btf.h"

#define INFO(kind, parts) ((uint32_t)(kind) << 24 | (parts))

/* int; struct list { struct list *next; int n : 3; }; enum { A = -1 }; int f(int a); char [4] */
static const char names[] = "\0int\0list\0next\0n\0A\0f\0a\0size_t";
static const uint32_t types[] = {
    1,
    INFO(BTF_INT, 0),
    4,
    1u << 24 | 32, /* 1: int, signed, 32 bits */
    5,
    INFO(BTF_STRUCT, 2) | 1u << 31,
    16,
    10,
    3,
    0,
    15,
    1,
    3u << 24 | 64, /* 2 */
    0,
    INFO(BTF_PTR, 0),
    2, /* 3 */
    0,
    INFO(BTF_ENUM, 1) | 1u << 31,
    4,
    17,
    0xffffffff, /* 4 */
    0,
    INFO(BTF_FUNC_PROTO, 1),
    1,
    21,
    1, /* 5 */
    19,
    INFO(BTF_FUNC, 0),
    5, /* 6 */
    0,
    INFO(BTF_ARRAY, 0),
    0,
    1,
    1,
    4, /* 7 */
    23,
    INFO(BTF_TYPEDEF, 0),
    1, /* 8 */
};

/* The bytes of a file: without what the compiler adds at the end of the struct. */
#define SIZE (offsetof(struct file, data) + sizeof(types) + sizeof(names))

struct file {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t header_size, type_offset, type_size, name_offset, name_size;
	uint8_t data[sizeof(types) + sizeof(names)];
};

static struct file
sample(void)
{
	struct file f = {0xeb9f, 1, 0, 24, 0, sizeof(types), sizeof(types), sizeof(names), {0}};

	memcpy(f.data, types, sizeof(types));
	memcpy(f.data + sizeof(types), names, sizeof(names));
	return f;
}

/* Reads all there is, from an exact allocation, so that tools detect any access after it. */
static const char *
walk(const struct file *f, size_t size)
{
	void *copy = malloc(size > 0 ? size : 1);
	struct btf btf;
	const char *why;

	assert_non_null(copy);
	memcpy(copy, f, size);
	why = btf_open(&btf, copy, size);
	for (uint32_t n = 0; why == NULL && n < btf.count; n++) {
		struct btf_type t = btf_get(&btf, n);

		assert_true(strlen(t.name) < btf.names_size && t.to < btf.count);
		for (uint32_t i = 0; t.kind != BTF_ARRAY && i < t.count; i++) {
			struct btf_part p = btf_get_part(&btf, n, i);

			assert_true(strlen(p.name) < btf.names_size && p.type < btf.count);
		}
	}
	if (why == NULL)
		btf_close(&btf);
	free(copy);
	return why;
}

static void
types_and_members_are_read(void **state)
{
	struct file f = sample();
	struct btf btf;
	struct btf_type t;
	struct btf_part p;

	assert_null(btf_open(&btf, &f, SIZE));
	assert_int_equal(btf.count, 9);
	assert_int_equal(btf_find(&btf, BTF_STRUCT, "list"), 2);
	assert_int_equal(btf_find(&btf, BTF_STRUCT, "int"), 0);
	t = btf_get(&btf, 1);
	assert_true(t.kind == BTF_INT && t.is_signed && t.size == 4);
	t = btf_get(&btf, 2);
	assert_true(t.kind == BTF_STRUCT && t.count == 2 && t.size == 16);
	p = btf_get_part(&btf, 2, 1);
	assert_string_equal(p.name, "n");
	assert_true(p.type == 1 && p.offset == 64 && p.bits == 3);
	p = btf_get_part(&btf, 4, 0);
	assert_int_equal(p.value, -1);
	t = btf_get(&btf, btf_find(&btf, BTF_FUNC, "f"));
	assert_true(t.to == 5 && btf_get(&btf, 5).count == 1 && btf_get(&btf, 5).to == 1);
	t = btf_get(&btf, 7);
	assert_true(t.kind == BTF_ARRAY && t.to == 1 && t.count == 4);
	btf_close(&btf);
}

static void
a_cut_file_is_refused(void **state)
{
	struct file f = sample();

	for (size_t size = 0; size < SIZE; size++)
		assert_non_null(walk(&f, size));
}

static void
any_damaged_byte_is_refused_or_harmless(void **state)
{
	unsigned refused = 0;

	for (size_t at = 0; at < SIZE; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			struct file f = sample();

			((uint8_t *)&f)[at] ^= (uint8_t)(1u << bit);
			refused += walk(&f, SIZE) != NULL;
		}
	}
	assert_true(refused > 500);
}

static void
a_type_that_is_defined_by_itself_is_refused(void **state)
{
	struct file f = sample();
	uint32_t self = 8;

	memcpy(f.data + sizeof(types) - sizeof(self), &self, sizeof(self));
	assert_string_equal(walk(&f, SIZE), "a type is defined by itself");
}

static void
an_enum_has_at_most_8_bytes(void **state)
{
	struct file f = sample();
	uint32_t size = 8;

	memcpy(f.data + 18 * sizeof(size), &size, sizeof(size));
	assert_null(walk(&f, SIZE));
	size = 16;
	memcpy(f.data + 18 * sizeof(size), &size, sizeof(size));
	assert_non_null(walk(&f, SIZE));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(types_and_members_are_read),
	    cmocka_unit_test(a_cut_file_is_refused),
	    cmocka_unit_test(any_damaged_byte_is_refused_or_harmless),
	    cmocka_unit_test(a_type_that_is_defined_by_itself_is_refused),
	    cmocka_unit_test(an_enum_has_at_most_8_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
