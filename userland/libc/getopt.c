/*
 * getopt.c - command line options.
 *
 * State: optind is the word at hand, `rest` what is left of a word of short options.
 */
#include <err.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

char *optarg;
int optind = 1, opterr = 1, optopt;

static const char *rest;

static int
complain(const char *opts, const char *fmt, const char *what)
{
	if (opterr && *opts != ':') {
		fflush(stdout);
		fprintf(stderr, "%s: ", getprogname());
		fprintf(stderr, fmt, what);
		fputc('\n', stderr);
	}
	return '?';
}

static int
missing(const char *opts, const char *fmt, const char *what)
{
	complain(opts, fmt, what);
	return *opts == ':' ? ':' : '?';
}

static int
short_option(int argc, char *const argv[], const char *opts)
{
	char letter[2] = {*rest++, '\0'};
	const char *spec = letter[0] == ':' ? NULL : strchr(opts, letter[0]);

	optopt = (unsigned char)letter[0];
	if (*rest == '\0')
		optind++;
	if (spec == NULL)
		return complain(opts, "unknown option -%s", letter);
	if (spec[1] != ':')
		return optopt;
	if (*rest != '\0') {
		optarg = (char *)rest;
		optind++;
	} else if (spec[2] == ':') {
		optarg = NULL;
	} else if (optind < argc) {
		optarg = argv[optind++];
	} else {
		rest = NULL;
		return missing(opts, "option -%s needs an argument", letter);
	}
	rest = NULL;
	return optopt;
}

static const struct option *
long_find(const struct option *longs, const char *name, size_t len, const char **why)
{
	const struct option *found = NULL;

	*why = "unknown option --%s";
	for (; longs->name != NULL; longs++) {
		if (strncmp(longs->name, name, len) != 0)
			continue;
		if (longs->name[len] == '\0')
			return longs;
		if (found != NULL) {
			*why = "option --%s is ambiguous";
			return NULL;
		}
		found = longs; /* an abbreviation */
	}
	return found;
}

static int
long_option(int argc, char *const argv[], const char *opts, const struct option *longs, int *index)
{
	const char *name = argv[optind++] + 2, *why;
	size_t len = strcspn(name, "=");
	const struct option *o = long_find(longs, name, len, &why);

	optopt = 0;
	if (o == NULL)
		return complain(opts, why, name);
	optopt = o->flag == NULL ? o->val : 0;
	if (name[len] == '=') {
		if (o->has_arg == no_argument)
			return complain(opts, "option --%s takes no argument", o->name);
		optarg = (char *)name + len + 1;
	} else if (o->has_arg == required_argument) {
		if (optind >= argc)
			return missing(opts, "option --%s needs an argument", o->name);
		optarg = argv[optind++];
	}
	if (index != NULL)
		*index = (int)(o - longs);
	if (o->flag == NULL)
		return o->val;
	*o->flag = o->val;
	return 0;
}

int
getopt_long(int argc, char *const argv[], const char *opts, const struct option *longs, int *index)
{
	const char *word;

	optarg = NULL;
	if (optind == 0) { /* start again */
		optind = 1;
		rest = NULL;
	}
	if (rest == NULL || *rest == '\0') {
		if (optind >= argc)
			return -1;
		word = argv[optind];
		if (word[0] != '-' || word[1] == '\0')
			return -1;
		if (word[1] == '-' && word[2] == '\0') {
			optind++;
			return -1;
		}
		if (word[1] == '-' && longs != NULL)
			return long_option(argc, argv, opts, longs, index);
		rest = word + 1;
	}
	return short_option(argc, argv, opts);
}

int
getopt(int argc, char *const argv[], const char *opts)
{
	return getopt_long(argc, argv, opts, NULL, NULL);
}
