/*
 * suggest.h - "did you mean": the candidate that a misspelt name is nearest to.
 * Locking: none. Any context.
 */
#pragma once

struct suggestion {
	const char *wanted; /* what was typed */
	const char *best;   /* the nearest candidate that is near enough; NULL: none */
	unsigned distance;  /* of best: insertions, deletions and changes of a character */
};

void suggest_init(struct suggestion *s, const char *wanted);
/* candidate must stay valid as long as s is used. */
void suggest_try(struct suggestion *s, const char *candidate);
