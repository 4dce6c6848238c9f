/*
 * fbt.h - function boundary tracing: every C function of the kernel can be traced at its entry and
 * at its returns.
 *
 * How it is made
 *  - The compiler puts a no-op at each entry (FBT_CFLAGS of the port's arch.mk), and the assembler
 *    makes each return a place that can be changed (md/fbt_return.h).
 *  - After the first link, mkfbt reads the image and its debug information. It writes for the next
 *    link: a struct ktr_site for the entry and one for the returns of each function, with the
 *    parameters' names in the format; a struct ktr_patch for each place; a stub for each place.
 *  - So these are sites like those of CTR0 to CTR6. `ktr on` finds them by name (ktr/probe.h), the
 *    code is changed in the same batch, and streams, memory dumps and the ring after a reset have
 *    their formats.
 *
 * What happens at a place that is on: it jumps to its stub, the stub calls fbt_entry or fbt_return
 * (the port's fbt.S), which saves the registers, calls ktr_record6() or ktr_record2(), restores
 * them, and goes on: after the no-op, or with the return. A record needs no lock and masks nothing.
 *
 * An entry's event has the first six parameters that come in registers. A return's has the offset
 * of the return in the function, and the value.
 *
 * Functions without probes: those of ktr/, which is the log; those that kernel/probe/noprobe names;
 * assembly. fbt_exceptions lists them.
 */
#pragma once

/** Lines "FUNCTION REASON", in one text. Constant; made by mkfbt. */
extern const char fbt_exceptions[];
