/*
 * trap.c - the kernel function that handles each exception (Arm ARM D17.2.37, ESR_EL1).
 */
#include "arch/trap.h"
#include "arch/aarch64/a64.h"
#include "arch/debug.h"
#include "arch/insn.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/regset.h"
#include "arch/smp.h"
#include "kernel/abi/signal.h"
#include "kernel/entry.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/sched/thread.h"

_Static_assert(offsetof(struct arch_trapframe, x[30]) == TF_X30, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, sp) == TF_SP, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, pc) == TF_PC, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, esr) == TF_ESR, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, tls) == TF_TLS, "asm.h");
_Static_assert(sizeof(struct arch_trapframe) == TF_SIZE, "asm.h");

#define ISS_WNR   (1u << 6) /* data abort caused by a write */
#define ISS_CM    (1u << 8) /* caused by cache maintenance, which counts as a read */
#define BRK_BYTES 4
#define BRK_PROBE 0x6870 /* of arch_break_insn */

static const struct {
	const char *name;
	int sig;
} classes[64] = {
    [0x00] = {"undefined instruction", SIGILL},
    [0x01] = {"trapped WFI or WFE", SIGILL},
    [0x07] = {"floating point not available", SIGILL},
    [0x0d] = {"branch target", SIGILL},
    [0x0e] = {"illegal execution state", SIGILL},
    [0x15] = {"system call", SIGILL},
    [0x18] = {"trapped system register", SIGILL},
    [0x19] = {"SVE not available", SIGILL},
    [0x1c] = {"pointer authentication", SIGILL},
    [0x1d] = {"SME not available", SIGILL},
    [0x20] = {"instruction abort", SIGBUS},
    [0x21] = {"instruction abort", SIGBUS},
    [0x22] = {"PC alignment", SIGBUS},
    [0x24] = {"data abort", SIGBUS},
    [0x25] = {"data abort", SIGBUS},
    [0x26] = {"SP alignment", SIGBUS},
    [0x2c] = {"floating-point exception", SIGFPE},
    [0x30] = {"breakpoint", SIGTRAP},
    [0x31] = {"breakpoint", SIGTRAP},
    [0x32] = {"single step", SIGTRAP},
    [0x33] = {"single step", SIGTRAP},
    [0x34] = {"watchpoint", SIGTRAP},
    [0x35] = {"watchpoint", SIGTRAP},
    [0x3c] = {"breakpoint", SIGTRAP},
};

/* A program's tag is no part of the address (TBI0). */
static uint64_t
fault_address(const struct arch_trapframe *tf)
{
	return arch_tf_user(tf) && !(tf->far & 1ul << 55) ? tf->far & ~(0xfful << 56) : tf->far;
}

static void
memory_abort(struct arch_trapframe *tf, unsigned ec)
{
	uint64_t far = fault_address(tf);
	unsigned iss = (unsigned)tf->esr & 0x1ffffff;
	unsigned access = ec == EC_IABORT_EL0 || ec == EC_IABORT  ? MMU_EXEC
			  : (iss & (ISS_WNR | ISS_CM)) == ISS_WNR ? MMU_WRITE
								  : MMU_READ;

	switch (iss & 0x3c) { /* fault status without the level */
	case 0x04:            /* translation */
	case 0x08:            /* access flag */
	case 0x0c:            /* permission */
		entry_page_fault(tf, far, access);
		return;
	case 0x20:
		entry_fault(tf, SIGBUS, "alignment", far, FAULT_CODE);
		return;
	case 0x00: /* an address outside all tables: like an unmapped one */
		entry_fault(tf, SIGSEGV, "address size", far, FAULT_CODE);
		return;
	}
	entry_fault(tf, SIGBUS, classes[ec].name, far, FAULT_CODE);
}

static void
trap_synchronous(struct arch_trapframe *tf)
{
	unsigned ec = tf->esr >> 26 & 0x3f;

	/*
	 * Handlers of debug exceptions in the kernel run with debug exceptions masked. So does that
	 * of a fault of the instruction that the debugger steps (SPSR.SS is still set): the step
	 * would go on in the handler.
	 */
	if (arch_tf_user(tf) || (!(ec >= EC_BREAKPT_EL0 && ec <= EC_WATCHPT) && ec != EC_BRK64 &&
				 !(tf->pstate & PSTATE_SS)))
		__asm__ volatile("msr daifclr, #8" ::: "memory");
	switch (ec) {
	case EC_SVC64:
		if (!arch_tf_user(tf))
			break;
		arch_irq_enable();
		entry_syscall(tf);
		arch_irq_disable();
		return;
	case EC_FP:
		entry_fpu_off(tf, classes[ec].sig, classes[ec].name);
		return;
	case EC_IABORT_EL0:
	case EC_IABORT:
	case EC_DABORT_EL0:
	case EC_DABORT:
		memory_abort(tf, ec);
		return;
	case EC_BRK64:
		if ((tf->esr & 0xffff) == BRK_PROBE && entry_probe(tf, tf->pc))
			return;
		if (arch_tf_user(tf))
			break;
		tf->pc += BRK_BYTES; /* after the instruction, as on other machines */
		entry_debug(tf, ENTRY_BREAKPOINT, 0);
		return;
	case EC_BREAKPT:
		entry_debug(tf, ENTRY_POINT, tf->pc);
		return;
	case EC_STEP_EL0:
		if (curthread()->stepped)
			entry_step(tf);
		else /* an NMI in the midst of a switch has set the bit once more */
			arch_user_step_switch(false);
		return;
	case EC_STEP:
		entry_debug(tf, ENTRY_STEP, 0);
		return;
	case EC_WATCHPT: /* FAR: the start of the access, or any byte of it (D2.10.7) */
		entry_debug(tf, ENTRY_WATCH, fault_address(tf));
		return;
	}
	/* Of these, only this one sets FAR. */
	entry_fault(tf, classes[ec].sig != 0 ? classes[ec].sig : SIGILL,
		    classes[ec].name != NULL ? classes[ec].name : "reserved exception",
		    ec == EC_PC_ALIGNMENT ? tf->far : 0, FAULT_CODE);
}

/*
 * A kprobe's slot ends by turning interrupts on, and a jump. An interrupt may come between the two,
 * and the thread may be preempted: so the jump is done now, and no thread is left in a slot.
 */
static void
leave_slot(struct arch_trapframe *tf)
{
	extern const char __kprobe_slots[], __kprobe_slots_end[];

	/* A program may have jumped there: the fault is yet to come. */
	if (!arch_tf_user(tf) && tf->pc >= (uintptr_t)__kprobe_slots &&
	    tf->pc < (uintptr_t)__kprobe_slots_end)
		arch_insn_emulate((const uint8_t *)tf->pc, tf->pc, tf, NULL);
}

static void
trap_interrupt(struct arch_trapframe *tf)
{
	uint32_t token;
	unsigned intid = intc_ack(&token);

	leave_slot(tf);

	if (intid >= 1020) /* spurious, or no longer pending */
		return;
	if (intid == devtree.timer_intid)
		aarch64_timer_quiet();
	intc_eoi(token); /* handlers run with interrupts off: so no interrupt nests from here on */
	if (intid == devtree.timer_intid)
		entry_interrupt(intid, ENTRY_IRQ_TIMER, 0, tf);
	else if (intid < SGI_IPI + IPI_COUNT)
		entry_interrupt(intid, ENTRY_IRQ_IPI, intid - SGI_IPI, tf);
	else if (intid == SGI_NMI) /* on machines without a non-maskable interrupt */
		entry_interrupt(intid, ENTRY_IRQ_NMI, 0, tf);
	else
		entry_interrupt(intid, ENTRY_IRQ_LINE, intid, tf);
}

/* An interrupt changes neither register: this is not a system call's frame, nor a fault's. */
static void
forget_exception(struct arch_trapframe *tf)
{
	tf->esr = tf->far = 0;
}

static void
fast_interrupt(struct arch_trapframe *tf)
{
	uint32_t token;

	if (intc_ack_fiq(&token) >= 1020)
		return;
	intc_eoi_fiq(token);
	entry_nmi(tf);
}

void
aarch64_trap(struct arch_trapframe *tf, unsigned kind)
{
	switch (kind) {
	case TRAP_SYNC:
		__asm__ volatile("msr daifclr, #5" ::: "memory"); /* SError, FIQ */
		trap_synchronous(tf);
		break;
	case TRAP_IRQ:
		forget_exception(tf);
		__asm__ volatile("msr daifclr, #13" ::: "memory"); /* and debug */
		trap_interrupt(tf);
		break;
	case TRAP_FIQ:
		forget_exception(tf);
		fast_interrupt(tf);
		break;
	case TRAP_STACK:
		entry_dead(tf, "kernel stack overflow", tf->far);
	case TRAP_SERROR:
		entry_dead(tf, "SError", tf->far);
	default:
		entry_dead(tf, "exception from a state that the kernel never uses", tf->far);
	}
	if (!arch_tf_user(tf))
		entry_kernel_return(tf);
	else if (kind != TRAP_FIQ)
		entry_user_return(tf);
}

void
arch_tf_init_user(struct arch_trapframe *tf, uintptr_t pc, uintptr_t sp)
{
	memset(tf, 0, sizeof(*tf)); /* PSTATE 0: EL0, nothing masked */
	tf->pc = pc;
	tf->sp = sp;
}

bool
arch_tf_register(const struct arch_trapframe *tf, const char *name, uint64_t *v)
{
	static const char others[][8] = {"lr", "sp", "pc", "pstate", "esr", "far"};
	char x[8];

	_Static_assert(offsetof(struct arch_trapframe, far) == (30 + 5) * 8, "after x29, in order");
	for (unsigned i = 0; i < 31; i++) {
		snprintf(x, sizeof(x), "x%u", i);
		if (strcmp(x, name) == 0) {
			*v = tf->x[i];
			return true;
		}
	}
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i], name) == 0) {
			*v = ((const uint64_t *)tf)[30 + i];
			return true;
		}
	return false;
}

void
arch_tf_print(const struct arch_trapframe *tf)
{
	pr_warn("pc  %016lx sp  %016lx pstate %08lx esr %08lx far %016lx\n", tf->pc, tf->sp,
		tf->pstate, tf->esr, tf->far);
	for (unsigned i = 0; i < 30; i += 5)
		pr_warn("x%-2u %016lx x%-2u %016lx x%-2u %016lx x%-2u %016lx x%-2u %016lx\n", i,
			tf->x[i], i + 1, tf->x[i + 1], i + 2, tf->x[i + 2], i + 3, tf->x[i + 3],
			i + 4, tf->x[i + 4]);
	pr_warn("lr  %016lx\n", tf->x[30]);
}

const struct arch_trapframe *
arch_unwind_trap(uintptr_t pc, uintptr_t sp)
{
	extern const char trap_return[], user_left[], stack_overflow_return[];

	/* The two calls of C for an entry from user mode, and the one for one from the kernel. */
	if ((pc >= (uintptr_t)user_left && pc <= (uintptr_t)trap_return) ||
	    pc == (uintptr_t)stack_overflow_return)
		return (const struct arch_trapframe *)sp;
	return NULL;
}
