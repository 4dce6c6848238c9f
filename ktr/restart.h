/*
 * restart.h - restartable sequences: instructions that begin again when something came between
 * them.
 *
 * A claim of a number reads the head word, then the clock, and stores the head word. Nothing else
 * of this CPU may record between the load and the store. An atomic instruction would find that out
 * and try again; here whoever interrupts says so: the return to an interrupted PC inside a sequence
 * goes to its beginning. That costs interrupts a comparison, and a claim nothing. (Bershad, Redell,
 * Ellis: Fast mutual exclusion for uniprocessors, ASPLOS 1992.)
 *
 * The rule for a port: no exception of any kind returns into the middle of a sequence, whether it
 * recorded or not, since what nests in it may have: interrupts, spurious ones too, NMIs, debug
 * exceptions. So a debugger steps a sequence as a whole. And no thread is switched out inside one.
 *
 * What a sequence computes goes to registers that hold none of its inputs, and its one store is its
 * last instruction: so it can begin again at any place. Locking: none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ktr_entry;

/** A sequence: from its first instruction to before `end`, which is behind its last. */
struct ktr_restart {
	uintptr_t from, end;
};

/** In assembly, behind the sequence: its label. Code that is not position independent. */
#define KTR_RESTART(from)                     \
	".pushsection ktr_restart, \"a\"\n\t" \
	".balign 8\n\t"                       \
	".dc.a " from ", 777f\n\t"            \
	".popsection\n"                       \
	"777:\n\t"

/* The linker's: an array that an embedder keeps beside ktr_patch. Empty where claims are atomic. */
extern const struct ktr_restart __start_ktr_restart[] __attribute__((weak, visibility("hidden")));
extern const struct ktr_restart __stop_ktr_restart[] __attribute__((weak, visibility("hidden")));

/**
 * The sequence in which pc, an address of the kernel's, stands, also at its beginning; else NULL.
 * There are eight, all in the record text: look at that first. Any context.
 */
static inline const struct ktr_restart *
ktr_restart_find(uintptr_t pc)
{
	for (const struct ktr_restart *r = __start_ktr_restart; r < __stop_ktr_restart; r++)
		if (pc >= r->from && pc < r->end)
			return r;
	return NULL;
}
