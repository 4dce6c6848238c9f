/* stream.h - what is inside a FILE: for stdio.c, and for printf.c, which writes piece by piece. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct file_stream {
	int fd;
	int mode; /* _IOFBF, _IOLBF, _IONBF, or -1: decided at the first output */
	bool can_read, can_write, writing, eof, error;
	bool is_static; /* stdin, stdout, stderr: not freed */
	int pushed;     /* by ungetc, else EOF */
	size_t pos, end;
	FILE *next;
	char *buf; /* BUFSIZ bytes */
};
