/* fnmatch.c - file name patterns, as ktr/glob.c matches them. */
#include <fnmatch.h>

#include "ktr/glob.h"

int
fnmatch(const char *pattern, const char *text, int flags)
{
	if ((flags & FNM_PERIOD) != 0 && *text == '.' &&
	    (*pattern == '*' || *pattern == '?' || *pattern == '['))
		return FNM_NOMATCH;
	return ktr_glob(pattern, text) ? 0 : FNM_NOMATCH;
}
