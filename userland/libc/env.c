/*
 * env.c - the environment.
 *
 * The kernel's block is used until the first change; then environ is an allocated array, whose
 * strings may be the kernel's or ours. Replaced strings are not freed: someone may hold what getenv
 * returned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **own_environ;

static char **
env_find(const char *name, size_t len)
{
	char **e;

	for (e = environ; *e != NULL; e++) {
		if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
			break;
	}
	return e;
}

char *
getenv(const char *name)
{
	size_t len = strlen(name);
	char **e = env_find(name, len);

	return *e != NULL ? *e + len + 1 : NULL;
}

static int
env_append(char *text)
{
	size_t n = 0;
	char **bigger;

	while (environ[n] != NULL)
		n++;
	bigger = realloc(own_environ, (n + 2) * sizeof(*bigger));
	if (bigger == NULL)
		return -1;
	if (own_environ == NULL)
		memcpy(bigger, environ, n * sizeof(*bigger));
	own_environ = environ = bigger;
	environ[n] = text;
	environ[n + 1] = NULL;
	return 0;
}

int
setenv(const char *name, const char *value, int overwrite)
{
	size_t len = strlen(name), vlen = strlen(value);
	char **e, *text;

	if (len == 0 || strchr(name, '=') != NULL) {
		errno = EINVAL;
		return -1;
	}
	e = env_find(name, len);
	if (*e != NULL && !overwrite)
		return 0;
	text = malloc(len + vlen + 2);
	if (text == NULL)
		return -1;
	memcpy(text, name, len);
	text[len] = '=';
	memcpy(text + len + 1, value, vlen + 1);
	if (*e != NULL) {
		*e = text;
		return 0;
	}
	return env_append(text);
}

int
unsetenv(const char *name)
{
	char **e = env_find(name, strlen(name));

	for (; *e != NULL; e++)
		e[0] = e[1];
	return 0;
}
