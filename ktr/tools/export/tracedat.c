/*
 * tracedat.c - trace.dat version 6 (trace-cmd.dat.v6(5); pages and records as in Linux's
 * include/linux/ring_buffer.h), for trace-cmd and KernelShark.
 *
 * A site is an event class. Its fields are the site's parameters under their names (ktr/param.h),
 * 64 bits each. If an event means the same as an event of Linux (linux.h), that event is written
 * before it, with the same time; or instead of it, if it is the entry or return of a function:
 * trace-cmd knows a function that calls nothing by the return that follows its entry. Idle threads
 * are pid 0, "swapper/N". The file has one name for each thread: its last. Times are nanoseconds
 * since boot.
 *
 * A page's header says how many events were lost before it, so a gap ends a page; the option
 * CPUSTAT has the sums. If events were lost after the last event of a CPU, one more record says so
 * and makes a page. The head of the file names all classes, so pages are kept in a nameless file
 * for each CPU until the end. tracedat_head.c writes the head.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/export.h"
#include "ktr/tools/export/tracedat.h"

/* Bytes of a page for records; the count of lost events follows. */
#define PAGE_ROOM  (TRACEDAT_PAGE - TRACEDAT_PAGE_HEAD - 8)
#define PAGE_LOST  (UINT32_C(1) << 31 | UINT32_C(1) << 30) /* in commit: lost, and counted */
#define BUFFER     (16 * TRACEDAT_PAGE)
#define STRING_MAX KTR_WIRE_STRING_MAX
#define VALUES_MAX LINUX_FIELDS
#define RECORD_MAX (TRACEDAT_COMMON + VALUES_MAX * (4 + STRING_MAX + 1) + 12)

_Static_assert(KTR_FORMAT_RECORD_HEAD + RECORD_MAX <= PAGE_ROOM, "a record has room");

struct cpu {
	FILE *pages;
	uint8_t *page; /* the page that is being filled; after it, the buffer of `pages` */
	size_t used;
	uint64_t first_ns, last_ns;
	uint64_t page_lost, lost; /* events lost before this page; since the last event */
	uint64_t lost_ns;         /* the end of the last gap */
	uint64_t bytes;           /* of all pages */
};

struct tracedat {
	struct export_file out;
	const struct activity_model *model;
	const struct ktr_decode_header *header;
	struct cpu cpus[KTR_DECODE_CPUS];
	uint64_t lost[KTR_DECODE_CPUS]; /* in all */
	unsigned cpu_count;             /* the highest seen, + 1 */
	struct export_classes classes;
	struct tracedat_comms comms;
};

/* ---- pages ---- */

static bool
cpu_open(struct tracedat *x, unsigned n, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[n];
	if (c->pages != NULL)
		return true;
	c->pages = export_file_scratch(&x->out);
	c->page = malloc(TRACEDAT_PAGE + BUFFER);
	if (c->pages == NULL || c->page == NULL)
		return export_file_failed(&x->out, err, errlen);
	setvbuf(c->pages, (char *)c->page + TRACEDAT_PAGE, _IOFBF, BUFFER);
	if (n >= x->cpu_count)
		x->cpu_count = n + 1;
	return true;
}

/* Writes the page, if it has records, or tells a loss. */
static bool
page_end(struct tracedat *x, struct cpu *c, char *err, size_t errlen)
{
	if (c->used == 0 && c->page_lost == 0)
		return true;
	uint64_t commit = c->used | (c->page_lost > 0 ? PAGE_LOST : 0);
	uint8_t *end = c->page + TRACEDAT_PAGE_HEAD + c->used;
	memcpy(c->page, &c->first_ns, 8);
	memcpy(c->page + 8, &commit, 8);
	memset(end, 0, (size_t)(c->page + TRACEDAT_PAGE - end));
	memcpy(end, &c->page_lost, 8);
	c->bytes += TRACEDAT_PAGE;
	c->used = 0;
	c->page_lost = 0;
	return fwrite(c->page, TRACEDAT_PAGE, 1, c->pages) == 1 ||
	       export_file_failed(&x->out, err, errlen);
}

/* Makes room for a record of up to n bytes at time ns. A loss begins a new page. */
static bool
page_reserve(struct tracedat *x, struct cpu *c, size_t n, uint64_t ns, char *err, size_t errlen)
{
	if ((c->lost > 0 || c->used + KTR_FORMAT_RECORD_HEAD + n > PAGE_ROOM) &&
	    !page_end(x, c, err, errlen))
		return false;
	if (c->used == 0) {
		c->first_ns = c->last_ns = ns;
		c->page_lost = c->lost;
		c->lost = 0;
	}
	return true;
}

/* ---- events ---- */

static bool
tracedat_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct tracedat *x = arg;
	(void)err, (void)errlen;
	x->header = h;
	return true;
}

static unsigned
site_values(const struct ktr_decode_event *e, const struct export_class *class, char bad[][32],
	    struct ktr_value *v)
{
	for (unsigned i = 0; i < e->site->nargs; i++) {
		const struct ktr_param *p = &class->params[i];
		v[i] = (struct ktr_value){.type = ktr_param_field(p),
					  .number = ktr_param_value(p, e->args[i]),
					  .text = p->string ? export_string(e, i, bad[i]) : ""};
		v[i].len = strnlen(v[i].text, STRING_MAX);
	}
	return e->site->nargs;
}

static unsigned
linux_values(const struct linux_event *l, struct ktr_value *v)
{
	unsigned n = 0;
	for (unsigned i = 0; i < l->class->nfields; i++) {
		const enum ktr_field type = l->class->fields[i].type;
		if (l->class->fields[i].name == NULL)
			continue;
		v[n] = (struct ktr_value){type, (uint64_t)l->values[i], l->texts[i], 0};
		if (type >= KTR_FIELD_COMM)
			v[n].len = strnlen(v[n].text, STRING_MAX);
		n++;
	}
	return n;
}

static bool
put_record(struct tracedat *x, unsigned cpu, uint64_t ns, uint32_t id, uint32_t pid,
	   const struct ktr_value *v, unsigned n, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[cpu];
	uint8_t record[RECORD_MAX], *to;
	size_t size = ktr_record_put(record, id, pid, v, n);
	if (!page_reserve(x, c, size, ns, err, errlen))
		return false;
	to = c->page + TRACEDAT_PAGE_HEAD + c->used;
	size_t head = ktr_format_record_head(to, ns - c->last_ns, size);
	memcpy(to + head, record, size);
	c->used += head + size;
	c->last_ns = ns;
	return true;
}

static bool
class_found(struct tracedat *x, const struct export_class *class, size_t number, char *err,
	    size_t errlen)
{
	return (class != NULL && TRACEDAT_ID(number) <= UINT16_MAX) ||
	       export_fail(err, errlen, "%zu event classes are too many", x->classes.count);
}

/*
 * Writes Linux's event for an activity, if there is one. *replaces becomes true if that event
 * stands for Kestrel's own.
 */
static bool
put_activity(struct tracedat *x, const struct export_event *ev, const struct activity *a,
	     bool *replaces, char *err, size_t errlen)
{
	struct ktr_value values[VALUES_MAX];
	struct linux_event l;
	size_t number;
	bool is_new;
	if (!linux_event(a, &l) || l.class->name == NULL)
		return true;
	const struct export_class *class =
	    export_class_linux(&x->classes, l.class, &number, &is_new);
	*replaces |= linux_replaces(a);
	return class_found(x, class, number, err, errlen) &&
	       put_record(x, ev->e->cpu, ev->ns, TRACEDAT_ID(number),
			  linux_tid(export_linux_thread(ev, a)), values, linux_values(&l, values),
			  err, errlen);
}

static bool
tracedat_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct tracedat *x = arg;
	const struct ktr_decode_event *e = ev->e;
	struct cpu *c = &x->cpus[e->cpu];
	struct ktr_value values[VALUES_MAX];
	char bad[KTR_PARAM_MAX][32];
	size_t number;
	bool is_new;
	if (!cpu_open(x, e->cpu, err, errlen))
		return false;
	if (e->site == NULL) { /* the frame with its site was damaged */
		c->lost++;
		c->lost_ns = ev->ns;
		x->lost[e->cpu]++;
		return true;
	}
	bool replaced = false;
	for (unsigned i = 0; i < ev->count; i++)
		if (!put_activity(x, ev, &ev->activities[i], &replaced, err, errlen))
			return false;
	if (replaced)
		return true;
	const struct export_class *class = export_class_of(&x->classes, e, &number, &is_new);
	return class_found(x, class, number, err, errlen) &&
	       put_record(x, e->cpu, ev->ns, TRACEDAT_ID(number), linux_tid(ev->thread), values,
			  site_values(e, class, bad, values), err, errlen);
}

static bool
tracedat_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct tracedat *x = arg;
	const struct ktr_decode_gap *g = gap->g;
	struct cpu *c = &x->cpus[g->cpu];
	c->lost += g->count;
	c->lost_ns = gap->to_ns;
	x->lost[g->cpu] += g->count;
	return cpu_open(x, g->cpu, err, errlen);
}

/* ---- the file ---- */

static void
add_comm(void *comms, const struct activity_thread *t)
{
	tracedat_comm_add(comms, t);
}

static bool
tracedat_gone(void *arg, const struct activity_thread *t)
{
	struct tracedat *x = arg;
	tracedat_comm_add(&x->comms, t);
	return !x->comms.failed;
}

/* All that comes before the table of pages, aside: its size says where they are. */
static FILE *
make_head(struct tracedat *x, uint64_t *size)
{
	FILE *f = export_file_scratch(&x->out);
	activity_threads(x->model, add_comm, &x->comms);
	const struct tracedat_head head = {
	    .header = x->header,
	    .comms = &x->comms,
	    .classes = x->classes.all,
	    .class_count = x->classes.count,
	    .cpu_count = x->cpu_count,
	    .lost = x->lost,
	};
	if (f == NULL)
		return NULL;
	if (!x->comms.failed && tracedat_put_head(f, &head) && fflush(f) == 0) {
		*size = (uint64_t)ftello(f);
		return f;
	}
	fclose(f);
	return NULL;
}

/* False: it could not be read. */
static bool
copy_file(FILE *from, FILE *out)
{
	char buf[16 * TRACEDAT_PAGE];
	size_t n;
	if (from == NULL)
		return true;
	rewind(from);
	while ((n = fread(buf, 1, sizeof(buf), from)) > 0)
		fwrite(buf, 1, n, out);
	return ferror(from) == 0;
}

static bool
put_file(struct tracedat *x)
{
	static const char zeros[TRACEDAT_PAGE];
	FILE *f = x->out.f;
	uint64_t ncpu = x->header->ncpu;
	uint64_t size;
	if (ncpu > x->cpu_count && ncpu <= KTR_DECODE_CPUS)
		x->cpu_count = (unsigned)ncpu;
	if (x->cpu_count == 0)
		x->cpu_count = 1;
	FILE *head = make_head(x, &size);
	if (head == NULL)
		return false;
	bool good = copy_file(head, f);
	fclose(head);
	uint64_t from = size + 16 * (uint64_t)x->cpu_count;
	uint64_t at = (from + TRACEDAT_PAGE - 1) / TRACEDAT_PAGE * TRACEDAT_PAGE, pad = at - from;
	for (unsigned n = 0; n < x->cpu_count; n++) {
		fwrite(&at, 8, 1, f);
		fwrite(&x->cpus[n].bytes, 8, 1, f);
		at += x->cpus[n].bytes;
	}
	fwrite(zeros, 1, pad, f);
	for (unsigned n = 0; n < x->cpu_count && good; n++)
		good = copy_file(x->cpus[n].pages, f);
	return good && ferror(f) == 0;
}

/* Events were lost after a CPU's last one: a record, which has a page, says how many. */
static bool
put_last_loss(struct tracedat *x, unsigned n, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[n];
	struct ktr_value v = {.type = KTR_FIELD_U64, .number = c->lost};
	return c->lost == 0 ||
	       put_record(x, n, c->lost_ns, TRACEDAT_LOST_ID, 0, &v, 1, err, errlen);
}

/* ---- begin and end ---- */

static void *
tracedat_open(const struct export_options *o, char *err, size_t errlen)
{
	struct tracedat *x = export_create(sizeof(*x), o, err, errlen);
	if (x != NULL)
		x->model = o->model;
	return x;
}

static bool
tracedat_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct tracedat *x = arg;
	bool good = complete;
	for (unsigned n = 0; n < x->cpu_count && good; n++) {
		struct cpu *c = &x->cpus[n];
		if (c->pages == NULL)
			continue;
		good = put_last_loss(x, n, err, errlen) && page_end(x, c, err, errlen) &&
		       (fflush(c->pages) == 0 || export_file_failed(&x->out, err, errlen));
	}
	if (good && !put_file(x))
		good = export_file_failed(&x->out, err, errlen);
	good = export_file_close(&x->out, good, err, errlen);
	for (unsigned n = 0; n < KTR_DECODE_CPUS; n++) {
		if (x->cpus[n].pages != NULL)
			fclose(x->cpus[n].pages);
		free(x->cpus[n].page);
	}
	export_classes_free(&x->classes);
	tracedat_comms_free(&x->comms);
	free(x);
	return good;
}

const struct export_format export_tracedat = {
    EXPORT_FORMAT(tracedat),
    .what = "a trace.dat, version 6: trace-cmd, KernelShark",
    .gone = tracedat_gone,
};
