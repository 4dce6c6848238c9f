/*
 * kdb_run.c - the commands continue, step, next, until and call. No locks.
 */
#include "arch/irq.h"
#include "arch/trap.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/unwind.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/stop.h"

#define STEP_MAX  10000
#define CALL_ARGS 6

void
kdb_command_continue(char *mod, char *args)
{
	if (stop_panicked()) {
		kdb_printf("continue: not possible after a panic; use poweroff or reboot\n");
	} else {
		kdb.leave = true;
		kdb_keys_back();
	}
}

/* True: the machine did not stop where steps can begin, and an error line was printed. */
static bool
cannot_step(const char *command)
{
	if (stop_panicked())
		kdb_printf("%s: not possible after a panic; use poweroff or reboot\n", command);
	else if (kdb.place.tf == NULL || arch_tf_user(kdb.place.tf))
		kdb_printf("%s: the machine was not stopped in kernel code by a trap\n", command);
	else if (kdb_last_stop(kdb.place.pc) || curthread() == this_pcpu()->idle)
		kdb_printf("%s: the kernel is about to leave this thread; use continue\n", command);
	else
		return false;
	return true;
}

/* True: the instruction at the stop cannot be stepped, and an error line was printed. */
static bool
cannot_step_here(const char *command)
{
	if (cannot_step(command))
		return true;
	if (!kdb_may_fault(kdb.place.pc))
		return false;
	kdb_printf("%s: this instruction copies user memory; use until, or continue\n", command);
	return true;
}

void
kdb_command_step(char *mod, char *args)
{
	char *word = kdb_word(&args);
	uint64_t n = 1;

	if (word != NULL && (!kdb_number(word, &n) || n == 0 || n > STEP_MAX))
		kdb_printf("step: \"%s\": expected 1 to %d instructions\n", word, STEP_MAX);
	else if (!cannot_step_here("step"))
		kdb_step_want((unsigned)n, false);
}

void
kdb_command_next(char *mod, char *args)
{
	if (!cannot_step_here("next"))
		kdb_step_want(0, true);
}

void
kdb_command_until(char *mod, char *args)
{
	const char *text = args;
	struct unwind_frame at = {0};
	uint64_t addr;

	if (cannot_step("until"))
		return;
	if (kdb_more_words(&text)) {
		if (!kdb_expr(&text, &addr))
			return;
		at.pc = addr;
	} else {
		at = unwind_of_trap(kdb.place.tf);
		if (!kdb_unwind(&at)) {
			kdb_printf("until: the return address of this function is not known\n");
			return;
		}
	}
	if (at.user || !unwind_in_text(at.pc))
		kdb_printf("until: %#lx: expected an address in the kernel's text\n", at.pc);
	else if (kdb_may_fault(at.pc))
		kdb_printf("until: %#lx: this instruction copies user memory; choose the "
			   "one before\n",
			   at.pc);
	else if (!kdb_temporary_set(&at, "until"))
		kdb_printf("until: no free breakpoint register; delete a breakpoint\n");
	else
		kdb.leave = true;
}

void
kdb_command_call(char *mod, char *args)
{
	uint64_t (*fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	uint64_t addr, a[CALL_ARGS] = {0}, result;
	const char *text = args;
	unsigned n = 0;

	if (!kdb_expr(&text, &addr))
		return;
	for (; kdb_more_words(&text); n++)
		if (n == CALL_ARGS) {
			kdb_printf("call: \"%s\": expected at most %d arguments\n", text,
				   CALL_ARGS);
			return;
		} else if (!kdb_expr(&text, &a[n])) {
			return;
		}
	if (!unwind_in_text(addr)) {
		kdb_printf("call: %#lx: expected a function of the kernel\n", addr);
		return;
	}
	fn = (uint64_t(*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))addr;
	result = fn(a[0], a[1], a[2], a[3], a[4], a[5]);
	arch_irq_disable(); /* the function may have enabled interrupts */
	kdb_printf("%#lx %ld\n", result, (int64_t)result);
}
