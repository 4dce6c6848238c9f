/* dif_help.h - for tests of the program engine: builds images, fires clauses, looks at what came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/errno.h"
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

#define MAX 256

/* An image in the making. */
struct maker {
	struct dif_header h;
	struct dif_clause clauses[MAX];
	struct dif_insn code[2 * DIF_MAX_CODE];
	uint16_t actions[MAX];
	uint32_t layouts[MAX];
	struct dif_var vars[MAX];
	struct dif_agg aggs[MAX];
	char strings[4096];
};

static inline void
make(struct maker *m)
{
	memset(m, 0, sizeof(*m));
	m->h = (struct dif_header){.magic = DIF_MAGIC,
				   .version = DIF_VERSION,
				   .options = {.bufsize = 4096,
					       .aggsize = 65536,
					       .dynvarsize = 65536,
					       .specsize = 1024,
					       .nspec = 2}};
	m->h.strings.count = 1; /* "" */
}

static inline uint32_t
put_string(struct maker *m, const char *s)
{
	uint32_t at = m->h.strings.count;

	memcpy(m->strings + at, s, strlen(s) + 1);
	m->h.strings.count += (uint32_t)strlen(s) + 1;
	return at;
}

static inline uint32_t
put_var(struct maker *m, enum dif_scope scope, enum dif_kind kind, uint32_t size, uint64_t keys)
{
	m->vars[m->h.vars.count] = (struct dif_var){(uint8_t)scope, (uint8_t)kind, 0, size, keys};
	return m->h.vars.count++;
}

static inline uint32_t
put_agg(struct maker *m, enum dif_func func, uint64_t keys)
{
	m->aggs[m->h.aggs.count] = (struct dif_agg){.func = (uint8_t)func, .keys = keys};
	return m->h.aggs.count++;
}

static inline uint32_t
put_layout(struct maker *m, uint32_t size)
{
	m->layouts[m->h.layouts.count] = size;
	return m->h.layouts.count++;
}

/* A clause at the probe `p`, of these instructions. */
static inline uint32_t
put_clause(struct maker *m, const struct dif_insn *code, uint32_t length)
{
	memcpy(&m->code[m->h.code.count], code, length * sizeof(*code));
	m->clauses[m->h.clauses.count] = (struct dif_clause){0, m->h.code.count, length, 0};
	m->h.code.count += length;
	return m->h.clauses.count++;
}

#define CODE(...)                 \
	(const struct dif_insn[]) \
	{                         \
		__VA_ARGS__       \
	}
#define CLAUSE(m, ...) \
	put_clause(m, CODE(__VA_ARGS__), sizeof(CODE(__VA_ARGS__)) / sizeof(struct dif_insn))

/* The image's bytes; *size of them. dif_port_free() frees them. NULL: no memory. */
static inline uint8_t *
make_image(struct maker *m, uint32_t *size)
{
	struct {
		struct dif_section *s;
		const void *from;
		size_t element;
	} parts[] = {{&m->h.clauses, m->clauses, sizeof(*m->clauses)},
		     {&m->h.code, m->code, sizeof(*m->code)},
		     {&m->h.actions, m->actions, sizeof(*m->actions)},
		     {&m->h.layouts, m->layouts, sizeof(*m->layouts)},
		     {&m->h.vars, m->vars, sizeof(*m->vars)},
		     {&m->h.aggs, m->aggs, sizeof(*m->aggs)},
		     {&m->h.strings, m->strings, 1},
		     {&m->h.consumer, "", 1}};
	uint8_t *image;

	*size = sizeof(m->h);
	for (unsigned i = 0; i < 8; i++) {
		parts[i].s->offset = *size;
		*size += (uint32_t)(parts[i].s->count * parts[i].element + 7) & ~7u;
	}
	image = dif_port_alloc(*size);
	if (image == NULL)
		return NULL;
	m->h.size = *size;
	memcpy(image, &m->h, sizeof(m->h));
	for (unsigned i = 0; i < 8; i++)
		memcpy(image + parts[i].s->offset, parts[i].from,
		       parts[i].s->count * parts[i].element);
	return image;
}

/* Loads what has been made; the error, or NULL. */
static inline const char *
load_made(struct maker *m, struct dif *d, unsigned cpus, struct dif_refusal *why)
{
	uint32_t size;
	uint8_t *image = make_image(m, &size);
	int error = image != NULL ? dif_load(d, image, size, cpus, why) : -ENOMEM;

	if (image == NULL)
		*why = (struct dif_refusal){0, 0, NULL};
	dif_port_free(image);
	if (error == 0)
		d->state = DIF_ACTIVE;
	return error != 0 ? why->error != NULL ? why->error : "no memory" : NULL;
}

static const uint64_t help_args[] = {100, 101, 102, 103, 104, 105, 106};

static inline enum dif_fault
fire_as(struct dif *d, unsigned cpu, uint32_t clause, const struct ktr_firing *f)
{
	struct dif_at at = dif_at(d, clause, 77, clause + 1);
	uint64_t faulted = d->cpu[cpu].faulted;

	d->cpu[cpu].fired++;
	dif_fire(&at, &d->cpu[cpu], f);
	return d->cpu[cpu].faulted != faulted ? (enum dif_fault)d->cpu[cpu].fault.fault
					      : DIF_FAULT_NONE;
}

static inline enum dif_fault
fire(struct dif *d, unsigned cpu, uint32_t clause)
{
	return fire_as(d, cpu, clause, &(struct ktr_firing){.args = help_args, .nargs = 7});
}
