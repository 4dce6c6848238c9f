/*
 * kdb_control.c - the sysctls debug.kdb.enter and debug.panic.*, and Linux's
 * kernel.ftrace_dump_on_oops, which is a boot parameter, too.
 * Locking: none; each setting is one variable, written by one store.
 */
#include "kernel/abi/errno.h"
#include "kernel/debug/kdb.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sysctl/tunable.h"

static const char *const actions[] = {
    [KDB_ACTION_DEBUG] = "debug", [KDB_ACTION_DUMP] = "dump", [KDB_ACTION_REBOOT] = "reboot"};

static int panic_action = -1; /* -1: not set */

#define EVENTS     100
#define EVENTS_MAX 1000000

int kdb_panic_events = EVENTS;

enum kdb_panic_action
kdb_panic_action(void)
{
	if (panic_action >= 0)
		return (enum kdb_panic_action)panic_action;
	return tunable_get("init.script") == NULL ? KDB_ACTION_DEBUG : KDB_ACTION_DUMP;
}

static void
kdb_enter_asked(void)
{
	kdb_request("debug.kdb.enter");
}

static void
action_get(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, actions[kdb_panic_action()]);
}

static int
action_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	for (int i = 0; i < (int)(sizeof(actions) / sizeof(actions[0])); i++)
		if (strcmp(val, actions[i]) == 0) {
			panic_action = i;
			return 0;
		}
	snprintf(err, errlen, "\"%s\": expected debug, dump or reboot", val);
	return -EINVAL;
}

SYSCTL_COMMAND(debug_kdb_enter, "debug.kdb.enter", kdb_enter_asked,
	       "write 1 to enter the debugger");
SYSCTL_TEXT(
    debug_panic_action, "debug.panic.action", SYSCTL_WR | SYSCTL_TUN, action_get, action_set,
    "what a panic does: debug opens the debugger, dump reports and powers off with status 101, "
    "reboot");
SYSCTL_INT(debug_panic_events, "debug.panic.events", SYSCTL_WR | SYSCTL_TUN, &kdb_panic_events, 0,
	   EVENTS_MAX, "events of each CPU that a panic's report shows");

/* ---- all of them ---- */

static uint64_t
dump_on_oops(void)
{
	return kdb_panic_events == EVENTS_MAX;
}

static int
dump_on_oops_set(int64_t on, char *err, size_t errlen)
{
	if ((on != 0) != (dump_on_oops() != 0)) /* else debug.panic.events stays as it is */
		kdb_panic_events = on != 0 ? EVENTS_MAX : EVENTS;
	return 0;
}

SYSCTL_INT_CALL(kernel_ftrace_dump_on_oops, "kernel.ftrace_dump_on_oops", SYSCTL_WR, dump_on_oops,
		dump_on_oops_set, 0, 1,
		"a panic's report shows all events: see debug.panic.events");
TUNABLE(ftrace_dump_on_oops, "ftrace_dump_on_oops", "sets kernel.ftrace_dump_on_oops");

static void
kdb_boot(void)
{
	const char *value = tunable_get("ftrace_dump_on_oops");

	if (value == NULL || strcmp(value, "0") == 0)
		return;
	if (strcmp(value, "1") == 0)
		kdb_panic_events = EVENTS_MAX;
	else
		tunable_refuse("ftrace_dump_on_oops", "expected 0 or 1");
}
HOOK(booted, kdb_boot);
