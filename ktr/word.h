/*
 * word.h - words that people type: numbers, and the name that was probably meant. Pure functions;
 * any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ktr_number {
	KTR_NUMBER_NOT,  /* no number */
	KTR_NUMBER_HUGE, /* one of more than 64 bits */
	KTR_NUMBER_OK,
};

/** The len bytes at text as digits of a base from 2 to 16; 0: decimal, or hexadecimal after 0x. */
enum ktr_number ktr_number(const char *text, size_t len, unsigned base, uint64_t *value);

/** Looks among names for the one that a misspelt word is nearest to; case does not matter. */
struct ktr_suggestion {
	const char *wanted; /* what was typed: len bytes */
	size_t len;
	const char *best;  /* the nearest name, if it is near enough; NULL: none */
	unsigned distance; /* a name must be nearer than this to be the best */
};

void ktr_suggest_init(struct ktr_suggestion *s, const char *wanted, size_t len);
/** name must stay valid as long as s is used. */
void ktr_suggest_try(struct ktr_suggestion *s, const char *name);
/** Is name so near to a misspelt word that it may be meant, and nearer than *distance? Then
 * *distance becomes that of name. */
bool ktr_suggest_nearer(const char *wanted, const char *name, unsigned *distance);
