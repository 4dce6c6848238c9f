/*
 * dif_line_fuzz.c - a kernel that is traced over a line (kernel/dtrace/dif/), and a host that says
 * anything: sound requests with any fields, an image of which any bytes are changed, bytes that are
 * no frame; probes fire between them. Each sound request has one sound answer with its number, an
 * answer that is asked for again is the same, each firing is counted once, and what is taken is
 * well formed.
 */
#include <string.h>

#include "kernel/dtrace/dif/line.h"
#include "kernel/dtrace/dif/session.h"
#include "ktr/control.h"
#include "ktr/ktr.h"
#include "tests/fuzz/dif_fuzz.h"

SDT_PROVIDER_DEFINE(fuzz);
SDT_PROBE_DEFINE2(fuzz, , , fired, fired, "int", "char *");

static uint8_t sent[2 * DIF_LINE_CODED], answer[DIF_LINE_FRAME];
static size_t sent_len, answer_len;
static uint32_t number;
static struct dif_taken unused;
static bool changed; /* the image */

/* Programs read nothing but what they are given. */
const char *
dif_port_name(char buf[DIF_PORT_NAME])
{
	return buf;
}

uint32_t
dif_port_pid(void)
{
	return 1;
}

void
dif_port_send(const void *bytes, size_t n)
{
	FUZZ_CHECK(n <= sizeof(sent) - sent_len, "%zu bytes after %zu", n, sent_len);
	memcpy(sent + sent_len, bytes, n);
	sent_len += n;
}

/* Checks the one answer that was sent. */
static void
check_answer(uint8_t what)
{
	size_t body;

	FUZZ_CHECK(sent_len > 3 && sent[0] == 0 && sent[sent_len - 1] == 0 &&
		       memchr(sent + 1, 0, sent_len - 2) == NULL,
		   "%zu bytes are not one frame", sent_len);
	answer_len = ktr_frame_decode(answer, sizeof(answer), sent + 1, sent_len - 2);
	FUZZ_CHECK(ktr_frame_check(answer, answer_len, &body) == KTR_FRAME_SOUND && body >= 9,
		   "%zu bytes", answer_len);
	FUZZ_CHECK(answer[0] == DIF_LINE_REPLY && ktr_little_u32(answer + 3) == number &&
		       answer[7] == what,
		   "not the answer to %u", what);
	FUZZ_CHECK((int32_t)ktr_little_u32(answer + 8) >= 0 || body > 9, "%u: no reason", what);
}

/* Not a byte of a request is for the console. */
static void
serve(const uint8_t *bytes, size_t n)
{
	sent_len = 0;
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(dif_serve_byte(bytes[i]), "byte %zu of %zu is the console's", i, n);
}

static int32_t
ask(uint8_t what, const uint8_t *fields, size_t n, bool again)
{
	uint8_t frame[DIF_LINE_FRAME] = {DIF_LINE_REQUEST}, coded[DIF_LINE_CODED] = {0};
	static uint8_t before[sizeof(sent)];
	size_t size, before_len;

	dif_line_put(frame + 3, ++number);
	frame[7] = what;
	memcpy(frame + 8, fields, n);
	size = 1 + ktr_frame_write(coded + 1, frame, 8 + n);
	serve(coded, size);
	check_answer(what);
	if (again) {
		memcpy(before, sent, sent_len);
		before_len = sent_len;
		serve(coded, size);
		FUZZ_CHECK(sent_len == before_len && memcmp(sent, before, sent_len) == 0,
			   "another answer, of %zu bytes", sent_len);
	}
	return (int32_t)ktr_little_u32(answer + 8);
}

static int32_t
ask_words(uint8_t what, uint32_t a, uint32_t b, uint32_t c)
{
	uint8_t fields[12];

	dif_line_put(fields, a);
	dif_line_put(fields + 4, b);
	dif_line_put(fields + 8, c);
	return ask(what, fields, sizeof(fields), false);
}

static const uint8_t *
image_of(uint32_t *size)
{
	static struct maker m;
	static uint8_t *image;
	static uint32_t length;

	if (image == NULL) {
		make(&m);
		m.h.options = (struct dif_options){.bufsize = 512,
						   .aggsize = 4096,
						   .dynvarsize = 2048,
						   .specsize = 256,
						   .nspec = 2,
						   .strsize = 32,
						   .scratch = 256};
		put_var(&m, DIF_SELF, DIF_INT, 8, 0);
		put_agg(&m, DIF_COUNT, DIF_KEYS_AND(DIF_K_STR, DIF_K_INT));
		put_layout(&m, 40);
		CLAUSE(&m, {DIF_ARG, 1, 0, 0, 0}, {DIF_STV, 0, 1, 0, 0}, {DIF_REC, 0, 0, 0, 0},
		       {DIF_REC8, 0, 1, 0, 0}, {DIF_BUILTIN, 2, 0, 0, DIF_B_PROBENAME},
		       {DIF_REC_STR, 0, 2, 0, DIF_PLACE(8, 32)}, {DIF_RET, 0, 0, 0, 0});
		CLAUSE(&m, {DIF_LDV, 1, 0, 0, 0}, {DIF_BUILTIN, 2, 0, 0, DIF_B_PROBEPROV},
		       {DIF_KEY_STR, 0, 2, 0, 0}, {DIF_KEY, 0, 1, 0, 0}, {DIF_AGG, 0, 1, 0, 0},
		       {DIF_RET, 0, 0, 0, 0});
		CLAUSE(&m, {DIF_ARG, 1, 0, 0, 1}, {DIF_LD8, 2, 1, 0, 0}, {DIF_RET, 0, 0, 0, 0});
		CLAUSE(&m, {DIF_EXIT, 0, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0});
		m.clauses[0].probes = put_string(&m, "fuzz:::fired,dtrace:::BEGIN,dtrace:::ERROR");
		m.clauses[1].probes = put_string(&m, "fuzz:::");
		m.clauses[2].probes = put_string(&m, "ktr:::point,dtrace:::END");
		m.clauses[3].probes = put_string(&m, "ktr:::last");
		image = make_image(&m, &length);
	}
	*size = length;
	return image;
}

/* An image of little more than 100 KB would be matched for minutes. */
static void
refuse_names(void)
{
	enum { CLAUSES = DIF_MAX_CLAUSES, LETTERS = 100000 };
	static struct maker m;
	struct dif_header *h;
	struct dif_clause *clauses;
	uint32_t size, end, matched;
	const char *why = NULL;
	uint8_t *image;

	make(&m);
	CLAUSE(&m, {DIF_RET, 0, 0, 0, 0});
	image = make_image(&m, &end);
	size = end + CLAUSES * (uint32_t)sizeof(*clauses) + LETTERS;
	h = calloc(1, size);
	FUZZ_CHECK(image != NULL && h != NULL, "no memory");
	memcpy(h, image, end);
	dif_port_free(image);
	h->size = size;
	h->clauses = (struct dif_section){end, CLAUSES};
	h->strings = (struct dif_section){size - LETTERS, LETTERS};
	clauses = (struct dif_clause *)((uint8_t *)h + end);
	for (unsigned i = 0; i < CLAUSES; i++)
		clauses[i] = (struct dif_clause){0, 0, 1, 0};
	memset((char *)h + size - LETTERS, ',', LETTERS - 1);
	FUZZ_CHECK(dif_session_load(h, size, &matched, &why) < 0 && why != NULL &&
		       strstr(why, "names of probes") != NULL,
		   "%s", why);
	free(h);
}

/* The image, some of whose bytes the input changes; the pieces have any size. */
static void
load(struct fuzz_input *in)
{
	static uint8_t copy[8192], fields[8 + sizeof(copy)];
	uint32_t size, part = 1 + fuzz_byte(in) * 8u;
	const uint8_t *image = image_of(&size);

	changed = false;
	memcpy(copy, image, size);
	for (unsigned n = fuzz_byte(in) % 8; n > 0; n--) {
		uint32_t at = fuzz_byte(in) * 8u + fuzz_byte(in) % 8;

		copy[at % size] = fuzz_byte(in);
		changed = true;
	}
	for (uint32_t at = 0; at < size; at += part) {
		uint32_t n = size - at < part ? size - at : part;

		dif_line_put(fields, size);
		dif_line_put(fields + 4, at);
		memcpy(fields + 8, copy + at, n);
		ask(DIF_LINE_IMAGE, fields, 8 + n, false);
	}
	fuzz_loaded += ask(DIF_LINE_LOAD, (const uint8_t *)"", 0, false) >= 0;
}

static void
fire_some(struct fuzz_input *in)
{
	static char text[] = "text";

	dif_host.time += fuzz_byte(in);
	SDT_PROBE2(fuzz, , , fired, fuzz_byte(in), text);
	CTR2(KTR_GEN, "point %u %u", fuzz_byte(in), 8);
	if (fuzz_byte(in) == 1)
		CTR0(KTR_GEN, "last");
	fuzz_fired++;
}

/* Raw bytes: they may even be a request. Then somebody types at the console. */
static void
noise(struct fuzz_input *in)
{
	uint8_t bytes[64];
	size_t n = fuzz_byte(in) % sizeof(bytes);

	for (size_t i = 0; i < n; i++)
		bytes[i] = fuzz_byte(in);
	sent_len = 0;
	dif_serve(bytes, n);
	if (fuzz_byte(in) % 2)
		return;
	dif_serve("\0l", 2);
	FUZZ_CHECK(!dif_serve_byte('s'), "the console does not get what is typed");
}

static struct dif_status
check_status(void)
{
	struct dif_status s;

	FUZZ_CHECK(ask(DIF_LINE_STATUS, (const uint8_t *)"", 0, false) == 0, "no status");
	memcpy(&s, answer + 12, sizeof(s));
	FUZZ_CHECK(s.fired == s.predicate_false + s.completed + s.faulted + s.dropped, "%lu fired",
		   s.fired);
	return s;
}

/* Programs run while the host asks anything every 20 s, and not any more when it is silent for 40.
 */
static void
wait_long(void)
{
	struct dif_status before = check_status(), after;
	static char text[] = "text";

	dif_host.time += 20000000000;
	ask_words(DIF_LINE_TAKE, DIF_TAKE_AGGS, 0, 1);
	dif_host.time += 20000000000;
	SDT_PROBE2(fuzz, , , fired, 1, text);
	after = check_status();
	FUZZ_CHECK(changed || before.state != DIF_ACTIVE || after.fired > before.fired,
		   "a host that asked was not heard");
	dif_host.time += 40000000000;
	SDT_PROBE2(fuzz, , , fired, 1, text);
	before = check_status();
	FUZZ_CHECK(changed || before.fired == after.fired, "programs ran without a host");
}

static void
step(struct fuzz_input *in)
{
	uint8_t fields[64], op = fuzz_byte(in);
	size_t n;

	switch (op % 16) {
	case 0:
		load(in);
		break;
	case 1:
		noise(in);
		break;
	case 2:
		check_status();
		break;
	case 3:
		ask_words(DIF_LINE_HELLO, DIF_LINE_MAGIC, DIF_LINE_VERSION, 0);
		break;
	case 4:
	case 5:
		ask_words(DIF_LINE_TAKE, op / 16 % 3, fuzz_byte(in) % 4, (uint32_t)fuzz_number(in));
		break;
	case 6:
	case 7:
		ask_words(DIF_LINE_TAKE, op / 16 % 2, fuzz_byte(in) % 2, 0);
		break;
	case 8:
		ask(DIF_LINE_START, (const uint8_t *)"", 0, true);
		break;
	case 9:
		ask(DIF_LINE_STOP, (const uint8_t *)"", 0, true);
		break;
	case 10:
		n = fuzz_byte(in) % sizeof(fields);
		for (size_t i = 0; i < n; i++)
			fields[i] = fuzz_byte(in);
		ask(fuzz_byte(in), fields, n, fuzz_byte(in) % 2);
		break;
	case 11:
		wait_long();
		break;
	case 12: /* a probe at a rate; then a timer that finds it due */
		dif_line_put(fields, 1 + fuzz_byte(in));
		dif_line_put(fields + 4, 0);
		memcpy(fields + 8, op / 16 % 2 ? "tick-1" : "fuzz-1", 6);
		ask(DIF_LINE_RATE, fields, 8 + fuzz_byte(in) % 40u, false);
		for (n = 0; n < 3; n++, dif_host.time += 256)
			dif_tick(fuzz_byte(in), n == 1);
		break;
	default:
		fire_some(in);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};

	fuzz_host();
	dif_host.fault = dif_session_fault;
	if (number == 0)
		refuse_names();
	while (in.left > 0)
		step(&in);
	check_status();
	ask(DIF_LINE_END, (const uint8_t *)"", 0, false);
	FUZZ_CHECK(dif_session_take(DIF_TAKE_RECORDS, 0, &unused) < 0, "a session after its end");
	fuzz_refused++;
	return 0;
}
