/*
 * usymbol.c - functions of programs. Not yet: programs have no symbols.
 */
#include "userland/bin/dtrace/usymbol.h"

#include <stddef.h>

const char *
usymbol_at(uint64_t pid, uint64_t address, uint64_t *start, const char **object)
{
	(void)pid;
	(void)address;
	(void)start;
	*object = NULL;
	return NULL;
}
