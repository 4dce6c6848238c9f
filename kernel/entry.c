/*
 * entry.c - the functions that the port calls on traps and interrupts.
 */
#include "kernel/entry.h"

#include <ktr_port.h>

#include "arch/fixup.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/regset.h"
#include "arch/smp.h"
#include "arch/trap.h"
#include "kernel/abi/signal.h"
#include "kernel/debug/kdb.h"
#include "kernel/debug/watchdog.h"
#include "kernel/dev/irq.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/ptrace.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "kernel/vm/vm.h"
#include "ktr/restart.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROVIDER_DECLARE(vminfo);
SDT_PROVIDER_DECLARE(irq);
SDT_PROVIDER_DECLARE(exceptions);
SDT_PROVIDER_DECLARE(sdt);
SDT_PROBE_DEFINE_TEXT(irq, , , irq_handler_entry, "irq_handler_entry", ": irq=%d name=%s", 2, "int",
		      "char *");
SDT_PROBE_DEFINE_TEXT(irq, , , irq_handler_exit, "irq_handler_exit", ": irq=%d ret=%s", 2, "int",
		      "char *");
SDT_PROBE_DEFINE_TEXT(sdt, , , interrupt_start, "interrupt-start", ": vector=%d name=%s", 2, "int",
		      "char *");
SDT_PROBE_DEFINE_TEXT(sdt, , , interrupt_complete, "interrupt-complete", ": vector=%d name=%s", 2,
		      "int", "char *");
SDT_PROBE_DEFINE_TEXT(exceptions, , , page_fault_user, "page_fault_user",
		      ": address=%#lx ip=%#lx error_code=%#x", 3, "uintptr_t", "uintptr_t",
		      "unsigned");
SDT_PROBE_DEFINE_TEXT(exceptions, , , page_fault_kernel, "page_fault_kernel",
		      ": address=%#lx ip=%#lx error_code=%#x", 3, "uintptr_t", "uintptr_t",
		      "unsigned");
SDT_PROBE_DEFINE_TEXT(vminfo, , , as_fault, "as_fault", ": n %d va %#lx", 2, "int", "uintptr_t");
SDT_PROBE_DEFINE_TEXT(proc, , , fault, "fault", ": sig %d va %#lx pc %#lx", 3, "int", "uintptr_t",
		      "uintptr_t");

#define OOM_TRIES    100 /* of 10 ms each */
#define NMI_STALE_NS 10000000ull

static const char *
irq_name(enum entry_irq what, unsigned number)
{
	static const char *const ipis[IPI_COUNT] = {[IPI_RESCHED] = "resched", [IPI_CALL] = "call"};

	switch (what) {
	case ENTRY_IRQ_TIMER:
		return "timer";
	case ENTRY_IRQ_IPI:
		return ipis[number];
	case ENTRY_IRQ_LINE:
		return irq_line_name(number);
	case ENTRY_IRQ_NMI:
		return "nmi";
	default:
		return "stray";
	}
}

static void
irq_serve(enum entry_irq what, unsigned number, struct arch_trapframe *tf)
{
	switch (what) {
	case ENTRY_IRQ_TIMER:
		timer_interrupt(tf);
		break;
	case ENTRY_IRQ_IPI:
		smp_ipi(number);
		break;
	case ENTRY_IRQ_LINE:
		irq_line_raised(number);
		break;
	case ENTRY_IRQ_NMI:
		entry_nmi(tf);
		break;
	case ENTRY_IRQ_STRAY:
		break;
	}
}

/* May the interrupted thread be preempted here? */
static bool
irq_may_preempt(struct arch_trapframe *tf)
{
	return arch_tf_irq_on(tf) && this_pcpu()->irq_depth == 0 &&
	       this_pcpu()->idle != curthread();
}

void
entry_interrupt(unsigned vector, enum entry_irq what, unsigned number, struct arch_trapframe *tf)
{
	/* Whatever thread was interrupted: the interrupt's events and calls are recorded. */
	bool lifted = ktr_port_lift(), silent = curthread()->silent;

	curthread()->silent = false;
	SDT_CTR4(irq, , , irq_handler_entry, SDT_ARGS2(vector, irq_name(what, number)), KTR_INTR,
		 "interrupt enter: vector %#x name %s pc %#lx user %d", vector,
		 irq_name(what, number), arch_tf_pc(tf), arch_tf_user(tf));
	SDT_PROBE2(sdt, , , interrupt_start, vector, irq_name(what, number));
	irq_serve(what, number, tf);
	SDT_PROBE2(sdt, , , interrupt_complete, vector, irq_name(what, number));
	SDT_CTR1(irq, , , irq_handler_exit,
		 SDT_ARGS2(vector, what == ENTRY_IRQ_STRAY ? "unhandled" : "handled"), KTR_INTR,
		 "interrupt exit: vector %#x", vector);
	curthread()->silent = silent;
	ktr_port_restore(lifted);
	/* A return to user mode checks this in entry_user_return(). */
	if (!arch_tf_user(tf) && irq_may_preempt(tf) &&
	    __atomic_load_n(&this_pcpu()->resched, __ATOMIC_RELAXED))
		sched_preempt_irq();
}

/*
 * Handles a fault for which memory is missing. VM_FAULT_SERVED: also if a signal has to be handled
 * first.
 */
static enum vm_fault
serve_without_memory(struct vmspace *vm, uintptr_t va, unsigned access, bool user)
{
	enum vm_fault why = VM_FAULT_MEMORY;

	/* Give up after a time: the process that has to die may wait for something that we hold. */
	for (unsigned i = 0; why == VM_FAULT_MEMORY && i < OOM_TRIES && proc_out_of_memory(); i++)
		why = vm_fault(vm, va, access);
	return why == VM_FAULT_MEMORY && user && proc_signal_pending() ? VM_FAULT_SERVED : why;
}

static enum vm_fault
fault_serve(struct arch_trapframe *tf, uintptr_t va, unsigned access)
{
	struct proc *p = curproc();
	enum vm_fault why;

	if (arch_tf_user(tf))
		SDT_PROBE3(exceptions, , , page_fault_user, va, lwp_pc(curlwp(), tf), access);
	else
		SDT_PROBE3(exceptions, , , page_fault_kernel, va, arch_tf_pc(tf), access);
	CTR4(KTR_TRAP, "page fault: va %#lx access %u pc %#lx user %d", va, access, arch_tf_pc(tf),
	     arch_tf_user(tf));
	if (p == NULL || p->vm == NULL)
		return VM_FAULT_NO_AREA;
	why = vm_fault(p->vm, va, access);
	if (why == VM_FAULT_MEMORY)
		why = serve_without_memory(p->vm, va, access, arch_tf_user(tf));
	if (why == VM_FAULT_SERVED)
		SDT_PROBE2(vminfo, , , as_fault, 1, va);
	if (why == VM_FAULT_SERVED && access == MMU_WRITE && arch_tf_user(tf))
		writeback_throttle_map(p->vm, va);
	CTR2(KTR_TRAP, "page fault exit: va %#lx served %d", va, why == VM_FAULT_SERVED);
	return why;
}

/*
 * Where the kernel continues after a fault in an instruction that may fault (arch/fixup.h). 0: this
 * instruction may not. user: the faulting address is in user space.
 */
static uintptr_t
fault_find_fixup(const struct arch_trapframe *tf, bool user)
{
	if (arch_tf_user(tf))
		return 0;
	for (const struct arch_fixup *f = __start_ex_table; f < __stop_ex_table; f++)
		if (f->from == arch_tf_pc(tf))
			return f->user && !user ? 0 : f->to;
	return 0;
}

/* code: what siginfo says. */
static void
raise_fault(struct arch_trapframe *tf, int sig, const char *what, uintptr_t va, int code)
{
	static struct proc_told told;
	char name[KTR_THREAD_NAME];
	struct proc *p = curproc();

	if (arch_tf_user(tf))
		lwp_step_end(tf);
	/* Only a page fault can be blamed on a user's address. */
	uintptr_t go_on = fault_find_fixup(tf, false);

	if (go_on != 0) {
		arch_tf_set_pc(tf, go_on);
		return;
	}
	CTR5(KTR_TRAP, "trap: what %s sig %d va %#lx pc %#lx user %d", what, sig, va,
	     arch_tf_pc(tf), arch_tf_user(tf));
	if (!arch_tf_user(tf))
		panic_trap(tf, "%s, address %#lx", what, va);
	SDT_PROBE3(proc, , , fault, sig, va, arch_tf_pc(tf));
	arch_fault_note(&curlwp()->fault_regs, tf, va);
	if (!(p->sig_caught & 1ul << (sig - 1)) && curlwp()->ptrace == NULL &&
	    proc_may_tell(&told, "faults of programs")) {
		strlcpy(name, p->name, sizeof(name));
		printk("%s[%u]: %s at %#lx, address %#lx: signal %d\n", printk_hide_controls(name),
		       p->pid, what, arch_tf_pc(tf), va, sig);
	}
	spin_lock(&proc_lock);
	if (p->pid == 1)
		panic("process 1: %s at %#lx, address %#lx", what, arch_tf_pc(tf), va);
	if (va == 0 && sig != SIGSEGV && code != SI_KERNEL)
		va = arch_tf_pc(tf);
	proc_signal_fault_locked(p, &(struct siginfo){sig, .si_code = code, .si_addr = va});
	spin_unlock(&proc_lock);
}

void
entry_page_fault(struct arch_trapframe *tf, uintptr_t va, unsigned access)
{
	bool user = va < ARCH_USER_END;
	uintptr_t go_on = fault_find_fixup(tf, user);
	enum vm_fault why = VM_FAULT_NO_AREA;

	/* With interrupts off nothing may sleep: only a fix-up is possible. */
	if (user && arch_tf_irq_on(tf) && (arch_tf_user(tf) || go_on != 0)) {
		arch_irq_enable();
		why = fault_serve(tf, va, access);
		arch_irq_disable();
	}
	if (why == VM_FAULT_SERVED)
		return;
	if (go_on != 0)
		arch_tf_set_pc(tf, go_on);
	else
		raise_fault(tf, why == VM_FAULT_BEYOND ? SIGBUS : SIGSEGV, "page fault", va,
			    why == VM_FAULT_NO_AREA ? FAULT_CODE : SEGV_ACCERR); /* or BUS_ADRERR */
}

void
entry_fault(struct arch_trapframe *tf, int sig, const char *what, uintptr_t va, int code)
{
	raise_fault(tf, sig, what, va, code);
}

void
entry_step(struct arch_trapframe *tf)
{
	bool traced;

	spin_lock(&proc_lock);
	traced = ptrace_traced(curlwp());
	spin_unlock(&proc_lock);
	/* Its tracer may have left it meanwhile. */
	if (curthread()->stepped && !traced) {
		lwp_step_end(tf);
		arch_user_step(tf, false);
		curthread()->stepped = false;
	} else {
		raise_fault(tf, SIGTRAP, "single step", 0, TRAP_TRACE);
	}
}

void
entry_fpu_off(struct arch_trapframe *tf, int sig, const char *what)
{
	if (arch_tf_user(tf) && !curthread()->fpu_used)
		thread_fpu_start();
	else
		entry_fault(tf, sig, what, 0, FAULT_CODE);
}

void
entry_dead(struct arch_trapframe *tf, const char *what, uintptr_t va)
{
	panic_trap(tf, "%s, address %#lx", what, va);
}

void
entry_debug(struct arch_trapframe *tf, enum entry_debug why, uintptr_t data)
{
	CTR3(KTR_TRAP, "debug exception: kind %d pc %#lx data %#lx", why, arch_tf_pc(tf), data);
	kdb_trap(tf, why, data);
}

void
entry_kernel_return(struct arch_trapframe *tf)
{
	const struct ktr_restart *sequence =
	    ktr_port_inside(arch_tf_pc(tf)) ? ktr_restart_find(arch_tf_pc(tf)) : NULL;

	if (sequence != NULL)
		arch_tf_set_pc(tf, sequence->from);
}

void
entry_nmi(struct arch_trapframe *tf)
{
	struct pcpu *pc = this_pcpu();
	bool sent = __atomic_exchange_n(&pc->nmi_sent, false, __ATOMIC_ACQ_REL), hung;

	if (stop_inside())
		return; /* this NMI was to stop the CPU, which has the machine already */
	kdb_points_load(false);
	if (stop_here(tf)) {
		kdb_points_load(true);
		return;
	}
	pc->nmi++;
	CTR3(KTR_INTR, "nmi: count %lu pc %#lx user %d", pc->nmi_count + 1, arch_tf_pc(tf),
	     arch_tf_user(tf));
	/* release: whoever waits for the count finds the event recorded, or refused */
	__atomic_store_n(&pc->nmi_count, pc->nmi_count + 1, __ATOMIC_RELEASE);
	pc->nmi--;
	/* only now: the code that records the event may contain a breakpoint */
	kdb_points_load(true);
	hung = watchdog_hung();
	/* Ignore an NMI that was sent while this CPU was stopped. */
	if (clock_ns() - pc->resumed_ns < NMI_STALE_NS)
		return;
	if (hung)
		kdb_alarm(tf, "watchdog: no timer interrupt");
	else if (!sent)
		kdb_alarm(tf, "NMI");
}
