/*
 * string.c - the subroutines over strings. The kernel's memory may change at any time, so each
 * works on a copy.
 */
#include "kernel/lib/string.h"
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "ktr/glob.h"

/* Copies the string at addr into one of the two buffers. NULL: a fault. */
static char *
dif_string_copy(struct dif_run *r, unsigned which, uint64_t addr)
{
	char *text = r->c->text[which];

	return dif_copy_str(r, text, addr, r->d->h.options.strsize) < 0 ? NULL : text;
}

/* n bytes of a text become a new string. False: no scratch memory. */
static bool
dif_string_result(struct dif_run *r, const char *text, size_t n, uint64_t *v)
{
	char *to = dif_scratch(r, n + 1);

	if (to == NULL)
		return false;
	memcpy(to, text, n);
	to[n] = '\0';
	*v = (uintptr_t)to;
	return true;
}

static int64_t
str_clamp(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

static bool
dif_string_join(struct dif_run *r, const char *a, const char *b, uint64_t *v)
{
	size_t most = r->d->h.options.strsize - 1, n = strlen(a), m = strlen(b);
	char *to;

	m = m < most - n ? m : most - n;
	to = dif_scratch(r, n + m + 1);
	if (to == NULL)
		return false;
	memcpy(to, a, n);
	memcpy(to + n, b, m);
	to[n + m] = '\0';
	*v = (uintptr_t)to;
	return true;
}

/* A negative index counts from the end, a negative length leaves that many out there. */
static bool
subr_substr(struct dif_run *r, const char *s, int64_t index, int64_t length, uint64_t *v)
{
	int64_t len = (int64_t)strlen(s);

	index = str_clamp(index, -2 * DIF_MAX_STRSIZE, DIF_MAX_STRSIZE);
	length = str_clamp(length, -DIF_MAX_STRSIZE, 2 * DIF_MAX_STRSIZE);
	if (index < 0) {
		index += len;
		if (index < 0 && index + length > 0) {
			length += index;
			index = 0;
		}
	}
	if (index >= len || index < 0)
		return dif_string_result(r, "", 0, v);
	if (length < 0)
		length += len - index;
	return dif_string_result(r, s + index, (size_t)str_clamp(length, 0, len - index), v);
}

static int64_t
find_index(const char *s, const char *what, int64_t start)
{
	int64_t len = (int64_t)strlen(s), n = (int64_t)strlen(what);

	for (int64_t i = str_clamp(start, 0, len); i <= len - n; i++)
		if (memcmp(s + i, what, (size_t)n) == 0)
			return i;
	return -1;
}

static int64_t
find_last_index(const char *s, const char *what, int64_t start)
{
	int64_t n = (int64_t)strlen(what), i = str_clamp(start, -1, (int64_t)strlen(s) - n);

	for (; i >= 0; i--)
		if (memcmp(s + i, what, (size_t)n) == 0)
			return i;
	return n == 0 ? 0 : -1;
}

static bool
is_among(const uint64_t map[4], char c)
{
	return (map[(uint8_t)c / 64] >> (uint8_t)c % 64 & 1) != 0;
}

/* Finds the next token of a text. The text was copied by the first call, in this program or in
 * an earlier one in the same firing. No other program has run here since, unless it was one of
 * ERROR. */
static bool
subr_strtok(struct dif_run *r, uint64_t addr, const char *separators, uint64_t *v)
{
	uint64_t separates[4] = {1}; /* bit N % 64 of word N / 64: character N, as NUL */
	struct dif_cpu *c = r->c;
	const struct dif_at *at = r->at;
	size_t n;

	if (addr != 0) {
		if (dif_string_copy(r, 0, addr) == NULL)
			return false;
		c->token = memcpy(c->tokens, c->text[0], strlen(c->text[0]) + 1);
		c->token_fired = c->fired;
		c->token_probe = at->probe;
		c->token_epid = at->epid;
	}
	if (c->token == NULL || at->probe != c->token_probe ||
	    c->fired - c->token_fired != at->epid - c->token_epid)
		return dif_fail(r, DIF_FAULT_BADADDR, 0);
	for (; *separators != '\0'; separators++)
		separates[(uint8_t)*separators / 64] |= 1ul << (uint8_t)*separators % 64;
	while (*c->token != '\0' && is_among(separates, *c->token))
		c->token++;
	for (n = 0; !is_among(separates, c->token[n]);)
		n++;
	*v = 0;
	if (n > 0 && !dif_string_result(r, c->token, n, v))
		return false;
	c->token += n; /* the separator stays: the next call may have others */
	return true;
}

static bool
subr_basename(struct dif_run *r, const char *s, uint64_t *v)
{
	size_t end = strlen(s), start;

	if (end == 0)
		return dif_string_result(r, ".", 1, v);
	while (end > 1 && s[end - 1] == '/')
		end--;
	for (start = end; start > 0 && s[start - 1] != '/';)
		start--;
	if (start == end) /* only slashes */
		start = 0;
	return dif_string_result(r, s + start, end - start, v);
}

static bool
subr_dirname(struct dif_run *r, const char *s, uint64_t *v)
{
	size_t end = strlen(s);

	while (end > 1 && s[end - 1] == '/')
		end--;
	while (end > 0 && s[end - 1] != '/')
		end--;
	if (end == 0)
		return dif_string_result(r, ".", 1, v);
	while (end > 1 && s[end - 1] == '/')
		end--;
	return dif_string_result(r, s, end, v);
}

/* Takes out what changes nothing: double slashes, `.`, and `..` with the name before it. */
static bool
subr_cleanpath(struct dif_run *r, const char *s, uint64_t *v)
{
	char *out = r->c->text[1];
	size_t n = 0;

	for (size_t i = 0, len; s[i] != '\0'; i += len) {
		for (len = 0; s[i + len] != '\0' && s[i + len] != '/';)
			len++;
		if (len == 0) {
			len = 1;
			if (n == 0 || out[n - 1] != '/')
				out[n++] = '/';
		} else if (len == 1 && s[i] == '.' && i > 0 && s[i + 1] == '/') {
			len = 2; /* "/./" */
		} else if (len == 2 && s[i] == '.' && s[i + 1] == '.' && n > 0) {
			for (n--; n > 0 && out[n - 1] != '/';)
				n--;
			if (n == 0)
				out[n++] = '/';
		} else {
			memcpy(out + n, s + i, len);
			n += len;
		}
	}
	return dif_string_result(r, out, n, v);
}

static bool
change_case(struct dif_run *r, char *s, char from, uint64_t *v)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (s[i] >= from && s[i] <= from + 25)
			s[i] ^= 'a' ^ 'A';
	return dif_string_result(r, s, n, v);
}

static bool
number_text(struct dif_run *r, int64_t number, uint64_t base, uint64_t *v)
{
	bool negative = base == 10 && number < 0;
	uint64_t n = negative ? -(uint64_t)number : (uint64_t)number;
	char text[72], *p = text + sizeof(text);

	if (base < 2 || base > 36)
		return dif_fail(r, DIF_FAULT_ILLOP, base);
	do {
		*--p = "0123456789abcdefghijklmnopqrstuvwxyz"[n % base];
		n /= base;
	} while (n > 0);
	if (base == 16)
		*--p = 'x';
	if (base == 16 || (base == 8 && number != 0))
		*--p = '0';
	if (negative)
		*--p = '-';
	return dif_string_result(r, p, (size_t)(text + sizeof(text) - p), v);
}

static unsigned
str_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c |= 'a' ^ 'A';
	return c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10 : 99;
}

/* As the C library's strtoll(), but no overflow: bits are lost. */
static bool
text_number(struct dif_run *r, const char *s, uint64_t base, uint64_t *v)
{
	bool negative;

	if (base < 2 || base > 36)
		return dif_fail(r, DIF_FAULT_ILLOP, base);
	while (*s == ' ' || (*s >= '\t' && *s <= '\r'))
		s++;
	negative = *s == '-';
	if (*s == '-' || *s == '+')
		s++;
	if (base == 16 && s[0] == '0' && (s[1] | 0x20) == 'x' && str_digit(s[2]) < 16)
		s += 2;
	for (*v = 0; str_digit(*s) < base; s++)
		*v = *v * base + str_digit(*s);
	if (negative)
		*v = -*v;
	return true;
}

/* ---- JSON ---- */

static const char *
json_blank(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

/* Where the value at p ends: a string, an object, an array, a number or a word. */
static const char *
json_skip(const char *p)
{
	unsigned depth = 0;

	do {
		if (*p == '"') {
			for (p++; *p != '\0' && *p != '"'; p++)
				p += *p == '\\' && p[1] != '\0';
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			depth--;
		} else if (depth == 0) {
			while (*p != '\0' && strchr(",]} \t\n\r", *p) == NULL)
				p++;
			return p;
		}
		p += *p != '\0';
	} while (depth > 0 && *p != '\0');
	return p;
}

/* The value in the object or array at p that has this name, or this number; NULL: there is none. */
static const char *
json_step(const char *p, const char *name, size_t size, bool array)
{
	uint64_t left = 0;

	for (size_t i = 0; array && i < size; i++)
		left = str_digit(name[i]) < 10 && left < 65536 ? left * 10 + str_digit(name[i])
							       : 65536;
	if (*p != (array ? '[' : '{'))
		return NULL;
	do {
		const char *key = json_blank(p + 1), *end = NULL;

		p = key;
		if (!array) {
			end = json_skip(key);
			p = json_blank(end);
			if (*key != '"' || *p != ':')
				return NULL;
			p = json_blank(p + 1);
		}
		if (*p == '\0' || *p == ']' || *p == '}')
			return NULL;
		if (array ? left == 0
			  : (size_t)(end - key) == size + 2 && memcmp(key + 1, name, size) == 0)
			return p;
		left--;
		p = json_blank(json_skip(p));
	} while (*p == ',');
	return NULL;
}

/* The value that names and [numbers] lead to, as it is written; a string without its quotes. */
static bool
subr_json(struct dif_run *r, const char *text, const char *path, uint64_t *v)
{
	const char *whole = json_blank(text), *p = whole;
	size_t size;

	while (p != NULL && *path != '\0') {
		bool array = *path == '[';

		path += array || *path == '.';
		for (size = 0; path[size] != '\0' && strchr(".[]", path[size]) == NULL;)
			size++;
		p = json_step(p, path, size, array);
		path += size;
		path += array && *path == ']';
	}
	*v = 0;
	if (p == NULL || *p == '\0')
		return true;
	size = (size_t)(json_skip(p) - p);
	if (p != whole && p[size] == '\0') /* the text was cut within it */
		return true;
	if (*p == '"')
		return dif_string_result(r, p + 1, size >= 2 ? size - 2 : 0, v);
	return dif_string_result(r, p, size, v);
}

/* The address in the string itself of a place in the copy. */
static uint64_t
str_place(uint64_t addr, const char *text, const char *found)
{
	return found == NULL ? 0 : addr + (uint64_t)(found - text);
}

bool
dif_arg_string(struct dif_run *r, unsigned n, uint64_t *v)
{
	uint32_t size = r->d->h.options.strsize;
	char *to = dif_scratch(r, size);

	*v = (uintptr_t)to;
	if (to == NULL)
		return false;
	return (n < r->f->nargs && dif_port_text(r->f, n, to, size)) ||
	       dif_fail(r, DIF_FAULT_BADADDR, n < r->f->nargs ? r->f->args[n] : 0);
}

bool
dif_string_subroutine(struct dif_run *r, unsigned sub, const uint64_t *args, uint64_t *v)
{
	char *s = r->c->text[0], *t = r->c->text[1];

	if (sub != DIF_SUB_STRTOK && sub != DIF_SUB_LLTOSTR &&
	    dif_string_copy(r, 0, args[0]) == NULL)
		return false;
	if ((sub == DIF_SUB_STRJOIN || sub == DIF_SUB_STRSTR || sub == DIF_SUB_STRTOK ||
	     sub == DIF_SUB_INDEX || sub == DIF_SUB_RINDEX || sub == DIF_SUB_JSON ||
	     sub == DIF_SUB_GLOB) &&
	    dif_string_copy(r, 1, args[1]) == NULL)
		return false;
	switch (sub) {
	case DIF_SUB_STRLEN:
		*v = strlen(s);
		return true;
	case DIF_SUB_STRJOIN:
		return dif_string_join(r, s, t, v);
	case DIF_SUB_STRCHR:
		*v = str_place(args[0], s, strchr(s, (char)args[1]));
		return true;
	case DIF_SUB_STRRCHR:
		*v = str_place(args[0], s, strrchr(s, (char)args[1]));
		return true;
	case DIF_SUB_STRSTR:
		*v = str_place(args[0], s, strstr(s, t));
		return true;
	case DIF_SUB_STRTOK:
		return subr_strtok(r, args[0], t, v);
	case DIF_SUB_SUBSTR:
		return subr_substr(r, s, (int64_t)args[1], (int64_t)args[2], v);
	case DIF_SUB_INDEX:
		*v = (uint64_t)find_index(s, t, (int64_t)args[2]);
		return true;
	case DIF_SUB_RINDEX:
		*v = (uint64_t)find_last_index(s, t, (int64_t)args[2]);
		return true;
	case DIF_SUB_BASENAME:
		return subr_basename(r, s, v);
	case DIF_SUB_DIRNAME:
		return subr_dirname(r, s, v);
	case DIF_SUB_CLEANPATH:
		return subr_cleanpath(r, s, v);
	case DIF_SUB_TOUPPER:
		return change_case(r, s, 'a', v);
	case DIF_SUB_TOLOWER:
		return change_case(r, s, 'A', v);
	case DIF_SUB_LLTOSTR:
		return number_text(r, (int64_t)args[0], args[1], v);
	case DIF_SUB_GLOB:
		*v = ktr_glob(t, s);
		return true;
	case DIF_SUB_JSON:
		return subr_json(r, s, t, v);
	case DIF_SUB_STRTOLL:
		return text_number(r, s, args[1], v);
	default:
		return dif_string_result(r, s, strlen(s), v); /* DIF_SUB_STRINGOF */
	}
}
