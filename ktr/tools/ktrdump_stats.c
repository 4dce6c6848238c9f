/*
 * ktrdump_stats.c - counts by class, site and CPU, and what was lost.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"

#define REASONS 5

struct site_count {
	const struct ktr_decode_site
	    *site; /* NULL: free, or (with events) sites that are not known */
	const struct ktr_decode_header *header;
	uint64_t events;
};

struct cpu_count {
	uint64_t events, lost[REASONS];
	int64_t first_ns, last_ns;
};

struct dump_stats {
	struct site_count *sites; /* by address, open addressing */
	size_t size, used;
	struct site_count unknown;
	uint64_t events, gaps;
	struct cpu_count cpu[KTR_DECODE_CPUS];
};

struct dump_stats *
dump_stats_create(void)
{
	return calloc(1, sizeof(struct dump_stats));
}

void
dump_stats_destroy(struct dump_stats *s)
{
	if (s == NULL)
		return;
	free(s->sites);
	free(s);
}

static struct site_count *
site_find(struct site_count *sites, size_t size, const struct ktr_decode_site *site)
{
	size_t i = (size_t)((uintptr_t)site >> 3) * 2654435761u % size;
	while (sites[i].site != NULL && sites[i].site != site)
		i = (i + 1) % size;
	return &sites[i];
}

static bool
sites_grow(struct dump_stats *s)
{
	size_t size = s->size == 0 ? 509 : s->size * 2 + 1;
	struct site_count *sites = calloc(size, sizeof(*sites));
	if (sites == NULL)
		return false;
	for (size_t i = 0; i < s->size; i++) {
		if (s->sites[i].site != NULL)
			*site_find(sites, size, s->sites[i].site) = s->sites[i];
	}
	free(s->sites);
	s->sites = sites;
	s->size = size;
	return true;
}

void
dump_stats_event(struct dump *d, const struct ktr_decode_event *e)
{
	struct dump_stats *s = d->stats;
	struct cpu_count *cpu = &s->cpu[e->cpu];
	int64_t ns = ktr_decode_ns(e->header, e->ticks);
	if (cpu->events++ == 0)
		cpu->first_ns = ns;
	cpu->last_ns = ns;
	s->events++;
	struct site_count *count = &s->unknown;
	if (e->site != NULL) {
		if (s->used * 2 >= s->size && !sites_grow(s)) {
			fprintf(stderr, "ktrdump: not enough memory\n");
			d->failed = true;
			d->status = DUMP_USAGE;
			return;
		}
		count = site_find(s->sites, s->size, e->site);
		s->used += count->site == NULL;
		count->site = e->site;
	}
	count->header = e->header;
	count->events++;
}

void
dump_stats_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	d->stats->gaps++;
	d->stats->cpu[g->cpu].lost[g->reason] += g->count;
}

static int
site_same(const struct ktr_decode_site *a, const struct ktr_decode_site *b)
{
	int order = strcmp(a->file, b->file);
	if (order == 0)
		order = a->line < b->line ? -1 : a->line > b->line;
	return order != 0 ? order : strcmp(a->fmt, b->fmt);
}

static int
by_place(const void *a, const void *b)
{
	const struct site_count *x = a, *y = b;
	return site_same(x->site, y->site);
}

static int
by_events(const void *a, const void *b)
{
	const struct site_count *x = a, *y = b;
	if (x->events != y->events)
		return x->events < y->events ? 1 : -1;
	return site_same(x->site, y->site);
}

/* Squeezes the table to its used rows; the same site of two streams becomes one. */
static size_t
sites_collect(struct dump_stats *s)
{
	size_t n = 0, rows = 0;
	for (size_t i = 0; i < s->size; i++) {
		if (s->sites[i].site != NULL)
			s->sites[n++] = s->sites[i];
	}
	if (n > 0)
		qsort(s->sites, n, sizeof(*s->sites), by_place);
	for (size_t i = 0; i < n; i++) {
		if (rows > 0 && site_same(s->sites[rows - 1].site, s->sites[i].site) == 0)
			s->sites[rows - 1].events += s->sites[i].events;
		else
			s->sites[rows++] = s->sites[i];
	}
	if (rows > 0)
		qsort(s->sites, rows, sizeof(*s->sites), by_events);
	return rows;
}

static void
print_classes(struct dump *d, size_t rows)
{
	const struct dump_stats *s = d->stats;
	fprintf(d->out, "\n%-24s %12s\n", "class", "events");
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t events = 0;
		char name[64] = "";
		for (size_t i = 0; i < rows; i++) {
			if ((s->sites[i].site->classes >> bit & 1) == 0)
				continue;
			events += s->sites[i].events;
			dump_classes(s->sites[i].header, 1ull << bit, name, sizeof(name));
		}
		if (events > 0)
			fprintf(d->out, "%-24s %12llu\n", name, (unsigned long long)events);
	}
}

static void
print_sites(struct dump *d, size_t rows)
{
	const struct dump_stats *s = d->stats;
	fprintf(d->out, "\n%12s %-40s %-24s %s\n", "events", "file and line", "function", "format");
	for (size_t i = 0; i < rows; i++) {
		const struct ktr_decode_site *site = s->sites[i].site;
		char place[300];
		snprintf(place, sizeof(place), "%s:%u", site->file, (unsigned)site->line);
		fprintf(d->out, "%12llu %-40s %-24s ", (unsigned long long)s->sites[i].events,
			place, site->func);
		dump_put_printable(d->out, site->fmt);
		putc('\n', d->out);
	}
	if (s->unknown.events > 0)
		fprintf(d->out, "%12llu %s\n", (unsigned long long)s->unknown.events,
			"(sites whose description was lost)");
}

static void
print_cpus(struct dump *d)
{
	const struct dump_stats *s = d->stats;
	fprintf(d->out, "\n%-4s %12s %12s %8s %8s %8s %8s %18s %18s\n", "cpu", "events",
		"overwritten", "corrupt", "cleared", "damaged", "left", "first", "last");
	for (unsigned i = 0; i < KTR_DECODE_CPUS; i++) {
		const struct cpu_count *c = &s->cpu[i];
		uint64_t lost = 0;
		for (unsigned r = 0; r < REASONS; r++)
			lost += c->lost[r];
		if (c->events == 0 && lost == 0)
			continue;
		fprintf(d->out, "%-4u %12llu %12llu %8llu %8llu %8llu %8llu", i,
			(unsigned long long)c->events,
			(unsigned long long)c->lost[KTR_GAP_OVERWRITTEN],
			(unsigned long long)c->lost[KTR_GAP_CORRUPT],
			(unsigned long long)c->lost[KTR_GAP_CLEARED],
			(unsigned long long)c->lost[KTR_GAP_DAMAGED],
			(unsigned long long)c->lost[KTR_GAP_LEFT]);
		fprintf(d->out, " %8lld.%09lld %8lld.%09lld\n",
			(long long)(c->first_ns / 1000000000),
			(long long)(c->first_ns % 1000000000), (long long)(c->last_ns / 1000000000),
			(long long)(c->last_ns % 1000000000));
	}
}

void
dump_stats_print(struct dump *d)
{
	struct dump_stats *s = d->stats;
	uint64_t lost = 0;
	for (unsigned i = 0; i < KTR_DECODE_CPUS; i++) {
		for (unsigned r = 0; r < REASONS; r++)
			lost += s->cpu[i].lost[r];
	}
	size_t rows = sites_collect(s);
	fprintf(d->out, "events %llu, sites %zu, lost %llu in %llu gaps\n",
		(unsigned long long)s->events, rows, (unsigned long long)lost,
		(unsigned long long)s->gaps);
	print_classes(d, rows);
	print_sites(d, rows);
	print_cpus(d);
}
