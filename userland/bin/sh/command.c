/*
 * command.c - simple commands: finds what a name stands for, a function, a builtin or a program,
 * and runs it with its redirections and assignments.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

char *
command_find(const char *name)
{
	const char *path = var_get("PATH");
	struct stat st;

	if (strchr(name, '/') != NULL)
		return access(name, X_OK) == 0 ? arena_strndup(name, strlen(name)) : NULL;
	for (path = path != NULL ? path : "/bin"; *path != '\0';) {
		size_t len = strcspn(path, ":");
		char *full = arena_printf("%.*s/%s", (int)len, len > 0 ? path : ".", name);

		if (stat(full, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0)
			return full;
		path += len + (path[len] == ':');
	}
	return NULL;
}

int
command_exec(char **argv, char **env)
{
	const char *path = strchr(argv[0], '/') != NULL ? argv[0] : command_find(argv[0]);

	if (path == NULL) {
		sh_error("%s: not found", argv[0]);
		return 127;
	}
	execve(path, argv, env);
	if (errno == ENOEXEC) { /* a script */
		struct argv script = {0};

		argv_add(&script, "sh");
		argv_add(&script, (char *)path);
		for (char **a = argv + 1; *a != NULL; a++)
			argv_add(&script, *a);
		execve("/bin/sh", script.v, env);
	}
	sh_error("%s: %s", argv[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

static bool
assign(const char *word, bool export)
{
	size_t len = var_assign_length(word);
	char *name = arena_strndup(word, len), *value = expand_text(word + len + 1);

	if (value == NULL)
		return false;
	var_set(name, value);
	if (export)
		var_export(name);
	return true;
}

static void
trace(const struct node *n, const struct argv *argv)
{
	fflush(stdout);
	fputc('+', stderr);
	for (struct word *w = n->assigns; w != NULL; w = w->next)
		fprintf(stderr, " %s", w->text);
	for (int i = 0; i < argv->count; i++)
		fprintf(stderr, " %s", argv->v[i]);
	fputc('\n', stderr);
}

/* Redirections and assignments without a command. */
static int
run_assigns(struct node *n)
{
	struct saved_fds saved = {0};
	bool ok = redir_apply(n->redirs, &saved);

	redir_restore(&saved);
	for (struct word *w = n->assigns; w != NULL && ok; w = w->next)
		ok = assign(w->text, false);
	if (!ok)
		return 1;
	return sh.subst_status >= 0 ? sh.subst_status : 0;
}

bool
call_enter(const char *name)
{
	if (sh.call_depth == CALL_DEPTH_MAX) {
		sh_error("%s: found more than %d calls within calls", name, CALL_DEPTH_MAX);
		return false;
	}
	sh.call_depth++;
	return true;
}

static int
call_function(struct node *body, struct argv *argv)
{
	char **args = sh.args;
	int arg_count = sh.arg_count, loops = sh.loop_depth, status;

	if (!call_enter(argv->v[0]))
		return 1;
	sh.args = argv->v + 1;
	sh.arg_count = argv->count - 1;
	sh.loop_depth = 0;
	status = exec_node(body, false);
	if (sh.unwind == U_RETURN)
		sh.unwind = U_NONE;
	sh.call_depth--;
	sh.loop_depth = loops;
	sh.args = args;
	sh.arg_count = arg_count;
	return status;
}

static int
run_builtin(const struct builtin *b, struct argv *argv)
{
	int status = b->run(argv->count, argv->v);

	if (fflush(stdout) != 0 || ferror(stdout)) {
		clearerr(stdout);
		sh_error("%s: write: %s", b->name, strerror(errno));
		return 1;
	}
	return status;
}

/* A builtin or a function: in this process, with redirections and assignments for as long as it
 * runs. */
static int
run_inside(struct node *n, struct argv *argv, const struct builtin *b, struct node *body)
{
	/* exec's redirections stay. */
	bool stay = b != NULL && strcmp(b->name, "exec") == 0;
	struct saved_fds saved = {0};
	struct argv names = {0}, values = {0};
	int status = 1;
	bool ok = redir_apply(n->redirs, stay ? NULL : &saved);

	for (struct word *w = n->assigns; w != NULL && ok; w = w->next) {
		char *name = arena_strndup(w->text, var_assign_length(w->text));
		const char *old = var_get(name);

		argv_add(&names, name);
		argv_add(&values, old != NULL ? arena_strndup(old, strlen(old)) : NULL);
		ok = assign(w->text, stay);
	}
	if (ok)
		status = body != NULL ? call_function(body, argv) : run_builtin(b, argv);
	for (int i = names.count - 1; i >= 0; i--) {
		if (values.v[i] != NULL)
			var_set(names.v[i], values.v[i]);
		else
			var_unset(names.v[i]);
	}
	fflush(stdout);
	redir_restore(&saved);
	return status;
}

static int
run_outside(struct node *n, struct argv *argv, bool in_child)
{
	struct job job = {0};

	if (!in_child) {
		pid_t pid = job_fork(&job);

		if (pid < 0)
			return 1;
		if (pid > 0)
			return job_wait(&job);
	}
	if (!redir_apply(n->redirs, NULL))
		exit(1);
	for (struct word *w = n->assigns; w != NULL; w = w->next) {
		if (!assign(w->text, true))
			exit(1);
	}
	exit(command_exec(argv->v, var_environment()));
}

int
command_run(struct node *n, bool in_child)
{
	struct argv argv = {0};
	const struct builtin *b;
	struct node *body;

	sh.line = n->line;
	sh.subst_status = -1;
	if (!expand_words(n->words, &argv))
		return 1;
	if (sh.trace)
		trace(n, &argv);
	if (argv.count == 0)
		return run_assigns(n);
	body = function_get(argv.v[0]);
	b = body == NULL ? builtin_find(argv.v[0]) : NULL;
	if (body != NULL || b != NULL)
		return run_inside(n, &argv, b, body);
	return run_outside(n, &argv, in_child);
}
