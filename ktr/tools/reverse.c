/* reverse.c - the lines of a file, the last one first. */
#include "ktr/tools/reverse.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define BLOCK 65536u

/* Length of the beginning of a block, of n bytes, that may be the end of a line only. */
static size_t
part_of_line(const char *block, size_t n)
{
	const char *newline = memchr(block, '\n', n);
	return newline != NULL ? (size_t)(newline - block) + 1 : n;
}

static void
put_reversed(const char *lines, size_t n, FILE *to)
{
	while (n > 0) {
		const size_t end = n--;
		while (n > 0 && lines[n - 1] != '\n')
			n--;
		fwrite(lines + n, 1, end - n, to);
	}
}

static bool
read_before(FILE *from, off_t end, char *block, size_t n)
{
	return fseeko(from, end - (off_t)n, SEEK_SET) == 0 && fread(block, 1, n, from) == n;
}

bool
reverse_lines(FILE *from, FILE *to)
{
	size_t room = BLOCK;
	char *block = malloc(room), *larger;
	off_t end = fseeko(from, 0, SEEK_END) == 0 ? ftello(from) : -1;
	while (block != NULL && end > 0 && ferror(to) == 0) {
		const size_t n = end < (off_t)room ? (size_t)end : room;
		if (!read_before(from, end, block, n))
			break;
		const size_t part = (off_t)n < end ? part_of_line(block, n) : 0;
		put_reversed(block + part, n - part, to);
		end -= (off_t)(n - part);
		if (part < n)
			continue;
		larger = realloc(block, room *= 2);
		if (larger == NULL)
			free(block);
		block = larger;
	}
	free(block);
	return end == 0 && ferror(to) == 0;
}
