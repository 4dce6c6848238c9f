/*
 * md/ktr_site.h - x86_64: a trace point is a 5-byte no-op that is rewritten to a jump.
 *
 * The record in section ktr_patch is struct ktr_patch (ktr/site.h). The no-op is the one of the SDM
 * (vol. 2B, NOP: 0F 1F 44 00 00); a JMP rel32 has the same length. Position-independent code cannot
 * name the site as an immediate: build without -fpic and -fpie.
 */
#pragma once

#define KTR_PORT_SITE_ON(site) \
	__extension__({ \
		__label__ ktr_on_, ktr_end_; \
		_Bool ktr_hit_ = 0; \
		__asm__ goto("1:\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t" \
			     ".pushsection ktr_patch, \"a\"\n\t" \
			     ".balign 4\n\t" \
			     ".long 1b - .\n\t" \
			     ".long %l[ktr_on_] - .\n\t" \
			     ".long %c0 - .\n\t" \
			     ".popsection" \
			     : \
			     : "i"(site) \
			     : \
			     : ktr_on_); \
		goto ktr_end_; \
	ktr_on_: \
		__attribute__((cold)); \
		ktr_hit_ = 1; \
	ktr_end_:; \
		ktr_hit_; \
	})
