/*
 * ktrdump_options.c - the command line: what --help says, and how it is read and checked.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ktr/class.h"
#include "ktr/tools/export/export.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/report/report.h"

#define WIDTH_MIN 300
#define WIDTH_MAX 20000
#define ROWS_MAX  4096
#define ROWS      20
#define DEPTH_MAX 1000

#ifdef KTRDUMP_DEFAULT_INPUT
#define DEFAULT_INPUT_TEXT "the default is " KTRDUMP_DEFAULT_INPUT
#else
#define KTRDUMP_DEFAULT_INPUT NULL
#define DEFAULT_INPUT_TEXT    "the default is a pipe on standard input"
#endif

static const char usage_text[] =
    "usage: ktrdump [-cfHlnqrst] [-i FILE] [-o FILE] [OPTION]... [FILE]\n"
    "       ktrdump report [REPORT[,REPORT]...] [-i FILE] [-o FILE] [OPTION]... [FILE]\n"
    "       ktrdump diff [REPORT[,REPORT]...] [--fail-above PERCENT] [-o FILE] [OPTION]... A B\n"
    "Prints a trace stream, oldest event first, or what follows from its events;\n"
    "diff: what changed from run A to run B.\n"
    "FILE is a stream's file, - for standard input; " DEFAULT_INPUT_TEXT ".\n"
    "\n"
    "Columns\n"
    "  -c            CPU\n"
    "  -n            number of the event on its CPU, as db> and panics print it\n"
    "  -s            time: seconds since boot, to the nanosecond\n"
    "  -t            time: ticks of the clock, and the newest event first; -ct is for FreeBSD's\n"
    "                schedgraph.py\n"
    "  -r            time: since the event printed before\n"
    "  -f            file and line\n"
    "  -H            thread\n"
    "  -q            no column header\n"
    "Which events\n"
    "      --class CLASSES   such as SCHED,PROC\n"
    "      --cpu CPUS        such as 0-3,5\n"
    "      --thread THREAD   a thread id, or a glob over names\n"
    "      --grep TEXT       whose text contains TEXT, which may have * ? [a-z]; of a diff: rows\n"
    "                        of which a name does\n"
    "      --since TIME      TIME since boot: 1.5, 20ms, 300us, 7ns\n"
    "      --until TIME\n"
    "Output\n"
    "      --format FORMAT   text, jsonl, stream (the input's own, unfiltered), or graph: calls of\n"
    "                        functions with their durations\n"
#ifdef KTRDUMP_HOST
    "                        or one of those below, that other tools read\n"
#endif
    "      --function GLOB   of a graph: only what functions of these names call, and they\n"
    "      --depth N         of a graph: no calls deeper than N\n"
    "      --rows N          rows of a report's tables; 0: all; the default is 20\n"
    "      --fail-above PERCENT  of a diff: status 3 if a row has changed by more, such as 5%,\n"
    "                        or is of one run only\n"
    "  -o FILE       write there\n"
#ifdef KTRDUMP_HOST
    "      --width PIXELS    of a picture, 300 to 20000; the default is 1200\n"
#endif
    "Input\n"
    "  -i FILE       read there; tcp:HOST:PORT is a connection, shown as it comes (qemu/boot\n"
    "                --trace tcp::PORT)\n"
    "  -l            follow: go on when the file grows\n"
#ifdef KTRDUMP_HOST
    "  -M, -m CORE   read the rings out of a memory dump: an ELF core of QEMU's dump-guest-memory\n"
    "  -N, -e KERNEL the kernel that was dumped, a dump of another one is refused; or the one\n"
    "                whose functions a report names\n"
#endif
    "\n"
    "Status: 0 clean; 1 damaged or cut-off input (what is sound is printed), or nothing to show;\n"
    "2 usage or no input; 3 a diff found more than --fail-above allows.\n"
    "\n"
    "Reports; all, if none is named (diff: thread, syscall, lock, fault and function):\n";

static int
usage_error(const char *what, const char *value)
{
	fprintf(stderr, "ktrdump: %s%s%s\n", what, value != NULL ? ": " : "",
		value != NULL ? value : "");
	fprintf(stderr, "ktrdump: try --help\n");
	return DUMP_USAGE;
}

enum {
	OPT_CLASS = 256,
	OPT_CPU,
	OPT_THREAD,
	OPT_GREP,
	OPT_SINCE,
	OPT_UNTIL,
	OPT_ROWS,
	OPT_FUNCTION,
	OPT_DEPTH,
	OPT_FAIL_ABOVE,
	OPT_FORMAT,
	OPT_WIDTH,
	OPT_HELP
};

static const struct option long_options[] = {
    {"class", required_argument, NULL, OPT_CLASS},
    {"cpu", required_argument, NULL, OPT_CPU},
    {"thread", required_argument, NULL, OPT_THREAD},
    {"grep", required_argument, NULL, OPT_GREP},
    {"since", required_argument, NULL, OPT_SINCE},
    {"until", required_argument, NULL, OPT_UNTIL},
    {"rows", required_argument, NULL, OPT_ROWS},
    {"function", required_argument, NULL, OPT_FUNCTION},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"fail-above", required_argument, NULL, OPT_FAIL_ABOVE},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"width", required_argument, NULL, OPT_WIDTH},
    {"follow", no_argument, NULL, 'l'},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static void
print_reports(void)
{
	const char *line;
	fputs(usage_text, stdout);
	for (unsigned n = 0; (line = report_help(n)) != NULL; n++)
		puts(line);
}

#ifdef KTRDUMP_HOST
static const char formats_text[] =
    "--format: expected text, jsonl, stream, graph, or one of --help";

static void
print_usage(void)
{
	const struct export_format *f;
	print_reports();
	printf("\nFormats for --format, besides text, jsonl and stream:\n");
	for (unsigned n = 0; (f = export_nth(n)) != NULL; n++)
		printf("  %-13s %s%s\n", f->name, f->what, f->needs_path ? "; needs -o" : "");
}
#else
static const char formats_text[] = "--format: expected text, jsonl, stream or graph";

static void
print_usage(void)
{
	print_reports();
}
#endif

static int
option_format(struct dump_options *o)
{
	o->json = strcmp(optarg, "jsonl") == 0;
	o->stream = strcmp(optarg, "stream") == 0;
	o->format = strcmp(optarg, export_graph.name) == 0 ? &export_graph : NULL;
	if (o->format != NULL || o->json || o->stream || strcmp(optarg, "text") == 0)
		return 0;
#ifdef KTRDUMP_HOST
	o->format = export_find(optarg);
#endif
	return o->format != NULL ? 0 : usage_error(formats_text, optarg);
}

static int
option_number(unsigned *to, unsigned min, unsigned max, const char *what)
{
	char *end;
	unsigned long n = strtoul(optarg, &end, 10);
	if (*optarg < '0' || *optarg > '9' || *end != '\0' || n < min || n > max)
		return usage_error(what, optarg);
	*to = (unsigned)n;
	return 0;
}

static int
option_time(int64_t *to, const char *what)
{
	return dump_parse_time(optarg, to) ? 0 : usage_error(what, optarg);
}

/* Options that are a word, and those that are yes or no: where they go. NULL: another kind. */
static const char **
option_word(struct dump_options *o, int option)
{
	const char **const words[] = {['i'] = &o->input,
				      ['o'] = &o->output,
				      ['M'] = &o->core,
				      ['m'] = &o->core,
				      ['N'] = &o->kernel,
				      ['e'] = &o->kernel,
				      [OPT_FUNCTION] = &o->function,
				      [OPT_THREAD] = &o->filter.thread,
				      [OPT_GREP] = &o->filter.grep};
	return (size_t)option < sizeof(words) / sizeof(words[0]) ? words[option] : NULL;
}

static bool *
option_flag(struct dump_options *o, int option)
{
	bool *const flags[] = {['c'] = &o->cpu,      ['f'] = &o->file_line, ['H'] = &o->thread,
			       ['l'] = &o->follow,   ['n'] = &o->number,    ['q'] = &o->quiet,
			       ['r'] = &o->relative, ['s'] = &o->time,      ['t'] = &o->ticks};
	return (size_t)option < sizeof(flags) / sizeof(flags[0]) ? flags[option] : NULL;
}

/* Takes an option with a value that is not any word. Returns 0, or an exit status. */
static int
option_value(struct dump_options *o, int option)
{
	char err[160];
	switch (option) {
	case OPT_CLASS:
		if (ktr_mask_parse(optarg, &o->filter.classes, err, sizeof(err)) != 0)
			return usage_error("--class", err);
		return 0;
	case OPT_CPU:
		if (ktr_cpumask_parse(optarg, &o->filter.cpus, err, sizeof(err)) != 0)
			return usage_error("--cpu", err);
		return 0;
	case OPT_SINCE:
		return option_time(&o->filter.since_ns,
				   "--since: expected a time such as 1.5, 20ms, 300us");
	case OPT_UNTIL:
		return option_time(&o->filter.until_ns,
				   "--until: expected a time such as 1.5, 20ms, 300us");
	case OPT_WIDTH:
		return option_number(&o->width, WIDTH_MIN, WIDTH_MAX,
				     "--width: expected 300 to 20000 pixels");
	case OPT_ROWS:
		return option_number(&o->rows, 0, ROWS_MAX, "--rows: expected 0 to 4096");
	case OPT_DEPTH:
		return option_number(&o->depth, 1, DEPTH_MAX, "--depth: expected 1 to 1000");
	case OPT_FAIL_ABOVE:
		if (!o->diff.on)
			return usage_error("--fail-above is of a diff: expected `diff' first",
					   NULL);
		return dump_parse_percent(optarg, &o->diff.limit)
			   ? 0
			   : usage_error("--fail-above: expected percent such as 5% or 0.25%",
					 optarg);
	default:
		return option_format(o);
	}
}

/* -1: go on; else an exit status. */
static int
option_take(struct dump_options *o, int option)
{
	const char **word = option_word(o, option);
	bool *flag = option_flag(o, option);
	if (option == OPT_HELP) {
		print_usage();
		return DUMP_CLEAN;
	}
	if (option == 1) { /* no option, in a diff */
		dump_diff_input(o, optarg, false);
		return -1;
	}
	if (option == '?') {
		fprintf(stderr, "ktrdump: try --help\n");
		return DUMP_USAGE;
	}
#ifndef KTRDUMP_HOST
	if (word == &o->core || word == &o->kernel)
		return usage_error("no kernel image or core is needed: a stream describes itself",
				   NULL);
#endif
	if (option == OPT_GREP && strlen(optarg) > DUMP_GREP_MAX)
		return usage_error("--grep: expected at most 500 characters", NULL);
	if (option == 'o' && *optarg == '\0')
		return usage_error("-o: expected a name", optarg);
	if (flag != NULL)
		*flag = true;
	else if (o->diff.on && word == &o->kernel)
		dump_diff_kernel(o, optarg);
	else if (o->diff.on && (word == &o->input || word == &o->core))
		dump_diff_input(o, optarg, word == &o->core);
	else if (word != NULL)
		*word = optarg;
	int status = flag == NULL && word == NULL ? option_value(o, option) : 0;
	o->time |= o->relative | o->ticks;
	return status == 0 ? -1 : status;
}

/* `report [NAMES]` or `diff [NAMES]`, before all options. Returns how many words it takes; -1: that
 * is no report. */
static int
take_report(struct dump_options *o, int argc, char **argv)
{
	const char *wrong;
	if (argc < 2 || (strcmp(argv[1], "report") != 0 && strcmp(argv[1], "diff") != 0))
		return 0;
	if (strcmp(argv[1], "diff") == 0)
		dump_diff_begin(o);
	o->reports = "";
	/* A word with a point or a slash, or one that is the name of a file, is a file. */
	if (argc < 3 || strpbrk(argv[2], "-./") != NULL)
		return 1;
	o->reports = argv[2];
	if (report_names_known(argv[2], &wrong))
		return 2;
	if (access(argv[2], F_OK) == 0) {
		o->reports = "";
		return 1;
	}
	fprintf(stderr, "ktrdump: no report \"%.*s\"; expected", (int)strcspn(wrong, ","), wrong);
	for (unsigned n = 0; report_help(n) != NULL; n++)
		fprintf(stderr, " %.*s", (int)strcspn(report_help(n) + 2, " "), report_help(n) + 2);
	fprintf(stderr, ", or a file after -i\n");
	return -1;
}

int
dump_options_parse(struct dump_options *o, int argc, char **argv)
{
	int option;
	*o = (struct dump_options){
	    .input = KTRDUMP_DEFAULT_INPUT,
	    .rows = ROWS,
	    .filter = {.classes = KTR_ALL,
		       .cpus = ~(uint64_t)0,
		       .since_ns = INT64_MIN,
		       .until_ns = INT64_MAX},
	};
	int words = take_report(o, argc, argv);
	if (words < 0)
		return DUMP_USAGE;
	argv[words] = argv[0];
	argv += words;
	argc -= words;
	const char *letters = "-cfHlnqrsti:o:N:e:M:m:" + !o->diff.on; /* -: A and B in order */
	while ((option = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		int status = option_take(o, option);
		if (status >= 0)
			return status;
	}
	if (optind < argc && o->reports == NULL &&
	    (strcmp(argv[optind], "report") == 0 || strcmp(argv[optind], "diff") == 0))
		return usage_error("it comes before all options", argv[optind]);
	while (o->diff.on && optind < argc)
		dump_diff_input(o, argv[optind++], false);
	if (optind < argc)
		o->input = argv[optind++];
	if (optind < argc)
		return usage_error("one input file is enough", argv[optind]);
	if (o->reports != NULL && (o->stream || o->format != NULL))
		return usage_error("a report is text or jsonl", NULL);
	const char *wrong = o->diff.on ? dump_diff_wrong(o) : NULL;
	if (wrong != NULL)
		return usage_error(wrong, NULL);
	if (o->reports != NULL)
		o->format = &export_report;
	if (o->depth != 0 && o->format != &export_graph)
		return usage_error("--depth is of a graph: expected --format graph", NULL);
	if (o->function != NULL && o->format != &export_graph)
		return usage_error("--function is of a graph: expected --format graph", NULL);
	if (o->format != NULL && o->follow)
		return usage_error("-l has no end: expected text or jsonl of events with it",
				   o->format->name);
	if (o->ticks && o->follow)
		return usage_error("-t prints the newest event first: expected -s with -l", NULL);
	if (o->format != NULL && o->format->needs_path &&
	    (o->output == NULL || strcmp(o->output, "-") == 0))
		return usage_error("the format needs a name to write to: expected -o",
				   o->format->name);
	if (o->format != NULL && o->format->sees_all &&
	    (o->reports == NULL || strcmp(o->reports, "events") != 0) &&
	    (o->filter.classes != KTR_ALL || o->filter.grep != NULL))
		return usage_error(
		    o->format->whole ? "what is asked for shows times, not events: expected "
				       "--since, --until in place of --class and --grep"
				     : "what is asked for shows times, not events: expected --cpu, "
				       "--thread, --since, --until in place of --class and --grep",
		    NULL);
	bool whole = o->format != NULL && o->format->whole;
	if (whole && (o->filter.thread != NULL || o->filter.cpus != ~(uint64_t)0))
		return usage_error(
		    "the format has all threads and CPUs: expected --since, --until in place of "
		    "--cpu and --thread",
		    NULL);
	if (o->kernel != NULL && o->core == NULL && o->reports == NULL && !whole)
		return usage_error(
		    "-N names the kernel of a memory dump, or of a report: expected -M, or "
		    "`report'",
		    NULL);
	if (o->diff.on)
		return -1;
	if (o->core != NULL && (o->input != NULL || o->follow))
		return usage_error("-M is the input: expected no other, and no -l", NULL);
	if (o->core != NULL)
		o->input = o->core;
	if (o->input == NULL) {
		if (isatty(STDIN_FILENO))
			return usage_error("no input: name a file, or pipe a stream in", NULL);
		o->input = "-";
	}
	return -1;
}
