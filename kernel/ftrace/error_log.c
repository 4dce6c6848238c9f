/* error_log.c - error_log: what was wrong with an instance's last commands, and where. What makes
 * events is the top's. Locking: ftrace_lock. */
#include "kernel/ftrace/instance.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"

void
error_log_add(struct instance *i, const char *system, const char *message, const char *command,
	      size_t at)
{
	struct error_logged *e = &i->errors.last[i->errors.count++ % ERROR_LOG];

	e->ns = clock_ns();
	strlcpy(e->system, system, sizeof(e->system));
	e->at = at;
	strlcpy(e->message, message, sizeof(e->message));
	strlcpy(e->command, command, sizeof(e->command));
}

void
error_log_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	unsigned count = i->errors.count;

	for (unsigned n = count > ERROR_LOG ? count - ERROR_LOG : 0; n < count; n++) {
		const struct error_logged *e = &i->errors.last[n % ERROR_LOG];
		uint64_t us = e->ns / 1000;

		sbuf_printf(out, "[%5lu.%06lu] %s: error: %s\n  Command: %s\n", us / 1000000,
			    us % 1000000, e->system, e->message, e->command);
		sbuf_printf(out, "%*s^\n", (int)(e->at + sizeof("  Command: ") - 1), "");
	}
}

int
error_log_store(struct instance *i, uintptr_t arg, char *text)
{
	return 0; /* only O_TRUNC counts */
}

int
error_log_clear(struct instance *i, uintptr_t arg)
{
	i->errors.count = 0;
	return 0;
}
