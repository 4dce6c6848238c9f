/*
 * fbt.h - function boundary tracing: every C function of the kernel can be traced at its entry and
 * at its returns.
 *
 * How the probes are built
 *  - The compiler puts a no-op at the entry of each function (FBT_CFLAGS of the port's arch.mk).
 *    The assembler makes each return an instruction that a probe can change (md/fbt_return.h).
 *  - After the first link, mkfbt reads the image and its debug information, and writes assembly for
 *    the second link. For each function it makes a struct ktr_site for the entry, and one for the
 *    returns; their formats name the parameters. For each entry and each return it makes a struct
 *    ktr_patch and a stub.
 *  - These sites are like those of CTR0 to CTR6. `ktr on` finds them by name (ktr/probe.h), and
 *    patches them together with all others. Streams, memory dumps and the ring after a reset have
 *    their formats.
 *
 * How a probe fires
 *  - The changed instruction jumps to its stub. The stub calls fbt_entry or fbt_return (the port's
 *    fbt.S).
 *  - That code saves the registers, calls ktr_record6() or ktr_record2(), restores the registers,
 *    and goes on: after the no-op, or with the return. It takes no lock, and turns no interrupts
 *    off. If nobody wants the event now (ktr/hook.h), it goes on at once.
 *
 * The event of an entry has the parameters that come in the first six registers. The event of a
 * return has the offset of the return in the function, and the value. Where a function's last call
 * is a jump to another function, that jump is a return, too: its event comes before the entry of
 * the other function, and says which one that is. The value is not known yet. A hook (ktr/hook.h)
 * gets the other function's address instead of it.
 *
 * Some functions have no probes: those of ktr/, because the log does not record itself; those that
 * kernel/probe/noprobe names; and assembly. fbt_exceptions lists them.
 */
#pragma once

/** The functions without probes: lines of "FUNCTION REASON". Constant; mkfbt writes it. */
extern const char fbt_exceptions[];
