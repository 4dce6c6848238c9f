/*
 * usymbol.h - functions of programs, from the symbols in their files.
 */
#pragma once

#include <stdint.h>

/*
 * The function that contains an address in a program (DIF_IOC_PROGRAM's number), *start: where it
 * begins; NULL: none. *object is the program's name, NULL if it is not known.
 */
const char *usymbol_at(uint32_t program, uint64_t address, uint64_t *start, const char **object);
/* The same number for all numbers that mean the same file. */
uint32_t usymbol_program(uint32_t program);
