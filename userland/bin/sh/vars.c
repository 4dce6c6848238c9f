/*
 * vars.c - variables and functions: two lists, since a shell has few of either.
 *
 * The environment is imported at the start; what is exported goes to each command.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/sh/sh.h"

struct var {
	struct var *next;
	char *value; /* NULL: exported, but not set */
	bool exported;
	char name[];
};

struct function {
	struct function *next;
	struct node *body; /* in an arena that is kept */
	char name[];
};

static struct var *vars;
static struct function *functions;

bool
var_is_name(const char *s, size_t len)
{
	if (len == 0 || isdigit((unsigned char)*s))
		return false;
	for (; len > 0; len--, s++) {
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	}
	return true;
}

size_t
var_assign_length(const char *word)
{
	size_t len = strcspn(word, "=");

	return word[len] == '=' && var_is_name(word, len) ? len : 0;
}

static struct var *
var_find(const char *name, bool make)
{
	struct var *v;
	size_t len;

	for (v = vars; v != NULL; v = v->next) {
		if (strcmp(v->name, name) == 0)
			return v;
	}
	if (!make)
		return NULL;
	len = strlen(name) + 1;
	v = sh_malloc(sizeof(*v) + len);
	*v = (struct var){.next = vars};
	memcpy(v->name, name, len);
	vars = v;
	return v;
}

const char *
var_get(const char *name)
{
	struct var *v = var_find(name, false);

	return v != NULL ? v->value : NULL;
}

void
var_set(const char *name, const char *value)
{
	struct var *v = var_find(name, true);
	char *copy = sh_strdup(value); /* first: value may be what v holds */

	free(v->value);
	v->value = copy;
}

void
var_export(const char *name)
{
	var_find(name, true)->exported = true;
}

void
var_unset(const char *name)
{
	for (struct var **link = &vars, *v; (v = *link) != NULL; link = &v->next) {
		if (strcmp(v->name, name) == 0) {
			*link = v->next;
			free(v->value);
			free(v);
			return;
		}
	}
}

void
var_import(char **env)
{
	for (; *env != NULL; env++) {
		size_t len = var_assign_length(*env);
		char *name;

		if (len == 0)
			continue;
		name = sh_strdup(*env);
		name[len] = '\0';
		var_set(name, *env + len + 1);
		var_export(name);
		free(name);
	}
}

char **
var_environment(void)
{
	struct argv env = {0};

	env.v = arena_alloc(sizeof(*env.v));
	env.v[0] = NULL;
	for (struct var *v = vars; v != NULL; v = v->next) {
		if (v->exported && v->value != NULL)
			argv_add(&env, arena_printf("%s=%s", v->name, v->value));
	}
	return env.v;
}

void
var_complete(const char *prefix, struct argv *out)
{
	for (const struct var *v = vars; v != NULL; v = v->next) {
		if (strncmp(v->name, prefix, strlen(prefix)) == 0)
			argv_add(out, arena_printf("$%s", v->name));
	}
}

void
var_print_exported(void)
{
	for (struct var *v = vars; v != NULL; v = v->next) {
		if (v->exported && v->value != NULL)
			printf("export %s='%s'\n", v->name, v->value);
	}
}

struct node *
function_get(const char *name)
{
	for (struct function *f = functions; f != NULL; f = f->next) {
		if (strcmp(f->name, name) == 0)
			return f->body;
	}
	return NULL;
}

void
function_set(const char *name, struct node *body)
{
	size_t len = strlen(name) + 1;
	struct function *f;

	function_unset(name);
	f = sh_malloc(sizeof(*f) + len);
	*f = (struct function){.next = functions, .body = body};
	memcpy(f->name, name, len);
	functions = f;
}

void
function_unset(const char *name)
{
	for (struct function **link = &functions, *f; (f = *link) != NULL; link = &f->next) {
		if (strcmp(f->name, name) == 0) {
			*link = f->next;
			free(f);
			return;
		}
	}
}
