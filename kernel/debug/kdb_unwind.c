/*
 * kdb_unwind.c - backtraces. Memory may be broken: all of it is read by probes, and no walk goes on
 * for ever. No locks.
 *
 * The compiler's call frame information (ksyms.h) describes the frame of C code at every
 * instruction, also at the first and the last of a function. Assembly has none. Interrupted
 * assembly has either no frame yet or a trap frame, which the port knows. Otherwise the chain of
 * frame pointers is followed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/debug.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/stop.h"

#define BT_DEPTH 64

extern const char __text_start[], __text_end[];

bool
kdb_in_text(uintptr_t pc)
{
	return pc >= (uintptr_t)__text_start && pc < (uintptr_t)__text_end;
}

struct kdb_frame
kdb_frame_of_trap(const struct arch_trapframe *tf)
{
	return (struct kdb_frame){.pc = arch_tf_pc(tf),
				  .sp = arch_tf_sp(tf),
				  .fp = arch_tf_fp(tf),
				  .link = arch_tf_link(tf),
				  .exact = true,
				  .user = arch_tf_user(tf)};
}

/* Finds the caller by the call frame information. */
static bool
leave_by_rule(struct kdb_frame *f, const struct ksyms_frame *rule)
{
	uint64_t base = rule->cfa & KSYMS_CFA_FROM_FP ? f->fp : f->sp;
	uint64_t cfa = base + 8 * ((rule->cfa & ~KSYMS_CFA_FROM_FP) - 1ul);
	uint64_t ra = f->link, fp = f->fp;

	/* A frame lies in kernel memory, and its caller's frame lies above it. */
	if (cfa % 8 != 0 || cfa < ARCH_DIRECT_BASE || cfa < f->sp)
		return false;
	if (rule->ra != 0 && !arch_probe_read(&ra, (void *)(cfa - 8ul * rule->ra)))
		return false;
	if (rule->ra == 0 && !f->exact)
		return false; /* a call has overwritten the link register */
	if (rule->fp != 0 && !arch_probe_read(&fp, (void *)(cfa - 8ul * rule->fp)))
		return false;
	*f = (struct kdb_frame){.pc = ra, .sp = cfa, .fp = fp};
	return true;
}

/* Finds the caller of an assembly function that has not made a frame. */
static bool
leave_leaf(struct kdb_frame *f)
{
	uint64_t ra = f->link;

	if (ra != 0) {
		*f = (struct kdb_frame){.pc = ra, .sp = f->sp, .fp = f->fp};
		return kdb_in_text(ra);
	}
	if (!arch_probe_read(&ra, (void *)f->sp) || !kdb_in_text(ra))
		return false;
	*f = (struct kdb_frame){.pc = ra, .sp = f->sp + 8, .fp = f->fp};
	return true;
}

/* Finds the caller by the chain of frame pointers. */
static bool
leave_by_chain(struct kdb_frame *f)
{
	uint64_t pair[2];

	if (f->fp % 8 != 0 || f->fp < ARCH_DIRECT_BASE ||
	    !arch_probe_copy(pair, (void *)f->fp, sizeof(pair)))
		return false;
	*f = (struct kdb_frame){.pc = pair[1],
				.sp = f->fp + sizeof(pair),
				.fp = pair[0] > f->fp ? pair[0] : 0};
	return true;
}

bool
kdb_unwind(struct kdb_frame *f)
{
	const struct arch_trapframe *tf = f->exact ? NULL : arch_unwind_trap(f->pc, f->sp);
	struct ksyms_frame rule;
	uint64_t probe;

	if (tf != NULL) {
		if (!arch_probe_read(&probe, tf) ||
		    !arch_probe_read(&probe, (const uint64_t *)&tf[1] - 1))
			return false;
		*f = kdb_frame_of_trap(tf);
		return true;
	}
	if (!kdb_in_text(f->pc))
		return f->exact && leave_leaf(f); /* a call to an address that is not code */
	if (ksym_frame(f->pc - !f->exact, &rule))
		return leave_by_rule(f, &rule) && f->pc != 0;
	if (f->exact && leave_leaf(f))
		return true;
	return leave_by_chain(f) && f->pc != 0;
}

static void
kdb_backtrace_from(struct kdb_frame f)
{
	for (unsigned n = 0; n < BT_DEPTH && !kdb.quit;) {
		if (f.user) {
			kdb_printf("--- from user mode, pc %#lx sp %#lx ---\n", f.pc, f.sp);
			return;
		}
		if (f.exact && n > 0)
			kdb_printf("--- interrupted, sp %#lx ---\n", f.sp);
		if (f.exact || arch_unwind_trap(f.pc, f.sp) == NULL) {
			kdb_printf("#%-2u 0x%016lx ", n++, f.pc);
			kdb_print_place(f.pc, !f.exact);
			kdb_printf("\n");
		}
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
		kdb_backtrace_from(kdb_frame_of_trap(kdb.place.tf));
	else
		kdb_backtrace_from(
		    (struct kdb_frame){.pc = kdb.place.pc, .sp = kdb.place.sp, .fp = kdb.place.fp});
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
		kdb_backtrace_from(kdb_frame_of_trap(tf));
}

static void
kdb_backtrace_thread(const struct thread *t)
{
	int cpu = kdb_thread_cpu(t);
	struct kdb_frame f = {0};

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
