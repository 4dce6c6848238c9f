/*
 * check.h - checks a program: every expression gets a type, and every name a meaning.
 *
 *	comes in:	a clause of the tree, whose probes are known
 *	goes out:	the same clause; of each node the type, and the variable, function,
 *			aggregation or member that it stands for. Constants are computed; inlines,
 *			translators and args[ ] are replaced by expressions without them.
 *
 * In reading order: ident.c has what names mean, with the tables of D's variables and functions;
 * clause.c checks clauses and statements, check.c names, arrays and members, check_op.c and
 * check_unary.c operators, check_call.c functions and aggregations, format.c the formats of
 * printf(), expand.c inlines and translators. probe.c knows the probes and the types of their
 * arguments, symbol.c the kernel's symbols, stable.c how stable the things are that are used.
 */
#pragma once

#include <stdio.h>

#include "kernel/abi/dif.h"
#include "ktr/fmt.h"
#include "userland/bin/dtrace/dt.h"

/* ---- names: ident.c ---- */

extern struct variable *dt_variables;
extern struct aggregation *dt_aggregations;

/* Forgets all variables and aggregations. */
void ident_init(void);
/* The variable, built-in ones included; NULL: there is none of that name. */
struct variable *ident_find(enum scope scope, const char *name);
struct variable *ident_add(enum scope scope, const char *name, struct type *type);
struct aggregation *ident_aggregation(const char *name, struct place at);
const struct function *ident_function(const char *name);
/* "; did you mean NAME?", or "" if no name is near: among D's functions; among its variables and
 * the program's globals. */
const char *ident_suggest_function(const char *name);
const char *ident_suggest_variable(const char *name);
/* The action that a checked node calls; NULL: it calls none. */
const struct function *ident_action(const struct node *n);
/* "self->x" */
const char *ident_text(const struct variable *v);
/*
 * dt_recorded: the program is for a recorded trace (-r), so names that only a running kernel knows
 * are errors. dt_foreign: it is for another kernel (--target), so names that only Kestrel knows
 * are.
 */
extern bool dt_recorded, dt_foreign;
void ident_check_recorded(struct place at, const char *name);

/* ---- clauses and expressions: clause.c, check.c, check_op.c, check_call.c ---- */

/* Begins a program. */
void check_init(void);
/* Finds the types of an expression and of all in it; replaces what is constant by its value. */
void check_expression(struct node *n);
/* check_expression() for what may be a variable that is not known yet: then it has no type. */
void check_place(struct node *n);
void check_variable_size(struct place at, const struct variable *v); /* one that is used */
/* Checks a clause whose probes are known (probe.h). */
void check_clause(struct clause *c);
/* Checks a declaration: `type name`, `self type name`, `type name[types of keys]`. */
void check_declare(struct place at, enum scope scope, const char *name, struct type *type,
		   struct member *keys, bool is_array);
/* Each kind of node, by check_place(). */
void check_assign(struct node *n);
void check_binary(struct node *n);
void check_call(struct node *n);
void check_cast(struct node *n);
void check_comma(struct node *n);
void check_condition(struct node *n);
void check_stringof(struct node *n);
void check_step(struct node *n);  /* ++ and --, before or after a variable */
void check_unary(struct node *n); /* any operator with one operand */
/* @name[keys] = function(arguments) */
void check_aggregate(struct node *n);
/* Finds the types of keys. */
void check_keys_of(struct node *keys);
/* Checks that the keys fit those of a variable or an aggregation; if they are the first, it gets
 * these. tag: of the error if they do not fit; NULL if they are a function's arguments. */
void check_keys(struct place at, const char *what, struct node *keys, struct member **known,
		unsigned *count, bool first, const char *tag);
/* May a value of this node be stored as that type? */
bool check_fits(struct node *n, struct type *type);
/* Makes an integer constant of the node. */
void check_constant(struct node *n, struct type *type, uint64_t value);
/* Makes the node a constant that an operator has computed, with 64 bits. If the value does not fit
 * into the type, it gets a larger type; only an unsigned number below 0 keeps its type. */
void check_computed(struct node *n, struct type *type, uint64_t value);
/* The value, cut and extended as the type says. */
uint64_t check_cut(struct type *type, uint64_t value);
/* The type of an operation on two integers: the wider one's; if they are equally wide, the
 * unsigned one's. */
struct type *check_common(struct type *a, struct type *b);
/* Are two integers compared as signed ones? As in C, where the small ones are int. */
bool check_compares_signed(struct type *a, struct type *b);
bool check_is_string(struct node *n);
/* Makes a string a pointer to its characters. */
void check_characters(struct node **n);
/* Error D_KEY_TYPE if the keys are too many words for the engine. */
void check_key_size(struct place at, const char *what, const struct member *keys);
/* Is the value an address with its program, as of usym()? The engine has two keys for it. */
bool check_is_user_symbol(const struct node *n);
/* Is the node the constant 0, as a number or a pointer? */
bool check_is_null(struct node *n);
/* The type of a variable that holds the value. */
struct type *check_held(struct node *n);
/* The type of argument `number` of all probes of the clause that is checked. */
struct type *check_argument(struct place at, uint64_t number, const char **xlate);
/* The clause that is checked uses the variable: counts it, if it is a time. */
void check_count_time(const struct variable *v);
struct node *check_clone(const struct node *n);
/* Counts expansions from 0. */
void expand_init(void);
/* Puts another node in the place of n, which keeps its place in lists. */
void check_replace(struct node *n, const struct node *by);
/*
 * Checks the expression of an inline, or of a member of a translator, where it is declared. `names`
 * are its parameters. If it does not fit the type, the error has this tag.
 */
void expand_check(const struct node *value, const struct member *names, struct type *type,
		  const char *tag);
/* The inline of that name, with parameters or without; NULL: there is none. */
struct inline_def *expand_find(const char *name, bool is_array);
/* Puts what the inline stands for in the place of n. */
void expand_inline(struct node *n, struct inline_def *def, const struct node *given);
/* The translator of a value to a struct, or to its address; NULL: there is none. */
struct translator *expand_translator(struct type *from, struct type *to);
/* xlate <type> (value) */
void expand_xlate(struct node *n);
/* Replaces a member of what a translator makes by the translator's expression for it. */
void expand_member(struct node *n);
/* Replaces a struct that a translator makes by a variable of the clause with its members. */
void expand_value(struct node *n);

/* How many expressions that are being checked contain each other. */
extern unsigned check_depth;
/* What is checked is an #if of the preprocessor. */
extern bool check_in_if;
/* The operator as it is written. */
const char *check_op_text(uint32_t op);
bool check_is_pointer(struct node *n); /* or an array */
bool check_is_scalar(struct node *n);  /* or an array, whose address it is */
struct type *check_promoted(struct type *type);
/* Is the node a variable or memory? May a program write to it? */
bool check_is_place(struct node *n);
bool check_is_writable(struct node *n);

/* ---- formats of printf() and printa(): format.c ---- */

struct conversion {
	const char *literal; /* text before the conversion */
	size_t literal_size;
	const char *start, *end; /* from % to after the letter */
	char letter;             /* '\0': only the literal text was left */
	bool agg;                /* %@ */
	struct fmt_spec spec;    /* its conv is not used */
};

/*
 * Reads the text before the next conversion, and that conversion. *why becomes what is wrong with
 * it, or NULL. False at the end of the format.
 */
bool format_next(const char **format, struct conversion *c, const char **why);
/* Checks that the format can print the arguments. `printa`: it is one of printa(), whose
 * conversions with @ are for values. */
void format_check(struct node *call, const char *format, struct node *args, bool printa);

/* ---- probes: probe.c ---- */

struct probe {
	struct probe *next;
	struct dif_probe p;
};

/* All probes, in the order of their ids; NULL: they are not known. Asks for them only once. */
struct probe *probe_all(void);
/* Asks again next time: there are more. */
void probe_forget(void);
/* Fills in the first probe from the id p->id on, for probe_all(). False: there is none. */
extern bool (*probe_describe)(struct dif_probe *p);
/* The probes of SDT that the kernel's build has described, for use without a kernel. */
struct probe *probe_described(void);
/* Does a description with four fields, which may be globs, or empty, match the probe? */
bool probe_matches(const char *full, const struct dif_probe *p);
/* The field of the description that does not match the probe. -1: several do not, or none. */
int probe_one_wrong(const char *full, const struct dif_probe *p);
/* Does one of the names mean it? */
bool probe_is_meant(const struct probe_spec *names, const struct dif_probe *p);
/* Is that profile-N or tick-N, a probe that is made when it is named? */
bool probe_is_rate(const char *name);
/* The four fields of a full name. */
void probe_split(const char *full, struct dif_probe *p);
/*
 * Makes a name with all its four fields of a shorter one. `fields` says which field a single word
 * is: 4 for -n (the name), 3 for -f (the function), 2 for -m, 1 for -P. NULL if it has too many
 * fields.
 */
char *probe_full_name(const char *text, unsigned fields);
/* The type of the argument, NULL: not known. *xlate: the type that D shows instead, or NULL. */
struct type *probe_argument(const struct dif_probe *p, uint64_t number, const char **xlate);

/* ---- ends of errors about names that nothing has: suggest.c ---- */

/* "; did you mean NAME?", or "": of next(0), next(1) ... up to NULL. */
const char *suggest_name(const char *wanted, const char *(*next)(size_t i));
/* suggest_name() for a description with four fields, of which all but one match a probe. */
const char *suggest_probe(const char *full);

/* ---- the kernel's functions and variables: symbol.c ---- */

/* Takes the kernel's symbols (kernel/lib/ksyms.h) at data, which has to stay. NULL if they are
 * good; otherwise says why not. */
const char *symbol_open(const void *data, size_t size);
/* The address of a symbol of the kernel, and its type; *type NULL: it is not known. */
bool symbol_find(const char *name, uint64_t *address, struct type **type);
/* The symbol that contains the address; NULL: none. *start: where it begins. */
const char *symbol_at(uint64_t address, uint64_t *start);

/* ---- stability, the guide's attributes: stable.c ---- */

/* How stable a thing is: its name; what it stands for; and on which machines it is there. Higher
 * numbers are better. */
struct attributes {
	uint8_t part[3];
};

enum stable_part { STABLE_PROVIDER, STABLE_MODULE, STABLE_FUNCTION, STABLE_NAME, STABLE_ARGS };

extern const struct attributes stable_best;    /* Stable/Stable/Common */
extern const struct attributes stable_private; /* Private/Private/Unknown */
/* The least stability of what was used so far. */
extern struct attributes stable_used;
/* Not 0: what is used now defines a name of a library, whose stability alone counts. */
extern unsigned stable_hidden;

/* Forgets what pragmas have said, and the minimum. */
void stable_init(void);
struct attributes stable_min(struct attributes a, struct attributes b);
/* The stability of a part of a probe's name, or of its arguments. */
struct attributes stable_of_probe(const char *provider, enum stable_part part);
/* The stability of the fields that a probe's description has, of a provider that it means. */
struct attributes stable_of_description(const struct dif_probe *spec, const char *provider);
/* The stability of the name of a variable or inline. */
struct attributes stable_of_name(const char *name);
/* The program uses a name at this place: D_ATTR_MIN if it is less stable than -x amin. */
void stable_use(struct place at, const char *what, struct attributes a);
/* Sets -x amin. False: the text is not of the form Stable/Private/Common. */
bool stable_set_minimum(const char *text);
/* #pragma D attributes A/B/C NAME, or A/B/C provider PROVIDER PART. False: it has another form. */
bool stable_pragma(char *text, struct place at);
/* D_PRAGMA_UNUSED if a pragma of the program is about a name that nothing has. */
void stable_check_pragmas(void);
void stable_print(FILE *to, const char *heading, struct attributes a);
