/*
 * upcall.c - programs of ftrace in the engine, and what they ask for that the engine does not do
 * itself. Locking: ftrace_lock around program_attach(); what a hook calls does not take it.
 */
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/program.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "ktr/intern.h"
#include "ktr/ring.h"
#include "ktr/wire.h"

#define STRING_SIZE  256u
#define STACK_FRAMES 32u
#define USER_FRAMES  8u /* as in Linux */

TRACER_SITE(trigger_stack, 1, "ftrace stack: frames %s");
TRACER_SITE(user_stack, 1, "ftrace user stack: frames %s");

void
record_frames(struct instance *i, const uint64_t *pcs, unsigned n)
{
	/* ktrdump shows this much of a text: none is cut. */
	char text[KTR_STRING_MAX - KTR_DATA_CUT_MAX + 1];
	struct sbuf out;

	sbuf_init(&out, text, sizeof(text));
	for (unsigned i = 0; i < n && pcs[i] != 0; i++) {
		uintptr_t offset;
		const char *name = ksym_lookup(pcs[i], &offset);

		if (name == NULL || out.len + strlen(name) + sizeof(" +0x12345") > sizeof(text))
			break;
		sbuf_printf(&out, "%s%s+0x%lx", i > 0 ? " " : "", name, offset);
	}
	instance_record_data(i, &trigger_stack, (uint64_t[KTR_MAXARGS]){0}, text, out.len);
}

void
record_stack(struct instance *i, const struct ktr_firing *f)
{
	uint64_t pcs[STACK_FRAMES];
	unsigned n = dtrace_stack(f, pcs, STACK_FRAMES);

	record_frames(i, pcs, n);
}

void
record_user_stack(struct instance *i, const struct ktr_firing *f)
{
	uint64_t pcs[USER_FRAMES];
	unsigned n = dtrace_ustack(f, pcs, USER_FRAMES);
	char text[USER_FRAMES * sizeof("0123456789abcdef")];
	struct sbuf out;

	sbuf_init(&out, text, sizeof(text));
	for (unsigned k = 0; k < n && pcs[k] != 0; k++)
		sbuf_printf(&out, "%s%016lx", k > 0 ? " " : "", pcs[k]);
	if (out.len > 0)
		instance_record_data(i, &user_stack, (uint64_t[KTR_MAXARGS]){0}, text, out.len);
}

static void
event_upcall(const struct ktr_firing *f, int32_t what, const uint64_t *args)
{
	struct instance *i = (struct instance *)args[0];

	switch ((enum upcall)what) {
	case UPCALL_ON:
	case UPCALL_OFF:
		instance_switch_in_hook(i, what == UPCALL_ON);
		break;
	case UPCALL_STACK:
		record_stack(i, f);
		break;
	case UPCALL_RECORD:
		if ((f->owners >> i->events_owner & 1) == 0 || i->events_owner == 0)
			events_record(i, f); /* else events_fire() or the log does so */
		break;
	case UPCALL_SNAPSHOT:
		snapshot_take(i, BUFFER_ALL);
		break;
	case UPCALL_DUMP:
	case UPCALL_CPUDUMP:
		dump_ask(i, what == UPCALL_DUMP ? BUFFER_ALL : arch_cpu());
		break;
	case UPCALL_GATE:
		__atomic_store_n((uint32_t *)args[0], (uint32_t)args[1], __ATOMIC_RELAXED);
		break;
	case UPCALL_SYNTHETIC:
		synthetic_fire((const struct synthetic *)args[0], f, args + 1);
		break;
	case UPCALL_EPROBE:
		eprobe_fire((const struct eprobe *)args[0], f, args + 1);
		break;
	}
}

void
program_upcall(struct program *p, const struct instance *i, enum upcall what)
{
	program_constant(p, 1, (uintptr_t)i);
	program_emit(p, DIF_UPCALL, 0, 1, 1, (int32_t)what);
}

int
program_attach(const struct program *p, const struct dif_clause *clauses,
	       const struct ktr_site *const *sites, unsigned n, struct dtrace_consumer **to)
{
	struct dif d = {.h = {.flags = DIF_KERNEL,
			      .options = {.strsize = STRING_SIZE,
					  .scratch = STRING_SIZE,
					  .aggsize = p->aggsize,
					  .dynvarsize = p->dynvarsize},
			      .clauses.count = n,
			      .code.count = p->count,
			      .vars.count = p->nvars,
			      .aggs.count = p->naggs,
			      .strings.count = p->strings_len},
			.clauses = clauses,
			.code = p->code,
			.vars = p->vars,
			.aggs = p->aggs,
			.strings = p->strings};

	for (unsigned i = 0; i < p->count; i++)
		if (p->code[i].op == DIF_ARGSTR ||
		    (p->code[i].op == DIF_CALL && p->code[i].imm == DIF_SUB_STRJOIN))
			d.h.options.scratch += STRING_SIZE;
	return dtrace_attach(&d, sites, p->waits, event_upcall, to);
}

int
program_finish(struct program *p, int error, const struct ktr_site *const *sites, unsigned n,
	       struct dtrace_consumer **to)
{
	struct dif_clause *clauses = kmalloc(n * sizeof(*clauses));

	if (error == 0 && clauses == NULL)
		error = -ENOMEM;
	if (error == 0 && !program_end(p))
		error = -ENOSPC;
	for (unsigned i = 0; error == 0 && i < n; i++)
		clauses[i] = (struct dif_clause){.length = p->count};
	if (error == 0 && to != NULL)
		error = program_attach(p, clauses, sites, n, to);
	kfree(clauses);
	program_free(p);
	return error;
}

void
program_free(struct program *p)
{
	kmap_free(p);
}

struct program *
program_new(void)
{
	struct program *p = kmap_alloc(sizeof(*p));

	if (p != NULL)
		p->strings_len = 1;
	return p;
}
