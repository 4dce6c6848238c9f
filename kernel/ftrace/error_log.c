/* error_log.c - error_log: what was wrong with the last commands, and where. Locking: ftrace_lock.
 */
#include "kernel/ftrace/instance.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"

#define ERRORS 8 /* as in Linux */

static struct logged {
	uint64_t ns;
	char system[128], message[128], command[256];
	size_t at;
} errors[ERRORS];
static unsigned count; /* since it was cleared */

void
error_log_add(const char *system, const char *message, const char *command, size_t at)
{
	struct logged *e = &errors[count++ % ERRORS];

	e->ns = clock_ns();
	strlcpy(e->system, system, sizeof(e->system));
	e->at = at;
	strlcpy(e->message, message, sizeof(e->message));
	strlcpy(e->command, command, sizeof(e->command));
}

void
error_log_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	for (unsigned n = count > ERRORS ? count - ERRORS : 0; n < count; n++) {
		const struct logged *e = &errors[n % ERRORS];
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
	count = 0;
	return 0;
}
