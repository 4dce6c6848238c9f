/*
 * event_local.c - the text of an event that is still in this program's memory. Locking: none.
 */
#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/ring.h"
#include "ktr/wire.h"

struct local {
	const struct ktr_log *log;
	unsigned cpu;
	uint64_t seq;
	char text[KTR_STRING_MAX];
};

static const char *
local_string(void *arg, unsigned i, uint64_t value)
{
	(void)i;
	struct local *l = arg;
	return ktr_data_is_word(value) ? ktr_data_text(l->log, l->cpu, l->seq, value, l->text)
				       : ktr_string_text(value, l->text);
}

int
ktr_entry_print(char *buf, size_t len, const struct ktr_log *log, const char *fmt, unsigned nargs,
		const struct ktr_entry *entry, unsigned cpu, uint64_t seq)
{
	struct local l = {.log = log, .cpu = cpu, .seq = seq};
	return ktr_event_text(buf, len, NULL, fmt, entry->args, nargs, local_string, &l);
}

int
ktr_entry_text(char *buf, size_t len, const struct ktr_site *site, const struct ktr_entry *entry,
	       unsigned cpu, uint64_t seq)
{
	return ktr_entry_print(buf, len, &ktr_main, site->fmt, site->nargs, entry, cpu, seq);
}
