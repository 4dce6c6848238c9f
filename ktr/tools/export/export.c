/* export.c - the table of formats, and what their writers share. */
#include "ktr/tools/export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ktr/tools/memory.h"

#define OUTPUT_BYTES (256u * 1024)

static const struct export_format *const formats[] = {
    &export_chrome, &export_ctf,        &export_folded, &export_fxt,
    &export_html,   &export_schedgraph, &export_svg,    &export_tracedat,
};

const struct export_format *
export_nth(unsigned n)
{
	return n < sizeof(formats) / sizeof(formats[0]) ? formats[n] : NULL;
}

const struct export_format *
export_find(const char *name)
{
	for (unsigned n = 0; export_nth(n) != NULL; n++)
		if (strcmp(formats[n]->name, name) == 0)
			return formats[n];
	return NULL;
}

bool
export_file_failed(const struct export_file *file, char *err, size_t errlen)
{
	return export_fail(err, errlen, "%.200s: %s",
			   file->path[0] != '\0' ? file->path : "standard output", strerror(errno));
}

static bool
file_open(struct export_file *file, const char *path, char *err, size_t errlen)
{
	struct stat st;
	file->path[0] = file->temp[0] = '\0';
	file->f = stdout;
	if (path == NULL || strcmp(path, "-") == 0)
		return true;
	snprintf(file->path, sizeof(file->path), "%s", path);
	bool there = stat(path, &st) == 0;
	if (!there && errno != ENOENT)
		return export_file_failed(file, err, errlen);
	size_t n = strlen(path);
	if ((there && S_ISDIR(st.st_mode)) || (n > 0 && path[n - 1] == '/'))
		return export_fail(err, errlen, "%.200s: expected a file's name, not a directory's",
				   path);
	/* Devices and pipes are written directly, without a temporary file. */
	if (there && !S_ISREG(st.st_mode)) {
		file->f = fopen(path, "wb");
	} else {
		if (there && realpath(path, file->path) == NULL) /* a link stays one */
			return export_file_failed(file, err, errlen);
		file->f = export_temp_file(file->path, file->temp);
	}
	return file->f != NULL || export_file_failed(file, err, errlen);
}

FILE *
export_file_scratch(const struct export_file *file)
{
	if (file->temp[0] == '\0') /* standard output, or no plain file */
		return tmpfile();
	return export_temp_nameless(file->path);
}

void *
export_create(size_t size, const struct export_options *o, char *err, size_t errlen)
{
	struct export_file *file = calloc(1, size);
	if (file == NULL)
		return NULL;
	if (!file_open(file, o->path, err, errlen)) {
		free(file);
		return NULL;
	}
	file->buffer = malloc(OUTPUT_BYTES);
	if (file->buffer != NULL)
		setvbuf(file->f, file->buffer, _IOFBF, OUTPUT_BYTES);
	return file;
}

bool
export_file_close(struct export_file *file, bool complete, char *err, size_t errlen)
{
	bool written = ferror(file->f) == 0;
	if (file->f == stdout) { /* stdout keeps its buffer, to the end of the program */
		written = fflush(stdout) == 0 && written;
	} else {
		written = fclose(file->f) == 0 && written;
		free(file->buffer);
	}
	bool whole =
	    complete && written && (file->temp[0] == '\0' || export_temp_rename(file->path));
	if (complete && !whole)
		export_file_failed(file, err, errlen);
	if (file->temp[0] != '\0' && !whole)
		export_temp_remove();
	return whole;
}

/*
 * A later stream of the same file describes its sites again. Two descriptions that say the same are
 * one site.
 */
static bool
site_same(const struct ktr_decode_site *a, const struct ktr_decode_site *b)
{
	return a == b ||
	       (a->line == b->line && a->nargs == b->nargs && strcmp(a->fmt, b->fmt) == 0 &&
		strcmp(a->func, b->func) == 0 && strcmp(a->file, b->file) == 0);
}

/* Adds a class of zeros. NULL: there is no room. */
static struct export_class *
class_add(struct export_classes *c)
{
	if (c->count == EXPORT_CLASSES || !MEMORY_ROOM(c->all, c->room, c->count))
		return NULL;
	return &c->all[c->count++];
}

const struct export_class *
export_class_of(struct export_classes *c, const struct ktr_decode_event *e, size_t *number,
		bool *is_new)
{
	uint32_t *known = &c->by_number[e->site_number & 0xffff];
	*is_new = *known == 0 || !site_same(c->all[*known - 1].site, e->site);
	if (*is_new) {
		struct export_class *class = class_add(c);
		if (class == NULL)
			return NULL;
		class->site = e->site;
		ktr_params_scan(e->site->fmt, class->params, e->site->nargs);
		*known = (uint32_t)c->count;
	}
	*number = *known - 1;
	return &c->all[*number];
}

const struct export_class *
export_class_linux(struct export_classes *c, const struct linux_class *class, size_t *number,
		   bool *is_new)
{
	uintptr_t known = (uintptr_t)ktr_map_get(&c->of_linux, (uintptr_t) class);
	*is_new = known == 0;
	if (*is_new) {
		struct export_class *added = class_add(c);
		if (added == NULL)
			return NULL;
		added->of_linux = class;
		known = c->count;
		if (c->of_linux.realloc == NULL)
			c->of_linux = memory_map();
		if (!ktr_map_put(&c->of_linux, (uintptr_t) class, (void *)known))
			return NULL;
	}
	*number = known - 1;
	return &c->all[*number];
}

void
export_classes_free(struct export_classes *c)
{
	ktr_map_free(&c->of_linux);
	free(c->all);
}

const char *
export_string(const struct ktr_decode_event *e, unsigned i, char *buf)
{
	if (e->strings[i] != NULL)
		return e->strings[i];
	snprintf(buf, 32, e->args[i] == 0 ? "(null)" : "(bad 0x%" PRIx64 ")", e->args[i]);
	return buf;
}
