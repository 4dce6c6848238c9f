/*
 * parse_type.c - types and declarations, as in C.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/read/read.h"

struct declarator {
	const char *name; /* NULL: none */
	struct type *type;
	bool is_array;       /* D's: name[types] */
	struct member *keys; /* its types; with names, if they are parameters of an inline */
	struct place at;
};

static const char *const basic[] = {"void",     "char",     "short",  "int",    "long", "signed",
				    "unsigned", "_Bool",    "struct", "union",  "enum", "const",
				    "volatile", "restrict", "float",  "double", NULL};

static bool
is_one_of(const char *name, const char *const *words)
{
	for (; *words != NULL; words++) {
		if (strcmp(name, *words) == 0)
			return true;
	}
	return false;
}

bool
parse_is_type(const char *name)
{
	return is_one_of(name, basic) || type_by_name(name) != NULL;
}

bool
parse_at_type(void)
{
	return lex_peek()->kind == TOKEN_NAME && parse_is_type(lex_peek()->text);
}

bool
parse_begins_declaration(const char *name)
{
	static const char *const words[] = {"typedef", "extern", "static", "register",   "auto",
					    "inline",  "self",   "this",   "translator", NULL};

	return is_one_of(name, words) || parse_is_type(name);
}

static struct declarator parse_declarator(struct type *base);
static struct type *parse_specifiers(void);

static void
parse_members(struct type *type)
{
	struct member **last = &type->members;
	uint64_t bit = 0, size = 0, align = 1;

	while (!lex_take('}')) {
		struct type *base = parse_specifiers();

		do {
			struct declarator d = {.name = "", .type = base, .at = lex_peek()->at};
			struct member *m = dt_alloc(sizeof(*m));
			uint64_t unit;

			if (!lex_is(';') && !lex_is(':'))
				d = parse_declarator(base);
			if (lex_take(':'))
				m->bits = (uint8_t)parse_constant("the width of a bit-field");
			unit = type_align(d.type);
			if (d.name == NULL || d.is_array || type_base(d.type)->kind == T_FUNCTION)
				dt_error(d.at, "D_DECL_MEMBER",
					 "this cannot be a member of a struct");
			/* A string has no room in a struct: only translators make such members. */
			if (type_base(d.type)->size == 0 && !type_base(d.type)->flexible &&
			    type_base(d.type)->kind != T_STRING)
				dt_error(d.at, "D_DECL_INCOMPLETE",
					 "%s has no size: it is not defined", type_text(d.type));
			if (m->bits > 8 * type_base(d.type)->size ||
			    (m->bits != 0 && !type_is_integer(d.type)))
				dt_error(d.at, "D_DECL_BFSIZE",
					 "a bit-field of %u bits does not fit into %s", m->bits,
					 type_text(d.type));
			if (m->bits == 0 || bit % (8 * unit) + m->bits > 8 * unit)
				bit = (bit + 8 * unit - 1) / (8 * unit) * (8 * unit);
			if (type->kind == T_UNION)
				bit = 0;
			m->name = d.name;
			m->type = d.type;
			m->offset = (uint32_t)(bit / (8 * unit) * unit);
			m->shift = m->bits != 0 ? (uint8_t)(bit % (8 * unit)) : 0;
			bit += m->bits != 0 ? m->bits : 8 * (uint64_t)type_base(d.type)->size;
			size = (bit + 7) / 8 > size ? (bit + 7) / 8 : size;
			align = unit > align ? unit : align;
			if (size > INT32_MAX / 8)
				dt_error(d.at, "D_DECL_MEMBER", "the struct is too large");
			*last = m;
			last = &m->next;
		} while (lex_take(','));
		lex_expect(';');
	}
	type->size = (uint32_t)((size + align - 1) / align * align);
	type->complete = true;
}

static void
parse_enumerators(struct type *type)
{
	struct member **last = &type->members;
	int64_t value = 0;

	type->complete = true;
	do {
		struct member *m;

		if (lex_is('}'))
			break;
		if (lex_peek()->kind != TOKEN_NAME)
			lex_expected("the name of an enumerator");
		m = dt_alloc(sizeof(*m));
		m->name = lex_next().text;
		if (lex_take('='))
			value = parse_constant("the value of an enumerator");
		m->value = value++;
		m->type = type;
		*last = m;
		last = &m->next;
	} while (lex_take(','));
	lex_expect('}');
}

/* After struct, union or enum. */
static struct type *
parse_tagged(enum type_kind kind)
{
	const char *tag = NULL;
	struct type *type = NULL;
	struct place at = lex_peek()->at;

	if (lex_peek()->kind == TOKEN_NAME)
		tag = lex_next().text;
	else if (!lex_is('{'))
		lex_expected("a tag or '{'");
	if (tag != NULL)
		type = type_by_tag(kind, tag);
	if (!lex_is('{')) {
		if (type == NULL) {
			type = type_new(kind, tag, kind == T_ENUM ? 4 : 0);
			type->complete = false;
			type_add(type);
		}
		return type;
	}
	lex_next();
	if (type != NULL && type->complete)
		dt_error(at, "D_DECL_TYPERED", "%s is defined already", type_text(type));
	if (type == NULL) {
		type = type_new(kind, tag != NULL ? tag : "", kind == T_ENUM ? 4 : 0);
		type->is_signed = true;
		type_add(type);
	}
	if (kind == T_ENUM)
		parse_enumerators(type);
	else
		parse_members(type);
	return type;
}

static const char *const words[] = {"char", "short", "int", "long", "signed", "unsigned"};
enum { CHAR, SHORT, INT, LONG, SIGNED, UNSIGNED, WORDS };

/* What they mean together, which stand so often each. */
static struct type *
basic_type(struct place at, const unsigned n[WORDS])
{
	const char *size = n[CHAR] > 0    ? "char"
			   : n[SHORT] > 0 ? "short"
			   : n[LONG] == 2 ? "long long"
			   : n[LONG] == 1 ? "long"
					  : "int";

	if (n[LONG] > 2 || (n[SIGNED] > 0 && n[UNSIGNED] > 0) ||
	    (n[CHAR] > 0) + (n[SHORT] > 0) + (n[LONG] > 0) > 1 || (n[CHAR] > 0 && n[INT] > 0))
		dt_error(at, "D_DECL_COMBO", "these words do not name a type together");
	if (n[UNSIGNED] > 0)
		return type_by_name(dt_format("unsigned %s", size));
	return type_by_name(n[SIGNED] > 0 && n[CHAR] > 0 ? "signed char" : size);
}

/* The words before a declarator. */
static struct type *
parse_specifiers(void)
{
	static const char *const ignored[] = {"const",  "volatile", "restrict", "extern",
					      "static", "register", "auto",     NULL};
	struct place at = lex_peek()->at;
	struct type *type = NULL;
	unsigned count[WORDS] = {0}, word;
	bool any = false;

	for (;; lex_next()) {
		const struct token *t = lex_peek();

		if (t->kind != TOKEN_NAME)
			break;
		if (is_one_of(t->text, ignored))
			continue;
		if (strcmp(t->text, "float") == 0 || strcmp(t->text, "double") == 0)
			dt_error(t->at, "D_DECL_FLOAT", "found %s, but D has no floating point",
				 t->text);
		for (word = 0; word < WORDS && strcmp(t->text, words[word]) != 0;)
			word++;
		if (word == WORDS)
			break;
		count[word]++;
		any = true;
	}
	if (any)
		type = basic_type(at, count);
	else if (lex_take_name("struct"))
		type = parse_tagged(T_STRUCT);
	else if (lex_take_name("union"))
		type = parse_tagged(T_UNION);
	else if (lex_take_name("enum"))
		type = parse_tagged(T_ENUM);
	else if (lex_peek()->kind == TOKEN_NAME)
		type =
		    type_by_name(lex_peek()->text) != NULL ? type_by_name(lex_next().text) : NULL;
	if (type == NULL)
		lex_expected("a type");
	while (lex_peek()->kind == TOKEN_NAME && is_one_of(lex_peek()->text, ignored))
		lex_next();
	return type;
}

/* A list of types, with or without names, up to the closing token. */
static struct member *
parse_parameters(uint32_t closing)
{
	struct member *first = NULL, **last = &first;

	if (lex_take(closing))
		return NULL;
	do {
		struct declarator d;

		if (lex_take(OP3('.', '.', '.')))
			break;
		d = parse_declarator(parse_specifiers());
		*last = dt_alloc(sizeof(**last));
		(*last)->name = d.name != NULL ? d.name : "";
		(*last)->type = d.type;
		last = &(*last)->next;
	} while (lex_take(','));
	lex_expect(closing);
	return first;
}

static struct type *
function_type(struct type *returned, struct member *parameters)
{
	struct type *t = type_new(T_FUNCTION, NULL, 1);

	t->to = returned;
	t->members = parameters;
	if (parameters != NULL && parameters->next == NULL && parameters->type == type_void)
		t->members = NULL;
	return t;
}

/* [..] and (..) after a name; an array's innermost size comes last. */
static struct type *
parse_suffixes(struct type *base, struct declarator *d)
{
	if (lex_is('(')) {
		lex_next();
		return function_type(base, parse_parameters(')'));
	}
	if (!lex_take('['))
		return base;
	if (parse_at_type()) {
		d->is_array = true;
		d->keys = parse_parameters(']');
		return base;
	}
	if (lex_take(']')) {
		struct type *array = type_array(parse_suffixes(base, d), 0);
		return array;
	}
	struct place at = lex_peek()->at;
	int64_t count = parse_constant("the size of an array");

	if (count < 0 || count > INT32_MAX)
		dt_error(at, "D_DECL_ARRSUB", "found size %ld of an array", (long)count);
	lex_expect(']');
	return type_array(parse_suffixes(base, d), (uint32_t)count);
}

static struct declarator
parse_declarator(struct type *base)
{
	struct declarator d = {.type = base, .at = lex_peek()->at};

	parse_descend();
	while (lex_take('*')) {
		base = type_pointer(base);
		while (lex_take_name("const") || lex_take_name("volatile") ||
		       lex_take_name("restrict"))
			;
	}
	if (lex_is('(') && lex_peek2()->kind == TOKEN_OP &&
	    (lex_peek2()->op == '*' || lex_peek2()->op == '(')) {
		/* The inner one is about a type that stands after it: a place for that. */
		struct type *hole = type_new(T_TYPEDEF, "", 0);

		lex_next();
		hole->to = type_void;
		d = parse_declarator(hole);
		lex_expect(')');
		hole->to = parse_suffixes(base, &d);
		hole->size = hole->to->size;
		if (hole->to->kind == T_TYPEDEF && hole->to->to == hole)
			dt_error(d.at, "D_DECL_COMBO", "this declares nothing");
	} else {
		if (lex_peek()->kind == TOKEN_NAME)
			d.name = lex_next().text;
		d.type = parse_suffixes(base, &d);
	}
	parse_ascend();
	return d;
}

struct type *
parse_type_name(void)
{
	struct declarator d = parse_declarator(parse_specifiers());

	if (d.name != NULL || d.is_array)
		dt_error(d.at, "D_SYNTAX",
			 "syntax error near \"%s\": expected a type without a name",
			 d.name != NULL ? d.name : "[");
	return d.type;
}

/* After `inline`. */
static void
parse_inline(void)
{
	struct declarator d = parse_declarator(parse_specifiers());
	struct inline_def *def = dt_alloc(sizeof(*def));

	if (d.name == NULL)
		dt_error(d.at, "D_DECL_IDRED", "an inline needs a name");
	lex_expect('=');
	def->name = d.name;
	def->type = d.type;
	def->is_array = d.is_array;
	def->parameters = d.keys;
	def->body = parse_expression();
	def->library = dt_program.in_library;
	def->next = dt_program.inlines;
	dt_program.inlines = def;
	lex_expect(';');
}

/* After `translator`: to < from name > { member = expression; ... }; */
static void
parse_translator(void)
{
	struct translator *t = dt_alloc(sizeof(*t));
	struct translator_member **last = &t->members;
	struct declarator d;
	struct place at = lex_peek()->at;

	t->to = parse_type_name();
	if (!type_is_struct(t->to))
		dt_error(at, "D_XLATE_SOU", "%s is not a struct or union", type_text(t->to));
	lex_expect('<');
	d = parse_declarator(parse_specifiers());
	lex_expect('>');
	t->from = d.type;
	t->name = d.name != NULL ? d.name : "";
	lex_expect('{');
	while (!lex_take('}')) {
		struct translator_member *m = dt_alloc(sizeof(*m));
		struct member found;

		m->at = lex_peek()->at;
		if (lex_peek()->kind != TOKEN_NAME)
			lex_expected("the name of a member");
		m->name = lex_next().text;
		if (!type_member(t->to, m->name, &found))
			dt_error(m->at, "D_XLATE_MEMB", "%s has no member %s", type_text(t->to),
				 m->name);
		lex_expect('=');
		m->value = parse_expression();
		lex_expect(';');
		*last = m;
		last = &m->next;
	}
	lex_expect(';');
	t->library = dt_program.in_library;
	t->next = dt_program.translators;
	dt_program.translators = t;
}

void
parse_declaration(void)
{
	enum scope scope = SCOPE_GLOBAL;
	bool is_typedef = false;
	struct type *base;

	if (lex_take_name("inline")) {
		parse_inline();
		return;
	}
	if (lex_take_name("translator")) {
		parse_translator();
		return;
	}
	if (lex_take_name("self"))
		scope = SCOPE_SELF;
	else if (lex_take_name("this"))
		scope = SCOPE_THIS;
	else
		is_typedef = lex_take_name("typedef");
	base = parse_specifiers();
	if (lex_take(';')) /* only a struct or enum */
		return;
	do {
		struct declarator d = parse_declarator(base);

		if (d.name == NULL)
			lex_expected("a name");
		if (is_typedef) {
			struct type *known = type_by_name(d.name);

			if (d.is_array || (known != NULL && !type_same(known, d.type)))
				dt_error(d.at, "D_DECL_TYPERED", "%s is defined already, as %s",
					 d.name, known != NULL ? type_text(type_base(known)) : "");
			type_typedef(d.name, d.type);
		} else {
			check_declare(d.at, scope, d.name, d.type, d.keys, d.is_array);
		}
	} while (lex_take(','));
	lex_expect(';');
}
