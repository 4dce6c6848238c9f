/*
 * kdb.c - the debugger: it stops the machine, runs the prompt, and lets the machine go on.
 *
 * The CPU that enters the debugger claims the machine (kernel/sync/stop.h). It is `stop.owner`
 * until the machine goes on, and no events are recorded meanwhile. When a command faults, the
 * debugger jumps back to the prompt.
 */
#include "kernel/debug/kdb.h"

#include "arch/debug.h"
#include "arch/irq.h"
#include "arch/pcpu.h"
#include "arch/trap.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/panic.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "kernel/trace/flush.h"
#include "ktr/ktr.h"
#include "ktr/ring.h"

struct kdb_state kdb;

static const char *kdb_why; /* atomic: why kdb_request() executes a breakpoint */
static struct {
	unsigned locks, mutexes;
	int irq_depth;
} kdb_saved; /* for the jump back to the prompt */

void
kdb_stop_machine(struct arch_trapframe *tf)
{
	if (stop_inside())
		return;         /* a panic inside the debugger: all CPUs are stopped already */
	kdb_points_load(false); /* the code below may contain a breakpoint */
	stop_claim(tf);
	kdb_points_load(false);     /* an NMI may have come while another CPU had the machine */
	ktr_ring_close(arch_cpu()); /* effective because ktr_port_suppressed() asks stop_inside() */
	ktr_flush_settle();
	kdb.stopped = ncpus > 1 ? stop_others() : 0;
}

static void
kdb_resume_machine(void)
{
	kdb_settings_go_on();
	stop_release();
}

void
kdb_recover(const char *what, uintptr_t pc)
{
	if (!stop.command)
		return;
	kdb.quit = false;
	kdb_printf("\n%s, in the debugger at ", what);
	kdb_print_symbol(pc);
	kdb_printf("\n");
	spin_abandon(kdb_saved.locks);
	mutex_abandon(kdb_saved.mutexes);
	this_pcpu()->irq_depth = kdb_saved.irq_depth;
	arch_irq_disable();
	__builtin_longjmp(kdb.recover, 1);
}

void
kdb_loop(void)
{
	static char line[KDB_LINE_MAX]; /* static: must keep its value when kdb_recover() jumps */

	kdb.leave = false;
	kdb_saved.locks = this_pcpu()->locks;
	kdb_saved.mutexes = curthread() != NULL ? curthread()->mutexes : 0;
	kdb_saved.irq_depth = this_pcpu()->irq_depth;
	(void)__builtin_setjmp(kdb.recover);
	stop.command = true;
	while (!kdb.leave) {
		kdb.quit = kdb.pager = kdb.running = false;
		kdb_readline("db> ", line);
		kdb.row = kdb.column = 0;
		kdb.pager = kdb.running = true;
		kdb_run(line);
	}
	stop.command = kdb.pager = kdb.running = kdb.quit = false;
}

struct kdb_place
kdb_place_of(struct arch_trapframe *tf)
{
	return (struct kdb_place){.pc = arch_tf_pc(tf),
				  .fp = arch_tf_fp(tf),
				  .sp = arch_tf_sp(tf),
				  .tf = tf};
}

/*
 * Runs the prompt. Then lets the machine go on, or steps one instruction. The machine is stopped.
 */
static void
kdb_ask(const char *why, int point)
{
	kdb_printf("\n");
	if (point >= 0)
		kdb_print_point(point);
	else
		kdb_printf("%s", why);
	kdb_printf(" on cpu %d, at ", stop.owner);
	kdb_print_symbol(kdb.place.pc);
	kdb_printf("\n");
	if (kdb.stopped + 1 < ncpus)
		kdb_printf("%u of %u other CPUs did not stop\n", ncpus - 1 - kdb.stopped,
			   ncpus - 1);
	if (point < 0 && !kdb.stepped)
		kdb_printf("help lists the commands; continue goes on\n");
	kdb.stepped = false;
	kdb_temporary_clear();
	kdb_loop();
	if (kdb_go_on(kdb.place.tf))
		kdb_resume_machine();
}

void
kdb_trap(struct arch_trapframe *tf, enum entry_debug why, uintptr_t data)
{
	static const char *const names[] = {[ENTRY_BREAKPOINT] = "breakpoint",
					    [ENTRY_STEP] = "single step",
					    [ENTRY_POINT] = "breakpoint",
					    [ENTRY_WATCH] = "watchpoint"};
	const char *asked;
	int point;

	if (stop_inside()) {
		switch (kdb_step_done(tf, &point)) {
		case KDB_NOT_STEPPED:
			kdb_recover(names[why], arch_tf_pc(tf));
			return;
		case KDB_STEPPED_AGAIN:
			return;
		case KDB_STEPPED_GO:
			kdb_resume_machine();
			return;
		case KDB_STEPPED_PROMPT:
			kdb.place = kdb_place_of(tf);
			kdb.stepped = true;
			/*
			 * Steps over a loop of exclusives end at a breakpoint. Report them as
			 * steps, too.
			 */
			kdb_ask(names[ENTRY_STEP], point);
			return;
		}
	}
	kdb_stop_machine(tf);
	kdb.place = kdb_place_of(tf);
	switch (kdb_temporary_hit(tf, why, &asked)) {
	case KDB_TEMPORARY_OTHER:
		if (kdb_point_hit(tf, why, data) >= 0)
			break; /* the user has set a point at this place, too */
		if (kdb_go_on(tf))
			kdb_resume_machine();
		return;
	case KDB_TEMPORARY_HIT:
		kdb.stepped = true;
		kdb_ask(asked, -1);
		return;
	case KDB_TEMPORARY_NO:
		break;
	}
	point = kdb_point_hit(tf, why, data);
	if ((why == ENTRY_POINT || why == ENTRY_WATCH) && point < 0) {
		/* The point was deleted while this CPU waited to enter. */
		kdb_points_load(true);
		kdb_resume_machine();
		return;
	}
	if (kdb_step_to_see(tf, point))
		return;
	asked =
	    why == ENTRY_BREAKPOINT ? __atomic_exchange_n(&kdb_why, NULL, __ATOMIC_ACQ_REL) : NULL;
	kdb_ask(asked != NULL ? asked : names[why], point);
}

void
kdb_alarm(struct arch_trapframe *tf, const char *why)
{
	if (kdb_panic_action() != KDB_ACTION_DEBUG && tf != NULL)
		panic_trap(tf, "%s", why);
	if (kdb_panic_action() != KDB_ACTION_DEBUG)
		panic("%s", why);
	if (tf == NULL) {
		kdb_request(why);
		return;
	}
	kdb_stop_machine(tf);
	kdb.place = kdb_place_of(tf);
	kdb_ask(why, -1);
}

void
kdb_request(const char *why)
{
	irq_push();
	__atomic_store_n(&kdb_why, why, __ATOMIC_RELEASE);
	CTR1(KTR_GEN, "debugger: %s", why);
	arch_breakpoint();
	irq_pop();
}

static const struct panic_ops kdb_panic_ops = {.stop = kdb_panic, .ask = kdb_request};

void
kdb_init(void)
{
	panic_register(&kdb_panic_ops);
}
