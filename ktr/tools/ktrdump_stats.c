/*
 * ktrdump_stats.c - counts by class, site and CPU, and what was lost.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"

#define REASONS 5

struct site_count {
	const struct ktr_decode_site *site; /* NULL: those that are not known */
	const struct ktr_decode_header *header;
	uint64_t events;
};

struct cpu_count {
	uint64_t events, lost[REASONS];
	int64_t first_ns, last_ns;
};

struct dump_stats {
	struct site_count *sites;
	size_t count, room;
	struct ktr_map numbers; /* of sites by their addresses, + 1 */
	struct site_count unknown;
	uint64_t events, gaps, parts;
	struct cpu_count cpu[KTR_DECODE_CPUS];
};

struct dump_stats *
dump_stats_create(void)
{
	struct dump_stats *s = calloc(1, sizeof(*s));
	if (s != NULL)
		s->numbers = memory_map();
	return s;
}

void
dump_stats_destroy(struct dump_stats *s)
{
	if (s == NULL)
		return;
	ktr_map_free(&s->numbers);
	free(s->sites);
	free(s);
}

/* NULL: no memory. */
static struct site_count *
site_count_of(struct dump_stats *s, const struct ktr_decode_site *site)
{
	if (site == NULL)
		return &s->unknown;
	uintptr_t number = (uintptr_t)ktr_map_get(&s->numbers, (uintptr_t)site);
	if (number != 0)
		return &s->sites[number - 1];
	if (s->count == s->room) {
		size_t room = s->room * 2 + 256;
		struct site_count *more = realloc(s->sites, room * sizeof(*more));
		if (more == NULL)
			return NULL;
		s->sites = more;
		s->room = room;
	}
	if (!ktr_map_put(&s->numbers, (uintptr_t)site, (void *)(s->count + 1)))
		return NULL;
	s->sites[s->count] = (struct site_count){.site = site};
	return &s->sites[s->count++];
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
	struct site_count *count = site_count_of(s, e->site);
	if (count == NULL) {
		fprintf(stderr, "ktrdump: not enough memory\n");
		d->failed = true;
		d->status = DUMP_USAGE;
		return;
	}
	count->header = e->header;
	count->events++;
}

void
dump_stats_part(struct dump *d)
{
	d->stats->parts++;
}

void
dump_stats_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	d->stats->gaps++;
	d->stats->cpu[g->cpu].lost[g->reason] += g->count;
}

static int
site_compare(const struct ktr_decode_site *a, const struct ktr_decode_site *b)
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
	return site_compare(x->site, y->site);
}

static int
by_events(const void *a, const void *b)
{
	const struct site_count *x = a, *y = b;
	if (x->events != y->events)
		return x->events < y->events ? 1 : -1;
	return site_compare(x->site, y->site);
}

/* The same site of two streams becomes one row. */
static size_t
sites_collect(struct dump_stats *s)
{
	size_t n = s->count, rows = 0;
	if (n > 0)
		qsort(s->sites, n, sizeof(*s->sites), by_place);
	for (size_t i = 0; i < n; i++) {
		if (rows > 0 && site_compare(s->sites[rows - 1].site, s->sites[i].site) == 0)
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
	fprintf(d->out.file, "\n%-24s %12s\n", "class", "events");
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
			fprintf(d->out.file, "%-24s %12llu\n", name, (unsigned long long)events);
	}
}

static void
print_sites(struct dump *d, size_t rows)
{
	const struct dump_stats *s = d->stats;
	fprintf(d->out.file, "\n%12s %-40s %-24s %s\n", "events", "file and line", "function",
		"format");
	for (size_t i = 0; i < rows; i++) {
		const struct ktr_decode_site *site = s->sites[i].site;
		char place[300];
		snprintf(place, sizeof(place), "%s:%u", site->file, (unsigned)site->line);
		fprintf(d->out.file, "%12llu %-40s %-24s ", (unsigned long long)s->sites[i].events,
			place, site->func);
		out_printable(&d->out, site->fmt, strlen(site->fmt));
		out_char(&d->out, '\n');
		out_flush(&d->out);
	}
	if (s->unknown.events > 0)
		fprintf(d->out.file, "%12llu %s\n", (unsigned long long)s->unknown.events,
			"(sites whose description was lost)");
}

static void
print_cpus(struct dump *d)
{
	const struct dump_stats *s = d->stats;
	fprintf(d->out.file, "\n%-4s %12s %12s %8s %8s %8s %8s %18s %18s\n", "cpu", "events",
		"overwritten", "corrupt", "cleared", "damaged", "left", "first", "last");
	for (unsigned i = 0; i < KTR_DECODE_CPUS; i++) {
		const struct cpu_count *c = &s->cpu[i];
		uint64_t lost = 0;
		for (unsigned r = 0; r < REASONS; r++)
			lost += c->lost[r];
		if (c->events == 0 && lost == 0)
			continue;
		fprintf(d->out.file, "%-4u %12llu %12llu %8llu %8llu %8llu %8llu", i,
			(unsigned long long)c->events,
			(unsigned long long)c->lost[KTR_GAP_OVERWRITTEN],
			(unsigned long long)c->lost[KTR_GAP_CORRUPT],
			(unsigned long long)c->lost[KTR_GAP_CLEARED],
			(unsigned long long)c->lost[KTR_GAP_DAMAGED],
			(unsigned long long)c->lost[KTR_GAP_LEFT]);
		out_char(&d->out, ' ');
		out_seconds(&d->out, c->first_ns, 18);
		out_char(&d->out, ' ');
		out_seconds(&d->out, c->last_ns, 18);
		out_char(&d->out, '\n');
		out_flush(&d->out);
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
	fprintf(d->out.file, "events %llu, sites %zu, lost %llu in %llu gaps, parts %llu\n",
		(unsigned long long)s->events, rows, (unsigned long long)lost,
		(unsigned long long)s->gaps, (unsigned long long)s->parts);
	print_classes(d, rows);
	print_sites(d, rows);
	print_cpus(d);
}
