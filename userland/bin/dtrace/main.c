/*
 * main.c - dtrace(1): options, and what to do with them.
 *
 * The same program runs in the guest, where it traces, and on the host, where it only compiles.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "userland/bin/dtrace/btf.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/compile.h"
#include "userland/bin/dtrace/files.h"
#include "userland/bin/dtrace/options.h"
#include "userland/bin/dtrace/read/read.h"
#include "userland/bin/dtrace/run/run.h"

static const char usage[] =
    "usage: dtrace [-aACeFhHlqSvVwZ] [-b bufsz] [-c cmd] [-D name[=def]] [-I path] [-L path]\n"
    "\t[-o output] [-p pid] [-s script] [-U name] [-x opt[=val]] [-X a|c|s|t]\n"
    "\t[-P provider [[ predicate ] action ]]\n"
    "\t[-m [ provider: ] module [[ predicate ] action ]]\n"
    "\t[-f [[ provider: ] module: ] func [[ predicate ] action ]]\n"
    "\t[-n [[[ provider: ] module: ] func: ] name [[ predicate ] action ]]\n"
    "\t[-i probe-id [[ predicate ] action ]] [ args ... ]\n"
    "\n"
    "\tpredicate -> '/' D-expression '/'\n"
    "\t   action -> '{' D-statements '}'\n"
    "\n"
    "\t-a  claim the tracing that began with the boot\n"
    "\t-A  write the program to /boot/dtrace.dif, or the file of -o, for a boot\n"
    "\t-b  set the size of the trace buffers\n"
    "\t-c  run a command, and trace until it exits\n"
    "\t-C  preprocess script files\n"
    "\t-D  define a macro for -C\n"
    "\t-e  exit after compiling the request, before tracing\n"
    "\t-f  enable or list probes that match the function's name\n"
    "\t-F  coalesce the output by function (flowindent)\n"
    "\t-h  print this text\n"
    "\t-H  print the files that scripts include\n"
    "\t-i  enable or list the probe of this number\n"
    "\t-I  add a folder to those that #include searches\n"
    "\t-l  list probes that match\n"
    "\t-L  add a folder to those of the D libraries\n"
    "\t-m  enable or list probes that match the module's name\n"
    "\t-n  enable or list probes that match the name\n"
    "\t-o  write the output to a file\n"
    "\t-p  trace until the process exits; $target is its number\n"
    "\t-P  enable or list probes that match the provider's name\n"
    "\t-q  print only what is traced\n"
    "\t-s  enable or list probes as a script says\n"
    "\t-S  print the compiler's code\n"
    "\t-U  undefine a macro of -C\n"
    "\t-v  be verbose: with -l, the types of arguments\n"
    "\t-V  print the version\n"
    "\t-w  permit destructive actions\n"
    "\t-x  set an option\n"
    "\t-Z  permit names that match no probe\n";

static struct {
	struct source *sources, **last;
	const char *output, *command, *process;
	struct library {
		struct library *next;
		const char *folder;
	} * libraries;
	bool list, code, compile_only, anonymous, claim;
} run;

/* What is not compiled, because an option or a file is wrong. */
static void
set_option(const char *text)
{
	char *name = dt_format("%s", text), *value = name;
	const char *why;

	name = strsep(&value, "=");
	why = option_set(name, value);
	if (why != NULL)
		errx(2, "failed to set -x %s", why);
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

/* Long options and their like; true: the letter is known. */
static void
take_option(int c)
{
	static const char letters[] = "iPmfn"; /* in the order of fields */

	switch (c) {
	case 'a':
		run.claim = true;
		break;
	case 'A':
		run.anonymous = true;
		break;
	case 'b':
	case 'B':
		set_option(dt_format("bufsize=%s", optarg));
		break;
	case 'c':
		run.command = optarg;
		break;
	case 'C':
		set_option("cpp");
		break;
	case 'D':
		set_option(dt_format("define=%s", optarg));
		break;
	case 'U':
		set_option(dt_format("undef=%s", optarg));
		break;
	case 'I':
		set_option(dt_format("incdir=%s", optarg));
		break;
	case 'H':
		set_option("cpphdrs");
		break;
	case 'e':
		run.compile_only = true;
		break;
	case 'F':
		set_option("flowindent");
		break;
	case 'G':
		errx(2,
		     "-G: programs have no probes of their own here, so there is nothing to link");
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'l':
		run.list = true;
		break;
	case 'L': {
		struct library *l = dt_alloc(sizeof(*l));

		l->folder = optarg;
		l->next = run.libraries;
		run.libraries = l;
		break;
	}
	case 'o':
		run.output = optarg;
		break;
	case 'p':
		run.process = optarg;
		break;
	case 'q':
		set_option("quiet");
		break;
	case 's':
		add_source(NULL, 4, optarg);
		break;
	case 'S':
		run.code = true;
		break;
	case 'v':
		set_option("verbose");
		break;
	case 'V':
		puts("dtrace: Kestrel D 1.0");
		exit(0);
	case 'w':
		set_option("destructive");
		break;
	case 'x':
		set_option(optarg);
		break;
	case 'X': /* how strictly -C takes the C standard: there is one way here */
		if (strlen(optarg) != 1 || strchr("acst", *optarg) == NULL)
			errx(2, "-X: found %s, expected a, c, s or t", optarg);
		break;
	case 'Z':
		set_option("zdefs");
		break;
	case '?':
		fputs("dtrace -h lists the options\n", stderr);
		exit(2);
	default:
		add_source(optarg, (unsigned)(strchr(letters, c) - letters), NULL);
	}
}

/* Options and operands mix: the operands are $1 and so on. */
static void
read_arguments(int argc, char **argv)
{
	/* +: glibc stops at the first operand, too. */
	static const char options[] = "+aAb:B:c:CD:eFf:GhHi:I:lL:m:n:o:p:P:qs:SU:vVwx:X:Z";
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	dt_macros.argv = dt_alloc((size_t)(argc + 1) * sizeof(char *));
	dt_macros.used = dt_alloc((size_t)(argc + 1) * sizeof(bool));
	dt_macros.argv[dt_macros.argc++] = argv[0];
	while (optind < argc) {
		while ((c = getopt_long(argc, argv, options, longs, NULL)) != -1)
			take_option(c);
		if (optind < argc)
			dt_macros.argv[dt_macros.argc++] = argv[optind++];
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
	for (struct library *l = run.libraries; l != NULL; l = l->next)
		file_each(l->folder, compile_library);
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
	for (int n = 1; n < dt_macros.argc && !dt_options.argref; n++) {
		if (!dt_macros.used[n])
			errx(1, "[D_MACRO_UNUSED] extraneous argument '%s' ($%d is not used)",
			     dt_macros.argv[n], n);
	}
}

/* ---- -l ---- */

static bool
is_wanted(const struct dif_probe *p)
{
	bool any = false;

	for (struct clause *c = dt_program.clauses; c != NULL; c = c->next) {
		for (struct probe_spec *s = c->probes; s != NULL; s = s->next) {
			if (probe_matches(s->text, p))
				return true;
			any = true;
		}
	}
	return !any;
}

static void
print_arguments(const struct dif_probe *p)
{
	struct attributes a = stable_best;
	const char *const parts[] = {p->provider, p->module, p->function, p->name};

	for (unsigned i = 0; i < 4; i++) {
		if (*parts[i] != '\0')
			a = stable_min(a, stable_of_probe(p->provider, i));
	}
	stable_print(stdout, "Probe Description Attributes", a);
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

static int
list_probes(void)
{
	unsigned found = 0;

	compile_names(run.sources);
	printf("%5s %10s %17s %33s %s\n", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME");
	for (struct probe *p = probe_all(); p != NULL; p = p->next) {
		if (!is_wanted(&p->p))
			continue;
		found++;
		printf("%5u %10s %17s %33s %s\n", p->p.id, p->p.provider, p->p.module,
		       p->p.function, p->p.name);
		if (dt_options.verbose)
			print_arguments(&p->p);
	}
	fflush(stdout);
	if (found == 0 && dt_program.clauses != NULL)
		errx(1, "failed to match %s: no matching probes", dt_program.clauses->probes->text);
	return ferror(stdout) ? 1 : 0;
}

/* ---- -A ---- */

/* Writes the image for a boot, or, without a program, takes an earlier one away. */
static int
save_anonymous(const void *image, uint32_t size)
{
	const char *path = run.output != NULL ? run.output : file_default(FILE_ANONYMOUS);
	FILE *f;

	if (path == NULL)
		errx(2, "-A: found no -o FILE, expected one on the host");
	if (image == NULL) {
		if (unlink(path) < 0 && errno != ENOENT)
			err(1, "%s", path);
		warnx("cleaned up old anonymous enabling in %s", path);
		return 0;
	}
	f = fopen(path, "w");
	if (f == NULL || fwrite(image, 1, size, f) != size || fclose(f) != 0)
		err(1, "%s", path);
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

int
main(int argc, char **argv)
{
	uint32_t size = 0;
	const void *image = NULL;

	file_init(argv[0]);
	run.last = &run.sources;
	open_kernel();
	dt_macros.pid = (uint64_t)getpid();
	dt_macros.ppid = (uint64_t)getppid();
	dt_macros.uid = dt_macros.euid = (uint64_t)getuid();
	read_arguments(argc, argv);
	run.claim |= dt_options.grabanon != 0;
	probe_describe = consume_describe;
	if (run.sources == NULL && !run.list && !run.claim && !run.anonymous) {
		fputs(usage, stderr);
		return 2;
	}
	read_scripts();
	if (!run.claim)
		consume_target(run.command, run.process);
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
	for (struct source *s = run.sources; run.compile_only && dt_options.verbose && s != NULL;
	     s = s->next)
		compile_report(stdout, s);
	if (run.compile_only && !run.claim)
		return fflush(stdout) != 0;
	return consume(image, run.sources, run.output, run.compile_only);
}
