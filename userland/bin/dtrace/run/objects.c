/*
 * objects.c - the libraries of a process: those that it maps, or that it will map. The dynamic
 * linker of a program says which it begins with; dtrace asks before the program runs.
 */
#include "userland/bin/dtrace/run/run.h"

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktr/glob.h"
#include "userland/bin/dtrace/files.h"

static struct object **
object_add(struct object **last, const char *path, struct object o)
{
	size_t size = strlen(path) + 1;

	*last = malloc(sizeof(o) + size);
	if (*last == NULL)
		err(1, "memory");
	**last = o;
	(*last)->path = memcpy(*last + 1, path, size);
	return &(*last)->next;
}

void
object_free(struct object *list)
{
	for (struct object *next; list != NULL; list = next) {
		next = list->next;
		free(list);
	}
}

static bool
is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

struct object *
object_mapped(uint32_t pid, const char *program)
{
	struct object *list = NULL, **last = &list;
	char exe[32], maps[32], *text, *rest, *line;

	snprintf(exe, sizeof(exe), "/proc/%u/exe", pid);
	snprintf(maps, sizeof(maps), "/proc/%u/maps", pid);
	if (!is_same_file(exe, program))
		return NULL;
	rest = text = file_read_text(maps);
	while ((line = strsep(&rest, "\n")) != NULL) {
		unsigned long start, end, offset;
		int path = 0;
		char x;

		if (sscanf(line, "%lx-%lx %*c%*c%c%*c %lx %*s %*s %n", &start, &end, &x, &offset,
			   &path) == 4 &&
		    x == 'x' && line[path] == '/' && !is_same_file(line + path, program))
			last = object_add(last, line + path,
					  (struct object){NULL, NULL, start, end, offset});
	}
	free(text);
	return list;
}

/* A line like "\tlibc.so.6 => /lib/libc.so.6 (0x00007ffff7a00000)", or without the arrow. */
static struct object **
add_line(struct object **last, char *line)
{
	char *path = strstr(line, " => "), *end = strstr(line, " (0x");

	path = path != NULL ? path + 4 : line + strspn(line, "\t ");
	if (end == NULL || end < path || memchr(path, '/', (size_t)(end - path)) == NULL)
		return last;
	path = realpath(dt_strndup(path, (size_t)(end - path)), NULL);
	if (path != NULL) /* it has not gone since */
		last = object_add(last, path, (struct object){0});
	free(path);
	return last;
}

struct object *
object_needed(const char *program)
{
	static const char *asked; /* often it is asked again */
	static struct object *list;
	const char *linker = usymbol_linker(program);
	struct object **last = &list;
	size_t room = 0;
	char *line = NULL;
	int fds[2];
	pid_t child;
	FILE *in;

	if (linker == NULL || (asked != NULL && strcmp(asked, program) == 0))
		return linker != NULL ? list : NULL;
	list = NULL;
	asked = dt_format("%s", program);
	if (pipe2(fds, O_CLOEXEC) < 0 || (child = fork()) < 0)
		err(1, "%s", linker);
	if (child == 0) {
		dup2(fds[1], 1);
		execl(linker, linker, "--list", program, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	in = fdopen(fds[0], "r");
	while (in != NULL && getline(&line, &room, in) > 0)
		last = add_line(last, line);
	if (in != NULL)
		fclose(in);
	free(line);
	waitpid(child, NULL, 0);
	return list;
}

bool
object_is_called(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
	size_t n = strlen(name);

	return n == 0 || ktr_glob(name, base) ||
	       (strncmp(name, base, n) == 0 && (base[n] == '.' || base[n] == '-'));
}

/* A file of a folder that is called so. */
static const char *
find_in(const char *folder, const char *name)
{
	const char *found = NULL;
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d != NULL && found == NULL && (e = readdir(d)) != NULL)
		if (strstr(e->d_name, ".so") != NULL && object_is_called(e->d_name, name))
			found = realpath(dt_format("%s/%s", folder, e->d_name), NULL);
	if (d != NULL)
		closedir(d);
	return found;
}

struct object *
object_later(const struct object *list, const char *name)
{
	const char *folders = getenv("LD_LIBRARY_PATH"), *folder, *found = NULL;
	struct object *later = NULL;
	char *rest;

	folders = dt_format("%s:/lib:/usr/lib:/lib64:/usr/lib64", folders != NULL ? folders : "");
	for (; list != NULL; list = list->next)
		folders = dt_format("%.*s:%s", (int)(strrchr(list->path, '/') - list->path),
				    list->path, folders);
	for (rest = dt_format("%s", folders); found == NULL && rest != NULL;) {
		folder = strsep(&rest, ":");
		found = *folder != '\0' ? find_in(folder, name) : NULL;
	}
	if (found != NULL)
		object_add(&later, found, (struct object){0});
	return later;
}
