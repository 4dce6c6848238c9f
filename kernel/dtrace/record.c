/*
 * record.c - the records for the consumer: buffers by three policies, and speculations, whose
 * records wait in buffers of their own.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

/* Room for a record in a ring: overwrites the oldest ones. */
static bool
dif_ring_room(struct dif_buffer *b, uint32_t size, uint32_t need)
{
	if (need > size)
		return false;
	for (;;) {
		if (b->end == 0) {
			if (need <= size - b->head)
				return true;
			b->end = b->head; /* go on at the front */
			b->head = 0;
		}
		while (b->tail < b->end && need > b->tail - b->head)
			b->tail += 8u * ((struct dif_record *)(b->base + b->tail))->words;
		if (b->tail < b->end)
			return true;
		b->end = 0; /* nothing older is left after head */
		b->tail = 0;
	}
}

/* Takes bytes for one record in the consumer's buffer. NULL: no room, which is counted. */
static void *
dif_reserve(struct dif *d, struct dif_cpu *c, uint32_t need)
{
	struct dif_buffer *b = &c->buf;

	if (d->h.options.policy == DIF_RING ? !dif_ring_room(b, b->size, need)
					    : need > b->size - b->head) {
		c->buf_drops++;
		if (d->h.options.policy == DIF_FILL)
			dif_drain(d, 0);
		return NULL;
	}
	b->head += need;
	return b->base + b->head - need;
}

static void *
reserve_speculative(struct dif_run *r, uint32_t need)
{
	if (need > r->d->h.options.specsize - r->spec->head) {
		r->c->spec_drops++;
		return NULL;
	}
	r->spec->head += need;
	return r->spec->base + r->spec->head - need;
}

bool
dif_record_open(struct dif_run *r, uint32_t layout)
{
	uint32_t need = (uint32_t)(sizeof(struct dif_record) + r->d->layouts[layout] + 7) & ~7u;

	r->record = r->spec != NULL ? reserve_speculative(r, need) : dif_reserve(r->d, r->c, need);
	if (r->record == NULL)
		return false;
	*r->record = (struct dif_record){(uint16_t)layout, (uint16_t)(need / 8), r->at->probe,
					 dif_port_stamp()};
	return true;
}

/*
 * Cuts the open record to so many words. The rest of its room is given back, unless its speculation
 * was discarded meanwhile and has lost all of it.
 */
static void
record_cut(struct dif_run *r, uint32_t words)
{
	const uint8_t *base = r->spec != NULL ? r->spec->base : r->c->buf.base;
	uint32_t *head = r->spec != NULL ? &r->spec->head : &r->c->buf.head;

	if ((const uint8_t *)r->record + 8u * r->record->words == base + *head)
		*head -= 8u * (r->record->words - words);
	r->record->words = (uint16_t)words;
}

void
dif_record_undo(struct dif_run *r)
{
	if (r->record != NULL)
		record_cut(r, 0);
	r->record = NULL;
}

bool
dif_record_str(struct dif_run *r, uint8_t *to, uint64_t addr, uint32_t size)
{
	long n = addr == 0 ? 0 : dif_copy_str(r, (char *)to, addr, size);
	size_t at = (size_t)(to - (uint8_t *)r->record), needed;
	bool last; /* after the string's room comes nothing but what rounds the layout up */

	if (n < 0)
		return false;
	to[n] = '\0';
	needed = (at + (size_t)n + 8) / 8;
	last = (at + size + 7) / 8 ==
	       sizeof(struct dif_record) / 8 + (r->d->layouts[r->record->layout] + 7) / 8;
	if (last && needed < r->record->words)
		record_cut(r, (uint32_t)needed);
	return true;
}

void
dif_record_stack(struct dif_run *r, bool user, uint8_t *to, uint32_t words)
{
	uint64_t *w = (uint64_t *)to;
	uint32_t n;

	if (user) {
		*w++ = 0;
		words--;
		n = dif_port_ustack(r->f, w - 1, w, words);
	} else {
		n = dif_port_stack(r->f, w, words);
	}
	if (n < words)
		w[n] = 0;
}

void
dif_record_take(struct dif *d, unsigned cpu, void *piece[2], uint32_t size[2])
{
	struct dif_buffer *b = &d->cpu[cpu].buf, old = *b;

	piece[0] = old.base + old.tail;
	size[0] = (old.end != 0 ? old.end : old.head) - old.tail;
	piece[1] = old.base;
	size[1] = old.end != 0 ? old.head : 0;
	*b = (struct dif_buffer){.base = old.base, .size = old.size, .spare = old.spare};
	if (d->h.options.policy == DIF_SWITCH) {
		b->base = old.spare;
		b->spare = old.base;
	}
}

void
dif_record_times(void *piece, uint32_t size)
{
	for (uint32_t at = 0; at < size;) {
		struct dif_record *r = (struct dif_record *)((uint8_t *)piece + at);

		r->time = dif_port_ns(r->time);
		at += 8u * r->words;
	}
}

/*
 * Finds a speculation by its number. *s becomes NULL for 0, the number that speculation() returns
 * if none is free. False if there is no such number.
 */
static bool
spec_get(struct dif_run *r, uint64_t spec, struct dif_spec **s)
{
	if (spec > r->d->h.options.nspec)
		return dif_fail(r, DIF_FAULT_ILLOP, 0);
	*s = spec != 0 ? &r->d->specs[spec - 1] : NULL;
	return true;
}

uint64_t
dif_speculation(struct dif_run *r)
{
	bool busy = false;

	for (uint32_t i = 0; i < r->d->h.options.nspec; i++) {
		struct dif_spec *s = &r->d->specs[i];
		uint64_t state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);

		if (state % 4 != DIF_SPEC_FREE) {
			busy |= state % 4 > DIF_SPEC_ACTIVE;
			continue;
		}
		if (__atomic_compare_exchange_n(&s->state, &state, state + 4 + DIF_SPEC_ACTIVE,
						false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return i + 1;
	}
	if (busy)
		r->c->spec_busy++;
	else
		r->c->spec_full++;
	return 0;
}

bool
dif_speculate(struct dif_run *r, uint64_t spec)
{
	struct dif_spec *s;
	uint64_t state;
	struct dif_spec_buffer *b;

	if (!spec_get(r, spec, &s))
		return false;
	state = s != NULL ? __atomic_load_n(&s->state, __ATOMIC_RELAXED) : 0;
	r->record = NULL;
	r->spec = NULL;
	if (state % 4 != DIF_SPEC_ACTIVE)
		return true;
	b = r->spec = &r->c->specs[spec - 1];
	if (b->life != (uint32_t)(state >> 2)) {
		b->life = (uint32_t)(state >> 2);
		b->head = 0;
	}
	/* seq_cst: who ends it sees this CPU, or this CPU sees that it has ended */
	__atomic_or_fetch(&s->cpus, 1ul << (r->c - r->d->cpu), __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->state, __ATOMIC_SEQ_CST) != state) {
		r->spec = NULL;
		r->c->spec_drops++;
	}
	return true;
}

/* Does on this CPU what the speculation's state says. The last CPU frees it. */
static void
spec_finish(struct dif *d, unsigned cpu, struct dif_spec *s, uint64_t state)
{
	struct dif_cpu *c = &d->cpu[cpu];
	struct dif_spec_buffer *b = &c->specs[s - d->specs];
	uint64_t now = dif_port_stamp(); /* records of a buffer are in the order of time */

	if (state % 4 == DIF_SPEC_COMMITTED && b->life == (uint32_t)(state >> 2)) {
		for (uint32_t at = 0; at < b->head;) {
			struct dif_record *rec = (struct dif_record *)(b->base + at);
			void *to = dif_reserve(d, c, 8u * rec->words);

			rec->time = now;
			if (to != NULL)
				memcpy(to, rec, 8u * rec->words);
			at += 8u * rec->words;
		}
	}
	b->head = 0;
	/* seq_cst: as in dif_speculate() */
	if (__atomic_and_fetch(&s->cpus, ~(1ul << cpu), __ATOMIC_SEQ_CST) == 0)
		__atomic_compare_exchange_n(&s->state, &state, state & ~3ul, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool
dif_spec_end(struct dif_run *r, uint64_t spec, enum dif_spec_state how)
{
	struct dif_spec *s;
	uint64_t state;

	if (!spec_get(r, spec, &s))
		return false;
	state = s != NULL ? __atomic_load_n(&s->state, __ATOMIC_RELAXED) : 0;
	if (state % 4 == DIF_SPEC_ACTIVE &&
	    __atomic_compare_exchange_n(&s->state, &state, (state & ~3ul) | how, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		spec_finish(r->d, (unsigned)(r->c - r->d->cpu), s, (state & ~3ul) | how);
	return true;
}

bool
dif_spec_waits(const struct dif *d, unsigned cpu)
{
	for (uint32_t i = 0; i < d->h.options.nspec; i++) {
		const struct dif_spec *s = &d->specs[i];

		if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) % 4 > DIF_SPEC_ACTIVE &&
		    (__atomic_load_n(&s->cpus, __ATOMIC_RELAXED) >> cpu & 1) != 0)
			return true;
	}
	return false;
}

void
dif_spec_clean(struct dif *d, unsigned cpu)
{
	for (uint32_t i = 0; i < d->h.options.nspec; i++) {
		struct dif_spec *s = &d->specs[i];
		uint64_t state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);

		if (state % 4 > DIF_SPEC_ACTIVE &&
		    (__atomic_load_n(&s->cpus, __ATOMIC_RELAXED) >> cpu & 1) != 0) {
			spec_finish(d, cpu, s, state);
			return;
		}
	}
}
