/* vdso.h - contract: in the vDSO, which runs in programs, what a function is called: VDSO_NAME().
 */
#pragma once

#include <stdint.h>

/* arch_clock_read(), which does not run before what the program did before it. */
static inline uint64_t vdso_ticks(void);
/* A system call with two arguments. */
static inline long vdso_call(long number, uint64_t a, uint64_t b);

#include <md/vdso.h>
