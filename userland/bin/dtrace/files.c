/*
 * files.c - files that dtrace reads.
 */
#include "userland/bin/dtrace/files.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/bin/dtrace/dt.h"
#include "userland/lib/array.h"

#define MAX_SIZE (64u << 20)

#ifndef __kestrel__ /* the host */
static const char *const places[] = {[FILE_BTF] = "%s/../%s/kestrel.btf",
				     [FILE_SYMBOLS] = "%s/../%s/kestrel.ksyms",
				     [FILE_VARIABLES] = "%s/../%s/kestrel.vars",
				     [FILE_LIBRARY] = "%s/../../userland/root/usr/lib/dtrace",
				     [FILE_MACHINE] = "%s/../../arch/%s",
				     [FILE_ANONYMOUS] = NULL};
static const char *folder = ".";
#else
static const char *const places[] = {[FILE_BTF] = "/boot/kestrel.btf",
				     [FILE_SYMBOLS] = "/dev/ksyms",
				     [FILE_VARIABLES] = "/boot/kestrel.vars",
				     [FILE_LIBRARY] = "/usr/lib/dtrace",
				     [FILE_MACHINE] = NULL,
				     [FILE_ANONYMOUS] = ANONYMOUS_PATH};
#endif

void
file_init(const char *program)
{
#ifndef __kestrel__
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
	const char *slash;

	if (n <= 0 ||
	    n == (ssize_t)sizeof(path)) /* how it was called says less: by PATH, by a link */
		n = snprintf(path, sizeof(path), "%s", program);
	path[n < (ssize_t)sizeof(path) ? n : (ssize_t)sizeof(path) - 1] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL)
		folder = dt_strndup(path, (size_t)(slash - path));
#else
#endif
}

const char *
file_default(enum file file)
{
#ifndef __kestrel__
	const char *arch = getenv("KESTREL_ARCH");
	const char *left, *right;

	if (places[file] == NULL)
		return NULL;
	left = strstr(places[file], "%s") + 2;
	right = strstr(left, "%s");
	if (right == NULL)
		return dt_format("%s%s", folder, left);
	return dt_format("%s%.*s%s%s", folder, (int)(right - left), left,
			 arch != NULL ? arch : "x86_64", right + 2);
#else
	return places[file];
#endif
}

static void *
read_all(int fd, size_t *size)
{
	size_t room = 65536;
	char *data = malloc(room + 1), *larger;
	ssize_t n;

	for (*size = 0; data != NULL; *size += (size_t)n) {
		n = read(fd, data + *size, room - *size);
		if (n == 0) {
			data[*size] = '\0';
			return data;
		}
		if (n < 0 || room > MAX_SIZE) { /* as /dev/zero */
			errno = n < 0 ? errno : EFBIG;
			break;
		}
		if (*size + (size_t)n == room) {
			room *= 2;
			larger = realloc(data, room + 1);
			if (larger == NULL)
				break;
			data = larger;
		}
	}
	if (data == NULL)
		err(1, "memory");
	free(data);
	return NULL;
}

void *
file_read(const char *path, size_t *size)
{
	int fd = strcmp(path, "-") == 0 ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	void *data = fd >= 0 ? read_all(fd, size) : NULL;

	if (fd > 0)
		close(fd);
	return data;
}

char *
file_read_text(const char *path)
{
	size_t size;

	return file_read(path, &size);
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
file_each(const char *path, void (*f)(const char *text, const char *path))
{
	DIR *d = opendir(path);
	char **names = NULL;
	size_t count = 0;
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		size_t size = strlen(e->d_name);

		if (size <= 2 || strcmp(e->d_name + size - 2, ".d") != 0)
			continue;
		ARRAY_ADD(names, count, dt_format("%s/%s", path, e->d_name));
	}
	if (d != NULL)
		closedir(d);
	if (count > 0)
		qsort(names, count, sizeof(*names), compare);
	for (size_t i = 0; i < count; i++) {
		const char *text = file_read_text(names[i]);

		if (text == NULL)
			err(1, "%s", names[i]);
		f(text, names[i]);
	}
	free(names);
}
