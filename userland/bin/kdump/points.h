/* points.h - the letters that name kinds of records, for ktrace and kdump: FreeBSD's. */
#pragma once

#include "kernel/abi/ktrace.h"

#define KTR_POINTS_DEFAULT                                                            \
	(KTRFAC_SYSCALL | KTRFAC_SYSRET | KTRFAC_NAMEI | KTRFAC_GENIO | KTRFAC_PSIG | \
	 KTRFAC_STRUCT | KTRFAC_USER | KTRFAC_SYSCTL | KTRFAC_PROCCTOR | KTRFAC_PROCDTOR)
#define KTR_POINTS_ALL (KTR_POINTS_DEFAULT | KTRFAC_CSW | KTRFAC_FAULT | KTRFAC_FAULTEND)

/* The beginning and the end of a tracing are recorded whatever is asked for. */
#define KTR_POINTS_NONE (KTRFAC_PROCCTOR | KTRFAC_PROCDTOR)

/* What a user is told of them. */
#define KTR_POINTS_HELP                                                                    \
	"  letters: c calls and returns, f page faults, i input and output, n names,\n"    \
	"  s signals, t structs, u user data, w context switches, y sysctls, p nothing,\n" \
	"  + the default, which is cinstuy\n"

/* KTRFAC_… bits of a string of letters; 0: it has another character, or is empty. */
static inline uint32_t
ktr_points(const char *letters)
{
	static const uint32_t points[128] = {['c'] = KTRFAC_SYSCALL | KTRFAC_SYSRET,
					     ['f'] = KTRFAC_FAULT | KTRFAC_FAULTEND,
					     ['i'] = KTRFAC_GENIO,
					     ['n'] = KTRFAC_NAMEI,
					     ['p'] = KTR_POINTS_NONE,
					     ['s'] = KTRFAC_PSIG,
					     ['t'] = KTRFAC_STRUCT,
					     ['u'] = KTRFAC_USER,
					     ['w'] = KTRFAC_CSW,
					     ['y'] = KTRFAC_SYSCTL,
					     ['+'] = KTR_POINTS_DEFAULT};
	uint32_t found = 0;

	for (const uint8_t *c = (const uint8_t *)letters; *c != '\0'; c++) {
		if (*c >= 128 || points[*c] == 0)
			return 0;
		found |= points[*c] | KTR_POINTS_NONE;
	}
	return found;
}
