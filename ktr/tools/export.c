/* export.c - the table of formats, and what their writers share. */
#include "ktr/tools/export.h"

#include <stdarg.h>
#include <stdio.h>
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

bool
export_fail(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return false;
}
