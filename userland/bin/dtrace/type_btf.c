/*
 * type_btf.c - makes D's types of the kernel's, when they are named.
 */
#include <string.h>

#include "userland/bin/dtrace/btf.h"
#include "userland/bin/dtrace/type.h"

static const struct btf *btf;
static struct type **known;        /* by number */
static const char *variables = ""; /* NAME TYPE, a line each */

void
type_btf_init(const struct btf *b)
{
	btf = b;
	known = b != NULL ? dt_alloc(b->count * sizeof(*known)) : NULL;
}

static enum btf_kind
btf_kind_of(enum type_kind kind)
{
	return kind == T_STRUCT  ? BTF_STRUCT
	       : kind == T_UNION ? BTF_UNION
	       : kind == T_ENUM  ? BTF_ENUM
				 : BTF_TYPEDEF;
}

static struct type *
of_number(uint32_t n)
{
	struct btf_type b;
	struct type *t;

	if (n == 0)
		return type_void;
	if (known[n] != NULL)
		return known[n];
	b = btf_get(btf, n);
	switch (b.kind) {
	case BTF_INT: /* D has none of 16 bytes */
		t = type_new(b.size <= 8 ? T_INT : T_STRUCT, b.name, b.size);
		t->is_signed = b.is_signed;
		break;
	case BTF_FLOAT: /* a type with a size, with which D does nothing */
		t = type_new(T_STRUCT, b.name, b.size);
		break;
	case BTF_PTR:
		/* It is entered before its target is read, since that may refer back to it. */
		t = known[n] = type_new(T_POINTER, NULL, 8);
		t->to = of_number(b.to);
		return t;
	case BTF_ARRAY:
		t = type_array(of_number(b.to), b.count);
		break;
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_ENUM:
	case BTF_ENUM64:
		t = type_new(b.kind == BTF_STRUCT  ? T_STRUCT
			     : b.kind == BTF_UNION ? T_UNION
						   : T_ENUM,
			     *b.name != '\0' ? b.name : NULL, b.size);
		t->is_signed = b.flag;
		t->btf = n;
		break;
	case BTF_FWD:
		t = type_new(b.flag ? T_UNION : T_STRUCT, b.name, 0);
		t->complete = false;
		break;
	case BTF_TYPEDEF:
		t = type_new(T_TYPEDEF, b.name, 0);
		t->to = of_number(b.to);
		t->size = t->to->size;
		break;
	case BTF_FUNC_PROTO:
		t = known[n] = type_new(T_FUNCTION, NULL, 1);
		t->btf = n;
		t->to = of_number(b.to);
		return t;
	case BTF_FUNC:
	case BTF_VAR:
	case BTF_VOLATILE:
	case BTF_CONST:
	case BTF_RESTRICT:
	case BTF_TYPE_TAG:
		t = of_number(b.to);
		break;
	default:
		t = type_void;
	}
	known[n] = t;
	return t;
}

struct type *
type_btf_by_name(enum type_kind kind, const char *name)
{
	uint32_t n = btf != NULL ? btf_find(btf, btf_kind_of(kind), name) : 0;

	return n != 0 ? of_number(n) : NULL;
}

struct type *
type_function(const char *name)
{
	uint32_t n = btf != NULL ? btf_find(btf, BTF_FUNC, name) : 0;

	return n != 0 ? of_number(n) : NULL;
}

void
type_variables(const char *text)
{
	variables = text;
}

const char *
type_next_probe(const char *line)
{
	line = line == NULL ? variables : line + strcspn(line, "\n") + 1;
	return *line == ':' ? line : NULL;
}

struct type *
type_variable(const char *name)
{
	size_t size = strlen(name);

	for (const char *line = variables; *line != '\0'; line += strcspn(line, "\n") + 1) {
		if (strncmp(line, name, size) == 0 && line[size] == ' ')
			return type_by_text(
			    dt_strndup(line + size + 1, strcspn(line + size + 1, "\n")));
		if (line[strcspn(line, "\n")] == '\0')
			break;
	}
	return NULL;
}

void
type_btf_read_members(struct type *type)
{
	uint32_t n = type->btf;
	struct btf_type b = btf_get(btf, n);
	struct member **last = &type->members;

	type->btf = 0;
	for (uint32_t i = 0; i < b.count; i++) {
		struct btf_part part = btf_get_part(btf, n, i);
		struct member *m = dt_alloc(sizeof(*m));
		uint32_t unit;

		m->name = part.name;
		m->value = part.value;
		m->type = type->kind == T_ENUM ? type : of_number(part.type);
		m->bits = part.bits;
		m->offset = part.offset / 8;
		unit = type_base(m->type)->size;
		if (m->bits != 0 && unit != 0) {
			m->offset = part.offset / 8 / unit * unit;
			m->shift = (uint8_t)(part.offset - 8 * m->offset);
			if (m->bits + m->shift > 8 * unit || unit > 8)
				m->bits = 0; /* not as C has them */
		}
		*last = m;
		last = &m->next;
	}
}

bool
type_btf_enumerator(const char *name, struct type **type, int64_t *value)
{
	for (uint32_t n = 1; btf != NULL && n < btf->count; n++) {
		struct btf_type b = btf_get(btf, n);

		for (uint32_t i = 0; (b.kind == BTF_ENUM || b.kind == BTF_ENUM64) && i < b.count;
		     i++) {
			struct btf_part part = btf_get_part(btf, n, i);

			if (strcmp(part.name, name) == 0) {
				*type = of_number(n);
				*value = part.value;
				return true;
			}
		}
	}
	return false;
}
