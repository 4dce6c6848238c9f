/*
 * fxt_known.c - registers event classes and threads with the reader of a Fuchsia trace.
 * Names are registered before the record that uses them begins. A thread is registered if the
 * reader's table has room, perhaps in the entry of a thread that is gone. Records name a registered
 * thread by its index in the table, and any other thread by its ids.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/fxt.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"

#define THREADS_MAX 255u

const struct fxt_class *
fxt_class_of(struct fxt *x, const struct ktr_decode_event *e, const struct export_class **known)
{
	bool is_new;
	size_t number = 0;
	*known = e->site != NULL ? export_class_of(&x->known, e, &number, &is_new)
				 : timeline_unknown_class();
	number = e->site != NULL ? number + 1 : 0;
	if (*known == NULL)
		return NULL;
	if (!MEMORY_ROOM(x->classes, x->class_room, number))
		return NULL;
	struct fxt_class *c = &x->classes[number];
	if (e->site == NULL) { /* the name has the site's number */
		snprintf(c->name.text, sizeof(c->name.text), "site %u", (unsigned)e->site_number);
		c->name.param = -1;
	} else if (c->name.text[0] != '\0') {
		return c;
	} else {
		char category[512];
		timeline_name_find(&c->name, *known);
		dump_classes(e->header, e->site->classes, category, sizeof(category));
		category[TIMELINE_NAME] = '\0';
		c->category = fxt_name_ref(&x->out, category);
	}
	c->name_ref = fxt_name_ref(&x->out, c->name.text);
	for (unsigned i = 0; i < e->nargs; i++)
		c->params[i] = fxt_name_ref(&x->out, (*known)->params[i].name);
	return c;
}

void
fxt_put_params(struct fxt *x, const struct ktr_decode_event *e, const struct fxt_class *c,
	       const struct export_class *known)
{
	for (unsigned i = 0; i < e->nargs; i++) {
		const struct ktr_param *p = &known->params[i];
		if (p->string)
			fxt_put_string(&x->out, c->params[i], p->name, e, i);
		else
			fxt_put_number(&x->out, c->params[i], p->name,
				       ktr_param_value(p, e->args[i]), p->is_signed);
	}
}

static void
put_object(struct fxt *x, enum fxt_object_type type, uint32_t tid, const char *name)
{
	uint16_t ref = fxt_name_ref(&x->out, name);
	unsigned nargs = type == FXT_OBJECT_THREAD;
	fxt_record_begin(&x->out, FXT_RECORD_KERNEL_OBJECT,
			 (uint64_t)type << 16 | (uint64_t)ref << 24 | (uint64_t)nargs << 40);
	fxt_record_word(&x->out, tid);
	fxt_put_inline(&x->out, ref, name);
	if (nargs > 0)
		fxt_put_argument(&x->out, FXT_ARG_KOID, x->process, "process", tid);
	fxt_record_end(&x->out);
}

struct fxt_thread *
fxt_thread_of(struct fxt *x, const struct activity_thread *t)
{
	if (!MEMORY_ROOM(x->threads, x->thread_room, t->number))
		return NULL;
	struct fxt_thread *thread = &x->threads[t->number];
	bool is_new = thread->t == NULL;
	if (is_new) {
		thread->t = t;
		if (thread->ref == 0 && x->thread_count < THREADS_MAX)
			thread->ref = (uint8_t)++x->thread_count;
		if (thread->ref != 0) {
			fxt_record_begin(&x->out, FXT_RECORD_THREAD, (uint64_t)thread->ref << 16);
			fxt_record_word(&x->out, t->tid);
			fxt_record_word(&x->out, t->tid);
			fxt_record_end(&x->out);
		}
	}
	if (is_new || strcmp(thread->name, t->name) != 0) {
		/* A thread needs a process, even if there is no name for it. */
		memcpy(thread->name, t->name, sizeof(thread->name));
		put_object(x, FXT_OBJECT_PROCESS, t->tid, t->name);
		put_object(x, FXT_OBJECT_THREAD, t->tid, t->name);
	}
	return thread;
}
