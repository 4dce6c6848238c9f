/* true.c - succeeds. */
#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		puts("usage: true");
	return 0;
}
