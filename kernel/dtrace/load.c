/*
 * load.c - takes an image: checks its sections and declarations, and lays out one block of memory
 * for all that its programs will ever use.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

static bool
section_ok(const struct dif_header *h, const struct dif_section *s, size_t element)
{
	return s->offset % 8 == 0 && s->offset <= h->size &&
	       s->count <= (h->size - s->offset) / element;
}

static const char *
check_options(const struct dif_options *o)
{
	if (o->bufsize > DIF_MAX_MEMORY || o->aggsize > DIF_MAX_MEMORY ||
	    o->dynvarsize > DIF_MAX_MEMORY || o->specsize > DIF_MAX_MEMORY ||
	    o->scratch > DIF_MAX_MEMORY)
		return "option: expected at most 2 GiB";
	if (o->bufsize % 8 != 0 || o->aggsize % 8 != 0 || o->dynvarsize % 8 != 0 ||
	    o->specsize % 8 != 0 || o->scratch % 8 != 0)
		return "option: expected a size that is a multiple of 8";
	if (o->strsize < 2 || o->strsize > DIF_MAX_STRSIZE)
		return "option strsize: expected 2 to 4096";
	if (o->nspec > 64)
		return "option nspec: expected at most 64";
	if (o->policy > DIF_FILL)
		return "option policy: expected switch, ring or fill";
	return NULL;
}

static void
set_defaults(struct dif_options *o)
{
	if (o->strsize == 0)
		o->strsize = 256;
	if (o->scratch == 0)
		o->scratch = 4096 + 8 * o->strsize;
	if (o->deadman_ns == 0)
		o->deadman_ns = 30000000000;
}

static const char *
check_header(const struct dif_header *h, size_t size)
{
	if (h->magic != DIF_MAGIC || h->version != DIF_VERSION)
		return "not an image of this version";
	if (h->size != size)
		return "the image has not the size that it says";
	if ((h->flags & 0xffff) > (DIF_DESTRUCTIVE | DIF_KERNEL))
		return "no such flag";
	if (!section_ok(h, &h->clauses, sizeof(struct dif_clause)) ||
	    !section_ok(h, &h->code, sizeof(struct dif_insn)) ||
	    !section_ok(h, &h->actions, sizeof(uint16_t)) ||
	    !section_ok(h, &h->layouts, sizeof(uint32_t)) ||
	    !section_ok(h, &h->vars, sizeof(struct dif_var)) ||
	    !section_ok(h, &h->aggs, sizeof(struct dif_agg)) || !section_ok(h, &h->strings, 1) ||
	    !section_ok(h, &h->consumer, 1))
		return "a section is not within the image, or not aligned";
	if (h->clauses.count > DIF_MAX_CLAUSES)
		return "expected at most 4096 clauses";
	if (h->actions.count != 0 && h->actions.count != h->code.count)
		return "expected an action for each instruction";
	return NULL;
}

/* Bytes of a variable's, or an aggregation's keys, at most; 0: the kinds are not valid. */
static uint32_t
dif_keys_size(const struct dif *d, uint64_t kinds)
{
	uint32_t size = 0;

	for (; kinds != 0; kinds >>= 4) {
		switch (kinds & 15) {
		case DIF_K_INT:
			size += 8;
			break;
		case DIF_K_STR:
			size += (d->h.options.strsize + 7) & ~7u;
			break;
		case DIF_K_STACK:
		case DIF_K_USTACK:
			size += 8 * (DIF_MAX_FRAMES + 2);
			break;
		default:
			return 0;
		}
	}
	return size < DIF_MAX_KEY ? size : DIF_MAX_KEY;
}

/* Gives each variable its place. *globals and *locals: bytes for those that have one. */
static const char *
place_variables(struct dif *d, uint32_t *globals, uint32_t *locals, uint32_t *chunk,
		uint32_t *chunk_value)
{
	uint32_t keys = 0;

	for (uint32_t i = 0; i < d->h.vars.count; i++) {
		const struct dif_var *v = &d->vars[i];
		struct dif_variable *to = &d->variables[i];
		uint32_t *total = v->scope == DIF_THIS ? locals : globals, key_size;

		if (v->scope > DIF_THIS || v->kind > DIF_STR || v->reserved != 0 ||
		    (v->kind == DIF_INT && v->size != 8) ||
		    (v->kind == DIF_BYTES && (v->size == 0 || v->size > DIF_MAX_STRSIZE)) ||
		    (v->scope == DIF_THIS && v->keys != 0))
			return "variable: no such scope, kind or size";
		key_size = dif_keys_size(d, v->keys);
		if (v->keys != 0 && key_size == 0)
			return "variable: no such kind of key";
		to->size = v->kind == DIF_STR ? d->h.options.strsize : v->size;
		to->dynamic = v->keys != 0 || v->scope == DIF_SELF;
		if (to->dynamic) {
			keys = keys > key_size ? keys : key_size;
			*chunk_value =
			    *chunk_value > to->size ? *chunk_value : (to->size + 7) & ~7u;
		} else {
			to->place = *total;
			*total += (v->kind == DIF_INT ? 8 : 8 + ((to->size + 7) & ~7u));
			if (*total > DIF_MAX_MEMORY)
				return "variables: too many bytes";
		}
	}
	*chunk_value = (*chunk_value + 7) & ~7u;
	*chunk = *chunk_value != 0 ? dif_dynamic_chunk(keys, *chunk_value) : 0;
	return NULL;
}

static const char *
check_sections(struct dif *d)
{
	if (d->h.strings.count != 0 && d->strings[d->h.strings.count - 1] != '\0')
		return "the strings do not end with a NUL";
	for (uint32_t i = 0; i < d->h.layouts.count; i++)
		if (d->layouts[i] > DIF_MAX_RECORD)
			return "layout: expected at most 65520 bytes";
	if (d->h.layouts.count >= DIF_VOID)
		return "expected at most 65534 layouts";
	for (uint32_t i = 0; i < d->h.aggs.count; i++) {
		struct dif_aggregation *g = &d->aggregations[i];
		const struct dif_agg *a = &d->aggs[i];

		g->value_words = dif_agg_words(a, &g->base);
		if (g->value_words == 0)
			return "aggregation: no such function or parameters";
		if (a->keys != 0 && dif_keys_size(d, a->keys) == 0)
			return "aggregation: no such kind of key";
	}
	return NULL;
}

static const char *
check_clauses(const struct dif *d, uint32_t *clause)
{
	uint64_t code = 0;

	for (*clause = 0; *clause < d->h.clauses.count; ++*clause) {
		const struct dif_clause *c = &d->clauses[*clause];

		if (c->probes >= d->h.strings.count || c->reserved != 0)
			return "clause: its probes are not within the strings";
		if (c->code > d->h.code.count || c->length > d->h.code.count - c->code)
			return "clause: its program is not within the code";
		if (*clause > 0 && c->code < c[-1].code + c[-1].length &&
		    (c->code != c[-1].code || c->length != c[-1].length))
			return "clause: its program begins within that of the clause before";
		code += c->length;
	}
	if (code > DIF_MAX_ALL)
		return "expected at most 1,048,576 instructions in all clauses";
	*clause = UINT32_MAX;
	return NULL;
}

static void
find_sections(struct dif *d)
{
	d->clauses = (const void *)(d->image + d->h.clauses.offset);
	d->code = (const void *)(d->image + d->h.code.offset);
	d->actions =
	    d->h.actions.count != 0 ? (const void *)(d->image + d->h.actions.offset) : NULL;
	d->layouts = (const void *)(d->image + d->h.layouts.offset);
	d->vars = (const void *)(d->image + d->h.vars.offset);
	d->aggs = (const void *)(d->image + d->h.aggs.offset);
	d->strings = (const void *)(d->image + d->h.strings.offset);
}

/* Takes aligned bytes of the block that has all parts. In the first pass, base NULL, it counts. */
static void *
load_carve(uint8_t *base, size_t *at, size_t size)
{
	void *p = base != NULL ? base + *at : NULL;

	*at += (size + 63) & ~63ul;
	return p;
}

/* Carves bytes for n elements, and copies them there; the first pass returns where they are. */
static const void *
dif_keep(uint8_t *base, size_t *at, const void *from, size_t n, size_t element)
{
	void *to = load_carve(base, at, n * element);

	return to != NULL ? memcpy(to, from, n * element) : from;
}

/* The part of one CPU. */
static void
lay_out_cpu(struct dif *d, struct dif_cpu *c, uint8_t *base, size_t *at, uint32_t locals)
{
	const struct dif_options *o = &d->h.options;
	bool two = o->policy == DIF_SWITCH, aggs = o->aggsize > dif_table_begin(d);
	struct dif_cpu got = {0};

	got.buf.base = load_carve(base, at, o->bufsize);
	got.buf.size = (uint32_t)o->bufsize;
	got.buf.spare = two ? load_carve(base, at, o->bufsize) : NULL;
	if (aggs) {
		got.aggs.slots = load_carve(base, at, o->aggsize);
		if (base != NULL) /* else this only counts the bytes */
			got.aggs.buckets = got.aggs.slots + d->h.aggs.count;
		got.aggs.spare = load_carve(base, at, o->aggsize);
		got.aggs.head = dif_table_begin(d);
	}
	got.specs = load_carve(base, at, o->nspec * sizeof(*got.specs));
	for (uint32_t i = 0; i < o->nspec; i++) {
		uint8_t *spec = load_carve(base, at, o->specsize);

		if (base != NULL)
			got.specs[i].base = spec;
	}
	got.locals = load_carve(base, at, (size_t)locals + o->scratch);
	got.text[0] = load_carve(base, at, DIF_MAX_STRSIZE);
	got.text[1] = load_carve(base, at, DIF_MAX_STRSIZE);
	got.tokens = load_carve(base, at, DIF_MAX_STRSIZE);
	got.keys = load_carve(base, at, DIF_MAX_KEY);
	if (base != NULL) {
		got.scratch = got.locals + locals;
		got.scratch_end = got.scratch + o->scratch;
		*c = got;
		c->run.d = d;
		c->run.c = c;
		dif_run_reset(&c->run);
	}
}

struct sizes {
	uint32_t globals, locals, chunk, chunk_value;
};

static size_t
lay_out(struct dif *d, uint8_t *base, const struct sizes *z)
{
	const struct dif_options *o = &d->h.options;
	size_t at = 0;
	void *dynamic;

	/* Programs may read all of this. */
	if (d->image != NULL) {
		d->image = dif_keep(base, &at, d->image, d->h.size, 1);
		find_sections(d);
	} else {
		d->clauses =
		    dif_keep(base, &at, d->clauses, d->h.clauses.count, sizeof(*d->clauses));
		d->code = dif_keep(base, &at, d->code, d->h.code.count, sizeof(*d->code));
		d->vars = dif_keep(base, &at, d->vars, d->h.vars.count, sizeof(*d->vars));
		d->aggs = dif_keep(base, &at, d->aggs, d->h.aggs.count, sizeof(*d->aggs));
		d->strings = dif_keep(base, &at, d->strings, d->h.strings.count, 1);
	}
	d->steps = load_carve(base, &at, d->h.code.count * sizeof(*d->steps));
	d->cpu = load_carve(base, &at, d->cpus * sizeof(*d->cpu));
	d->globals = load_carve(base, &at, z->globals);
	d->globals_size = z->globals;
	d->specs = load_carve(base, &at, o->nspec * sizeof(*d->specs));
	dynamic = load_carve(base, &at, o->dynvarsize);
	if (base != NULL)
		dif_dynamic_init(&d->dynamic, dynamic, o->dynvarsize, z->chunk, z->chunk_value);
	for (unsigned i = 0; i < d->cpus; i++)
		lay_out_cpu(d, base != NULL ? &d->cpu[i] : NULL, base, &at, z->locals);
	return at;
}

/* An entry for each 64 bytes of an aggregation table, a power of two. */
static uint32_t
table_slots(const struct dif *d)
{
	uint32_t slots = 1;

	while (slots * 128ul <= d->h.options.aggsize)
		slots *= 2;
	return d->h.aggs.count + slots;
}

static int
verify_all(struct dif *d, void *work, struct dif_refusal *why)
{
	int error = work != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < d->h.clauses.count && error == 0; i++)
		error = dif_verify(d, i, work, why);
	return error;
}

/* Makes the one block of memory, into which the image goes. */
static int
dif_settle(struct dif *d, const struct sizes *z)
{
	d->table_slots = table_slots(d);
	d->bucket_mask = d->table_slots - d->h.aggs.count - 1;
	d->memory_size = lay_out(d, NULL, z);
	d->memory = dif_port_alloc(d->memory_size);
	if (d->memory == NULL)
		return -ENOMEM;
	lay_out(d, d->memory, z);
	for (unsigned i = 0; i < 2; i++)
		d->secret[i] = dif_port_secret() | 1;
	dif_decode(d);
	d->state = DIF_LOADED;
	return 0;
}

static int
dif_load_image(struct dif *d, struct dif_refusal *why)
{
	struct sizes z = {0};
	void *work;
	int error;

	d->variables = dif_port_alloc((d->h.vars.count + 1) * sizeof(*d->variables));
	d->aggregations = dif_port_alloc((d->h.aggs.count + 1) * sizeof(*d->aggregations));
	d->predicates = dif_port_alloc((d->h.clauses.count + 1) * sizeof(*d->predicates));
	if (d->variables == NULL || d->aggregations == NULL || d->predicates == NULL)
		return -ENOMEM;
	if ((why->error = check_options(&d->h.options)) != NULL ||
	    (why->error = check_sections(d)) != NULL ||
	    (why->error = place_variables(d, &z.globals, &z.locals, &z.chunk, &z.chunk_value)) !=
		NULL ||
	    (why->error = check_clauses(d, &why->clause)) != NULL)
		return -EINVAL;
	if (z.chunk != 0) /* a small size is rounded up: to room for three */
		d->h.options.dynvarsize = dif_dynamic_least(d->h.options.dynvarsize, 3, z.chunk);
	d->globals_size = z.globals; /* verification counts what is written there */
	d->locals_size = z.locals;
	work = dif_port_alloc(dif_verify_size(d));
	error = verify_all(d, work, why);
	dif_port_free(work);
	return error == 0 ? dif_settle(d, &z) : error;
}

int
dif_load_arrays(struct dif *d, unsigned cpus, struct dif_refusal *why)
{
	int error;

	d->cpus = cpus;
	*why = (struct dif_refusal){UINT32_MAX, 0, NULL};
	set_defaults(&d->h.options);
	error = dif_load_image(d, why);
	if (error != 0)
		dif_unload(d);
	return error;
}

int
dif_load(struct dif *d, const void *image, size_t size, unsigned cpus, struct dif_refusal *why)
{
	struct dif_header h;

	*d = (struct dif){0};
	*why = (struct dif_refusal){UINT32_MAX, 0, "the image is shorter than its header"};
	if (size < sizeof(h))
		return -EINVAL;
	memcpy(&h, image, sizeof(h));
	why->error = check_header(&h, size);
	if (why->error == NULL && DIF_CPU(h.flags) > cpus)
		why->error = "option cpu: there is no such CPU";
	if (why->error != NULL)
		return -EINVAL;
	d->h = h;
	d->image = image;
	find_sections(d);
	return dif_load_arrays(d, cpus, why);
}

void
dif_unload(struct dif *d)
{
	void *const blocks[] = {d->memory, d->variables, d->aggregations, d->predicates};

	dif_port_free_all(blocks, 4);
	*d = (struct dif){0};
}
