/* fnmatch.c - file name patterns, in time linear in pattern × text: one place to fall back to. */
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>

/* Matches c against the bracket that opens at p; *end is set behind it, NULL if it never closes. */
static bool
bracket_match(const char *p, char c, const char **end)
{
	bool negate = false, found = false;
	const char *first;

	p++;
	if (*p == '!' || *p == '^') {
		negate = true;
		p++;
	}
	for (first = p; *p != '\0' && (*p != ']' || p == first); p++) {
		unsigned char lo, hi;

		if (*p == '\\' && p[1] != '\0')
			p++;
		lo = hi = (unsigned char)*p;
		if (p[1] == '-' && p[2] != ']' && p[2] != '\0') {
			p += 2;
			if (*p == '\\' && p[1] != '\0')
				p++;
			hi = (unsigned char)*p;
		}
		if ((unsigned char)c >= lo && (unsigned char)c <= hi)
			found = true;
	}
	*end = *p == ']' ? p + 1 : NULL;
	return found != negate;
}

/* Matches the one character c at p (not a star); *next is set behind the pattern's part. */
static bool
one_match(const char *p, char c, int flags, const char **next)
{
	bool wild = !((flags & FNM_PATHNAME) != 0 && c == '/');

	*next = p + 1;
	if (*p == '?')
		return wild;
	if (*p == '[') {
		const char *end;
		bool match = bracket_match(p, c, &end);

		if (end != NULL) {
			*next = end;
			return match && wild;
		}
	}
	if (*p == '\\' && p[1] != '\0')
		*next = ++p + 1;
	return *p == c;
}

int
fnmatch(const char *pattern, const char *text, int flags)
{
	const char *p = pattern, *t = text, *star = NULL, *star_text = NULL, *next;

	if ((flags & FNM_PERIOD) != 0 && *t == '.' && (*p == '*' || *p == '?' || *p == '['))
		return FNM_NOMATCH;
	for (;;) {
		if (*p == '*') {
			star = ++p;
			star_text = t;
		} else if (*t != '\0' && *p != '\0' && one_match(p, *t, flags, &next)) {
			p = next;
			t++;
		} else if (*t == '\0' && *p == '\0') {
			return 0;
		} else if (star != NULL && *star_text != '\0' &&
			   !((flags & FNM_PATHNAME) != 0 && *star_text == '/')) {
			p = star; /* let the last star take one more */
			t = ++star_text;
		} else {
			return FNM_NOMATCH;
		}
	}
}
