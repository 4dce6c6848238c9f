/*
 * dif_fuzz.h - for the fuzz targets of the program engine: runs all that was loaded, and checks the
 * promises: each firing is counted once, and what comes out is well formed. The sanitizers see any
 * access outside of what programs may touch, since the engine's own memory is one allocation.
 */
#pragma once

#include "kernel/dtrace/host/host.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/dif_help.h"

#define FUZZ_CPUS 2u

static uint8_t fuzz_kernel[256], fuzz_user[256], fuzz_ram[3u << 16];

static inline void
fuzz_host(void)
{
	for (unsigned i = 0; i < 256; i++)
		fuzz_kernel[i] = fuzz_user[i] = (uint8_t)(i % 40);
	dif_host = (struct dif_host){.kernel = {0xffff800000000000, fuzz_kernel, 256},
				     .user = {0x1000, fuzz_user, 256},
				     .thread = 3,
				     .pid = 4,
				     .frames = 20,
				     .uframes = 20,
				     .mutex = 1,
				     .alloc_left = -1};
	dif_host.builtin[DIF_B_EXECNAME] = 0xffff800000000041;
	/* RAM, of which most may be read without a check: a short string at its beginning */
	fuzz_ram[0] = 'a';
	dif_host.builtin[DIF_B_CURPROC] = (uintptr_t)fuzz_ram;
	dif_port_direct[0] = (struct dif_port_range){(uintptr_t)fuzz_ram, sizeof(fuzz_ram)};
	dif_port_quick_range = (struct dif_port_range){(uintptr_t)fuzz_ram, 2u << 16};
}

static inline void
fuzz_records(struct dif *d, unsigned cpu)
{
	const void *piece[2];
	uint32_t size[2];

	dif_record_take(d, cpu, piece, size);
	for (unsigned p = 0; p < 2; p++)
		for (uint32_t at = 0; at < size[p];) {
			const struct dif_record *r = (const void *)((const uint8_t *)piece[p] + at);

			FUZZ_CHECK(r->layout < d->h.layouts.count, "layout %u", r->layout);
			FUZZ_CHECK(r->words == 2 + (d->layouts[r->layout] + 7) / 8, "%u words",
				   r->words);
			at += 8u * r->words;
			FUZZ_CHECK(at <= size[p], "a record ends at %u of %u", at, size[p]);
		}
}

static inline void
fuzz_aggs(struct dif *d, unsigned cpu)
{
	const void *entries = NULL;
	uint32_t size = dif_agg_take(d, cpu, &entries);

	for (uint32_t at = 0; at < size;) {
		const struct dif_entry *e = (const void *)((const uint8_t *)entries + at);

		FUZZ_CHECK(e->agg < d->h.aggs.count, "aggregation %u", e->agg);
		FUZZ_CHECK((e->key_words != 0) == (d->aggs[e->agg].keys != 0), "keys");
		FUZZ_CHECK(e->value_words == d->aggregations[e->agg].value_words, "%u words",
			   e->value_words);
		at += (uint32_t)sizeof(*e) + 8u * (e->key_words + e->value_words);
		FUZZ_CHECK(at <= size, "an entry ends at %u of %u", at, size);
	}
	dif_agg_done(d, cpu);
}

/* Fires all clauses, some times on each CPU. */
static inline void
fuzz_run(struct dif *d)
{
	struct dif_status s;
	uint64_t fired = 0;

	for (unsigned n = 0; n < 3; n++)
		for (unsigned cpu = 0; cpu < FUZZ_CPUS; cpu++) {
			for (uint32_t i = 0; i < d->h.clauses.count; i++, fired++) {
				dif_host.time++;
				fire(d, cpu, i);
			}
			dif_spec_clean(d, cpu);
			if (n > 0)
				fuzz_records(d, cpu);
			fuzz_aggs(d, cpu);
		}
	dif_status(d, &s);
	FUZZ_CHECK(s.fired == fired, "%lu of %lu", s.fired, fired);
	FUZZ_CHECK(s.fired == s.predicate_false + s.completed + s.faulted + s.dropped, "%lu",
		   s.fired);
}
