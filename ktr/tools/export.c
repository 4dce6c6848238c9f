/* export.c - the table of formats. */
#include "ktr/tools/export.h"

#include <string.h>

static const struct export_format *const formats[] = {
    &export_ctf,
    &export_tracedat,
};

const struct export_format *
export_nth(unsigned n)
{
	return n < sizeof(formats) / sizeof(formats[0]) ? formats[n] : NULL;
}

const struct export_format *
export_find(const char *name)
{
	for (unsigned n = 0; export_nth(n) != NULL; n++) {
		if (strcmp(formats[n]->name, name) == 0)
			return formats[n];
	}
	return NULL;
}
