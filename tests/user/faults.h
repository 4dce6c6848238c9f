/* faults.h - ways to die that are an architecture's own: tests/user/ARCH/faults.c. */
#pragma once

struct fault {
	const char *name; /* what it is and the signal it gives */
	void (*fn)(void); /* does it */
	int sig;
};

extern const struct fault arch_faults[]; /* ends with a NULL name */
