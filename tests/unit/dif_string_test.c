/*
 * dif_string_test.c - the program engine's subroutines: strings, texts of numbers and addresses,
 * user memory.
 */
#include "tests/unit/dif_unit.h"

static void
strings(void **state)
{
	static const struct {
		enum dif_sub sub;
		const char *a, *b;
		int64_t n, k;
		const char *text; /* the result, or NULL: a number */
		int64_t number;
	} vectors[] = {
	    {DIF_SUB_STRLEN, "", NULL, 0, 0, NULL, 0},
	    {DIF_SUB_STRLEN, "kestrel", NULL, 0, 0, NULL, 7},
	    {DIF_SUB_STRJOIN, "ab", "cde", 0, 0, "abcde", 0},
	    {DIF_SUB_STRCHR, "a/b/c", NULL, '/', 0, "/b/c", 0},
	    {DIF_SUB_STRRCHR, "a/b/c", NULL, '/', 0, "/c", 0},
	    {DIF_SUB_STRCHR, "abc", NULL, 'x', 0, NULL, 0},
	    {DIF_SUB_STRSTR, "hello", "ll", 0, 0, "llo", 0},
	    {DIF_SUB_GLOB, "kestrel", "k*[a-e]?", 0, 0, NULL, 1},
	    {DIF_SUB_GLOB, "kestrel", "k*[a-d]?", 0, 0, NULL, 0},
	    {DIF_SUB_STRSTR, "hello", "x", 0, 0, NULL, 0},
	    {DIF_SUB_SUBSTR, "abcdef", NULL, 2, INT64_MAX, "cdef", 0},
	    {DIF_SUB_SUBSTR, "abcdef", NULL, 2, 2, "cd", 0},
	    {DIF_SUB_SUBSTR, "abcdef", NULL, -2, INT64_MAX, "ef", 0},
	    {DIF_SUB_SUBSTR, "abcdef", NULL, 1, -2, "bcd", 0},
	    {DIF_SUB_SUBSTR, "abcdef", NULL, 6, 1, "", 0},
	    {DIF_SUB_SUBSTR, "abcdef", NULL, -8, 4, "ab", 0},
	    {DIF_SUB_SUBSTR, "abcdef", NULL, INT64_MIN, INT64_MIN, "", 0},
	    {DIF_SUB_INDEX, "banana", "an", 0, 0, NULL, 1},
	    {DIF_SUB_INDEX, "banana", "an", 2, 0, NULL, 3},
	    {DIF_SUB_INDEX, "banana", "x", 0, 0, NULL, -1},
	    {DIF_SUB_INDEX, "banana", "an", INT64_MIN, 0, NULL, 1},
	    {DIF_SUB_RINDEX, "banana", "an", INT64_MAX, 0, NULL, 3},
	    {DIF_SUB_RINDEX, "banana", "an", 2, 0, NULL, 1},
	    {DIF_SUB_RINDEX, "an", "banana", 9, 0, NULL, -1},
	    {DIF_SUB_BASENAME, "/usr/lib/", NULL, 0, 0, "lib", 0},
	    {DIF_SUB_BASENAME, "file", NULL, 0, 0, "file", 0},
	    {DIF_SUB_BASENAME, "//", NULL, 0, 0, "/", 0},
	    {DIF_SUB_BASENAME, "", NULL, 0, 0, ".", 0},
	    {DIF_SUB_DIRNAME, "/usr/lib/", NULL, 0, 0, "/usr", 0},
	    {DIF_SUB_DIRNAME, "/usr", NULL, 0, 0, "/", 0},
	    {DIF_SUB_DIRNAME, "file", NULL, 0, 0, ".", 0},
	    {DIF_SUB_DIRNAME, "a//b", NULL, 0, 0, "a", 0},
	    {DIF_SUB_CLEANPATH, "/a//b/./c/../d", NULL, 0, 0, "/a/b/d", 0},
	    {DIF_SUB_CLEANPATH, "/../a/", NULL, 0, 0, "/a/", 0},
	    {DIF_SUB_CLEANPATH, "/a/..", NULL, 0, 0, "/", 0},
	    {DIF_SUB_CLEANPATH, "a/b", NULL, 0, 0, "a/b", 0},
	    {DIF_SUB_TOUPPER, "az[`{AZ", NULL, 0, 0, "AZ[`{AZ", 0},
	    {DIF_SUB_TOLOWER, "AZ@[`az", NULL, 0, 0, "az@[`az", 0},
	    {DIF_SUB_STRTOLL, " -12x", NULL, 10, 0, NULL, -12},
	    {DIF_SUB_STRTOLL, "0xfF", NULL, 16, 0, NULL, 255},
	    {DIF_SUB_STRTOLL, "z", NULL, 36, 0, NULL, 35},
	    {DIF_SUB_STRTOLL, "", NULL, 10, 0, NULL, 0},
	    {DIF_SUB_JSON, "{\"a\": {\"b\": [1, -2.5e3]}}", "a.b[1]", 0, 0, "-2.5e3", 0},
	    {DIF_SUB_JSON, "[{\"}\\\"\": \"x]y\", \"n\":null}]", "[0].}\\\"", 0, 0, "x]y", 0},
	    {DIF_SUB_JSON, "{\"ab\":1,\"a\":{ \"x\" : [] },\"z\":true}", "a", 0, 0,
	     "{ \"x\" : [] }", 0},
	    {DIF_SUB_JSON, "{\"ab\":1,\"a\":[],\"z\":true}", "z", 0, 0, "true", 0},
	    {DIF_SUB_JSON, "{\"ab\":1}", "a", 0, 0, NULL, 0},
	    {DIF_SUB_JSON, "[1,2]", "[2]", 0, 0, NULL, 0},
	    {DIF_SUB_JSON, "[1,[2", "[1][1]", 0, 0, NULL, 0},
	    {DIF_SUB_JSON, "{\"a", "a", 0, 0, NULL, 0},
	    {DIF_SUB_STRINGOF, "copy", NULL, 0, 0, "copy", 0},
	};
	enum { N = sizeof(vectors) / sizeof(vectors[0]) };

	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);
	for (unsigned i = 0; i < N; i++) {
		int32_t a = (int32_t)put_string(&m, vectors[i].a);
		int32_t b = vectors[i].b != NULL ? (int32_t)put_string(&m, vectors[i].b) : 0;
		int64_t n = vectors[i].n, k = vectors[i].k, second = vectors[i].b != NULL ? k : n;
		bool text = vectors[i].b != NULL;

		/* r2: the string; r3: the other one, or n; r4: n after a string, else k */
		if (text)
			second = n;
		CLAUSE(&m, {DIF_STRING, 2, 0, 0, a},
		       {DIF_OR | DIF_IMM, 4, 0, 0, (int32_t)(text ? n : k)},
		       {DIF_HIGH, 4, 0, 0, (int32_t)((text ? n : k) >> 32)},
		       {DIF_OR | DIF_IMM, 3, 0, 0, (int32_t)second},
		       {DIF_HIGH, 3, 0, 0, (int32_t)(second >> 32)},
		       {DIF_JA, 0, 0, 0, text ? 0 : 1}, {DIF_STRING, 3, 0, 0, b},
		       {DIF_CALL, 1, 2, 0, (int32_t)vectors[i].sub},
		       {DIF_STV, 0, 1, 0, vectors[i].text != NULL}, {DIF_RET, 0, 0, 0, 0});
	}
	load_it(1);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(fire(&d, 0, i), DIF_FAULT_NONE);
		if (vectors[i].text == NULL && (int64_t)global(0) != vectors[i].number)
			fail_msg("vector %u: %ld, expected %ld", i, global(0), vectors[i].number);
		if (vectors[i].text != NULL && strcmp(global_str(1), vectors[i].text) != 0)
			fail_msg("vector %u: \"%s\", expected \"%s\"", i, global_str(1),
				 vectors[i].text);
	}
}

static void
user_memory(void **state)
{
	uint32_t out;

	m.h.flags = DIF_DESTRUCTIVE;
	out = put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);
	memcpy(user_bytes + 100, "from the user", 14);
	memset(user_bytes + 8000, 'x', 192);
	memcpy(user_bytes + 8187, "last", 5);
	struct dif_insn text = TEXT(2, "changed");
	uint32_t str =
	    CLAUSE(&m, SET(2, USER + 100), SET(3, 0), CALL(1, COPYINSTR, 2), STV(out, 1), RET);
	uint32_t cut =
	    CLAUSE(&m, SET(2, USER + 100), SET(3, 5), CALL(1, COPYINSTR, 2), STV(out, 1), RET);
	uint32_t last =
	    CLAUSE(&m, SET(2, USER + 8187), SET(3, 0), CALL(1, COPYINSTR, 2), STV(out, 1), RET);
	uint32_t mem =
	    CLAUSE(&m, SET(2, USER + 100), SET(3, 14), CALL(1, COPYIN, 2), STV(out, 1), RET);
	uint32_t bad = CLAUSE(&m, SET(2, USER + 8190), SET(3, 3), CALL(1, COPYIN, 2), RET);
	uint32_t huge = CLAUSE(&m, SET(2, USER), SET(3, -1), CALL(1, COPYIN, 2), RET);
	uint32_t put = CLAUSE(&m, text, SET(3, USER + 100), SET(4, 9), CALL(1, COPYOUTSTR, 2), RET);
	uint32_t part =
	    CLAUSE(&m, text, SET(3, USER + 105), SET(4, 3), CALL(1, COPYOUTSTR, 2), RET);
	uint32_t into = CLAUSE(&m, SET(2, USER + 100), SET(3, 8), CALL(4, ALLOCA, 3),
			       CALL(1, COPYINTO, 2), STV(out, 4), RET);
	uint32_t stray =
	    CLAUSE(&m, SET(2, USER + 100), SET(3, 8), SET(4, USER), CALL(1, COPYINTO, 2), RET);
	uint32_t nothing = CLAUSE(&m, SET(2, USER), SET(4, 8), CALL(3, ALLOCA, 4), SET(4, 0),
				  CALL(1, BCOPY, 2), RET); /* not the kernel's memory */
	load_it(1);
	ok(0, nothing);
	ok(0, str);
	assert_string_equal(global_str(out), "from the user");
	ok(0, cut);
	assert_string_equal(global_str(out), "from");
	ok(0, last);
	assert_string_equal(global_str(out), "last");
	ok(0, mem);
	assert_string_equal(global_str(out), "from the user");
	assert_int_equal(fire(&d, 0, bad), DIF_FAULT_BADADDR);
	assert_int_equal(fire(&d, 0, huge), DIF_FAULT_NOSCRATCH);
	ok(0, put);
	assert_memory_equal(user_bytes + 100, "changed\0 user", 13);
	ok(0, into);
	assert_string_equal(global_str(out), "changed");
	ok(0, part); /* without a NUL */
	assert_memory_equal(user_bytes + 100, "changcha user", 13);
	assert_int_equal(fire(&d, 0, stray), DIF_FAULT_BADADDR);
}

static void
texts_of_numbers_and_addresses(void **state)
{
	static const struct {
		int64_t n;
		int32_t base;
		const char *text;
	} numbers[] = {{0, 10, "0"},   {-5, 10, "-5"}, {255, 16, "0xff"},
		       {0, 16, "0x0"}, {8, 8, "010"},  {INT64_MIN, 10, "-9223372036854775808"},
		       {35, 36, "z"},  {5, 2, "101"}};
	static const struct {
		const char bytes[17];
		const char *text;
	} addresses[] = {{"\x20\x01\x0d\xb8\0\0\0\0\0\1\0\0\0\0\0\1", "2001:db8::1:0:0:1"},
			 {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", "::1"},
			 {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "::"},
			 {"\xfe\x80\0\1\0\0\0\0\0\0\0\0\0\0\0\0", "fe80:1::"},
			 {"\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", "::ffff:127.0.0.1"},
			 {"\0\1\0\0\0\3\0\4\0\5\0\6\0\7\0\x8", "1:0:3:4:5:6:7:8"}};
	uint32_t out, place;

	out = put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);
	for (unsigned i = 0; i < 8; i++)
		CLAUSE(&m, SET(2, (int32_t)numbers[i].n),
		       {DIF_HIGH, 2, 0, 0, (int32_t)(numbers[i].n >> 32)}, SET(3, numbers[i].base),
		       CALL(1, LLTOSTR, 2), STV(out, 1), RET);
	for (unsigned i = 0; i < 6; i++) {
		place = m.h.strings.count;
		memcpy(m.strings + place, addresses[i].bytes, 17);
		m.h.strings.count += 17;
		CLAUSE(&m, {DIF_STRING, 2, 0, 0, (int32_t)place}, CALL(1, INET_NTOA6, 2),
		       STV(out, 1), RET);
	}
	CLAUSE(&m, {DIF_STRING, 2, 0, 0, (int32_t)place + 12}, CALL(1, INET_NTOA, 2), STV(out, 1),
	       RET);
	uint32_t words = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	uint32_t bad = CLAUSE(&m, SET(2, 0), SET(3, 1), CALL(1, LLTOSTR, 2), RET);
	uint32_t order = CLAUSE(&m, SET(2, 0x1234), CALL(3, HTONS, 2), CALL(4, HTONL, 2),
				{DIF_ADD, 1, 3, 4, 0}, STV(words, 1), RET);
	load_it(1);
	for (unsigned i = 0; i < 14; i++) {
		ok(0, i);
		assert_string_equal(global_str(out),
				    i < 8 ? numbers[i].text : addresses[i - 8].text);
	}
	ok(0, 14);
	assert_string_equal(global_str(out), "0.7.0.8");
	assert_int_equal(fire(&d, 0, bad), DIF_FAULT_ILLOP);
	ok(0, order);
	assert_int_equal(global(words), 0x3412 + 0x34120000);
}

static void
tokens(void **state)
{
	uint32_t out[4];

	for (unsigned i = 0; i < 4; i++)
		out[i] = put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);
	struct dif_insn text = TEXT(2, "/usr//lib:x"), separators = TEXT(3, "/:");
	CLAUSE(&m, text, separators, CALL(1, STRTOK, 2), STV(out[0], 1), SET(2, 0),
	       CALL(1, STRTOK, 2), STV(out[1], 1), CALL(1, STRTOK, 2), STV(out[2], 1),
	       CALL(1, STRTOK, 2), STV(out[3], 1), CALL(1, STRTOK, 2), STV(out[3], 1), RET);
	load_it(1);
	ok(0, 0);
	assert_string_equal(global_str(out[0]), "usr");
	assert_string_equal(global_str(out[1]), "lib");
	assert_string_equal(global_str(out[2]), "x");
	assert_int_equal(global(out[3]), 1); /* no more: address 0 */
}

static void
strings_may_end_with_the_memory_that_is_there(void **state)
{
	static const char there[4] = "end";

	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	struct dif_insn text = TEXT(3, "end");
	uint32_t length =
	    CLAUSE(&m, {DIF_BUILTIN, 2, 0, 0, DIF_B_EXECNAME}, CALL(1, STRLEN, 2), STORE_1);
	uint32_t same = CLAUSE(&m, {DIF_BUILTIN, 2, 0, 0, DIF_B_EXECNAME}, text,
			       {DIF_SCMP, 1, 2, 3, 0}, STORE_1);
	load_it(1);
	dif_host.builtin[DIF_B_EXECNAME] = (uintptr_t)there;
	dif_port_direct[1] = (struct dif_port_range){(uintptr_t)there, sizeof(there)};
	ok(0, length);
	assert_int_equal(global(0), 3);
	ok(0, same);
	assert_int_equal(global(0), 0);
	dif_port_direct[1] = (struct dif_port_range){0, 0};
}

static void
strings_are_the_same_where_they_are_read_at_once(void **state)
{
	static char there[DIF_PORT_QUICK_SIZE + 512];
	uint32_t out = put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);

	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_EXECNAME}, STV(out, 1), RET);
	load_it(1);
	dif_port_direct[1] = (struct dif_port_range){(uintptr_t)there, sizeof(there)};
	dif_port_quick_range = (struct dif_port_range){(uintptr_t)there, 512};
	for (unsigned length = 0; length < 300; length++) {
		char *from = there + length % 8;
		unsigned kept = length < 255 ? length : 255; /* strsize is 256 */

		memset(there, 'y', sizeof(there)); /* what comes after the NUL stays away */
		memset(from, 'x', length);
		from[length] = '\0';
		dif_host.builtin[DIF_B_EXECNAME] = (uintptr_t)from;
		ok(0, 0);
		assert_int_equal(strlen(global_str(out)), kept);
		assert_memory_equal(global_str(out), from, kept);
	}
	dif_port_direct[1] = dif_port_quick_range = (struct dif_port_range){0, 0};
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(strings),
	    TEST(user_memory),
	    TEST(texts_of_numbers_and_addresses),
	    TEST(tokens),
	    TEST(strings_may_end_with_the_memory_that_is_there),
	    TEST(strings_are_the_same_where_they_are_read_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
