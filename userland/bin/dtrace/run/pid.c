/*
 * pid.c - the provider pid: probes in functions of a process, which are made when they are named.
 * The functions are those of the program and of its libraries, by their symbols or those that they
 * export. A probe is in a file, so it may be made before the process has mapped that.
 */
#include "userland/bin/dtrace/read/read.h"
#include "userland/bin/dtrace/run/run.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/glob.h"
#include "userland/bin/dtrace/check/check.h"

/* What a description asks for. */
struct wanted {
	struct place at;
	const char *full;
	struct dif_probe name;
	struct dif_pid pid;
	bool exact;               /* it names one function */
	unsigned files;           /* that were looked at */
	struct probe_spec *names; /* of the probes that were made */
};

/*
 * Notes what the probe is called that has just been made: its module and its function may have got
 * another name than that of the description, and another one in each file.
 */
static void
note_name(struct wanted *w)
{
	bool one = w->name.module[0] != '\0' && strpbrk(w->name.module, "*?[") == NULL;
	char *text =
	    dt_format("%s:%s:%s:%s", w->name.provider, one ? w->pid.module : w->name.module,
		      w->exact ? w->pid.function : w->name.function, w->name.name);
	struct probe_spec **last = &w->names;

	while (*last != NULL && strcmp((*last)->text, text) != 0)
		last = &(*last)->next;
	if (*last != NULL)
		return;
	*last = dt_alloc(sizeof(**last));
	**last = (struct probe_spec){NULL, w->at, text};
}

static bool
make(struct wanted *w, uint32_t kind, uint64_t start, uint64_t offset, const char *function,
     const char *name)
{
	w->pid.kind = kind;
	w->pid.start = start;
	w->pid.offset = start + offset;
	snprintf(w->pid.function, sizeof(w->pid.function), "%.127s", function);
	snprintf(w->pid.name, sizeof(w->pid.name), "%.31s", name);
	if (consume_pid(&w->pid)) {
		note_name(w);
		return true;
	}
	if (errno == EINVAL && !w->exact)
		return false; /* no probe can be there */
	dt_error(w->at, "D_PROC_CREATEFAIL", "%s: failed to create probe in process %u: %s",
		 w->full, w->pid.pid, w->pid.error[0] != '\0' ? w->pid.error : strerror(errno));
}

/* Reads the number in a name like 1f. False: it is none. */
static bool
is_offset(const char *name, uint64_t *offset)
{
	char *end;

	if (!isxdigit((unsigned char)*name))
		return false;
	*offset = strtoull(name, &end, 16);
	return *end == '\0';
}

static bool
wants(const struct wanted *w, const char *name)
{
	return w->name.name[0] == '\0' || ktr_glob(w->name.name, name);
}

static void
function(const struct usymbol *s, void *arg)
{
	struct wanted *w = arg;
	const char *name = w->exact ? s->called : s->name;
	uint64_t offset;

	if (is_offset(w->name.name, &offset)) {
		if (offset >= s->size && s->size != 0)
			dt_error(w->at, "D_PROC_OFF", "%s: %s has %lu bytes", w->full, name,
				 (unsigned long)s->size);
		make(w, DIF_PID_OFFSET, s->offset, offset, name, w->name.name);
		return;
	}
	if (wants(w, "entry") && !make(w, DIF_PID_ENTRY, s->offset, 0, name, "entry"))
		return;
	if (wants(w, "return"))
		make(w, DIF_PID_RETURN, s->offset, 0, name, "return");
}

/* Makes the probes in one file. */
static void
file_probes(struct wanted *w, const char *path)
{
	const char *base = strrchr(path, '/');
	uint64_t offset;

	w->files++;
	snprintf(w->pid.path, sizeof(w->pid.path), "%s", path);
	snprintf(w->pid.module, sizeof(w->pid.module), "%.63s",
		 strcmp(w->name.module, "a.out") == 0 ? "a.out"
		 : base != NULL                       ? base + 1
						      : path);
	if (strcmp(w->name.function, "-") != 0)
		return usymbol_each(path, w->name.function, function, w);
	if (!is_offset(w->name.name, &offset) || !usymbol_offset(path, &offset))
		dt_error(w->at, "D_PROC_NAME", "%s: expected an address of the code of %s", w->full,
			 w->pid.module);
	make(w, DIF_PID_OFFSET, offset, 0, "-", w->name.name);
}

struct probe_spec *
pid_probes(struct probe_spec *spec, const char *command)
{
	struct place at = spec->at;
	const char *full = spec->text;
	struct wanted w = {.at = at, .full = full, .exact = true};
	struct probe_spec *next = spec->next;
	struct object program = {0}, *o;
	uint64_t offset;
	char *end;
	bool any = false;

	probe_split(full, &w.name);
	if (strncmp(w.name.provider, "pid", 3) != 0 || !isdigit((unsigned char)w.name.provider[3]))
		return spec;
	w.pid.pid = (uint32_t)strtoul(w.name.provider + 3, &end, 10);
	if (*end != '\0')
		dt_error(at, "D_PROC_BADPROV", "%s: expected pid and the number of a process",
			 full);
	if (dt_recorded)
		dt_error(at, "D_RECORDED", "%s: what a program calls is not in a recorded trace",
			 full);
	w.pid.kind = DIF_PID_PROGRAM;
	if (command != NULL && w.pid.pid == dt_macros.target)
		program.path = command;
	else if (!consume_pid(&w.pid))
		dt_error(at, w.pid.pid == 0 ? "D_PROC_BADPID" : "D_PROC_GRAB",
			 "%s: failed to grab process %u: %s", full, w.pid.pid, strerror(errno));
	else
		program.path = dt_format("%s", w.pid.path);
	if (strcmp(w.name.function, "-") != 0) {
		w.exact = w.name.function[0] != '\0' && strpbrk(w.name.function, "*?[") == NULL;
		if (!wants(&w, "entry") && !wants(&w, "return") && !is_offset(w.name.name, &offset))
			dt_error(at, "D_PROC_NAME", "%s: expected entry, return or an offset",
				 full);
	}
	if (strcmp(w.name.module, "a.out") != 0)
		program.next = program.path == command ? object_needed(program.path)
						       : object_mapped(w.pid.pid, program.path);
	for (o = &program; o != NULL; o = o->next)
		if (strcmp(w.name.module, "a.out") == 0 ||
		    object_is_called(o->path, w.name.module)) {
			file_probes(&w, o->path);
			any = true;
		}
	o = any || usymbol_linker(program.path) == NULL ? NULL
							: object_later(&program, w.name.module);
	if (o != NULL)
		file_probes(&w, o->path);
	else if (!any)
		dt_error(at, strcmp(w.name.function, "-") == 0 ? "D_PROC_LIB" : "D_PDESC_ZERO",
			 "%s: neither %s nor a library of it is called %s", full, program.path,
			 w.name.module);
	if (w.names == NULL)
		dt_error(at, "D_PROC_FUNC", "%s: no function of %s%s matches", full,
			 w.files == 1 ? w.pid.path : program.path,
			 w.files == 1 ? "" : " or its libraries");
	probe_forget();
	for (*spec = *w.names; spec->next != NULL;)
		spec = spec->next;
	spec->next = next;
	return spec;
}
