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

static struct type *
add_integer(const char *name, uint32_t size, bool is_signed)
{
	struct type *t = type_new(T_INT, name, size);

	t->is_signed = is_signed;
	type_add(t);
	return t;
}

static void
add_typedef(const char *name, struct type *to)
{
	struct type *t = type_new(T_TYPEDEF, name, to->size);

	t->to = to;
	type_add(t);
}

void
type_init(const struct btf *btf)
{
	struct type *schar, *uchar, *sshort, *ushort;
	static const char *const longs[] = {"int64_t", "intptr_t", "ssize_t",  "ptrdiff_t",
					    "off_t",   "time_t",   "hrtime_t", "longlong_t"};
	static const char *const ulongs[] = {"uint64_t", "uintptr_t",    "size_t",
					     "ulong_t",  "u_longlong_t", "dev_t"};
	static const char *const ints[] = {"int32_t", "pid_t", "id_t", "zoneid_t", "processorid_t"};
	static const char *const uints[] = {"uint32_t", "uint_t", "uid_t",
					    "gid_t",    "mode_t", "ipaddr_t"};

	names = NULL;
	type_void = type_new(T_VOID, "void", 0);
	type_add(type_void);
	type_char = add_integer("char", 1, true);
	schar = add_integer("signed char", 1, true);
	uchar = add_integer("unsigned char", 1, false);
	sshort = add_integer("short", 2, true);
	ushort = add_integer("unsigned short", 2, false);
	type_int = add_integer("int", 4, true);
	type_uint = add_integer("unsigned int", 4, false);
	type_long = add_integer("long", 8, true);
	type_ulong = add_integer("unsigned long", 8, false);
	add_integer("long long", 8, true);
	add_integer("unsigned long long", 8, false);
	add_integer("_Bool", 1, false);
	type_string = type_new(T_STRING, "string", 0);
	type_add(type_string);
	type_stack = type_new(T_STACK, "stack", 0);
	type_ustack = type_new(T_STACK, "ustack", 0);
	add_typedef("int8_t", schar);
	add_typedef("uint8_t", uchar);
	add_typedef("uchar_t", uchar);
	add_typedef("int16_t", sshort);
	add_typedef("uint16_t", ushort);
	add_typedef("ushort_t", ushort);
	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++)
		add_typedef(ints[i], type_int);
	for (size_t i = 0; i < sizeof(uints) / sizeof(uints[0]); i++)
		add_typedef(uints[i], type_uint);
	for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
		add_typedef(longs[i], type_long);
	for (size_t i = 0; i < sizeof(ulongs) / sizeof(ulongs[0]); i++)
		add_typedef(ulongs[i], type_ulong);
	type_btf_init(btf);
}

static bool
is_tagged(enum type_kind kind)
{
	return kind == T_STRUCT || kind == T_UNION || kind == T_ENUM;
}

struct type *
type_by_name(const char *name)
{
	for (struct type *t = names; t != NULL; t = t->next) {
		if (!is_tagged(t->kind) && strcmp(t->name, name) == 0)
			return t;
	}
	return type_btf_by_name(T_TYPEDEF, name);
}

struct type *
type_by_tag(enum type_kind kind, const char *tag)
{
	for (struct type *t = names; t != NULL; t = t->next) {
		if (t->kind == kind && strcmp(t->name, tag) == 0)
			return t;
	}
	return type_btf_by_name(kind, tag);
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
type_enumerator(const char *name, struct type **type, int64_t *value)
{
	for (struct type *t = names; t != NULL; t = t->next) {
		for (struct member *m = t->kind == T_ENUM ? type_members(t) : NULL; m != NULL;
		     m = m->next) {
			if (strcmp(m->name, name) == 0) {
				*type = t;
				*value = m->value;
				return true;
			}
		}
	}
	return type_btf_enumerator(name, type, value);
}

const char *
type_text(const struct type *type)
{
	static const char *const words[] = {
	    [T_STRUCT] = "struct", [T_UNION] = "union", [T_ENUM] = "enum"};
	const char *stars = "", *sizes = "";

	switch (type->kind) {
	case T_POINTER:
		for (; type->kind == T_POINTER; type = type->to)
			stars = dt_format("*%s", stars);
		if (type->kind == T_FUNCTION)
			return dt_format("%s (%s)()", type_text(type->to), stars);
		if (type->kind == T_ARRAY)
			return dt_format("%s (%s)[%u]", type_text(type->to), stars, type->count);
		return dt_format("%s %s", type_text(type), stars);
	case T_ARRAY:
		for (; type->kind == T_ARRAY; type = type->to)
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
type_is_stringlike(struct type *type)
{
	type = type_base(type);
	if (type->kind == T_STRING)
		return true;
	if (type->kind != T_POINTER && type->kind != T_ARRAY)
		return false;
	type = type_base(type->to);
	return type->kind == T_INT && type->size == 1;
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
