/*
 * temp.h - the temporary name that an export has until it is complete. Host only.
 *
 * Until an export is complete, its name is `.ktrdump.XXXXXX`, in the directory of its final name.
 * If the program ends before, also by a signal, the export is removed; only SIGKILL leaves it.
 * There is one export at a time: a file, or a directory with files.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#define EXPORT_PATH 4096u /* bytes of a name, with the NUL */

/** Makes an empty file in the directory of path, with the mode of new files. NULL: errno. */
FILE *export_temp_file(const char *path, char temp[EXPORT_PATH]);
/** Makes an empty directory in the directory of path. 0; -1: errno. */
int export_temp_directory(const char *path, char temp[EXPORT_PATH]);
/** Makes an empty file without a name, on the disk of path. NULL: errno. */
FILE *export_temp_nameless(const char *path);
/** Adds a name that is about to be made in the directory, so that it is removed as well. A
 * directory is added before what is in it. False: no memory. */
bool export_temp_add(const char *name);
/** Gives the export, now complete, its final name, in place of a file there. False: errno; the
 * export has its temporary name still. */
bool export_temp_rename(const char *path);
/** Removes the export, if it has a temporary name. */
void export_temp_remove(void);
