/*
 * device.c - /dev/dtrace on the host (device.h).
 */
#include "kernel/dtrace/host/device.h"

#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/host/host.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/lib/array.h"

#define DEVICE 1000 /* a descriptor */

enum { BEGIN = DIF_PROBE_BEGIN, END = DIF_PROBE_END, ERROR = DIF_PROBE_ERROR, OWN };

/* Probes by id. The first is none. */
static struct at_probe {
	struct dif_probe p;
	uint32_t first, count; /* of its clauses, in ecbs */
} * probes;
static uint32_t nprobes;
static unsigned ncpus; /* 0: the device is not there */
static struct dif d;
static struct ecb {
	struct dif_at at; /* first */
} * ecbs;
static uint32_t necbs;
bool (*device_make_rate)(const char *name, char *err, size_t errlen);
int (*device_remote)(unsigned long request, void *arg);

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
static void fire_error(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f);

uint32_t
device_add(const struct dif_probe *p)
{
	probes = array_grow(probes, nprobes, sizeof(*probes));
	probes[nprobes] = (struct at_probe){.p = *p};
	probes[nprobes].p.id = nprobes;
	return nprobes++;
}

void
device_plug(unsigned cpus)
{
	static const struct dif_probe own[OWN] = {
	    [BEGIN] = {.provider = "dtrace", .name = "BEGIN"},
	    [END] = {.provider = "dtrace", .name = "END"},
	    [ERROR] = {.provider = "dtrace",
		       .name = "ERROR",
		       .nargs = 5,
		       .types = {"uint32_t", "uint32_t", "uint32_t", "int", "uintptr_t"}},
	};

	ncpus = cpus;
	dif_host.alloc_left = -1;
	dif_host.fault = fire_error;
	for (uint32_t id = nprobes; id < OWN; id++)
		device_add(&own[id]);
}

const struct dif_probe *
device_probe(uint32_t id)
{
	return &probes[id].p;
}

const struct dif *
device_image(void)
{
	return &d;
}

int
__wrap_open(const char *path, int flags, ...)
{
	va_list list;
	int mode;

	va_start(list, flags);
	mode = va_arg(list, int);
	va_end(list);
	return ncpus > 0 && strcmp(path, "/dev/dtrace") == 0 ? DEVICE
							     : __real_open(path, flags, mode);
}

/* ---- firing ---- */

static void
run(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	const struct dif_probe *p = &probes[at->probe].p;

	dif_host.builtin[DIF_B_PROBEPROV] = (uintptr_t)p->provider;
	dif_host.builtin[DIF_B_PROBEMOD] = (uintptr_t)p->module;
	dif_host.builtin[DIF_B_PROBEFUNC] = (uintptr_t)p->function;
	dif_host.builtin[DIF_B_PROBENAME] = (uintptr_t)p->name;
	c->fired++;
	dif_fire(at, c, f);
}

bool
device_wants(uint32_t probe)
{
	return probes[probe].count > 0;
}

bool
device_traces(unsigned cpu)
{
	uint32_t only = DIF_CPU(d.h.flags);

	return only == 0 || only == cpu + 1;
}

/* By exit() or a full buffer. */
static bool
has_ended(void)
{
	return d.state != DIF_ACTIVE;
}

bool
device_fire(uint32_t probe, unsigned cpu, const struct ktr_firing *f)
{
	const struct at_probe *p = &probes[probe];

	dif_host.builtin[DIF_B_CPU] = cpu;
	for (uint32_t i = p->first; i < p->first + p->count; i++)
		if (probe == END || !has_ended())
			run(&ecbs[i].at, &d.cpu[cpu], f);
	return !has_ended();
}

static void
fire_error(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	uint64_t args[DIF_ERROR_ARGS];
	struct ktr_firing error = *f;
	const struct at_probe *p = &probes[ERROR];

	if (at->probe == ERROR)
		return;
	dif_error_args(&d, (unsigned)(c - d.cpu), at->clause, args);
	error.args = args;
	error.nargs = DIF_ERROR_ARGS;
	for (uint32_t i = p->first; i < p->first + p->count; i++)
		run(&ecbs[i].at, c, &error);
}

bool
device_is_full(unsigned cpu)
{
	const struct dif_cpu *c = &d.cpu[cpu];

	return c->buf.head > c->buf.size / 2 || c->aggs.head > d.h.options.aggsize / 2;
}

/* ---- requests ---- */

/* How many of a clause's names are the probe's; *all: how many there are. */
static uint32_t
names_at(uint32_t clause, uint32_t probe, uint32_t *all)
{
	char *names = strdup(d.strings + d.clauses[clause].probes), *rest = names, *name;
	uint32_t n = 0;

	for (*all = 0; (name = strsep(&rest, ",")) != NULL; ++*all)
		n += probe_matches(name, &probes[probe].p);
	free(names);
	return n;
}

/* Makes the rates that a clause names. False: one cannot be, and err says why. */
static bool
make_rates(uint32_t clause, char *err, size_t errlen)
{
	char *names = strdup(d.strings + d.clauses[clause].probes), *rest = names, *name;
	bool good = true;

	while (good && device_make_rate != NULL && (name = strsep(&rest, ",")) != NULL) {
		struct dif_probe p = {.id = 0};

		probe_split(name, &p);
		if (probe_is_rate(p.name) &&
		    (p.provider[0] == '\0' || strcmp(p.provider, "profile") == 0))
			good = device_make_rate(p.name, err, errlen);
	}
	free(names);
	return good;
}

static void
make_ecbs(uint32_t *matches)
{
	uint32_t clauses = d.h.clauses.count, names = 0, n;

	for (uint32_t i = 0; i < clauses; i++, names += n)
		names_at(i, BEGIN, &n);
	ecbs = calloc((size_t)nprobes * names + 1, sizeof(*ecbs));
	if (ecbs == NULL)
		err(1, "memory");
	for (uint32_t id = BEGIN; id < nprobes; id++) {
		probes[id].first = necbs;
		if (probes[id].p.provider[0] == '\0')
			continue;
		for (uint32_t i = 0; i < clauses; i++) {
			uint32_t at = names_at(i, id, &n);

			matches[i] += at;
			for (; at > 0; at--, necbs++)
				ecbs[necbs].at = dif_at(&d, i, id, necbs + 1);
		}
		probes[id].count = necbs - probes[id].first;
	}
}

static int
request_load(struct dif_load *l)
{
	struct dif_refusal why;
	int error = dif_load(&d, (const void *)(uintptr_t)l->image, l->size, ncpus, &why);

	l->clause = why.clause;
	l->insn = why.insn;
	snprintf(l->error, sizeof(l->error), "%s", why.error != NULL ? why.error : "");
	for (uint32_t i = 0; error == 0 && i < d.h.clauses.count; i++)
		if (!make_rates(i, l->error, sizeof(l->error)))
			error = -EINVAL;
	if (error != 0)
		return error;
	dif_port_direct[0] = (struct dif_port_range){(uintptr_t)probes, nprobes * sizeof(*probes)};
	make_ecbs((uint32_t *)(uintptr_t)l->matches);
	l->matched = necbs;
	return device_remote != NULL ? device_remote(DIF_IOC_LOAD, l) : 0;
}

static int
request_read(bool aggs, const struct dif_read *r)
{
	void *piece[2] = {NULL, NULL};
	uint32_t size[2] = {0, 0};

	if (aggs) {
		size[0] = dif_agg_take(&d, r->cpu, &piece[0]);
	} else {
		if (d.h.options.policy != DIF_SWITCH && d.state < DIF_STOPPED)
			return -EINVAL;
		dif_record_take(&d, r->cpu, piece, size);
	}
	for (unsigned i = 0, at = 0; i < 2; at += size[i++])
		if (size[i] > 0)
			memcpy((uint8_t *)(uintptr_t)r->buf + at, piece[i], size[i]);
	if (aggs)
		dif_agg_done(&d, r->cpu);
	return (int)(size[0] + size[1]);
}

static int
go(uint32_t probe, enum dif_state state)
{
	const struct ktr_firing f = {.nargs = 0};

	if (probe == BEGIN) {
		for (unsigned cpu = 0; cpu < ncpus; cpu++)
			d.cpu[cpu].limit = UINT64_MAX;
		d.state = state;
	} else {
		dif_drain(&d, 0);
	}
	device_fire(probe, 0, &f);
	if (probe == END)
		d.state = state;
	return 0;
}

/* What programs here have to say. */
static int
serve_here(unsigned long request, void *arg)
{
	struct dif_drops *drops = arg;

	switch (request) {
	case DIF_IOC_GO:
		return go(BEGIN, DIF_ACTIVE);
	case DIF_IOC_STOP:
		return go(END, DIF_STOPPED);
	case DIF_IOC_STATUS:
		for (unsigned cpu = 0; cpu < ncpus; cpu++)
			while (dif_spec_waits(&d, cpu))
				dif_spec_clean(&d, cpu);
		dif_status(&d, arg);
		return 0;
	case DIF_IOC_RECORDS:
	case DIF_IOC_AGGS:
		return request_read(request == DIF_IOC_AGGS, arg);
	default: /* DIF_IOC_DROPS */
		drops->buf_drops = d.cpu[drops->cpu].buf_drops;
		drops->agg_drops = d.cpu[drops->cpu].agg_drops;
		return 0;
	}
}

int
device_request(unsigned long request, void *arg)
{
	struct dif_probe *p = arg;
	struct dif_epid *e = arg;
	struct dif_program *program = arg;

	switch (request) {
	case DIF_IOC_PROBE:
		for (uint32_t id = p->id; id < nprobes; id++)
			if (probes[id].p.provider[0] != '\0') {
				*p = probes[id].p;
				return 0;
			}
		return -ENOENT;
	case DIF_IOC_LOAD:
		return request_load(arg);
	case DIF_IOC_EPID:
		if (e->epid - 1 >= necbs)
			return -ENOENT;
		e->clause = ecbs[e->epid - 1].at.clause;
		e->probe = ecbs[e->epid - 1].at.probe;
		return 0;
	case DIF_IOC_PROGRAM: /* what user addresses are in: DTRACE_PROGRAM */
		if (getenv("DTRACE_PROGRAM") == NULL)
			return -ENOENT;
		snprintf(program->path, sizeof(program->path), "%s", getenv("DTRACE_PROGRAM"));
		return 0;
	case DIF_IOC_GO:
	case DIF_IOC_STOP:
	case DIF_IOC_STATUS:
	case DIF_IOC_RECORDS:
	case DIF_IOC_AGGS:
	case DIF_IOC_DROPS:
		return device_remote != NULL ? device_remote(request, arg)
					     : serve_here(request, arg);
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
	result = fd == DEVICE ? device_request(request, va_arg(list, void *)) : -EBADF;
	va_end(list);
	if (result < 0)
		errno = -result;
	return result < 0 ? -1 : result;
}
