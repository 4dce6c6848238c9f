/* fxt_record.c - builds the records of the Fuchsia trace format. */
#include "ktr/tools/export/fxt.h"

#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/export.h"
#include "ktr/tools/utf8.h"

#define STRINGS_LEFT 4096u /* entries of the table of strings that values leave for names */

_Static_assert((KTR_PARAM_MAX + 3) * (8 + KTR_PARAM_NAME + FXT_TEXT_MAX + 8) < FXT_RECORD_WORDS * 8,
	       "a record has room");

void
fxt_record_begin(struct fxt_out *o, enum fxt_record_type type, uint64_t rest)
{
	o->words[0] = type | rest;
	o->used = 1;
}

void
fxt_record_word(struct fxt_out *o, uint64_t word)
{
	o->words[o->used++] = word;
}

void
fxt_record_text(struct fxt_out *o, const char *text, size_t n)
{
	size_t words = (n + 7) / 8;
	if (words == 0)
		return;
	o->words[o->used + words - 1] = 0;
	memcpy(&o->words[o->used], text, n);
	o->used += words;
}

void
fxt_record_end(struct fxt_out *o)
{
	o->words[0] |= (uint64_t)o->used << 4;
	fwrite(o->words, 8, o->used, o->f);
}

/* Returns the text, or, if it is not UTF-8 or too long, a mended copy in buf. *n is its length. */
static const char *
text_clean(const char *text, char *buf, size_t *n)
{
	static const char none[] = "\xef\xbf\xbd"; /* U+FFFD */
	const unsigned char *from = (const unsigned char *)text;
	size_t length, used = 0, same = 0;
	while (from[same] != '\0' && (length = utf8_length(from + same)) > 0)
		same += length;
	*n = same;
	if (same < FXT_TEXT_MAX && from[same] == '\0')
		return text;
	for (; *from != '\0' && used + 4 <= FXT_TEXT_MAX; used += length > 0 ? length : 3) {
		length = utf8_length(from);
		memcpy(buf + used, length > 0 ? (const char *)from : none, length > 0 ? length : 3);
		from += length > 0 ? length : 1;
	}
	*n = used;
	return buf;
}

/* The index of a text, which is registered if it is new. 0: the table has no room. */
static uint16_t
string_index(struct fxt_out *o, const char *text, size_t n, uint32_t room)
{
	uint64_t hash = ktr_hash(o->by_hash.seed, text, n);
	uintptr_t known = (uintptr_t)ktr_map_get(&o->by_hash, hash);
	if (known != 0 && strncmp(o->strings[known], text, n) == 0 && o->strings[known][n] == '\0')
		return (uint16_t)known;
	char *copy = o->string_count + 1 < room ? strndup(text, n) : NULL;
	uint32_t index = o->string_count + 1;
	if (copy == NULL || !ktr_map_put(&o->by_hash, hash, (void *)(uintptr_t)index)) {
		free(copy);
		return 0;
	}
	o->string_count = index;
	o->strings[index] = copy;
	const uint64_t head[] = {FXT_RECORD_STRING | (1 + (n + 7) / 8) << 4 |
				 (uint64_t)index << 16 | (uint64_t)n << 32};
	char padded[FXT_TEXT_MAX + 8] = "";
	memcpy(padded, text, n);
	fwrite(head, 8, 1, o->f);
	fwrite(padded, 8, (n + 7) / 8, o->f);
	return (uint16_t)index;
}

/* The index of a text; or, if it is not registered, FXT_INLINE and its length. */
static uint16_t
string_ref(struct fxt_out *o, const char *text, uint32_t room)
{
	char buf[FXT_TEXT_MAX];
	size_t n;
	text = text_clean(text, buf, &n);
	uint16_t ref = n > 0 ? string_index(o, text, n, room) : 0;
	return n == 0 || ref != 0 ? ref : (uint16_t)(FXT_INLINE | n);
}

uint16_t
fxt_name_ref(struct fxt_out *o, const char *text)
{
	return string_ref(o, text, FXT_STRINGS_MAX);
}

uint16_t
fxt_value_ref(struct fxt_out *o, const char *text)
{
	size_t at = ((uintptr_t)text >> 3 ^ (uintptr_t)text >> 15) % FXT_SEEN_SLOTS;
	uint16_t ref = o->seen[at].text == text ? o->seen[at].ref : 0;
	/* Most texts are still at the address where they were seen, and the same. */
	if (ref == 0 || (ref & FXT_INLINE) != 0 || strcmp(o->strings[ref], text) != 0) {
		ref = string_ref(o, text, FXT_STRINGS_MAX - STRINGS_LEFT);
		o->seen[at].text = text;
		o->seen[at].ref = ref;
	}
	return ref;
}

void
fxt_put_inline(struct fxt_out *o, uint16_t ref, const char *text)
{
	char buf[FXT_TEXT_MAX];
	size_t n;
	if ((ref & FXT_INLINE) == 0)
		return;
	text = text_clean(text, buf, &n);
	fxt_record_text(o, text, n);
}

void
fxt_put_argument(struct fxt_out *o, enum fxt_argument_type type, uint16_t ref, const char *name,
		 uint64_t value)
{
	bool wide = type == FXT_ARG_INT64 || type == FXT_ARG_UINT64 || type == FXT_ARG_KOID;
	size_t words = 1 + wide;
	if ((ref & FXT_INLINE) != 0)
		words += ((ref & ~FXT_INLINE) + 7u) / 8;
	fxt_record_word(o, type | words << 4 | (uint64_t)ref << 16 | (wide ? 0 : value << 32));
	fxt_put_inline(o, ref, name);
	if (wide)
		fxt_record_word(o, value);
}

void
fxt_put_number(struct fxt_out *o, uint16_t ref, const char *name, uint64_t v, bool is_signed)
{
	if (is_signed && (int64_t)v == (int32_t)v)
		fxt_put_argument(o, FXT_ARG_INT32, ref, name, (uint32_t)v);
	else if (!is_signed && v == (uint32_t)v)
		fxt_put_argument(o, FXT_ARG_UINT32, ref, name, v);
	else
		fxt_put_argument(o, is_signed ? FXT_ARG_INT64 : FXT_ARG_UINT64, ref, name, v);
}

void
fxt_put_string(struct fxt_out *o, uint16_t ref, const char *name, const struct ktr_decode_event *e,
	       unsigned i)
{
	char bad[32];
	size_t head = o->used;
	const char *text = export_string(e, i, bad);
	uint16_t value =
	    text == bad ? (uint16_t)(FXT_INLINE | strlen(bad)) : fxt_value_ref(o, text);
	fxt_record_word(o, FXT_ARG_STRING | (uint64_t)ref << 16 | (uint64_t)value << 32);
	fxt_put_inline(o, ref, name);
	fxt_put_inline(o, value, text);
	o->words[head] |= (o->used - head) << 4;
}

void
fxt_out_free(struct fxt_out *o)
{
	for (uint32_t i = 1; i <= o->string_count; i++)
		free(o->strings[i]);
	ktr_map_free(&o->by_hash);
}
