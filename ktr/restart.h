/*
 * restart.h - restartable sequences: instructions that an exception makes begin again.
 *
 * Recording an event reads the head of this CPU's ring, fills the slot, and stores the new head.
 * Nothing else on this CPU may record between the load and the store. Rather than keep exceptions
 * out, the record lets them happen: the kernel's exception return looks whether the interrupted PC
 * is inside a sequence, and if so returns to the sequence's beginning. An exception pays a
 * comparison; a record pays nothing. (Bershad, Redell, Ellis: Fast mutual exclusion for
 * uniprocessors, ASPLOS 1992. Linux calls them restartable sequences too: rseq(2).)
 *
 * The rules for a port:
 *  - No exception returns into the middle of a sequence. This includes interrupts, spurious
 *    interrupts, NMIs and debug exceptions. A thread that was preempted inside a sequence resumes
 *    at its beginning, on whichever CPU it then runs.
 *  - A debugger steps over a sequence as a whole.
 *  - A sequence never overwrites a register that holds one of its inputs.
 *  - A sequence's effects mean nothing to anyone before its last instruction, a store.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * A sequence: the addresses of its first instruction, of the instruction after its last one, and of
 * the one other place where control may leave it (`end`, if there is none).
 */
struct ktr_restart {
	uintptr_t from, end, out;
};

/**
 * Assembly text to write after the last instruction of a sequence. from: the label of its first
 * instruction. out: the label to which it may jump, or KTR_RESTART_END. The code must not be
 * position independent.
 */
#define KTR_RESTART(from, out)                             \
	".pushsection ktr_restart, \"a\"\n\t"              \
	".balign 8\n\t"                                    \
	".dc.a " from ", " KTR_RESTART_END ", " out "\n\t" \
	".popsection\n"                                    \
	"777:\n\t"
#define KTR_RESTART_END "777f"

/* The linker bounds the section; it is empty when the port has no sequences. */
extern const struct ktr_restart __start_ktr_restart[] __attribute__((weak, visibility("hidden")));
extern const struct ktr_restart __stop_ktr_restart[] __attribute__((weak, visibility("hidden")));

/**
 * The sequence that contains pc, a kernel address; NULL if there is none. The first instruction
 * belongs to the sequence. There are about ten, all inside the record text (ktr/port.h): compare pc
 * with the bounds of that first. Any context.
 */
static inline const struct ktr_restart *
ktr_restart_find(uintptr_t pc)
{
	for (const struct ktr_restart *r = __start_ktr_restart; r < __stop_ktr_restart; r++)
		if (pc >= r->from && pc < r->end)
			return r;
	return NULL;
}
