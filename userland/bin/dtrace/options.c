/*
 * options.c - the options of `#pragma D option` and -x.
 */
#include "userland/bin/dtrace/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/compile.h"
#include "userland/bin/dtrace/read/read.h"

struct dt_options dt_options;
static const char *text;

enum kind {
	FLAG,
	NUMBER,
	SIZE, /* with k, m, g or t */
	RATE, /* a time, or so many in a second: 10ms, 100hz */
	POLICY,
	ENCODING,
	TEXT,
	AMIN, /* this and the next ones have no member of dt_options */
	VERSION,
	STDC, /* a letter of -X */
	ADD, /* NAME, NAME=VALUE or a folder, for the preprocessor or the environment; offset: which
	      */
};

#define OPTION(kind, name)                                     \
	{                                                      \
#name, kind, offsetof(struct dt_options, name) \
	}

static const struct {
	const char *name;
	enum kind kind;
	size_t offset;
} options[] = {
    OPTION(NUMBER, aggsortkeypos), OPTION(NUMBER, aggsortpos),
    OPTION(FLAG, aggsortkey),      OPTION(FLAG, aggsortrev),
    OPTION(FLAG, aggzoom),         OPTION(FLAG, agghist),
    OPTION(FLAG, aggpack),         OPTION(RATE, aggrate),
    OPTION(SIZE, aggsize),         OPTION(POLICY, bufpolicy),
    OPTION(SIZE, bufsize),         OPTION(RATE, cleanrate),
    OPTION(NUMBER, cpu),           OPTION(FLAG, defaultargs),
    OPTION(FLAG, destructive),     OPTION(FLAG, droptags),
    OPTION(SIZE, dynvarsize),      {"encoding", ENCODING, offsetof(struct dt_options, encoding)},
    OPTION(FLAG, errtags),         OPTION(FLAG, flowindent),
    OPTION(FLAG, grabanon),        OPTION(TEXT, libdir),
    OPTION(FLAG, nolibs),          OPTION(NUMBER, nspec),
    OPTION(FLAG, quiet),           OPTION(FLAG, rawbytes),
    OPTION(SIZE, scratch),         {"scratchsize", SIZE, offsetof(struct dt_options, scratch)},
    OPTION(NUMBER, maxframes),     OPTION(SIZE, specsize),
    OPTION(NUMBER, stackframes),   OPTION(NUMBER, stackindent),
    OPTION(TEXT, since),           OPTION(RATE, statusrate),
    OPTION(SIZE, strsize),         OPTION(RATE, switchrate),
    OPTION(TEXT, until),           OPTION(NUMBER, ustackframes),
    OPTION(FLAG, zdefs),           {"amin", AMIN, 0},
    OPTION(FLAG, argref),          OPTION(FLAG, cpp),
    OPTION(FLAG, cpphdrs),         {"define", ADD, 'D'},
    OPTION(FLAG, empty),           {"incdir", ADD, 'I'},
    {"undef", ADD, 'U'},           OPTION(FLAG, verbose),
    {"version", VERSION, 0},       {"stdc", STDC, 0},
    OPTION(FLAG, aggpercpu),       {"setenv", ADD, 's'},
    {"unsetenv", ADD, 'u'},
};

/*
 * Options that do nothing here, since there is only one way: they are about linkers, the kernel's
 * modules, the compiler's registers, or sizes that are not known before. `temporal` is always on,
 * and jstack() is ustack().
 */
static const char ignored[] =
    " bufresize core cppargs cpppath ctypes debug dtypes evaltime iregs jstackframes "
    "jstackstrsize kdefs knodefs late lazyload ldpath linkmode linktype modpath pgmax preallocate procfspath "
    "pspec strip syslibdir temporal tree tregs udefs unodefs ";

/* Options that a program cannot set: they are needed before it is read. */
static const char compiler[] =
    " cppargs cpppath ctypes dtypes ldpath modpath setenv syslibdir unsetenv ";

void
option_init(void)
{
	dt_version = UINT_MAX;
	dt_options = (struct dt_options){
	    .bufsize = 1 << 20,
	    .aggsize = 1 << 20,
	    .dynvarsize = 1 << 20,
	    .specsize = 32 << 10,
	    .nspec = 1,
	    .maxframes = DIF_MAX_FRAMES,
	    .strsize = 256,
	    .stackframes = 20,
	    .ustackframes = 20,
	    .stackindent = 14,
	    .switchrate = 1000000000,
	    .statusrate = 1000000000,
	    .aggrate = 1000000000,
	    .cleanrate = 1000000000,
	    .encoding = getenv("TERM") != NULL && strcmp(getenv("TERM"), "dumb") == 0
			    ? ENCODING_ASCII
			    : ENCODING_NONE,
	};
	text = "";
	cpp_options = (struct cpp_options){.stdc = 'a'};
}

static bool
read_size(const char *s, uint64_t *value)
{
	static const char units[] = "kmgt";
	char *end;
	const char *unit;

	errno = 0;
	*value = strtoull(s, &end, 0);
	if (end == s || errno != 0 || *s == '-')
		return false;
	unit = *end != '\0' ? strchr(units, *end | 0x20) : NULL;
	if (unit != NULL) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (*value > UINT64_MAX >> shift)
			return false;
		*value <<= shift;
		end++;
	}
	return *end == '\0';
}

/* Nanoseconds of "10ms", "100hz" or a number, which counts how many in a second. */
bool
option_rate(const char *s, uint64_t *value)
{
	static const struct {
		const char *unit;
		uint64_t ns; /* 0: a rate */
	} units[] = {
#define X(name, ns) {name, ns},
#include "kernel/abi/time_units.def"
#undef X
	};
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(s, &end, 0);
	if (end == s || errno != 0 || *s == '-')
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(end, units[i].unit) != 0)
			continue;
		if (units[i].ns == 0 && (n == 0 || n > 1000000000))
			return false;
		*value = units[i].ns == 0 ? 1000000000 / n : n * units[i].ns;
		return units[i].ns == 0 || n <= UINT64_MAX / units[i].ns;
	}
	return false;
}

/* The words have blanks around them. */
static bool
is_one_of(const char *word, const char *words)
{
	size_t size = strlen(word);
	const char *at = size > 0 ? words + 1 : NULL;

	while (at != NULL && (at = strstr(at, word)) != NULL && (at[-1] != ' ' || at[size] != ' '))
		at++;
	return at != NULL;
}

static bool
read_value(enum kind kind, const char *value, uint64_t *to)
{
	static const char *const policies[] = {
	    [DIF_SWITCH] = "switch", [DIF_RING] = "ring", [DIF_FILL] = "fill"};
	char lower[12] = "";
	size_t n = 0;

	switch (kind) {
	case FLAG:
		for (const char *p = value; p != NULL && *p != '\0'; p++)
			lower[n < sizeof(lower) - 1 ? n++ : n] = (char)tolower((unsigned char)*p);
		*to = value == NULL || is_one_of(lower, " 1 set on yes enable enabled true ");
		return *to != 0 || is_one_of(lower, " unset off no disable disabled false ") ||
		       read_size(value, to);
	case NUMBER:
	case SIZE:
		return value != NULL && read_size(value, to);
	case RATE:
		return value != NULL && option_rate(value, to);
	case ENCODING:
		*to = value == NULL                 ? ENCODING_NONE
		      : strcmp(value, "ascii") == 0 ? ENCODING_ASCII
		      : strcmp(value, "utf8") == 0  ? ENCODING_UTF8
						    : ENCODING_NONE;
		return *to != ENCODING_NONE;
	case AMIN:
		return value != NULL && stable_set_minimum(value);
	case VERSION:
		if (value == NULL || value[0] != '1' || (value[1] != '.' && value[1] != '\0'))
			return false;
		dt_version = value[1] == '.' ? (unsigned)atoi(value + 2) : 0;
		return true;
	case STDC:
		if (value == NULL || strlen(value) != 1 || strchr("acst", *value) == NULL)
			return false;
		cpp_options.stdc = *value;
		return true;
	case POLICY:
		for (unsigned i = 0; value != NULL && i < sizeof(policies) / sizeof(policies[0]);
		     i++) {
			if (strcmp(value, policies[i]) == 0) {
				*to = i;
				return true;
			}
		}
		return false;
	default:
		return true;
	}
}

/* Sets a member, or the environment of -c's commands. False: no such value, or too many. */
static bool
add_value(char letter, const char *value)
{
	struct cpp_options *o = &cpp_options;
	unsigned *count = letter == 'I' ? &o->folder_count : &o->macro_count;

	if (value == NULL || *value == '\0')
		return false;
	if (letter == 's' || letter == 'u') /* putenv() removes a name that has no value */
		return *value != '=' && (strchr(value, '=') != NULL) == (letter == 's') &&
		       putenv(strdup(value)) == 0;
	if (*count == CPP_MAX_OPTIONS)
		return false;
	if (letter == 'I')
		o->folders[*count] = dt_format("%s", value);
	else
		o->macros[*count] = dt_format("%c%s", letter, value);
	++*count;
	return true;
}

/* Says what is wrong with an option's number. NULL: the option takes it. */
static const char *
out_of_range(const char *name, uint64_t number)
{
	static const struct {
		const char *name;
		uint64_t least, most;
	} ranges[] = {{"cpu", 0, 63},
		      {"nspec", 0, 64},
		      {"stackframes", 0, DIF_MAX_FRAMES},
		      {"ustackframes", 0, DIF_MAX_FRAMES}};

	if (strcmp(name, "strsize") == 0 && number < 2) /* a large one is cut */
		return dt_format("strsize: found %lu, expected at least 2", (unsigned long)number);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (strcmp(ranges[i].name, name) == 0 &&
		    (number < ranges[i].least || number > ranges[i].most))
			return dt_format("%s: found %lu, expected %lu to %lu", name,
					 (unsigned long)number, (unsigned long)ranges[i].least,
					 (unsigned long)ranges[i].most);
	return NULL;
}

/* Sets it. NULL, or why not. */
static const char *
option_take(const char *name, const char *value)
{
	static const char *const expected[] = {
	    [FLAG] = "no value, on or off, or a number",
	    [NUMBER] = "a number",
	    [SIZE] = "a number, which may end with k, m, g or t",
	    [RATE] = "a time or a rate, as 10ms or 100hz",
	    [ENCODING] = "ascii or utf8",
	    [POLICY] = "switch, ring or fill",
	    [TEXT] = "a text",
	    [AMIN] = "NAMES/DATA/CLASS, as Evolving/Stable/Common",
	    [VERSION] = "1 or 1.N",
	    [STDC] = "a, c, s or t",
	    [ADD] = "a name or a folder, of 64 at most, or NAME=VALUE"};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char *at = (char *)&dt_options + options[i].offset;
		const char *why;
		uint64_t number = 0;

		if (strcmp(options[i].name, name) != 0)
			continue;
		if (options[i].kind == TEXT && value != NULL)
			memcpy(at, &value, sizeof(value));
		else if (options[i].kind == TEXT || !read_value(options[i].kind, value, &number) ||
			 (options[i].kind == ADD && !add_value((char)options[i].offset, value)))
			return dt_format("%s: found %s%s%s, expected %s", name,
					 value != NULL ? "\"" : "",
					 value != NULL ? value : "no value",
					 value != NULL ? "\"" : "", expected[options[i].kind]);
		if (options[i].kind == SIZE && number > DIF_MAX_MEMORY)
			number = DIF_MAX_MEMORY;
		why = out_of_range(name, number);
		if (why != NULL)
			return why;
		if (options[i].kind != TEXT && options[i].kind < AMIN)
			memcpy(at, &number, sizeof(number));
		if (options[i].offset == offsetof(struct dt_options, cpu) &&
		    options[i].kind == NUMBER)
			dt_options.cpu++;
		dt_strsize = dt_options.strsize < DIF_MAX_STRSIZE ? (uint32_t)dt_options.strsize
								  : DIF_MAX_STRSIZE - 1;
		dt_stackframes = (unsigned)dt_options.stackframes;
		dt_ustackframes = (unsigned)dt_options.ustackframes;
		dt_destructive = dt_options.destructive != 0;
		dt_macros.defaultargs = dt_options.defaultargs != 0;
		return NULL;
	}
	if (is_one_of(name, ignored))
		return NULL;
	return dt_format("%s: there is no such option", name);
}

const char *
option_set(const char *name, const char *value)
{
	const char *why = option_take(name, value);

	if (why == NULL && !is_one_of(name, ignored))
		text = dt_format("%s%s%s%s\n", text, name, value != NULL ? "=" : "",
				 value != NULL ? value : "");
	return why;
}

const char *
option_change(const char *name, const char *value)
{
	static const char dynamic[] =
	    " aggpack agghist aggrate aggsortkey aggsortkeypos aggsortpos aggsortrev aggzoom "
	    "droptags encoding flowindent quiet rawbytes stackindent statusrate switchrate ";
	bool known = is_one_of(name, ignored);

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		known |= strcmp(options[i].name, name) == 0;
	if (known && !is_one_of(name, dynamic) && !is_one_of(name, ignored))
		return dt_format("%s: it cannot be changed while it traces", name);
	return option_take(name, value);
}

const char *
option_text(void)
{
	return text;
}

void
option_set_text(const char *lines)
{
	char *copy = dt_format("%s", lines), *line;

	while ((line = strsep(&copy, "\n")) != NULL) {
		char *value = line, *name = strsep(&value, "=");

		if (*name != '\0')
			option_set(name, value);
	}
}

static void
pragma_depends(char *line, struct place at)
{
	char *class = strsep(&line, " \t");

	line = line != NULL ? line + strspn(line, " \t") : class + strlen(class);
	line[strcspn(line, " \t")] = '\0';
	if (*line == '\0')
		dt_error(at, "D_PRAGMA_MALFORM",
			 "expected #pragma D depends_on provider NAME, or module NAME");
	if (lex_pragmas_only)
		compile_needs(class, line, at);
	if (dt_program.in_library)
		return;
	if (strcmp(class, "library") == 0)
		dt_error(at, "D_PRAGMA_DEPEND",
			 "main program may not explicitly depend on a library");
	if (!compile_has(class, line, at))
		dt_error(at, "D_PRAGMA_DEPEND", "program requires %s %s", class, line);
}

void
lex_pragma(char *line, struct place at)
{
	char *word = strsep(&line, " \t"), *name;
	const char *why;

	line = line != NULL ? line + strspn(line, " \t") : word + strlen(word);
	if (line[strcspn(line, "\r")] != '\0') /* the text may be a constant */
		line[strcspn(line, "\r")] = '\0';
	if (strcmp(word, "depends_on") == 0)
		return pragma_depends(line, at);
	if (lex_pragmas_only)
		return;
	if (strcmp(word, "error") == 0)
		dt_error(at, "D_PRAGERR", "#error: %s", line);
	if (strcmp(word, "binding") == 0)
		return; /* about versions: there is one */
	if (strcmp(word, "attributes") == 0) {
		name = strpbrk(line, " \t") == NULL ? NULL : line;
		if (name == NULL || !stable_pragma(line, at))
			dt_error(
			    at, name == NULL ? "D_PRAGMA_MALFORM" : "D_PRAGMA_INVAL",
			    "expected #pragma D attributes NAMES/DATA/CLASS NAME, or provider PROVIDER PART");
		return;
	}
	if (strcmp(word, "option") != 0)
		dt_error(at, "D_PRAGMA_INVAL",
			 "found #pragma D %s, expected #pragma D option NAME=VALUE", word);
	name = strsep(&line, " \t");
	if (*name == '\0' || (line != NULL && line[strspn(line, " \t")] != '\0'))
		dt_error(at, "D_PRAGMA_MALFORM",
			 "found #pragma D option %s%s, expected one option after it", name,
			 *name == '\0' ? "" : " and more");
	line = name;
	name = strsep(&line, "=");
	why = is_one_of(name, compiler)
		  ? dt_format("%s: it is for the command line, as -x %s=…", name, name)
		  : option_set(name, line);
	if (why != NULL)
		dt_error(at, "D_PRAGMA_OPTSET", "%s", why);
}
