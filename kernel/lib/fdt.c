/*
 * fdt.c - nodes, names and properties of flattened device trees.
 *
 * Invariants: only take_token() reads the structure block. It stays inside the block, and each
 * token lies after the one before. So every walk ends, whatever the bytes. A property's length may
 * be wrong: each use checks it. Locking: none; a tree is constant.
 */
#include "kernel/lib/fdt.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"

#define FDT_MAGIC   0xd00dfeed
#define FDT_VERSION 17

/* Header fields, in cells (5.2). */
enum {
	H_MAGIC,
	H_TOTALSIZE,
	H_OFF_STRUCT,
	H_OFF_STRINGS,
	H_OFF_RESERVE,
	H_VERSION,
	H_LAST_COMPATIBLE,
	H_BOOT_CPU,
	H_SIZE_STRINGS,
	H_SIZE_STRUCT,
	H_COUNT
};

enum fdt_kind { FDT_BEGIN_NODE = 1, FDT_END_NODE = 2, FDT_PROP = 3, FDT_NOP = 4, FDT_END = 9 };

struct token {
	enum fdt_kind kind;
	uint32_t at, next;
	const char *name;     /* of a node or property */
	const uint8_t *value; /* of a property */
	uint32_t len;
};

static uint32_t
fdt_align(uint32_t n)
{
	return (n + 3) & ~3u;
}

static bool
take_prop(const struct fdt *f, uint32_t at, struct token *t)
{
	uint32_t name;

	if (f->struct_end - at < 8)
		return false;
	t->len = fdt_cell(f->blob + at);
	name = fdt_cell(f->blob + at + 4);
	at += 8;
	if (t->len > f->struct_end - at || name >= f->strings_end - f->strings_at)
		return false;
	t->name = (const char *)f->blob + f->strings_at + name;
	t->value = f->blob + at;
	t->next = at + fdt_align(t->len);
	return true;
}

/*
 * Reads the token at `at`, or after the NOPs there. False: the block ends, or this is not a token.
 */
static bool
take_token(const struct fdt *f, uint32_t at, struct token *t)
{
	uint32_t length;

	do {
		if (at > f->struct_end || f->struct_end - at < 4)
			return false;
		t->at = at;
		t->kind = fdt_cell(f->blob + at);
		at += 4;
	} while (t->kind == FDT_NOP);
	t->next = at;
	switch (t->kind) {
	case FDT_BEGIN_NODE:
		t->name = (const char *)f->blob + at;
		length = (uint32_t)strnlen(t->name, f->struct_end - at);
		t->next = at + fdt_align(length + 1);
		return length < f->struct_end - at;
	case FDT_PROP:
		return take_prop(f, at, t);
	case FDT_END_NODE:
	case FDT_END:
		return true;
	default:
		return false;
	}
}

/* Checks that the structure block is one correctly nested root with an end token. It ends there. */
static bool
check_structure(struct fdt *f)
{
	uint32_t at = f->struct_at;
	uint32_t last = FDT_BEGIN_NODE;
	unsigned depth = 0;
	struct token t;
	bool root = false;

	for (; take_token(f, at, &t); at = t.next, last = t.kind) {
		if (t.kind == FDT_END) {
			f->struct_end = t.next;
			return root && depth == 0;
		}
		if (t.kind == FDT_BEGIN_NODE) {
			if ((root && depth == 0) || depth == FDT_DEPTH)
				return false;
			root = true;
			depth++;
		} else if (depth == 0 || (t.kind == FDT_PROP && last == FDT_END_NODE)) {
			return false; /* properties come before children: 5.4.2 */
		} else if (t.kind == FDT_END_NODE) {
			depth--;
		}
	}
	return false;
}

int
fdt_open(struct fdt *f, const void *blob, uint64_t max)
{
	uint32_t h[H_COUNT];

	if (max < sizeof(h))
		return -EINVAL;
	for (unsigned i = 0; i < H_COUNT; i++)
		h[i] = fdt_cell((const uint8_t *)blob + i * 4);
	if (h[H_MAGIC] != FDT_MAGIC || h[H_VERSION] < FDT_VERSION ||
	    h[H_LAST_COMPATIBLE] > FDT_VERSION)
		return -EINVAL;
	/* Node numbers are ints, so the size must fit into an int. */
	if (h[H_TOTALSIZE] < sizeof(h) || h[H_TOTALSIZE] > max || h[H_TOTALSIZE] > INT32_MAX)
		return -EINVAL;
	if (h[H_OFF_STRUCT] % 4 != 0 || h[H_OFF_STRUCT] > h[H_TOTALSIZE] ||
	    h[H_SIZE_STRUCT] > h[H_TOTALSIZE] - h[H_OFF_STRUCT] ||
	    h[H_OFF_STRINGS] > h[H_TOTALSIZE] ||
	    h[H_SIZE_STRINGS] > h[H_TOTALSIZE] - h[H_OFF_STRINGS] ||
	    h[H_OFF_RESERVE] > h[H_TOTALSIZE])
		return -EINVAL;
	*f = (struct fdt){
	    .blob = blob,
	    .size = h[H_TOTALSIZE],
	    .reserve_at = h[H_OFF_RESERVE],
	    .struct_at = h[H_OFF_STRUCT],
	    .struct_end = h[H_OFF_STRUCT] + h[H_SIZE_STRUCT],
	    .strings_at = h[H_OFF_STRINGS],
	    .strings_end = h[H_OFF_STRINGS] + h[H_SIZE_STRINGS],
	};
	/* Every name in the block now ends with NUL. */
	while (f->strings_end > f->strings_at && f->blob[f->strings_end - 1] != '\0')
		f->strings_end--;
	return check_structure(f) ? 0 : -EINVAL;
}

static bool
take_node(const struct fdt *f, int node, struct token *t)
{
	return node >= 0 && (uint32_t)node >= f->struct_at && take_token(f, (uint32_t)node, t) &&
	       t->kind == FDT_BEGIN_NODE;
}

int
fdt_next(const struct fdt *f, int node)
{
	struct token t = {.next = f->struct_at};

	if (node >= 0 && !take_node(f, node, &t))
		return -1;
	while (take_token(f, t.next, &t))
		if (t.kind == FDT_BEGIN_NODE)
			return (int)t.at;
	return -1;
}

int
fdt_root(const struct fdt *f)
{
	return fdt_next(f, -1);
}

int
fdt_parent(const struct fdt *f, int node)
{
	struct token t = {.next = f->struct_at};
	int path[FDT_DEPTH];
	unsigned depth = 0;

	while (node >= 0 && take_token(f, t.next, &t) && t.at <= (uint32_t)node) {
		if (t.at == (uint32_t)node)
			return depth > 0 && t.kind == FDT_BEGIN_NODE ? path[depth - 1] : -1;
		if (t.kind == FDT_BEGIN_NODE)
			path[depth++] = (int)t.at;
		else if (t.kind == FDT_END_NODE)
			depth--;
	}
	return -1;
}

int
fdt_first_child(const struct fdt *f, int node)
{
	struct token t;

	if (!take_node(f, node, &t))
		return -1;
	while (take_token(f, t.next, &t) && t.kind == FDT_PROP)
		;
	return t.kind == FDT_BEGIN_NODE ? (int)t.at : -1;
}

int
fdt_next_sibling(const struct fdt *f, int node)
{
	unsigned depth = 1;
	struct token t;

	if (!take_node(f, node, &t))
		return -1;
	while (depth > 0 && take_token(f, t.next, &t)) {
		if (t.kind == FDT_BEGIN_NODE)
			depth++;
		else if (t.kind == FDT_END_NODE)
			depth--;
	}
	return take_token(f, t.next, &t) && t.kind == FDT_BEGIN_NODE ? (int)t.at : -1;
}

const char *
fdt_name(const struct fdt *f, int node)
{
	struct token t;

	return take_node(f, node, &t) ? t.name : "";
}

const void *
fdt_prop(const struct fdt *f, int node, const char *name, uint32_t *len)
{
	struct token t;

	if (!take_node(f, node, &t))
		return NULL;
	while (take_token(f, t.next, &t) && t.kind == FDT_PROP)
		if (strcmp(t.name, name) == 0) {
			*len = t.len;
			return t.value;
		}
	return NULL;
}

bool
fdt_prop_u32(const struct fdt *f, int node, const char *name, uint32_t *value)
{
	uint32_t len;
	const uint8_t *p = fdt_prop(f, node, name, &len);

	if (p == NULL || len != 4)
		return false;
	*value = fdt_cell(p);
	return true;
}

const char *
fdt_prop_string(const struct fdt *f, int node, const char *name)
{
	uint32_t len;
	const char *s = fdt_prop(f, node, name, &len);

	return s != NULL && strnlen(s, len) < len ? s : NULL;
}

bool
fdt_compatible(const struct fdt *f, int node, const char *compatible)
{
	uint32_t len, n;
	const char *s = fdt_prop(f, node, "compatible", &len);

	for (; s != NULL && (n = (uint32_t)strnlen(s, len)) < len; s += n + 1, len -= n + 1)
		if (strcmp(s, compatible) == 0)
			return true;
	return false;
}

bool
fdt_available(const struct fdt *f, int node)
{
	uint32_t len;
	const char *status = fdt_prop_string(f, node, "status");

	if (status == NULL)
		return node >= 0 && fdt_prop(f, node, "status", &len) == NULL;
	return strcmp(status, "okay") == 0 || strcmp(status, "ok") == 0;
}

int
fdt_find_compatible(const struct fdt *f, int after, const char *compatible)
{
	int node = fdt_next(f, after);

	while (node >= 0 && !fdt_compatible(f, node, compatible))
		node = fdt_next(f, node);
	return node;
}

int
fdt_find_device_type(const struct fdt *f, int after, const char *type)
{
	const char *found;
	int node = after;

	do {
		node = fdt_next(f, node);
		found = fdt_prop_string(f, node, "device_type");
	} while (node >= 0 && (found == NULL || strcmp(found, type) != 0));
	return node;
}

int
fdt_phandle(const struct fdt *f, uint32_t phandle)
{
	uint32_t found;
	int node = fdt_root(f);

	while (node >= 0 && !((fdt_prop_u32(f, node, "phandle", &found) ||
			       fdt_prop_u32(f, node, "linux,phandle", &found)) &&
			      found == phandle))
		node = fdt_next(f, node);
	return node;
}

/* The child whose name begins with these n characters and ends, or has a unit address, there. */
static int
child_named(const struct fdt *f, int node, const char *name, size_t n)
{
	for (node = fdt_first_child(f, node); node >= 0; node = fdt_next_sibling(f, node)) {
		const char *found = fdt_name(f, node);

		if (strncmp(found, name, n) == 0 && (found[n] == '\0' || found[n] == '@'))
			break;
	}
	return node;
}

/* Length of the first component of path. */
static size_t
fdt_component_length(const char *path)
{
	size_t n = 0;

	while (path[n] != '\0' && path[n] != '/' && path[n] != ':')
		n++;
	return n;
}

static int
fdt_descend(const struct fdt *f, int node, const char *path)
{
	while (node >= 0 && *path != '\0' && *path != ':') {
		size_t n = fdt_component_length(path);

		if (n > 0)
			node = child_named(f, node, path, n);
		path += n > 0 ? n : 1;
	}
	return node;
}

int
fdt_path(const struct fdt *f, const char *path)
{
	size_t n = fdt_component_length(path);
	struct token t;

	if (*path == '/')
		return fdt_descend(f, fdt_root(f), path);
	if (!take_node(f, child_named(f, fdt_root(f), "aliases", 7), &t))
		return -1;
	while (take_token(f, t.next, &t) && t.kind == FDT_PROP) {
		const char *target = (const char *)t.value;

		if (strncmp(t.name, path, n) != 0 || t.name[n] != '\0')
			continue;
		if (t.len == 0 || strnlen(target, t.len) == t.len || *target != '/')
			return -1;
		return fdt_descend(f, fdt_descend(f, fdt_root(f), target), path + n);
	}
	return -1;
}
