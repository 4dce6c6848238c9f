/*
 * stdio.h - buffered files and formatted output.
 *
 * stdout is line-buffered on a terminal and fully buffered elsewhere; stderr is written at the end
 * of each call. Reading stdin first writes out stdout when it is a terminal. No floating point.
 */
#pragma once

#include <stdarg.h>
#include <sys/types.h>

#include "kernel/abi/fcntl.h" /* SEEK_… */

#define EOF          (-1)
#define BUFSIZ       4096U
#define FOPEN_MAX    64
#define FILENAME_MAX PATH_MAX

#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2

struct file_stream;
typedef struct file_stream FILE; /* the standard's name */

extern FILE *stdin, *stdout, *stderr;

/* Modes r w a with + b e(close on exec) x(exclusive). NULL with errno. */
FILE *fopen(const char *path, const char *mode);
FILE *fdopen(int fd, const char *mode);
int fclose(FILE *f);
/* NULL: all files. 0, or EOF with errno. */
int fflush(FILE *f);
/* The buffer given is not used; only the mode is. 0. */
int setvbuf(FILE *f, char *buf, int mode, size_t size);

size_t fread(void *buf, size_t size, size_t count, FILE *f);
size_t fwrite(const void *buf, size_t size, size_t count, FILE *f);
int fgetc(FILE *f);
int getc(FILE *f);
int getchar(void);
/* One character is guaranteed. */
int ungetc(int c, FILE *f);
char *fgets(char *buf, int size, FILE *f);
/* Length with the delimiter, -1 at the end or with errno; *line grows by realloc. */
ssize_t getline(char **line, size_t *size, FILE *f);
ssize_t getdelim(char **line, size_t *size, int delim, FILE *f);
int fputc(int c, FILE *f);
int putc(int c, FILE *f);
int putchar(int c);
int fputs(const char *s, FILE *f);
int puts(const char *s);

int fseek(FILE *f, long off, int whence);
int fseeko(FILE *f, off_t off, int whence);
long ftell(FILE *f);
off_t ftello(FILE *f);
void rewind(FILE *f);
int feof(FILE *f);
int ferror(FILE *f);
void clearerr(FILE *f);
int fileno(FILE *f);

int printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int dprintf(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int sprintf(char *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int asprintf(char **out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int vprintf(const char *fmt, va_list ap);
int vfprintf(FILE *f, const char *fmt, va_list ap);
int vsnprintf(char *buf, size_t size, const char *fmt, va_list ap);
int vasprintf(char **out, const char *fmt, va_list ap);

void perror(const char *what);
int remove(const char *path);
int rename(const char *from, const char *to);
