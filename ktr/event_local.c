/*
 * event_local.c - the text of an event that is still in this program's memory. Locking: none.
 */
#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/ring.h"

static const char *
local_string(void *arg, uint64_t value)
{
	return ktr_string_text(value, arg);
}

int
ktr_entry_text(char *buf, size_t len, const struct ktr_site *site, const struct ktr_entry *entry)
{
	char text[KTR_STRING_MAX];
	return ktr_event_text(buf, len, site->fmt, entry->args, site->nargs, local_string, text);
}
