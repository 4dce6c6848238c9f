/*
 * usymbol.h - functions of programs, from the symbols in their files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The function that contains an address in a program (DIF_IOC_PROGRAM's number), *start: where it
 * begins; NULL: none. *object is the program's name, NULL if it is not known.
 */
const char *usymbol_at(uint32_t program, uint64_t address, uint64_t *start, const char **object);
/* A function of a program's file. */
struct usymbol {
	const char *name;
	uint64_t offset; /* in the file */
	uint64_t size;   /* 0: not known */
};
/* Calls f for each function that the file's symbols name. */
void usymbol_each(const char *path, void (*f)(const struct usymbol *s, void *arg), void *arg);
/* Makes an address in the program's code an offset in its file. False: it is none. */
bool usymbol_offset(const char *path, uint64_t *address);
/* The same number for all numbers that mean the same file. */
uint32_t usymbol_program(uint32_t program);
