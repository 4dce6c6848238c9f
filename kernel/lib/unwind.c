/*
 * unwind.c - finds the caller of a place in the kernel.
 *
 * The frame pointer points to a pair on the stack: the caller's frame pointer, and where the
 * function returns to. While a function calls another one, it has made this pair. Code that was
 * interrupted may be before that, or after it has left its frame. There the compiler's call frame
 * information (ksyms.h) describes the frame, at every instruction of C code. Assembly has none:
 * interrupted assembly has either no frame yet or a trap frame, which the port knows.
 *
 * A trap frame begins where the stack ended as the trap came. On some ports the distance from there
 * to the interrupted function's pair differs between functions; the call frame information tells
 * it.
 */
#include "kernel/lib/unwind.h"

#include "arch/debug.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "kernel/lib/ksyms.h"

#define TRAP_WORDS (sizeof(struct arch_trapframe) / sizeof(uintptr_t))

extern const char __text_start[], __text_after_traps[], __text_end[];

bool
unwind_in_text(uintptr_t pc)
{
	return pc - (uintptr_t)__text_start < (uintptr_t)(__text_end - __text_start);
}

struct unwind_frame
unwind_of_trap(const struct arch_trapframe *tf)
{
	return (struct unwind_frame){.pc = arch_tf_pc(tf),
				     .sp = arch_tf_sp(tf),
				     .fp = arch_tf_fp(tf),
				     .link = arch_tf_link(tf),
				     .exact = true,
				     .user = arch_tf_user(tf)};
}

/* Is pc after the assembly that traps enter? sections.ld puts the record calls, and that, first. */
static bool
in_text_after_traps(uintptr_t pc)
{
	return pc - (uintptr_t)__text_after_traps < (uintptr_t)(__text_end - __text_after_traps);
}

/* Was the code at pc, assembly, entered by a trap? */
static bool
is_trap(uintptr_t pc)
{
	return arch_unwind_trap(pc, sizeof(uintptr_t)) != NULL;
}

/* Where what is saved as number n of a rule lies, for a caller with that stack pointer. */
static uintptr_t
saved_at(const struct ksyms_frame *rule, uintptr_t sp, unsigned n)
{
	uintptr_t words = (rule->cfa & KSYMS_CFA_WORDS) - 1ul;

	return rule->cfa & KSYMS_SAVED_FROM_BASE ? sp - 8 * (words + 1 - n) : sp - 8ul * n;
}

/* The stack pointer of f's caller by the pair, which is made. 0: not known. */
static uintptr_t
sp_by_pair(const struct unwind_frame *f, const struct ksyms_frame *rule)
{
	return rule->fp != 0 ? f->fp - saved_at(rule, 0, rule->fp) : 0;
}

/* The stack pointer of f's caller after the return. 0: not known. */
static uintptr_t
caller_sp(const struct unwind_frame *f, const struct ksyms_frame *rule)
{
	uintptr_t base = rule->cfa & KSYMS_CFA_FROM_FP ? f->fp : f->sp;

	if (base != 0)
		return base + 8 * ((rule->cfa & KSYMS_CFA_WORDS) - 1ul);
	return f->exact ? 0 : sp_by_pair(f, rule);
}

/* Finds the caller by the call frame information. */
static bool
leave_by_rule(struct unwind_frame *f, const struct ksyms_frame *rule, unwind_load_fn *load)
{
	uintptr_t sp = caller_sp(f, rule), ra = f->link, fp = f->fp;

	/* A frame lies in kernel memory, and its caller's frame lies above it. */
	if (sp % 8 != 0 || sp < ARCH_DIRECT_BASE || sp < f->sp)
		return false;
	if (rule->ra != 0 && !load(&ra, saved_at(rule, sp, rule->ra), 1))
		return false;
	if (rule->ra == 0 && !f->exact)
		return false; /* a call has overwritten the link register */
	if (rule->fp != 0 && !load(&fp, saved_at(rule, sp, rule->fp), 1))
		return false;
	*f = (struct unwind_frame){.pc = ra, .sp = sp, .fp = fp};
	return true;
}

/* Finds the caller of an assembly function that has not made a frame. */
static bool
leave_leaf(struct unwind_frame *f, unwind_load_fn *load)
{
	uintptr_t ra = f->link;

	if (ra != 0) {
		*f = (struct unwind_frame){.pc = ra, .sp = f->sp, .fp = f->fp};
		return unwind_in_text(ra);
	}
	if (!load(&ra, f->sp, 1) || !unwind_in_text(ra))
		return false;
	*f = (struct unwind_frame){.pc = ra, .sp = f->sp + 8, .fp = f->fp};
	return true;
}

/* Finds the caller by the pair. */
static bool
leave_by_pair(struct unwind_frame *f, unwind_load_fn *load)
{
	struct ksyms_frame rule;
	uintptr_t pair[2], sp = 0;

	if (f->fp % 8 != 0 || f->fp < ARCH_DIRECT_BASE || !load(pair, f->fp, 2))
		return false;
	if (is_trap(pair[1]) && ksym_frame(f->pc - !f->exact, &rule))
		sp = sp_by_pair(f, &rule);
	*f = (struct unwind_frame){.pc = pair[1], .sp = sp, .fp = pair[0] > f->fp ? pair[0] : 0};
	return true;
}

static bool
unwind_leave(struct unwind_frame *f, unwind_load_fn *load, bool all)
{
	struct ksyms_frame rule;

	if (!f->exact && !all)
		return unwind_in_text(f->pc) && leave_by_pair(f, load);
	if (!unwind_in_text(f->pc))
		return f->exact && leave_leaf(f, load); /* a call to an address that is not code */
	if (ksym_frame(f->pc - !f->exact, &rule))
		return leave_by_rule(f, &rule, load);
	return (f->exact && leave_leaf(f, load)) || leave_by_pair(f, load);
}

/* Moves from the assembly of a trap to what it interrupted. */
static __attribute__((noinline)) bool
leave_trap(struct unwind_frame *f, unwind_load_fn *load)
{
	uintptr_t copy[TRAP_WORDS], tf = (uintptr_t)arch_unwind_trap(f->pc, f->sp);

	_Static_assert(sizeof(struct arch_trapframe) % sizeof(uintptr_t) == 0, "in words");
	if (tf == 0 || tf % 8 != 0 || !load(copy, tf, TRAP_WORDS))
		return false;
	*f = unwind_of_trap((const struct arch_trapframe *)copy);
	return true;
}

bool
unwind_step(struct unwind_frame *f, unwind_load_fn *load, bool all)
{
	if (f->user || !unwind_leave(f, load, all) || f->pc == 0)
		return false;
	return !is_trap(f->pc) || leave_trap(f, load);
}

/* Lists callers by the pairs on a stack, as far as these are there and no trap is left. */
static unsigned
list_pairs(struct unwind_frame *f, uintptr_t stack, size_t size, uintptr_t *pcs, unsigned max)
{
	const uintptr_t *pair = (const uintptr_t *)f->fp;
	unsigned n = 0;

	while (n < max && (uintptr_t)pair % 8 == 0 && (uintptr_t)pair - stack <= size - 16 &&
	       in_text_after_traps(pair[1])) {
		f->pc = pair[1];
		if (pcs != NULL)
			pcs[n] = f->pc;
		n++;
		pair = pair[0] > (uintptr_t)pair ? (const uintptr_t *)pair[0] : NULL;
	}
	f->fp = (uintptr_t)pair;
	f->sp = 0;
	return n;
}

unsigned
unwind_list(struct unwind_frame f, uintptr_t stack, size_t size, unwind_load_fn *load,
	    uintptr_t *pcs, unsigned max)
{
	unsigned n = 0;

	for (;;) {
		if (!f.exact)
			n += list_pairs(&f, stack, size, pcs != NULL ? pcs + n : NULL, max - n);
		if (n == max || !unwind_step(&f, load, false) || f.user || !unwind_in_text(f.pc))
			return n;
		if (pcs != NULL)
			pcs[n] = f.pc;
		n++;
	}
}
