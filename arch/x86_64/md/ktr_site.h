/*
 * md/ktr_site.h - x86_64: how a trace point is switched on, and the record of an event.
 *
 * A trace point is a 5-byte no-op (SDM vol. 2B, NOP: 0F 1F 44 00 00), which is overwritten by a JMP
 * rel32 of the same length. Its entry in section ktr_patch is a struct ktr_patch (ktr/site.h). The
 * site is an immediate operand, which position-independent code cannot have: build without -fpic
 * and -fpie.
 */
#pragma once

#include <stddef.h>

#include "arch/pcpu.h"

#define KTR_X86_RING "movq %%gs:%c[ktr_ring], %%r10"
#define KTR_X86_TID  "movl %%gs:%c[ktr_tid], %%eax"
#define KTR_X86_OPERANDS                                        \
	, [ktr_ring] "i"(offsetof(struct arch_pcpu, ktr_ring)), \
	    [ktr_tid] "i"(offsetof(struct arch_pcpu, ktr_tid))
#include "ktr/port/ktr_x86_64.h"

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
