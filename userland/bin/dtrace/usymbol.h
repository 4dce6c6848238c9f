/*
 * usymbol.h - functions of programs, by address.
 */
#pragma once

#include <stdint.h>

/*
 * The function of the program that process `pid` runs, or ran, which contains the address; NULL:
 * not known. *object: the program's name, or NULL.
 */
const char *usymbol_at(uint64_t pid, uint64_t address, uint64_t *start, const char **object);
