/*
 * io.c - the report io: requests to disks, from the events of class GEOM.
 *
 * What is counted is what a file system asks for, a bio: `bio start` tells its file, and its thread
 * is the event's. Bios become requests, by the sectors that they have in common: `request start`
 * ends the time in the queue, and `request done` all of it. `bio done` ends a bio that became part
 * of no request. A bio of a partition has its place on the disk.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/param.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report/report.h"

#define BIOS_MAX    65536u /* when so many bios have not ended, all are forgotten */
#define SECTOR_SIZE 512u

enum { IO_BIO, IO_START, IO_DONE, IO_FAILED, IO_KINDS };
static const char *const begins[IO_KINDS] = {[IO_BIO] = "bio start: ",
					     [IO_START] = "request start: ",
					     [IO_DONE] = "request done: ",
					     [IO_FAILED] = "bio done: "};

/* What an event tells. */
struct io_event {
	uint64_t sector, bytes, tag;
	const char *device, *rwbs, *file;
};

struct io_bio {
	const struct activity_thread *thread; /* NULL: not known, or gone */
	struct report_who who;                /* in its place then */
	uint32_t cpu;
	bool counts, issued;
	uint64_t ns, issued_ns, sector, bytes;
	uint64_t tag, request; /* of its request: the tag, which is used again, and the sector */
	char *device, *rwbs, *file; /* one allocation: device */
};

static struct io_bio *bios;
static size_t count, room;
static const struct ktr_decode_site *other; /* the last site that is none of these kinds */

static void
bio_forget(size_t i)
{
	free(bios[i].device);
	memmove(&bios[i], &bios[i + 1], (--count - i) * sizeof(*bios));
}

void
report_io_lost(void)
{
	while (count > 0)
		free(bios[--count].device);
}

void
report_io_end(void)
{
	report_io_lost();
	free(bios);
	bios = NULL;
	room = 0;
	other = NULL; /* of a decoder that goes */
}

void
report_io_gone(const struct activity_thread *t)
{
	for (size_t i = 0; i < count; i++)
		if (bios[i].thread == t)
			bios[i].thread = NULL;
}

/* Copies the texts. False: no memory. */
static bool
copy_texts(struct io_bio *b, const struct io_event *e)
{
	size_t device = strlen(e->device) + 1, rwbs = strlen(e->rwbs) + 1,
	       file = strlen(e->file) + 1;
	b->device = malloc(device + rwbs + file);
	if (b->device == NULL)
		return false;
	b->rwbs = memcpy(b->device + device, e->rwbs, rwbs);
	b->file = memcpy(b->rwbs + rwbs, e->file, file);
	memcpy(b->device, e->device, device);
	return true;
}

static void
bio_begins(struct report *r, const struct export_event *ev, const struct io_event *e)
{
	if (count == BIOS_MAX)
		report_io_lost();
	if (!MEMORY_ROOM(bios, room, count)) {
		report_no_memory(r);
		return;
	}
	struct io_bio *b = &bios[count];
	*b = (struct io_bio){.thread = ev->thread,
			     .cpu = ev->e->cpu,
			     .counts = report_wants(r, ev->thread, ev->e->cpu),
			     .ns = ev->ns,
			     .sector = e->sector,
			     .bytes = e->bytes};
	b->who = ev->thread != NULL ? report_who(r, ev->thread) : report_not_known;
	if (copy_texts(b, e))
		count++;
	else
		report_no_memory(r);
}

/* Is the bio, of the disk or of a partition of it, part of a request? A flush has no bytes. */
static bool
is_part(const struct io_bio *b, const struct io_event *e)
{
	return strncmp(b->device, e->device, strlen(e->device)) == 0 && b->rwbs[0] == e->rwbs[0] &&
	       (b->bytes == 0) == (e->bytes == 0) &&
	       (b->bytes == 0 ||
		(b->sector >= e->sector && b->sector < e->sector + e->bytes / SECTOR_SIZE));
}

static void
request_begins(const struct export_event *ev, const struct io_event *e)
{
	for (size_t i = 0; i < count; i++) {
		struct io_bio *b = &bios[i];
		if (b->issued || !is_part(b, e))
			continue;
		b->issued = true;
		b->issued_ns = ev->ns;
		b->tag = e->tag;
		b->request = e->sector;
	}
}

static void
bio_ends(struct report *r, const struct io_bio *b, uint64_t ns)
{
	struct report_sample s = {.kind = SAMPLE_BIO,
				  .thread = b->thread,
				  .who = b->thread == NULL ? &b->who : NULL,
				  .cpu = b->cpu,
				  .from_ns = b->ns,
				  .to_ns = ns,
				  .text = b->device,
				  .more = b->rwbs,
				  .value = b->bytes,
				  .queued_ns = b->issued_ns - b->ns};
	if (!b->counts || !report_cut(r, &s.from_ns, ns))
		return;
	report_add(r, &s);
	s.kind = SAMPLE_BIO_FILE;
	s.text = b->file;
	s.more = b->device;
	report_add(r, &s);
}

static void
request_ends(struct report *r, const struct export_event *ev, const struct io_event *e)
{
	for (size_t i = 0; i < count;) {
		const struct io_bio *b = &bios[i];
		if (b->issued && b->tag == e->tag && b->request == e->sector &&
		    strncmp(b->device, e->device, strlen(e->device)) == 0) {
			bio_ends(r, b, ev->ns);
			bio_forget(i);
		} else {
			i++;
		}
	}
}

/* A request failed in the queue, or before it. */
static void
bio_fails(struct report *r, const struct export_event *ev, const struct io_event *e)
{
	for (size_t i = 0; i < count; i++) {
		struct io_bio *b = &bios[i];
		if (b->issued || b->sector != e->sector || strcmp(b->device, e->device) != 0 ||
		    strcmp(b->rwbs, e->rwbs) != 0)
			continue;
		b->issued_ns = ev->ns;
		bio_ends(r, b, ev->ns);
		bio_forget(i);
		return;
	}
}

/* Reads an event of one of these kinds. False: the event lacks something. */
static bool
read_event(const struct ktr_decode_event *e, struct io_event *to)
{
	struct ktr_param params[KTR_PARAM_MAX];
	*to = (struct io_event){.device = NULL};
	ktr_params_scan(e->site->fmt, params, e->nargs);
	for (unsigned i = 0; i < e->nargs; i++) {
		const char *name = params[i].name;
		uint64_t value = ktr_param_value(&params[i], e->args[i]);
		if (strcmp(name, "sector") == 0)
			to->sector = value;
		else if (strcmp(name, "bytes") == 0)
			to->bytes = value;
		else if (strcmp(name, "tag") == 0)
			to->tag = value;
		else if (strcmp(name, "device") == 0)
			to->device = e->strings[i];
		else if (strcmp(name, "rwbs") == 0)
			to->rwbs = e->strings[i];
		else if (strcmp(name, "file") == 0)
			to->file = e->strings[i];
	}
	if (to->file == NULL)
		to->file = "<unknown>";
	if (to->rwbs == NULL)
		to->rwbs = "?";
	return to->device != NULL;
}

void
report_io_event(struct report *r, const struct export_event *ev)
{
	const struct ktr_decode_event *e = ev->e;
	struct io_event io;
	unsigned kind = 0;
	if (e->site == NULL || e->site == other || e->nargs > KTR_PARAM_MAX)
		return;
	while (kind < IO_KINDS && strncmp(e->site->fmt, begins[kind], strlen(begins[kind])) != 0)
		kind++;
	if (kind == IO_KINDS)
		other = e->site;
	else if (!read_event(e, &io))
		return;
	else if (kind == IO_BIO)
		bio_begins(r, ev, &io);
	else if (kind == IO_START)
		request_begins(ev, &io);
	else if (kind == IO_DONE)
		request_ends(r, ev, &io);
	else
		bio_fails(r, ev, &io);
}
