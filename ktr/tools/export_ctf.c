/*
 * export_ctf.c - Common Trace Format 1.8 (the specification at diamon.org/ctf, cited by section):
 * a directory with one stream a CPU, and metadata in TSDL, as babeltrace2 and Trace Compass read
 * it.
 *
 * An event class is a site; its fields are the parameters, by their names (ktr/param.h), and its
 * contexts are LTTng's _tid and _procname. Times are nanoseconds since boot, in full in each event,
 * so that no gap is too long for the header.
 *
 * What was lost is a packet's events_discarded, which readers take the difference of: so each
 * stream begins with an empty packet, and a gap ends the packet before it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktr/param.h"
#include "ktr/tools/export.h"

#define CTF_MAGIC    0xc1fc1fc1u /* 5.2.1.1 */
#define PACKET_BYTES (256u * 1024)
#define EVENT_MAX    (32u + 6 * 4096) /* bytes: header, contexts, parameters */
#define STRING_MAX   4095u
#define PROCNAME     16u
#define PATH_BYTES   4096u

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
	uint8_t *buf; /* a packet in the making, behind its header */
	size_t used;
	uint64_t packets, discarded, first_ns, last_ns;
};

struct export
{
	char path[PATH_BYTES], part[PATH_BYTES + 8];
	FILE *metadata;
	const struct ktr_decode_header *header;
	uint8_t boot_id[16];
	struct cpu cpus[KTR_DECODE_CPUS];
	struct export_classes classes;
};

static bool
write_failed(struct export *x, const char *name, char *err, size_t errlen)
{
	return export_fail(err, errlen, "%s/%s: %s", x->part, name, strerror(errno));
}

/* ---- metadata -----------------------------------------------------------------------------------
 */

/* A TSDL string literal (C.1.6): what it could mean otherwise is escaped. */
static void
put_literal(FILE *f, const char *text)
{
	fputc('"', f);
	for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(f, "\\%03o", *p);
		else
			fputc(*p, f);
	}
	fputc('"', f);
}

static void
put_uuid(FILE *f, const uint8_t id[16])
{
	for (unsigned i = 0; i < 16; i++)
		fprintf(f, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

static const char metadata_types[] =
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := hex_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; map = clock.boot.value; } := ns_t;\n"
    "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char_t;\n";

static void
metadata_begin(struct export *x, const struct ktr_decode_header *h)
{
	FILE *f = x->metadata;
	fputs("/* CTF 1.8 */\n\n", f);
	fputs(metadata_types, f);
	fputs("\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"", f);
	put_uuid(f, h->boot_id);
	fputs("\";\n\tbyte_order = le;\n\tpacket.header := struct {\n\t\tuint32_t magic;\n"
	      "\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;\n\t};\n};\n\nenv {\n"
	      "\thostname = \"kestrel\";\n\tdomain = \"kernel\";\n\tsysname = \"Kestrel\";\n"
	      "\tkernel_version = ",
	      f);
	put_literal(f, h->build);
	fputs(";\n\tarchitecture = ", f);
	put_literal(f, h->arch);
	fputs(";\n\ttracer_name = \"ktr\";\n};\n\nclock {\n\tname = \"boot\";\n\tuuid = \"", f);
	put_uuid(f, h->boot_id);
	fputs("\";\n\tdescription = \"nanoseconds since boot\";\n\tfreq = 1000000000;\n"
	      "\toffset = 0;\n};\n\nstream {\n\tid = 0;\n"
	      "\tpacket.context := struct {\n\t\tns_t timestamp_begin;\n\t\tns_t timestamp_end;\n"
	      "\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
	      "\t\tuint64_t packet_seq_num;\n\t\tuint64_t events_discarded;\n"
	      "\t\tuint32_t cpu_id;\n\t};\n"
	      "\tevent.header := struct {\n\t\tuint16_t id;\n\t\tns_t timestamp;\n\t};\n"
	      "\tevent.context := struct {\n\t\tint32_t _tid;\n\t\tchar_t _procname[16];\n\t};\n"
	      "};\n",
	      f);
}

/* What an event is called; names need not differ, numbers do: `fork` of "fork: parent %d", the
 * group of a KTRGRAPH line, else the function. */
static void
class_name(const struct ktr_decode_site *s, char *name, size_t size)
{
	static const char graph[] = "KTRGRAPH group:\"";
	const char *from = s->fmt, *stop = ":";
	if (strncmp(from, graph, sizeof(graph) - 1) == 0) {
		from += sizeof(graph) - 1;
		stop = "\"";
	}
	size_t n = strcspn(from, ":%\"");
	if (n == 0 || n >= size || from[n] != *stop) {
		snprintf(name, size, "%s", s->func);
		return;
	}
	for (size_t i = 0; i < n; i++)
		name[i] = isalnum((unsigned char)from[i]) ? from[i] : '_';
	name[n] = '\0';
}

static void
metadata_class(struct export *x, size_t id, const struct export_class *c)
{
	FILE *f = x->metadata;
	const struct ktr_decode_site *s = c->site;
	char name[64], place[320];
	class_name(s, name, sizeof(name));
	snprintf(place, sizeof(place), "file:%s?line=%u&func=%s", s->file, (unsigned)s->line,
		 s->func);
	fprintf(f, "\nevent {\n\tid = %zu;\n\tname = ", id);
	put_literal(f, name);
	fputs(";\n\tstream_id = 0;\n\tmodel.emf.uri = ", f);
	put_literal(f, place);
	fputs(";\n\tfields := struct {\n", f);
	for (unsigned i = 0; i < s->nargs; i++) {
		const struct ktr_param *p = &c->params[i];
		fprintf(f, "\t\t%s _%s;\n",
			p->string       ? "string"
			: p->is_signed  ? "int64_t"
			: p->bits == 64 ? "hex_t"
					: "uint64_t",
			p->name);
	}
	fputs("\t};\n};\n", f);
}

/* ---- streams ------------------------------------------------------------------------------------
 */

/* Writes the packet out, if there is one to be written, and begins the next. */
static bool
packet_end(struct export *x, unsigned n, char *err, size_t errlen)
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
	return good || write_failed(x, "a stream", err, errlen);
}

static bool
cpu_open(struct export *x, unsigned n, uint64_t ns, char *err, size_t errlen)
{
	struct cpu *c = &x->cpus[n];
	char path[PATH_BYTES + 32];
	if (c->file != NULL)
		return true;
	snprintf(path, sizeof(path), "%s/channel0_%u", x->part, n);
	c->file = fopen(path, "wb");
	c->buf = malloc(PACKET_BYTES);
	if (c->file == NULL || c->buf == NULL)
		return write_failed(x, "channel0", err, errlen);
	c->first_ns = c->last_ns = ns;
	return packet_end(x, n, err, errlen);
}

static bool
ctf_begin(struct export *x, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	(void)err, (void)errlen;
	memcpy(x->boot_id, h->boot_id, sizeof(x->boot_id));
	metadata_begin(x, h);
	x->header = h;
	return true;
}

/* The event class of a site, told in the metadata when it is new. */
static const struct export_class *
class_of(struct export *x, const struct ktr_decode_event *e, uint16_t *id, char *err, size_t errlen)
{
	size_t number;
	bool is_new;
	const struct export_class *c = export_class_of(&x->classes, e, &number, &is_new);
	if (c == NULL) {
		export_fail(err, errlen, "%zu event classes are too many", x->classes.count);
		return NULL;
	}
	*id = (uint16_t)number;
	if (is_new)
		metadata_class(x, number, c);
	return c;
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

static bool
ctf_event(struct export *x, const struct export_event *ev, char *err, size_t errlen)
{
	const struct ktr_decode_event *e = ev->e;
	struct cpu *c = &x->cpus[e->cpu];
	uint64_t ns = ev->ns;
	char unknown[32];
	uint16_t id;
	if (e->site == NULL)
		return true; /* counted as a gap is: its site was in a frame that is damaged */
	if (!cpu_open(x, e->cpu, ns, err, errlen))
		return false;
	const struct export_class *class = class_of(x, e, &id, err, errlen);
	if (class == NULL ||
	    (c->used + EVENT_MAX > PACKET_BYTES && !packet_end(x, e->cpu, err, errlen)))
		return false;
	if (c->used == 0)
		c->first_ns = ns;
	c->last_ns = ns;
	uint8_t *p = c->buf + c->used;
	p = put(p, &id, sizeof(id));
	p = put(p, &ns, sizeof(ns));
	p = put(p, &e->tid, sizeof(e->tid));
	memset(p, 0, PROCNAME);
	if (e->thread != NULL)
		memcpy(p, e->thread, strnlen(e->thread, PROCNAME - 1));
	p += PROCNAME;
	for (unsigned i = 0; i < e->site->nargs; i++) {
		const struct ktr_param *param = &class->params[i];
		uint64_t v = ktr_param_value(param, e->args[i]);
		if (!param->string) {
			p = put(p, &v, sizeof(v));
			continue;
		}
		p = put_string(p, export_string(e, i, unknown));
	}
	c->used = (size_t)(p - c->buf);
	return true;
}

static bool
ctf_gap(struct export *x, const struct export_gap *gap, char *err, size_t errlen)
{
	const struct ktr_decode_gap *g = gap->g;
	struct cpu *c = &x->cpus[g->cpu];
	if (!cpu_open(x, g->cpu, gap->from_ns, err, errlen) ||
	    (c->used > 0 && !packet_end(x, g->cpu, err, errlen)))
		return false;
	/* An empty packet at the end of the gap tells it, also when no event follows. */
	c->discarded += g->count;
	c->first_ns = c->last_ns;
	c->last_ns = gap->to_ns;
	return packet_end(x, g->cpu, err, errlen);
}

static struct export *
ctf_open(const struct export_options *o, char *err, size_t errlen)
{
	const char *path = o->path;
	struct export *x = calloc(1, sizeof(*x));
	struct stat st;
	char name[PATH_BYTES + 32];
	if (x == NULL || strlen(path) >= PATH_BYTES - 16) {
		export_fail(err, errlen, "%.60s: %s", path,
			    x == NULL ? "not enough memory" : "a shorter path");
		free(x);
		return NULL;
	}
	snprintf(x->path, sizeof(x->path), "%s", path);
	snprintf(x->part, sizeof(x->part), "%s.part", path);
	if (stat(path, &st) == 0 || mkdir(x->part, 0777) != 0) {
		bool there = stat(path, &st) == 0;
		export_fail(err, errlen, "%s: %s", there ? path : x->part,
			    there ? "it is there; expected the name of a directory to be made"
				  : strerror(errno));
		free(x);
		return NULL;
	}
	snprintf(name, sizeof(name), "%s/metadata", x->part);
	x->metadata = fopen(name, "wb");
	if (x->metadata == NULL) {
		write_failed(x, "metadata", err, errlen);
		rmdir(x->part);
		free(x);
		return NULL;
	}
	return x;
}

/* Closes a file; false when it could not all be written. */
static bool
file_end(FILE *f)
{
	bool good = ferror(f) == 0;
	return fclose(f) == 0 && good;
}

static bool
ctf_close(struct export *x, bool complete, char *err, size_t errlen)
{
	char name[PATH_BYTES + 32];
	bool good = complete;
	for (unsigned n = 0; n < KTR_DECODE_CPUS; n++) {
		struct cpu *c = &x->cpus[n];
		if (c->file == NULL)
			continue;
		if (good && c->used > 0)
			good = packet_end(x, n, err, errlen);
		if (!file_end(c->file) && good)
			good = write_failed(x, "a stream", err, errlen);
		free(c->buf);
	}
	if (!file_end(x->metadata) && good)
		good = write_failed(x, "metadata", err, errlen);
	if (good && rename(x->part, x->path) != 0)
		good = export_fail(err, errlen, "%s: %s", x->path, strerror(errno));
	for (unsigned n = 0; n <= KTR_DECODE_CPUS && !good; n++) {
		if (n < KTR_DECODE_CPUS)
			snprintf(name, sizeof(name), "%s/channel0_%u", x->part, n);
		else
			snprintf(name, sizeof(name), "%s/metadata", x->part);
		unlink(name);
	}
	if (!good)
		rmdir(x->part);
	export_classes_free(&x->classes);
	free(x);
	return good;
}

const struct export_format export_ctf = {
    .name = "ctf",
    .what = "a CTF 1.8 directory: babeltrace2, Trace Compass",
    .needs_path = true,
    .open = ctf_open,
    .begin = ctf_begin,
    .event = ctf_event,
    .gap = ctf_gap,
    .close = ctf_close,
};
