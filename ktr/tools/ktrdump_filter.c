/*
 * ktrdump_filter.c - which events are printed.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/glob.h"
#include "ktr/tools/ktrdump.h"

/*
 * Reads digits, a point, more digits and a unit. No floating point, so it is exact to the
 * nanosecond.
 */
bool
dump_parse_time(const char *text, int64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"", 1000000000}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
	const char *digits = text;
	const char *unit = text;
	while ((*unit >= '0' && *unit <= '9') || *unit == '.')
		unit++;
	uint64_t scale = 0;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0)
			scale = units[i].ns;
	if (scale == 0 || digits == unit)
		return false;
	uint64_t sum = 0;
	bool any = false;
	for (; *digits >= '0' && *digits <= '9'; digits++) {
		any = true;
		sum = sum * 10 + (uint64_t)(*digits - '0') * scale;
		if (sum > INT64_MAX / 16)
			return false;
	}
	if (*digits == '.') {
		for (digits++; *digits >= '0' && *digits <= '9'; digits++) {
			any = true;
			scale /= 10;
			sum += (uint64_t)(*digits - '0') * scale;
		}
	}
	*ns = (int64_t)sum;
	return any && digits == unit;
}

bool
dump_match_cpu(const struct dump_filter *f, uint32_t cpu)
{
	return cpu < 64 ? (f->cpus >> cpu & 1) != 0 : f->cpus == ~(uint64_t)0;
}

bool
dump_match_thread(const struct dump_filter *f, uint32_t tid, const char *name)
{
	char *end;
	if (f->thread == NULL)
		return true;
	/* Base 10, and not 0: a number is decimal even if it begins with a zero. */
	int base = strncmp(f->thread, "0x", 2) == 0 ? 16 : 10;
	unsigned long long wanted = strtoull(f->thread, &end, base);
	if (f->thread[0] != '\0' && *end == '\0')
		return wanted == tid;
	return name != NULL && ktr_glob(f->thread, name);
}

bool
dump_match_text(const char *want, const char *text)
{
	char pattern[DUMP_GREP_MAX + 4];
	if (!ktr_glob_is_pattern(want))
		return strstr(text, want) != NULL;
	ktr_glob_inside(pattern, sizeof(pattern), want);
	return ktr_glob(pattern, text);
}

bool
dump_match_needs_text(const struct dump_filter *f)
{
	return f->grep != NULL;
}

bool
dump_match_event(const struct dump_filter *f, const struct ktr_decode_event *e, const char *text)
{
	if (!dump_match_cpu(f, e->cpu))
		return false;
	if (f->since_ns != INT64_MIN || f->until_ns != INT64_MAX) {
		int64_t ns = ktr_decode_ns(e->header, e->ticks);
		if (ns < f->since_ns || ns > f->until_ns)
			return false;
	}
	if (f->classes != ~(uint64_t)0 && (e->site == NULL || (e->site->classes & f->classes) == 0))
		return false;
	if (!dump_match_thread(f, e->tid, e->thread))
		return false;
	return f->grep == NULL || dump_match_text(f->grep, text);
}

bool
dump_match_gap(const struct dump_filter *f, const struct ktr_decode_gap *g)
{
	return dump_match_cpu(f, g->cpu) && ktr_decode_ns(g->header, g->to_ticks) >= f->since_ns &&
	       ktr_decode_ns(g->header, g->from_ticks) <= f->until_ns;
}
