/*
 * activity_meaning.c - the tables of what trace points mean: meanings[] by format, and states[].
 *
 * The meaning of a trace point is looked up once. A KTRGRAPH line is known by its group and type,
 * which are FreeBSD's scheduler vocabulary; any other event by the first words of its format.
 * Parameters are found by their names (ktr/param.h), so a trace point may have more of them.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/intern.h"
#include "ktr/param.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/model/activity_private.h"

#define CALL_NAME 32u
#define NOWHERE   0xffu
#define DEPTH_MAX 1024u /* calls of a thread that are kept */

/*
 * Fills in a. The caller has set its event, cpu and ns, and its thread to the event's. False: the
 * event means nothing.
 */
typedef bool meaning_fn(struct activity_model *m, const struct meaning *mean, struct activity *a);

enum {
	P_ID,
	P_STATE,
	P_POINT,
	P_COUNTER,
	P_PRIO,
	P_PRIO_2,
	P_WMESG,
	P_LOCK,
	P_LINKED,
	P_VECTOR,
	P_NAME,
	P_RET,
	P_PARENT,
	P_CHILD,
	P_PID,
	P_STATUS,
	P_TID,
	P_LOCK_NAME,
	P_ADDR,
	P_CALLER,
	P_OWNER,
	P_VA,
	P_ACCESS,
	P_PC,
	P_USER,
	P_SERVED,
	P_WHAT,
	P_FUNC,
	P_ARG,
	P_DEADLINE,
	P_STARTS,
	P_COUNT
};
static const char *const param_names[P_COUNT] = {
    "id",       "state",  "point", "counter", "prio",   "prio_2",   "wmesg",  "lockname",
    "linkedto", "vector", "name",  "ret",     "parent", "child",    "pid",    "status",
    "tid",      "lock",   "addr",  "caller",  "owner",  "va",       "access", "pc",
    "user",     "served", "what",  "func",    "arg",    "deadline", "starts",
};

struct meaning {
	const struct ktr_decode_site *site;
	struct meaning *older; /* of an earlier site with this number: threads may be in its call */
	meaning_fn *fn;        /* NULL: it means nothing */
	uint8_t at[P_COUNT];   /* the index of each parameter, or NOWHERE */
	bool is_signed[6];
	uint8_t bits[6];
	char call[CALL_NAME];
};

/* ---- parameters ---- */

static const char *
text_of(const struct meaning *mean, const struct activity *a, unsigned p)
{
	return mean->at[p] != NOWHERE ? a->event->strings[mean->at[p]] : NULL;
}

/* As text_of(), but NULL for a text that the decoder does not keep. */
static const char *
text_kept_of(const struct meaning *mean, const struct activity *a, unsigned p)
{
	const char *text = text_of(mean, a, p);
	return text != NULL && !ktr_decode_passing(a->event->args[mean->at[p]]) ? text : NULL;
}

static int64_t
value_at(const struct meaning *mean, const struct activity *a, unsigned at)
{
	const struct ktr_param as = {.is_signed = mean->is_signed[at], .bits = mean->bits[at]};
	return (int64_t)ktr_param_value(&as, a->event->args[at]);
}

static int64_t
value_of(const struct meaning *mean, const struct activity *a, unsigned p)
{
	return mean->at[p] != NOWHERE ? value_at(mean, a, mean->at[p]) : 0;
}

/* The thread of an ident `NAME tid N`. NULL: not an ident, or no memory. */
static struct activity_thread *
ident_of(struct activity_model *m, const char *ident)
{
	static const char word[] = " tid ";
	const char *at = NULL;
	if (ident == NULL)
		return NULL;
	for (const char *p = ident; (p = strstr(p, word)) != NULL; p++)
		at = p;
	if (at == NULL)
		return NULL;
	struct activity_thread *t =
	    activity_thread_get(m, (uint32_t)strtoul(at + sizeof(word) - 1, NULL, 10));
	/* An ident's text may be out of date. The name in the thread's own events is right. */
	if (t != NULL && at > ident && t->name[0] == '\0')
		activity_thread_name(t, ident, (size_t)(at - ident));
	return t;
}

/* ---- what events mean ---- */

/* The states of threads, besides "running", and which parameter says why. */
static const struct {
	const char *text;
	enum activity_state state;
	unsigned why; /* P_COUNT: no parameter does */
} states[] = {
    {"runq add", ACTIVITY_RUNNABLE, P_COUNT}, {"sleep", ACTIVITY_SLEEPING, P_WMESG},
    {"blocked", ACTIVITY_BLOCKED, P_LOCK},    {"spinning", ACTIVITY_SPINNING, P_LOCK},
    {"thread exit", ACTIVITY_DEAD, P_COUNT},
};

static bool
mean_state(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	const char *text = text_of(mean, a, P_STATE);
	struct activity_thread *t = ident_of(m, text_of(mean, a, P_ID));
	if (t == NULL || text == NULL)
		return false;
	a->thread = t;
	a->before = t->state;
	bool first = !t->told;
	a->other = ident_of(m, text_of(mean, a, P_LINKED));
	if (mean->at[P_PRIO] != NOWHERE)
		t->prio = (int)value_of(mean, a, P_PRIO);
	if (strcmp(text, "running") == 0) {
		a->starts = mean->at[P_STARTS] != NOWHERE;
		activity_switch(m, a, t);
		return true;
	}
	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(text, states[i].text) != 0)
			continue;
		const char *why =
		    states[i].why < P_COUNT ? text_kept_of(mean, a, states[i].why) : NULL;
		activity_thread_state(m, t, states[i].state, why, a->ns);
		a->kind = ACTIVITY_STATE;
		a->fresh = a->other != NULL && first && !t->woken;
		t->woken = false;
		return true;
	}
	return false;
}

static bool
mean_point(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	const char *text = text_of(mean, a, P_POINT);
	struct activity_thread *t = ident_of(m, text_of(mean, a, P_ID));
	if (t == NULL || text == NULL)
		return false;
	if (strcmp(text, "prio") == 0 && mean->at[P_PRIO_2] != NOWHERE)
		t->prio = (int)value_of(mean, a, P_PRIO_2);
	if (strcmp(text, "wokeup") != 0)
		return false;
	a->kind = ACTIVITY_WAKE;
	a->other = t;
	a->thread = t = ident_of(m, text_of(mean, a, P_LINKED));
	if (t == NULL)
		return false;
	a->before = t->state;
	t->woken = true;
	return true;
}

static bool
mean_counter(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	a->kind = ACTIVITY_COUNTER;
	a->text = text_of(mean, a, P_ID);
	a->value = value_of(mean, a, P_COUNTER);
	return a->text != NULL;
}

static bool
mean_irq_enter(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	a->kind = ACTIVITY_IRQ_ENTER;
	a->number = (uint32_t)value_of(mean, a, P_VECTOR);
	a->text = text_kept_of(mean, a, P_NAME);
	a->pc = (uint64_t)value_of(mean, a, P_PC);
	a->user = value_of(mean, a, P_USER) != 0;
	if (a->text == NULL)
		a->text = "interrupt";
	return true;
}

static bool
mean_irq_exit(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	a->kind = ACTIVITY_IRQ_EXIT;
	a->number = (uint32_t)value_of(mean, a, P_VECTOR);
	return true;
}

static bool
mean_sys_enter(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	struct activity_thread *t = activity_thread_get(m, a->event->tid);
	if (t == NULL)
		return false;
	a->kind = ACTIVITY_SYS_ENTER;
	a->text = t->call = mean->call;
	memcpy(a->args, a->event->args, sizeof(a->args));
	return true;
}

static bool
mean_sys_exit(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	struct activity_thread *t = activity_thread_get(m, a->event->tid);
	if (t == NULL)
		return false;
	a->kind = ACTIVITY_SYS_EXIT;
	a->text = mean->call;
	a->value = value_of(mean, a, P_RET);
	t->call = NULL;
	return true;
}

static bool
mean_call(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	struct activity_thread *t = activity_thread_get(m, a->event->tid);
	if (t == NULL)
		return false;
	if (t->depth == DEPTH_MAX)
		t->depth = 0; /* the returns of so many calls are not in the trace */
	if (!MEMORY_ROOM(t->calls, t->room, t->depth))
		return false;
	a->kind = ACTIVITY_CALL;
	a->text = mean->site->func;
	for (unsigned i = 0; i < mean->site->nargs && i < 6; i++)
		a->args[i] = (uint64_t)value_at(mean, a, i);
	t->calls[t->depth++] = (struct activity_call){.name = a->text, .ns = a->ns};
	return true;
}

static bool
mean_return(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	struct activity_thread *t = activity_thread_get(m, a->event->tid);
	if (t == NULL)
		return false;
	a->kind = ACTIVITY_RETURN;
	a->text = mean->site->func;
	if (mean->site->nargs > 1)
		a->value = value_at(mean, a, 1);
	unsigned at = t->depth;
	while (at > 0 && strcmp(t->calls[at - 1].name, a->text) != 0)
		at--;
	if (at > 0) {
		a->call = t->calls[at - 1];
		t->depth = at - 1;
	}
	return true;
}

/* A thread that an event names by its number, and perhaps by its name. */
static struct activity_thread *
numbered(struct activity_model *m, const struct meaning *mean, const struct activity *a, unsigned p)
{
	struct activity_thread *t = activity_thread_get(m, (uint32_t)value_of(mean, a, p));
	const char *name = text_of(mean, a, P_NAME);
	if (t != NULL && name != NULL)
		activity_thread_name(t, name, strlen(name));
	return t;
}

static bool
mean_fork(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	a->kind = ACTIVITY_FORK;
	a->other = activity_thread_get(m, (uint32_t)value_of(mean, a, P_PARENT));
	a->thread = numbered(m, mean, a, P_CHILD);
	return a->thread != NULL && a->other != NULL;
}

static bool
mean_thread_create(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	numbered(m, mean, a, P_TID);
	return false;
}

/* The thread has ended, and only has to leave its CPU. */
static bool
mean_thread_exit(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	struct activity_thread *t = numbered(m, mean, a, P_TID);
	if (t != NULL)
		t->exits = true;
	return false;
}

static bool
mean_exec(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	a->kind = ACTIVITY_EXEC;
	a->thread = numbered(m, mean, a, P_PID);
	a->text = text_of(mean, a, P_NAME);
	return a->thread != NULL && a->text != NULL;
}

static bool
mean_exit(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	struct activity_thread *t = numbered(m, mean, a, P_PID);
	a->kind = ACTIVITY_EXIT;
	a->thread = t;
	a->value = value_of(mean, a, P_STATUS);
	/* Another thread was the last one: the first is dead, and may be forgotten already. */
	if (t != NULL && t->tid != a->event->tid && t->state == ACTIVITY_UNKNOWN)
		activity_thread_state(m, t, ACTIVITY_DEAD, NULL, a->ns);
	return t != NULL;
}

/* `mutex contended: …`, `spin acquire: …` and so on. */
static bool
mean_lock(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	static const struct {
		const char *word;
		enum activity_kind kind;
	} kinds[] = {{"contended", ACTIVITY_LOCK_WAIT},
		     {"acquire", ACTIVITY_LOCK_TAKE},
		     {"release", ACTIVITY_LOCK_FREE}};
	a->text = text_kept_of(mean, a, P_LOCK_NAME);
	a->address = (uint64_t)value_of(mean, a, P_ADDR);
	a->pc = (uint64_t)value_of(mean, a, P_CALLER);
	a->number = mean->at[P_OWNER] != NOWHERE;
	a->value = a->number == 1 ? value_of(mean, a, P_OWNER) : -1;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *word = strchr(mean->site->fmt, ' ') + 1;
		if (strncmp(word, kinds[i].word, strlen(kinds[i].word)) == 0)
			a->kind = kinds[i].kind;
	}
	return a->text != NULL;
}

static bool
mean_fault(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	a->kind = mean->at[P_WHAT] != NOWHERE ? ACTIVITY_TRAP : ACTIVITY_FAULT;
	a->text = text_kept_of(mean, a, P_WHAT);
	a->address = (uint64_t)value_of(mean, a, P_VA);
	a->number = (uint32_t)value_of(mean, a, P_ACCESS);
	a->pc = (uint64_t)value_of(mean, a, P_PC);
	a->user = value_of(mean, a, P_USER) != 0;
	return a->kind == ACTIVITY_FAULT || a->text != NULL;
}

static bool
mean_fault_how(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	static const char *const how[] = {"zero fill", "cow copy", "cow reuse"};
	a->kind = ACTIVITY_FAULT_HOW;
	for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		if (strncmp(mean->site->fmt, how[i], strlen(how[i])) == 0)
			a->text = how[i];
	return a->text != NULL;
}

static bool
mean_fault_end(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	a->kind = ACTIVITY_FAULT_END;
	a->value = value_of(mean, a, P_SERVED);
	return true;
}

/* A callout is known by its function and argument. */
static bool
mean_timer(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	const char *state = text_of(mean, a, P_STATE);
	a->kind = mean->at[P_STATE] != NOWHERE      ? ACTIVITY_TIMER_RUN
		  : mean->at[P_DEADLINE] != NOWHERE ? ACTIVITY_TIMER_SET
						    : ACTIVITY_TIMER_STOP;
	a->address = ktr_mix((uint64_t)value_of(mean, a, P_FUNC) ^ 0x9e3779b97f4a7c15u,
			     (uint64_t)value_of(mean, a, P_ARG) ^ 0xbf58476d1ce4e5b9u);
	a->value = value_of(mean, a, P_DEADLINE);
	return a->kind != ACTIVITY_TIMER_RUN || (state != NULL && strcmp(state, "running") == 0);
}

/* The table: formats by how they begin, and what they mean. ktr/README.md tells kernels of it. */
static const struct {
	const char *begins;
	meaning_fn *fn;
} meanings[] = {
    {"KTRGRAPH group:\"thread\", id:\"%s\", state:\"%s\",", mean_state},
    {"KTRGRAPH group:\"thread\", id:\"%s\", point:\"%s\",", mean_point},
    {"KTRGRAPH group:\"load\", id:\"%s\", counter:%d,", mean_counter},
    {"interrupt enter: ", mean_irq_enter},
    {"interrupt exit: ", mean_irq_exit},
    {"syscall ", mean_sys_enter},
    {"sysret ", mean_sys_exit},
    {"fork: ", mean_fork},
    {"thread create: ", mean_thread_create},
    {"thread exit: ", mean_thread_exit},
    {"exec: ", mean_exec},
    {"exit: ", mean_exit},
    {"-> ", mean_call},
    {"<- ", mean_return},
    {"mutex contended: ", mean_lock},
    {"mutex acquire: ", mean_lock},
    {"mutex release: ", mean_lock},
    {"spin contended: ", mean_lock},
    {"spin acquire: ", mean_lock},
    {"spin release: ", mean_lock},
    {"page fault: ", mean_fault},
    {"page fault exit: ", mean_fault_end},
    {"zero fill: ", mean_fault_how},
    {"cow copy: ", mean_fault_how},
    {"cow reuse: ", mean_fault_how},
    {"trap: what ", mean_fault},
    {"callout set: ", mean_timer},
    {"callout stop: ", mean_timer},
    {"KTRGRAPH group:\"callout\", id:\"%s\", state:\"%s\",", mean_timer},
};

static void
meaning_find(struct meaning *mean, const struct ktr_decode_site *s)
{
	struct ktr_param params[KTR_PARAM_MAX];
	mean->site = s;
	mean->fn = NULL;
	for (unsigned i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strncmp(s->fmt, meanings[i].begins, strlen(meanings[i].begins)) == 0)
			mean->fn = meanings[i].fn;
	memset(mean->at, NOWHERE, sizeof(mean->at));
	ktr_params_scan(s->fmt, params, s->nargs);
	for (unsigned i = 0; i < s->nargs; i++) {
		mean->is_signed[i] = params[i].is_signed;
		mean->bits[i] = params[i].bits;
		for (unsigned p = 0; p < P_COUNT; p++)
			if (strcmp(params[i].name, param_names[p]) == 0)
				mean->at[p] = (uint8_t)i;
	}
	if (mean->fn != mean_sys_enter && mean->fn != mean_sys_exit)
		return;
	/* `syscall NAME: …`, which is a name in other tools' formats, too. */
	const char *name = strchr(s->fmt, ' ') + 1;
	size_t len = 0;
	while (isalnum((unsigned char)name[len]) || name[len] == '_')
		len++;
	if (len == 0 || len >= CALL_NAME || name[len] != ':') {
		mean->fn = NULL;
		return;
	}
	memcpy(mean->call, name, len);
	mean->call[len] = '\0';
}

const struct meaning *
meaning_of(struct activity_model *m, const struct ktr_decode_event *e)
{
	static const struct meaning nothing = {.fn = NULL};
	if (e->site == NULL)
		return &nothing;
	struct meaning **mean = &m->meanings[e->site_number & 0xffff];
	if (*mean != NULL && (*mean)->site == e->site)
		return *mean;
	struct meaning *found = calloc(1, sizeof(*found));
	if (found == NULL)
		return NULL;
	meaning_find(found, e->site);
	found->older = *mean;
	*mean = found;
	return found;
}

bool
meaning_is_switch(const struct meaning *mean, const struct ktr_decode_event *e)
{
	const struct activity a = {.event = e};
	const char *text = mean->fn == mean_state ? text_of(mean, &a, P_STATE) : NULL;
	return text != NULL && strcmp(text, "running") == 0;
}

bool
meaning_tell(struct activity_model *m, const struct meaning *mean, struct activity *a)
{
	return mean->fn != NULL && mean->fn(m, mean, a);
}

void
meanings_free(struct activity_model *m)
{
	for (size_t i = 0; i < sizeof(m->meanings) / sizeof(m->meanings[0]); i++) {
		while (m->meanings[i] != NULL) {
			struct meaning *older = m->meanings[i]->older;
			free(m->meanings[i]);
			m->meanings[i] = older;
		}
	}
}
