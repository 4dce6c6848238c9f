/*
 * cpp.h - the preprocessor of -C.
 */
#pragma once

#include <stdbool.h>

#define CPP_MAX_OPTIONS 64

extern struct cpp_options {
	const char *macros[CPP_MAX_OPTIONS];  /* of -D and -U: the letter, and NAME or NAME=BODY */
	const char *folders[CPP_MAX_OPTIONS]; /* of -I */
	unsigned macro_count, folder_count;
	bool say_files; /* -H: the path of each file that is included to standard error */
} cpp_options;

/* The text of a file, preprocessed. Errors: dt_error(). */
const char *cpp_run(const char *file, const char *text);
