/*
 * remote.c - the requests of /dev/dtrace to another kernel, and its answers. A request without an
 * answer is sent again; the kernel answers it once more, and does nothing twice.
 */
#include "kernel/dtrace/host/remote.h"

#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "kernel/dtrace/dif/dif.h"
#include "kernel/dtrace/dif/line.h"
#include "kernel/dtrace/host/device.h"
#include "kernel/dtrace/host/host.h"
#include "kernel/probe/rate.h"
#include "userland/bin/dtrace/run/run.h"

#define AGAIN_MS 1000 /* until a request is sent again, if nothing comes */
#define NOISE_MS 5000 /* as AGAIN_MS, whatever comes: time for the longest answer at 9,600 baud */
#define TRIES    20u

static const char *name;         /* of the line */
static bool attached;            /* the kernel has answered, and the line is not lost */
static uint32_t number;          /* of the last request */
static uint32_t frame_max = 256; /* the longest frame that the kernel takes */
static unsigned cpus;
static struct {
	int32_t result; /* 0 or more, or -errno */
	uint8_t data[DIF_LINE_FRAME];
	size_t size;
} answer;

static void
fail(const char *message)
{
	errx(1, "%s", message);
}

void (*remote_failed)(const char *message) = fail;

void
remote_fail(const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	attached = false; /* nothing more is asked */
	remote_failed(text);
	abort();
}

/* ---- frames ---- */

/* Is the frame the answer to this request? All others are not for us, or are damaged. */
static bool
take_frame(const uint8_t *raw, size_t raw_len, enum dif_line_what what)
{
	static uint8_t frame[DIF_LINE_FRAME];
	size_t len = ktr_frame_decode(frame, sizeof(frame), raw, raw_len), body;
	const uint8_t *p = frame + KTR_FRAME_HEAD;

	if (ktr_frame_check(frame, len, &body) != KTR_FRAME_SOUND || frame[0] != DIF_LINE_REPLY ||
	    len < DIF_LINE_ANSWER || ktr_little_u32(p) != number || p[4] != what)
		return false;
	answer.result = (int32_t)ktr_little_u32(p + 5);
	answer.size = body - 9;
	memcpy(answer.data, p + 9, answer.size);
	return true;
}

/* Reads until the answer has come, nothing comes any more, or it is time to ask again. */
static bool
await(enum dif_line_what what)
{
	static uint8_t raw[DIF_LINE_CODED];
	static size_t raw_len;
	uint8_t bytes[4096];
	uint64_t end = remote_line_time() + NOISE_MS;
	bool found = false;

	for (size_t n; !found && remote_line_time() < end &&
		       (n = remote_line_read(bytes, sizeof(bytes), AGAIN_MS)) > 0;)
		for (size_t i = 0; i < n; i++) {
			if (bytes[i] != 0 && raw_len < sizeof(raw))
				raw[raw_len++] = bytes[i];
			if (bytes[i] != 0)
				continue;
			found = found || take_frame(raw, raw_len, what);
			raw_len = 0;
		}
	return found;
}

/* Sends a request with n bytes of fields. The result; or -errno, and data is a sentence. */
static int
ask(enum dif_line_what what, const void *fields, size_t n)
{
	uint8_t frame[DIF_LINE_FRAME], coded[DIF_LINE_CODED] = {0};
	size_t size;

	frame[0] = DIF_LINE_REQUEST;
	dif_line_put(frame + KTR_FRAME_HEAD, ++number);
	frame[KTR_FRAME_HEAD + 4] = (uint8_t)what;
	memcpy(frame + DIF_LINE_ASK - KTR_FRAME_TAIL, fields, n);
	size = 1 + ktr_frame_write(coded + 1, frame, DIF_LINE_ASK - KTR_FRAME_TAIL + n);
	for (unsigned tries = 0; tries < TRIES; tries++) {
		if (remote_line_write(coded, size, NOISE_MS) && await(what))
			return answer.result > -4096 ? answer.result : -EIO;
	}
	remote_fail(
	    "%s: no answer: expected a kernel that gives what it reads there to dif_serve()", name);
}

static int
ask_words(enum dif_line_what what, const uint32_t *words, unsigned n)
{
	uint8_t bytes[16];

	for (unsigned i = 0; i < n; i++)
		dif_line_put(bytes + 4 * i, words[i]);
	return ask(what, bytes, 4 * n);
}

/* The answer must have so many bytes. */
static const uint8_t *
need(const char *what, size_t size)
{
	if (answer.size != size)
		remote_fail("%s: found %zu bytes of %s, expected %zu", name, answer.size, what,
			    size);
	return answer.data;
}

static const char *
why(void)
{
	static char text[96]; /* as much room as the text in struct dif_load has */
	size_t n = answer.size < sizeof(text) - 1 ? answer.size : sizeof(text) - 1;

	for (size_t i = 0; i < n; i++)
		text[i] =
		    answer.data[i] >= ' ' && answer.data[i] < 127 ? (char)answer.data[i] : '?';
	text[n] = '\0';
	return text;
}

/* ---- requests ---- */

/* Sends the image, and has it loaded. l has what the host knows of it. */
static int
load(struct dif_load *l)
{
	const uint8_t *image = (const uint8_t *)(uintptr_t)l->image;
	uint32_t most = frame_max - DIF_LINE_ASK - 8;
	uint8_t piece[DIF_LINE_FRAME];
	int result = 0;

	for (uint32_t at = 0, n; at < l->size && result >= 0; at += n) {
		n = l->size - at < most ? l->size - at : most;
		dif_line_put(piece, l->size);
		dif_line_put(piece + 4, at);
		memcpy(piece + 8, image + at, n);
		result = ask(DIF_LINE_IMAGE, piece, n + 8);
	}
	if (result >= 0)
		result = ask(DIF_LINE_LOAD, "", 0);
	if (result < 0) {
		l->clause = UINT32_MAX;
		snprintf(l->error, sizeof(l->error), "%s", why());
	} else if ((uint32_t)result != l->matched) {
		remote_fail(
		    "%s: found %d clauses at probes, expected %u: the ELF is another kernel's",
		    name, result, l->matched);
	}
	return result < 0 ? result : 0;
}

/* Takes all of a CPU's records or aggregations. Bytes. */
static int
take(enum dif_take what, const struct dif_read *r)
{
	const char *text = what == DIF_TAKE_AGGS ? "aggregations" : "records", *unsound;
	uint8_t *to = (uint8_t *)(uintptr_t)r->buf;
	uint32_t at = 0, total = 0, said;

	do {
		const uint32_t words[] = {what, r->cpu, at};
		int result = ask_words(DIF_LINE_TAKE, words, 3);

		if (result < 0)
			return -EINVAL;
		said = answer.size >= 4 ? ktr_little_u32(answer.data) : 0;
		total = at == 0 ? said : total; /* each piece says the same */
		if (answer.size < 4 || said != total || total > r->size ||
		    answer.size - 4 > total - at || (answer.size == 4 && at < total))
			remote_fail("%s: found %u bytes of %s, of which %zu came from byte %u on, "
				    "expected at most %lu in all, and each time the same",
				    name, said, text, answer.size, at, (unsigned long)r->size);
		memcpy(to + at, answer.data + 4, answer.size - 4);
		at += (uint32_t)answer.size - 4;
	} while (at < total);
	unsound = what == DIF_TAKE_AGGS ? remote_unsound_aggs(device_image(), to, total)
					: remote_unsound_records(device_image(), to, total);
	if (unsound != NULL)
		remote_fail("%s: %s of CPU %u: found %s", name, text, r->cpu, unsound);
	return (int)total;
}

static int
status(struct dif_status *s)
{
	int result = ask(DIF_LINE_STATUS, "", 0);

	if (result < 0)
		return result;
	memcpy(s, need("the status", sizeof(*s)), sizeof(*s));
	if (s->cpus > cpus)
		remote_fail("%s: found %u CPUs, expected %u, as before: one has got a ring since",
			    name, s->cpus, cpus);
	if (s->state > DIF_KILLED)
		remote_fail("%s: found the state %u, expected at most %u", name, s->state,
			    DIF_KILLED);
	if (s->state == DIF_EMPTY && device_image()->state != DIF_EMPTY)
		remote_fail(
		    "%s: the kernel does not know the program any more: it has begun anew, or "
		    "traces for another dtrace",
		    name);
	return 0;
}

static int
drops(struct dif_drops *d)
{
	int result = ask_words(DIF_LINE_DROPS, &d->cpu, 1);

	if (result < 0)
		return result;
	memcpy(d, need("drops", sizeof(*d)), sizeof(*d));
	return 0;
}

static int
request(unsigned long what, void *arg)
{
	switch (what) {
	case DIF_IOC_LOAD:
		return load(arg);
	case DIF_IOC_GO:
		return ask(DIF_LINE_START, "", 0);
	case DIF_IOC_STOP:
		return ask(DIF_LINE_STOP, "", 0);
	case DIF_IOC_STATUS:
		return status(arg);
	case DIF_IOC_RECORDS:
		return take(DIF_TAKE_RECORDS, arg);
	case DIF_IOC_AGGS:
		return take(DIF_TAKE_AGGS, arg);
	default:
		return drops(arg); /* DIF_IOC_DROPS */
	}
}

/* device_make_rate(). The kernel and the device number the probes alike. */
static bool
make_rate(const char *rate, char *err, size_t size)
{
	static uint32_t first, count;
	struct dif_probe p = {.provider = "profile"};
	uint64_t ns = rate_period(strchr(rate, '-') + 1, err, size);
	uint8_t fields[8 + sizeof(p.name)];
	int id;

	for (uint32_t n = 0; n < count; n++)
		if (strcmp(device_probe(first + n)->name, rate) == 0)
			return true;
	if (ns == 0)
		return false;
	snprintf(p.name, sizeof(p.name), "%s", rate);
	dif_line_put(fields, (uint32_t)ns);
	dif_line_put(fields + 4, (uint32_t)(ns >> 32));
	memcpy(fields + 8, p.name, strlen(p.name));
	id = ask(DIF_LINE_RATE, fields, 8 + strlen(p.name));
	if (id < 0) {
		snprintf(err, size, "\"%.40s\": %s", rate, why());
		return false;
	}
	if ((uint32_t)id != device_add(&p))
		remote_fail("%s: found %d for the number of %s, expected the next one", name, id,
			    rate);
	first = (uint32_t)id - count++;
	return true;
}

/* ---- the begin and the end ---- */

/* The kernel frees what the session has. */
static void
leave(void)
{
	if (attached)
		ask(DIF_LINE_END, "", 0);
}

static void
hello(uint32_t sites, uint32_t sum)
{
	const uint32_t words[] = {DIF_LINE_MAGIC, DIF_LINE_VERSION};
	uint32_t said[6];

	/* Answers to an earlier dtrace have other numbers. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		remote_fail("getrandom");
	if (ask_words(DIF_LINE_HELLO, words, 2) < 0)
		remote_fail("%s: %s", name, why());
	need("the greeting", sizeof(said));
	for (unsigned i = 0; i < 6; i++)
		said[i] = ktr_little_u32(answer.data + 4 * i);
	if (said[0] != DIF_LINE_VERSION || said[1] != DIF_VERSION)
		remote_fail(
		    "%s: found version %u of the line and %u of programs, expected %u and %u", name,
		    said[0], said[1], DIF_LINE_VERSION, DIF_VERSION);
	if (said[2] < frame_max || said[3] < 1 || said[3] > DIF_CPUS)
		remote_fail(
		    "%s: found frames of %u bytes and %u CPUs, expected %u and more, and 1 to %u",
		    name, said[2], said[3], frame_max, DIF_CPUS);
	if (said[4] != sites || said[5] != sum)
		remote_fail(
		    "%s: the kernel has %u trace points, and the ELF %u, which are not the same: "
		    "expected the ELF of the kernel that runs",
		    name, said[4], sites);
	frame_max = said[2] < DIF_LINE_FRAME ? said[2] : DIF_LINE_FRAME;
	cpus = said[3];
}

void
remote_attach(const char *line, const char *kernel)
{
	uint32_t sites, sum;

	name = line;
	dif_host.alloc_most = SIZE_MAX;
	device_plug(1);
	remote_elf_open(kernel, &sites, &sum);
	remote_line_open(line);
	hello(sites, sum);
	attached = true;
	atexit(leave);
	device_plug(cpus);
	device_remote = request;
	device_make_rate = make_rate;
}
