/*
 * type.c - the types of a D program: C's, and `string`.
 *
 * The kernel's are read from BTF when they are first named (type_btf.c).
 */
#include "userland/bin/dtrace/type.h"

#include <stdlib.h>
#include <string.h>

struct type *type_void, *type_char, *type_int, *type_uint, *type_long, *type_ulong, *type_string,
    *type_stack, *type_ustack;

static struct type *names; /* typedefs, basic types, tags: the newest first */

/* The sizes of an array that begin at `text`, the innermost last. */
static struct type *
array_of(struct type *of, const char *text)
{
	char *end;
	unsigned long count;

	if (of == NULL || *text != '[')
		return of;
	count = strtoul(text + 1, &end, 10);
	return *end == ']' && count <= INT32_MAX
		   ? type_array(array_of(of, end + 1), (uint32_t)count)
		   : NULL;
}

struct type *
type_by_text(const char *text)
{
	static const struct {
		const char *word;
		enum type_kind kind;
	} tags[] = {{"struct ", T_STRUCT}, {"union ", T_UNION}, {"enum ", T_ENUM}};
	struct type *type = NULL;
	size_t size = strlen(text);
	unsigned stars = 0;
	char *name;

	if (strncmp(text, "const ", 6) == 0)
		return type_by_text(text + 6);
	if (strchr(text, '[') != NULL)
		return array_of(type_by_text(dt_strndup(text, strcspn(text, "["))),
				strchr(text, '['));
	for (; size > 0 && (text[size - 1] == '*' || text[size - 1] == ' '); size--)
		stars += text[size - 1] == '*';
	name = dt_strndup(text, size);
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		size_t n = strlen(tags[i].word);

		if (strncmp(name, tags[i].word, n) != 0)
			continue;
		type = type_by_tag(tags[i].kind, name + n);
		if (type == NULL) {
			type = type_new(tags[i].kind, name + n, 0);
			type->complete = false;
			type_add(type);
		}
	}
	if (type == NULL)
		type = type_by_name(name);
	for (; type != NULL && stars > 0; stars--)
		type = type_pointer(type);
	return type;
}

struct type *
type_new(enum type_kind kind, const char *name, uint32_t size)
{
	struct type *t = dt_alloc(sizeof(*t));

	t->kind = kind;
	t->name = name;
	t->size = size;
	t->complete = true;
	return t;
}

void
type_add(struct type *type)
{
	type->next = names;
	names = type;
}

/* Integers; for some, where others find them. */
static const struct {
	const char *name;
	uint32_t size;
	bool is_signed;
	struct type **type;
} integers[] = {
    {"char", 1, true, &type_char},
    {"signed char", 1, true, NULL},
    {"unsigned char", 1, false, NULL},
    {"short", 2, true, NULL},
    {"unsigned short", 2, false, NULL},
    {"int", 4, true, &type_int},
    {"unsigned int", 4, false, &type_uint},
    {"long", 8, true, &type_long},
    {"unsigned long", 8, false, &type_ulong},
    {"long long", 8, true, NULL},
    {"unsigned long long", 8, false, NULL},
    {"_Bool", 1, false, NULL},
};

static const struct {
	const char *type, *names;
} typedefs[] = {
    {"signed char", "int8_t"},
    {"unsigned char", "uint8_t uchar_t u_char"},
    {"short", "int16_t"},
    {"unsigned short", "uint16_t ushort_t ushort u_short"},
    {"int", "int32_t boolean_t pid_t id_t zoneid_t processorid_t"},
    {"unsigned int", "uint32_t uint_t uint u_int uid_t gid_t mode_t ipaddr_t"},
    {"long", "int64_t intptr_t ssize_t ptrdiff_t off_t time_t hrtime_t longlong_t"},
    {"unsigned long", "uint64_t uintptr_t size_t ulong_t ulong u_long u_longlong_t dev_t"},
};

void
type_init(const struct btf *btf)
{
	struct type *t;

	names = NULL;
	type_add(type_void = type_new(T_VOID, "void", 0));
	type_add(type_string = type_new(T_STRING, "string", 0));
	type_stack = type_new(T_STACK, "stack", 0);
	type_ustack = type_new(T_STACK, "ustack", 0);
	for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
		t = type_new(T_INT, integers[i].name, integers[i].size);
		t->is_signed = integers[i].is_signed;
		type_add(t);
		if (integers[i].type != NULL)
			*integers[i].type = t;
	}
	for (size_t i = 0; i < sizeof(typedefs) / sizeof(typedefs[0]); i++) {
		char *rest = dt_format("%s", typedefs[i].names), *name;

		while ((name = strsep(&rest, " ")) != NULL)
			type_typedef(name, type_by_name(typedefs[i].type));
	}
	type_btf_init(btf);
}

void
type_typedef(const char *name, struct type *to)
{
	struct type *t = type_new(T_TYPEDEF, name, to->size);

	t->to = to;
	type_add(t);
}

static bool
is_tagged(enum type_kind kind)
{
	return kind == T_STRUCT || kind == T_UNION || kind == T_ENUM;
}

struct type *
type_by_name(const char *name)
{
	for (struct type *t = names; t != NULL; t = t->next)
		if (!is_tagged(t->kind) && strcmp(t->name, name) == 0)
			return t;
	return type_btf_by_name(T_TYPEDEF, name);
}

struct type *
type_by_tag(enum type_kind kind, const char *tag)
{
	for (struct type *t = names; t != NULL; t = t->next)
		if (t->kind == kind && strcmp(t->name, tag) == 0)
			return t;
	return type_btf_by_name(kind, tag);
}

const char *
type_unscoped(const char *text)
{
	const char *tick = strrchr(text, '`');
	const char *scope = tick != NULL ? dt_format(" %.*s ", (int)(tick - text), text) : "";

	if (tick == NULL)
		return text;
	return strstr(" D C kernel unix genunix vmlinux ", scope) != NULL ? tick + 1 : NULL;
}

struct type *
type_pointer(struct type *to)
{
	if (to->pointer == NULL) {
		to->pointer = type_new(T_POINTER, NULL, 8);
		to->pointer->to = to;
	}
	return to->pointer;
}

struct type *
type_array(struct type *of, uint32_t count)
{
	struct type *t = type_new(T_ARRAY, NULL, 0);
	uint64_t size = (uint64_t)type_base(of)->size * count;

	t->to = of;
	t->count = count;
	t->size = size <= INT32_MAX ? (uint32_t)size : INT32_MAX;
	t->flexible = count == 0;
	return t;
}

struct type *
type_base(struct type *type)
{
	while (type->kind == T_TYPEDEF)
		type = type->to;
	return type;
}

struct member *
type_members(struct type *type)
{
	type = type_base(type);
	if (type->btf != 0)
		type_btf_read_members(type);
	return type->members;
}

/* Damaged BTF may have a struct in itself. */
static bool
find_member(struct type *type, const char *name, struct member *found, unsigned depth)
{
	for (struct member *m = type_members(type); m != NULL; m = m->next) {
		if (*m->name == '\0' && type_is_struct(m->type)) {
			if (depth < 16 && find_member(m->type, name, found, depth + 1)) {
				found->offset += m->offset;
				return true;
			}
		} else if (strcmp(m->name, name) == 0) {
			*found = *m;
			return true;
		}
	}
	return false;
}

bool
type_member(struct type *type, const char *name, struct member *found)
{
	return find_member(type, name, found, 0);
}

bool
type_enumerator(const char *name, bool declared, struct type **type, int64_t *value)
{
	for (struct type *t = names; t != NULL; t = t->next) {
		if (t->kind != T_ENUM || (declared && !t->declared))
			continue;
		for (struct member *m = type_members(t); m != NULL; m = m->next)
			if (strcmp(m->name, name) == 0) {
				*type = t;
				*value = m->value;
				return true;
			}
	}
	return !declared && type_btf_enumerator(name, type, value);
}

/* A declarator may leave a typedef without a name. */
static const struct type *
named(const struct type *type)
{
	while (type->kind == T_TYPEDEF && *type->name == '\0')
		type = type->to;
	return type;
}

const char *
type_text(const struct type *type)
{
	static const char *const words[] = {
	    [T_STRUCT] = "struct", [T_UNION] = "union", [T_ENUM] = "enum"};
	const char *stars = "", *sizes = "";

	type = named(type);
	switch (type->kind) {
	case T_POINTER:
		for (; type->kind == T_POINTER; type = named(type->to))
			stars = dt_format("*%s", stars);
		if (type->kind == T_FUNCTION)
			return dt_format("%s (%s)()", type_text(type->to), stars);
		if (type->kind == T_ARRAY)
			return dt_format("%s (%s)[%u]", type_text(type->to), stars, type->count);
		return dt_format("%s %s", type_text(type), stars);
	case T_ARRAY:
		for (; type->kind == T_ARRAY; type = named(type->to))
			sizes = type->flexible ? dt_format("%s[]", sizes)
					       : dt_format("%s[%u]", sizes, type->count);
		return dt_format("%s %s", type_text(type), sizes);
	case T_FUNCTION:
		return dt_format("%s ()", type_text(type->to));
	case T_STRUCT:
	case T_UNION:
	case T_ENUM:
		return dt_format("%s %s", words[type->kind],
				 type->name != NULL && *type->name != 0 ? type->name
									: "(anonymous)");
	default:
		return type->name;
	}
}

bool
type_is_integer(struct type *type)
{
	enum type_kind kind = type_base(type)->kind;

	return kind == T_INT || kind == T_ENUM;
}

bool
type_is_scalar(struct type *type)
{
	return type_is_integer(type) || type_base(type)->kind == T_POINTER;
}

bool
type_is_struct(struct type *type)
{
	enum type_kind kind = type_base(type)->kind;

	return kind == T_STRUCT || kind == T_UNION;
}

bool
type_is_char(struct type *type)
{
	type = type_base(type);
	return type->kind == T_INT &&
	       (strcmp(type->name, "char") == 0 || strcmp(type->name, "signed char") == 0);
}

bool
type_is_stringlike(struct type *type)
{
	type = type_base(type);
	if (type->kind == T_POINTER || type->kind == T_ARRAY)
		return type_is_char(type->to);
	return type->kind == T_STRING;
}

bool
type_is_text(struct type *type)
{
	return type_is_stringlike(type) && type_base(type)->kind != T_POINTER;
}

bool
type_is_bytes(struct type *type)
{
	return type_is_struct(type) || (type_base(type)->kind == T_ARRAY &&
					type_base(type)->size > 0 && !type_is_text(type));
}

uint32_t
type_align(struct type *type)
{
	uint32_t align = 1;

	type = type_base(type);
	if (type->kind == T_ARRAY)
		return type_align(type->to);
	if (!type_is_struct(type))
		return type->size > 0 && type->size <= 8 ? type->size : 1;
	for (struct member *m = type_members(type); m != NULL; m = m->next) {
		uint32_t own = type_align(m->type);

		align = own > align ? own : align;
	}
	return align;
}

bool
type_same(struct type *a, struct type *b)
{
	a = type_base(a);
	b = type_base(b);
	if (a == b)
		return true;
	if (a->kind != b->kind || a->size != b->size)
		return false;
	switch (a->kind) {
	case T_INT:
		return a->is_signed == b->is_signed;
	case T_POINTER:
		return type_same(a->to, b->to);
	case T_ARRAY:
		return a->count == b->count && type_same(a->to, b->to);
	case T_STRUCT:
	case T_UNION:
	case T_ENUM:
		return a->name != NULL && b->name != NULL && strcmp(a->name, b->name) == 0;
	default:
		return true;
	}
}
