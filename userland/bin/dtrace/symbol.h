/*
 * symbol.h - the kernel's functions and variables, by name and by address, and a program's
 * functions.
 */
#pragma once

#include "userland/bin/dtrace/dt.h"

/* Uses the kernel's symbols (kernel/debug/ksyms.h), which stay. NULL: they are good, else why not.
 */
const char *symbol_open(const void *data, size_t size);
/* The address of a symbol of the kernel, and its type; *type NULL: it is not known. */
bool symbol_find(const char *name, uint64_t *address, struct type **type);
/* The symbol that contains the address; NULL: none. *start: where it begins. */
const char *symbol_at(uint64_t address, uint64_t *start);
