/*
 * ktr_said_help.h - the output of a decoder as text, one line for each call.
 *
 * Locking: none; one thread.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ktr/decode.h"
#include "ktr/wire.h"
#include "tests/unit/ktr_decode_help.h"

#define SAID_MAX  (1u << 20) /* bytes of text */
#define SAID_CPUS 4u         /* whose order of events is checked */

/* The decoder's output, one line for each call. */
struct said {
	char *text;
	size_t len;
	unsigned events, damages, gaps, ends;
	uint64_t lost, next[SAID_CPUS];
	bool disorder;
};

__attribute__((format(printf, 2, 3))) static inline void
said_say(struct said *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (s->len + 1000 < SAID_MAX)
		s->len += (size_t)vsnprintf(s->text + s->len, 1000, fmt, ap);
	va_end(ap);
}

static inline void
said_on_header(void *arg, const struct ktr_decode_header *h)
{
	said_say(arg, "header %s %s hz %llu ncpu %llu%s\n", h->arch, h->build,
		 (unsigned long long)h->hz, (unsigned long long)h->ncpu,
		 (h->flags & KTR_WIRE_START) != 0 ? " start" : "");
}

static inline void
said_on_event(void *arg, const struct ktr_decode_event *e)
{
	struct said *s = arg;
	char text[600];
	ktr_decode_text(text, sizeof(text), e);
	said_say(s, "cpu %u seq %llu ticks %llu tid %u %s\n", (unsigned)e->cpu,
		 (unsigned long long)e->seq, (unsigned long long)e->ticks, (unsigned)e->tid, text);
	s->events++;
	s->disorder |= e->cpu < SAID_CPUS && e->seq < s->next[e->cpu];
	if (e->cpu < SAID_CPUS)
		s->next[e->cpu] = e->seq + 1;
}

static inline void
said_on_gap(void *arg, const struct ktr_decode_gap *g)
{
	struct said *s = arg;
	said_say(s, "gap cpu %u first %llu count %llu %s\n", (unsigned)g->cpu,
		 (unsigned long long)g->first, (unsigned long long)g->count,
		 ktr_gap_reason_name(g->reason));
	s->gaps++;
	s->lost += g->count;
}

static inline void
said_on_mark(void *arg, uint64_t ticks)
{
	said_say(arg, "mark %llu\n", (unsigned long long)ticks);
}

static inline void
said_on_mask(void *arg, uint64_t classes)
{
	said_say(arg, "mask %#llx\n", (unsigned long long)classes);
}

static inline void
said_on_end(void *arg)
{
	((struct said *)arg)->ends++;
	said_say(arg, "end\n");
}

static inline void
said_on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	struct said *s = arg;
	s->damages++;
	said_say(s, "damage at %llu, %llu bytes: %s\n", (unsigned long long)offset,
		 (unsigned long long)bytes, text);
}

static const struct ktr_decoder_ops said_ops = {.realloc = decode_realloc,
						.header = said_on_header,
						.event = said_on_event,
						.gap = said_on_gap,
						.mark = said_on_mark,
						.mask = said_on_mask,
						.end = said_on_end,
						.damage = said_on_damage};

/* Decodes bytes in pieces of a size. The next call overwrites the text. */
static inline struct said
said_decode(const uint8_t *bytes, size_t len, size_t piece)
{
	static char text[SAID_MAX];
	struct said s = {.text = text};
	text[0] = '\0';
	struct ktr_decoder *d = ktr_decoder_create(&said_ops, &s);
	assert_non_null(d);
	for (size_t at = 0; at < len; at += piece)
		assert_int_equal(ktr_decoder_push(d, bytes + at,
						  len - at < piece ? len - at : piece),
				 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	return s;
}
