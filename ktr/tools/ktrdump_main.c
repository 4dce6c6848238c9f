/*
 * ktrdump_main.c - the program ktrdump: its options, and the run.
 */
#include "ktr/tools/ktrdump.h"

int
main(int argc, char **argv)
{
	static struct dump d;
	int status = dump_options_parse(&d.opts, argc, argv);
	if (status >= 0)
		return status;
	return d.opts.diff.on ? dump_diff(&d.opts) : dump_run(&d);
}
