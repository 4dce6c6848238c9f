/*
 * fair.h - shares of something that one has at a time: of groups first, then of their members.
 *
 * Who has it for t ns moves t * FAIR_WEIGHT / weight ahead in virtual time, so all are at about the
 * same time if each gets a share that is proportional to its weight. Each has a deadline: the
 * virtual time at which it will have had a slice more. The earliest deadline goes first. Before it
 * is past, the next one of a member is a slice later (of a group, when it is past): or who comes
 * meanwhile would be compared with a deadline of the past, and wait.
 *
 * The time of a queue is the latest of those that were chosen from it in time. Who joins is at the
 * queue's time, or where it was: later, if it has had much lately; or earlier, but by one slice at
 * most, if it has waited for something else. So who mostly waits goes first when it comes back.
 *
 * A group is a member of the top queue while it has members, whose weights its own follows from.
 * All members of light weight together weigh no more than one of FAIR_WEIGHT: many get no more than
 * one. What a heavier one has beyond FAIR_WEIGHT is added.
 *
 * A queue is a heap (kernel/lib/leftist.h), so all takes logarithmic time; fair_find() looks at
 * FAIR_LOOKS members at most, and in each group at half of what is left,
 * or at one. Pure code. Locking: the
 * caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/leftist.h"

#define FAIR_WEIGHT   1024        /* the ordinary one */
#define FAIR_SLICE_NS 20000000    /* of one of ordinary weight */
#define FAIR_LOOK_NS  10000000ull /* one has it for so long at most before fair_renew() */
#define FAIR_LOOKS    128

struct fair_group;

struct fair_entry {
	struct leftist node;      /* at: the deadline, virtual */
	uint32_t weight;          /* of a member: the user's to set while it has not joined */
	uint64_t time;            /* virtual; of a member without group: relative to its queue's */
	struct fair_group *group; /* of a member: where it is, or was last; NULL: nowhere yet */
	bool hurries;             /* of a member: fair_hurry() */
};

struct fair_queue {
	struct leftist *first; /* the earliest deadline of those that wait; NULL: nobody does */
	uint64_t time;
};

struct fair_group {
	struct fair_entry self;    /* waits in the top queue while a member waits */
	struct fair_queue members; /* those that wait */
	uint32_t joined;           /* members that wait, or have it */
	uint32_t hurries;          /* those of them that hurry */
	uint32_t light, extra;     /* sums of their weights: up to FAIR_WEIGHT; and beyond */
};

/* e, which has left its group, wants a share again, and may get a bonus for the time between. */
void fair_join(struct fair_queue *top, struct fair_group *g, struct fair_entry *e);
/* e, which does not wait, wants no share any more. */
void fair_leave(struct fair_queue *top, struct fair_entry *e);
/* e has left, and joins another group next, or the same group of another queue. */
void fair_detach(struct fair_entry *e);
/* e, which has joined, waits from now on. */
void fair_put(struct fair_queue *top, struct fair_entry *e);
/* e waits no longer. */
void fair_take(struct fair_queue *top, struct fair_entry *e);
/* Who goes first of all that wait; NULL: nobody does. */
struct fair_entry *fair_first(const struct fair_queue *top);
/*
 * The first entry for which may(e, arg) is true; if that is not fair_first(), any. NULL: none, of
 * those at which it has looked.
 */
struct fair_entry *fair_find(const struct fair_queue *top,
			     bool (*may)(const struct fair_entry *e, const void *arg),
			     const void *arg);
/* e, which does not wait, has the CPU from now on, or keeps it: the queues' times follow. */
void fair_run(struct fair_queue *top, struct fair_entry *e);
/* e had the CPU for ns. */
void fair_charge(struct fair_queue *top, struct fair_entry *e, uint64_t ns);
/* The next slice of e begins if this one would end within FAIR_LOOK_NS; that of its group, if it is
 * due. e does not wait. */
void fair_renew(struct fair_queue *top, struct fair_entry *e);
/* The next slices of e begin in any case, and the first of those that wait goes before e. */
void fair_yield(struct fair_queue *top, struct fair_entry *e);
/*
 * Until fair_calm() or fair_leave() it goes before the others of its group, which has its turn as
 * soon as one that is where the queue is, and of ordinary weight: what it has is charged as of such
 * a one. They do not wait.
 */
void fair_hurry(struct fair_queue *top, struct fair_entry *e);
void fair_calm(struct fair_queue *top, struct fair_entry *e);
/* Does a go before b? In the same group: by more than margin, in virtual time. */
bool fair_before(const struct fair_entry *a, const struct fair_entry *b, uint64_t margin);
/* The weight of a thread: 1.25 times as much for each step of niceness, -20 to 19, less. */
uint32_t fair_weight(int nice);
