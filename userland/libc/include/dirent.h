/* dirent.h - reading directories. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/dirent.h"

#define DT_UNKNOWN 0

struct dirent {
	ino_t d_ino;
	unsigned char d_type; /* DT_… */
	char d_name[256];
};

struct dir_stream;
typedef struct dir_stream DIR; /* the standard's name */

/* NULL with errno when it cannot be opened. */
DIR *opendir(const char *path);
/* Takes over an open directory. */
DIR *fdopendir(int fd);
/* The next entry, valid until the next call; NULL at the end (errno as before) or with errno. */
struct dirent *readdir(DIR *d);
int closedir(DIR *d);
