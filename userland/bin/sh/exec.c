/*
 * exec.c - runs the tree: pipelines, lists, loops and conditions, down to simple commands.
 *
 * break, continue, return, exit and ^C set sh.unwind; every step looks at it and returns, until
 * whoever it is meant for clears it.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

static int
exec_pipe(struct node *n)
{
	struct job job = {0};
	int in = -1, fds[2];

	for (struct node *c = n->a; c != NULL; c = c->next) {
		pid_t pid;

		fds[0] = fds[1] = -1;
		if (c->next != NULL && pipe2(fds, O_CLOEXEC) < 0) {
			sh_error("pipe: %s", strerror(errno));
			break;
		}
		pid = job_fork(&job);
		if (pid == 0) {
			if (in >= 0)
				dup2(in, 0);
			if (fds[1] >= 0)
				dup2(fds[1], 1);
			close(in);
			close(fds[0]);
			close(fds[1]);
			exit(exec_node(c, true));
		}
		if (in >= 0)
			close(in);
		if (fds[1] >= 0)
			close(fds[1]);
		in = fds[0];
		if (pid < 0)
			break;
	}
	if (in >= 0)
		close(in);
	return job.count > 0 ? job_wait(&job) : 1;
}

static int
exec_background(struct node *n)
{
	struct job job = {.background = true};
	pid_t pid = job_fork(&job);

	if (pid < 0)
		return 1;
	if (pid == 0)
		exit(exec_node(n->a, true));
	sh.last_background = pid;
	job_remember(pid);
	if (sh.interactive)
		fprintf(stderr, "[%d]\n", pid);
	return 0;
}

static int
exec_subshell(struct node *n, bool in_child)
{
	struct job job = {0};
	pid_t pid = in_child ? 0 : job_fork(&job);

	if (pid < 0)
		return 1;
	if (pid > 0)
		return job_wait(&job);
	exit(exec_node(n->a, true));
}

static int
exec_condition(struct node *n)
{
	int status;

	sh.condition++;
	status = exec_node(n, false);
	sh.condition--;
	return status;
}

/* After a turn of a loop: is it to go on? */
static bool
loop_goes_on(void)
{
	if (job_interrupted())
		return false;
	if (sh.unwind == U_NONE)
		return true;
	if (sh.unwind != U_BREAK && sh.unwind != U_CONTINUE)
		return false;
	if (--sh.unwind_levels > 0)
		return false; /* it is meant for a loop further out */
	if (sh.unwind == U_CONTINUE) {
		sh.unwind = U_NONE;
		return true;
	}
	sh.unwind = U_NONE;
	return false;
}

static int
exec_while(struct node *n)
{
	int status = 0;
	bool go_on = true;

	sh.loop_depth++;
	while (go_on) {
		bool yes = exec_condition(n->a) == 0;

		if (sh.unwind == U_NONE) {
			if (yes != (n->type == N_WHILE))
				break;
			status = exec_node(n->b, false);
		}
		go_on = loop_goes_on();
	}
	sh.loop_depth--;
	return status;
}

static int
exec_for(struct node *n)
{
	struct argv fields = {0};
	int status = 0, count;
	char **values;

	if (n->has_in && !expand_words(n->words, &fields))
		return 1;
	values = n->has_in ? fields.v : sh.args;
	count = n->has_in ? fields.count : sh.arg_count;
	sh.loop_depth++;
	for (int i = 0; i < count; i++) {
		var_set(n->name, values[i]);
		status = exec_node(n->b, false);
		if (!loop_goes_on())
			break;
	}
	sh.loop_depth--;
	return status;
}

static int
exec_case(struct node *n)
{
	char *value = expand_text(n->words->text);

	if (value == NULL)
		return 1;
	for (struct node *arm = n->a; arm != NULL; arm = arm->next) {
		for (struct word *w = arm->words; w != NULL; w = w->next) {
			char *pattern = expand_pattern(w->text);

			if (pattern == NULL)
				return 1;
			if (fnmatch(pattern, value, 0) == 0)
				return arm->a != NULL ? exec_node(arm->a, false) : 0;
		}
	}
	return 0;
}

static int
exec_time(struct node *n)
{
	struct timespec from, to;
	uint64_t us;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &from);
	status = exec_node(n->a, false);
	clock_gettime(CLOCK_MONOTONIC, &to);
	us = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000 + (uint64_t)(to.tv_nsec / 1000) -
	     (uint64_t)(from.tv_nsec / 1000);
	fprintf(stderr, "real %lu.%06lu s\n", us / 1000000, us % 1000000);
	return status;
}

static int
exec_if(struct node *n)
{
	int status = exec_condition(n->a);

	if (sh.unwind != U_NONE)
		return status;
	if (status == 0)
		return exec_node(n->b, false);
	return n->c != NULL ? exec_node(n->c, false) : 0;
}

static int
exec_function_definition(struct node *n)
{
	arena_keep(); /* the body lies in it */
	function_set(n->name, n->a);
	return 0;
}

static int
exec_list(struct node *n, bool in_child)
{
	int status = 0;

	for (; n != NULL && sh.unwind == U_NONE; n = n->b)
		status = exec_node(n->a, in_child && n->b == NULL);
	return status;
}

static int
exec_compound(struct node *n, bool in_child)
{
	int status;

	switch (n->type) {
	case N_PIPE:
		return exec_pipe(n);
	case N_NOT:
		return exec_condition(n->a) == 0;
	case N_TIME:
		return exec_time(n);
	case N_AND:
	case N_OR:
		status = exec_condition(n->a);
		if (sh.unwind != U_NONE || (status == 0) != (n->type == N_AND))
			return status;
		return exec_node(n->b, in_child);
	case N_SEQ:
		return exec_list(n, in_child);
	case N_BACKGROUND:
		return exec_background(n);
	case N_SUBSHELL:
		return exec_subshell(n, in_child);
	case N_GROUP:
		return exec_node(n->a, false);
	case N_IF:
		return exec_if(n);
	case N_WHILE:
	case N_UNTIL:
		return exec_while(n);
	case N_FOR:
		return exec_for(n);
	case N_CASE:
		return exec_case(n);
	default:
		return exec_function_definition(n);
	}
}

/* set -e: a command that fails ends the shell, unless someone looks at its status. */
static void
check_exit_on_error(const struct node *n)
{
	if (sh.exit_on_error && sh.condition == 0 && sh.status != 0 && sh.unwind == U_NONE &&
	    (n->type == N_SIMPLE || n->type == N_PIPE || n->type == N_SUBSHELL))
		sh.unwind = U_EXIT;
}

int
exec_node(struct node *n, bool in_child)
{
	struct arena_mark mark = arena_mark();
	struct saved_fds saved = {0};

	if (n->type == N_SIMPLE)
		sh.status = command_run(n, in_child);
	else if (n->redirs == NULL)
		sh.status = exec_compound(n, in_child);
	else if (redir_apply(n->redirs, &saved))
		sh.status = exec_compound(n, in_child);
	else
		sh.status = 1;
	if (saved.count > 0) {
		fflush(stdout);
		redir_restore(&saved);
	}
	check_exit_on_error(n);
	arena_release(mark);
	return sh.status;
}

int
exec_input(struct input *in)
{
	struct input *outer = sh.input;
	enum parse_result result = PARSE_EMPTY;
	struct lexer lx;

	sh.input = in;
	lex_start(&lx, in);
	while (result != PARSE_END && sh.unwind == U_NONE) {
		struct arena *a = arena_push();
		struct node *n;

		if (in->editor)
			job_report_ended();
		result = parse_line(&lx, &n);
		if (result == PARSE_COMMAND)
			exec_node(n, false);
		else if (result == PARSE_ERROR)
			sh.status = 2;
		arena_pop(a);
		if (in->editor && (sh.interrupted || sh.unwind == U_INTERRUPT)) {
			sh.interrupted = false;
			sh.unwind = U_NONE;
			sh.status = 130;
			result = PARSE_ERROR;
		}
		if (result == PARSE_ERROR && !in->editor)
			break;
		if (result == PARSE_ERROR)
			lex_start(&lx, in);
	}
	if (sh.unwind == U_EXIT && outer == NULL)
		sh.unwind = U_NONE;
	sh.input = outer;
	return in->failed ? 1 : sh.status;
}

int
exec_text(const char *name, const char *text)
{
	struct input in;
	int status;

	input_from_text(&in, name, text);
	status = exec_input(&in);
	input_close(&in);
	return status;
}

char *
exec_output(const char *text)
{
	struct job job = {0};
	struct text t = {0};
	char buf[512];
	int fds[2];
	ssize_t n;
	pid_t pid;
	bool control = sh.job_control;

	if (pipe(fds) < 0) {
		sh_error("pipe: %s", strerror(errno));
		return NULL;
	}
	tty_set(TTY_COOKED);
	sh.job_control = false; /* in the shell's own group: it reads what the command writes */
	pid = job_fork(&job);
	if (pid == 0) {
		close(fds[0]);
		dup2(fds[1], 1);
		if (fds[1] != 1)
			close(fds[1]);
		exit(exec_text(sh.input != NULL ? sh.input->name : "$(…)", text));
	}
	sh.job_control = control;
	close(fds[1]);
	while (pid > 0 && (n = input_read(fds[0], buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != '\0')
				text_putc(&t, buf[i]);
		}
	}
	close(fds[0]);
	if (pid > 0)
		sh.subst_status = job_wait(&job);
	tty_set(TTY_RAW);
	while (t.len > 0 && t.s[t.len - 1] == '\n')
		t.s[--t.len] = '\0';
	if (pid < 0)
		return NULL;
	return t.s != NULL ? t.s : arena_strndup("", 0);
}
