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
 * What a sequence computes goes to registers that hold none of its inputs, and what it stores means
 * nothing before its last instruction, which is a store: so it can begin again at any place.
 *
 * A claim that cannot be divided may use what follows from the head word as long as a turn of the
 * ring lasts, struct ktr_turn, in place of computing it: address of the slot, and lap. The first
 * claim of each turn takes the slow path, which brings that up to date. Locking: none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KTR_HEAD_STEP 64u /* what a claim adds to the head word (ktr/ring.h) */

struct ktr_entry;

/**
 * This turn of a CPU's ring. All zero before the first event. Written by its own CPU, but for
 * limit, which becomes 0 from anywhere: then events take the slow path (ktr_ring_close()).
 */
struct ktr_turn {
	uint64_t limit; /* the head word at the turn's end; claims that go beyond are slow */
	uint64_t bias;  /* the address of an event's slot, less the head word that it found */
	union {
		struct {
			uint16_t lap;  /* as struct ktr_entry has them */
			uint16_t site; /* 0 */
			uint32_t tid;  /* the current thread's id; the port's to write */
		};
		uint64_t publish; /* all three: one load */
	};
};

/** What a claim comes to. */
struct ktr_claim {
	struct ktr_entry *e; /* the slot */
	uint64_t now;        /* the clock, read inside the claim */
	uint64_t publish;    /* struct ktr_entry's, without the site */
};

/**
 * A sequence: from its first instruction to before `end`, which is behind its last. It is left
 * there, or, by a jump, at `out`, which may be the same.
 */
struct ktr_restart {
	uintptr_t from, end, out;
};

/**
 * In assembly, behind the sequence: the label of its beginning, and the one to which it may jump,
 * KTR_RESTART_END for none other. Code that is not position independent.
 */
#define KTR_RESTART(from, out)                             \
	".pushsection ktr_restart, \"a\"\n\t"              \
	".balign 8\n\t"                                    \
	".dc.a " from ", " KTR_RESTART_END ", " out "\n\t" \
	".popsection\n"                                    \
	"777:\n\t"
#define KTR_RESTART_END "777f"

/* The linker's: an array that an embedder keeps beside ktr_patch. Empty where claims are atomic. */
extern const struct ktr_restart __start_ktr_restart[] __attribute__((weak, visibility("hidden")));
extern const struct ktr_restart __stop_ktr_restart[] __attribute__((weak, visibility("hidden")));

/**
 * The sequence in which pc, an address of the kernel's, stands, also at its beginning; else NULL.
 * There are some ten, all in the record text: look at that first. Any context.
 */
static inline const struct ktr_restart *
ktr_restart_find(uintptr_t pc)
{
	for (const struct ktr_restart *r = __start_ktr_restart; r < __stop_ktr_restart; r++)
		if (pc >= r->from && pc < r->end)
			return r;
	return NULL;
}
