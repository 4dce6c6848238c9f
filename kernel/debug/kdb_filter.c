/*
 * kdb_filter.c - parses and applies the filters of `show ktr' and `search'. No locks.
 */
#include "kernel/debug/kdb_filter.h"

#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "ktr/class.h"
#include "ktr/glob.h"
#include "ktr/intern.h"

/* The value of an option: "-c 1" or "-c1". NULL: none; an error line was printed. */
static char *
option_value(const char *command, char *word, char **args, const char *expected)
{
	char *value = word[2] != '\0' ? word + 2 : kdb_word(args);

	if (value == NULL)
		kdb_printf("%s: %.2s: expected %s\n", command, word, expected);
	return value;
}

static bool
kdb_parse_number(const char *command, char *word, char **args, uint64_t *v)
{
	char *value = option_value(command, word, args, "a number");

	if (value == NULL)
		return false;
	if (kdb_number(value, v))
		return true;
	kdb_printf("%s: %.2s \"%s\": expected a number\n", command, word, value);
	return false;
}

static bool
parse_classes(const char *command, char *word, char **args, struct kdb_filter *f)
{
	char err[100], *value = option_value(command, word, args, "classes");

	if (value == NULL)
		return false;
	if (ktr_mask_parse(value, &f->classes, err, sizeof(err)) == 0)
		return true;
	kdb_printf("%s: -m: %s\n", command, err);
	return false;
}

static bool
parse_thread(const char *command, char *word, char **args, struct kdb_filter *f)
{
	char *value = option_value(command, word, args, "a thread's id or name");

	if (value == NULL)
		return false;
	f->thread = KDB_FILTER_TID;
	if (kdb_number(value, &f->tid))
		return true;
	f->thread = KDB_FILTER_NAME;
	snprintf(f->name, sizeof(f->name), "%s", value);
	return true;
}

/* Parses "/text with spaces/". The last / is optional. */
static bool
parse_pattern(const char *command, char **args, struct kdb_filter *f)
{
	char *text = *args + 1, *end = strchr(text, '/');
	size_t len = end != NULL ? (size_t)(end - text) : strlen(text);

	*args = text + len + (end != NULL);
	if (len == 0) {
		kdb_printf("%s: //: expected text between the slashes\n", command);
		return false;
	}
	text[len] = '\0';
	ktr_glob_inside(f->pattern, sizeof(f->pattern), text);
	return true;
}

static bool
parse_cpu(const char *command, char *word, char **args, struct kdb_filter *f)
{
	uint64_t v;

	if (!kdb_parse_number(command, word, args, &v))
		return false;
	if (v < KDB_FILTER_CPUS)
		f->cpu = (int)v;
	else
		kdb_printf("%s: no cpu %lu\n", command, v);
	return v < KDB_FILTER_CPUS;
}

static bool
parse_option(const char *command, char *word, char **args, struct kdb_filter *f)
{
	if (word[0] == '-') {
		switch (word[1]) {
		case 'c':
			return parse_cpu(command, word, args, f);
		case 'm':
			return parse_classes(command, word, args, f);
		case 'n':
			return kdb_parse_number(command, word, args, &f->count);
		case 't':
			return parse_thread(command, word, args, f);
		case 'u':
			return kdb_parse_number(command, word, args, &f->us);
		case 'p':
			f->from_place = true;
			return true;
		case 'f':
			f->newer = true;
			return true;
		}
	}
	kdb_printf("%s: \"%s\": expected -c CPU, -m CLASSES, -t THREAD, -n COUNT, -u US, -p or "
		   "/TEXT/\n",
		   command, word);
	return false;
}

bool
kdb_filter_parse(const char *command, char *args, struct kdb_filter *f)
{
	char *word;

	*f = KDB_FILTER_ALL;
	for (;;) {
		while (*args == ' ')
			args++;
		if (*args == '/') {
			if (!parse_pattern(command, &args, f))
				return false;
		} else if ((word = kdb_word(&args)) == NULL) {
			return true;
		} else if (!parse_option(command, word, &args, f)) {
			return false;
		}
	}
}

bool
kdb_filter_match(const struct kdb_filter *f, unsigned cpu, uint32_t tid, uint64_t classes,
		 const char *text)
{
	char name[KTR_THREAD_NAME];

	/* Probes of functions and of SDT belong to no class. */
	if ((f->cpu >= 0 && (unsigned)f->cpu != cpu) ||
	    (f->classes != UINT64_MAX && (f->classes & classes) == 0))
		return false;
	if (f->thread == KDB_FILTER_TID && f->tid != tid)
		return false;
	if (f->thread == KDB_FILTER_NAME) {
		if (ktr_thread_name_get(tid, name) == NULL || !ktr_glob(f->name, name))
			return false;
	}
	return f->pattern[0] == '\0' || ktr_glob(f->pattern, text);
}
