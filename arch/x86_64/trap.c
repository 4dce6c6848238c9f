/*
 * trap.c - the interrupt table, and the kernel function that handles each vector.
 */
#include "arch/trap.h"
#include "arch/debug.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/smp.h"
#include "arch/x86_64/x86.h"
#include "kernel/abi/signal.h"
#include "kernel/entry.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

_Static_assert(offsetof(struct arch_trapframe, r11) == TF_R11, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, rcx) == TF_RCX, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, vector) == TF_VECTOR, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, rip) == TF_RIP, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, cs) == TF_CS, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, rflags) == TF_RFLAGS, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, rsp) == TF_RSP, "asm.h");
_Static_assert(sizeof(struct arch_trapframe) == TF_SIZE, "asm.h");

struct gate { /* SDM vol. 3A, 6.14.1 */
	uint16_t offset0, selector;
	uint8_t ist, type;
	uint16_t offset1;
	uint32_t offset2, reserved;
};

static struct gate idt[256];

/* code: si_code, as Linux gives it. */
static const struct {
	const char *name;
	int sig, code;
} exceptions[32] = {
    [0] = {"divide error", SIGFPE, FAULT_CODE},
    [1] = {"debug", SIGTRAP, FAULT_CODE},
    [3] = {"breakpoint", SIGTRAP, SI_KERNEL},
    [4] = {"overflow", SIGSEGV, SI_KERNEL},
    [5] = {"bound range exceeded", SIGSEGV, SI_KERNEL},
    [6] = {"invalid opcode", SIGILL, ILL_ILLOPN},
    [7] = {"device not available", SIGILL, FAULT_CODE},
    [8] = {"double fault", 0, 0},
    [10] = {"invalid TSS", SIGSEGV, SI_KERNEL},
    [11] = {"segment not present", SIGBUS, SI_KERNEL},
    [12] = {"stack-segment fault", SIGBUS, SI_KERNEL},
    [13] = {"general protection", SIGSEGV, SI_KERNEL},
    [14] = {"page fault", SIGSEGV, FAULT_CODE},
    [16] = {"x87 error", SIGFPE, FAULT_CODE},
    [17] = {"alignment check", SIGBUS, FAULT_CODE},
    [18] = {"machine check", 0, 0},
    [19] = {"SIMD floating-point", SIGFPE, FAULT_CODE},
};

void
x86_idt_load(void)
{
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) idtr = {sizeof(idt) - 1, (uint64_t)idt};

	for (unsigned v = 0; v < 256 && idt[255].type == 0; v++) {
		uint64_t h = (uint64_t)x86_vectors + 16 * v;
		uint8_t ist = v == VEC_NMI  ? IST_NMI
			      : v == VEC_DF ? IST_DF
			      : v == VEC_MC ? IST_MC
			      : v == VEC_DB ? IST_DB
					    : 0;
		/* 0x8e: present, interrupt gate. User mode may execute breakpoint and overflow. */
		idt[v] = (struct gate){.offset0 = (uint16_t)h,
				       .selector = SEL_KCODE,
				       .ist = ist,
				       .type = v == VEC_BP || v == 4 ? 0xee : 0x8e,
				       .offset1 = (uint16_t)(h >> 16),
				       .offset2 = (uint32_t)(h >> 32)};
	}
	__asm__ volatile("lidt %0" : : "m"(idtr));
}

static void
page_fault(struct arch_trapframe *tf)
{
	uintptr_t va;

	__asm__ volatile("mov %%cr2, %0" : "=r"(va));
	entry_page_fault(tf, va, tf->error & 16 ? MMU_EXEC : tf->error & 2 ? MMU_WRITE : MMU_READ);
}

/*
 * If the NMI handler faults, as the debugger may, the fault's IRET enables the next NMI (SDM vol.
 * 3A, 6.7.1). So a nested NMI gets another stack.
 */
static void
trap_nmi(struct arch_trapframe *tf)
{
	struct x86_cpu *x = arch_this_pcpu()->x86;
	uint64_t top = x->tss.ist[IST_NMI - 1];

	x->tss.ist[IST_NMI - 1] = (uint64_t)x->stacks[4] + sizeof(x->stacks[4]);
	entry_nmi(tf);
	x->tss.ist[IST_NMI - 1] = top;
}

/* Which unmasked exceptions of floating point have come (SDM vol. 1, 8.1 and 10.2). */
static int
float_code(unsigned v)
{
	uint32_t mxcsr, came;
	uint16_t status, control;

	__asm__("fnstsw %0\n\tfnstcw %1\n\tstmxcsr %2" : "=m"(status), "=m"(control), "=m"(mxcsr));
	came = v == VEC_XM ? mxcsr & ~(mxcsr >> 7) : status & ~(uint32_t)control;
	return came & 1      ? FPE_FLTINV
	       : came & 4    ? FPE_FLTDIV
	       : came & 8    ? FPE_FLTOVF
	       : came & 0x12 ? FPE_FLTUND /* also a denormal operand */
			     : FPE_FLTRES;
}

static void
trap_exception(struct arch_trapframe *tf)
{
	unsigned v = (unsigned)tf->vector;

	switch (v) {
	case VEC_NMI:
		trap_nmi(tf);
		return;
	case VEC_PF:
		page_fault(tf);
		return;
	case VEC_NM:
		entry_fpu_off(tf, exceptions[v].sig, exceptions[v].name);
		return;
	case VEC_BP:
		if (entry_probe(tf, tf->rip - 1) || x86_patch_trap(tf))
			return;
		__attribute__((fallthrough));
	case VEC_DB:
		if (arch_tf_user(tf) && v == VEC_BP)
			break;
		if (arch_tf_user(tf)) {
			__asm__ volatile("mov %0, %%dr6"
					 :
					 : "r"(0ul)); /* the CPU does not clear it */
			entry_step(tf);
		} else if (v == VEC_DB) {
			x86_debug_exception(tf);
		} else {
			entry_debug(tf, ENTRY_BREAKPOINT, 0);
		}
		return;
	case VEC_DF:
	case VEC_MC:
		entry_dead(tf, exceptions[v].name, tf->rsp);
	}
	entry_fault(tf, exceptions[v].sig ? exceptions[v].sig : SIGILL,
		    exceptions[v].name ? exceptions[v].name : "reserved exception", 0,
		    arch_tf_user(tf) && (v == VEC_MF || v == VEC_XM) ? float_code(v)
		    : exceptions[v].name != NULL                     ? exceptions[v].code
								     : FAULT_CODE);
}

static void
trap_interrupt(struct arch_trapframe *tf)
{
	unsigned v = (unsigned)tf->vector;

	if (v == VEC_SPURIOUS)
		return;
	lapic_eoi(); /* before the handlers: they run with interrupts off, so no interrupt nests */
	if (v == VEC_TIMER)
		entry_interrupt(v, ENTRY_IRQ_TIMER, 0, tf);
	else if (v >= VEC_IPI && v < VEC_IPI + IPI_COUNT)
		entry_interrupt(v, ENTRY_IRQ_IPI, v - VEC_IPI, tf);
	else if (v >= VEC_GSI && v < VEC_GSI_END)
		entry_interrupt(v, ENTRY_IRQ_LINE, v - VEC_GSI, tf);
	else
		entry_interrupt(v, ENTRY_IRQ_STRAY, 0, tf);
}

void
x86_trap(struct arch_trapframe *tf)
{
	/*
	 * A fault inside a user copy leaves user memory accessible: close it (SDM vol. 2A, CLAC).
	 */
	if (x86_smap)
		__asm__ volatile("clac" ::: "cc", "memory");
	if (tf->vector < 32)
		trap_exception(tf);
	else
		trap_interrupt(tf);
	if (!arch_tf_user(tf))
		entry_kernel_return(tf);
	else if (tf->vector != VEC_NMI && tf->vector != VEC_MC)
		entry_user_return(tf);
}

void
x86_syscall(struct arch_trapframe *tf)
{
	entry_user_leave();
	arch_irq_enable();
	entry_syscall(tf);
	arch_irq_disable();
	entry_user_return(tf);
}

void
arch_tf_init_user(struct arch_trapframe *tf, uintptr_t pc, uintptr_t sp)
{
	memset(tf, 0, sizeof(*tf));
	tf->rip = pc;
	tf->rsp = sp;
	tf->cs = SEL_UCODE;
	tf->ss = SEL_UDATA;
	tf->rflags = 0x202; /* IF, and the bit that is always 1 */
}

bool
arch_tf_register(const struct arch_trapframe *tf, const char *name, uint64_t *v)
{
	static const char names[][8] = {"r15", "r14",   "r13", "r12",    "r11",   "r10",
					"r9",  "r8",    "rbp", "rdi",    "rsi",   "rdx",
					"rcx", "rbx",   "rax", "vector", "error", "rip",
					"cs",  "flags", "rsp", "ss"};

	_Static_assert(sizeof(*tf) == sizeof(names), "one name for each register, in order");
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0) {
			*v = ((const uint64_t *)tf)[i];
			return true;
		}
	return false;
}

void
arch_tf_print(const struct arch_trapframe *tf)
{
	pr_warn("rip %016lx cs %04lx flags %08lx rsp %016lx ss %04lx\n", tf->rip, tf->cs,
		tf->rflags, tf->rsp, tf->ss);
	pr_warn("rax %016lx rbx %016lx rcx %016lx rdx %016lx\n", tf->rax, tf->rbx, tf->rcx,
		tf->rdx);
	pr_warn("rsi %016lx rdi %016lx rbp %016lx r8  %016lx\n", tf->rsi, tf->rdi, tf->rbp, tf->r8);
	pr_warn("r9  %016lx r10 %016lx r11 %016lx r12 %016lx\n", tf->r9, tf->r10, tf->r11, tf->r12);
	pr_warn("r13 %016lx r14 %016lx r15 %016lx vec %3lu err %#lx\n", tf->r13, tf->r14, tf->r15,
		tf->vector, tf->error);
}

const struct arch_trapframe *
arch_unwind_trap(uintptr_t pc, uintptr_t sp)
{
	extern const char trap_return[], user_left[], paranoid_return[], syscall_return[];

	/* The two calls of C for an entry from user mode; the second is the kernel's, too. */
	if ((pc >= (uintptr_t)user_left && pc <= (uintptr_t)trap_return) ||
	    pc == (uintptr_t)paranoid_return || pc == (uintptr_t)syscall_return)
		return (const struct arch_trapframe *)sp;
	return NULL;
}
