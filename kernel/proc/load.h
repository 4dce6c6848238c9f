/* load.h - brings an executable into a new address space. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/proc/elf.h"

struct vmspace;
struct vnode;

/* A program in memory. */
struct program {
	bool secure; /* set before the load: the program gets other rights than its caller's */
	struct elf_image img;
	uint64_t interp_base; /* 0: it has no interpreter */
	bool unreadable;      /* the process may not read the program, or the interpreter */
	uint64_t start;       /* where it starts: in the interpreter if it has one */
};

/*
 * Loads the file and the interpreter that it names, with room for a stack. 0; -ENOEXEC, -ENOMEM,
 * and errors of looking up and reading the interpreter. Thread context of a process.
 */
int program_load(struct vmspace *vm, struct vnode *vn, struct program *to);
