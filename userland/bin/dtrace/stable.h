/*
 * stable.h - how stable the things are that a program uses: the guide's attributes.
 */
#pragma once

#include <stdio.h>

#include "userland/bin/dtrace/dt.h"

/* The stability of names, that of what they stand for, and on which machines they are: ascending.
 */
struct attributes {
	uint8_t part[3];
};

enum stable_part { STABLE_PROVIDER, STABLE_MODULE, STABLE_FUNCTION, STABLE_NAME, STABLE_ARGS };

extern const struct attributes stable_best;    /* Stable/Stable/Common */
extern const struct attributes stable_private; /* Private/Private/Unknown */
/* The least of what was used so far. */
extern struct attributes stable_used;
/* Not 0: what is used now is the definition of a library's name, whose stability alone counts. */
extern unsigned stable_hidden;

/* Forgets what pragmas have said, and the minimum. */
void stable_init(void);
struct attributes stable_min(struct attributes a, struct attributes b);
/* Of a part of a probe's name, or its arguments. */
struct attributes stable_of_probe(const char *provider, enum stable_part part);
/* Of the name of a variable or inline. */
struct attributes stable_of_name(const char *name);
/* The program uses it at this place: D_ATTR_MIN if it is less than -x amin. */
void stable_use(struct place at, const char *what, struct attributes a);
/* -x amin. false: the text is not of the form Stable/Private/Common. */
bool stable_set_minimum(const char *text);
/* #pragma D attributes A/B/C NAME, or A/B/C provider PROVIDER PART. false: it has not this form. */
bool stable_pragma(char *text);
void stable_print(FILE *to, const char *heading, struct attributes a);
