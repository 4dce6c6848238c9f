/* faults.h - what only programs of one architecture can try: tests/user/ARCH/faults.c. */
#pragma once

/* A child of the test program runs fn and then ends with status 0, if it comes to that. */
struct fault {
	const char *name; /* what it is and the signal it gives */
	void (*fn)(void); /* does it; _exit(1): something was not as it has to be */
	int sig;          /* 0: it is allowed */
};

extern const struct fault arch_faults[]; /* ends with a NULL name */
