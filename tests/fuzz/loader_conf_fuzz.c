/*
 * loader_conf_fuzz.c - loader.conf and the command line: settings are what the format allows,
 * complaints lie inside the text, and settings that are written out and parsed again are the same.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/sysctl/loader_conf.h"
#include "tests/fuzz/fuzz.h"

struct said {
	const char *text;
	size_t size;
	unsigned last_line, lines;
	bool words;
	size_t sets, complaints;
	uint64_t hash; /* of all settings */
	char *again;   /* the settings, written out */
	size_t again_len, again_room;
};

static void
hash_text(uint64_t *h, const char *s)
{
	do
		*h = (*h ^ (unsigned char)*s) * 0x100000001b3u;
	while (*s++ != '\0');
}

static void
again_put(struct said *s, char c)
{
	if (s->again_len == s->again_room) {
		s->again_room = s->again_room * 2 + 64;
		s->again = realloc(s->again, s->again_room);
		FUZZ_CHECK(s->again != NULL, "no memory");
	}
	s->again[s->again_len++] = c;
}

static void
again_write(struct said *s, const char *name, const char *value)
{
	for (; *name != '\0'; name++)
		again_put(s, *name);
	if (value != NULL) {
		again_put(s, '=');
		again_put(s, '"');
		for (; *value != '\0'; value++) {
			if (*value == '"' || *value == '\\')
				again_put(s, '\\');
			again_put(s, *value);
		}
		again_put(s, '"');
	}
	again_put(s, '\n');
}

static void
on_set(void *arg, unsigned line, const char *name, const char *value)
{
	static const char allowed[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%";
	struct said *s = arg;

	FUZZ_CHECK(name[0] != '\0' && strlen(name) < LOADER_NAME_MAX, "name \"%s\"", name);
	FUZZ_CHECK(name[strspn(name, allowed)] == '\0', "name \"%s\"", name);
	FUZZ_CHECK(value != NULL || s->words, "a line without a value");
	FUZZ_CHECK(value == NULL || strlen(value) < LOADER_VALUE_MAX, "%zu", strlen(value));
	for (const char *p = value; p != NULL && *p != '\0'; p++)
		FUZZ_CHECK(((unsigned char)*p >= 0x20 && *p != 0x7f) || *p == '\t', "%#x", *p);
	FUZZ_CHECK(s->words ? line == 0 : line > s->last_line && line <= s->lines, "line %u", line);
	s->last_line = line;
	s->sets++;
	hash_text(&s->hash, name);
	hash_text(&s->hash, value != NULL ? value : "\x01");
	again_write(s, name, value);
}

static void
on_complain(void *arg, unsigned line, const char *found, size_t len, const char *expected)
{
	struct said *s = arg;

	FUZZ_CHECK(found >= s->text && found + len <= s->text + s->size, "%zu bytes", len);
	FUZZ_CHECK(expected != NULL && expected[0] != '\0', "no expectation");
	FUZZ_CHECK(s->words ? line == 0 : line > s->last_line && line <= s->lines, "line %u", line);
	s->last_line = line;
	s->complaints++;
}

static struct said
parse(bool words, const char *text, size_t size)
{
	struct said s = {.text = text, .size = size, .words = words, .lines = 1, .hash = 1};
	struct loader_sink sink = {on_set, on_complain, &s};

	for (size_t i = 0; i < size; i++)
		s.lines += text[i] == '\n';
	if (words)
		loader_words_parse(text, size, &sink);
	else
		loader_conf_parse(text, size, &sink);
	FUZZ_CHECK(s.sets + s.complaints <= (words ? size : s.lines), "%zu", s.sets);
	return s;
}

static void
parse_again(bool words, const char *text, size_t size)
{
	struct said s = parse(words, text, size);
	struct said t = parse(words, s.again != NULL ? s.again : "", s.again_len);

	FUZZ_CHECK(t.complaints == 0 && t.sets == s.sets && t.hash == s.hash,
		   "%zu settings, then %zu settings and %zu complaints", s.sets, t.sets,
		   t.complaints);
	free(s.again);
	free(t.again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse_again(false, (const char *)data, size);
	parse_again(true, (const char *)data, size);
	return 0;
}
