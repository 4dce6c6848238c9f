/* kdump.c - prints what ktrace has recorded. One source for the guest and for the host. */
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tool.h>
#include <unistd.h>

#include "userland/bin/kdump/kdump.h"
#include "userland/bin/kdump/points.h"

static const char usage[] =
    "kdump [-AdEHlnRrSsT] [--jsonl] [--freebsd OUT] [--child PID] [-f FILE] [-m MAX] [-p PID] [-t LETTERS]\n"
    "  -f FILE     read FILE, - for standard input, instead of ktrace.out\n"
    "  -A          the kind of program: L64, Linux's of 64 bits\n"
    "  -d          numbers are decimal\n"
    "  -n          do not translate numbers into words\n"
    "  -r          users, groups, dates and modes of structs as words\n"
    "  -S          numbers of system calls, too\n"
    "  -s          no data of input and output\n"
    "  -m MAX      at most MAX bytes of such data\n"
    "  -H          the thread of each record\n"
    "  -T, -E, -R  the time of each record: since 1970, since the first, since the one before\n"
    "  -p PID      only this process or thread\n"
    "  -t LETTERS  only some kinds of records\n"
    "  -l          wait for more at the end of the file, while a traced process lives\n"
    "  --child PID  with -l: do not wait for records of PID, this process's child, once it is gone\n"
    "  --jsonl     each record as a JSON object\n"
    "  --freebsd OUT  writes OUT, a file for FreeBSD's kdump, and prints nothing\n"
    "  -h, --help  this text\n" KTR_POINTS_HELP;

static const char *freebsd_path; /* --freebsd; NULL: text */

#define WAIT_US 50000 /* between two looks at the end of a file */

/* Refuses the file that is read: its contents would be lost. */
static void
open_freebsd(const char *path, int input)
{
	struct stat in, out;

	if (fstat(input, &in) == 0 && stat(path, &out) == 0 && S_ISREG(out.st_mode) &&
	    in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		errx(2, "--freebsd %s: it is the input: expected another file", path);
	kdump_options.freebsd = fopen(path, "w");
	if (kdump_options.freebsd == NULL)
		err(1, "%s", path);
}

static int64_t
read_input(void *arg, void *buf, size_t len)
{
	FILE *in = arg;
	size_t n;

	while ((n = fread(buf, 1, len, in)) == 0) {
		if (ferror(in))
			err(1, "read");
		if (!kdump_live())
			break;
		clearerr(in);
		fflush(stdout);
		usleep(WAIT_US);
	}
	return (int64_t)n;
}

static void
set_option(int c, const char *arg, const char **file)
{
	struct kdump_options *o = &kdump_options;
	bool *const flags[] = {
	    ['A'] = &o->abi,      ['d'] = &o->decimal, ['E'] = &o->elapsed, ['H'] = &o->tid,
	    ['J'] = &o->jsonl,    ['l'] = &o->live,    ['n'] = &o->raw,     ['R'] = &o->relative,
	    ['r'] = &o->symbolic, ['S'] = &o->numbers, ['s'] = &o->no_data, ['T'] = &o->absolute,
	    ['t'] = NULL};

	if (flags[c] != NULL) {
		*flags[c] = true;
		return;
	}
	switch (c) {
	case 'C':
		kdump_child((int64_t)tool_number("--child", arg, 1, INT_MAX));
		break;
	case 'F':
		freebsd_path = arg;
		break;
	case 'f':
		*file = arg;
		break;
	case 'm':
		o->max_data = tool_number("-m", arg, 0, INT64_MAX);
		break;
	case 'p':
		o->pid = (int64_t)tool_number("-p", arg, 0, INT64_MAX);
		break;
	case 't':
		o->points = ktr_points(arg);
		if (o->points == 0)
			errx(2, "-t: found \"%s\", expected some of cfinpstuwy+", arg);
		break;
	case 'h':
		printf("usage: %s", usage);
		exit(tool_finish(0));
	default:
		tool_usage(usage);
	}
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'},
					      {"child", required_argument, NULL, 'C'},
					      {"jsonl", no_argument, NULL, 'J'},
					      {"freebsd", required_argument, NULL, 'F'},
					      {NULL, 0, NULL, 0}};
	FILE *in = stdin;
	const char *file = "ktrace.out";
	int c;

	while ((c = getopt_long(argc, argv, "AdEf:Hhlm:np:RrSsTt:", longs, NULL)) != -1)
		set_option(c, optarg, &file);
	if (optind < argc)
		set_option('?', NULL, NULL);
	if (strcmp(file, "-") != 0 && (in = fopen(file, "r")) == NULL)
		err(1, "%s", file);
	if (freebsd_path != NULL)
		open_freebsd(freebsd_path, fileno(in));
	c = kdump_stream(read_input, in);
	if (kdump_options.freebsd != NULL && fclose(kdump_options.freebsd) != 0)
		err(1, "--freebsd");
	return tool_finish(c);
}
