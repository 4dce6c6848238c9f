/*
 * dtrace_hosted.c - /dev/dtrace on the host: linked with dtrace(1) and the program engine, it runs
 * D programs whose probes are BEGIN, END and ERROR. The linker sends open() and ioctl() here
 * (--wrap). One CPU; of the kernel there are the texts of the probes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/abi/dif.h"
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/host/host.h"
#include "ktr/hook.h"
#include "userland/bin/dtrace/check/check.h"

#define DEVICE 1000 /* a descriptor */

enum { BEGIN = DIF_PROBE_BEGIN, END = DIF_PROBE_END, ERROR = DIF_PROBE_ERROR, PROBES };

static const struct dif_probe probes[PROBES] = {
    [BEGIN] = {.id = BEGIN, .provider = "dtrace", .name = "BEGIN"},
    [END] = {.id = END, .provider = "dtrace", .name = "END"},
    [ERROR] = {.id = ERROR,
	       .provider = "dtrace",
	       .name = "ERROR",
	       .nargs = 5,
	       .types = {"uint32_t", "uint32_t", "uint32_t", "int", "uintptr_t"}},
};

static const char execname[4096] = "dtrace"; /* more than strings that programs read */
static struct dif d;
static struct ecb {
	struct dif_at at; /* first */
} * ecbs;
static uint32_t necbs;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
static void fire_error(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f);

/* Messages begin as those of dtrace(1). */
__attribute__((constructor)) static void
set_name(void)
{
	program_invocation_short_name = "dtrace";
}

int
__wrap_open(const char *path, int flags, ...)
{
	va_list list;
	int mode;

	va_start(list, flags);
	mode = va_arg(list, int);
	va_end(list);
	if (strcmp(path, "/dev/dtrace") != 0)
		return __real_open(path, flags, mode);
	dif_host.alloc_left = -1;
	dif_host.step = 1;
	dif_host.fault = fire_error;
	dif_host.builtin[DIF_B_PROGRAM] = 1ull << 32;
	dif_host.builtin[DIF_B_EXECNAME] = (uintptr_t)execname;
	dif_port_direct[0] = (struct dif_port_range){(uintptr_t)probes, sizeof(probes)};
	dif_port_direct[1] = (struct dif_port_range){(uintptr_t)execname, sizeof(execname)};
	return DEVICE;
}

static void
run(const struct dif_at *at, const struct ktr_firing *f)
{
	const struct dif_probe *p = &probes[at->probe];

	dif_host.builtin[DIF_B_PROBEPROV] = (uintptr_t)p->provider;
	dif_host.builtin[DIF_B_PROBEMOD] = (uintptr_t)p->module;
	dif_host.builtin[DIF_B_PROBEFUNC] = (uintptr_t)p->function;
	dif_host.builtin[DIF_B_PROBENAME] = (uintptr_t)p->name;
	d.cpu[0].fired++;
	dif_fire(at, &d.cpu[0], f);
}

/* Runs the clauses of a probe. */
static void
fire(uint32_t probe, const struct ktr_firing *f)
{
	for (uint32_t i = 0; i < necbs; i++)
		if (ecbs[i].at.probe == probe && (probe == END || d.cpu[0].limit != 0))
			run(&ecbs[i].at, f);
}

static void
fire_error(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	uint64_t args[DIF_ERROR_ARGS];
	struct ktr_firing error = *f;

	if (at->probe == ERROR)
		return;
	dif_error_args(&d, (unsigned)(c - d.cpu), at->clause, args);
	error.args = args;
	error.nargs = DIF_ERROR_ARGS;
	for (uint32_t i = 0; i < necbs; i++)
		if (ecbs[i].at.probe == ERROR)
			run(&ecbs[i].at, &error);
}

static bool
is_at(uint32_t clause, uint32_t probe)
{
	char *names = strdup(d.strings + d.clauses[clause].probes), *rest = names, *name;
	bool is = false;

	while ((name = strsep(&rest, ",")) != NULL)
		is |= probe_matches(name, &probes[probe]);
	free(names);
	return is;
}

static int
request_load(struct dif_load *l)
{
	struct dif_refusal why;
	int error = dif_load(&d, (const void *)(uintptr_t)l->image, l->size, 1, &why);

	l->clause = why.clause;
	l->insn = why.insn;
	snprintf(l->error, sizeof(l->error), "%s", why.error != NULL ? why.error : "");
	if (error != 0)
		return error;
	ecbs = calloc(PROBES * d.h.clauses.count + 1, sizeof(*ecbs));
	for (uint32_t id = BEGIN; id < PROBES; id++)
		for (uint32_t i = 0; i < d.h.clauses.count; i++)
			if (is_at(i, id)) {
				ecbs[necbs].at =
				    (struct dif_at){&d, dif_code(&d, i), i, id, necbs + 1};
				necbs++;
				((uint32_t *)(uintptr_t)l->matches)[i]++;
			}
	return 0;
}

static int
request_read(bool aggs, const struct dif_read *r)
{
	void *piece[2] = {NULL, NULL};
	uint32_t size[2] = {0, 0};

	if (aggs) {
		size[0] = dif_agg_take(&d, 0, &piece[0]);
	} else {
		if (d.h.options.policy != DIF_SWITCH && d.state < DIF_STOPPED)
			return -EINVAL;
		dif_record_take(&d, 0, piece, size);
	}
	for (unsigned i = 0, at = 0; i < 2; at += size[i++])
		if (size[i] > 0)
			memcpy((uint8_t *)(uintptr_t)r->buf + at, piece[i], size[i]);
	if (aggs)
		dif_agg_done(&d, 0);
	return (int)(size[0] + size[1]);
}

static int
go(uint32_t probe, enum dif_state state)
{
	const struct ktr_firing f = {.nargs = 0};

	if (probe == BEGIN) {
		d.cpu[0].limit = UINT64_MAX;
		d.state = state;
	} else {
		dif_drain(&d, 0);
	}
	fire(probe, &f);
	if (probe == END)
		d.state = state;
	return 0;
}

static int
serve(unsigned long request, void *arg)
{
	struct dif_probe *p = arg;
	struct dif_epid *e = arg;
	struct dif_drops *drops = arg;
	struct dif_program *program = arg;

	switch (request) {
	case DIF_IOC_PROBE:
		if (p->id >= PROBES)
			return -ENOENT;
		*p = probes[p->id > 0 ? p->id : BEGIN];
		return 0;
	case DIF_IOC_LOAD:
		return request_load(arg);
	case DIF_IOC_GO:
		return go(BEGIN, DIF_ACTIVE);
	case DIF_IOC_STOP:
		return go(END, DIF_STOPPED);
	case DIF_IOC_STATUS:
		dif_spec_clean(&d, 0);
		dif_status(&d, arg);
		return 0;
	case DIF_IOC_RECORDS:
	case DIF_IOC_AGGS:
		return request_read(request == DIF_IOC_AGGS, arg);
	case DIF_IOC_EPID:
		if (e->epid - 1 >= necbs)
			return -ENOENT;
		e->clause = ecbs[e->epid - 1].at.clause;
		e->probe = ecbs[e->epid - 1].at.probe;
		return 0;
	case DIF_IOC_PROGRAM: /* what user addresses are in: DTRACE_PROGRAM */
		snprintf(program->path, sizeof(program->path), "%s", getenv("DTRACE_PROGRAM"));
		return 0;
	case DIF_IOC_DROPS:
		drops->buf_drops = d.cpu[0].buf_drops;
		drops->agg_drops = d.cpu[0].agg_drops;
		return 0;
	default:
		return -ENOTTY;
	}
}

int
__wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	int result;

	va_start(list, request);
	result = fd == DEVICE ? serve(request, va_arg(list, void *)) : -EBADF;
	va_end(list);
	if (result < 0)
		errno = -result;
	return result < 0 ? -1 : result;
}
