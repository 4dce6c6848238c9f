/*
 * kdump_fuzz.c - a file of ktrace with anything in it: kdump reads all that is there, however it
 * comes in pieces, and prints one line for each record that it does not call damaged. ktrdump makes
 * events of it.
 */
#include <stdarg.h>
#include <string.h>

#include "ktr/tools/ktrace_file.h"
#include "tests/fuzz/fuzz.h"
#include "userland/bin/kdump/kdump.h"
#include "userland/bin/kdump/points.h"

static unsigned warnings;

void warnx(const char *fmt, ...);

/* In the place of the C library's. */
void
warnx(const char *fmt, ...)
{
	(void)fmt;
	warnings++;
}

struct file {
	const uint8_t *p;
	size_t left, piece; /* piece: bytes of a read at most */
};

static int64_t
read_file(void *arg, void *buf, size_t len)
{
	struct file *f = arg;

	len = len < f->left ? len : f->left;
	len = len < f->piece ? len : f->piece;
	if (len > 0)
		memcpy(buf, f->p, len);
	f->p += len;
	f->left -= len;
	return (int64_t)len;
}

/* What kdump prints; the caller frees it. */
static char *
dump(const struct fuzz_input *in, size_t piece, int *status, size_t *size)
{
	struct file f = {in->p, in->left, piece};
	FILE *before = stdout;
	char *text;

	stdout = open_memstream(&text, size);
	FUZZ_CHECK(stdout != NULL, "no memory");
	warnings = 0;
	*status = kdump_stream(read_file, &f);
	fclose(stdout);
	stdout = before;
	FUZZ_CHECK((*status == 1) == (warnings > 0), "status %d, %u warnings", *status, warnings);
	return text;
}

static uint64_t last_ticks, last_seq[KTR_DECODE_CPUS];

static void
on_header(void *arg, const struct ktr_decode_header *h)
{
	(void)arg;
	last_ticks = h->boot_ticks;
	memset(last_seq, 0, sizeof(last_seq));
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	char text[512];

	(void)arg;
	FUZZ_CHECK(e->ticks >= last_ticks, "%lu ns after %lu", e->ticks, last_ticks);
	FUZZ_CHECK(e->seq >= last_seq[e->cpu], "event %lu, expected %lu", e->seq, last_seq[e->cpu]);
	last_ticks = e->ticks;
	last_seq[e->cpu] = e->seq + 1;
	ktr_decode_text(text, sizeof(text), e);
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	(void)arg;
	FUZZ_CHECK(g->first >= last_seq[g->cpu] && g->count > 0, "gap of %lu", g->count);
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	const struct fuzz_input *in = arg;

	(void)text;
	FUZZ_CHECK(bytes > 0 && offset <= in->left && bytes <= in->left - offset,
		   "%lu bytes at %lu", bytes, offset);
}

/* Records up to where no record can begin. */
static size_t
count(const struct fuzz_input *in)
{
	size_t n = 0, at = 0;
	struct ktr_header h;

	while (in->left - at >= sizeof(h)) {
		memcpy(&h, in->p + at, sizeof(h));
		if (h.ktr_version != KTR_VERSION1 || h.ktr_len > in->left - at - sizeof(h) ||
		    h.ktr_nsec < 0 || h.ktr_nsec >= 1000000000)
			break;
		at += sizeof(h) + h.ktr_len;
		n++;
	}
	return n;
}

/* The same file in FreeBSD's format: each record is whole. */
static void
in_freebsd(const struct fuzz_input *in)
{
	char *text, *out;
	size_t n, size, at = 0;
	int status;

	kdump_options.freebsd = open_memstream(&out, &size);
	FUZZ_CHECK(kdump_options.freebsd != NULL, "no memory");
	text = dump(in, SIZE_MAX, &status, &n);
	fclose(kdump_options.freebsd);
	FUZZ_CHECK(n == 0, "printed: %s", text);
	while (size - at >=
	       64) { /* the header's bytes, of which the first four say how many follow */
		uint32_t len;

		memcpy(&len, out + at, sizeof(len));
		FUZZ_CHECK(len <= size - at - 64, "%u bytes of %zu", len, size - at - 64);
		at += 64 + len;
	}
	FUZZ_CHECK(at == size, "%zu bytes more", size - at);
	free(out);
	free(text);
}

/* The same file, read by ktrdump: events in order. */
static void
events(const struct fuzz_input *in)
{
	static const struct ktr_decoder_ops ops = {.header = on_header,
						   .event = on_event,
						   .gap = on_gap,
						   .damage = on_damage};

	if (ktrace_is(in->p, in->left))
		FUZZ_CHECK(ktrace_read(&ops, (void *)in, in->p, in->left) == 0, "no memory");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	unsigned bits = fuzz_byte(&in), more = fuzz_byte(&in);
	size_t piece = fuzz_byte(&in) % 64 + 1, n[2], lines = 0;
	int status[2];
	char *text[2];

	kdump_options = (struct kdump_options){
	    .decimal = bits & 1,
	    .elapsed = bits & 2,
	    .absolute = bits & 4,
	    .relative = bits & 8,
	    .tid = bits & 16,
	    .raw = bits & 32,
	    .symbolic = bits & 64,
	    .numbers = bits & 128,
	    .no_data = more & 1,
	    .jsonl = more & 2,
	    .max_data = more & 4 ? 10 : UINT64_MAX,
	    .points = more & 8 ? KTRFAC_SYSCALL : KTR_POINTS_ALL,
	    .pid = more & 16 ? 12 : -1,
	};
	text[0] = dump(&in, SIZE_MAX, &status[0], &n[0]);
	text[1] = dump(&in, piece, &status[1], &n[1]);
	FUZZ_CHECK(status[0] == status[1] && n[0] == n[1] && memcmp(text[0], text[1], n[0]) == 0,
		   "in pieces of %zu: %s, whole: %s", piece, text[1], text[0]);
	for (size_t i = 0; i < n[0]; i++) {
		uint8_t c = (uint8_t)text[0][i];

		FUZZ_CHECK((c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t', "byte %#x", c);
		lines += c == '\n';
	}
	if (kdump_options.jsonl && !(more & 24))
		FUZZ_CHECK(lines <= count(&in) && lines + warnings >= count(&in),
			   "%zu lines, %u warnings, %zu records", lines, warnings, count(&in));
	free(text[0]);
	free(text[1]);
	in_freebsd(&in);
	events(&in);
	return 0;
}
