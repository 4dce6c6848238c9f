/* activity_private.h - what activity.c and activity_meaning.c share. */
#pragma once

#include "ktr/map.h"
#include "ktr/tools/model/activity.h"

struct meaning; /* of a site */

struct activity_model {
	activity_gone_fn *gone;
	void *gone_arg;
	uint64_t last_ns;
	struct ktr_map threads; /* by their ids */
	uint32_t *numbers;      /* those after the first threads.used are free */
	size_t number_room;
	struct activity_thread *running[KTR_DECODE_CPUS];
	struct activity_thread
	    *heard; /* the threads that events have told of since events were last lost */
	struct activity_thread *dead;    /* dead threads, to be forgotten once they do not run */
	size_t many;                     /* so many threads make it look for more */
	uint64_t looked_ns;              /* when it did last */
	struct meaning *meanings[65536]; /* by site number */
};

/* activity.c */

/** The thread of an id, which an event names. NULL: no memory. */
struct activity_thread *activity_thread_get(struct activity_model *m, uint32_t tid);
void activity_thread_name(struct activity_thread *t, const char *name, size_t len);
/** t's state from a->ns on. */
void activity_thread_state(struct activity_model *m, struct activity_thread *t,
			   enum activity_state state, const char *why, uint64_t ns);
/** a->cpu runs t from a->ns on: a becomes a SWITCH, or a STATE when it did before. */
void activity_switch(struct activity_model *m, struct activity *a, struct activity_thread *t);

/* activity_meaning.c */

/** What an event means. An event of an unknown site means nothing. NULL: no memory. */
const struct meaning *meaning_of(struct activity_model *m, const struct ktr_decode_event *e);
/** Does the event say that its thread runs on this CPU from now on? */
bool meaning_is_switch(const struct meaning *mean, const struct ktr_decode_event *e);
/**
 * Fills in a. The caller has set its event, cpu and ns, and its thread to the event's. False: the
 * event means nothing.
 */
bool meaning_tell(struct activity_model *m, const struct meaning *mean, struct activity *a);
void meanings_free(struct activity_model *m);
