/*
 * options.h - the options of `#pragma D option` and -x, with the guide's names.
 */
#pragma once

#include "userland/bin/dtrace/dt.h"

enum encoding {
	ENCODING_NONE,  /* was given: bars are of letters, aggpack draws with blocks */
	ENCODING_ASCII, /* aggpack, too, draws with letters */
	ENCODING_UTF8,  /* bars, too, are of blocks and their parts */
};

/* The values of options; a flag is 0 or 1. */
struct dt_options {
	uint64_t quiet, flowindent, rawbytes, destructive, zdefs, defaultargs, grabanon, errtags,
	    droptags;
	uint64_t cpp, cpphdrs, verbose, argref, empty;
	uint64_t bufsize, aggsize, dynvarsize, specsize, nspec, strsize, bufpolicy, scratch;
	uint64_t switchrate, statusrate, aggrate, cleanrate; /* ns */
	uint64_t cpu; /* 1 + the CPU that is traced; 0: all */
	uint64_t stackframes, ustackframes, stackindent;
	uint64_t maxframes; /* of any stack, whatever it asks for */
	uint64_t aggsortkey, aggsortkeypos, aggsortpos, aggsortrev;
	uint64_t aggzoom, agghist, aggpack, aggpercpu;
	uint64_t encoding; /* enum encoding */
	const char *libdir;
	const char *since, *until; /* the stretch of a recorded trace; NULL: all of it */
	uint64_t nolibs;
};
extern struct dt_options dt_options;

/* Sets the defaults. */
void option_init(void);
/* Sets an option; value NULL: none was given. NULL: it is set. Otherwise what is wrong. */
const char *option_set(const char *name, const char *value);
/* As option_set(), while the program traces: only some options may change then. */
const char *option_change(const char *name, const char *value);
/* Nanoseconds of a text like 10ms or 100hz; false: it is none. */
bool option_rate(const char *text, uint64_t *value);
/* All options that were set, as NAME=VALUE, a line each. */
const char *option_text(void);
/* Sets the options of such a text. */
void option_set_text(const char *text);
