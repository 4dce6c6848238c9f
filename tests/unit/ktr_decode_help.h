/* ktr_decode_help.h - memory for a decoder in tests. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* For struct ktr_decoder_ops. */
static inline void *
decode_realloc(void *p, size_t size)
{
	if (size != 0)
		return realloc(p, size);
	free(p);
	return NULL;
}
