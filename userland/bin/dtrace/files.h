/*
 * files.h - files that dtrace reads: programs, libraries, the kernel's types and symbols.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum file {
	FILE_BTF,       /* the kernel's types */
	FILE_SYMBOLS,   /* the kernel's symbols */
	FILE_VARIABLES, /* the types of its variables */
	FILE_LIBRARY,   /* the folder of D libraries */
	FILE_MACHINE, /* of the libraries that are for one architecture; the guest: with the others
		       */
	FILE_ANONYMOUS, /* what -A writes; the host has no place for it */
};

/* What the kernel loads when it boots. */
#define ANONYMOUS_PATH "/boot/dtrace.dif"

/*
 * Says where the program is: on the host, the kernel's files are in the folder of the build that
 * the variable KESTREL_ARCH names (default: x86_64), beside the program's.
 */
void file_init(const char *program);
/* NULL: there is no such place. */
const char *file_default(enum file file);
/* All of a file, in memory that stays, with a NUL after it. NULL with errno. */
void *file_read(const char *path, size_t *size);
/* All of a text, which ends with the first NUL; "-": standard input. NULL with errno. */
char *file_read_text(const char *path);
/* Calls f for each file *.d of a folder, in the order of names. A missing folder has none. */
void file_each(const char *folder, void (*f)(const char *text, const char *path));
