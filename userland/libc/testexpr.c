/*
 * testexpr.c - the expressions of test(1), for the tool and the shell's builtin.
 *
 * Grammar: or := and [-o or]; and := not [-a and]; not := ! not | primary;
 * primary := ( or ) | -f file | a = b | n -eq m | text.
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tool.h>
#include <unistd.h>

struct test {
	int argc, at;
	char **argv;
	bool bad; /* a message has been printed */
};

static bool test_or(struct test *t);

static void
test_bad(struct test *t, const char *found, const char *expected)
{
	if (!t->bad) {
		fflush(stdout);
		fprintf(stderr, "test: found %s%s%s, expected %s\n", found != NULL ? "\"" : "",
			found != NULL ? found : "the end", found != NULL ? "\"" : "", expected);
	}
	t->bad = true;
}

static bool
is_unary(const char *s)
{
	return s[0] == '-' && s[1] != '\0' && s[2] == '\0' && strchr("bcdefnprstwxz", s[1]) != NULL;
}

static bool
is_binary(const char *s)
{
	static const char *const ops[] = {"=",   "==",  "!=",  "<",   ">",  "-eq",
					  "-ne", "-lt", "-le", "-gt", "-ge"};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strcmp(s, ops[i]) == 0)
			return true;
	}
	return false;
}

static bool
test_file(char op, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	switch (op) {
	case 'b':
		return false; /* there are no block devices */
	case 'c':
		return S_ISCHR(st.st_mode);
	case 'd':
		return S_ISDIR(st.st_mode);
	case 'f':
		return S_ISREG(st.st_mode);
	case 'p':
		return S_ISFIFO(st.st_mode);
	case 's':
		return st.st_size > 0;
	case 'r':
		return geteuid() == 0 ||
		       (st.st_mode & (st.st_uid == geteuid() ? 0400U : 0004U)) != 0;
	case 'w':
		return geteuid() == 0 ||
		       (st.st_mode & (st.st_uid == geteuid() ? 0200U : 0002U)) != 0;
	case 'x':
		return (st.st_mode & 0111) != 0;
	default:
		return true; /* -e */
	}
}

static long
test_number(struct test *t, const char *s)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(s, &end, 10);
	while (isspace((unsigned char)*end))
		end++;
	if (end == s || *end != '\0' || errno != 0)
		test_bad(t, s, "a number");
	return n;
}

static bool
test_unary(struct test *t, char op, const char *arg)
{
	switch (op) {
	case 'n':
		return *arg != '\0';
	case 'z':
		return *arg == '\0';
	case 't':
		return isatty((int)test_number(t, arg));
	default:
		return test_file(op, arg);
	}
}

static bool
test_binary(struct test *t, const char *a, const char *op, const char *b)
{
	long x, y;

	if (op[0] == '=')
		return strcmp(a, b) == 0;
	if (op[0] == '!')
		return strcmp(a, b) != 0;
	if (op[0] == '<')
		return strcmp(a, b) < 0;
	if (op[0] == '>')
		return strcmp(a, b) > 0;
	x = test_number(t, a);
	y = test_number(t, b);
	switch (op[1] << 8 | op[2]) {
	case 'e' << 8 | 'q':
		return x == y;
	case 'n' << 8 | 'e':
		return x != y;
	case 'l' << 8 | 't':
		return x < y;
	case 'l' << 8 | 'e':
		return x <= y;
	case 'g' << 8 | 't':
		return x > y;
	default:
		return x >= y;
	}
}

static bool
test_primary(struct test *t)
{
	int left = t->argc - t->at;
	char **a = t->argv + t->at;
	bool r;

	if (left == 0) {
		test_bad(t, NULL, "an expression");
		return false;
	}
	if (left >= 3 && is_binary(a[1])) {
		t->at += 3;
		return test_binary(t, a[0], a[1], a[2]);
	}
	if (left >= 2 && is_unary(a[0])) {
		t->at += 2;
		return test_unary(t, a[0][1], a[1]);
	}
	if (left >= 3 && strcmp(a[0], "(") == 0) {
		t->at++;
		r = test_or(t);
		if (t->at < t->argc && strcmp(t->argv[t->at], ")") == 0)
			t->at++;
		else
			test_bad(t, t->at < t->argc ? t->argv[t->at] : NULL, "\")\"");
		return r;
	}
	t->at++;
	return a[0][0] != '\0';
}

static bool
test_not(struct test *t)
{
	if (t->argc - t->at >= 2 && strcmp(t->argv[t->at], "!") == 0 &&
	    !(t->argc - t->at >= 3 && is_binary(t->argv[t->at + 1]))) {
		t->at++;
		return !test_not(t);
	}
	return test_primary(t);
}

static bool
test_joined(struct test *t, const char *op)
{
	if (t->at >= t->argc || strcmp(t->argv[t->at], op) != 0)
		return false;
	t->at++;
	return true;
}

static bool
test_and(struct test *t)
{
	bool r = test_not(t);

	while (!t->bad && test_joined(t, "-a"))
		r = test_not(t) && r;
	return r;
}

static bool
test_or(struct test *t)
{
	bool r = test_and(t);

	while (!t->bad && test_joined(t, "-o"))
		r = test_and(t) || r;
	return r;
}

int
test_evaluate(int argc, char **argv)
{
	struct test t = {.argc = argc, .argv = argv};
	bool r;

	if (argc == 0)
		return 1;
	r = test_or(&t);
	if (!t.bad && t.at < argc)
		test_bad(&t, argv[t.at], "an operator or the end");
	return t.bad ? 2 : !r;
}
