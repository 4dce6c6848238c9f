/*
 * export_temp.h - the temporary name that an export has until it is complete. Host only.
 *
 * An export is made beside its output, as `.ktrdump.XXXXXX`, and renamed at the end. Whatever else
 * ends the program removes it, also a signal; only SIGKILL leaves it. There is one at a time: a
 * file, or a directory with files.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#define EXPORT_PATH 4096u /* bytes of a name, with the NUL */

/** An empty file beside path, with the mode of new files. NULL: errno. */
FILE *export_temp_file(const char *path, char temp[EXPORT_PATH]);
/** An empty directory, likewise. 0; -1: errno. */
int export_temp_directory(const char *path, char temp[EXPORT_PATH]);
/** An empty file on the disk of path that has no name. NULL: errno. */
FILE *export_temp_nameless(const char *path);
/** In the directory there will be name, without directories but those added. False: no memory. */
bool export_temp_add(const char *name);
/** It is whole: its name is path, in place of a file there. False: errno, and it is as before. */
bool export_temp_rename(const char *path);
/** Removes it, if it is there. */
void export_temp_remove(void);
