/*
 * kdb_unwind.c - prints backtraces (kernel/lib/unwind.h). Memory may be broken: all of it is read
 * by probes, and no walk goes on for ever. No locks.
 */
#include "arch/debug.h"
#include "arch/trap.h"
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/lib/unwind.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/stop.h"

#define BT_DEPTH 64

static bool
kdb_load(uintptr_t *to, uintptr_t from, unsigned words)
{
	return arch_probe_copy(to, (const void *)from, words * sizeof(*to));
}

bool
kdb_unwind(struct unwind_frame *f)
{
	return unwind_step(f, kdb_load, true);
}

static void
kdb_backtrace_from(struct unwind_frame f)
{
	for (unsigned n = 0; n < BT_DEPTH && !kdb.quit;) {
		if (f.user) {
			kdb_printf("--- from user mode, pc %#lx sp %#lx ---\n", f.pc, f.sp);
			return;
		}
		if (f.exact && n > 0)
			kdb_printf("--- interrupted, sp %#lx ---\n", f.sp);
		kdb_printf("#%-2u 0x%016lx ", n++, f.pc);
		kdb_print_place(f.pc, !f.exact);
		kdb_printf("\n");
		if (!kdb_unwind(&f))
			return;
	}
	if (!kdb.quit)
		kdb_printf("... more than %d frames\n", BT_DEPTH);
}

void
kdb_backtrace(void)
{
	if (kdb.place.tf != NULL)
		kdb_backtrace_from(unwind_of_trap(kdb.place.tf));
	else
		kdb_backtrace_from((struct unwind_frame){.pc = kdb.place.pc,
							 .sp = kdb.place.sp,
							 .fp = kdb.place.fp});
}

void
kdb_backtrace_cpu(unsigned cpu)
{
	struct pcpu *pc = cpu < MAX_CPUS ? pcpus[cpu] : NULL;
	struct arch_trapframe *tf;

	if (pc == NULL) {
		kdb_printf("no cpu %u; there are 0 to %u\n", cpu, ncpus - 1);
		return;
	}
	if ((int)cpu == stop.owner) {
		kdb_backtrace();
		return;
	}
	tf = __atomic_load_n(&pc->stopped, __ATOMIC_ACQUIRE);
	if (tf == NULL)
		kdb_printf("cpu %u did not stop; its stack is unknown\n", cpu);
	else if (arch_tf_user(tf))
		kdb_printf("cpu %u runs user code at %#lx\n", cpu, arch_tf_pc(tf));
	else
		kdb_backtrace_from(unwind_of_trap(tf));
}

static void
kdb_backtrace_thread(const struct thread *t)
{
	int cpu = kdb_thread_cpu(t);
	struct unwind_frame f = {0};

	if (cpu != KDB_NO_CPU) {
		kdb_backtrace_cpu((unsigned)cpu);
		return;
	}
	arch_context_frame(t, &f.pc, &f.sp, &f.fp);
	kdb_backtrace_from(f);
}

void
kdb_command_bt(char *mod, char *args)
{
	char *word = kdb_word(&args);
	const struct thread *t;
	uint64_t n;

	if (word == NULL) {
		kdb_backtrace();
	} else if (strcmp(word, "cpu") != 0) {
		t = kdb_thread_find("bt", word);
		if (t != NULL)
			kdb_backtrace_thread(t);
	} else if ((word = kdb_word(&args)) == NULL || !kdb_number(word, &n) || n > UINT32_MAX) {
		kdb_printf("bt: cpu \"%s\": expected a number, 0 to %u\n", word != NULL ? word : "",
			   ncpus - 1);
	} else {
		kdb_backtrace_cpu((unsigned)n);
	}
}
