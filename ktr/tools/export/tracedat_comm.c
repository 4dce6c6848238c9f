/* tracedat_comm.c - the names of all threads of a trace, including those that are gone. */
#define _GNU_SOURCE /* tdestroy() */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/memory.h"

#include "ktr/tools/export/tracedat.h"

struct name {
	uint32_t number;
	char text[];
};

static int
name_compare(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Finds or makes the number of a text. False: no memory. */
static bool
name_number(struct tracedat_comms *c, const char *text, uint32_t *number)
{
	union {
		struct name name;
		char room[sizeof(struct name) + ACTIVITY_NAME];
	} key = {0};
	memcpy(key.name.text, text, strlen(text) + 1);
	struct name **found = tfind(&key, &c->names, name_compare);
	if (found == NULL) {
		bool room = MEMORY_ROOM(c->texts, c->name_room, c->name_count);
		struct name *name = room ? malloc(sizeof(key)) : NULL;
		if (name != NULL)
			memcpy(name, &key, sizeof(key));
		found = name != NULL ? tsearch(name, &c->names, name_compare) : NULL;
		if (found == NULL) {
			free(name);
			return false;
		}
		name->number = (uint32_t)c->name_count;
		c->texts[c->name_count++] = name->text;
	}
	*number = (*found)->number;
	return true;
}

void
tracedat_comm_add(struct tracedat_comms *c, const struct activity_thread *t)
{
	struct tracedat_comm comm = {.tid = t->tid, .order = (uint32_t)c->count};
	if (t->idle || t->name[0] == '\0')
		return;
	if (!MEMORY_ROOM(c->all, c->room, c->count) || !name_number(c, t->name, &comm.name))
		c->failed = true;
	else
		c->all[c->count++] = comm;
}

static int
comm_compare(const void *a, const void *b)
{
	const struct tracedat_comm *l = a, *r = b;
	if (l->tid != r->tid)
		return l->tid < r->tid ? -1 : 1;
	return (l->order > r->order) - (l->order < r->order);
}

void
tracedat_comms_put(FILE *f, struct tracedat_comms *c)
{
	uint64_t size = 1;
	size_t kept = 0;
	char tid[16];
	if (c->count > 0)
		qsort(c->all, c->count, sizeof(c->all[0]), comm_compare);
	for (size_t i = 0; i < c->count; i++) {
		if (i + 1 < c->count && c->all[i + 1].tid == c->all[i].tid)
			continue; /* it had another name later */
		c->all[kept++] = c->all[i];
		size += (size_t)snprintf(tid, sizeof(tid), "%" PRIu32, c->all[i].tid) +
			strlen(c->texts[c->all[i].name]) + 2;
	}
	c->count = kept;
	fwrite(&size, sizeof(size), 1, f);
	for (size_t i = 0; i < c->count; i++) {
		fprintf(f, "%" PRIu32 " ", c->all[i].tid);
		for (const char *p = c->texts[c->all[i].name]; *p != '\0'; p++)
			fputc(*p == '\n' ? '?' : *p, f);
		fputc('\n', f);
	}
	fputc('\0', f);
}

void
tracedat_comms_free(struct tracedat_comms *c)
{
	tdestroy(c->names, free);
	free(c->texts);
	free(c->all);
}
