/*
 * verbose.c - debug.ktr.verbose: events on the console as they are recorded.
 *
 * Locking: only the console's lock. If this CPU is in the console's code already, the line is left
 * out. The console records no events. So this may be called in any context.
 */
#include "kernel/dev/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "ktr/event.h"
#include "ktr/port.h"
#include "ktr/site.h"

#define VERBOSE_LINE 256

void
ktr_port_verbose(unsigned cpu, const struct ktr_site *site, const struct ktr_entry *entry,
		 int level)
{
	char line[VERBOSE_LINE];
	struct sbuf out;
	size_t at;

	sbuf_init(&out, line, sizeof(line) - 1); /* keeps room for the newline */
	sbuf_printf(&out, "cpu%u ", cpu);
	if (level >= 2)
		sbuf_printf(&out, "%s.%u\t", site->file, site->line);
	at = sbuf_stored(&out);
	ktr_entry_text(line + at, sizeof(line) - 1 - at, site, entry, cpu, KTR_SEQ_NEWEST);
	at += strlen(printk_hide_controls(line + at));
	line[at++] = '\n';
	console_write(line, at);
}
