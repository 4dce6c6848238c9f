/* list.h - the kernel's list: circular, doubly linked, intrusive. Locking: the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(l)       \
	{                  \
		&(l), &(l) \
	}
#define container_of(p, type, m) ((type *)((char *)(p)-offsetof(type, m)))
#define list_entry(p, type, m)   container_of(p, type, m)
#define list_for_each(p, l)      for (struct list *p = (l)->next; p != (l); p = p->next)
/* The current link may be removed and freed inside the loop. */
#define list_for_each_safe(p, l)                                        \
	for (struct list *p = (l)->next, *p##_next = p->next; p != (l); \
	     p = p##_next, p##_next = p->next)
/* Each element p of l, a TYPE whose member m links it. */
#define list_for_each_entry(type, p, l, m)                           \
	for (type *p = list_entry((l)->next, type, m); &p->m != (l); \
	     p = list_entry(p->m.next, type, m))
/* The current element may be removed and freed inside the loop. */
#define list_for_each_entry_safe(type, p, l, m)                                                    \
	for (type *p = list_entry((l)->next, type, m), *p##_next = list_entry(p->m.next, type, m); \
	     &p->m != (l); p = p##_next, p##_next = list_entry(p->m.next, type, m))

static inline void
list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool
list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void
list_insert_after(struct list *at, struct list *e)
{
	e->prev = at;
	e->next = at->next;
	at->next->prev = e;
	at->next = e;
}

/* Appends e at the tail of l. */
static inline void
list_append(struct list *l, struct list *e)
{
	list_insert_after(l->prev, e);
}

/* Moves all elements of l to `to`, in their order; what `to` was before does not matter. */
static inline void
list_move_all(struct list *l, struct list *to)
{
	list_init(to);
	if (list_empty(l))
		return;
	*to = *l;
	to->next->prev = to->prev->next = to;
	list_init(l);
}

/* Removes e and makes it an empty list, so that removing it again is harmless. */
static inline void
list_remove(struct list *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	list_init(e);
}

/* First element, or NULL when the list is empty. */
static inline struct list *
list_first(const struct list *l)
{
	return list_empty(l) ? NULL : l->next;
}
