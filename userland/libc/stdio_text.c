/*
 * stdio_text.c - text in and out of the files of stdio.c: characters, strings and lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
putc(int c, FILE *f)
{
	return fputc(c, f);
}

int
putchar(int c)
{
	return fputc(c, stdout);
}

int
fputs(const char *s, FILE *f)
{
	size_t len = strlen(s);

	return fwrite(s, 1, len, f) == len ? 0 : EOF;
}

int
puts(const char *s)
{
	return fputs(s, stdout) == EOF ? EOF : fputc('\n', stdout);
}

int
getc(FILE *f)
{
	return fgetc(f);
}

int
getchar(void)
{
	return fgetc(stdin);
}

char *
fgets(char *buf, int size, FILE *f)
{
	int n = 0, c = EOF;

	while (n < size - 1 && (c = fgetc(f)) != EOF) {
		buf[n++] = (char)c;
		if (c == '\n')
			break;
	}
	if (n == 0 || (c == EOF && ferror(f)))
		return NULL;
	buf[n] = '\0';
	return buf;
}

ssize_t
getdelim(char **line, size_t *size, int delim, FILE *f)
{
	size_t n = 0;
	int c;

	if (*line == NULL)
		*size = 0;
	while ((c = fgetc(f)) != EOF) {
		if (n + 2 > *size) {
			size_t bigger = *size < 64 ? 128 : *size * 2;
			char *p = realloc(*line, bigger);

			if (p == NULL)
				return -1;
			*line = p;
			*size = bigger;
		}
		(*line)[n++] = (char)c;
		if (c == delim)
			break;
	}
	if (n == 0 || (c == EOF && ferror(f)))
		return -1;
	(*line)[n] = '\0';
	return (ssize_t)n;
}

ssize_t
getline(char **line, size_t *size, FILE *f)
{
	return getdelim(line, size, '\n', f);
}
