/* ktrcounts.c - reads the accounting of events, and says how many were lost. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/lib/kestrel.h"

#define COLUMNS (sizeof(struct ktr_counts) / sizeof(uint64_t))

_Static_assert(sizeof(struct ktr_counts) == 6 * sizeof(uint64_t), "as many as the text has");

unsigned int
ktr_counts_get(struct ktr_counts counts[KTR_COUNTS_MAX])
{
	/* Not malloc(): a heap would change what a workload measures. */
	char text[128 * KTR_COUNTS_MAX];
	char *line = text;
	unsigned int n = 0;

	if (sysctl_get("debug.ktr.stats", text, sizeof(text)) < 0)
		return 0;
	while (n < KTR_COUNTS_MAX && (line = strchr(line, '\n')) != NULL) {
		uint64_t word[COLUMNS] = {0};

		strtoull(++line, &line, 10); /* the CPU's number */
		for (size_t i = 0; i < COLUMNS; i++)
			word[i] = strtoull(line, &line, 10);
		memcpy(&counts[n++], word, sizeof(word));
	}
	return n;
}

void
ktr_losses_print(FILE *f, const char *prefix, const struct ktr_counts *before)
{
	static const struct ktr_counts none;
	struct ktr_counts now[KTR_COUNTS_MAX];
	unsigned int cpus = ktr_counts_get(now);
	uint64_t file = 0, lost = 0, all = 0, most = 0, entries = 4;

	if (cpus == 0 || sysctl_get_u64("debug.ktr.alq_enable", &file) < 0)
		return;
	for (unsigned int n = 0; n < cpus; n++) {
		const struct ktr_counts *old = before != NULL ? &before[n] : &none;
		uint64_t events = now[n].recorded - old->recorded;
		uint64_t gone = now[n].lost > old->lost ? now[n].lost - old->lost : 0;

		/* Without a file, the older events are overwritten first: those are no loss of
		 * ours. */
		if (file == 0 && events <= now[n].resident)
			gone = 0;
		else if (file == 0 && gone > events - now[n].resident)
			gone = events - now[n].resident;
		lost += gone;
		all += events;
		most = events > most ? events : most;
	}
	while (entries < most + 2) /* two slots are never readable */
		entries *= 2;
	if (lost == 0)
		return;
	fprintf(f, "%s%lu of %lu events%s", prefix, lost, all, file != 0 ? " so far" : "");
	if (entries <= KTR_ENTRIES_MAX)
		fprintf(f, "; debug.ktr.entries=%lu holds them", entries);
	fputc('\n', f);
}
