/*
 * btf.c - reads BTF.
 */
#include "userland/bin/dtrace/btf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/lib/array.h"

#define MAGIC     0xeb9f
#define MAX_TYPES 1000000u
#define MAX_CHAIN 64 /* types of which each is defined by the next */

struct header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t header_size, type_offset, type_size, name_offset, name_size;
};

struct record {
	uint32_t name;
	uint32_t info; /* 0-15: parts; 24-28: kind; 31: flag */
	uint32_t size; /* or a type */
};

/* How many bytes follow the record, and how many more for each part of it. */
static const struct {
	uint8_t fixed, part;
} extra[BTF_KINDS] = {
    [BTF_INT] = {4, 0},        [BTF_ARRAY] = {12, 0}, [BTF_STRUCT] = {0, 12},
    [BTF_UNION] = {0, 12},     [BTF_ENUM] = {0, 8},   [BTF_ENUM64] = {0, 12},
    [BTF_FUNC_PROTO] = {0, 8}, [BTF_VAR] = {4, 0},    [BTF_DATASEC] = {0, 12},
    [BTF_DECL_TAG] = {4, 0},
};

static uint32_t
word(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static struct record
record(const struct btf *btf, uint32_t number)
{
	struct record r;

	memcpy(&r, btf->types + btf->start[number], sizeof(r));
	return r;
}

static enum btf_kind
kind_of(struct record r)
{
	return r.info >> 24 & 31;
}

static bool
has_size(enum btf_kind kind)
{
	return kind == BTF_INT || kind == BTF_STRUCT || kind == BTF_UNION || kind == BTF_ENUM ||
	       kind == BTF_ENUM64 || kind == BTF_FLOAT || kind == BTF_DATASEC;
}

struct btf_type
btf_get(const struct btf *btf, uint32_t number)
{
	struct btf_type t = {.name = "", .kind = BTF_VOID};
	struct record r;

	if (number == 0)
		return t;
	r = record(btf, number);
	t.name = btf->names + r.name;
	t.kind = kind_of(r);
	t.flag = r.info >> 31;
	t.count = extra[t.kind].part != 0 ? r.info & 0xffff : 0;
	if (has_size(t.kind))
		t.size = r.size;
	else if (t.kind != BTF_FWD && t.kind != BTF_ARRAY)
		t.to = r.size;
	if (t.kind == BTF_INT)
		t.is_signed = word(btf->types + btf->start[number] + 12) >> 24 & 1;
	if (t.kind == BTF_ARRAY) {
		t.to = word(btf->types + btf->start[number] + 12);
		t.count = word(btf->types + btf->start[number] + 20);
	}
	return t;
}

struct btf_part
btf_get_part(const struct btf *btf, uint32_t number, uint32_t n)
{
	struct record r = record(btf, number);
	enum btf_kind kind = kind_of(r);
	const uint8_t *p = btf->types + btf->start[number] + sizeof(r) + n * extra[kind].part;
	struct btf_part part = {.name = btf->names + (kind == BTF_DATASEC ? 0 : word(p))};
	bool flag = r.info >> 31;

	if (kind == BTF_DATASEC) {
		part.type = word(p);
	} else if (kind == BTF_ENUM) {
		part.value = flag ? (int32_t)word(p + 4) : (int64_t)word(p + 4);
	} else if (kind == BTF_ENUM64) {
		part.value = (int64_t)(word(p + 4) | (uint64_t)word(p + 8) << 32);
	} else {
		part.type = word(p + 4);
	}
	if (kind == BTF_STRUCT || kind == BTF_UNION) {
		part.offset = flag ? word(p + 8) & 0xffffff : word(p + 8);
		part.bits = flag ? word(p + 8) >> 24 : 0;
	}
	return part;
}

static uint32_t
hash(const char *name)
{
	uint32_t h = 0;

	for (; *name != '\0'; name++)
		h = h * 31 + (uint8_t)*name;
	return h % BTF_HASHES;
}

/* Names become quick to find. False: no memory. */
static bool
index_names(struct btf *btf)
{
	btf->next = calloc(btf->count, sizeof(*btf->next));
	for (uint32_t n = btf->count; btf->next != NULL && n-- > 1;) {
		uint32_t *first = &btf->first[hash(btf->names + record(btf, n).name)];

		btf->next[n] = *first;
		*first = n;
	}
	return btf->next != NULL;
}

uint32_t
btf_find(const struct btf *btf, enum btf_kind kind, const char *name)
{
	for (uint32_t n = btf->first[hash(name)]; n != 0; n = btf->next[n]) {
		struct record r = record(btf, n);

		if (kind_of(r) == kind && strcmp(btf->names + r.name, name) == 0)
			return n;
	}
	return 0;
}

void
btf_close(struct btf *btf)
{
	free(btf->start);
	free(btf->next);
	btf->start = btf->next = NULL;
}

/* Finds where each type starts. */
static const char *
index_types(struct btf *btf, uint32_t size)
{
	btf->count = 1;
	for (uint32_t at = 0; at < size;) {
		struct record r;
		uint32_t left = size - at, need;

		if (left < sizeof(r))
			return "its last type is cut off";
		memcpy(&r, btf->types + at, sizeof(r));
		if (kind_of(r) == BTF_VOID || kind_of(r) >= BTF_KINDS)
			return "a type of an unknown kind";
		need = sizeof(r) + extra[kind_of(r)].fixed +
		       (r.info & 0xffff) * extra[kind_of(r)].part;
		if (left < need)
			return "its last type is cut off";
		if (r.name >= btf->names_size)
			return "a name is not among its names";
		if (btf->count >= MAX_TYPES)
			return "too many types";
		ARRAY_ADD(btf->start, btf->count, at);
		at += need;
	}
	return NULL;
}

/* Are the types and names to which this type refers in range? */
static bool
refers_well(const struct btf *btf, uint32_t number)
{
	struct btf_type t = btf_get(btf, number);

	if (t.to >= btf->count)
		return false;
	if ((t.kind == BTF_INT || t.kind == BTF_ENUM || t.kind == BTF_ENUM64) &&
	    (t.size == 0 || t.size > (t.kind == BTF_INT ? 16 : 8) || (t.size & (t.size - 1)) != 0))
		return false;
	if (t.kind == BTF_FUNC && (t.to == 0 || kind_of(record(btf, t.to)) != BTF_FUNC_PROTO))
		return false;
	if (t.kind == BTF_ARRAY)
		return true;
	for (uint32_t n = 0; n < t.count; n++) {
		const uint8_t *p = btf->types + btf->start[number] + 12 + n * extra[t.kind].part;

		if (t.kind != BTF_DATASEC && word(p) >= btf->names_size)
			return false;
		if (btf_get_part(btf, number, n).type >= btf->count)
			return false;
	}
	return true;
}

/* Is the type defined by one other type? Then it is a link of a chain, which must end soon. */
static bool
is_link(enum btf_kind kind)
{
	return kind == BTF_TYPEDEF || kind == BTF_VOLATILE || kind == BTF_CONST ||
	       kind == BTF_RESTRICT || kind == BTF_TYPE_TAG || kind == BTF_ARRAY ||
	       kind == BTF_PTR || kind == BTF_FUNC || kind == BTF_FUNC_PROTO || kind == BTF_VAR;
}

static bool
chain_ends(const struct btf *btf, uint32_t number)
{
	for (unsigned links = 0; links < MAX_CHAIN; links++) {
		struct btf_type t = btf_get(btf, number);

		if (!is_link(t.kind))
			return true;
		number = t.to;
	}
	return false;
}

static const char *
check(struct btf *btf, uint32_t size)
{
	const char *why = index_types(btf, size);

	for (uint32_t n = 1; why == NULL && n < btf->count; n++)
		if (!refers_well(btf, n))
			why = "a type refers to what is not there";
	for (uint32_t n = 1; why == NULL && n < btf->count; n++)
		if (!chain_ends(btf, n))
			why = "a type is defined by itself";
	return why == NULL && !index_names(btf) ? "no memory" : why;
}

const char *
btf_open(struct btf *btf, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	const char *why;
	struct header h;

	*btf = (struct btf){0};
	if (size < sizeof(h))
		return "it is too short";
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != MAGIC || h.version != 1)
		return "it does not begin with BTF's magic number and version 1";
	if (h.header_size < sizeof(h) || h.header_size > size)
		return "its header has a wrong size";
	bytes += h.header_size;
	size -= h.header_size;
	if (h.type_offset > size || h.type_size > size - h.type_offset || h.name_offset > size ||
	    h.name_size > size - h.name_offset || h.type_offset % 4 != 0)
		return "types or names are outside of it";
	btf->types = bytes + h.type_offset;
	btf->names = (const char *)bytes + h.name_offset;
	btf->names_size = h.name_size;
	if (h.name_size == 0 || btf->names[0] != '\0' || btf->names[h.name_size - 1] != '\0')
		return "its names are cut off";
	why = check(btf, h.type_size);
	if (why != NULL)
		btf_close(btf);
	return why;
}
