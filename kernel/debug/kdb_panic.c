/*
 * kdb_panic.c - panics.
 *
 * The first CPU that panics reports. Other CPUs that panic at the same time wait until it stops
 * them. A panic inside a debugger command returns to the prompt. A panic while a panic is handled
 * powers off at once, and so does one elsewhere in the debugger for which another CPU waits, to
 * panic, too. No locks: the machine is stopped.
 */
#include <stdarg.h>

#include "arch/irq.h"
#include "arch/machine.h"
#include "arch/pcpu.h"
#include "arch/trap.h"
#include "kernel/debug/kdb.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/stop.h"
#include "kernel/trace/flush.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"

static int panic_cpu = KDB_NO_CPU; /* atomic */
static char panic_text[256];

/* Prints the report for scripts (place, backtraces, last events), ends the stream, powers off. */
static _Noreturn void
panic_report(void)
{
	kdb_printf("cpu %d, thread ", stop.owner);
	kdb_print_thread(curthread());
	kdb_printf("\n");
	kdb_backtrace();
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		if (pcpus[cpu] != NULL && (int)cpu != stop.owner) {
			kdb_printf("cpu %u, thread ", cpu);
			kdb_print_thread(pcpus[cpu]->md.curthread);
			kdb_printf("\n");
			kdb_backtrace_cpu(cpu);
		}
	kdb_print_events((unsigned)kdb_panic_events);
	ktr_flush_finish();
	arch_poweroff(PANIC_STATUS);
}

static _Noreturn void
panic_stop(const struct kdb_place *place, const char *fmt, va_list ap)
{
	int none = KDB_NO_CPU, cpu;
	char text[sizeof(panic_text)];

	arch_irq_disable();
	cpu = (int)arch_cpu();
	vsnprintf(text, sizeof(text), fmt, ap);
	if (stop_inside())
		kdb_recover(text, place->pc);
	if (!__atomic_compare_exchange_n(&panic_cpu, &none, cpu, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		if (none == cpu || stop_inside()) {
			kdb_printf("panic inside a panic, at ");
			kdb_print_symbol(place->pc);
			kdb_printf(": %s; the first: %s\n", text, panic_text);
			arch_poweroff(PANIC_STATUS);
		}
		for (;;)
			arch_relax();
	}
	strlcpy(panic_text, text, sizeof(panic_text));
	CTR1(KTR_GEN | KTR_TRAP | KTR_PROC | KTR_SCHED, "panic: %s", ktr_intern(panic_text));
	kdb_stop_machine(place->tf);
	kdb.place = *place;
	__atomic_store_n(&stop.panicked, true, __ATOMIC_RELEASE);
	kdb_printf("\npanic: %s\n", panic_text);
	if (place->tf != NULL)
		arch_tf_print(place->tf);
	switch (kdb_panic_action()) {
	case KDB_ACTION_DEBUG:
		for (;;)
			kdb_loop(); /* continue is refused: only poweroff and reboot end this */
	case KDB_ACTION_REBOOT:
		ktr_flush_finish();
		arch_reboot();
	case KDB_ACTION_DUMP:
		break;
	}
	panic_report();
}

void
kdb_panic(uintptr_t pc, uintptr_t fp, uintptr_t sp, const char *fmt, va_list ap)
{
	panic_stop(&(struct kdb_place){.pc = pc, .fp = fp, .sp = sp}, fmt, ap);
}

void
panic_trap(struct arch_trapframe *tf, const char *fmt, ...)
{
	struct kdb_place place = kdb_place_of(tf);
	va_list ap;

	va_start(ap, fmt);
	panic_stop(&place, fmt, ap);
}
