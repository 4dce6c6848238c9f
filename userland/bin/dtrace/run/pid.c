/*
 * pid.c - the provider pid: probes in functions of a process, which are made when they are named.
 * The functions are those of the program itself, by its symbols or those that it exports.
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
	bool exact; /* it names one function */
	unsigned made;
	uint64_t last; /* the offset of the function before */
};

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
		w->made++;
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
	uint64_t offset;

	if (w->name.function[0] != '\0' && !ktr_glob(w->name.function, s->name))
		return;
	if (!w->exact && s->offset == w->last) /* another name of the same */
		return;
	w->last = s->offset;
	if (is_offset(w->name.name, &offset)) {
		if (offset >= s->size && s->size != 0)
			dt_error(w->at, "D_PROC_OFF", "%s: %s has %lu bytes", w->full, s->name,
				 (unsigned long)s->size);
		make(w, DIF_PID_OFFSET, s->offset, offset, s->name, w->name.name);
		return;
	}
	if (wants(w, "entry") && !make(w, DIF_PID_ENTRY, s->offset, 0, s->name, "entry"))
		return;
	if (wants(w, "return"))
		make(w, DIF_PID_RETURN, s->offset, 0, s->name, "return");
}

void
pid_probes(struct place at, const char *full, const char *command)
{
	struct wanted w = {.at = at, .full = full, .last = UINT64_MAX};
	const char *base;
	uint64_t offset;
	char *end;

	probe_split(full, &w.name);
	if (strncmp(w.name.provider, "pid", 3) != 0 || !isdigit((unsigned char)w.name.provider[3]))
		return;
	w.pid.pid = (uint32_t)strtoul(w.name.provider + 3, &end, 10);
	if (*end != '\0')
		dt_error(at, "D_PROC_BADPROV", "%s: expected pid and the number of a process",
			 full);
	if (dt_recorded)
		dt_error(at, "D_RECORDED", "%s: what a program calls is not in a recorded trace",
			 full);
	w.pid.kind = DIF_PID_PROGRAM;
	if (command != NULL && w.pid.pid == dt_macros.target)
		snprintf(w.pid.path, sizeof(w.pid.path), "%s", command);
	else if (!consume_pid(&w.pid))
		dt_error(at, w.pid.pid == 0 ? "D_PROC_BADPID" : "D_PROC_GRAB",
			 "%s: failed to grab process %u: %s", full, w.pid.pid, strerror(errno));
	base = strrchr(w.pid.path, '/');
	snprintf(w.pid.module, sizeof(w.pid.module), "%.63s", base != NULL ? base + 1 : w.pid.path);
	if (w.name.module[0] != '\0' && strcmp(w.name.module, "a.out") != 0 &&
	    !ktr_glob(w.name.module, w.pid.module))
		dt_error(at, strcmp(w.name.function, "-") == 0 ? "D_PROC_LIB" : "D_PDESC_ZERO",
			 "%s: only the program itself, %s, has probes", full, w.pid.module);
	if (strcmp(w.name.module, "a.out") == 0)
		strcpy(w.pid.module, "a.out");
	if (strcmp(w.name.function, "-") == 0) { /* an address */
		w.exact = true;
		if (!is_offset(w.name.name, &offset) || !usymbol_offset(w.pid.path, &offset))
			dt_error(at, "D_PROC_NAME", "%s: expected an address of the program's code",
				 full);
		make(&w, DIF_PID_OFFSET, offset, 0, "-", w.name.name);
	} else {
		if (!wants(&w, "entry") && !wants(&w, "return") && !is_offset(w.name.name, &offset))
			dt_error(at, "D_PROC_NAME", "%s: expected entry, return or an offset",
				 full);
		w.exact = strpbrk(w.name.function, "*?[") == NULL && w.name.function[0] != '\0';
		usymbol_each(w.pid.path, function, &w);
		if (w.made == 0)
			dt_error(at, "D_PROC_FUNC", "%s: no function of %s matches", full,
				 w.pid.path);
	}
	probe_forget();
}
