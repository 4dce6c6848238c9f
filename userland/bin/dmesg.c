/* dmesg.c - prints the kernel's message buffer. */
#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <stdio.h>
#include <tool.h>

static const char usage[] = "dmesg\n";

int
main(int argc, char **argv)
{
	char *text;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind < argc)
		tool_usage(usage);
	text = sysctl_get_text("kern.msgbuf");
	if (text == NULL)
		err(1, "kern.msgbuf");
	fputs(text, stdout);
	return tool_finish(0);
}
