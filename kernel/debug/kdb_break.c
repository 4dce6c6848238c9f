/*
 * kdb_break.c - breakpoints, watchpoints and single steps.
 *
 * The hardware of every CPU watches the same points. A CPU that is stopped or inside the debugger
 * watches none. An instruction that has a breakpoint is stepped before the machine goes on: with
 * all points off, and all other CPUs still stopped. Machines that trap before a watched access step
 * the access in the same way, to see its effect.
 *
 * Locking: only the CPU inside the debugger writes the tables. The others read them when they go
 * on.
 */
#include "arch/context.h"
#include "arch/debug.h"
#include "arch/fixup.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "arch/uaccess.h"
#include "kernel/debug/kdb.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/lib/unwind.h"
#include "kernel/sched/thread.h"
#include "ktr/restart.h"

#define POINTS     8
#define CALL_BYTES 16 /* no call instruction is longer */

extern const char __text_start[], __text_end[];

static struct arch_point points[POINTS + 1]; /* the last one in use may be the temporary point */
static struct point_info {
	unsigned number;
	uint64_t old; /* watchpoints: the value when last read */
} infos[POINTS];
static unsigned point_count, last_number;
static bool points_used; /* a point was set at some time since the boot */

static enum { STEP_NONE, STEP_PROMPT, STEP_NEXT, STEP_GO, STEP_WATCHED } stepping;
static unsigned steps_left;
static bool next_wanted;
static struct unwind_frame next_from; /* STEP_NEXT: the instruction that is stepped */
static int watched;                   /* STEP_WATCHED: index of the watchpoint */

/* The point at which `next` and `until` stop. Only this thread stops there, and no deeper call. */
static struct {
	bool on;
	const char *why;
	const struct thread *thread;
	uintptr_t sp; /* stack pointers below this one belong to a deeper call */
} temporary;

void
kdb_points_load(bool on)
{
	bool was_on;

	if (!__atomic_load_n(&points_used, __ATOMIC_ACQUIRE))
		return;
	was_on = arch_irq_enabled();
	arch_irq_disable();
	arch_points_set(points, on ? point_count + temporary.on : 0);
	if (was_on)
		arch_irq_enable();
}

/* Reads the bytes that a point watches. False: they are not readable. */
static bool
kdb_read_watched(const struct arch_point *p, uint64_t *v)
{
	*v = 0;
	return arch_probe_copy(v, (const void *)p->addr, p->size);
}

/* Steps one instruction. Steps a record as one unit: a trap inside would restart it for ever. */
static void
start_step(struct arch_trapframe *tf, int why)
{
	const struct ktr_restart *record = ktr_restart_find(arch_tf_pc(tf));

	stepping = why;
	if (record == NULL) {
		arch_step(tf, true);
		return;
	}
	arch_tf_set_pc(tf, record->from);
	arch_step_until(tf, record->end, record->out);
}

static bool
at_breakpoint(uintptr_t pc)
{
	for (unsigned i = 0; i < point_count + temporary.on; i++)
		if (points[i].kind == ARCH_POINT_EXEC && points[i].addr == pc)
			return true;
	return false;
}

bool
kdb_temporary_set(const struct unwind_frame *at, const char *why)
{
	points[point_count] = (struct arch_point){.kind = ARCH_POINT_EXEC, .addr = at->pc};
	temporary.on = point_count < POINTS && arch_points_set(points, point_count + 1);
	arch_points_set(points, 0);
	temporary.why = why;
	temporary.thread = curthread();
	temporary.sp = at->sp;
	if (temporary.on)
		__atomic_store_n(&points_used, true, __ATOMIC_RELEASE);
	return temporary.on;
}

void
kdb_temporary_clear(void)
{
	temporary.on = false;
}

enum kdb_temporary
kdb_temporary_hit(const struct arch_trapframe *tf, enum entry_debug why, const char **text)
{
	if (!temporary.on || why != ENTRY_POINT || points[point_count].addr != arch_tf_pc(tf))
		return KDB_TEMPORARY_NO;
	if (curthread() != temporary.thread || arch_tf_sp(tf) < temporary.sp)
		return KDB_TEMPORARY_OTHER;
	*text = temporary.why;
	return KDB_TEMPORARY_HIT;
}

void
kdb_step_want(unsigned steps, bool over_calls)
{
	steps_left = steps;
	next_wanted = over_calls;
	kdb.leave = true;
}

int
kdb_point_hit(const struct arch_trapframe *tf, enum entry_debug why, uintptr_t data)
{
	int near = -1;

	for (unsigned i = 0; i < point_count; i++) {
		const struct arch_point *p = &points[i];

		if (why == ENTRY_POINT && p->kind == ARCH_POINT_EXEC && p->addr == arch_tf_pc(tf))
			return (int)i;
		if (why != ENTRY_WATCH || p->kind == ARCH_POINT_EXEC)
			continue;
		if (data >= p->addr && data < p->addr + p->size)
			return (int)i;
		if (near < 0 || (p->addr & ~15ul) == (data & ~15ul))
			near = (int)i; /* the access may begin below the point */
	}
	return near;
}

bool
kdb_last_stop(uintptr_t pc)
{
	return pc == (uintptr_t)entry_user_return || pc == (uintptr_t)arch_return_to_user ||
	       pc == (uintptr_t)arch_context_switch;
}

bool
kdb_go_on(struct arch_trapframe *tf)
{
	if (next_wanted) {
		next_wanted = false;
		next_from = unwind_of_trap(tf);
		start_step(tf, STEP_NEXT);
		return false;
	}
	if (steps_left > 0) {
		start_step(tf, STEP_PROMPT);
		return false;
	}
	/* A record is stepped from its beginning; the point that stopped it may lie after that. */
	if (tf != NULL &&
	    (at_breakpoint(arch_tf_pc(tf)) || ktr_restart_find(arch_tf_pc(tf)) != NULL)) {
		start_step(tf, STEP_GO);
		return false;
	}
	kdb_points_load(true);
	return true;
}

bool
kdb_step_to_see(struct arch_trapframe *tf, int point)
{
	if (!ARCH_WATCH_BEFORE || point < 0 || points[point].kind == ARCH_POINT_EXEC)
		return false;
	watched = point;
	start_step(tf, STEP_WATCHED);
	return true;
}

/* If the instruction just stepped was a call, lets the machine run until the call returns. */
static bool
runs_call(const struct arch_trapframe *tf)
{
	struct unwind_frame f = unwind_of_trap(tf);

	return kdb_unwind(&f) && !f.exact && f.pc > next_from.pc &&
	       f.pc - next_from.pc <= CALL_BYTES && f.sp == next_from.sp &&
	       kdb_temporary_set(&f, "next");
}

enum kdb_stepped
kdb_step_done(struct arch_trapframe *tf, int *point)
{
	int why = stepping;

	*point = -1;
	if (why == STEP_NONE)
		return KDB_NOT_STEPPED;
	stepping = STEP_NONE;
	arch_step(tf, false);
	if (why == STEP_GO) {
		kdb_points_load(true);
		return KDB_STEPPED_GO;
	}
	if (kdb_last_stop(arch_tf_pc(tf)))
		steps_left = 0;
	else if (why == STEP_NEXT && runs_call(tf)) {
		kdb_points_load(true);
		return KDB_STEPPED_GO;
	} else if (kdb_may_fault(arch_tf_pc(tf)))
		steps_left = 0;
	if (why == STEP_PROMPT && steps_left > 0 && --steps_left > 0) {
		start_step(tf, STEP_PROMPT);
		return KDB_STEPPED_AGAIN;
	}
	if (why == STEP_WATCHED)
		*point = watched;
	return KDB_STEPPED_PROMPT;
}

void
kdb_print_point(int point)
{
	struct arch_point *p = &points[point];
	struct point_info *info = &infos[point];
	uint64_t v;

	if (p->kind == ARCH_POINT_EXEC) {
		kdb_printf("breakpoint %u", info->number);
		return;
	}
	kdb_printf("watchpoint %u: ", info->number);
	kdb_print_symbol(p->addr);
	if (kdb_read_watched(p, &v))
		kdb_printf(": old %#lx new %#lx", info->old, v);
	info->old = v;
}

static void
kdb_list_points(void)
{
	static const char *const kinds[] = {[ARCH_POINT_EXEC] = "break",
					    [ARCH_POINT_WRITE] = "watch w",
					    [ARCH_POINT_ACCESS] = "watch rw"};

	for (unsigned i = 0; i < point_count; i++) {
		kdb_printf("%-3u %-8s ", infos[i].number, kinds[points[i].kind]);
		kdb_print_symbol(points[i].addr);
		if (points[i].kind != ARCH_POINT_EXEC)
			kdb_printf(" size %u", points[i].size);
		kdb_printf("\n");
	}
	if (point_count == 0)
		kdb_printf("none\n");
}

static void
kdb_point_add(const struct arch_point *p)
{
	struct point_info *info;
	bool fits = point_count < POINTS;

	if (fits) {
		points[point_count] = *p;
		/*
		 * Tests whether the registers suffice. Inside the debugger no point stays active.
		 */
		fits = arch_points_set(points, point_count + 1);
	}
	if (!fits) {
		kdb_printf("no free debug register: this machine has %u for breakpoints and %u for "
			   "watchpoints%s; delete one\n",
			   arch_points_max(ARCH_POINT_EXEC), arch_points_max(ARCH_POINT_WRITE),
			   ARCH_WATCH_BEFORE ? "" : ", the same ones");
		return;
	}
	arch_points_set(points, 0);
	info = &infos[point_count];
	info->number = ++last_number;
	if (p->kind != ARCH_POINT_EXEC)
		kdb_read_watched(p, &info->old);
	point_count++;
	__atomic_store_n(&points_used, true, __ATOMIC_RELEASE);
	kdb_printf("%s %u at ", p->kind == ARCH_POINT_EXEC ? "breakpoint" : "watchpoint",
		   info->number);
	kdb_print_symbol(p->addr);
	kdb_printf("\n");
}

bool
kdb_may_fault(uintptr_t addr)
{
	for (size_t i = 0; &__start_ex_table[i] < __stop_ex_table; i++)
		if (__start_ex_table[i].from == addr)
			return true;
	return false;
}

void
kdb_command_break(char *mod, char *args)
{
	struct arch_point p = {.kind = ARCH_POINT_EXEC};
	const char *text = args;
	uint64_t addr;

	if (!kdb_more_words(&text)) {
		kdb_list_points();
		return;
	}
	if (!kdb_expr(&text, &addr))
		return;
	p.addr = addr;
	if (!unwind_in_text(addr))
		kdb_printf("break: %#lx: expected an address in the kernel's text, %p to %p\n",
			   addr, __text_start, __text_end);
	else if (kdb_may_fault(addr))
		kdb_printf("break: %#lx: this instruction copies user memory; choose the "
			   "one before\n",
			   addr);
	else if (at_breakpoint(addr))
		kdb_printf("break: %#lx: has a breakpoint already\n", addr);
	else
		kdb_point_add(&p);
}

void
kdb_command_watch(char *mod, char *args)
{
	struct arch_point p = {.kind = ARCH_POINT_WRITE, .size = 8};
	const char *text = args;
	uint64_t addr, size, v;
	char *rest, *word;

	if (!kdb_expr(&text, &addr))
		return;
	rest = args + (text - args);
	while ((word = kdb_word(&rest)) != NULL) {
		if (strcmp(word, "rw") == 0) {
			p.kind = ARCH_POINT_ACCESS;
		} else if (strcmp(word, "w") != 0) {
			if (!kdb_number(word, &size) ||
			    (size != 1 && size != 2 && size != 4 && size != 8)) {
				kdb_printf("watch: \"%s\": expected a size of 1, 2, 4 or 8, or w "
					   "or rw\n",
					   word);
				return;
			}
			p.size = (unsigned)size;
		}
	}
	p.addr = addr;
	if (addr % p.size != 0)
		kdb_printf("watch: %#lx: expected a multiple of the size, %u\n", addr, p.size);
	else if (addr < ARCH_DIRECT_BASE || !kdb_read_watched(&p, &v))
		kdb_printf("watch: %#lx: expected kernel memory\n", addr);
	else
		kdb_point_add(&p);
}

void
kdb_command_delete(char *mod, char *args)
{
	char *word = kdb_word(&args);
	uint64_t number;

	if (word != NULL && strcmp(word, "all") == 0) {
		point_count = 0;
		return;
	}
	for (unsigned i = 0; word != NULL && kdb_number(word, &number) && i < point_count; i++) {
		if (infos[i].number != number)
			continue;
		point_count--;
		memmove(&points[i], &points[i + 1], (point_count - i) * sizeof(points[0]));
		memmove(&infos[i], &infos[i + 1], (point_count - i) * sizeof(infos[0]));
		return;
	}
	kdb_printf("delete: \"%s\": expected a number that break lists, or all\n",
		   word != NULL ? word : "");
}
