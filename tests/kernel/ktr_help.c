/*
 * ktr_help.c - prepares the log for a test, walks the rings, reads a stream's frames.
 * Locking: tests run one at a time.
 */
#include "tests/kernel/ktr_help.h"

#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/mm/kmap.h"
#include "kernel/sync/pcpu.h"
#include "ktr/crc32c.h"
#include "ktr/wire.h"
#include "tests/kernel/ktest.h"

#define STREAM_MAX (8u << 20)

void
ktr_test_begin(unsigned entries)
{
	ktr_mask_set(0);
	ktr_cpumask_set(~0ull);
	KT_EQ(ktr_verbose_set(0), 0);
	KT_EQ(ktr_resize(entries), 0);
	ktr_clear();
}

void
ktr_test_end(void)
{
	ktr_test_begin(KTR_ENTRIES_DEFAULT);
}

void
ktr_test_accounting(void)
{
	struct ktr_stats s;

	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		KT_ASSERT(ktr_log_stats_locked(&ktr_main, cpu, &s)); /* nobody resizes the rings */
		KT_EQ(s.recorded, s.delivered + s.resident + s.overwritten);
	}
}

void
ktr_test_sum(struct ktr_stats *sum)
{
	struct ktr_stats s;

	*sum = (struct ktr_stats){0};
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		KT_ASSERT(ktr_log_stats_locked(&ktr_main, cpu, &s)); /* nobody resizes the rings */
		sum->recorded += s.recorded;
		sum->delivered += s.delivered;
		sum->resident += s.resident;
		sum->overwritten += s.overwritten;
		sum->suppressed += s.suppressed;
	}
}

void
ktr_test_each(void (*fn)(unsigned cpu, const struct ktr_entry *e, void *arg), void *arg)
{
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		uint64_t tail, head, before = 0;
		struct ktr_entry e;

		KT_ASSERT(ktr_ring_window(cpu, &tail, &head));
		for (uint64_t seq = tail; seq < head; seq++) {
			KT_EQ(ktr_ring_read(cpu, seq, &e), KTR_READ_OK);
			KT_GE(e.ticks, before);
			before = e.ticks;
			fn(cpu, &e, arg);
		}
	}
}

/* Decodes COBS in place. Returns the frame's length; 0: malformed. */
static size_t
unstuff(uint8_t *p, size_t len)
{
	size_t in = 0, out = 0;

	while (in < len) {
		uint8_t code = p[in++];

		if (code == 0 || in + code - 1 > len)
			return 0;
		for (uint8_t i = 1; i < code; i++)
			p[out++] = p[in++];
		if (code < 0xff && in < len)
			p[out++] = 0;
	}
	return out;
}

static uint64_t
varint(const uint8_t **p)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t b = *(*p)++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if ((b & 0x80) == 0)
			break;
	}
	return v;
}

static void
check_frame(struct ktr_test_stream *s, uint8_t *p, size_t len)
{
	uint32_t crc = 0;
	const uint8_t *body = p + 3;

	len = unstuff(p, len);
	for (unsigned i = 0; i < 4 && len >= KTR_WIRE_OVERHEAD; i++)
		crc |= (uint32_t)p[len - 4 + i] << 8 * i;
	if (len < KTR_WIRE_OVERHEAD || len != (size_t)(p[1] | p[2] << 8) + KTR_WIRE_OVERHEAD ||
	    crc != ktr_crc32c(p, len - 4)) {
		s->damaged++;
		return;
	}
	switch (p[0]) {
	case KTR_WIRE_HEADER:
		s->headers++;
		break;
	case KTR_WIRE_BATCH:
		s->batches++;
		varint(&body); /* CPU */
		varint(&body); /* first */
		s->events += varint(&body);
		break;
	case KTR_WIRE_LOSS:
		varint(&body);
		varint(&body);
		s->lost += varint(&body);
		break;
	case KTR_WIRE_TRUNCATED:
		s->truncated++;
		break;
	case KTR_WIRE_END:
		s->ends++;
		break;
	}
}

void
ktr_test_read_stream(const char *path, struct ktr_test_stream *s)
{
	struct file *f;
	int64_t n;

	*s = (struct ktr_test_stream){.size = STREAM_MAX, .data = kmap_alloc(STREAM_MAX)};
	KT_ASSERT(s->data != NULL);
	KT_EQ(file_open(path, O_RDONLY, 0, &f), 0);
	while ((n = file_read(f, s->data + s->len, s->size - s->len)) > 0)
		s->len += (size_t)n;
	file_unref(f);
	KT_EQ(n, 0);
	KT_LT(s->len, s->size);
	/* The end of the data ends a frame, too. */
	for (size_t at = 0, start = 0; at <= s->len; at++) {
		if (at < s->len && s->data[at] != 0)
			continue;
		if (at > start)
			check_frame(s, s->data + start, at - start);
		start = at + 1;
	}
	KT_GT(s->len, 0);
}

void
ktr_test_free_stream(struct ktr_test_stream *s)
{
	kmap_free(s->data);
}
