/*
 * dif_fuzz.h - for the fuzz targets of the program engine: runs all that was loaded, and checks the
 * promises: a program goes forward within its clause, so it takes at most as many steps as it has
 * instructions; each firing is counted once; and what comes out is well formed. The sanitizers see
 * any access outside of what programs may touch, since the engine's own memory is one allocation.
 *
 * libFuzzer itself takes most of the time, so each input is tried with FUZZ_VARIANTS changes too,
 * which depend on nothing but the input. How many programs ran is printed at the end.
 */
#pragma once

#include "kernel/dtrace/host/host.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/dif_help.h"

#define FUZZ_CPUS 2u

#define FUZZ_VARIANTS 15u
#define FUZZ_MOST     4096u /* bytes of an input */

static uint8_t fuzz_kernel[256], fuzz_user[256], fuzz_ram[3u << 16];
static uint64_t fuzz_loaded, fuzz_refused, fuzz_fired, fuzz_steps;

static void
fuzz_report(void)
{
	fprintf(
	    stderr,
	    "stat::programs: %lu images, %lu refused; %lu firings of the others, of %lu steps\n",
	    fuzz_loaded + fuzz_refused, fuzz_refused, fuzz_fired, fuzz_steps);
}

static inline void
fuzz_host(void)
{
	if (fuzz_loaded + fuzz_refused == 0)
		atexit(fuzz_report);
	for (unsigned i = 0; fuzz_kernel[1] == 0 && i < 256; i++)
		fuzz_kernel[i] = (uint8_t)(i % 40);
	memcpy(fuzz_user, fuzz_kernel, sizeof(fuzz_user)); /* programs may change it */
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
	void *piece[2];
	uint32_t size[2];

	dif_record_take(d, cpu, piece, size);
	for (unsigned p = 0; p < 2; p++)
		for (uint32_t at = 0; at < size[p];) {
			const struct dif_record *r = (const void *)((const uint8_t *)piece[p] + at);

			FUZZ_CHECK(r->layout < d->h.layouts.count, "layout %u", r->layout);
			FUZZ_CHECK(r->words <= 2 + (d->layouts[r->layout] + 7) / 8, "%u words",
				   r->words);
			at += 8u * r->words;
			FUZZ_CHECK(at <= size[p], "a record ends at %u of %u", at, size[p]);
		}
}

static inline void
fuzz_aggs(struct dif *d, unsigned cpu)
{
	void *entries = NULL;
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

static const struct dif_step *fuzz_last; /* the step before */

/* In the place of each operation. */
static void
fuzz_step(const struct ktr_firing *f, struct dif_cpu *c, const struct dif_at *at,
	  const struct dif_step *i)
{
	const struct dif_clause *clause = &at->d->clauses[at->clause];

	FUZZ_CHECK(i > fuzz_last && i < at->code + clause->length, "step %ld after %ld of %u",
		   i - at->code, fuzz_last - at->code, clause->length);
	fuzz_last = i;
	fuzz_steps++;
	dif_operations[i->op](f, c, at, i);
}

/* Fires all clauses, some times on each CPU. */
static inline void
fuzz_run(struct dif *d)
{
	struct dif_status s;
	uint64_t fired = 0;

	for (uint32_t i = 0; i < d->h.code.count; i++)
		d->steps[i].run = fuzz_step;
	for (unsigned n = 0; n < 3; n++)
		for (unsigned cpu = 0; cpu < FUZZ_CPUS; cpu++) {
			for (uint32_t i = 0; i < d->h.clauses.count; i++, fired++) {
				dif_host.time++;
				fuzz_last = dif_code(d, i) - 1;
				fire(d, cpu, i);
			}
			while (dif_spec_waits(d, cpu))
				dif_spec_clean(d, cpu);
			if (n > 0)
				fuzz_records(d, cpu);
			fuzz_aggs(d, cpu);
		}
	dif_status(d, &s);
	FUZZ_CHECK(s.fired == fired, "%lu of %lu", s.fired, fired);
	FUZZ_CHECK(s.fired == s.predicate_false + s.completed + s.faulted + s.dropped, "%lu",
		   s.fired);
	fuzz_fired += fired;
}

/* Tries an input and its variants. */
static inline int
fuzz_variants(const uint8_t *data, size_t size, void (*try_one)(const uint8_t *data, size_t size))
{
	static uint8_t copy[FUZZ_MOST];
	uint64_t random = size;

	try_one(data, size);
	if (size == 0 || size > sizeof(copy))
		return 0;
	for (size_t i = 0; i < size; i++)
		random = (random ^ data[i]) * 0x9e3779b97f4a7c15;
	for (unsigned n = 0; n < FUZZ_VARIANTS; n++) {
		memcpy(copy, data, size);
		for (unsigned changes = 1 + n % 5; changes > 0; changes--) {
			random = (random ^ random >> 32) * 0x9e3779b97f4a7c15 + 1;
			copy[(random >> 40) % size] = (uint8_t)(random >> 24);
		}
		try_one(copy, size);
	}
	return 0;
}
