/* timeline.c - what the formats of timeline viewers share. */
#include "ktr/tools/export/timeline.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/memory.h"

const char *const timeline_kinds[] = {[TIMELINE_SYSCALL] = "syscall",
				      [TIMELINE_INTERRUPT] = "interrupt",
				      [TIMELINE_FUNCTION] = "function"};

bool
timeline_push(struct timeline_stack *s, enum timeline_kind kind, unsigned level, const char *name)
{
	if (!MEMORY_ROOM(s->slices, s->room, s->depth))
		return false;
	s->slices[s->depth++] = (struct timeline_slice){kind, level, name};
	return true;
}

unsigned
timeline_find(const struct timeline_stack *s, enum timeline_kind kind)
{
	unsigned n = s->depth;
	while (n > 0 && s->slices[n - 1].kind != kind)
		n--;
	return n > 0 ? n - 1 : s->depth;
}

unsigned
timeline_over(const struct timeline_stack *s, const struct activity_thread *t, unsigned level)
{
	for (unsigned n = 0; n < s->depth; n++) {
		if (s->slices[n].kind == TIMELINE_FUNCTION
			? s->slices[n].level > level
			: s->slices[n].kind == TIMELINE_SYSCALL && t->call == NULL)
			return n;
	}
	return s->depth;
}

void
timeline_free(struct timeline_stack *s)
{
	free(s->slices);
	*s = (struct timeline_stack){0};
}

static void
graph_name(struct timeline_name *name, const struct export_class *class)
{
	static const char *const types[] = {"state", "point", "counter", "start", "stop"};
	for (unsigned i = 0; i < class->site->nargs; i++) {
		for (unsigned t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
			if (strcmp(class->params[i].name, types[t]) != 0 || name->text[0] != '\0')
				continue;
			name->param = t < 2 && class->params[i].string ? (int)i : -1;
			snprintf(name->text, sizeof(name->text), "%s", types[t]);
		}
	}
}

void
timeline_name_find(struct timeline_name *name, const struct export_class *class)
{
	const char *fmt = class->site->fmt;
	name->param = -1;
	name->text[0] = '\0';
	if (strncmp(fmt, "KTRGRAPH ", 9) == 0)
		graph_name(name, class);
	size_t n =
	    strncmp(fmt, "-> ", 3) == 0 || strncmp(fmt, "<- ", 3) == 0 ? 0 : strcspn(fmt, ":%");
	while (n > 0 && !isalnum((unsigned char)fmt[n - 1]))
		n--;
	if (name->text[0] == '\0' && n > 0 && n < sizeof(name->text))
		snprintf(name->text, sizeof(name->text), "%.*s", (int)n, fmt);
	if (name->text[0] == '\0')
		snprintf(name->text, sizeof(name->text), "%s", class->site->func);
}

const char *
timeline_event_name(const struct timeline_name *name, const struct ktr_decode_event *e, char *buf)
{
	const char *text = name->param >= 0 ? export_string(e, (unsigned)name->param, buf) : "";
	return text[0] != '\0' ? text : name->text;
}

const struct export_class *
timeline_unknown_class(void)
{
	static struct export_class class;
	if (class.params[0].name[0] == '\0')
		ktr_params_scan("", class.params, KTR_PARAM_MAX);
	return &class;
}
