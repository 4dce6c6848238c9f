/*
 * ctf.c - Common Trace Format 1.8 (the specification at diamon.org/ctf; comments cite its
 * sections), for babeltrace2, Trace Compass and the LTTng analyses. The output is a directory with
 * a trace `kernel`: one stream for each CPU, and metadata in TSDL.
 *
 * A site is an event class. Its fields are the site's parameters under their names (ktr/param.h),
 * its contexts are LTTng's _tid and _procname. If an event means the same as an event of LTTng's
 * kernel tracer (linux.h), that event is written before it, with the same time. Idle threads are
 * thread 0, "swapper/N". Times are nanoseconds since boot. Each event has its whole time, so that
 * there may be gaps of any length.
 *
 * The number of lost events is a packet's events_discarded. Readers take the difference to the
 * packet before. So each stream begins with an empty packet, and a gap ends a packet. All streams
 * begin and end at the same time, as LTTng's do: the analyses look at the time that all streams
 * have.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ktr/param.h"
#include "ktr/tools/export/ctf.h"
#include "ktr/tools/export/export.h"

#define CTF_MAGIC    0xc1fc1fc1u /* 5.2.1.1 */
#define PACKET_BYTES (256u * 1024)
#define EVENT_MAX    (32u + LINUX_FIELDS * 4096) /* bytes: header, contexts, parameters */
#define STRING_MAX   4095u
#define PATH_BYTES   (EXPORT_PATH + 32u)

/* A packet's header and context, as the metadata declares them. */
struct packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	uint64_t begin, end; /* timestamps */
	uint64_t content_bits, packet_bits;
	uint64_t seq, discarded;
	uint32_t cpu;
} __attribute__((packed));

struct cpu {
	FILE *file;
	uint8_t *buf; /* the packet that is being filled, after its header */
	size_t used;
	uint64_t packets, discarded, first_ns, last_ns;
	uint64_t lost, lost_to_ns; /* events lost that no packet tells yet; until when */
};

struct ctf {
	char path[EXPORT_PATH], temp[EXPORT_PATH]; /* of the directory; temp until it is complete */
	FILE *metadata;
	uint8_t boot_id[16];
	bool any;                   /* an event or a gap has come */
	uint64_t first_ns, last_ns; /* of all CPUs */
	struct cpu cpus[KTR_DECODE_CPUS];
	struct export_classes classes;
};

static bool
failed(const struct ctf *x, char *err, size_t errlen)
{
	return export_fail(err, errlen, "%.200s: %s", x->path, strerror(errno));
}

/* Opens the file of CPU n's stream; n == KTR_DECODE_CPUS: of the metadata. NULL: errno. */
static FILE *
file_open(const struct ctf *x, unsigned n)
{
	char path[PATH_BYTES];
	if (n < KTR_DECODE_CPUS)
		snprintf(path, sizeof(path), "%s/kernel/channel0_%u", x->temp, n);
	else
		snprintf(path, sizeof(path), "%s/kernel/metadata", x->temp);
	return export_temp_add(path) ? fopen(path, "wb") : NULL;
}

/* ---- streams ---- */

/* Writes the packet, and begins the next one. */
static bool
packet_end(struct ctf *x, unsigned n, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[n];
	struct packet p = {
	    .magic = CTF_MAGIC,
	    .begin = c->first_ns,
	    .end = c->last_ns,
	    .content_bits = (sizeof(p) + c->used) * 8,
	    .packet_bits = (sizeof(p) + c->used) * 8,
	    .seq = c->packets++,
	    .discarded = c->discarded,
	    .cpu = n,
	};
	memcpy(p.uuid, x->boot_id, sizeof(p.uuid));
	bool good = fwrite(&p, sizeof(p), 1, c->file) == 1 &&
		    fwrite(c->buf, 1, c->used, c->file) == c->used;
	c->used = 0;
	c->first_ns = c->last_ns;
	return good || failed(x, err, errlen);
}

/* Something happens on the CPU at time ns. The first time, its stream is made. */
static bool
cpu_at(struct ctf *x, unsigned n, uint64_t ns, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[n];
	if (!x->any)
		x->first_ns = ns;
	x->any = true;
	x->last_ns = ns > x->last_ns ? ns : x->last_ns;
	if (c->file != NULL)
		return true;
	c->file = file_open(x, n);
	if (c->file != NULL)
		c->buf = malloc(PACKET_BYTES);
	if (c->buf == NULL)
		return failed(x, err, errlen);
	c->first_ns = c->last_ns = x->first_ns;
	return packet_end(x, n, err, errlen);
}

static bool
ctf_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct ctf *x = arg;
	memcpy(x->boot_id, h->boot_id, sizeof(x->boot_id));
	ctf_put_head(x->metadata, h);
	return true;
}

static uint8_t *
put(uint8_t *p, const void *v, size_t n)
{
	memcpy(p, v, n);
	return p + n;
}

static uint8_t *
put_string(uint8_t *p, const char *text)
{
	size_t n = strlen(text);
	n = n < STRING_MAX ? n : STRING_MAX;
	memcpy(p, text, n);
	p[n] = '\0';
	return p + n + 1;
}

/* Adds a new class to the metadata. False: there are too many classes (class is NULL). */
static bool
class_tell(struct ctf *x, const struct export_class *class, size_t number, bool is_new, char *err,
	   size_t errlen)
{
	if (class == NULL)
		return export_fail(err, errlen, "%zu event classes are too many", x->classes.count);
	if (is_new)
		ctf_put_class(x->metadata, number, class);
	return true;
}

/* Puts an event's header and contexts at the end of its CPU's packet. NULL: that failed. */
static uint8_t *
event_begin(struct ctf *x, const struct export_event *ev, const struct activity_thread *t,
	    size_t number, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[ev->e->cpu];
	uint16_t id = (uint16_t)number;
	uint32_t tid = linux_tid(t);
	if (c->used + EVENT_MAX > PACKET_BYTES && !packet_end(x, ev->e->cpu, err, errlen))
		return NULL;
	if (c->used == 0)
		c->first_ns = ev->ns;
	c->last_ns = ev->ns;
	uint8_t *p = c->buf + c->used;
	p = put(p, &id, sizeof(id));
	p = put(p, &ev->ns, sizeof(ev->ns));
	p = put(p, &tid, sizeof(tid));
	linux_comm(t, (char *)p);
	return p + LINUX_COMM;
}

static uint8_t *
put_params(uint8_t *p, const struct ktr_decode_event *e, const struct export_class *class)
{
	char unknown[32];
	for (unsigned i = 0; i < e->site->nargs; i++) {
		const struct ktr_param *param = &class->params[i];
		uint64_t v = ktr_param_value(param, e->args[i]);
		p = param->string ? put_string(p, export_string(e, i, unknown))
				  : put(p, &v, sizeof(v));
	}
	return p;
}

static uint8_t *
put_linux(uint8_t *p, const struct linux_event *l)
{
	for (unsigned i = 0; i < l->class->nfields; i++) {
		const struct linux_field *field = &l->class->fields[i];
		if (field->lttng == NULL)
			continue;
		if (field->type == KTR_FIELD_COMM)
			p = put(p, l->texts[i], LINUX_COMM);
		else if (field->type == KTR_FIELD_STRING)
			p = put_string(p, l->texts[i]);
		else
			p = put(p, &l->values[i], field->type == KTR_FIELD_INT ? 4 : 8);
	}
	return p;
}

/* Writes LTTng's event for an activity, if there is one. */
static bool
put_activity(struct ctf *x, const struct export_event *ev, const struct activity *a, char *err,
	     size_t errlen)
{
	struct cpu *c = &x->cpus[ev->e->cpu];
	struct linux_event l;
	size_t number;
	bool is_new;
	if (!linux_event(a, &l) || l.class->lttng == NULL)
		return true;
	const struct export_class *class =
	    export_class_linux(&x->classes, l.class, &number, &is_new);
	if (!class_tell(x, class, number, is_new, err, errlen))
		return false;
	uint8_t *p = event_begin(x, ev, export_linux_thread(ev, a), number, err, errlen);
	if (p != NULL)
		c->used = (size_t)(put_linux(p, &l) - c->buf);
	return p != NULL;
}

/*
 * Writes an empty packet that tells how many events were lost. It ends where the gap ends, or at
 * the next event if that is earlier.
 */
static bool
put_loss(struct ctf *x, unsigned cpu, uint64_t before_ns, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[cpu];
	uint64_t to = c->lost_to_ns < before_ns ? c->lost_to_ns : before_ns;
	if (c->lost == 0)
		return true;
	if (c->used > 0 && !packet_end(x, cpu, err, errlen))
		return false;
	c->discarded += c->lost;
	c->lost = 0;
	c->first_ns = c->last_ns;
	c->last_ns = to > c->last_ns ? to : c->last_ns;
	return packet_end(x, cpu, err, errlen);
}

static void
lose(struct cpu *c, uint64_t count, uint64_t to_ns)
{
	c->lost += count;
	c->lost_to_ns = to_ns;
}

static bool
ctf_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct ctf *x = arg;
	const struct ktr_decode_event *e = ev->e;
	struct cpu *c = &x->cpus[e->cpu];
	size_t number;
	bool is_new;
	if (!cpu_at(x, e->cpu, ev->ns, err, errlen))
		return false;
	if (e->site == NULL) { /* the frame with its site was damaged */
		lose(c, 1, ev->ns);
		return true;
	}
	if (!put_loss(x, e->cpu, ev->ns, err, errlen))
		return false;
	for (unsigned i = 0; i < ev->count; i++)
		if (!put_activity(x, ev, &ev->activities[i], err, errlen))
			return false;
	const struct export_class *class = export_class_of(&x->classes, e, &number, &is_new);
	if (!class_tell(x, class, number, is_new, err, errlen))
		return false;
	uint8_t *p = event_begin(x, ev, ev->thread, number, err, errlen);
	if (p != NULL)
		c->used = (size_t)(put_params(p, e, class) - c->buf);
	return p != NULL;
}

static bool
ctf_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct ctf *x = arg;
	const struct ktr_decode_gap *g = gap->g;
	if (!cpu_at(x, g->cpu, gap->from_ns, err, errlen) ||
	    !cpu_at(x, g->cpu, gap->to_ns, err, errlen))
		return false;
	lose(&x->cpus[g->cpu], g->count, gap->to_ns);
	return true;
}

/* ---- begin and end ---- */

/* Makes the directory, and opens the metadata. */
static bool
directory_make(struct ctf *x, char *err, size_t errlen)
{
	char path[PATH_BYTES];
	struct stat st;
	bool there = lstat(x->path, &st) == 0;
	if (there)
		return export_fail(err, errlen,
				   "%.200s: there is a %s; expected a new name, for a directory",
				   x->path, S_ISDIR(st.st_mode) ? "directory" : "file");
	if (errno != ENOENT || export_temp_directory(x->path, x->temp) != 0)
		return failed(x, err, errlen);
	snprintf(path, sizeof(path), "%s/kernel", x->temp);
	if (export_temp_add(path) && mkdir(path, 0777) == 0)
		x->metadata = file_open(x, KTR_DECODE_CPUS);
	if (x->metadata != NULL)
		return true;
	failed(x, err, errlen);
	export_temp_remove();
	return false;
}

static void *
ctf_open(const struct export_options *o, char *err, size_t errlen)
{
	struct ctf *x = calloc(1, sizeof(*x));
	size_t n = strlen(o->path);
	if (x == NULL)
		return NULL;
	while (n > 1 && o->path[n - 1] == '/')
		n--;
	if (n >= EXPORT_PATH)
		export_fail(err, errlen, "%.60s…: the name is too long", o->path);
	else
		memcpy(x->path, o->path, n);
	if (n < EXPORT_PATH && directory_make(x, err, errlen))
		return x;
	free(x);
	return NULL;
}

/* Closes a file; false when it could not all be written. */
static bool
file_end(FILE *f)
{
	bool good = ferror(f) == 0;
	return fclose(f) == 0 && good;
}

static bool
ctf_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct ctf *x = arg;
	bool good = complete;
	for (unsigned n = 0; n < KTR_DECODE_CPUS; n++) {
		struct cpu *c = &x->cpus[n];
		if (c->file == NULL)
			continue;
		if (good)
			good = put_loss(x, n, UINT64_MAX, err, errlen);
		c->last_ns = x->last_ns;
		if (good)
			good = packet_end(x, n, err, errlen);
		if (!file_end(c->file) && good)
			good = failed(x, err, errlen);
		free(c->buf);
	}
	if (!file_end(x->metadata) && good)
		good = failed(x, err, errlen);
	if (good && !export_temp_rename(x->path))
		good = failed(x, err, errlen);
	if (!good)
		export_temp_remove();
	export_classes_free(&x->classes);
	free(x);
	return good;
}

const struct export_format export_ctf = {
    EXPORT_FORMAT(ctf),
    .what = "a CTF 1.8 directory: babeltrace2, Trace Compass, lttng-analyses",
    .needs_path = true,
};
