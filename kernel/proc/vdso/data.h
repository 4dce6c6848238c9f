/*
 * data.h - what the vDSO's functions need to know, in its page. The kernel alone writes it; real_ns
 * may change at any time.
 */
#pragma once

#include <stdint.h>

/* Offsets in the page, which vdso.ld gives: of the data, and of where handlers return. */
#define VDSO_DATA_AT      0x880
#define VDSO_SIGRETURN_AT 0x800

struct vdso_data {
	uint64_t boot_ticks, mult; /* as clock_scale */
	uint64_t real_ns;          /* since 1970, at the boot; atomic */
};
