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
	struct member *keys; /* of its keys; with names, if they are an inline's parameters */
	struct place at;
};

static const char *const basic[] = {"void",     "char",     "short",  "int",    "long", "signed",
				    "unsigned", "_Bool",    "struct", "union",  "enum", "const",
				    "volatile", "restrict", "float",  "double", NULL};

static bool
is_one_of(const char *name, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(name, *words) == 0)
			return true;
	return false;
}

static bool
is_type(const char *name)
{
	return is_one_of(name, basic) || type_by_name(name) != NULL;
}

/* The type that a name with a scope stands for; NULL: none. */
static struct type *
scoped_type(const struct token *t)
{
	const char *name = t->kind == TOKEN_EXTERN ? type_unscoped(t->text) : NULL;

	return name != NULL && strchr(t->text, '`') != NULL ? type_by_name(name) : NULL;
}

bool
parse_begins_type(const struct token *t)
{
	return t->kind == TOKEN_NAME ? is_type(t->text) : scoped_type(t) != NULL;
}

bool
parse_begins_declaration(const char *name)
{
	static const char *const words[] = {"typedef", "extern", "static", "register",   "auto",
					    "inline",  "self",   "this",   "translator", NULL};

	return is_one_of(name, words) || is_type(name);
}

static struct declarator parse_declarator(struct type *base);
static struct type *parse_specifiers(void);

static void
parse_members(struct type *type)
{
	struct member **last = &type->members;
	uint64_t bit = 0, size = 0, align = 1;

	parse_descend();
	while (!lex_take('}')) {
		struct type *base = parse_specifiers();

		do {
			struct declarator d = {.name = "", .type = base, .at = lex_peek()->at};
			struct member *m = dt_alloc(sizeof(*m));
			uint64_t unit, room;
			int64_t bits = -1;

			if (!lex_is(';') && !lex_is(':'))
				d = parse_declarator(base);
			if (lex_take(':'))
				bits = parse_constant("the width of a bit-field", "D_DECL_BFCONST");
			unit = type_align(d.type);
			if (d.name == NULL || d.is_array || type_base(d.type)->kind == T_FUNCTION)
				dt_error(d.at, "D_DECL_VOIDOBJ",
					 "this cannot be a member of a struct");
			for (struct member *i = type->members; i != NULL && *d.name != '\0';
			     i = i->next) {
				if (strcmp(i->name, d.name) == 0)
					dt_error(d.at, "D_UNKNOWN", "%s is a member already",
						 d.name);
			}
			room = type_base(d.type)->size;
			if (type_base(d.type)->kind == T_STRING)
				room = dt_strsize + 1; /* as it is here: it may change */
			if (room == 0 && !type_base(d.type)->flexible)
				dt_error(d.at, "D_DECL_INCOMPLETE",
					 "%s has no size: it is not defined", type_text(d.type));
			if (bits != -1 && !type_is_integer(d.type))
				dt_error(d.at, "D_DECL_BFTYPE", "%s cannot be a bit-field",
					 type_text(d.type));
			if (bits > 8 * (int64_t)type_base(d.type)->size || bits < -1 || bits == 0)
				dt_error(d.at, bits <= 0 ? "D_DECL_BFCONST" : "D_DECL_BFSIZE",
					 "a bit-field of %ld bits cannot be in %s", (long)bits,
					 type_text(d.type));
			m->bits = bits > 0 ? (uint8_t)bits : 0;
			if (m->bits == 0 || bit % (8 * unit) + m->bits > 8 * unit)
				bit = (bit + 8 * unit - 1) / (8 * unit) * (8 * unit);
			if (type->kind == T_UNION)
				bit = 0;
			m->name = d.name;
			m->type = d.type;
			m->value = (int64_t)room;
			m->offset = (uint32_t)(bit / (8 * unit) * unit);
			m->shift = m->bits != 0 ? (uint8_t)(bit % (8 * unit)) : 0;
			bit += m->bits != 0 ? m->bits : 8 * room;
			size = (bit + 7) / 8 > size ? (bit + 7) / 8 : size;
			align = unit > align ? unit : align;
			if (size > INT32_MAX / 8)
				dt_error(d.at, "D_DECL_MEMBER", "the struct is too large");
			*last = m;
			last = &m->next;
		} while (lex_take(','));
		lex_expect(';');
	}
	parse_ascend();
	type->size = (uint32_t)((size + align - 1) / align * align);
	type->complete = true;
}

static void
parse_enumerators(struct type *type)
{
	struct member **last = &type->members;
	int64_t value = 0, known;
	struct type *other;
	struct place at;

	type->complete = type->declared = true;
	do {
		struct member *m;

		if (lex_is('}'))
			break;
		if (lex_peek()->kind != TOKEN_NAME)
			lex_expected("the name of an enumerator");
		m = dt_alloc(sizeof(*m));
		at = lex_peek()->at;
		m->name = lex_next().text;
		if (type_enumerator(m->name, true, &other, &known))
			dt_error(at, other == type ? "D_UNKNOWN" : "D_DECL_IDRED",
				 "%s is an enumerator already", m->name);
		if (lex_take('='))
			value = parse_constant("the value of an enumerator", "D_DECL_ENCONST");
		if (value != (int32_t)value)
			dt_error(at, "D_DECL_ENOFLOW", "%s: %ld does not fit into int", m->name,
				 (long)value);
		m->value = value++;
		m->type = type;
		*last = m;
		last = &m->next;
	} while (lex_take(','));
	lex_expect('}');
}

/* A type that begins with struct, union or enum. */
static struct type *
parse_tagged(enum type_kind kind)
{
	const char *tag = NULL;
	struct type *type = NULL;
	struct place at = lex_peek()->at;

	lex_next();
	if (lex_peek()->kind == TOKEN_EXTERN &&
	    !(lex_peek2()->kind == TOKEN_OP && lex_peek2()->op == '{')) {
		tag = type_unscoped(lex_peek()->text);
		if (tag == NULL)
			dt_error(at, "D_DECL_SCOPE", "%s: expected D, C or kernel before the `",
				 lex_peek()->text);
		lex_next();
	} else if (lex_peek()->kind == TOKEN_NAME) {
		tag = lex_next().text;
	} else if (!lex_is('{')) {
		lex_expected("a tag or '{'");
	}
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

/* struct, union or enum */
static bool
is_tag(const struct token *t)
{
	static const char *const tags[] = {"struct", "union", "enum", NULL};

	return t->kind == TOKEN_NAME && is_one_of(t->text, tags);
}

static const char *const words[] = {"char", "short", "int", "long", "signed", "unsigned"};
enum { CHAR, SHORT, INT, LONG, SIGNED, UNSIGNED, WORDS };

/* Says what specifiers, of which each stands so often, mean together. */
static struct type *
basic_type(struct place at, const unsigned n[WORDS])
{
	const char *size = n[CHAR] > 0    ? "char"
			   : n[SHORT] > 0 ? "short"
			   : n[LONG] == 2 ? "long long"
			   : n[LONG] == 1 ? "long"
					  : "int";

	bool sized = n[SHORT] > 0 || n[LONG] > 0, is_char = n[CHAR] > 0;

	if (n[LONG] > 2 || n[SHORT] > 1 || n[SIGNED] + n[UNSIGNED] > 1 || n[INT] > 1 ||
	    n[CHAR] > 1 || (n[SHORT] > 0 && n[LONG] > 0) || (is_char && (sized || n[INT] > 0)))
		dt_error(at,
			 is_char && sized              ? "D_DECL_CHARATTR"
			 : n[SHORT] > 0 && n[LONG] > 0 ? "D_UNKNOWN"
						       : "D_DECL_COMBO",
			 "these words do not name a type together");
	if (lex_is_name("void") || is_tag(lex_peek()))
		dt_error(at,
			 lex_is_name("void")                ? "D_DECL_VOIDATTR"
			 : n[SIGNED] > 0 || n[UNSIGNED] > 0 ? "D_DECL_SIGNINT"
							    : "D_DECL_LONGINT",
			 "%s has no sign and no other size", lex_peek()->text);
	if (n[UNSIGNED] > 0)
		return type_by_name(dt_format("unsigned %s", size));
	return type_by_name(n[SIGNED] > 0 && n[CHAR] > 0 ? "signed char" : size);
}

/* The storage class that the last specifiers had; NULL: none. */
static const char *storage;

/* The words before a declarator. */
static struct type *
parse_specifiers(void)
{
	static const char *const ignored[] = {"const", "volatile", "restrict", NULL};
	static const char *const classes[] = {"typedef", "extern", "static", "register",
					      "auto",    "self",   "this",   NULL};
	struct place at = lex_peek()->at;
	struct type *type = NULL;
	unsigned count[WORDS] = {0}, word;
	bool any = false;
	const char *class = NULL;

	for (;; lex_next()) {
		const struct token *t = lex_peek();

		if (t->kind != TOKEN_NAME)
			break;
		if (is_one_of(t->text, ignored))
			continue;
		if (is_one_of(t->text, classes)) {
			if (class != NULL)
				dt_error(t->at, "D_DECL_CLASS", "found %s after %s", t->text,
					 class);
			class = t->text;
			continue;
		}
		if (strcmp(t->text, "float") == 0 || strcmp(t->text, "double") == 0) {
			const struct token *after = lex_peek2();

			dt_error(t->at,
				 after->kind == TOKEN_NAME && is_one_of(after->text, basic)
				     ? "D_DECL_COMBO"
				 : after->kind == TOKEN_OP && after->op == ':' ? "D_DECL_BFTYPE"
									       : "D_DECL_FLOAT",
				 "found %s, but D has no floating point", t->text);
		}
		for (word = 0; word < WORDS && strcmp(t->text, words[word]) != 0;)
			word++;
		if (word == WORDS)
			break;
		count[word]++;
		any = true;
	}
	if (any)
		type = basic_type(at, count);
	else if (is_tag(lex_peek()))
		type = parse_tagged(*lex_peek()->text == 's'   ? T_STRUCT
				    : *lex_peek()->text == 'u' ? T_UNION
							       : T_ENUM);
	else if (lex_peek()->kind == TOKEN_NAME && type_by_name(lex_peek()->text) != NULL)
		type = type_by_name(lex_next().text);
	else if (scoped_type(lex_peek()) != NULL)
		type = scoped_type(lex_peek()), lex_next();
	else if (class != NULL)
		type = type_int;
	if (type == NULL)
		lex_expected("a type");
	while (lex_peek()->kind == TOKEN_NAME && is_one_of(lex_peek()->text, ignored))
		lex_next();
	if (lex_peek()->kind == TOKEN_NAME && is_one_of(lex_peek()->text, basic))
		dt_error(at, "D_DECL_COMBO", "found %s after %s", lex_peek()->text,
			 type_text(type));
	storage = class;
	return type;
}

/* A list of types, with or without names, up to the closing token. */
static struct member *
parse_parameters(uint32_t closing)
{
	struct member *first = NULL, **last = &first;
	struct place at;
	bool is_void = false;

	if (lex_take(closing))
		return NULL;
	do {
		struct declarator d;

		at = lex_peek()->at;
		if (lex_take(OP3('.', '.', '.'))) {
			if (closing == ']')
				dt_error(at, "D_DECL_PROTO_VARARGS",
					 "found ... among types of keys");
			break;
		}
		d = parse_declarator(parse_specifiers());
		is_void |= d.type == type_void;
		if (storage != NULL)
			dt_error(at, "D_DECL_PARMCLASS", "found %s in a parameter's type", storage);
		if (d.is_array || (is_void && closing == ']'))
			dt_error(at, "D_DECL_PROTO_TYPE", "this cannot be the type of a parameter");
		if (is_void && (d.name != NULL || first != NULL))
			dt_error(at, d.name != NULL ? "D_DECL_PROTO_NAME" : "D_DECL_PROTO_VOID",
				 "void stands alone, or there are parameters");
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

/* Reads [..] and (..) after a name; an array's innermost size comes last. */
static struct type *
parse_suffixes(struct type *base, struct declarator *d)
{
	struct type *type;

	if (lex_is('(')) {
		lex_next();
		return function_type(base, parse_parameters(')'));
	}
	if (!lex_take('['))
		return base;
	if (parse_begins_type(lex_peek()) || lex_is(OP3('.', '.', '.'))) {
		d->is_array = true;
		d->keys = parse_parameters(']');
		return base;
	}
	parse_descend();
	if (lex_take(']')) {
		type = type_array(parse_suffixes(base, d), 0);
		parse_ascend();
		return type;
	}
	struct place at = lex_peek()->at;
	int64_t count = parse_constant("the size of an array", "D_DECL_ARRSUB");

	if (count < 0 || count > INT32_MAX)
		dt_error(at, count < 0 ? "D_DECL_ARRSUB" : "D_DECL_ARRBIG",
			 "found size %ld of an array", (long)count);
	lex_expect(']');
	type = type_array(parse_suffixes(base, d), (uint32_t)count);
	parse_ascend();
	return type;
}

static struct declarator
parse_declarator(struct type *base)
{
	struct declarator d = {.type = base, .at = lex_peek()->at};
	unsigned stars = 0;

	parse_descend();
	for (; lex_take('*'); stars++) {
		parse_descend();
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
		if (lex_peek()->kind == TOKEN_EXTERN)
			dt_error(d.at, "D_DECL_SCOPE", "`%s: D declares no names of the kernel",
				 lex_peek()->text);
		if (lex_peek()->kind == TOKEN_NAME)
			d.name = lex_next().text;
		d.type = parse_suffixes(base, &d);
	}
	for (; stars > 0; stars--)
		parse_ascend();
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
	if (expand_find(d.name, false) != NULL || expand_find(d.name, true) != NULL ||
	    ident_find(SCOPE_GLOBAL, d.name) != NULL || ident_function(d.name) != NULL)
		dt_error(d.at, "D_DECL_IDRED", "identifier redeclared: %s", d.name);
	lex_expect('=');
	def->name = d.name;
	def->type = d.type;
	def->is_array = d.is_array;
	def->parameters = d.keys;
	def->body = parse_expression();
	def->library = dt_program.in_library;
	if (!def->library)
		expand_check(def->body, d.keys, def->type, "D_OP_INCOMPAT");
	def->next = dt_program.inlines;
	dt_program.inlines = def;
	lex_expect(';');
}

/* Reads after `translator`: to < from name > { member = expression; ... }; */
static void
parse_translator(void)
{
	struct translator *t = dt_alloc(sizeof(*t));
	struct translator_member **last = &t->members;
	struct declarator d;
	struct place at = lex_peek()->at;
	struct member input = {.name = ""};

	t->to = parse_specifiers();
	if (!type_is_struct(t->to) || (!type_base(t->to)->complete && type_members(t->to) == NULL))
		dt_error(at, "D_XLATE_SOU", "%s is not a struct or union that is defined",
			 type_text(t->to));
	lex_expect('<');
	d = parse_declarator(parse_specifiers());
	lex_expect('>');
	t->from = d.type;
	t->name = input.name = d.name != NULL ? d.name : "";
	input.type = t->from;
	if (expand_translator(t->from, t->to) != NULL)
		dt_error(at, "D_XLATE_REDECL", "there is a translator from %s to %s already",
			 type_text(t->from), type_text(t->to));
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
		if (!dt_program.in_library)
			expand_check(m->value, &input, found.type, "D_XLATE_INCOMPAT");
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
	struct place at = lex_peek()->at;
	const char *class;
	bool is_typedef;
	struct type *base;

	if (lex_take_name("inline")) {
		parse_inline();
		return;
	}
	if (lex_take_name("translator")) {
		parse_translator();
		return;
	}
	base = parse_specifiers();
	class = storage != NULL ? storage : "";
	if (strcmp(class, "self") == 0)
		scope = SCOPE_SELF;
	else if (strcmp(class, "this") == 0)
		scope = SCOPE_THIS;
	else if (*class == 's' || *class == 'r' || *class == 'a')
		dt_error(at, "D_DECL_BADCLASS", "%s has no meaning in D", class);
	is_typedef = strcmp(class, "typedef") == 0;
	if (lex_is(';') && !type_is_struct(base) && base->kind != T_ENUM)
		dt_error(at, "D_DECL_USELESS", "this declares nothing");
	if (lex_take(';')) /* only a struct or enum */
		return;
	do {
		struct declarator d = parse_declarator(base);

		if (d.name == NULL)
			lex_expected("a name");
		if (is_typedef) {
			struct type *known = type_by_name(d.name);

			if (d.is_array || (known != NULL && !type_same(known, d.type)))
				dt_error(d.at, "D_DECL_IDRED", "%s is defined already, as %s",
					 d.name, known != NULL ? type_text(type_base(known)) : "");
			type_typedef(d.name, d.type);
		} else if (d.type->kind != T_FUNCTION) {
			if (d.type->flexible && *class != 'e')
				dt_error(d.at, "D_DECL_ARRNULL", "%s[ ]: found no size", d.name);
			if (!d.type->flexible) /* otherwise its size is declared elsewhere */
				check_declare(d.at, scope, d.name, d.type, d.keys, d.is_array);
		}
	} while (lex_take(','));
	lex_expect(';');
}
