/* faults.h - faults that exist on one architecture only: tests/user/ARCH/faults.c. */
#pragma once

/* A child of the test program runs fn, and then exits with 0 if it can. */
struct fault {
	const char *name; /* the act, and the signal that must follow */
	void (*fn)(void); /* performs it; _exit(1): a result was wrong */
	int sig;          /* 0: it is allowed */
};

extern const struct fault arch_faults[]; /* ends with a NULL name */
