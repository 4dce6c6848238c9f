/*
 * kdb_control.c - the ways into the debugger that are asked for, and what panics do: debug.kdb.*,
 * debug.panic.*.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/errno.h"
#include "kernel/debug/kdb.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sysctl/tunable.h"

static const char *const actions[] = {
    [KDB_ACTION_DEBUG] = "debug", [KDB_ACTION_DUMP] = "dump", [KDB_ACTION_REBOOT] = "reboot"};

static int panic_action = -1; /* -1: nobody said */

int kdb_panic_events = 100;

enum kdb_panic_action
kdb_panic_action(void)
{
	if (panic_action >= 0)
		return (enum kdb_panic_action)panic_action;
	return tunable_get("init.script") == NULL ? KDB_ACTION_DEBUG : KDB_ACTION_DUMP;
}

static void
zero_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_puts(out, "0");
}

static int
enter_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	if (strcmp(val, "1") != 0 && strcmp(val, "0") != 0) {
		snprintf(err, errlen, "\"%s\": expected 1 to enter the debugger", val);
		return -EINVAL;
	}
	if (val[0] == '1')
		kdb_request(s->name);
	return 0;
}

static int
panic_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	if (strcmp(val, "1") != 0 && strcmp(val, "0") != 0) {
		snprintf(err, errlen, "\"%s\": expected 1 to panic", val);
		return -EINVAL;
	}
	if (val[0] == '1')
		panic("asked for by %s", s->name);
	return 0;
}

static void
action_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_puts(out, actions[kdb_panic_action()]);
}

static int
action_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	(void)s;
	for (int i = 0; i < (int)(sizeof(actions) / sizeof(actions[0])); i++)
		if (strcmp(val, actions[i]) == 0) {
			panic_action = i;
			return 0;
		}
	snprintf(err, errlen, "\"%s\": expected debug, dump or reboot", val);
	return -EINVAL;
}

SYSCTL_PROC(debug_kdb_enter, "debug.kdb.enter", SYSCTL_TYPE_INT, SYSCTL_WR, zero_get, enter_set,
	    "write 1 to enter the debugger");
SYSCTL_PROC(debug_kdb_panic, "debug.kdb.panic", SYSCTL_TYPE_INT, SYSCTL_WR, zero_get, panic_set,
	    "write 1 to panic");
SYSCTL_PROC(
    debug_panic_action, "debug.panic.action", SYSCTL_TYPE_TEXT, SYSCTL_WR | SYSCTL_TUN, action_get,
    action_set,
    "what a panic does: debug asks an operator, dump reports and powers off with status 101, "
    "reboot");
SYSCTL_INT(debug_panic_events, "debug.panic.events", SYSCTL_WR | SYSCTL_TUN, &kdb_panic_events, 0,
	   1000000, "events of each CPU that a panic's report has");
