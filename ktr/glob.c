/*
 * glob.c - the shell's patterns, without recursion. At a mismatch the last * matches one character
 * more; earlier ones never need to. Locking: none.
 */
#include "ktr/glob.h"

#include "ktr/fmt.h"

/* Matches c with the set that begins after '['. Returns the address after the set's ']', or NULL
 * if it has none. */
static const char *
glob_set(const char *p, char c, bool *hit)
{
	bool invert = *p == '!' || *p == '^';
	bool found = false;
	if (invert)
		p++;
	for (bool first = true; *p != ']' || first; first = false) {
		if (*p == '\0')
			return NULL;
		if (*p == '\\' && p[1] != '\0')
			p++;
		unsigned char low = (unsigned char)*p++;
		unsigned char high = low;
		if (p[0] == '-' && p[1] != ']' && p[1] != '\0') {
			if (p[1] == '\\' && p[2] != '\0')
				p++;
			high = (unsigned char)p[1];
			p += 2;
		}
		if ((unsigned char)c >= low && (unsigned char)c <= high)
			found = true;
	}
	*hit = found != invert;
	return p + 1;
}

/*
 * Matches one character with one element. Returns the place after the element, or NULL if it does
 * not match. *unclosed: from there on no '[' has its ']' (NULL while that is not known), so that
 * this is found once, and not at each '['.
 */
static const char *
glob_one(const char *p, char c, const char **unclosed)
{
	bool hit;
	const char *end;
	switch (*p) {
	case '\0':
		return NULL;
	case '?':
		return p + 1;
	case '[':
		end = *unclosed == NULL || p < *unclosed ? glob_set(p + 1, c, &hit) : NULL;
		if (end != NULL)
			return hit ? end : NULL;
		*unclosed = *unclosed == NULL || p < *unclosed ? p : *unclosed;
		break;
	case '\\':
		if (p[1] != '\0')
			p++;
		break;
	}
	return *p == c ? p + 1 : NULL;
}

/* The end of the conversion that begins at a '%'. */
static const char *
glob_conversion(const char *p)
{
	for (p++; *p != '\0' && *p != '"'; p++)
		if (*p == '%' || (*p >= 'A' && *p <= 'Z') ||
		    (*p >= 'a' && *p <= 'z' && *p != 'h' && *p != 'j' && *p != 'l' && *p != 'z'))
			return p + 1;
	return p;
}

static const char *
glob_word(const char *p)
{
	while (*p != '\0' && *p != ' ' && *p != ':' && *p != ',' && *p != '%')
		p++;
	return p;
}

bool
ktr_glob_format(const char *text, const char *end, const char *fmt)
{
	while (text < end && *text != '"') {
		const char *start = fmt;
		if (*text == '%') { /* a conversion, or a word */
			text = glob_conversion(text);
			fmt = *fmt == '%' ? glob_conversion(fmt) : glob_word(fmt);
		} else if (*text == '?' || *text == *fmt) {
			text++;
			fmt += *fmt != '\0';
		}
		if (fmt == start)
			return false;
	}
	return true;
}

bool
ktr_glob(const char *p, const char *text)
{
	const char *star = NULL, *resume = NULL, *unclosed = NULL;
	while (*text != '\0') {
		if (*p == '*') {
			star = ++p;
			resume = text;
			continue;
		}
		const char *next = glob_one(p, *text, &unclosed);
		if (next != NULL) {
			p = next;
			text++;
		} else if (star != NULL) {
			p = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}

void
ktr_glob_inside(char *pattern, size_t size, const char *inside)
{
	size_t n = 0, slashes = 0;
	for (; inside[n] != '\0'; n++)
		slashes = inside[n] == '\\' ? slashes + 1 : 0;
	/* A \ at the end means itself; it must not quote the * that is added. */
	fmt_snprintf(pattern, size, "*%s%s*", inside, slashes % 2 != 0 ? "\\" : "");
}

bool
ktr_glob_is_pattern(const char *p)
{
	for (; *p != '\0'; p++)
		if (*p == '*' || *p == '?' || *p == '[' || *p == '\\')
			return true;
	return false;
}
