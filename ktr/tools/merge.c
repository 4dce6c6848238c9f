/*
 * merge.c - puts events in order: one queue for each CPU, whose events are in order already. The
 * oldest of the queues' first events is passed on next.
 *
 * A queue is a list of blocks of records. Its first and last block are in memory. When too many
 * blocks are in memory, a block that is full is written to a file, and read back when it becomes
 * the first of its queue.
 *
 * A record is an event or a gap. It includes the event's texts that the decoder does not keep.
 * Locking: none.
 */
#include "ktr/tools/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/str.h"

#define BLOCK_BYTES 32768u
#define BLOCKS_MAX  256u /* in memory; when there are more, each queue keeps two */

struct record {
	uint32_t size; /* in the block; a multiple of 8 */
	bool is_gap;
	uint8_t passing; /* bit N: strings[N] of the event is in texts[] */
	union {
		struct ktr_decode_event event;
		struct ktr_decode_gap gap;
	};
	char texts[];
};
_Static_assert(BLOCK_BYTES >= sizeof(struct record) + 6 * KTR_WIRE_FRAME_MAX, "the largest record");

struct block {
	struct block *next;
	size_t used;
	long at;        /* in the file, if it is there */
	uint8_t *bytes; /* NULL: it is in the file */
};

struct queue {
	struct block *first, *last; /* NULL: empty */
	size_t read;                /* bytes of the first block that were passed on */
};

struct merge {
	struct merge_ops ops;
	void *arg;
	int error;                 /* as merge_error() */
	unsigned cpus;             /* queues from this number on are empty */
	size_t in_memory, in_file; /* blocks */
	uint8_t *spare;            /* for the next block: the bytes of one that was passed on */
	FILE *file;                /* NULL: not needed yet */
	long file_end;
	struct queue queues[KTR_DECODE_CPUS];
};

struct merge *
merge_create(const struct merge_ops *ops, void *arg)
{
	struct merge *m = calloc(1, sizeof(*m));
	if (m != NULL) {
		m->ops = *ops;
		m->arg = arg;
	}
	return m;
}

/* Keeps why a block could not be made, written or read. */
static void
merge_failed(struct merge *m)
{
	if (m->error == 0)
		m->error = errno != 0 ? errno : EIO;
}

static bool
block_fill(struct merge *m, struct block *b)
{
	b->bytes = m->spare != NULL ? m->spare : malloc(BLOCK_BYTES);
	m->spare = NULL;
	m->in_memory += b->bytes != NULL;
	return b->bytes != NULL;
}

static void
block_empty(struct merge *m, struct block *b)
{
	if (b->bytes == NULL)
		return;
	free(m->spare);
	m->spare = b->bytes;
	b->bytes = NULL;
	m->in_memory--;
}

#ifdef KTRDUMP_DEFAULT_INPUT
/* In the guest, temporary files are in memory, too: blocks wait where they are. */
static bool
block_write(struct merge *m, struct block *b)
{
	return true;
}
#else
static bool
block_write(struct merge *m, struct block *b)
{
	if (m->file == NULL)
		m->file = tmpfile();
	if (m->file == NULL || fseek(m->file, m->file_end, SEEK_SET) != 0 ||
	    fwrite(b->bytes, 1, b->used, m->file) != b->used)
		return false;
	b->at = m->file_end;
	m->file_end += (long)b->used;
	m->in_file++;
	block_empty(m, b);
	return true;
}
#endif

static bool
block_read(struct merge *m, struct block *b)
{
	if (b->bytes != NULL)
		return true;
	if (!block_fill(m, b) || fseek(m->file, b->at, SEEK_SET) != 0 ||
	    fread(b->bytes, 1, b->used, m->file) != b->used)
		return false;
	if (--m->in_file == 0)
		m->file_end = 0;
	return true;
}

/* Adds a block to the queue. NULL: that is not possible. */
static struct block *
queue_grow(struct merge *m, struct queue *q)
{
	struct block *last = q->last, *b = NULL;
	if (last == NULL || last == q->first || m->in_memory < BLOCKS_MAX || block_write(m, last))
		b = calloc(1, sizeof(*b));
	if (b == NULL || !block_fill(m, b)) {
		merge_failed(m);
		free(b);
		return NULL;
	}
	if (last != NULL)
		last->next = b;
	else
		q->first = b;
	q->last = b;
	return b;
}

/* Frees the first block, all of which was passed on. */
static bool
queue_advance(struct merge *m, struct queue *q)
{
	struct block *done = q->first;
	q->first = done->next;
	q->read = 0;
	if (q->first == NULL)
		q->last = NULL;
	block_empty(m, done);
	free(done);
	return q->first == NULL || block_read(m, q->first);
}

void *
merge_arg(const struct merge *m)
{
	return m->arg;
}

int
merge_error(const struct merge *m)
{
	return m->error;
}

void
merge_destroy(struct merge *m)
{
	if (m == NULL)
		return;
	for (unsigned i = 0; i < m->cpus; i++) {
		for (struct block *b = m->queues[i].first, *next; b != NULL; b = next) {
			next = b->next;
			free(b->bytes);
			free(b);
		}
	}
	if (m->file != NULL)
		fclose(m->file);
	free(m->spare);
	free(m);
}

/* Adds a record with `texts` bytes of texts. NULL: there is no room. */
static inline struct record *
record_add(struct merge *m, unsigned cpu, size_t texts)
{
	struct queue *q = &m->queues[cpu];
	size_t size = (sizeof(struct record) + texts + 7) & ~(size_t)7;
	struct block *b = q->last;
	if (b == NULL || BLOCK_BYTES - b->used < size)
		b = queue_grow(m, q);
	if (b == NULL)
		return NULL;
	if (cpu >= m->cpus)
		m->cpus = cpu + 1;
	struct record *r = (struct record *)(b->bytes + b->used);
	b->used += size;
	r->size = (uint32_t)size;
	r->passing = 0;
	return r;
}

void
merge_event(void *merge, const struct ktr_decode_event *e)
{
	unsigned passing = 0;
	size_t texts = 0, lengths[6];
	for (unsigned left = e->site != NULL ? e->site->strings : 0; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		if (!ktr_decode_passing(e->args[i]) || e->strings[i] == NULL)
			continue;
		passing |= 1u << i;
		lengths[i] = strlen(e->strings[i]) + 1;
		texts += lengths[i];
	}
	struct record *r = record_add(merge, e->cpu, texts);
	if (r == NULL)
		return;
	r->is_gap = false;
	r->passing = (uint8_t)passing;
	r->event = *e;
	char *to = r->texts;
	for (; passing != 0; passing &= passing - 1) {
		unsigned i = (unsigned)__builtin_ctz(passing);
		ktr_copy(to, e->strings[i], lengths[i]);
		to += lengths[i];
	}
}

void
merge_gap(void *merge, const struct ktr_decode_gap *gap)
{
	struct record *r = record_add(merge, gap->cpu, 0);
	if (r == NULL)
		return;
	r->is_gap = true;
	r->gap = *gap;
}

static void
record_hand_on(struct merge *m, struct record *r)
{
	if (r->is_gap) {
		m->ops.gap(m->arg, &r->gap);
		return;
	}
	const char *text = r->texts;
	for (unsigned left = r->passing; left != 0; left &= left - 1) {
		const char **string = &r->event.strings[__builtin_ctz(left)];
		*string = text;
		if ((left & (left - 1)) != 0)
			text += strlen(text) + 1;
	}
	m->ops.event(m->arg, &r->event);
}

static inline struct record *
queue_front(const struct queue *q)
{
	return (struct record *)(q->first->bytes + q->read);
}

static inline uint64_t
record_ticks(const struct record *r)
{
	return r->is_gap ? r->gap.from_ticks : r->event.ticks;
}

/* Passes on the queue's records before `until`; if inclusive, also those at that time. */
static void
queue_release(struct merge *m, struct queue *q, uint64_t until, bool inclusive)
{
	while (q->first != NULL) {
		struct record *r = queue_front(q);
		uint64_t ticks = record_ticks(r);
		if (ticks > until || (ticks == until && !inclusive))
			return;
		record_hand_on(m, r);
		q->read += r->size;
		if (q->read == q->first->used && !queue_advance(m, q)) {
			merge_failed(m);
			return;
		}
	}
}

/*
 * Passes on all records, or all before a time. The queue with the oldest record goes on up to the
 * oldest record of the others. At the same time, the CPU with the lower number goes first.
 */
static void
merge_release(struct merge *m, bool all, uint64_t before)
{
	while (m->error == 0) {
		struct queue *oldest = NULL, *second = NULL;
		uint64_t ticks = 0, second_ticks = 0;
		for (unsigned i = 0; i < m->cpus; i++) {
			struct queue *q = &m->queues[i];
			if (q->first == NULL)
				continue;
			uint64_t t = record_ticks(queue_front(q));
			if (oldest == NULL || t < ticks) {
				second = oldest;
				second_ticks = ticks;
				oldest = q;
				ticks = t;
			} else if (second == NULL || t < second_ticks) {
				second = q;
				second_ticks = t;
			}
		}
		if (oldest == NULL || (!all && ticks >= before))
			return;
		uint64_t until = second == NULL ? UINT64_MAX : second_ticks;
		bool inclusive = second == NULL || oldest < second;
		if (!all && until >= before) {
			until = before;
			inclusive = false;
		}
		queue_release(m, oldest, until, inclusive);
	}
}

void
merge_mark(void *merge, uint64_t ticks)
{
	merge_release(merge, false, ticks);
}

void
merge_flush(void *merge)
{
	merge_release(merge, true, 0);
}
