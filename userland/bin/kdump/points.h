/* points.h - the letters that name kinds of records, for ktrace and kdump: FreeBSD's. */
#pragma once

#include "kernel/abi/ktrace.h"

#define KTR_POINTS_DEFAULT                                                            \
	(KTRFAC_SYSCALL | KTRFAC_SYSRET | KTRFAC_NAMEI | KTRFAC_GENIO | KTRFAC_PSIG | \
	 KTRFAC_STRUCT | KTRFAC_USER | KTRFAC_SYSCTL | KTRFAC_PROCCTOR | KTRFAC_PROCDTOR)
#define KTR_POINTS_ALL (KTR_POINTS_DEFAULT | KTRFAC_CSW | KTRFAC_FAULT | KTRFAC_FAULTEND)

/* What a user is told of them. */
#define KTR_POINTS_HELP                                                                    \
	"  letters: c calls and returns, f page faults, i input and output, n names,\n"    \
	"  s signals, t structs, u user data, w context switches, y sysctls, p nothing,\n" \
	"  + the default, which is cinstuy\n"

/* KTRFAC_… bits of a string of letters; 0: it has another character, or is empty. */
static inline uint32_t
ktr_points(const char *letters)
{
	uint32_t points = KTRFAC_PROCCTOR | KTRFAC_PROCDTOR;

	for (const char *c = letters; *c != '\0'; c++) {
		switch (*c) {
		case 'c':
			points |= KTRFAC_SYSCALL | KTRFAC_SYSRET;
			break;
		case 'f':
			points |= KTRFAC_FAULT | KTRFAC_FAULTEND;
			break;
		case 'i':
			points |= KTRFAC_GENIO;
			break;
		case 'n':
			points |= KTRFAC_NAMEI;
			break;
		case 'p':
			break;
		case 's':
			points |= KTRFAC_PSIG;
			break;
		case 't':
			points |= KTRFAC_STRUCT;
			break;
		case 'u':
			points |= KTRFAC_USER;
			break;
		case 'w':
			points |= KTRFAC_CSW;
			break;
		case 'y':
			points |= KTRFAC_SYSCTL;
			break;
		case '+':
			points |= KTR_POINTS_DEFAULT;
			break;
		default:
			return 0;
		}
	}
	return *letters != '\0' ? points : 0;
}
