/* ctype.h - ASCII character classes. The argument is an unsigned char or EOF. */
#pragma once

static inline int
isdigit(int c)
{
	return c >= '0' && c <= '9';
}

static inline int
isupper(int c)
{
	return c >= 'A' && c <= 'Z';
}

static inline int
islower(int c)
{
	return c >= 'a' && c <= 'z';
}

static inline int
isalpha(int c)
{
	return isupper(c) || islower(c);
}

static inline int
isalnum(int c)
{
	return isalpha(c) || isdigit(c);
}

static inline int
isxdigit(int c)
{
	return isdigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static inline int
isspace(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline int
isblank(int c)
{
	return c == ' ' || c == '\t';
}

static inline int
isprint(int c)
{
	return c >= ' ' && c < 127;
}

static inline int
isgraph(int c)
{
	return c > ' ' && c < 127;
}

static inline int
iscntrl(int c)
{
	return (c >= 0 && c < ' ') || c == 127;
}

static inline int
ispunct(int c)
{
	return isgraph(c) && !isalnum(c);
}

static inline int
tolower(int c)
{
	return isupper(c) ? c + ('a' - 'A') : c;
}

static inline int
toupper(int c)
{
	return islower(c) ? c - ('a' - 'A') : c;
}
