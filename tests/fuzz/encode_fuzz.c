/*
 * encode_fuzz.c - events and records with any values pass through the encoder and the decoder
 * unchanged.
 *
 * The input is a program. Each step adds an event (of a site without a SITE frame, so that all six
 * parameters are sent), a loss or a mark, or ends the batch.
 */
#include <stdbool.h>
#include <string.h>

#include "ktr/decode.h"
#include "ktr/encode.h"
#include "tests/fuzz/fuzz.h"

#define STEPS    600
#define CPUS     3
#define OUT_ROOM (1u << 20)

struct expected {
	enum { EVENT, LOSS, MARK } kind;
	unsigned cpu;
	uint64_t seq; /* or first */
	uint64_t count, from, to;
	unsigned reason;
	struct ktr_entry entry;
};

struct run {
	struct ktr_encoder enc;
	uint8_t out[OUT_ROOM];
	size_t out_len;
	uint64_t next[CPUS];
	struct expected list[STEPS];
	size_t count, taken;
};
static struct run run;

static void
take_out(void)
{
	FUZZ_CHECK(run.out_len + run.enc.out_len <= sizeof(run.out), "%zu bytes", run.out_len);
	memcpy(run.out + run.out_len, run.enc.out, run.enc.out_len);
	run.out_len += run.enc.out_len;
	run.enc.out_len = 0;
}

static struct ktr_entry
some_entry(struct fuzz_input *in, const struct ktr_entry *last)
{
	struct ktr_entry e = *last;
	uint8_t changes = fuzz_byte(in);

	if (changes & 0x80)
		e.site = (uint16_t)(200 + fuzz_number(in) % 65000);
	else
		e.site = (uint16_t)(200 + fuzz_byte(in) % 80 * 16);
	if (changes & 0x40)
		e.tid = (uint32_t)fuzz_number(in);
	e.ticks += fuzz_number(in);
	for (unsigned i = 0; i < KTR_MAXARGS; i++)
		if (changes >> i & 1)
			e.args[i] = fuzz_number(in);
	return e;
}

static void
step_event(struct fuzz_input *in, unsigned cpu, struct ktr_entry *last)
{
	struct expected *x = &run.list[run.count++];
	struct ktr_entry e = some_entry(in, last);
	bool first;

	if (!ktr_encode_event(&run.enc, cpu, run.next[cpu], &e)) {
		ktr_encode_batch(&run.enc);
		take_out();
		FUZZ_CHECK(ktr_encode_event(&run.enc, cpu, run.next[cpu], &e),
			   "an empty encoder takes no event");
	}
	/* A clock that runs backwards is constant within a batch. */
	first = run.enc.batch_count == 1;
	*x = (struct expected){.kind = EVENT, .cpu = cpu, .seq = run.next[cpu]++, .entry = e};
	if (!first && e.ticks < last->ticks)
		x->entry.ticks = last->ticks;
	*last = x->entry;
}

static void
step_loss(struct fuzz_input *in, unsigned cpu)
{
	struct expected *x = &run.list[run.count++];
	uint64_t count = fuzz_number(in) % (KTR_WIRE_SEQ_MAX / 2 - run.next[cpu]) / 1024 + 1;
	uint64_t from = fuzz_number(in) >> 1, to = from + (fuzz_number(in) >> 1);
	unsigned reason = fuzz_byte(in) % 3;

	*x = (struct expected){.kind = LOSS,
			       .cpu = cpu,
			       .seq = run.next[cpu],
			       .count = count,
			       .from = from,
			       .to = to,
			       .reason = reason};
	ktr_encode_batch(&run.enc);
	take_out();
	ktr_encode_loss(&run.enc, cpu, run.next[cpu], count, from, to, (enum ktr_wire_loss)reason);
	run.next[cpu] += count;
}

static void
step_mark(struct fuzz_input *in)
{
	struct expected *x = &run.list[run.count++];

	*x = (struct expected){.kind = MARK, .from = fuzz_number(in)};
	ktr_encode_batch(&run.enc);
	take_out();
	ktr_encode_mark(&run.enc, x->from);
}

static void
encode(struct fuzz_input *in)
{
	static const struct ktr_info info = {.arch = "fuzz",
					     .build = "encode_fuzz",
					     .hz = 1,
					     .ncpu = CPUS};
	struct ktr_wire_cpu rows[CPUS] = {{0}};
	struct ktr_entry last = {0};

	ktr_encoder_init(&run.enc, NULL, NULL);
	run.out_len = run.count = run.taken = 0;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		run.next[cpu] = fuzz_number(in) % (KTR_WIRE_SEQ_MAX / 4);
		rows[cpu].cpu = cpu;
		rows[cpu].first = rows[cpu].next = run.next[cpu];
	}
	ktr_encode_delimiter(&run.enc);
	ktr_encode_header(&run.enc, KTR_WIRE_START, &info, rows, CPUS);
	while (in->left > 0 && run.count < STEPS) {
		uint8_t what = fuzz_byte(in);
		if (what < 0xe0)
			step_event(in, what % CPUS, &last);
		else if (what < 0xf0)
			step_loss(in, what % CPUS);
		else if (what < 0xf8)
			step_mark(in);
		else
			ktr_encode_batch(&run.enc);
	}
	ktr_encode_batch(&run.enc);
	take_out();
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		rows[cpu].next = run.next[cpu];
		rows[cpu].delivered = rows[cpu].next - rows[cpu].first;
	}
	ktr_encode_end(&run.enc, rows, CPUS);
	take_out();
}

static const struct expected *
next_expected(int kind)
{
	FUZZ_CHECK(run.taken < run.count, "more comes out than went in");
	FUZZ_CHECK((int)run.list[run.taken].kind == kind, "item %zu is of kind %d, expected %d",
		   run.taken, kind, run.list[run.taken].kind);
	return &run.list[run.taken++];
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	const struct expected *x = next_expected(EVENT);

	(void)arg;
	FUZZ_CHECK(e->cpu == x->cpu && e->seq == x->seq, "cpu %u seq %ju, expected cpu %u seq %ju",
		   e->cpu, (uintmax_t)e->seq, x->cpu, (uintmax_t)x->seq);
	FUZZ_CHECK(e->ticks == x->entry.ticks && e->tid == x->entry.tid &&
		       e->site_number == x->entry.site,
		   "ticks %ju tid %u site %u, expected %ju %u %u", (uintmax_t)e->ticks, e->tid,
		   e->site_number, (uintmax_t)x->entry.ticks, x->entry.tid, x->entry.site);
	FUZZ_CHECK(memcmp(e->args, x->entry.args, sizeof(e->args)) == 0, "parameters of %zu",
		   run.taken - 1);
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	const struct expected *x = next_expected(LOSS);

	(void)arg;
	FUZZ_CHECK(g->cpu == x->cpu && g->first == x->seq && g->count == x->count &&
		       g->from_ticks == x->from && g->to_ticks == x->to &&
		       (unsigned)g->reason == x->reason,
		   "cpu %u first %ju count %ju reason %u", g->cpu, (uintmax_t)g->first,
		   (uintmax_t)g->count, (unsigned)g->reason);
}

static void
on_mark(void *arg, uint64_t ticks)
{
	(void)arg;
	FUZZ_CHECK(next_expected(MARK)->from == ticks, "mark %ju", (uintmax_t)ticks);
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	(void)arg;
	FUZZ_CHECK(false, "damage of %ju bytes at %ju: %s", (uintmax_t)bytes, (uintmax_t)offset,
		   text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ktr_decoder_ops ops = {.realloc = fuzz_realloc,
						   .event = on_event,
						   .gap = on_gap,
						   .mark = on_mark,
						   .damage = on_damage};
	struct fuzz_input in = {data, size};
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);

	FUZZ_CHECK(d != NULL, "no memory");
	encode(&in);
	FUZZ_CHECK(ktr_decoder_push(d, run.out, run.out_len) == 0 && ktr_decoder_finish(d) == 0,
		   "no memory");
	FUZZ_CHECK(run.taken == run.count, "%zu of %zu items come out", run.taken, run.count);
	ktr_decoder_destroy(d);
	return 0;
}
