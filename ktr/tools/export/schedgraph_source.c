/*
 * schedgraph_source.c - the table of the sources of KTRGRAPH lines.
 *
 * Whether a line is shown can depend on later lines. Such a line has the number of a fact, which
 * later lines set. Names are kept only while their thread lives; facts are kept to the end, because
 * lines wait for them. Most threads need no fact.
 */
#define _GNU_SOURCE /* tdestroy() */
#include <ctype.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/memory.h"

#include "ktr/tools/export/schedgraph.h"

#define FACTS_FIRST (SCHEDGRAPH_ALWAYS + 1)

uint32_t
schedgraph_fact_new(struct schedgraph_sources *s)
{
	if (s->fact_count > UINT32_MAX / 2 || !MEMORY_ROOM(s->facts, s->fact_room, s->fact_count))
		return SCHEDGRAPH_NEVER;
	s->facts[s->fact_count] = SCHEDGRAPH_NEVER;
	return FACTS_FIRST + s->fact_count++;
}

void
schedgraph_fact_set(struct schedgraph_sources *s, uint32_t fact, uint32_t other)
{
	if (fact >= FACTS_FIRST)
		s->facts[fact - FACTS_FIRST] = other;
}

bool
schedgraph_fact_is(const struct schedgraph_sources *s, uint32_t fact)
{
	while (fact >= FACTS_FIRST)
		fact = s->facts[fact - FACTS_FIRST];
	return fact == SCHEDGRAPH_ALWAYS;
}

static int
compare_tids(const void *a, const void *b)
{
	const struct schedgraph_name *l = a, *r = b;
	return l->tid < r->tid ? -1 : l->tid > r->tid;
}

static int
compare_names(const void *a, const void *b)
{
	const struct schedgraph_name *l = a, *r = b;
	int tids = compare_tids(a, b);
	if (tids != 0)
		return tids;
	return l->kind != r->kind ? (int)l->kind - (int)r->kind : strcmp(l->text, r->text);
}

/* The N of an ident `NAME tid N`; -1: it is not an ident. */
static int64_t
tid_of(const char *id, int length)
{
	static const char word[] = " tid ";
	const int word_length = sizeof(word) - 1;
	int at = length;
	while (at > 0 && isdigit((unsigned char)id[at - 1]))
		at--;
	if (at == length || at < word_length ||
	    memcmp(id + at - word_length, word, (size_t)word_length) != 0)
		return -1;
	unsigned long long tid = strtoull(id + at, NULL, 10);
	return tid <= UINT32_MAX ? (int64_t)tid : -1;
}

/* The name with these two parts. A new one is made if there is none. NULL: no memory. */
static struct schedgraph_name *
name_get(struct schedgraph_sources *s, enum schedgraph_kind kind, int64_t tid,
	 const struct schedgraph_parts *p)
{
	union {
		struct schedgraph_name name;
		char room[sizeof(struct schedgraph_name) + SCHEDGRAPH_TEXT];
	} key;
	const size_t group = (size_t)p->group_length, id = (size_t)p->id_length;
	memset(&key.name, 0, sizeof(key.name));
	key.name.kind = kind;
	key.name.tid = tid;
	memcpy(key.name.text, p->group, group);
	memcpy(key.name.text + group, p->id, id);
	key.name.text[group + id] = '\0';
	void **found = tfind(&key, &s->names, compare_names);
	if (found != NULL)
		return *found;
	size_t size = sizeof(key.name) + group + id + 1;
	struct schedgraph_name *name = malloc(size);
	if (name == NULL)
		return NULL;
	memcpy(name, &key, size);
	if (tsearch(name, &s->names, compare_names) != NULL)
		return name;
	free(name);
	return NULL;
}

/* The group of a line with a counter. A counter above 0 shows the group. NULL: no memory. */
static struct schedgraph_name *
group_get(struct schedgraph_sources *s, const struct schedgraph_parts *p)
{
	const struct schedgraph_parts only = {.group = p->group,
					      .group_length = p->group_length,
					      .id = ""};
	struct schedgraph_name *group = name_get(s, SCHEDGRAPH_GROUP, -1, &only);
	if (group != NULL && group->shown == SCHEDGRAPH_NEVER)
		group->shown = schedgraph_fact_new(s);
	if (group == NULL || group->shown == SCHEDGRAPH_NEVER)
		return NULL;
	if (*p->value != '-' && strtoull(p->value, NULL, 10) > 0)
		schedgraph_fact_set(s, group->shown, SCHEDGRAPH_ALWAYS);
	return group;
}

static struct schedgraph_name *
id_get(struct schedgraph_sources *s, const char *id, int length)
{
	const struct schedgraph_parts only = {.group = "", .id = id, .id_length = length};
	return name_get(s, SCHEDGRAPH_ID, tid_of(id, length), &only);
}

struct schedgraph_name *
schedgraph_source_get(struct schedgraph_sources *s, const struct schedgraph_parts *p)
{
	uint32_t shown = SCHEDGRAPH_ALWAYS;
	if (*p->type == 'c') {
		struct schedgraph_name *group = group_get(s, p);
		if (group == NULL)
			return NULL;
		shown = group->shown;
	}
	struct schedgraph_name *source =
	    name_get(s, SCHEDGRAPH_SOURCE, tid_of(p->id, p->id_length), p);
	if (source == NULL || source->shown != SCHEDGRAPH_NEVER)
		return source;
	struct schedgraph_name *id = id_get(s, p->id, p->id_length);
	if (id == NULL)
		return NULL;
	source->shown = shown;
	if (id->awaited)
		schedgraph_fact_set(s, id->shown, shown);
	else if (id->shown == SCHEDGRAPH_NEVER)
		id->shown = shown;
	id->awaited = false;
	return source;
}

uint32_t
schedgraph_link_get(struct schedgraph_sources *s, const char *text, int length)
{
	struct schedgraph_name *id = id_get(s, text, length);
	if (id == NULL)
		return SCHEDGRAPH_NEVER;
	if (id->shown == SCHEDGRAPH_NEVER) {
		id->shown = schedgraph_fact_new(s);
		id->awaited = true;
	}
	return id->shown;
}

void
schedgraph_thread_forget(struct schedgraph_sources *s, uint32_t tid)
{
	const struct schedgraph_name any = {.tid = tid};
	void **found;
	while ((found = tfind(&any, &s->names, compare_tids)) != NULL) {
		struct schedgraph_name *name = *found;
		tdelete(name, &s->names, compare_names);
		free(name);
	}
}

void
schedgraph_sources_free(struct schedgraph_sources *s)
{
	tdestroy(s->names, free);
	free(s->facts);
}
