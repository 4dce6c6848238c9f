/* schedgraph_line.c - finds and cleans the parts of a KTRGRAPH line. */
#include "ktr/tools/export/schedgraph.h"

#include <stdio.h>
#include <string.h>

#include "ktr/tools/utf8.h"

const char *
schedgraph_after(const char *text, const char *word)
{
	size_t n = strlen(word);
	return text != NULL && strncmp(text, word, n) == 0 ? text + n : NULL;
}

/**
 * Returns the text after its next quote; *length becomes the number of bytes before that quote.
 * NULL if the text is NULL, or has no quote.
 */
static const char *
schedgraph_after_quote(const char *text, int *length)
{
	const char *quote = text != NULL ? strchr(text, '"') : NULL;
	if (quote == NULL)
		return NULL;
	*length = (int)(quote - text);
	return quote + 1;
}

bool
schedgraph_parts_find(const char *text, struct schedgraph_parts *p)
{
	int length;
	p->group = schedgraph_after(text, "KTRGRAPH group:\"");
	p->id = schedgraph_after(schedgraph_after_quote(p->group, &p->group_length), ", id:\"");
	p->type = schedgraph_after(schedgraph_after_quote(p->id, &p->id_length), ", ");
	p->value = schedgraph_after(p->type, "counter:");
	if (p->value != NULL) {
		const char *digits = p->value + (*p->value == '-');
		size_t n = strspn(digits, "0123456789");
		p->attributes = n > 0 ? schedgraph_after(digits + n, ", attributes: ") : NULL;
		return p->attributes != NULL;
	}
	p->value = schedgraph_after(p->type, "state:\"");
	if (p->value == NULL)
		p->value = schedgraph_after(p->type, "point:\"");
	p->attributes =
	    schedgraph_after(schedgraph_after_quote(p->value, &length), ", attributes: ");
	return p->attributes != NULL;
}

const char *
schedgraph_attribute_end(const char *p)
{
	for (bool quoted = false; *p != '\0'; p++) {
		quoted ^= *p == '"';
		if (!quoted && p[0] == ',' && p[1] == ' ')
			break;
	}
	return p;
}

bool
schedgraph_attribute_is_link(const char *a, const char **id, int *length)
{
	const char *linked = schedgraph_after(a, "linkedto:\"");
	*id = schedgraph_after_quote(linked, length) != NULL ? linked : NULL;
	return linked != NULL;
}

const char *
schedgraph_clean(const char *text, char *buf)
{
	const unsigned char *from = (const unsigned char *)text;
	char *p = buf;
	while (*from != '\0' && p + 4 < buf + SCHEDGRAPH_CLEAN) {
		size_t n = utf8_length(from);
		if (n == 0 || *from < ' ' || *from == 0x7f) {
			p += snprintf(p, 5, "\\x%02x", (unsigned)*from++);
		} else if (*from == '"' || *from == ',') {
			*p++ = *from++ == '"' ? '\'' : ';';
		} else {
			memcpy(p, from, n);
			p += n;
			from += n;
		}
	}
	*p = '\0';
	return buf;
}

void
schedgraph_event_text(const struct ktr_decode_event *e, char *text)
{
	char cleaned[6][SCHEDGRAPH_CLEAN];
	struct ktr_decode_event copy = *e;
	for (unsigned i = 0; i < e->nargs; i++)
		if (e->strings[i] != NULL)
			copy.strings[i] = schedgraph_clean(e->strings[i], cleaned[i]);
	ktr_decode_text(text, SCHEDGRAPH_TEXT, &copy);
	text[strcspn(text, "\n")] = '\0';
}
