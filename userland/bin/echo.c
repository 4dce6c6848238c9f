/* echo.c - prints its arguments. */
#include <stdio.h>
#include <string.h>
#include <tool.h>

int
main(int argc, char **argv)
{
	int i = 1;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		puts("usage: echo [-n] [TEXT]...");
		return tool_finish(0);
	}
	if (i < argc && strcmp(argv[i], "-n") == 0)
		i++;
	for (int first = i; i < argc; i++)
		printf("%s%s", i > first ? " " : "", argv[i]);
	if (argc < 2 || strcmp(argv[1], "-n") != 0)
		putchar('\n');
	return tool_finish(0);
}
