/*
 * main.c - dtrace(1): options, and what to do with them.
 *
 * The same program runs in the guest, where it traces, and on the host, where it compiles, and
 * reads what was recorded (-r), or traces another kernel (--target).
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "userland/bin/dtrace/btf.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/compile.h"
#include "userland/bin/dtrace/files.h"
#include "userland/bin/dtrace/options.h"
#include "userland/bin/dtrace/read/read.h"
#include "userland/bin/dtrace/run/run.h"
#include "userland/lib/array.h"

static const char usage[] =
    "usage: dtrace [-aACeFhHlqSvVwZ] [-b bufsz] [-c cmd] [-D name[=def]] [-I path] [-L path]\n"
    "\t[-o output] [-p pid] [-r file] [-s script] [-U name] [-x opt[=val]] [-X a|c|s|t]\n"
    "\t[-P provider [[ predicate ] action ]]\n"
    "\t[-m [ provider: ] module [[ predicate ] action ]]\n"
    "\t[-f [[ provider: ] module: ] func [[ predicate ] action ]]\n"
    "\t[-n [[[ provider: ] module: ] func: ] name [[ predicate ] action ]]\n"
    "\t[-i probe-id [[ predicate ] action ]] [ args ... ]\n"
    "\n"
    "\tpredicate -> '/' D-expression '/'\n"
    "\t   action -> '{' D-statements '}'\n"
    "\n";

static struct {
	struct source *sources, **last;
	const char *output, *recorded, *target, *kernel;
	const char **processes; /* "cCOMMAND" or "pNUMBER" */
	size_t process_count;
	struct folder {
		struct folder *next;
		const char *path;
	} * libraries;
	bool list, code, compile_only, anonymous, claim;
	bool model; /* -32 or -64: there is one here */
} run;

/* What an option does: sets an option of -x, a flag or a text of `run`, or is a program. */
static const struct choice {
	char letter;
	bool argument;
	const char *help;   /* NULL: -h does not list it */
	const char *option; /* of -x; with an argument, that is the value */
	bool *flag;
	const char **text;
	bool source;
	unsigned fields; /* of a source: as probe_full_name() */
} choices[] = {
    {'a', false, "claim the tracing that began with the boot", .flag = &run.claim},
    {'A', false, "write the program to /boot/dtrace.dif, or the file of -o, for a boot",
     .flag = &run.anonymous},
    {'b', true, "set the size of the trace buffers", .option = "bufsize"},
    {'c', true, "run a command, and trace until it exits", .option = NULL},
    {'C', false, "preprocess script files", .option = "cpp"},
    {'D', true, "define a macro for -C", .option = "define"},
    {'e', false, "exit after compiling the request, before tracing", .flag = &run.compile_only},
    {'f', true, "enable or list probes that match the function's name", .source = true,
     .fields = 3},
    {'F', false, "coalesce the output by function (flowindent)", .option = "flowindent"},
    {'h', false, "print this text", .option = NULL},
    {'H', false, "print the files that scripts include", .option = "cpphdrs"},
    {'i', true, "enable or list the probe of this number", .source = true, .fields = 0},
    {'I', true, "add a folder to those that #include searches", .option = "incdir"},
    {'K', true, "--kernel: the ELF of the kernel of -T", .text = &run.kernel},
    {'l', false, "list probes that match", .flag = &run.list},
    {'L', true, "add a folder to those of the D libraries", .option = NULL},
    {'m', true, "enable or list probes that match the module's name", .source = true, .fields = 2},
    {'n', true, "enable or list probes that match the name", .source = true, .fields = 4},
    {'o', true, "write the output to a file", .text = &run.output},
    {'p', true, "trace until the process exits; $target is its number", .option = NULL},
    {'P', true, "enable or list probes that match the provider's name", .source = true,
     .fields = 1},
    {'q', false, "print only what is traced", .option = "quiet"},
    {'r', true, "trace what a file has recorded, a trace or a log (on the host)",
     .text = &run.recorded},
    {'s', true, "enable or list probes as a script says", .option = NULL},
    {'S', false, "print the compiler's code", .flag = &run.code},
    {'T', true,
     "--target: trace another kernel, at unix:PATH, tcp:HOST:PORT or a terminal (on the host)",
     .text = &run.target},
    {'U', true, "undefine a macro of -C", .option = "undef"},
    {'v', false, "be verbose: with -l, the types of arguments", .option = "verbose"},
    {'V', false, "print the version", .option = NULL},
    {'w', false, "permit destructive actions", .option = "destructive"},
    {'x', true, "set an option", .option = NULL},
    {'Z', false, "permit names that match no probe", .option = "zdefs"},
    {'B', true, .option = "bufsize"},
    {'3', false, NULL, .flag = &run.model},
    {'2', false, NULL, .flag = &run.model},
    {'6', false, NULL, .flag = &run.model},
    {'4', false, NULL, .flag = &run.model},
    {'G', false, NULL, .option = NULL},
    {'X', true, NULL, .option = "stdc"},
};
#define CHOICES (sizeof(choices) / sizeof(choices[0]))

static void
print_usage(FILE *to)
{
	fputs(usage, to);
	for (size_t i = 0; i < CHOICES; i++)
		if (choices[i].help != NULL)
			fprintf(to, "\t-%c  %s\n", choices[i].letter, choices[i].help);
}

/* What is not compiled, because an option or a file is wrong. */
static void
set_option(const char *text)
{
	char *name = dt_format("%s", text), *value = name;
	const char *why;

	name = strsep(&value, "=");
	why = option_set(name, value);
	if (why != NULL)
		errx(1, "failed to set -x %s", why);
}

static void
add_source(const char *text, unsigned fields, const char *script)
{
	struct source *s = dt_alloc(sizeof(*s));

	s->text = text;
	s->fields = fields;
	s->script = script;
	*run.last = s;
	run.last = &s->next;
}

static void
add_library(const char *folder)
{
	struct folder *l = dt_alloc(sizeof(*l));

	l->path = folder;
	l->next = run.libraries;
	run.libraries = l;
}

static void
take_option(const struct choice *o)
{
	if (o->option != NULL)
		set_option(o->argument ? dt_format("%s=%s", o->option, optarg) : o->option);
	else if (o->flag != NULL)
		*o->flag = true;
	else if (o->text != NULL)
		*o->text = optarg;
	else if (o->source)
		add_source(optarg, o->fields, NULL);
	else if (o->letter == 's')
		add_source(NULL, 4, optarg);
	else if (o->letter == 'L')
		add_library(optarg);
	else if (o->letter == 'c' || o->letter == 'p')
		ARRAY_ADD(run.processes, run.process_count, dt_format("%c%s", o->letter, optarg));
	else if (o->letter == 'x')
		set_option(optarg);
	else if (o->letter == 'G')
		errx(2,
		     "-G: programs have no probes of their own here, so there is nothing to link");
	else if (o->letter == 'V')
		puts("dtrace: Kestrel D 1.0");
	else if (o->letter == 'h')
		print_usage(stdout);
	if (o->letter == 'V' || o->letter == 'h')
		exit(0);
}

/* Takes options and operands, which mix: the operands are $1 and so on. */
static void
read_arguments(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'},
					      {"kernel", required_argument, NULL, 'K'},
					      {"target", required_argument, NULL, 'T'},
					      {NULL, 0, NULL, 0}};
	char letters[2 * CHOICES + 2] = "+"; /* glibc stops at the first operand, too */
	int c;

	for (size_t i = 0; i < CHOICES; i++) {
		char one[] = {choices[i].letter, choices[i].argument ? ':' : '\0', '\0'};

		strcat(letters, one);
	}
	dt_macros.argv = dt_alloc((size_t)(argc + 1) * sizeof(char *));
	dt_macros.used = dt_alloc((size_t)(argc + 1) * sizeof(bool));
	dt_macros.argv[dt_macros.argc++] = argv[0];
	while (optind < argc) {
		int at = optind;

		for (; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1; at = optind) {
			const struct choice *o = choices;

			while (o < choices + CHOICES && o->letter != c)
				o++;
			if (o == choices + CHOICES) {
				fputs("dtrace -h lists the options\n", stderr);
				exit(2);
			}
			take_option(o);
		}
		/* What follows `--` are arguments, whatever they look like. */
		do {
			if (optind < argc)
				dt_macros.argv[dt_macros.argc++] = argv[optind++];
		} while (optind < argc && at < optind - 1 && strcmp(argv[at], "--") == 0);
	}
}

static void
read_libraries(void)
{
	const char *folder =
	    dt_options.libdir != NULL ? dt_options.libdir : file_default(FILE_LIBRARY);

	if (!dt_options.nolibs)
		file_each(folder, compile_library);
	if (!dt_options.nolibs && dt_options.libdir == NULL && file_default(FILE_MACHINE) != NULL)
		file_each(file_default(FILE_MACHINE), compile_library);
	for (struct folder *l = run.libraries; l != NULL; l = l->next)
		file_each(l->path, compile_library);
	compile_libraries();
}

static void
read_scripts(void)
{
	for (struct source *s = run.sources; s != NULL; s = s->next) {
		if (s->script == NULL)
			continue;
		s->text = file_read_text(s->script);
		if (s->text == NULL)
			err(1, "failed to open %s", s->script);
		dt_context = dt_format("failed to compile script %s", s->script);
		cpp_options.say_files = dt_options.cpphdrs != 0;
		if (dt_options.cpp)
			s->text = cpp_run(s->script, s->text);
		dt_macros.argv[0] = (char *)s->script;
	}
}

/* Arguments that no $n stands for are most likely a mistake. */
static void
check_macros(void)
{
	if (run.sources != NULL)
		compile_context(run.sources);
	for (int n = 1; n < dt_macros.argc && !dt_options.argref; n++)
		if (!dt_macros.used[n])
			dt_error((struct place){0}, "D_MACRO_UNUSED",
				 "extraneous argument '%s' ($%d is not used)", dt_macros.argv[n],
				 n);
}

/* ---- -l ---- */

static void
print_arguments(const struct dif_probe *p)
{
	stable_print(stdout, "Probe Description Attributes", stable_of_description(p, p->provider));
	stable_print(stdout, "Argument Attributes", stable_of_probe(p->provider, STABLE_ARGS));
	printf("\n\tArgument Types\n");
	for (uint64_t n = 0; n < 10; n++) {
		const char *xlate;
		struct type *type = probe_argument(p, n, &xlate);

		if (type == NULL) {
			if (n == 0)
				printf("\t\tNone\n");
			break;
		}
		printf("\t\targs[%u]: %s\n", (unsigned)n, xlate != NULL ? xlate : type_text(type));
	}
	printf("\n");
}

static bool
list_matching(const char *name)
{
	bool found = false;

	for (struct probe *p = probe_all(); p != NULL; p = p->next) {
		if (!probe_matches(name, &p->p))
			continue;
		found = true;
		printf("%5u %10s %17s %33s %s\n", p->p.id, p->p.provider, p->p.module,
		       p->p.function, p->p.name);
		if (dt_options.verbose)
			print_arguments(&p->p);
	}
	fflush(stdout);
	if (!found)
		warnx("failed to match %s: no matching probes", name);
	return found;
}

/* The file of -o, if nothing is traced. */
static void
output_to_file(void)
{
	if (run.output != NULL && freopen(run.output, "w", stdout) == NULL)
		err(1, "failed to open %s", run.output);
}

static int
list_probes(void)
{
	bool found = false;

	compile_names(run.sources);
	output_to_file();
	printf("%5s %10s %17s %33s %s\n", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME");
	for (const struct clause *c = dt_program.clauses; c != NULL; c = c->next)
		for (const struct probe_spec *p = c->probes; p != NULL; p = p->next)
			found |= list_matching(p->text);
	if (run.sources == NULL)
		found = list_matching(":::");
	return !found || ferror(stdout) != 0;
}

/* ---- -A ---- */

/* Writes the image for a boot, or, without a program, takes an earlier one away. */
static int
save_anonymous(const void *image, uint32_t size)
{
	const char *path = run.output != NULL ? run.output : file_default(FILE_ANONYMOUS);
	const char *fresh, *target;
	struct stat s;
	bool replace;
	FILE *f;

	if (path == NULL)
		errx(2, "-A: found no -o FILE, expected one on the host");
	if (image == NULL) {
		if (unlink(path) < 0 && errno != ENOENT)
			err(1, "%s", path);
		warnx("cleaned up old anonymous enabling in %s", path);
		return 0;
	}
	load_check(image);
	/* The earlier image stays until this one is whole, if another file can take its place. */
	target = realpath(path, NULL);
	replace = target == NULL ? lstat(path, &s) < 0
				 : stat(target, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 1 &&
				       s.st_uid == geteuid() && s.st_gid == getegid();
	fresh = replace ? dt_format("%s.new", target != NULL ? target : path) : path;
	f = fopen(fresh, "w");
	if (f == NULL || fwrite(image, 1, size, f) != size || fflush(f) != 0 ||
	    (replace &&
	     ((target != NULL && fchmod(fileno(f), s.st_mode) != 0) || fsync(fileno(f)) != 0 ||
	      rename(fresh, target != NULL ? target : path) != 0)) ||
	    fclose(f) != 0) {
		int error = errno;

		if (replace)
			unlink(fresh);
		errno = error;
		err(1, "%s", path);
	}
	warnx("saved anonymous enabling in %s", path);
	warnx("boot with `qemu/boot --file %s=FILE` to enable it", ANONYMOUS_PATH);
	return 0;
}

/* ---- main ---- */

static void
open_kernel(void)
{
	static struct btf btf;
	size_t size;
	const void *data = file_read(file_default(FILE_BTF), &size);
	const char *why;
	bool good = false;

	if (data != NULL) {
		why = btf_open(&btf, data, size);
		if (why != NULL)
			warnx("%s: %s", file_default(FILE_BTF), why);
		good = why == NULL;
	}
	compile_init(good ? &btf : NULL);
	data = file_read(file_default(FILE_VARIABLES), &size);
	if (data != NULL)
		type_variables(data);
	data = file_read(file_default(FILE_SYMBOLS), &size);
	why = data != NULL ? symbol_open(data, size) : NULL;
	if (why != NULL)
		warnx("%s: %s", file_default(FILE_SYMBOLS), why);
}

static bool
is_same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 &&
	       (strcmp(b, "-") == 0 ? fstat(STDIN_FILENO, &sb) : stat(b, &sb)) == 0 &&
	       S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* With -r: there are no processes to start, and no kernel to ask. */
static void
use_recorded(void)
{
	if (run.process_count > 0 || run.claim || run.anonymous)
		errx(2, "-r: found -a, -A, -c or -p too, which trace a kernel that runs");
	if (run.output != NULL && is_same_file(run.output, run.recorded))
		errx(2, "-o %s: it is an input: expected another file", run.output);
	dt_recorded = true;
	dt_macros.no_target = true;
	type_variables("");
	consume_recorded(run.recorded);
}

/* With --target: no processes are known there, and nothing begins with the boot. */
static void
use_target(void)
{
	static const char *const small[] = {"bufsize=16k", "aggsize=16k", "dynvarsize=16k",
					    "specsize=4k"};
	const char *set = option_text();

	if (remote_attach == NULL)
		errx(2, "--target: the host's dtrace traces other kernels, this one its own");
	if (run.kernel == NULL)
		errx(2, "--target: expected --kernel FILE, too: the ELF of that kernel");
	if (run.process_count > 0 || run.claim || run.anonymous || run.recorded != NULL)
		errx(
		    2,
		    "--target: found -a, -A, -c, -p or -r too, which trace this kernel, or a file");
	dt_foreign = true;
	dt_options.nolibs = true; /* they are about Kestrel's structures */
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		set_option(small[i]);
	option_set_text(set);
	remote_attach(run.target, run.kernel);
}

int
main(int argc, char **argv)
{
	uint32_t size = 0;
	void *image = NULL;

	file_init(argv[0]);
	run.last = &run.sources;
	open_kernel();
	dt_macros = (struct dt_macros){.pid = (uint64_t)getpid(),
				       .ppid = (uint64_t)getppid(),
				       .pgid = (uint64_t)getpgrp(),
				       .sid = (uint64_t)getsid(0),
				       .uid = getuid(),
				       .euid = geteuid(),
				       .gid = getgid(),
				       .egid = getegid()};
	read_arguments(argc, argv);
	run.claim |= dt_options.grabanon != 0;
	if (run.target != NULL)
		use_target();
	else if (run.kernel != NULL)
		errx(2, "--kernel: expected --target LINE, too");
	else if (run.recorded != NULL)
		use_recorded();
	probe_describe = consume_describe;
	if (run.sources == NULL && !run.list && !run.claim && !run.anonymous && !run.compile_only) {
		print_usage(stderr);
		return 2;
	}
	if (run.claim && (run.sources != NULL || run.process_count > 0))
		errx(2, "-a: found -c, -p or a program too, which begin a tracing of their own");
	read_scripts();
	for (size_t i = 0; i < run.process_count; i++)
		target_open(run.processes[i]);
	if (run.list)
		return list_probes();
	if (!run.claim) {
		read_libraries();
		compile_sources(run.sources, run.code);
		check_macros();
		image = run.sources != NULL ? compile_image(&size) : NULL;
	}
	if (run.anonymous)
		return save_anonymous(image, size);
	if (run.compile_only && !run.claim) {
		output_to_file();
		for (struct source *s = run.sources; dt_options.verbose && s != NULL; s = s->next)
			compile_report(stdout, s);
		return fflush(stdout) != 0;
	}
	return consume(image, run.sources, run.output, run.compile_only);
}
