/* builtin.c - commands that the shell runs itself. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

static int
usage_error(const char *usage)
{
	sh_error("usage: %s", usage);
	return 2;
}

/* A small number as an operand of a builtin; -1 after a message. */
static int
parse_count(const char *name, const char *text, int min, int max)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end != '\0' || n < min || n > max) {
		sh_error("%s: found \"%s\", expected %d to %d", name, text, min, max);
		return -1;
	}
	return (int)n;
}

static int
run_true(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static int
run_false(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 1;
}

static int
run_echo(int argc, char **argv)
{
	bool newline = !(argc > 1 && strcmp(argv[1], "-n") == 0);

	for (int first = newline ? 1 : 2, i = first; i < argc; i++) {
		if (i > first)
			putchar(' ');
		fputs(argv[i], stdout);
	}
	if (newline)
		putchar('\n');
	return 0;
}

static int
run_test(int argc, char **argv)
{
	if (strcmp(argv[0], "[") == 0) {
		if (strcmp(argv[argc - 1], "]") != 0) {
			sh_error("[: found the end, expected \"]\"");
			return 2;
		}
		argc--;
	}
	return test_evaluate(argc - 1, argv + 1);
}

static int
run_cd(int argc, char **argv)
{
	const char *to = argc > 1 ? argv[1] : var_get("HOME");
	char path[PATH_MAX];

	if (argc > 2)
		return usage_error("cd [DIRECTORY]");
	if (to == NULL)
		to = "/";
	if (strcmp(to, "-") == 0) {
		to = var_get("OLDPWD");
		if (to == NULL) {
			sh_error("cd: there is no directory to go back to");
			return 1;
		}
		puts(to);
	}
	to = arena_strndup(to, strlen(to)); /* setting OLDPWD frees what it held */
	if (getcwd(path, sizeof(path)) != NULL && chdir(to) == 0) {
		var_set("OLDPWD", path);
		if (getcwd(path, sizeof(path)) != NULL)
			var_set("PWD", path);
		return 0;
	}
	sh_error("cd: %s: %s", to, strerror(errno));
	return 1;
}

static int
run_pwd(int argc, char **argv)
{
	char path[PATH_MAX];

	(void)argv;
	if (argc > 1)
		return usage_error("pwd");
	if (getcwd(path, sizeof(path)) == NULL) {
		sh_error("pwd: %s", strerror(errno));
		return 1;
	}
	puts(path);
	return 0;
}

/* exit and return: with a status, else the last one. */
static int
leave(enum unwind how, int argc, char **argv)
{
	int status = argc > 1 ? parse_count(argv[0], argv[1], 0, 255) : sh.status;

	if (argc > 2 || status < 0)
		status = 2;
	sh.unwind = how;
	return status;
}

static int
run_exit(int argc, char **argv)
{
	return leave(U_EXIT, argc, argv);
}

static int
run_return(int argc, char **argv)
{
	if (sh.call_depth == 0) {
		sh_error("return: found outside of a function or a sourced file");
		return 2;
	}
	return leave(U_RETURN, argc, argv);
}

/* break and continue: of as many loops as the operand says. */
static int
leave_loop(enum unwind how, int argc, char **argv)
{
	int levels = argc > 1 ? parse_count(argv[0], argv[1], 1, INT_MAX) : 1;

	if (levels < 0 || argc > 2)
		return 2;
	if (sh.loop_depth == 0) {
		sh_error("%s: found outside of a loop", argv[0]);
		return 2;
	}
	sh.unwind = how;
	sh.unwind_levels = levels < sh.loop_depth ? levels : sh.loop_depth;
	return 0;
}

static int
run_break(int argc, char **argv)
{
	return leave_loop(U_BREAK, argc, argv);
}

static int
run_continue(int argc, char **argv)
{
	return leave_loop(U_CONTINUE, argc, argv);
}

static int
run_export(int argc, char **argv)
{
	if (argc == 1)
		var_print_exported();
	for (int i = 1; i < argc; i++) {
		size_t len = var_assign_length(argv[i]);
		char *name = len > 0 ? arena_strndup(argv[i], len) : argv[i];

		if (!var_is_name(name, strlen(name))) {
			sh_error("export: found \"%s\", expected NAME or NAME=VALUE", argv[i]);
			return 2;
		}
		if (len > 0)
			var_set(name, argv[i] + len + 1);
		var_export(name);
	}
	return 0;
}

static int
run_unset(int argc, char **argv)
{
	bool functions = argc > 1 && strcmp(argv[1], "-f") == 0;

	for (int i = functions ? 2 : 1; i < argc; i++) {
		if (functions)
			function_unset(argv[i]);
		else
			var_unset(argv[i]);
	}
	return 0;
}

/* Replaces $1… by copies that outlive this line. */
static void
set_args(int count, char **from)
{
	char **args = sh_malloc((size_t)(count + 1) * sizeof(*args));

	for (int i = 0; i < count; i++)
		args[i] = sh_strdup(from[i]);
	args[count] = NULL;
	sh.args = args;
	sh.arg_count = count;
}

static int
run_set(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		bool on = argv[i][0] == '-';

		if (strcmp(argv[i], "--") == 0) {
			set_args(argc - i - 1, argv + i + 1);
			return 0;
		}
		if (argv[i][0] != '-' && argv[i][0] != '+') {
			set_args(argc - i, argv + i);
			return 0;
		}
		for (const char *o = argv[i] + 1; *o != '\0'; o++) {
			if (*o == 'e')
				sh.exit_on_error = on;
			else if (*o == 'x')
				sh.trace = on;
			else if (*o == 'u')
				sh.no_unset = on;
			else
				return usage_error("set [-eux] [+eux] [--] [ARGUMENT]...");
		}
	}
	return 0;
}

static int
run_shift(int argc, char **argv)
{
	int n = argc > 1 ? parse_count("shift", argv[1], 0, sh.arg_count) : 1;

	if (n < 0 || argc > 2)
		return 2;
	if (n > sh.arg_count)
		return 1;
	sh.args += n;
	sh.arg_count -= n;
	return 0;
}

/* Reads a line from standard input, no further: what follows is for other commands. */
static bool
read_line(struct text *t, bool raw)
{
	char c;

	while (input_read(0, &c, 1) == 1) {
		if (c == '\n')
			return true;
		if (c == '\\' && !raw) {
			if (input_read(0, &c, 1) != 1)
				break;
			if (c == '\n')
				continue;
		}
		if (c != '\0')
			text_putc(t, c);
	}
	return false;
}

/* Deals the words of a line out to variables, the last one gets the rest. */
static void
assign_words(char *line, int count, char **names)
{
	for (int i = 0; i < count; i++) {
		char *end;

		line += strspn(line, " \t");
		if (i == count - 1) {
			for (end = line + strlen(line);
			     end > line && isblank((unsigned char)end[-1]);)
				end--;
		} else {
			end = line + strcspn(line, " \t");
		}
		var_set(names[i], arena_strndup(line, (size_t)(end - line)));
		line = end;
	}
}

static int
run_read(int argc, char **argv)
{
	static char *reply[] = {"REPLY"};
	struct text t = {0};
	bool raw = false, whole;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "-r") == 0)
			raw = true;
		else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc)
			fputs(argv[++i], stderr);
		else
			return usage_error("read [-r] [-p PROMPT] [NAME]...");
	}
	for (int n = i; n < argc; n++) {
		if (!var_is_name(argv[n], strlen(argv[n]))) {
			sh_error("read: found \"%s\", expected a variable's name", argv[n]);
			return 2;
		}
	}
	tty_set(TTY_COOKED);
	whole = read_line(&t, raw);
	tty_set(TTY_RAW);
	assign_words(t.s != NULL ? t.s : "", i < argc ? argc - i : 1, i < argc ? argv + i : reply);
	return whole ? 0 : 1;
}

static int
run_eval(int argc, char **argv)
{
	struct text t = {0};
	int status;

	for (int i = 1; i < argc; i++) {
		text_puts(&t, argv[i]);
		text_putc(&t, i + 1 < argc ? ' ' : '\n');
	}
	if (t.s == NULL)
		return 0;
	if (!call_enter("eval"))
		return 1;
	status = exec_text("eval", t.s);
	sh.call_depth--;
	return status;
}

static int
run_source(int argc, char **argv)
{
	int status;

	if (argc != 2)
		return usage_error(". FILE");
	if (!call_enter(argv[1])) /* so that return is fine in it */
		return 1;
	status = exec_file(argv[1]);
	sh.call_depth--;
	if (sh.unwind == U_RETURN)
		sh.unwind = U_NONE;
	return status;
}

static int
run_exec(int argc, char **argv)
{
	int status;

	if (argc == 1)
		return 0; /* its redirections stay */
	tty_set(TTY_COOKED);
	status = command_exec(argv + 1, var_environment());
	if (!sh.interactive)
		sh.unwind = U_EXIT;
	tty_set(TTY_RAW);
	return status;
}

static int
run_wait(int argc, char **argv)
{
	int status = 0;

	if (argc == 1)
		return job_wait_background(0);
	for (int i = 1; i < argc; i++) {
		int pid = parse_count("wait", argv[i], 1, INT_MAX);

		if (pid < 0)
			return 2;
		status = job_wait_background(pid);
	}
	return status;
}

static int
run_type(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++) {
		char *path;

		if (function_get(argv[i]) != NULL) {
			printf("%s is a function\n", argv[i]);
		} else if (builtin_find(argv[i]) != NULL) {
			printf("%s is a builtin\n", argv[i]);
		} else if ((path = command_find(argv[i])) != NULL) {
			printf("%s is %s\n", argv[i], path);
		} else {
			sh_error("type: %s: not found", argv[i]);
			status = 1;
		}
	}
	return status;
}

static int
run_help(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return usage_error("help");
	puts("Builtin commands (and the programs in /bin, each with --help):");
	for (const struct builtin *b = NULL; (b = builtin_next(b)) != NULL;)
		printf("  %s\n", b->help);
	puts("if while until for case ! time && || | & ; ( ) { } < > >> 2>&1 << work as in sh.");
	return 0;
}

static const struct builtin builtins[] = {
    {".", run_source, ". FILE                     run a file's commands in this shell"},
    {":", run_true, ":                          do nothing"},
    {"[", run_test, "[ EXPRESSION ]             test --help tells"},
    {"break", run_break, "break [N]                  leave N loops"},
    {"cd", run_cd, "cd [DIRECTORY]             - is the one before"},
    {"continue", run_continue, "continue [N]               next turn of the loop"},
    {"echo", run_echo, "echo [-n] [TEXT]...        print"},
    {"eval", run_eval, "eval [TEXT]...             run the text as commands"},
    {"exec", run_exec, "exec [COMMAND]             become the command, or keep redirections"},
    {"exit", run_exit, "exit [STATUS]              leave the shell"},
    {"export", run_export, "export [NAME[=VALUE]]...   pass variables on to commands"},
    {"false", run_false, "false                      fail"},
    {"help", run_help, "help                       this list"},
    {"pwd", run_pwd, "pwd                        where we are"},
    {"read", run_read, "read [-r] [-p TEXT] NAME.. read a line into variables"},
    {"return", run_return, "return [STATUS]            leave a function"},
    {"set", run_set, "set [-eux] [--] [ARG]...   options, and $1..."},
    {"shift", run_shift, "shift [N]                  drop the first arguments"},
    {"source", run_source, "source FILE                the same as ."},
    {"test", run_test, "test EXPRESSION            test --help tells"},
    {"true", run_true, "true                       succeed"},
    {"type", run_type, "type NAME...               what a command is"},
    {"unset", run_unset, "unset [-f] NAME...         forget variables or functions"},
    {"wait", run_wait, "wait [PID]...              for background commands"},
};

#define BUILTIN_COUNT (sizeof(builtins) / sizeof(builtins[0]))

const struct builtin *
builtin_next(const struct builtin *b)
{
	if (b == NULL)
		return builtins;
	return b + 1 < builtins + BUILTIN_COUNT ? b + 1 : NULL;
}

const struct builtin *
builtin_find(const char *name)
{
	for (const struct builtin *b = NULL; (b = builtin_next(b)) != NULL;) {
		if (strcmp(b->name, name) == 0)
			return b;
	}
	return NULL;
}
