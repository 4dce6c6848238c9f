/*
 * dt.h - what all parts of dtrace share: memory, errors, types, and the tree of a program.
 *
 * A text of D goes through these rooms, each of which has a header that says how:
 *
 *	read/	characters -> tokens -> a tree (struct program); with -C, the preprocessor first
 *	check/	the tree gets its types; names, inlines and translators become what they mean
 *	gen/	the tree -> an image (kernel/abi/dif.h), and what its consumer needs to print
 *	run/	the image -> the kernel; records and aggregations of the kernel -> text
 *
 * compile.c calls the first three in turn, main.c the last. Here are the operators, the options,
 * the files that are read, and the types (type.c, which takes those of the kernel from BTF).
 *
 * One program is compiled at a time, by one thread. All memory of the compiler is freed at once
 * (dt_release()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory and errors: error.c ---- */

struct place {
	const char *file; /* NULL: the command line */
	uint32_t line;
};

/* Allocates zeroed memory until dt_release(). Ends the program if there is none. */
void *dt_alloc(size_t size);
char *dt_strndup(const char *text, size_t size);
char *dt_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Frees all that dt_alloc() gave. */
void dt_release(void);
/*
 * Says what is wrong at a place of the program, and does not return. The tag is the guide's.
 * dt_region, if not NULL, says where it is in a program of the command line, as "action list".
 */
_Noreturn void dt_error(struct place at, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
extern const char *dt_region;
/* What dt_error() begins with: "failed to compile script x.d". */
extern const char *dt_context;
/* Is called at the end of dt_error() and must not return. By default it exits with status 1. */
extern void (*dt_fail)(const char *message);

/* Bytes that grow. */
struct buffer {
	uint8_t *data;
	size_t size, room;
};

/* Adds bytes (NULL: zeroes) to a buffer; returns where they are, until the next call. */
void *buffer_add(struct buffer *b, const void *data, size_t size);

/* ---- types: type.c, type_btf.c ---- */

enum type_kind {
	T_VOID,
	T_INT,
	T_POINTER,
	T_ARRAY,
	T_STRUCT, /* size 0 and no members: only declared */
	T_UNION,
	T_ENUM,
	T_FUNCTION,
	T_STRING, /* D's own */
	T_STACK,  /* what stack() and ustack() are */
	T_TYPEDEF,
};

struct member {
	struct member *next;
	const char *name; /* "": an anonymous struct or union, whose members count */
	struct type *type;
	uint32_t offset; /* bytes; for a bit-field, of the unit that holds it; keys: is it an
			  * address with its program? */
	uint8_t bits;    /* of a bit-field; 0: none */
	uint8_t shift;   /* of a bit-field: its lowest bit in the unit */
	int64_t value;   /* an enumerator's; of a member that the program declares, its bytes */
};

struct type {
	enum type_kind kind;
	bool is_signed;
	bool complete;          /* members are known, or can be read from BTF */
	bool flexible;          /* an array whose size is not known, or [0] */
	bool declared;          /* by the program, not the kernel */
	const char *name;       /* of an integer or a typedef; else its tag; NULL: none */
	uint32_t size;          /* bytes */
	uint32_t count;         /* T_ARRAY: elements */
	struct type *to;        /* pointers, arrays, typedefs; what a function returns */
	struct member *members; /* structs, enums; parameters of functions: see type_members() */
	uint32_t btf;         /* the number of a type whose members are still to be read; 0: none */
	struct type *pointer; /* to this type, if it was made */
	struct type *next;    /* in the list of names */
};

/* The characters of a string at most: -x strsize. */
extern uint32_t dt_strsize;
/* Frames of stack() and ustack() without a number: -x stackframes, -x ustackframes. */
extern unsigned dt_stackframes, dt_ustackframes;
extern unsigned dt_version; /* of D: N of 1.N */
/* -w was given. */
extern bool dt_destructive;
/* The first action that needs `destructive`; NULL: none. */
extern struct node *dt_destroys;

extern struct type *type_void, *type_char, *type_int, *type_uint, *type_long, *type_ulong,
    *type_string, *type_stack, *type_ustack;

struct btf;
/* Forgets all types but the basic ones; those of btf (NULL: none) can be named. */
void type_init(const struct btf *btf);
/* A typedef or basic type by name; NULL: there is none. */
struct type *type_by_name(const char *name);
/* The type of a text like "struct proc *"; NULL: it is none. */
struct type *type_by_text(const char *text);
/* A struct, union or enum by its tag; NULL: there is none. */
struct type *type_by_tag(enum type_kind kind, const char *tag);
/* The name in D`name, C`name and kernel`name, whose types are one list. NULL: another scope. */
const char *type_unscoped(const char *text);
struct type *type_new(enum type_kind kind, const char *name, uint32_t size);
/* Makes another name of a type. */
void type_typedef(const char *name, struct type *to);
/* Makes the type known by its name or tag. */
void type_add(struct type *type);
struct type *type_pointer(struct type *to);
struct type *type_array(struct type *of, uint32_t count);
/* Without typedefs. */
struct type *type_base(struct type *type);
/* The members of a struct or union, the enumerators of an enum, the parameters of a function. */
struct member *type_members(struct type *type);
/* Finds a member, also in anonymous ones; the offset counts from the type's start. */
bool type_member(struct type *type, const char *name, struct member *found);
/* Finds the value of an enumerator: of any known enum, or of one that a program has declared. */
bool type_enumerator(const char *name, bool declared, struct type **type, int64_t *value);
/* The type of a function of the kernel; NULL: not known. */
struct type *type_function(const char *name);
/* The type of a variable of the kernel; NULL: not known. */
struct type *type_variable(const char *name);
/*
 * Takes the types of variables: a line NAME TYPE for each, and before these the kernel's probes, as
 * mkvars.c writes them. The text has to stay.
 */
void type_variables(const char *text);
/* The line of the probe after that of `line`; NULL: the first. NULL: there are no more. */
const char *type_next_probe(const char *line);
/* As C writes it. */
const char *type_text(const struct type *type);
bool type_is_integer(struct type *type); /* enums, too */
bool type_is_scalar(struct type *type);  /* integers and pointers */
bool type_is_struct(struct type *type);  /* and union */
bool type_is_char(struct type *type);    /* and signed char: what texts consist of */
/* A string, or a pointer to char, or an array of char. */
bool type_is_stringlike(struct type *type);
/* Is a value of the type a text: a string, or an array of characters? */
bool type_is_text(struct type *type);
/* Is a key of the type the bytes of it: of a struct, or of an array that is no text? */
bool type_is_bytes(struct type *type);
/* Of a member of this type: bytes. */
uint32_t type_align(struct type *type);
bool type_same(struct type *a, struct type *b);

/* ---- the tree: made by read/, completed by check/ ---- */

/* Operators and punctuation are their characters, the first in the lowest byte. */
#define OP2(a, b)    ((uint32_t)(a) | (uint32_t)(b) << 8)
#define OP3(a, b, c) (OP2(a, b) | (uint32_t)(c) << 16)

enum op_kind { OP_LOGIC = 1, OP_COMPARE, OP_SHIFT, OP_ADD, OP_ARITHMETIC };

/* An operator with two operands. */
struct op {
	uint32_t op;
	uint8_t level; /* C's precedence: the tightest has the highest */
	enum op_kind kind;
	uint8_t code[2]; /* enum dif_op, of signed and of unsigned operands; OP_COMPARE: the jump */
	bool swapped;    /* OP_COMPARE: by the jump of < or <= with the operands swapped */
	uint32_t inverse; /* OP_COMPARE: the operator that is true when this is false */
};

/* The row of an operator; of anything else, one whose level and kind are 0. */
const struct op *op_find(uint32_t op);

enum node_kind {
	N_INT,
	N_STRING,
	N_NAME,    /* a variable, by name; after checking: var */
	N_EXTERN,  /* a variable of the kernel */
	N_AGG,     /* left: the list of keys */
	N_UNARY,   /* op: ! ~ - + * & ++ -- */
	N_POSTFIX, /* op: ++ -- */
	N_BINARY,
	N_ASSIGN, /* op 0: plain; otherwise the operator of += and so on */
	N_COND,   /* left ? right : third */
	N_COMMA,
	N_CAST,
	N_SIZEOF, /* type, or left */
	N_STRINGOF,
	N_MEMBER, /* left . text; op '>': left -> text */
	N_INDEX,  /* left [ right, ... ] */
	N_CALL,   /* text ( left, ... ) */
	N_XLATE,  /* left to type */
	/* Statements. */
	N_EXPRESSION,
	N_IF, /* left: condition; right, third: statements */
};

enum scope { SCOPE_GLOBAL, SCOPE_SELF, SCOPE_THIS };

struct node {
	enum node_kind kind;
	enum scope scope; /* N_NAME */
	uint32_t op;
	struct place at;
	const char *text;
	size_t size; /* N_STRING: bytes of text */
	uint64_t value;
	struct node *left, *right, *third;
	struct node *next; /* in a list of statements, arguments or keys */
	unsigned depth;    /* of the tree below it, as it was read */
	struct type *type; /* N_CAST, N_SIZEOF, N_XLATE: as written; after checking: of the value */
	/* What checking finds. */
	bool checked, constant;
	struct member member; /* N_MEMBER */
	struct variable *var; /* N_NAME, N_INDEX of an associative array */
	uint32_t flags[2]; /* N_IF: for each branch, 1 + where its byte is in the record; 0: none */
	struct aggregation *agg;
	const struct function *function;
	struct node *xlated; /* N_XLATE: the translator's expressions are in ... */
	struct translator *translator;
};

/* A probe's name in a clause, as it was written. */
struct probe_spec {
	struct probe_spec *next;
	struct place at;
	char *text;
};

struct clause {
	struct clause *next;
	struct place at;
	struct probe_spec *probes;
	struct probe *known;    /* where it may be: known_probes(); NULL: not asked yet, or none */
	struct node *predicate; /* NULL: none */
	struct node *body;      /* NULL: nothing in it */
	bool has_body;          /* { } stood there */
#define TIMES 3                 /* timestamp, vtimestamp, walltimestamp */
	unsigned times[TIMES];  /* after checking: how often it reads each */
	enum { TIME_READ, TIME_KEEP, TIME_KEPT } time[TIMES]; /* see gen_plan_times() */
};

/* `inline type name = expression`; with parameters: `inline type name[type a] = …` */
struct inline_def {
	struct inline_def *next;
	const char *name;
	struct type *type;
	struct member *parameters;
	bool is_array, library;
	struct node *body;
};

struct translator {
	struct translator *next;
	struct type *to, *from; /* from: as written, a pointer too */
	const char *name;       /* of the input */
	bool library;
	struct translator_member {
		struct translator_member *next;
		const char *name;
		struct node *value;
		struct place at;
	} * members;
};

struct program {
	struct clause *clauses, **last_clause;
	struct inline_def *inlines;
	struct translator *translators;
	bool in_library; /* what is declared now */
};
extern struct program dt_program;
struct node *node_new(enum node_kind kind, struct place at);
struct node *node_op(enum node_kind kind, uint32_t op, struct place at, struct node *left,
		     struct node *right);
struct node *node_name(const char *name, struct place at);
/* N_CAST, N_XLATE */
struct node *node_typed(enum node_kind kind, struct type *type, struct node *left);

/* ---- names: check/ident.c ---- */

struct variable {
	struct variable *next;
	const char *name;
	enum scope scope;
	struct type *type; /* NULL: not known yet */
	bool is_array, builtin;
	struct member *keys; /* of an array */
	unsigned key_count;
	uint32_t
	    code;    /* built in: DIF_BUILTIN's number; otherwise the number of the DIF variable */
	uint8_t arg; /* built in: 1 + the number of an argument */
};

struct aggregation {
	struct aggregation *next;
	const char *name;
	const struct function *function; /* NULL: not known yet */
	struct member *keys;
	unsigned key_count;
	uint32_t number;
	bool defined; /* in the image */
	int64_t p[4]; /* of lquantize and llquantize */
	struct place at;
};

enum function_kind {
	F_SUB,    /* has a value, which the engine computes */
	F_ACTION, /* leaves something for the consumer */
	F_INSN,   /* an action that is one instruction */
	F_AGG,
};

/* What the consumer does. */
enum action {
	ACT_TRACE = 1,
	ACT_PRINTF,
	ACT_PRINTA,
	ACT_PRINT,
	ACT_TRACEMEM,
	ACT_STACK,
	ACT_USTACK,
	ACT_EXIT,
	ACT_FREOPEN,
	ACT_FTRUNCATE,
	ACT_SYSTEM,
	ACT_SETOPT,
	ACT_NORMALIZE,
	ACT_DENORMALIZE,
	ACT_CLEAR,
	ACT_TRUNC,
	ACT_NOTHING, /* a row for the clause, without data */
	ACT_ERROR,   /* of the compiler's own clause: arg1 to arg5 of ERROR */
};

/* What statements do, as far as their order matters. */
enum {
	DO_RECORD = 1,
	DO_COMMIT = 2,
	DO_SPECULATE = 4,
	DO_DISCARD = 8,
	DO_EXIT = 16,
	DO_DESTROY = 32, /* what needs -w */
	DO_PRINTA = 64,
	DO_AGGREGATE = 128,
};

/*
 * Arguments, a letter each: i integer, p integer or pointer, m the same or a string, a the address
 * of memory, s string or NULL, x any value, l integer constant, c one above 0, f a
 * format, @ aggregation; those after ? may be missing, and * says that more of any kind may follow.
 */
struct function {
	const char *name;
	enum function_kind kind;
	uint8_t code; /* enum dif_sub, enum action, enum dif_op, enum dif_func */
	const char *args;
	const char
	    *tags; /* of errors in arguments, a word each; NULL and later ones: D_PROTO_ARG */
	const char *result; /* a type; NULL: none */
	unsigned does;      /* bits DO_ */
	int64_t missing;    /* F_SUB: the value of an argument that is missing */
	uint8_t show;       /* func() and its kin: how the address is shown, enum show; else 0 */
};
