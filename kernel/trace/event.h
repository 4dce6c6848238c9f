/* event.h - an event as text, inside the kernel: for the console and the debugger. */
#pragma once

#include <stddef.h>

struct ktr_entry;
struct ktr_site;

/*
 * The event's message, cut at size bytes with the NUL; returns the length of the whole. A %s
 * parameter that points to neither read-only data nor an interned string prints as (bad 0x…). Any
 * context.
 */
size_t trace_event_text(const struct ktr_site *site, const struct ktr_entry *e, char *buf,
			size_t size);
