/*
 * recorded.c - `dtrace -r FILE`: the probes of a recorded trace, and their firings.
 *
 * The file is read twice, as ktrdump reads it (ktr/tools/ktrdump.h): first to find out which
 * probes, CPUs and processes there are, then to fire. Time is the events'. One thread, no locks.
 *
 * A thread keeps its thread-local variables until events are lost that may have been about it. Then
 * they are gone, so that nothing is measured across a loss.
 */
#include <err.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/host/device.h"
#include "kernel/dtrace/host/host.h"
#include "kernel/dtrace/host/recorded_input.h"
#include "kernel/dtrace/probe.h"
#include "kernel/probe/rate.h"
#include "ktr/map.h"
#include "ktr/tools/export/export.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "userland/bin/dtrace/run/run.h"
#include "userland/lib/array.h"

#define NOT_KNOWN "<...>" /* a thread's name, as Linux shows it */

/* A trace point of the trace, by its texts. */
struct kind {
	const char *file, *func, *fmt;
	uint32_t line, probe;      /* 0: no probe */
	bool sysret, user;         /* a system call's end; or its begin or end */
	const struct tells *tells; /* NULL: it says nothing of processes */
};

/* What is known of a thread. */
struct known {
	uint32_t pid;   /* 0: none */
	uint32_t maker; /* the thread that made it; 0: not known */
	bool calls;     /* it makes system calls */
	uint32_t lives; /* how often events were lost that may have been about the thread */
	/*
	 * The name that a thread had. An event has the name at the time at which it was written,
	 * which may be that of a later program. So this keeps the name that was told last, NULL if
	 * none was, and the names of the programs that the thread will execute.
	 */
	const char *name, **execs;
	unsigned nexecs, exec;
};

static struct {
	const char *path;
	bool is_core; /* a memory dump */
	struct dump dump;
	struct kind *kinds;
	size_t count;
	struct ktr_map by_text; /* kind's index + 1 by a hash */
	struct {
		const struct ktr_decode_site *site;
		struct kind *kind;
	} recent[65536];        /* by the site's number */
	struct ktr_map threads; /* struct known by tid */
	unsigned cpus;
	uint64_t first_ns, last_ns; /* from recorded_limit() on: of the stretch */
	uint64_t until_ns;
	bool any, lossy;
	uint32_t lives; /* losses that the first reading did not have: about any thread */
	uint32_t lost;  /* the probe ktr:::lost */
	bool (*drain)(void);
	bool ended;
} trace;

/* Rates, whose probes fire as time goes on. */
static struct rate {
	uint32_t probe;
	uint64_t period_ns, due_ns;
} * rates;
static size_t nrates;

/* Texts that programs read, with room after them: programs read by pieces. */
static struct {
	char execname[4096], of[KTR_PARAM_MAX][8192];
} texts;

static void *
need(void *p)
{
	if (p == NULL)
		err(1, "memory");
	return p;
}

/* What events say of processes. */
static const struct tells {
	const char *fmt;
	unsigned own;   /* the parameter that is the process of the thread itself, + 1; 0: none */
	unsigned child; /* … that is a new process, + 1 */
	unsigned made;  /* … a new thread, + 1 */
	unsigned name;  /* … the name of the new process or thread, else of its own, + 1 */
} tellers[] = {
    {"fork: parent %u child %u name ", .own = 1, .child = 2, .name = 3},
    {"exec: pid %u name ", .own = 1, .name = 2},
    {"exit: pid %u ", .own = 1},
    {"wait: pid %d status %#x by %u", .own = 3},
    {"thread create: tid %u name ", .made = 1, .name = 2},
};

static const struct tells *
tells_of(const char *fmt)
{
	for (size_t i = 0; i < sizeof(tellers) / sizeof(tellers[0]); i++)
		if (strncmp(fmt, tellers[i].fmt, strlen(tellers[i].fmt)) == 0)
			return &tellers[i];
	return NULL;
}

/* ---- probes ---- */

static uint64_t
hash_text(uint64_t seed, const char *text)
{
	return ktr_hash(seed, text, strlen(text));
}

/* "sched:::on-cpu: …": the name of a probe of SDT is the format's beginning. */
static bool
is_sdt(const char *fmt, struct ktr_sdt *sdt)
{
	size_t size = strcspn(fmt, " ");
	char *name = need(strndup(fmt, size)), *rest = name;
	const char *field[4];

	if (size > 0 && name[size - 1] == ':')
		name[size - 1] = '\0';
	for (unsigned i = 0; i < 4; i++) {
		field[i] = strsep(&rest, ":");
		if (field[i] == NULL)
			return false;
	}
	*sdt = (struct ktr_sdt){field[0], field[1], field[2], field[3], {NULL}, {NULL}, NULL};
	return rest == NULL && field[0][0] != '\0' && field[3][0] != '\0';
}

/* The types that the format tells. What a pointer points to is not in the trace: it has none. */
static void
set_types(struct dif_probe *p, const char *fmt)
{
	struct ktr_param params[KTR_PARAM_MAX];

	ktr_params_scan(fmt, params, p->nargs);
	for (unsigned i = 0; i < p->nargs; i++) {
		char pointer[sizeof(params[i].name) + 4];

		snprintf(pointer, sizeof(pointer), "%.31s %%p", params[i].name);
		if (params[i].string)
			strcpy(p->types[i], "char *");
		else if (strstr(fmt, pointer) == NULL)
			snprintf(p->types[i], sizeof(p->types[i]), "%sint%u_t",
				 params[i].is_signed ? "" : "u", params[i].bits);
	}
}

static uint32_t
add_probe(const struct kind *k, unsigned nargs)
{
	struct ktr_sdt sdt;
	struct ktr_site site = {.file = k->file,
				.func = k->func,
				.fmt = k->fmt,
				.nargs = (uint8_t)nargs};
	struct ktr_probe_name name;
	struct dif_probe p;

	if (strncmp(k->fmt, "-> ", 3) == 0)
		site.kind = KTR_SITE_ENTRY;
	else if (strncmp(k->fmt, "<- ", 3) == 0)
		site.kind = KTR_SITE_RETURN;
	else if (is_sdt(k->fmt, &sdt)) {
		site.kind = KTR_SITE_PROBE;
		site.sdt = &sdt;
	}
	ktr_probe_name(&site, &name);
	if (strcmp(name.provider, "dtrace") == 0)
		return 0; /* BEGIN, END and ERROR are this program's own */
	dif_probe_describe(&p, 0, &name, &site);
	if (site.kind == KTR_SITE_PROBE)
		set_types(&p, k->fmt);
	return device_add(&p);
}

static struct kind *
find_kind(const struct ktr_decode_site *s)
{
	uint64_t key = hash_text(hash_text(s->line, s->fmt), s->func) ^ hash_text(1, s->file);
	size_t n;
	struct kind *k;

	for (; (n = (size_t)(uintptr_t)ktr_map_get(&trace.by_text, key)) != 0; key++) {
		k = &trace.kinds[n - 1];
		if (k->line == s->line && strcmp(k->fmt, s->fmt) == 0 &&
		    strcmp(k->func, s->func) == 0 && strcmp(k->file, s->file) == 0)
			return k;
	}
	k = trace.kinds;
	trace.kinds = array_grow(k, trace.count, sizeof(*k));
	if (trace.kinds != k) /* they have moved */
		memset(trace.recent, 0, sizeof(trace.recent));
	k = &trace.kinds[trace.count++];
	*k = (struct kind){.file = need(strdup(s->file)),
			   .func = need(strdup(s->func)),
			   .fmt = need(strdup(s->fmt)),
			   .line = s->line};
	k->sysret = strncmp(k->fmt, "sysret ", 7) == 0;
	k->user = k->sysret || strncmp(k->fmt, "syscall ", 8) == 0;
	k->tells = tells_of(k->fmt);
	k->probe = add_probe(k, s->nargs);
	if (!ktr_map_put(&trace.by_text, key, (void *)(uintptr_t)trace.count))
		err(1, "memory");
	return k;
}

/* NULL: the trace has lost what the event is. */
static struct kind *
kind_of(const struct ktr_decode_event *e)
{
	uint16_t n = (uint16_t)e->site_number;

	if (e->site == NULL)
		return NULL;
	if (trace.recent[n].site != e->site) {
		trace.recent[n].kind = find_kind(e->site);
		trace.recent[n].site = e->site;
	}
	return trace.recent[n].kind;
}

static bool
make_rate(const char *name, char *why, size_t size)
{
	struct dif_probe p = {.provider = "profile"};
	struct rate *r;

	for (size_t i = 0; i < nrates; i++)
		if (strcmp(device_probe(rates[i].probe)->name, name) == 0)
			return true;
	if (strncmp(name, "tick-", 5) != 0) {
		snprintf(why, size, "\"%.40s\": a trace has no CPUs to sample, expected tick-N",
			 name);
		return false;
	}
	rates = array_grow(rates, nrates, sizeof(*rates));
	r = &rates[nrates];
	r->period_ns = rate_period(name + 5, why, size);
	if (r->period_ns == 0)
		return false;
	r->due_ns = trace.first_ns + r->period_ns;
	snprintf(p.name, sizeof(p.name), "%s", name);
	r->probe = device_add(&p);
	nrates++;
	return true;
}

/* ---- processes ---- */

static struct known *
thread(uint32_t tid)
{
	struct known *t = ktr_map_get(&trace.threads, tid);

	if (t == NULL) {
		t = need(calloc(1, sizeof(*t)));
		if (!ktr_map_put(&trace.threads, tid, t))
			err(1, "memory");
	}
	return t;
}

static void
learn(const struct ktr_decode_event *e, const struct kind *k)
{
	const struct tells *t = k->tells;

	if (k->user)
		thread(e->tid)->calls = true;
	if (t == NULL)
		return;
	if (t->own > 0)
		thread(e->tid)->pid = (uint32_t)e->args[t->own - 1];
	if (t->child > 0)
		thread((uint32_t)e->args[t->child - 1])->pid = (uint32_t)e->args[t->child - 1];
	if (t->made > 0)
		thread((uint32_t)e->args[t->made - 1])->maker = e->tid;
	if (t->name > 0 && t->child == 0 && t->made == 0) {
		struct known *self = thread(e->tid);
		const char *name = e->strings[t->name - 1];

		ARRAY_ADD(self->execs, self->nexecs, need(strdup(name != NULL ? name : NOT_KNOWN)));
	}
}

/* The event gives a thread its name. */
static void
rename_thread(const struct ktr_decode_event *e, const struct tells *t)
{
	unsigned other = t->child != 0 ? t->child : t->made;
	struct known *self = thread(e->tid);

	if (other != 0 && e->strings[t->name - 1] != NULL)
		thread((uint32_t)e->args[other - 1])->name = need(strdup(e->strings[t->name - 1]));
	else if (other == 0 && self->exec < self->nexecs)
		self->name = self->execs[self->exec++];
}

static const char *
name_of(const struct ktr_decode_event *e, const struct known *t)
{
	for (unsigned i = t->exec; t->name != NULL && e->thread != NULL && i < t->nexecs; i++)
		if (strcmp(e->thread, t->execs[i]) == 0)
			return t->name;
	return e->thread != NULL ? e->thread : t->name != NULL ? t->name : NOT_KNOWN;
}

/*
 * The process of a thread: as the trace tells it; else that of the thread that made it; else, if it
 * makes system calls, its own number, as the first thread of a process has; else it is the
 * kernel's.
 */
static uint32_t
process_of(uint32_t tid, struct known *t)
{
	struct known *self = t;
	uint32_t before = 0, pid;

	for (size_t n = 0; t->pid == 0 && t->calls && t->maker != 0 && n < 1u << 24; n++) {
		before = tid;
		tid = t->maker;
		t = thread(tid);
	}
	pid = t->pid != 0 ? t->pid : t->calls ? tid : before;
	for (; self != t; self = thread(self->maker))
		self->pid = pid;
	if (t->calls)
		t->pid = pid;
	return pid;
}

/* ---- the first reading ---- */

static void *
begin(const struct export_options *o, char *why, size_t size)
{
	return &trace;
}

static bool
done(void *arg, bool complete, char *why, size_t size)
{
	return true;
}

/* Notes that there are events of that CPU. False: it is too high, and why says so. */
static bool
count_cpu(uint32_t cpu, const char *what, char *why, size_t size)
{
	if (cpu >= DIF_CPUS)
		return export_fail(why, size, "found %s of CPU %u, expected at most %u CPUs", what,
				   cpu, DIF_CPUS);
	trace.cpus = cpu >= trace.cpus ? cpu + 1 : trace.cpus;
	return true;
}

static bool
survey_event(void *arg, const struct export_event *ev, char *why, size_t size)
{
	const struct kind *k = kind_of(ev->e);

	if (!count_cpu(ev->e->cpu, "an event", why, size))
		return false;
	if (!trace.any)
		trace.first_ns = ev->ns;
	trace.any = true;
	trace.last_ns = ev->ns;
	if (k != NULL)
		learn(ev->e, k);
	return true;
}

static bool
survey_gap(void *arg, const struct export_gap *gap, char *why, size_t size)
{
	trace.lossy = true;
	return count_cpu(gap->g->cpu, "a loss", why, size);
}

static int
read_with(const struct export_format *format)
{
	char *argv[] = {"dtrace", trace.is_core ? "-M" : "-i", (char *)trace.path, NULL};
	struct dump *d = &trace.dump;

	memset(d, 0, sizeof(*d));
	memset(trace.recent, 0, sizeof(trace.recent));
	optind = 0; /* options are read anew */
	if (dump_options_parse(&d->opts, 3, argv) >= 0)
		return DUMP_USAGE;
	d->opts.format = format;
	return dump_run(d);
}

/* ---- the second reading ---- */

static void
set_no_thread(void)
{
	dif_host.thread = dif_host.pid = 0;
	dif_host.builtin[DIF_B_ERRNO] = 0;
	snprintf(texts.execname, sizeof(texts.execname), NOT_KNOWN);
}

/* Fires the rates that are due before a time. False: the tracing has ended. */
static bool
fire_rates(uint64_t until_ns)
{
	const struct ktr_firing f = {.args = (uint64_t[2]){0, 0}, .nargs = 2};
	struct rate *next;

	do {
		next = NULL;
		for (size_t i = 0; i < nrates; i++)
			if (rates[i].due_ns <= until_ns &&
			    (next == NULL || rates[i].due_ns < next->due_ns))
				next = &rates[i];
		if (next == NULL)
			return true;
		dif_host.time = next->due_ns;
		set_no_thread();
		next->due_ns += next->period_ns;
	} while (device_fire(next->probe, 0, &f) && trace.drain());
	return false;
}

/* The thread of the event is who fires. */
static void
set_thread(const struct ktr_decode_event *e)
{
	struct known *t = thread(e->tid);

	dif_host.thread = (uint64_t)(t->lives + trace.lives) << 32 | e->tid;
	dif_host.pid = process_of(e->tid, t);
	dif_host_text(texts.execname, name_of(e, t), sizeof(texts.execname));
}

/* The arguments as a program sees them: a text's is its address. */
static void
set_arguments(const struct ktr_decode_event *e, const struct kind *k, uint64_t args[KTR_PARAM_MAX])
{
	memcpy(args, e->args, KTR_PARAM_MAX * sizeof(*args));
	for (unsigned i = 0; i < e->nargs && i < KTR_PARAM_MAX; i++) {
		if (e->strings[i] == NULL)
			continue;
		dif_host_text(texts.of[i], e->strings[i], sizeof(texts.of[i]) / 2);
		args[i] = (uintptr_t)texts.of[i];
	}
	dif_host.builtin[DIF_B_ERRNO] = 0;
	if (k->sysret) {
		bool failed = e->args[0] > (uint64_t)-4096;

		dif_host.builtin[DIF_B_ERRNO] = failed ? -e->args[0] : 0;
		args[0] = args[1] = failed ? (uint64_t)-1 : e->args[0];
	}
}

static bool
fire_event(void *arg, const struct export_event *ev, char *why, size_t size)
{
	const struct kind *k = kind_of(ev->e);
	uint64_t args[KTR_PARAM_MAX];
	struct ktr_firing f = {.args = args, .nargs = (uint16_t)ev->e->nargs};

	if (trace.ended || ev->ns > trace.until_ns)
		return true;
	if (nrates > 0 && !fire_rates(ev->ns)) {
		trace.ended = true;
		return true;
	}
	if (k != NULL && k->tells != NULL && k->tells->name > 0)
		rename_thread(ev->e, k->tells);
	if (ev->ns < trace.first_ns || k == NULL || k->probe == 0 || !device_wants(k->probe) ||
	    !device_traces(ev->e->cpu))
		return true;
	dif_host.time = ev->ns;
	set_thread(ev->e);
	set_arguments(ev->e, k, args);
	if (k->sysret)
		f.nargs = 2;
	trace.ended = !device_fire(k->probe, ev->e->cpu, &f) ||
		      (device_is_full(ev->e->cpu) && !trace.drain());
	return true;
}

static bool
fire_gap(void *arg, const struct export_gap *gap, char *why, size_t size)
{
	const struct ktr_decode_gap *g = gap->g;
	const struct ktr_firing f = {.args =
					 (uint64_t[4]){g->cpu, g->count, gap->from_ns, gap->to_ns},
				     .nargs = 4};

	if (gap->thread != NULL)
		thread(gap->thread->tid)->lives++;
	trace.lives += !trace.lossy;
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost)
		thread(t->tid)->lives++;
	if (gap->to_ns < trace.first_ns || gap->from_ns > trace.until_ns)
		return true;
	trace.ended = trace.ended || (nrates > 0 && !fire_rates(gap->from_ns));
	if (trace.ended || !device_traces(g->cpu))
		return true;
	/* A loss at the beginning is older than the first event. */
	dif_host.time = gap->from_ns > trace.first_ns ? gap->from_ns : trace.first_ns;
	set_no_thread();
	trace.ended =
	    !device_fire(trace.lost, g->cpu, &f) || (device_is_full(g->cpu) && !trace.drain());
	return true;
}

bool
recorded_open(const char *path)
{
	static const struct export_format survey = {.name = "dtrace",
						    .sees_all = true,
						    .plain = true,
						    .open = begin,
						    .event = survey_event,
						    .gap = survey_gap,
						    .close = done};
	static const struct dif_probe lost = {.nargs = 4,
					      .provider = "ktr",
					      .name = "lost",
					      .types = {"int", "uint64_t", "uint64_t", "uint64_t"}};

	trace.path = recorded_input_path(path);
	trace.is_core = recorded_is_core(trace.path);
	dif_host.random_changes = true;
	dif_host.alloc_most = SIZE_MAX;
	trace.by_text = ktr_map_make(memory_realloc, memory_seed());
	trace.threads = ktr_map_make(memory_realloc, memory_seed());
	device_plug(1);
	trace.lost = device_add(&lost);
	device_make_rate = make_rate;
	if (read_with(&survey) == DUMP_USAGE)
		return false;
	if (trace.cpus == 0) {
		warnx("%s: found no event, expected a trace", path);
		return false;
	}
	device_plug(trace.cpus);
	dif_host.builtin[DIF_B_EXECNAME] = (uintptr_t)texts.execname;
	dif_port_direct[1] = (struct dif_port_range){(uintptr_t)&texts, sizeof(texts)};
	return true;
}

void
recorded_limit(void)
{
	uint64_t since, until;

	recorded_stretch(trace.first_ns, trace.last_ns, &since, &until);
	if (since > trace.first_ns)
		trace.first_ns = since;
	if (until < trace.last_ns)
		trace.last_ns = until;
	trace.until_ns = until;
	dif_host.time = trace.first_ns;
}

int
recorded_run(bool (*drain)(void))
{
	/* What losses are about, the model says, which takes as long as all else. */
	const struct export_format fire = {.name = "dtrace",
					   .sees_all = true,
					   .plain = !trace.lossy,
					   .open = begin,
					   .event = fire_event,
					   .gap = fire_gap,
					   .close = done};
	int status;

	trace.drain = drain;
	status = read_with(&fire);
	if (!trace.ended)
		fire_rates(trace.last_ns);
	dif_host.time = trace.last_ns;
	set_no_thread();
	return status;
}
