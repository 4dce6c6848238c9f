/*
 * trigger.h - what triggers of events (trigger.c) and of functions (trigger_functions.c) share.
 * Locking: ftrace_lock, before dtrace_lock.
 */
#pragma once

#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/filter.h"
#include "kernel/lib/list.h"

struct trigger_command {
	const char *name;
	enum { TO_UPCALL, TO_EVENT, TO_HIST } kind;
	int32_t arg; /* TO_UPCALL: enum upcall; else 1 on, 0 off */
	enum { EVENTS = 1, FUNCTIONS = 2, BOTH = 3 } where; /* `trigger`, set_ftrace_filter */
};

struct trigger {
	struct list link;
	struct instance *i;
	const struct trigger_command *command;
	const struct ktr_site *site;   /* of an event */
	char name[EVENT_NAME];         /* of it */
	const struct ktr_site **sites; /* of functions; NULL: of an event */
	unsigned nsites;
	const struct ktr_site *target; /* TO_EVENT, TO_HIST */
	char target_name[EVENT_NAME];  /* its event */
	uint64_t limit;                /* how often; UINT64_MAX: always */
	uint32_t *gate;                /* TO_EVENT: the target's */
	struct dtrace_consumer *consumer;
	char *filter; /* within text; NULL: none */
	char text[];
};

/* Makes a trigger. NULL: no memory. trigger_destroy() frees one that is in no list. */
struct trigger *trigger_make(struct instance *i, const char *text);
void trigger_destroy(struct trigger *t);
/* Reads COMMAND[:SYSTEM:EVENT][:COUNT]. If the trigger is to be removed, COUNT may be any
 * number, as in the listing. 0 or -EINVAL. */
int trigger_parse(struct trigger *t, char *text, bool remove);
/* Ends the word at a character, and returns what comes after it, or NULL. */
char *trigger_split(char *text, char at);
/* Are both at the same place, and of one kind? Then only one of them may be there. At events,
 * switching on and switching off are of one kind. */
bool trigger_same(const struct trigger *a, const struct trigger *b);
/* Adds a trigger, which is wholly described, or frees it. 0 or -errno. */
int trigger_add(struct trigger *t, struct filter_error *error);
/* Removes a trigger, and frees it. */
void trigger_drop(struct trigger *t);
/* Makes a trigger's program and attaches it, or detaches it. 0 or -errno. */
int trigger_attach(struct trigger *t, struct filter_error *error);
void trigger_detach(struct trigger *t);
/* How often it may still act. */
uint64_t trigger_times_left(const struct trigger *t);
/* Prints a trigger's line. function: the function's name; NULL: it is at an event. */
void trigger_show_one(const struct trigger *t, const char *function, struct sbuf *out);
