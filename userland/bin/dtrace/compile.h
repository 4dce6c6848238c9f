/*
 * compile.h - from the texts of D programs to an image.
 */
#pragma once

#include "userland/bin/dtrace/check/check.h"

/* One text: of -s, or of -n and its siblings. */
struct source {
	struct source *next;
	const char *text;
	const char *script;    /* its file; NULL: the command line */
	unsigned fields;       /* as probe_full_name(): -n 4, -f 3, -m 2, -P 1; -i 0 */
	unsigned first, count; /* its clauses */
	unsigned matched;
	struct attributes probes, statements; /* the least of their attributes */
};

/* Begins a program, with the kernel's types, if there are any. */
void compile_init(const struct btf *btf);
/* Reads all texts, and completes the names of their probes. */
void compile_names(struct source *sources);
/* Reads all texts, then makes the programs of all clauses. `list`: prints them. */
void compile_sources(struct source *sources, bool list);
/* Errors are of this text from now on. */
void compile_context(const struct source *s);
/* What -v says of a text. */
void compile_report(FILE *to, const struct source *s);
/* The guide's name for the text: its file, or what stands before its predicate and actions. */
const char *compile_name(const struct source *s);
/* A library, and what all of them declare: each after those that it depends on. */
void compile_library(const char *text, const char *file);
void compile_libraries(void);
/* The library of which only the #pragmas are read depends on that. */
void compile_needs(const char *class, const char *name, struct place at);
/* Is there a provider, or a module, of that name? */
bool compile_has(const char *class, const char *name, struct place at);
/* The image, of *size bytes. */
void *compile_image(uint32_t *size);
