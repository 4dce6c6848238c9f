/*
 * stack.c - stack_trace, stack_max_size, stack_trace_filter: the deepest kernel stack so far, and
 * whose frames are in it. A function's entry is where the depth is looked at, while the sysctl
 * kernel.stack_tracer_enabled is 1. Locking: ftrace_lock; `deepest` has a spin lock that is held
 * where no hook can run.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/lib/unwind.h"
#include "kernel/sched/thread.h"
#include "ktr/control.h"

#define FRAMES 64u

static unsigned owner; /* 0: it is off */
static struct {
	uint32_t lock;
	uint64_t size; /* atomic: bytes */
	unsigned n;
	struct {
		uintptr_t pc;
		uint64_t depth; /* bytes of the stack, with the function's own */
	} frames[FRAMES];
} deepest;

static void
stack_add_place(uintptr_t pc, uint64_t depth)
{
	if (deepest.n == FRAMES)
		return;
	deepest.frames[deepest.n].pc = pc;
	deepest.frames[deepest.n++].depth = depth;
}

/* unwind_load_fn: from this thread's stack. */
static bool
stack_load(uintptr_t *to, uintptr_t from, unsigned words)
{
	size_t n = words * sizeof(*to);

	if (from - (uintptr_t)curthread()->kstack > KSTACK_SIZE - n)
		return false;
	memcpy(to, (const void *)from, n);
	return true;
}

/* The functions from the probe on, which is where a function begins. */
static void
stack_walk(const struct ktr_firing *f, uintptr_t top)
{
	const struct ktr_where where = ktr_firing_where(f);
	struct unwind_frame at = {.pc = where.ret, .fp = where.fp};

	deepest.n = 0;
	stack_add_place(where.pc, deepest.size);
	stack_add_place(where.ret, deepest.size);
	while (deepest.n < FRAMES && unwind_step(&at, stack_load, true) && !at.user && at.sp != 0)
		stack_add_place(at.pc, top - at.sp);
}

static void
stack_fire(const struct ktr_firing *f)
{
	uintptr_t bottom = (uintptr_t)curthread()->kstack, top = bottom + KSTACK_SIZE;
	uint64_t depth = top - (uintptr_t)f->frame;

	if (depth > KSTACK_SIZE || depth <= __atomic_load_n(&deepest.size, __ATOMIC_RELAXED))
		return;
	hook_lock(&deepest.lock);
	if (depth > deepest.size) {
		__atomic_store_n(&deepest.size, depth, __ATOMIC_RELAXED);
		stack_walk(f, top);
	}
	hook_unlock(&deepest.lock);
}

static bool
stack_site_wanted(const struct ktr_site *site, void *arg)
{
	const struct functions *f = &instance_top.functions;

	return site->kind == KTR_SITE_ENTRY &&
	       (!functions_any(f, FUNCTIONS_STACK) || functions_have(f, FUNCTIONS_STACK, site));
}

void
stack_update(void)
{
	if (owner != 0)
		ktr_select_all(owner, stack_site_wanted, NULL);
}

/* ---- files ---- */

static void
stack_forget(void *size)
{
	hook_lock(&deepest.lock);
	__atomic_store_n(&deepest.size, *(const uint64_t *)size, __ATOMIC_RELAXED);
	hook_unlock(&deepest.lock);
}

void
stack_show_size(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%lu\n", deepest.size);
}

int
stack_store_size(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t size;
	int error = tracefs_number(text, &size);

	if (error == 0)
		ktr_hook_without(stack_forget, &size);
	return error;
}

static void
stack_copy(void *to)
{
	hook_lock(&deepest.lock);
	*(__typeof__(deepest) *)to = deepest;
	hook_unlock(&deepest.lock);
}

void
stack_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	__typeof__(deepest) d;

	ktr_hook_without(stack_copy, &d);
	sbuf_printf(out,
		    "        Depth    Size   Location    (%u entries)\n"
		    "        -----    ----   --------\n",
		    d.n);
	if (owner == 0 && d.size == 0)
		sbuf_puts(out, "#\n#  Stack tracer disabled\n#\n"
			       "# To enable the stack tracer, set the sysctl "
			       "kernel.stack_tracer_enabled to 1\n#\n");
	for (unsigned n = 0; n < d.n; n++) {
		uint64_t rest = n + 1 < d.n ? d.frames[n + 1].depth : 0;

		sbuf_printf(out, "%3u) %8lu   %5lu   ", n, d.frames[n].depth,
			    d.frames[n].depth - rest);
		print_address(out, d.frames[n].pc);
		sbuf_putc(out, '\n');
	}
}

/* ---- the sysctl ---- */

static uint64_t
stack_enabled(void)
{
	return owner != 0;
}

static int
stack_enable(int64_t on, char *err, size_t errlen)
{
	int n = 0;

	mutex_lock(&ftrace_lock);
	if (on == 0)
		instance_disown(&owner);
	else if (owner == 0)
		n = instance_owner(&instance_top, "ftrace stack", stack_fire);
	if (n > 0)
		owner = (unsigned)n;
	stack_update();
	mutex_unlock(&ftrace_lock);
	if (n < 0)
		snprintf(err, errlen, "too many programs trace functions");
	return n < 0 ? -EBUSY : 0;
}

SYSCTL_INT_CALL(kernel_stack_tracer_enabled, "kernel.stack_tracer_enabled", SYSCTL_WR,
		stack_enabled, stack_enable, 0, 1,
		"1: the deepest kernel stack is looked for; see stack_trace in tracefs");
