/*
 * export_tracedat.c - trace.dat version 6 (trace-cmd.dat.v6(5); pages and
 * records as in Linux's include/linux/ring_buffer.h), as trace-cmd and
 * KernelShark read it.
 *
 * An event class is a site, its fields are the parameters by their names (ktr/param.h), 64 bits
 * each. A thread has one name, the last that it had. Times are nanoseconds since boot.
 *
 * What was lost is told in the header of the next page, so a gap ends a page; and by CPU in the
 * option CPUSTAT. A page carries its CPU's records in the order of time. The head of the file names
 * all classes, so that pages wait in one nameless file a CPU until the end;
 * export_tracedat_head.c writes it.
 */
#define _GNU_SOURCE /* tdestroy() */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktr/tools/export.h"
#include "ktr/tools/export_tracedat.h"

#define PAGE_ROOM   (TRACEDAT_PAGE - TRACEDAT_PAGE_HEAD - 8) /* behind the data: a count of lost */
#define PAGE_LOST   (UINT32_C(1) << 31 | UINT32_C(1) << 30)  /* in commit: lost, and counted */
#define RECORD_HEAD 16u                                      /* time extend, header, length */
#define DELTA_BITS  27u
#define TIME_EXTEND 30u
#define STRING_MAX  KTR_WIRE_STRING_MAX
#define PATH_BYTES  4096u

_Static_assert(RECORD_HEAD + TRACEDAT_COMMON + 6 * (4 + STRING_MAX + 1) <= PAGE_ROOM,
	       "a record has room");

struct cpu {
	FILE *pages;
	uint8_t *page; /* in the making; used bytes behind its head */
	size_t used;
	uint64_t first_ns, last_ns;
	uint64_t page_lost, lost; /* before this page; since the last event */
	uint64_t bytes;           /* of all pages */
	uint32_t tid;             /* whose name is known: that of the event before */
	const char *thread;
};

struct export
{
	char path[PATH_BYTES], part[PATH_BYTES + 8];
	FILE *out;
	const struct ktr_decode_header *header;
	struct cpu cpus[KTR_DECODE_CPUS];
	uint64_t lost[KTR_DECODE_CPUS]; /* in all */
	unsigned cpu_count;             /* the highest seen, + 1 */
	void *threads;
	struct export_classes classes;
};

static bool
write_failed(struct export *x, char *err, size_t errlen)
{
	return export_fail(err, errlen, "%.200s: %s", x->part, strerror(errno));
}

/* ---- pages --------------------------------------------------------------------------------------
 */

static uint8_t *
put(uint8_t *p, const void *v, size_t n)
{
	memcpy(p, v, n);
	return p + n;
}

/* A file without a name, beside the output, for the pages of a CPU. */
static FILE *
pages_create(const struct export *x)
{
	char name[PATH_BYTES + 16];
	snprintf(name, sizeof(name), "%s.XXXXXX", x->part);
	int fd = mkstemp(name);
	if (fd < 0)
		return NULL;
	unlink(name);
	FILE *f = fdopen(fd, "w+b");
	if (f == NULL)
		close(fd);
	return f;
}

static bool
cpu_open(struct export *x, unsigned n, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[n];
	if (c->pages != NULL)
		return true;
	c->pages = pages_create(x);
	c->page = malloc(TRACEDAT_PAGE);
	if (c->pages == NULL || c->page == NULL)
		return write_failed(x, err, errlen);
	if (n >= x->cpu_count)
		x->cpu_count = n + 1;
	return true;
}

/* Writes the page, if it says anything. */
static bool
page_end(struct export *x, struct cpu *c, char *err, size_t errlen)
{
	if (c->used == 0 && c->page_lost == 0)
		return true;
	uint64_t commit = c->used | (c->page_lost > 0 ? PAGE_LOST : 0);
	uint8_t *end = put(put(c->page, &c->first_ns, 8), &commit, 8) + c->used;
	end = put(end, &c->page_lost, 8);
	memset(end, 0, (size_t)(c->page + TRACEDAT_PAGE - end));
	c->bytes += TRACEDAT_PAGE;
	c->used = 0;
	c->page_lost = 0;
	return fwrite(c->page, TRACEDAT_PAGE, 1, c->pages) == 1 || write_failed(x, err, errlen);
}

/* Room for a record of up to n bytes at time ns: in this page, unless something was lost. */
static bool
page_reserve(struct export *x, struct cpu *c, size_t n, uint64_t ns, char *err, size_t errlen)
{
	if ((c->lost > 0 || c->used + RECORD_HEAD + n > PAGE_ROOM) && !page_end(x, c, err, errlen))
		return false;
	if (c->used == 0) {
		c->first_ns = c->last_ns = ns;
		c->page_lost = c->lost;
		c->lost = 0;
	}
	return true;
}

/* The head of a record of n bytes, a multiple of 4; c->last_ns is the time of the one before. */
static uint8_t *
put_head(uint8_t *p, const struct cpu *c, uint64_t ns, size_t n)
{
	uint64_t delta = ns - c->last_ns;
	if (delta >> DELTA_BITS != 0) {
		uint64_t extend = TIME_EXTEND | (delta & ((1u << DELTA_BITS) - 1)) << 5 |
				  delta >> DELTA_BITS << 32;
		p = put(p, &extend, 8);
		delta = 0;
	}
	uint32_t head = (uint32_t)(n <= 112 ? n / 4 : 0) | (uint32_t)delta << 5;
	uint32_t length = (uint32_t)n + 4;
	p = put(p, &head, 4);
	return n <= 112 ? p : put(p, &length, 4);
}

/* ---- events -------------------------------------------------------------------------------------
 */

static bool
tracedat_begin(struct export *x, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	(void)err, (void)errlen;
	x->header = h;
	return true;
}

static int
thread_compare(const void *a, const void *b)
{
	const struct tracedat_thread *l = a, *r = b;
	return (l->tid > r->tid) - (l->tid < r->tid);
}

/* Keeps the name of an event's thread. */
static bool
thread_seen(struct export *x, struct cpu *c, const struct ktr_decode_event *e)
{
	if (e->thread == NULL || (c->tid == e->tid && c->thread == e->thread))
		return true;
	struct tracedat_thread key = {.tid = e->tid};
	struct tracedat_thread **found = tfind(&key, &x->threads, thread_compare);
	if (found == NULL) {
		struct tracedat_thread *t = malloc(sizeof(*t));
		if (t == NULL)
			return false;
		*t = key;
		found = tsearch(t, &x->threads, thread_compare);
		if (found == NULL) {
			free(t);
			return false;
		}
	}
	(*found)->name = e->thread;
	c->tid = e->tid;
	c->thread = e->thread;
	return true;
}

/* What an event's %s parameters are, with their lengths; returns the size of the event. */
static size_t
event_size(const struct ktr_decode_event *e, const struct export_class *class, char bad[][32],
	   const char **texts, size_t *lengths)
{
	size_t size = TRACEDAT_COMMON;
	for (unsigned i = 0; i < e->site->nargs; i++) {
		if (!class->params[i].string) {
			size += 8;
			continue;
		}
		texts[i] = export_string(e, i, bad[i]);
		lengths[i] = strnlen(texts[i], STRING_MAX);
		size += 4 + lengths[i] + 1;
	}
	return (size + 3) & ~(size_t)3;
}

static uint8_t *
put_fields(uint8_t *p, const struct ktr_decode_event *e, const struct export_class *class,
	   const char *const *texts, const size_t *lengths)
{
	unsigned nargs = e->site->nargs, at = TRACEDAT_COMMON;
	for (unsigned i = 0; i < nargs; i++)
		at += class->params[i].string ? 4 : 8;
	for (unsigned i = 0; i < nargs; i++) {
		if (class->params[i].string) {
			uint32_t where = at | (uint32_t)(lengths[i] + 1) << 16;
			p = put(p, &where, 4);
			at += (unsigned)lengths[i] + 1;
			continue;
		}
		uint64_t v = ktr_param_value(&class->params[i], e->args[i]);
		p = put(p, &v, 8);
	}
	for (unsigned i = 0; i < nargs; i++) {
		if (class->params[i].string) {
			p = put(p, texts[i], lengths[i]);
			*p++ = '\0';
		}
	}
	return p;
}

static bool
tracedat_event(struct export *x, const struct export_event *ev, char *err, size_t errlen)
{
	const struct ktr_decode_event *e = ev->e;
	struct cpu *c = &x->cpus[e->cpu];
	const char *texts[KTR_PARAM_MAX];
	size_t lengths[KTR_PARAM_MAX], number;
	char bad[KTR_PARAM_MAX][32];
	bool is_new;
	if (!cpu_open(x, e->cpu, err, errlen))
		return false;
	if (e->site == NULL) { /* its site was in a frame that is damaged */
		c->lost++;
		x->lost[e->cpu]++;
		return true;
	}
	const struct export_class *class = export_class_of(&x->classes, e, &number, &is_new);
	if (class == NULL || number + 1 >= UINT16_MAX)
		return export_fail(err, errlen, "%zu event classes are too many", x->classes.count);
	if (!thread_seen(x, c, e))
		return export_fail(err, errlen, "not enough memory");
	size_t size = event_size(e, class, bad, texts, lengths);
	uint64_t ns = ev->ns;
	if (!page_reserve(x, c, size, ns, err, errlen))
		return false;
	uint8_t *begin = c->page + TRACEDAT_PAGE_HEAD + c->used, *p = put_head(begin, c, ns, size);
	uint8_t *data = p;
	uint32_t type = (uint32_t)number + 1; /* and no flags */
	p = put(put(p, &type, 4), &e->tid, 4);
	p = put_fields(p, e, class, texts, lengths);
	memset(p, 0, (size_t)(data + size - p));
	c->used += (size_t)(data + size - begin);
	c->last_ns = ns;
	return true;
}

static bool
tracedat_gap(struct export *x, const struct export_gap *gap, char *err, size_t errlen)
{
	const struct ktr_decode_gap *g = gap->g;
	struct cpu *c = &x->cpus[g->cpu];
	c->lost += g->count;
	x->lost[g->cpu] += g->count;
	return cpu_open(x, g->cpu, err, errlen);
}

/* ---- the file -----------------------------------------------------------------------------------
 */

/* The pages of the CPUs, and where they are before that. */
static bool
put_pages(struct export *x)
{
	fwrite("flyrecord", 1, 10, x->out);
	long here = ftell(x->out);
	if (here < 0)
		return false;
	uint64_t at = (uint64_t)here + 16 * (uint64_t)x->cpu_count;
	at = (at + TRACEDAT_PAGE - 1) / TRACEDAT_PAGE * TRACEDAT_PAGE;
	off_t first = (off_t)at;
	for (unsigned n = 0; n < x->cpu_count; n++) {
		fwrite(&at, 8, 1, x->out);
		fwrite(&x->cpus[n].bytes, 8, 1, x->out);
		at += x->cpus[n].bytes;
	}
	if (fflush(x->out) != 0 || ftruncate(fileno(x->out), first) != 0 ||
	    lseek(fileno(x->out), first, SEEK_SET) != first)
		return false;
	for (unsigned n = 0; n < x->cpu_count; n++) {
		struct cpu *c = &x->cpus[n];
		off_t from = 0;
		while ((uint64_t)from < c->bytes) {
			if (sendfile(fileno(x->out), fileno(c->pages), &from,
				     c->bytes - (uint64_t)from) <= 0)
				return false;
		}
	}
	return true;
}

static bool
put_file(struct export *x)
{
	uint64_t ncpu = x->header->ncpu;
	if (ncpu > x->cpu_count && ncpu <= KTR_DECODE_CPUS)
		x->cpu_count = (unsigned)ncpu;
	if (x->cpu_count == 0)
		x->cpu_count = 1;
	const struct tracedat_head head = {
	    .header = x->header,
	    .classes = x->classes.all,
	    .class_count = x->classes.count,
	    .threads = x->threads,
	    .cpu_count = x->cpu_count,
	    .lost = x->lost,
	};
	return tracedat_put_head(x->out, &head) && put_pages(x);
}

/* ---- begin and end ------------------------------------------------------------------------------
 */

static struct export *
tracedat_open(const struct export_options *o, char *err, size_t errlen)
{
	const char *path = o->path;
	struct stat st;
	if (strlen(path) >= PATH_BYTES - 16) {
		export_fail(err, errlen, "%.60s…: the name is too long", path);
		return NULL;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		export_fail(err, errlen,
			    "%.200s: expected the name of a file, found something else", path);
		return NULL;
	}
	struct export *x = calloc(1, sizeof(*x));
	if (x == NULL) {
		export_fail(err, errlen, "not enough memory");
		return NULL;
	}
	snprintf(x->path, sizeof(x->path), "%s", path);
	snprintf(x->part, sizeof(x->part), "%s.part", path);
	x->out = fopen(x->part, "wb");
	if (x->out == NULL) {
		write_failed(x, err, errlen);
		free(x);
		return NULL;
	}
	return x;
}

static bool
tracedat_close(struct export *x, bool complete, char *err, size_t errlen)
{
	bool good = complete;
	for (unsigned n = 0; n < KTR_DECODE_CPUS && good; n++) {
		struct cpu *c = &x->cpus[n];
		if (c->pages == NULL)
			continue;
		good = page_end(x, c, err, errlen) &&
		       (fflush(c->pages) == 0 || write_failed(x, err, errlen));
	}
	if (good && !put_file(x))
		good = write_failed(x, err, errlen);
	bool written = ferror(x->out) == 0;
	if ((fclose(x->out) != 0 || !written) && good)
		good = write_failed(x, err, errlen);
	if (good && rename(x->part, x->path) != 0)
		good = export_fail(err, errlen, "%.200s: %s", x->path, strerror(errno));
	if (!good)
		unlink(x->part);
	for (unsigned n = 0; n < KTR_DECODE_CPUS; n++) {
		if (x->cpus[n].pages != NULL)
			fclose(x->cpus[n].pages);
		free(x->cpus[n].page);
	}
	tdestroy(x->threads, free);
	export_classes_free(&x->classes);
	free(x);
	return good;
}

const struct export_format export_tracedat = {
    .name = "tracedat",
    .what = "a trace.dat, version 6: trace-cmd, KernelShark",
    .needs_path = true,
    .open = tracedat_open,
    .begin = tracedat_begin,
    .event = tracedat_event,
    .gap = tracedat_gap,
    .close = tracedat_close,
};
