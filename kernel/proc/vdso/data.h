/*
 * data.h - what the vDSO's functions need to know, in its page. The kernel alone writes it; real_ns
 * may change at any time.
 */
#pragma once

#include <stdint.h>

#include "kernel/lib/clock_scale.h"

/* Offsets in the page, which vdso.ld gives: of the data, and of where handlers return. */
#define VDSO_DATA_AT      0x880
#define VDSO_SIGRETURN_AT 0x800

struct vdso_data {
	struct clock_scale scale;
	uint64_t real_ns; /* since 1970, at the boot; atomic */
};
