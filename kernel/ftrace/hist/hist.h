/*
 * hist.h - the trigger `hist`: tables of what events count (Documentation/trace/histogram.rst).
 *
 * In: "hist:keys=…", written to `trigger`. Out: the text of `hist`, synthetic events, snapshots.
 *
 *	text ──► hist_parse() ──► struct hist ──► hist_emit() ──► a program ──► the engine
 *	                                                                          │ adds
 *	`hist` ◄── hist_print() ◄── rows ◄── hist_take() ◄── aggregations ◄───────┘
 *
 * A histogram is a program at its event, which adds to aggregations of the engine: one that counts,
 * and one for each value. Variables are variables of the engine, by the histogram's keys. So those
 * histograms that have variables, or name some, share one consumer. What the engine's tables have
 * is added to `rows` when somebody looks.
 *
 * The registers of a program: expressions use 1 to 7 (the result of a filter, of a key and of an
 * expression is in 1; 4 is the value that is added or stored, 5 that of onmax and onchange); the
 * histogram's own variables, then those of others, stay in 8 to 15. Parameters of a synthetic event
 * are put into 2 and those after it, just before the call.
 *
 * Locking: ftrace_lock, before dtrace_lock.
 *
 * Files, in reading order: hist.c (which there are), hist_parse.c, hist_action.c (what they name),
 * hist_code.c and hist_expression.c (the program), hist_consumer.c (programs in the engine, rows),
 * hist_show.c.
 */
#pragma once

#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/filter.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/list.h"

#define HIST_KEYS    3
#define HIST_VALUES  8 /* the first one is hitcount */
#define HIST_NAMED   8 /* own variables, and those of others, in registers 8 to 15 */
#define HIST_ACTIONS 4
#define HIST_PARAMS  6
#define HIST_HIDDEN  4 /* histograms made for fields of other events */
#define HIST_SORTS   2
#define HIST_NAME    48
#define HIST_FRAMES  16
#define HIST_SIZE    2048

/* A part of a histogram's text. */
struct hist_slice {
	unsigned at, n;
};

enum hist_modifier {
	HIST_PLAIN,
	HIST_HEX,
	HIST_SYM,
	HIST_SYM_OFFSET,
	HIST_EXECNAME,
	HIST_SYSCALL,
	HIST_LOG2,
	HIST_BUCKETS,
	HIST_USECS,
	HIST_PERCENT,
	HIST_GRAPH,
};

extern const char *const hist_modifiers[]; /* their names; of HIST_PLAIN none */

/* A field with a modifier. */
struct hist_field {
	char name[HIST_NAME]; /* as it is printed, without the modifier; of an expression: "" */
	enum { HIST_FIELD, HIST_TIME, HIST_STACK, HIST_HITCOUNT, HIST_EXPRESSION } kind;
	struct filter_field field;
	enum hist_modifier modifier;
	uint64_t width; /* HIST_BUCKETS */
};

/* What an expression is. The code of a number or a text leaves it, or its address; a constant needs
 * no code. */
struct hist_operand {
	enum { HIST_NUMBER, HIST_TEXT, HIST_CONSTANT } kind;
	uint64_t constant;
	bool usecs; /* a time in microseconds */
};

/* A variable: its own, or one of another histogram. */
struct hist_variable {
	struct hist_slice name;       /* its own */
	struct hist_slice expression; /* … */
	struct hist_operand is;       /* … what it is */
	struct hist_slice written;    /* another's: how it is named here */
	struct hist *of;
	unsigned index; /* … its number there */
	uint32_t where; /* … bit N: that is how action N - 1 names it; bit 0: what is no action */
	bool once;      /* … the variable is used up: an expression has read it */
};

struct hist_action {
	enum { HIST_ONMATCH, HIST_ONMAX, HIST_ONCHANGE } when;
	enum { HIST_TRACE, HIST_SAVE, HIST_SNAPSHOT } what;
	unsigned match;             /* ONMATCH: the number of the event, while it is parsed */
	struct hist_slice variable; /* ONMAX, ONCHANGE */
	struct synthetic *event;    /* TRACE */
	unsigned n;
	struct hist_slice params[HIST_PARAMS];
	struct hist_slice text;
	bool is_text[HIST_PARAMS]; /* SAVE: what they are */
};

/* The numbers of what a histogram has in a program. */
struct hist_numbers {
	unsigned agg; /* of its first aggregation */
	unsigned own[HIST_NAMED];
	bool used[HIST_NAMED]; /* others name the variable, so that it has a number */
	/* Variables of its actions. */
	struct hist_action_numbers {
		unsigned last;               /* ONMAX, ONCHANGE: the last value + 1, by keys */
		unsigned saved[HIST_PARAMS]; /* SAVE: by keys */
		/* SNAPSHOT: the last value + 1 of all keys; how many were taken; by keys the
		 * number of the last one */
		unsigned most, count, number;
	} actions[HIST_ACTIONS];
};

struct hist_row {
	uint32_t key_words;
	bool stays; /* it was in the table before */
	uint64_t values[HIST_VALUES];
	uint64_t keys[];
};

struct hist {
	struct list link;
	struct instance *i;
	const struct ktr_site *site;
	char event[EVENT_NAME];
	char name[HIST_NAME]; /* "": none */
	struct hist *data;    /* whose rows: its own, or those of the first of its name */
	struct hist_field keys[HIST_KEYS], values[HIST_VALUES];
	struct hist_slice value_texts[HIST_VALUES];
	struct hist_variable own[HIST_NAMED], others[HIST_NAMED];
	struct hist_action actions[HIST_ACTIONS];
	struct {
		unsigned key; /* number of the key to sort by; or HIST_KEYS + the value's */
		bool descending;
	} sorts[HIST_SORTS];
	unsigned nkeys, nvalues, nown, nothers, nactions, nsorts, size;
	/* those with variables for the fields of other events that its actions name */
	struct hist *hidden[HIST_HIDDEN];
	unsigned nhidden;
	bool no_hitcount, times, linked;
	bool leaves; /* it leaves: the next program of all is made without it */
	struct hist_slice filter;
	uint32_t gate;                    /* atomic: it is not paused */
	struct dtrace_consumer *consumer; /* not linked */
	struct hist_numbers made, in;     /* in the program that is made, or was last; that runs */
	/* what was added so far */
	struct hist_row **rows;
	unsigned nrows, room;
	uint64_t hits, dropped;
	char text[];
};

/* ---- hist_parse.c ---- */

/* The commands among the parts: pause, continue, clear. */
struct hist_commands {
	bool pause, go_on, clear;
};

struct hist_parser {
	struct hist *h;
	unsigned action; /* number of the action that is being read, + 1; 0: none is */
	struct filter_error *error;
	struct hist_commands *commands;
	bool keys;                                  /* were given */
	const struct ktr_site *match[HIST_ACTIONS]; /* events of onmatch() */
	unsigned nmatch;
	struct hist_slice sort;
};

/* Reads "hist:…" into *to. 0; or -errno, and what is wrong. */
int hist_parse(struct instance *i, const struct ktr_site *site, const char *text, struct hist **to,
	       struct hist_commands *commands, struct filter_error *error);
/* Frees a histogram that is in no list, what it has counted, and its hidden ones. */
void hist_free(struct hist *h);
/* Says what is wrong. Is false. */
static inline bool
hist_fail(struct filter_error *error, unsigned at, const char *message)
{
	*error = (struct filter_error){message, at, 0};
	return false;
}
/* Is there no register left for one more variable? */
static inline bool
hist_names_full(const struct hist *h)
{
	return h->nown + h->nothers >= HIST_NAMED;
}
/* Is the slice this word? */
bool hist_slice_is(const struct hist *h, struct hist_slice s, const char *word);
/* Are they the same text? */
bool hist_slice_same(const struct hist *h, struct hist_slice s, const struct hist *other,
		     struct hist_slice t);
/* Copies a slice of text. False: there is no room for so many bytes with a NUL. */
bool hist_slice_copy(const struct hist *h, struct hist_slice s, char *to, size_t room);
/* Takes what comes before the separator, which is not within parentheses. False: no more. */
bool hist_slice_next(const struct hist *h, struct hist_slice *rest, char separator,
		     struct hist_slice *s);
/* The modifier of this name of a field. False: the field may not have it. */
bool hist_modifier_read(struct hist_parser *p, struct hist_slice s, struct hist_field *f);

/* ---- hist_action.c ---- */

/* Notes the event of onmatch(…), if there is one of that name; of: from the parenthesis on. */
void hist_read_match(struct hist_parser *p, struct hist_slice of);
/* Finds the variables of other histograms that a text names. */
bool hist_read_references(struct hist_parser *p, struct hist_slice s);
/* Reads onmatch(…), onmax(…), onchange(…); of: from the parenthesis on. */
bool hist_read_action(struct hist_parser *p, struct hist_slice s, struct hist_slice of);

/* ---- hist_code.c ---- */

/* Names and types of the fields of the histogram's event. */
bool hist_field_find(const struct ktr_site *site, const char *name, struct filter_field *field);
/* The bits of kinds of a histogram's keys, as aggregations have them; or of its first n keys. */
uint64_t hist_key_kinds(const struct hist *h);
uint64_t hist_kinds_of_first(const struct hist *h, unsigned n);
/* Appends the code of a histogram whose variables have numbers. -errno: what is wrong. */
int hist_emit(struct program *p, struct hist *h, struct filter_error *error);
/* How many variables the action's program has. */
unsigned hist_action_vars(const struct hist_action *a);

struct hist_emitter {
	struct program *p;
	struct hist *h;
	unsigned action; /* as in the parser */
	struct filter_error *error;
};

/* Appends code that leaves a field with its modifier in register d. Registers d to d + 2 change. */
void hist_emit_field(struct program *p, unsigned d, const struct hist_field *f);

/* ---- hist_expression.c ---- */

#define HIST_FIRST_NAMED 8u /* register of the first variable */

/* Appends code that leaves a value in register d: that of an expression; that of a field, a
 * variable or a number. Registers 1 to 5 change. */
bool hist_emit_expression(struct hist_emitter *e, struct hist_slice s, unsigned d,
			  struct hist_operand *is);
bool hist_emit_atom(struct hist_emitter *e, struct hist_slice s, unsigned d,
		    struct hist_operand *is);
/* Does it have an operator? */
bool hist_is_expression(const struct hist *h, struct hist_slice s);

/* ---- hist.c ---- */

/* Takes "hist:…", which adds a histogram, changes it, or removes it. 0 or -errno. */
int hist_store(struct instance *i, const struct ktr_site *site, char *text, bool remove);
/* Drops those of an event; as in Linux none if another one uses a variable of theirs. */
int hist_clear(struct instance *i, const struct ktr_site *site);
void hists_clean(struct instance *i);
/* Drops all. */
void hists_stop(struct instance *i);
void hist_show(struct instance *i, uintptr_t arg, struct sbuf *out); /* arg: the event's site */
void hist_show_triggers(const struct instance *i, const struct ktr_site *site, struct sbuf *out);
/* A word that triggers switch: while it is 1, the histogram counts. It goes with the histogram. */
uint32_t *hist_gate(struct hist *h);
/* Goes through an instance's histograms at a site, or at any (NULL): returns the one after h,
 * where NULL begins and ends. It stays while ftrace_lock is held. */
struct hist *hist_next(const struct instance *i, const struct ktr_site *site, const struct hist *h);
/* ---- hist_consumer.c ---- */

/* What found no memory in the engine. */
uint64_t hist_drops(const struct hist *h);
/* The value of a variable of h by the keys of a row. NULL: there is none. */
uint64_t hist_read(const struct hist *h, unsigned var, const struct hist_row *row);
/* Adds what the engine's tables have to the rows. */
void hist_take(struct hist *h);
void hist_forget_rows(struct hist *h);
/*
 * Attaches the program of a histogram that is in the list. Histograms with variables have one
 * consumer together, which is made anew: no event is missed, and what was counted so far is in the
 * rows. 0; or -errno and what is wrong, and then all run as before.
 */
int hist_attach(struct hist *h, struct filter_error *error);
int hist_attach_linked(struct instance *i, struct filter_error *error);
/* Ends the program of those with variables. */
void hist_detach_linked(struct instance *i);

/* ---- hist_show.c ---- */

/* Prints the rows, which have been added up; "hist:keys=…" with its state; "KEY,…"; "VALUE,…". */
void hist_print(struct hist *h, struct sbuf *out);
void hist_print_spec(const struct hist *h, struct sbuf *out, bool state);
void hist_print_keys(const struct hist *h, struct sbuf *out);
void hist_print_values(const struct hist *h, struct sbuf *out);
/* Sorts pointers. */
void hist_sort(struct hist *h, struct hist_row **rows, unsigned n,
	       int (*compare)(const struct hist *h, const struct hist_row *a,
			      const struct hist_row *b));
/* Compares the keys. */
int hist_compare_keys(const struct hist *h, const struct hist_row *a, const struct hist_row *b);
