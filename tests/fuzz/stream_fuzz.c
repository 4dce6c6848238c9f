/*
 * stream_fuzz.c - a program of trace points, interrupts, migrations, drains and resizes. It is
 * recorded through the real rings, drained through a real stream, and decoded: every event comes
 * out unchanged, or is accounted for, once. Then one byte of the stream is changed, and another
 * time its end is cut off: no event comes out that was not recorded, and the damage is reported.
 *
 * Records are restartable sequences (KTR_HOST_RESTART). The model adds an event at the step before
 * the store of the head that publishes it.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "ktr/control.h"
#include "ktr/decode.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/stream.h"
#include "tests/fuzz/fuzz.h"

#define CPUS     3
#define SITES    80 /* more than the encoder remembers */
#define EVENTS   400
#define OUT_ROOM (1u << 20)
#define STRINGS  6

/* One event, as the model has it. */
struct model_event {
	unsigned site;
	uint32_t tid;
	uint64_t ticks;
	uint64_t args[KTR_MAXARGS];
};

/* What happens in the middle of a record or of a read. */
enum strike {
	STRIKE_NONE,
	STRIKE_EXCEPTION, /* this CPU records in an exception */
	STRIKE_OTHER_CPU, /* other CPUs record */
	STRIKE_MIGRATION,
	STRIKE_READER, /* another CPU drains */
	STRIKE_DEATH,  /* the record never continues */
	STRIKES
};

static struct {
	struct model_event events[CPUS][EVENTS];
	uint64_t recorded[CPUS];
	uint64_t ticks, tick_step;
	uint64_t clock_read;         /* by the context that records */
	struct model_event *current; /* the innermost event being recorded */
	enum strike strike;          /* what happens next */
	unsigned strike_steps;       /* after so many steps */
	struct fuzz_input *in;
	jmp_buf gone;

	uint64_t events_out[CPUS], gaps_out[CPUS][5];
	uint64_t next_out[CPUS];
	bool complete; /* the stream has not been changed */
	uint64_t damages, ends;
} model;

static struct ktr_site sites[SITES] KTR_SITE_SECTION_ __attribute__((used)) = {{.file = "s"}};
static const char *const texts[STRINGS] = {"a",   "an interned string", "", "running", "%s%n",
					   "\xff"};
static const char *strings[STRINGS]; /* their handles */
static char formats[SITES][64];
static struct ktr_stream stream;
static uint8_t out[OUT_ROOM];
static size_t out_len;

static uint64_t
model_clock(void)
{
	model.ticks += model.tick_step;
	return model.clock_read = model.ticks;
}

static void record(struct fuzz_input *in, unsigned cpu);
static void drain(size_t piece);

/* Records on this CPU, in an exception, or on another CPU. */
static void
strike_records(unsigned cpu)
{
	unsigned here = ktr_host_cpu, masked = ktr_host_masked;
	uint32_t tid = ktr_host_tid;
	struct model_event *current = model.current;

	for (unsigned n = fuzz_byte(model.in) % 10 + 1; n > 0; n--)
		record(model.in, cpu);
	ktr_host_cpu = here;
	ktr_host_masked = masked;
	ktr_host_tid = tid;
	model.current = current;
}

static void
strike(bool reading)
{
	enum strike kind = model.strike;
	uint64_t clock_read = model.clock_read;

	model.strike = STRIKE_NONE;
	if (reading) {
		strike_records(fuzz_byte(model.in));
	} else if (kind == STRIKE_EXCEPTION) {
		ktr_host_exceptions++;
		strike_records(ktr_host_cpu);
	} else if (kind == STRIKE_OTHER_CPU) {
		strike_records(ktr_host_cpu + 1);
	} else if (kind == STRIKE_MIGRATION && ktr_host_masked == 0) {
		ktr_host_exceptions++;
		ktr_host_cpu = (ktr_host_cpu + 1) % CPUS;
	} else if (kind == STRIKE_READER) {
		drain(777);
	} else if (kind == STRIKE_DEATH) {
		longjmp(model.gone, 1);
	}
	model.clock_read = clock_read; /* by the context that continues */
}

static void
on_step(enum ktr_host_step step)
{
	unsigned exceptions = ktr_host_exceptions, cpu = ktr_host_cpu;

	if (model.strike != STRIKE_NONE && model.strike_steps-- == 0)
		strike(step == KTR_HOST_READ);
	if (step != KTR_HOST_PUBLISH || ktr_host_exceptions != exceptions)
		return;
	uint64_t seq = model.recorded[cpu]++;
	FUZZ_CHECK(ktr_ring_head(ktr_host_rings[cpu]) == seq, "cpu %u seq %ju", cpu,
		   (uintmax_t)seq);
	FUZZ_CHECK(seq < EVENTS, "%ju events", (uintmax_t)seq);
	model.events[cpu][seq] = *model.current;
	model.events[cpu][seq].ticks = model.clock_read;
}

static uint64_t
some_argument(struct fuzz_input *in)
{
	uint8_t kind = fuzz_byte(in);

	if (kind < 0x40)
		return (uint64_t)(uintptr_t)strings[kind % STRINGS];
	if (kind < 0x60)
		return (uint64_t)(uintptr_t)ktr_thread_ident(kind % 4);
	if (kind < 0x80)
		return (uint64_t)(int64_t)(int8_t)fuzz_byte(in);
	return fuzz_number(in);
}

static void
call(const struct ktr_site *s, const uint64_t *a)
{
	struct ktr_pair more = {a[4], a[5]};

	switch (s->nargs) {
	case 0:
		ktr_record0(s);
		break;
	case 1:
		ktr_record1(s, a[0]);
		break;
	case 2:
		ktr_record2(s, a[0], a[1]);
		break;
	case 3:
		ktr_record3(s, a[0], a[1], a[2]);
		break;
	case 4:
		ktr_record4(s, a[0], a[1], a[2], a[3]);
		break;
	case 5:
		ktr_record5(s, a[0], a[1], a[2], a[3], more);
		break;
	default:
		ktr_record6(s, a[0], a[1], a[2], a[3], more);
		break;
	}
}

static void
record(struct fuzz_input *in, unsigned cpu)
{
	struct model_event e = {.site = fuzz_byte(in) % SITES};
	const struct ktr_site *s = &sites[e.site];
	bool on = (s->classes & ktr_mask_get()) != 0;

	ktr_host_cpu = cpu % CPUS;
	ktr_host_tid = fuzz_byte(in) % 8;
	e.tid = ktr_host_tid;
	for (unsigned i = 0; i < s->nargs; i++)
		e.args[i] = some_argument(in);
	FUZZ_CHECK(KTR_PORT_SITE_ON(s) == on, "site %u with mask %#jx", e.site,
		   (uintmax_t)ktr_mask_get());
	for (unsigned i = 0; i < CPUS; i++)
		on &= model.recorded[i] + 4 < EVENTS;
	if (!on)
		return;
	model.current = &e;
	call(s, e.args);
}

static void
drain(size_t piece)
{
	size_t n;

	do {
		FUZZ_CHECK(out_len + piece <= sizeof(out), "%zu bytes", out_len);
		n = ktr_stream_read(&stream, out + out_len, piece);
		out_len += n;
	} while (n > 0);
}

/* Records the next event, or reads a stream, while something strikes. */
static void
run_struck(struct fuzz_input *in, bool reading)
{
	uint8_t how = fuzz_byte(in);

	model.in = in;
	model.strike = how % (STRIKES - 1) + 1;
	model.strike_steps = how / (STRIKES - 1) % (reading ? 50 : 14);
	if (reading)
		drain(777);
	else if (setjmp(model.gone) == 0)
		record(in, fuzz_byte(in));
	model.strike = STRIKE_NONE;
	ktr_host_masked = 0;
}

static void
check_accounts(void)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		struct ktr_stats s;

		FUZZ_CHECK(ktr_stats_get(cpu, &s), "cpu %u", cpu);
		FUZZ_CHECK(s.recorded == model.recorded[cpu], "cpu %u: %ju, expected %ju", cpu,
			   (uintmax_t)s.recorded, (uintmax_t)model.recorded[cpu]);
		FUZZ_CHECK(s.recorded == s.delivered + s.resident + s.overwritten,
			   "cpu %u: %ju = %ju + %ju + %ju", cpu, (uintmax_t)s.recorded,
			   (uintmax_t)s.delivered, (uintmax_t)s.resident, (uintmax_t)s.overwritten);
		FUZZ_CHECK(s.suppressed == 0, "cpu %u: %ju", cpu, (uintmax_t)s.suppressed);
	}
}

static void
step(struct fuzz_input *in)
{
	uint8_t what = fuzz_byte(in);

	model.tick_step = what % 16 == 15 ? fuzz_number(in) % (1ull << 48) : what % 16;
	if (what < 0xc0)
		record(in, fuzz_byte(in));
	else if (what < 0xe0)
		run_struck(in, what % 4 == 0);
	else if (what < 0xe8)
		drain(fuzz_byte(in) * 8u + 1);
	else if (what < 0xec)
		FUZZ_CHECK(ktr_resize(4u << fuzz_byte(in) % 6) == 0, "resize");
	else if (what < 0xee)
		ktr_clear();
	else if (what < 0xf4)
		ktr_mask_set(fuzz_byte(in) | KTR_ALL << 8);
	else if (what < 0xfa)
		ktr_thread_name(fuzz_byte(in) % 8, texts[fuzz_byte(in) % STRINGS]);
	else
		check_accounts();
}

/* Restores rings, heads and counts to those at the start of the program. */
static void
begin(void)
{
	memset(&model, 0, sizeof(model));
	ktr_host_cpus = CPUS;
	ktr_host_clock = model_clock;
	ktr_host_interrupt = on_step;
	FUZZ_CHECK(ktr_resize(64) == 0, "resize");
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		struct ktr_ring *ring = ktr_host_rings[cpu];
		struct ktr_log_cpu *account = &ktr_main.cpu[cpu];

		ring->head = ring->limit = ring->base = ring->start = ring->since = 0;
		memset(ktr_ring_slots(ring), 0, ring->entries * sizeof(struct ktr_entry));
		account->cursor = account->encoded = account->overwritten = account->cleared = 0;
		account->ticks = 0;
	}
	for (unsigned tid = 0; tid < 8; tid++)
		ktr_thread_name(tid, "t");
	ktr_mask_set(KTR_ALL);
	ktr_stream_open(&stream, KTR_STREAM_ACCOUNT);
	out_len = 0;
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	const struct model_event *m;

	(void)arg;
	FUZZ_CHECK(e->cpu < CPUS && e->seq < model.recorded[e->cpu], "cpu %u seq %ju", e->cpu,
		   (uintmax_t)e->seq);
	m = &model.events[e->cpu][e->seq];
	FUZZ_CHECK(e->seq >= model.next_out[e->cpu], "cpu %u seq %ju", e->cpu, (uintmax_t)e->seq);
	FUZZ_CHECK(e->site_number == m->site && e->tid == m->tid && e->ticks == m->ticks,
		   "cpu %u seq %ju: site %u tid %u ticks %ju, expected %u %u %ju", e->cpu,
		   (uintmax_t)e->seq, e->site_number, e->tid, (uintmax_t)e->ticks, m->site, m->tid,
		   (uintmax_t)m->ticks);
	FUZZ_CHECK(e->site != NULL || !model.complete, "site %u is not known", e->site_number);
	FUZZ_CHECK(e->site == NULL || strcmp(e->site->fmt, formats[m->site]) == 0, "\"%s\"",
		   e->site->fmt);
	for (unsigned i = 0; i < sites[m->site].nargs; i++) {
		const char *text = e->strings[i];

		FUZZ_CHECK(e->args[i] == m->args[i], "parameter %u of seq %ju: %#jx", i,
			   (uintmax_t)e->seq, (uintmax_t)e->args[i]);
		for (unsigned k = 0; k < STRINGS; k++)
			if (m->args[i] == (uintptr_t)strings[k] && i % 2 == 1)
				FUZZ_CHECK(text != NULL ? strcmp(text, texts[k]) == 0
							: !model.complete,
					   "\"%s\" instead of \"%s\"", text, texts[k]);
	}
	FUZZ_CHECK(!model.complete || e->seq == model.next_out[e->cpu], "cpu %u: hole at %ju",
		   e->cpu, (uintmax_t)e->seq);
	model.next_out[e->cpu] = e->seq + 1;
	model.events_out[e->cpu]++;
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	(void)arg;
	FUZZ_CHECK(g->cpu < CPUS && g->first + g->count <= model.recorded[g->cpu],
		   "cpu %u: %ju events from %ju on", g->cpu, (uintmax_t)g->count,
		   (uintmax_t)g->first);
	FUZZ_CHECK(g->first >= model.next_out[g->cpu], "cpu %u: %ju twice", g->cpu,
		   (uintmax_t)g->first);
	FUZZ_CHECK(!model.complete ||
		       (g->first == model.next_out[g->cpu] && g->reason != KTR_GAP_DAMAGED),
		   "cpu %u: %s at %ju", g->cpu, ktr_gap_reason_name(g->reason),
		   (uintmax_t)g->first);
	model.next_out[g->cpu] = g->first + g->count;
	model.gaps_out[g->cpu][g->reason] += g->count;
}

static void
on_end(void *arg)
{
	(void)arg;
	model.ends++;
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	(void)arg;
	FUZZ_CHECK(!model.complete, "damage of %ju bytes at %ju: %s", (uintmax_t)bytes,
		   (uintmax_t)offset, text);
	model.damages++;
}

static void
decode(bool complete, size_t len)
{
	static const struct ktr_decoder_ops ops = {.realloc = fuzz_realloc,
						   .event = on_event,
						   .gap = on_gap,
						   .end = on_end,
						   .damage = on_damage};
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);

	FUZZ_CHECK(d != NULL, "no memory");
	model.complete = complete;
	model.damages = model.ends = 0;
	memset(model.next_out, 0, sizeof(model.next_out));
	memset(model.events_out, 0, sizeof(model.events_out));
	memset(model.gaps_out, 0, sizeof(model.gaps_out));
	FUZZ_CHECK(ktr_decoder_push(d, out, len) == 0 && ktr_decoder_finish(d) == 0, "no memory");
	ktr_decoder_destroy(d);
}

/* Checks a whole stream: all events are there, and the ring's accounts agree. */
static void
check_whole(bool drained)
{
	decode(true, out_len);
	FUZZ_CHECK(model.ends == 1, "%ju ends", (uintmax_t)model.ends);
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		struct ktr_stats s;

		ktr_stats_get(cpu, &s);
		FUZZ_CHECK(model.next_out[cpu] == model.recorded[cpu], "cpu %u: %ju of %ju", cpu,
			   (uintmax_t)model.next_out[cpu], (uintmax_t)model.recorded[cpu]);
		FUZZ_CHECK(model.events_out[cpu] == s.delivered,
			   "cpu %u: %ju events, %ju delivered", cpu,
			   (uintmax_t)model.events_out[cpu], (uintmax_t)s.delivered);
		FUZZ_CHECK(!drained || model.gaps_out[cpu][KTR_GAP_LEFT] == 0, "cpu %u", cpu);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < SITES; i++) {
		struct ktr_site *s = &sites[i];
		unsigned nargs = i % 7;

		snprintf(formats[i], sizeof(formats[i]), "%u:", i);
		for (unsigned k = 0; k < nargs; k++)
			strcat(formats[i], k % 2 == 1 ? " %s" : " %#lx");
		*s = (struct ktr_site){.file = "fuzz.c",
				       .func = "f",
				       .fmt = formats[i],
				       .classes = 1ull << i % 16,
				       .line = i,
				       .nargs = (uint8_t)nargs};
	}
	for (unsigned i = 0; i < STRINGS; i++)
		strings[i] = ktr_intern(texts[i]);
	ktr_host_cpus = CPUS;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		FUZZ_CHECK(ktr_cpu_init(cpu) == 0, "no memory");
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	size_t flip = (size_t)(fuzz_byte(&in) << 8 | fuzz_byte(&in)), cut = fuzz_byte(&in);
	uint8_t change = fuzz_byte(&in);
	bool drained = change % 2 == 0;

	begin();
	while (in.left > 0)
		step(&in);
	check_accounts();
	if (drained)
		drain(777);
	ktr_stream_close(&stream, !drained);
	drain(777);
	check_accounts();
	check_whole(drained);

	flip %= out_len;
	out[flip] ^= change != 0 ? change : 1;
	decode(false, out_len);
	FUZZ_CHECK(model.damages > 0, "byte %zu changed, and no damage", flip);
	out[flip] ^= change != 0 ? change : 1;
	/* The last byte is a delimiter. Without it the stream is still whole. */
	decode(false, out_len - 2 - cut * (out_len - 1) / 256);
	FUZZ_CHECK(model.damages > 0, "cut off at %zu of %zu, and no damage", cut, out_len);
	return 0;
}
