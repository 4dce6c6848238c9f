/*
 * restart.h - restartable sequences: instructions that begin again when something came between
 * them.
 *
 * A claim of a number reads the head word, then the clock, and stores the head word. Nothing else
 * of this CPU may record between the load and the store. An atomic instruction would find that out
 * and try again; here whoever interrupts says so: the interrupt's entry moves the interrupted PC
 * back to the beginning. That costs it a comparison, and a claim nothing. (Bershad, Redell, Ellis:
 * Fast mutual exclusion for uniprocessors, ASPLOS 1992.)
 *
 * What a sequence computes goes to registers that hold none of its inputs, and its one store is its
 * last instruction: so it can begin again at any place. Locking: none.
 */
#pragma once

#include <stdint.h>

#include "ktr/site.h"

/** A sequence: it is begun again in [from + 1, to], where `to` is the store that ends it. */
struct ktr_restart {
	uintptr_t from, to;
};

/** In assembly: the labels of a sequence's first and last instruction. Not position independent. */
#define KTR_RESTART(from, to)                 \
	".pushsection ktr_restart, \"a\"\n\t" \
	".balign 8\n\t"                       \
	".dc.a " from ", " to "\n\t"          \
	".popsection\n\t"

/* The linker's: an array that an embedder keeps beside ktr_patch. Empty where claims are atomic. */
extern const struct ktr_restart __start_ktr_restart[] KTR_LINKER_;
extern const struct ktr_restart __stop_ktr_restart[] KTR_LINKER_;

/**
 * Where what was interrupted at pc goes on: pc, or the beginning of the sequence that it is in. For
 * the entry of every interrupt and exception, NMIs too, before that records anything. There are
 * eight sequences, all in the record text: look at that first.
 */
static inline uintptr_t
ktr_restart_pc(uintptr_t pc)
{
	for (const struct ktr_restart *r = __start_ktr_restart; r < __stop_ktr_restart; r++)
		if (pc > r->from && pc <= r->to)
			return r->from;
	return pc;
}
