/* test.c - evaluates an expression: status 0 true, 1 false, 2 a bad expression. */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <tool.h>

static const char usage[] =
    "test EXPRESSION\n"
    "  -e -f -d -c -p -s -r -w -x FILE   exists, regular, directory, device, pipe, not empty, modes\n"
    "  -n TEXT, -z TEXT, -t FD           not empty, empty, is a terminal\n"
    "  A = B, A != B, A < B, A > B       texts\n"
    "  N -eq -ne -lt -le -gt -ge M       numbers\n"
    "  ! E, E -a E, E -o E, ( E )        not, and, or\n";

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		printf("usage: %s", usage);
		return tool_finish(0);
	}
	if (strcmp(getprogname(), "[") == 0) {
		if (strcmp(argv[argc - 1], "]") != 0)
			errx(2, "found the end, expected \"]\"");
		argc--;
	}
	return test_evaluate(argc - 1, argv + 1);
}
