/*
 * fuzz.h - shared by the fuzz targets: checks that stop the run, and reading structured input from
 * bytes.
 *
 * A target checks promises, not only that nothing crashes. It keeps no state between inputs, so
 * that every input can be replayed alone. Locking: none; one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** Stops with the place and the values; printf arguments after the condition. */
#define FUZZ_CHECK(c, ...)                                                              \
	do {                                                                            \
		if (!(c)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #c); \
			fprintf(stderr, __VA_ARGS__);                                   \
			fputc('\n', stderr);                                            \
			abort();                                                        \
		}                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** An input that is read from the front; after its end everything is 0. */
struct fuzz_input {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t
fuzz_byte(struct fuzz_input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

/** A number of 0 to 8 bytes, whose length is given first, so that small ones are frequent. */
static inline uint64_t
fuzz_number(struct fuzz_input *in)
{
	uint64_t v = 0;

	for (unsigned n = fuzz_byte(in) % 9; n > 0; n--)
		v = v << 8 | fuzz_byte(in);
	return v;
}

/** realloc, whose size 0 frees: for decoders. */
static inline void *
fuzz_realloc(void *p, size_t size)
{
	if (size != 0)
		return realloc(p, size);
	free(p);
	return NULL;
}
