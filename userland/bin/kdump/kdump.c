/* kdump.c - prints what ktrace has recorded. One source for the guest and for the host. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/bin/kdump/kdump.h"
#include "userland/bin/kdump/points.h"

static const char usage[] =
    "usage: kdump [-dEHlnRrSsT] [--jsonl] [-f FILE] [-m MAX] [-p PID] [-t LETTERS]\n"
    "  -f FILE     read FILE, - for standard input, instead of ktrace.out\n"
    "  -d          numbers are decimal\n"
    "  -n          do not translate numbers into words\n"
    "  -r          dates and modes of structs as words\n"
    "  -S          numbers of system calls, too\n"
    "  -s          no data of input and output\n"
    "  -m MAX      at most MAX bytes of such data\n"
    "  -H          the thread of each record\n"
    "  -T, -E, -R  the time of each record: since 1970, since the first, since the one before\n"
    "  -p PID      only this process or thread\n"
    "  -t LETTERS  only some kinds of records\n"
    "  -l          wait for more at the end of the file, while a traced process lives\n"
    "  --jsonl     each record as a JSON object\n"
    "  -h, --help  this text\n" KTR_POINTS_HELP;

#define WAIT_US 50000 /* between two looks at the end of a file */

struct input {
	int fd;
	size_t at, have; /* in buf */
	char buf[65536];
};

static int64_t
read_input(void *arg, void *buf, size_t len)
{
	struct input *in = arg;

	while (in->at == in->have) {
		ssize_t n = read(in->fd, in->buf, sizeof(in->buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err(1, "read");
		if (n == 0 && !kdump_live())
			return 0;
		if (n == 0) {
			fflush(stdout);
			usleep(WAIT_US);
		}
		in->at = 0;
		in->have = (size_t)n;
	}
	if (len > in->have - in->at)
		len = in->have - in->at;
	memcpy(buf, in->buf + in->at, len);
	in->at += len;
	return (int64_t)len;
}

static uint64_t
number(char option, const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || n > INT64_MAX)
		errx(2, "-%c: found \"%s\", expected a number", option, text);
	return n;
}

static void
set_option(int c, const char *arg, const char **file)
{
	struct kdump_options *o = &kdump_options;

	switch (c) {
	case 'd':
		o->decimal = true;
		break;
	case 'E':
		o->elapsed = true;
		break;
	case 'f':
		*file = arg;
		break;
	case 'H':
		o->tid = true;
		break;
	case 'J':
		o->jsonl = true;
		break;
	case 'l':
		o->live = true;
		break;
	case 'm':
		o->max_data = number('m', arg);
		break;
	case 'n':
		o->raw = true;
		break;
	case 'p':
		o->pid = (int64_t)number('p', arg);
		break;
	case 'R':
		o->relative = true;
		break;
	case 'r':
		o->symbolic = true;
		break;
	case 'S':
		o->numbers = true;
		break;
	case 's':
		o->no_data = true;
		break;
	case 'T':
		o->absolute = true;
		break;
	case 't':
		o->points = ktr_points(arg);
		if (o->points == 0)
			errx(2, "-t: found \"%s\", expected some of cfinpstuwy+", arg);
		break;
	case 'h':
		fputs(usage, stdout);
		exit(fflush(stdout) == 0 ? 0 : 1);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'},
					      {"jsonl", no_argument, NULL, 'J'},
					      {NULL, 0, NULL, 0}};
	static struct input in;
	const char *file = "ktrace.out";
	int c, status;

	while ((c = getopt_long(argc, argv, "dEf:Hhlm:np:RrSsTt:", longs, NULL)) != -1)
		set_option(c, optarg, &file);
	if (optind < argc)
		set_option('?', NULL, NULL);
	if (strcmp(file, "-") != 0 && (in.fd = open(file, O_RDONLY)) < 0)
		err(1, "%s", file);
	status = kdump_stream(read_input, &in);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		warn("stdout");
		status = 1;
	}
	return status;
}
