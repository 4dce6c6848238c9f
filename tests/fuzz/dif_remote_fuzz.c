/*
 * dif_remote_fuzz.c - dtrace --target (kernel/dtrace/host/), and a kernel that answers anything.
 * dtrace says in a sentence what it has found, or prints what has come. The sanitizers see whether
 * it reads beyond a record.
 */
#include <setjmp.h>
#include <string.h>

#include "kernel/dtrace/dif/dif.h"
#include "kernel/dtrace/dif/line.h"
#include "kernel/dtrace/host/device.h"
#include "kernel/dtrace/host/remote.h"
#include "tests/fuzz/fuzz.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/compile.h"
#include "userland/bin/dtrace/options.h"
#include "userland/bin/dtrace/run/run.h"

#define ROOM 4096u

static jmp_buf failed;
static struct fuzz_input in;
static bool honest = true; /* the kernel answers as one does */
static uint8_t line[8 * DIF_LINE_CODED];
static size_t line_len, line_at;
static bool noisy; /* something comes without end, and no answer */
static uint64_t time_ms;
static uint32_t expected_clauses;

/* The program: all that is printed in a way of its own. */
static const char program[] =
    "fuzz:::fired { printf(\"%s %d %x %10s|\", stringof(arg0), arg1, arg2, execname); @a[execname, arg1] = count(); }"
    "fuzz:::fired { trace(probefunc); stack(3); tracemem(arg0, 20); @s[stack(4)] = sum(arg1); }"
    "fuzz:::fired { @q = quantize(arg1); @l[probename] = lquantize(arg1, 0, 10, 2); @g = llquantize(arg1, 10, 0, 3, 10); }"
    "fuzz:::fired { @v = avg(arg1); @d[arg0, arg1] = stddev(arg1); sym(arg0); func(arg1); @f[func(arg0)] = max(arg1); }"
    "fuzz:::fired /arg1/ { self->x = arg1; trunc(@a, 3); normalize(@v, arg2); clear(@q); } END { printa(@a); printa(\"%s %d %@d\\n\", @a); }";

static void
fail(const char *message)
{
	FUZZ_CHECK(!honest && message[0] != '\0', "%s", message);
	longjmp(failed, 1);
}

/* ---- the kernel ---- */

void
remote_elf_open(const char *path, uint32_t *sites, uint32_t *sum)
{
	static const struct dif_probe p = {.provider = "fuzz", .name = "fired", .nargs = 3};

	device_add(&p);
	*sites = 1;
	*sum = 2;
}

void
remote_line_open(const char *text)
{
}

static void
put(struct fuzz_input *from, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = fuzz_byte(from);
}

/* Records or entries that the input makes: the fields that matter first, so that most look right.
 */
static size_t
make_taken(uint8_t *to, bool aggs)
{
	size_t at = 0;

	for (unsigned count = fuzz_byte(&in) % 8; count > 0 && at < ROOM / 2; count--) {
		struct dif_record *r = (struct dif_record *)(to + at);
		struct dif_entry *e = (struct dif_entry *)(to + at);
		size_t words = fuzz_byte(&in) % 64, values = fuzz_byte(&in) % 8;

		memset(to + at, 0, 16);
		if (aggs) {
			e->agg = fuzz_byte(&in) % 12;
			e->key_words = (uint16_t)words;
			e->value_words = values == 7 ? 127 : (uint16_t)values;
			words += e->value_words;
			put(&in, (uint8_t *)(e + 1), 8 * (words < 80 ? words : 80));
			at += 16 + 8 * words;
		} else {
			r->layout = fuzz_byte(&in) % 8;
			r->words = (uint16_t)(2 + words);
			r->probe = fuzz_byte(&in) % 8;
			put(&in, (uint8_t *)(r + 1), 8 * words);
			at += 8u * r->words;
		}
	}
	return at < ROOM ? at : ROOM;
}

static void
reply(const uint8_t *request, uint32_t result, const void *data, size_t n)
{
	uint8_t frame[DIF_LINE_FRAME] = {DIF_LINE_REPLY};

	memcpy(frame + 3, request, 5);
	dif_line_put(frame + 8, result);
	memcpy(frame + 12, data, n);
	line[line_len++] = 0;
	line_len += ktr_frame_write(line + line_len, frame, 12 + n);
}

static void
answer_honestly(const uint8_t *request)
{
	uint8_t data[24];
	const uint32_t said[] = {DIF_LINE_VERSION, DIF_VERSION, DIF_LINE_FRAME, 2, 1, 2};

	for (unsigned i = 0; i < 6; i++)
		dif_line_put(data + 4 * i, said[i]);
	reply(request, request[4] == DIF_LINE_LOAD ? expected_clauses : 0, data,
	      request[4] == DIF_LINE_HELLO ? sizeof(data) : 0);
}

static void
answer_anything(const uint8_t *request)
{
	static uint8_t taken[2 * ROOM], data[DIF_LINE_FRAME];
	static size_t taken_len;
	uint32_t result = fuzz_byte(&in) < 8 ? (uint32_t)fuzz_number(&in) : 0;
	size_t n = 0, at;

	if (request[4] == DIF_LINE_TAKE) {
		bool lies = fuzz_byte(&in) < 8;
		uint32_t total = lies ? (uint32_t)fuzz_number(&in) : 0;

		at = ktr_little_u32(request + 13);
		if (at == 0)
			taken_len = make_taken(taken, ktr_little_u32(request + 5) == DIF_TAKE_AGGS);
		dif_line_put(data, lies ? total : (uint32_t)taken_len);
		at = at < ROOM ? at : ROOM;
		n = fuzz_byte(&in) % 2 ? 16u * fuzz_byte(&in) : ROOM;
		if (!lies)
			n = at + n < taken_len ? n : at < taken_len ? taken_len - at : 0;
		n = n < DIF_LINE_FRAME - 64 ? n : DIF_LINE_FRAME - 64;
		memcpy(data + 4, taken + at, n);
		n += 4;
	} else {
		n = request[4] == DIF_LINE_STATUS ? sizeof(struct dif_status) : fuzz_byte(&in);
		put(&in, data, n);
	}
	reply(request, result, data, n);
}

uint64_t
remote_line_time(void)
{
	return time_ms;
}

bool
remote_line_write(const uint8_t *bytes, size_t n, int ms)
{
	uint8_t frame[DIF_LINE_FRAME];
	size_t body;

	FUZZ_CHECK(n > 3 && bytes[0] == 0 && bytes[n - 1] == 0, "%zu bytes", n);
	FUZZ_CHECK(ktr_frame_check(frame, ktr_frame_decode(frame, sizeof(frame), bytes + 1, n - 2),
				   &body) == KTR_FRAME_SOUND &&
		       frame[0] == DIF_LINE_REQUEST,
		   "no request");
	line_len = line_at = 0;
	if (honest) {
		answer_honestly(frame + 3);
		return true;
	}
	noisy = fuzz_byte(&in) == 5;
	if (noisy)
		return in.left > 0;
	if (fuzz_byte(&in) < 4) { /* what is not an answer */
		line_len = fuzz_byte(&in);
		put(&in, line, line_len);
	}
	if (fuzz_byte(&in) >= 4)
		answer_anything(frame + 3);
	return true;
}

size_t
remote_line_read(uint8_t *bytes, size_t n, int ms)
{
	time_ms += (unsigned)ms / 2;
	if (noisy) {
		memset(bytes, 'x', n);
		return n;
	}
	n = line_len - line_at < n ? line_len - line_at : n;
	memcpy(bytes, line + line_at, n);
	line_at += n;
	return n;
}

/* ---- dtrace ---- */

static void
begin(void)
{
	struct source source = {.text = program, .fields = 4};
	uint32_t matches[16] = {0}, size;
	struct dif_load l = {.matches = (uintptr_t)matches};

	print_out = fopen("/dev/null", "w");
	remote_failed = fail;
	compile_init(NULL);
	remote_attach("fuzz", "kernel");
	probe_describe = consume_describe;
	dt_options.bufsize = dt_options.aggsize = ROOM;
	dt_options.quiet = 0;
	compile_sources(&source, false);
	l.image = (uintptr_t)compile_image(&size);
	l.size = size;
	FUZZ_CHECK(view_open((const void *)(uintptr_t)l.image), "no view");
	expected_clauses = 7; /* at fuzz:::fired, END, and the compiler's at ERROR */
	FUZZ_CHECK(device_request(DIF_IOC_LOAD, &l) == 0, "%s, %u clauses", l.error, l.matched);
}

/* A request that may be answered by anything. -1: with an error. */
static int
request(unsigned long what, void *arg)
{
	int result = -1;

	if (setjmp(failed) == 0)
		result = device_request(what, arg);
	return result;
}

/* A copy with nothing after it that may be read. */
static void *
exactly(const void *data, size_t size)
{
	void *copy = malloc(size);

	FUZZ_CHECK(copy != NULL, "no memory");
	return memcpy(copy, data, size);
}

/* Each record is printed from a copy of its own: no value may go beyond it. */
static void
print_records(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		const struct dif_record *r = (const void *)(data + at);
		struct dif_record *copy = exactly(r, 8u * r->words);

		output_record(0, copy, NULL);
		at += 8u * r->words;
		free(copy);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t buf[ROOM / 8];
	struct dif_read r = {.buf = (uintptr_t)buf, .size = sizeof(buf)};
	struct dif_status s;
	struct dif_drops drops = {.cpu = 1};
	void *copy;
	int n;

	if (expected_clauses == 0)
		begin();
	honest = false;
	in = (struct fuzz_input){data, size};
	request(DIF_IOC_GO, NULL);
	if (request(DIF_IOC_STATUS, &s) == 0)
		FUZZ_CHECK(s.cpus <= 2 && s.state <= DIF_KILLED, "%u CPUs, state %u", s.cpus,
			   s.state);
	request(DIF_IOC_DROPS, &drops);
	while (in.left > 0) {
		n = request(DIF_IOC_RECORDS, &r);
		if (n > 0)
			print_records((const uint8_t *)buf, (size_t)n);
		n = request(DIF_IOC_AGGS, &r);
		if (n <= 0)
			continue;
		copy = exactly(buf, (size_t)n);
		agg_add(r.cpu, copy, (size_t)n);
		free(copy);
	}
	agg_print_rest();
	for (uint32_t i = 0; i < view.agg_count; i++)
		agg_trunc(i, 0);
	rewind(print_out);
	return 0;
}
