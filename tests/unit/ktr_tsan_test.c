/*
 * ktr_tsan_test.c - four writers, each on its own CPU, two readers of the rings, and a stream, all
 * at the same time.
 *
 * It checks what is read. Under ThreadSanitizer (`make sanitized-tests`) it also detects every
 * unordered access by two threads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/decode.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"

#define WRITERS 4u
#define READERS 2u
#define EVENTS  20000u /* of each writer */
#define SEEN    200u   /* whole entries that each reader must get while writers write */

static unsigned writing, reading; /* atomic: threads of each kind that are still running */

struct reader {
	pthread_t thread;
	uint64_t seen, wrong;
};

/* Word i of a writer's event n. */
static uint64_t
word(uint32_t writer, uint64_t n, unsigned i)
{
	return (n << 8 | writer) * 0x9e3779b97f4a7c15u + i;
}

/* Checks an entry or a decoded event, whose first parameter is its number. */
static bool
words_right(uint32_t cpu, uint32_t tid, const uint64_t *args)
{
	bool right = tid == cpu + 1;
	for (unsigned i = 1; i < KTR_MAXARGS; i++)
		right = right && args[i] == word(tid, args[0], i);
	return right;
}

/* Writes EVENTS events, and goes on while a reader needs more. */
static void *
write_events(void *arg)
{
	ktr_host_cpu = (unsigned)(uintptr_t)arg;
	uint32_t id = ktr_host_tid = ktr_host_cpu + 1;
	assert_true(ktr_host_enter());
	for (uint64_t n = 0; n < EVENTS || __atomic_load_n(&reading, __ATOMIC_RELAXED) > 0; n++) {
		CTR6(KTR_GEN, "%lu %lx %lx %lx %lx %lx", n, word(id, n, 1), word(id, n, 2),
		     word(id, n, 3), word(id, n, 4), word(id, n, 5));
		ktr_host_pass();
	}
	ktr_host_leave();
	__atomic_fetch_sub(&writing, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Takes no lock, since nobody resizes. Newest first, since old events are overwritten meanwhile. */
static void
read_ring(struct reader *r, unsigned cpu)
{
	uint64_t tail, head;
	struct ktr_entry e;
	ktr_ring_window(cpu, &tail, &head);
	for (uint64_t seq = head; seq > tail; seq--) {
		if (ktr_ring_read(cpu, seq - 1, &e) != KTR_READ_OK)
			continue;
		r->seen++;
		r->wrong += !words_right(cpu, e.tid, e.args);
	}
}

static void *
read_rings(void *arg)
{
	struct reader *r = arg;
	while (r->seen < SEEN || __atomic_load_n(&writing, __ATOMIC_ACQUIRE) > 0) {
		bool few = r->seen < SEEN;
		for (unsigned cpu = 0; cpu < WRITERS; cpu++)
			read_ring(r, cpu);
		if (few && r->seen >= SEEN)
			__atomic_fetch_sub(&reading, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static struct {
	uint64_t events[WRITERS], wrong, lost, damages;
} streamed;

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	streamed.events[e->cpu]++;
	streamed.wrong += e->nargs != KTR_MAXARGS || !words_right(e->cpu, e->tid, e->args);
}

static void
on_gap(void *arg, const struct ktr_decode_gap *gap)
{
	streamed.lost += gap->count;
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	print_message("# damage at %llu, %llu bytes: %s\n", (unsigned long long)offset,
		      (unsigned long long)bytes, text);
	streamed.damages++;
}

static struct ktr_stream stream;

/* Runs a pass and passes its bytes to the decoder. */
static void
drain(struct ktr_decoder *d)
{
	static uint8_t piece[4096];
	size_t n;
	while ((n = ktr_stream_read(&stream, piece, sizeof(piece))) > 0)
		assert_int_equal(ktr_decoder_push(d, piece, n), 0);
}

static void
check_accounts(const struct ktr_stats *before)
{
	uint64_t lost = 0;
	for (unsigned cpu = 0; cpu < WRITERS; cpu++) {
		struct ktr_stats s;
		assert_true(ktr_stats_get(cpu, &s));
		assert_true(s.recorded - before[cpu].recorded >= EVENTS);
		assert_int_equal(s.resident, 0);
		assert_int_equal(s.delivered - before[cpu].delivered, streamed.events[cpu]);
		assert_int_equal(s.recorded, s.delivered + s.overwritten);
		lost += s.overwritten - before[cpu].overwritten;
	}
	assert_int_equal(lost, streamed.lost);
	assert_int_equal(streamed.damages, 0);
	assert_int_equal(streamed.wrong, 0);
}

static void
run(unsigned entries)
{
	static const struct ktr_decoder_ops ops = {.realloc = decode_realloc,
						   .event = on_event,
						   .gap = on_gap,
						   .damage = on_damage};
	struct reader readers[READERS] = {0};
	pthread_t writers[WRITERS];
	struct ktr_stats before[WRITERS];
	ktr_host_cpus = WRITERS;
	for (unsigned cpu = 0; cpu < WRITERS; cpu++)
		assert_int_equal(ktr_cpu_init(cpu), 0);
	assert_int_equal(ktr_resize(entries), 0);
	ktr_mask_set(KTR_GEN);
	for (unsigned cpu = 0; cpu < WRITERS; cpu++)
		assert_true(ktr_stats_get(cpu, &before[cpu]));
	memset(&streamed, 0, sizeof(streamed));
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);
	ktr_stream_open(&stream, KTR_STREAM_ACCOUNT);
	writing = WRITERS;
	reading = READERS;
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_rings, &readers[i]),
				 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, write_events, (void *)i), 0);
	while (__atomic_load_n(&writing, __ATOMIC_ACQUIRE) > 0)
		drain(d);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	for (unsigned i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		assert_true(readers[i].seen >= SEEN);
		assert_int_equal(readers[i].wrong, 0);
	}
	drain(d);
	ktr_stream_close(&stream, false);
	drain(d);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	check_accounts(before);
}

static void
rings_of_4_are_read_whole_while_four_write(void **state)
{
	run(4);
}

static void
rings_of_16_are_read_whole_while_four_write(void **state)
{
	run(16);
}

static void
rings_of_1024_are_read_whole_while_four_write(void **state)
{
	run(1024);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rings_of_4_are_read_whole_while_four_write),
	    cmocka_unit_test(rings_of_16_are_read_whole_while_four_write),
	    cmocka_unit_test(rings_of_1024_are_read_whole_while_four_write),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
