/*
 * kdb_sysctl.c - sysctls at the debugger's prompt.
 *
 * Code cannot take the sysctl mutex or patch text while the machine is stopped. So a plain variable
 * is written at once. A setting that needs a function to be called is queued. When the machine runs
 * again, an interrupt that is sent to all CPUs wakes a thread that makes it: it comes when whoever
 * was stopped lets interrupts in, and so holds no lock. A CPU that hangs lets none in; others do.
 * The thread is there from the boot on, since a machine is also stopped because it has no memory.
 * Its events are refused: they would take the place of those that somebody has stopped the machine
 * for.
 *
 * Locking: `pending` is a ring. The debugger fills it while the machine is stopped; one thread
 * empties it. The debugger may stop that thread at any instruction: an entry stays in the ring
 * until the thread counts it as taken. Before it sleeps, the thread looks under the lock of its
 * sleep queue.
 */
#include "arch/pcpu.h"
#include "arch/smp.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/smp.h"
#include "kernel/sysctl/registry.h"
#include "kernel/sysctl/value.h"

#define PENDING_MAX 8

struct kdb_setting {
	const struct sysctl *s;
	char value[KDB_LINE_MAX];
};

static struct kdb_setting pending[PENDING_MAX];
static unsigned pending_put, pending_taken; /* atomic; totals since the boot */

static bool
kdb_is_pending(void)
{
	return __atomic_load_n(&pending_put, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&pending_taken, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void /* a place for breakpoints, where the thread looks anew */
kdb_make_settings(void)
{
	struct kdb_setting one;
	char err[160];
	int error;

	while (kdb_is_pending()) {
		one = pending[pending_taken % PENDING_MAX];
		__atomic_store_n(&pending_taken, pending_taken + 1, __ATOMIC_RELEASE);
		err[0] = '\0';
		error = sysctl_set_text(one.s->name, one.value, err, sizeof(err));
		if (error < 0)
			pr_warn("debugger: %s=%s: %s (error %d)\n", one.s->name, one.value, err,
				-error);
	}
}

static bool
kdb_is_none_pending(void *arg)
{
	return !kdb_is_pending();
}

static void
kdb_settings_thread(void *arg)
{
	for (;;) {
		kdb_make_settings();
		sleepq_wait(&(struct sleep_request){.chan = pending,
						    .still = kdb_is_none_pending,
						    .wmesg = "kdbset",
						    .deadline_ns = DEADLINE_NEVER});
	}
}

static void
kdb_settings_wake(void)
{
	if (kdb_is_pending())
		wakeup(pending);
}

HOOK(resched, kdb_settings_wake);

/* Once for each setting: else a breakpoint in the interrupt's handler would stop it for ever. */
void
kdb_settings_go_on(void)
{
	static unsigned told; /* pending_put, of the last interrupts */

	if (told == pending_put)
		return;
	told = pending_put;
	for (unsigned i = 0; i < ncpus; i++)
		if (i == arch_cpu() || smp_online(i))
			arch_ipi_send(i, IPI_RESCHED);
}

static void
kdb_settings_init(void)
{
	struct thread *t = thread_alloc("kdbset", PRIO_KERN, kdb_settings_thread, NULL);

	if (t == NULL)
		panic("kdb: no memory for the thread that makes settings");
	t->ktr_suppress = true;
	wake_up_new_task(t);
}

HOOK(booted, kdb_settings_init);

/*
 * Prints `name: value` like the shell's sysctl: a value of several lines starts on its own line. In
 * a list (`listed`), only the number of its lines is printed.
 */
static void
kdb_sysctl_print(const struct sysctl *s, bool named, bool listed)
{
	static char text[4096];
	struct sbuf out;
	unsigned lines = 0;

	sbuf_init(&out, text, sizeof(text));
	sysctl_print(s, &out);
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	if (named)
		kdb_printf("%s:%s", s->name, lines == 0 || listed ? " " : "\n");
	if (listed && lines > 0) {
		kdb_printf("(%s%u lines)\n", sbuf_is_cut(&out) ? "more than " : "", lines + 1);
		return;
	}
	for (const char *p = text; *p != '\0'; p++)
		kdb_printf("%c", *p);
	kdb_printf("%s\n", sbuf_is_cut(&out) ? "..." : "");
}

/* What is below a prefix, as the shell's sysctl lists it. False: nothing. */
static bool
kdb_sysctl_list(const char *prefix, size_t len)
{
	bool found = false;

	for (const struct sysctl *s = sysctl_after(""); s != NULL && !kdb.quit;
	     s = sysctl_after(s->name)) {
		if (strncmp(s->name, prefix, len) != 0 || s->name[len] != '.')
			continue;
		found = true;
		kdb_sysctl_print(s, true, true);
	}
	return found;
}

void
kdb_sysctl_show(const char *name)
{
	kdb_sysctl_print(sysctl_find(name), false, false);
}

static void
kdb_sysctl_defer(const struct sysctl *s, const char *value)
{
	if (pending_put - pending_taken == PENDING_MAX) {
		kdb_printf("%s: %d settings are queued already; continue first\n", s->name,
			   PENDING_MAX);
		return;
	}
	pending[pending_put % PENDING_MAX].s = s;
	strlcpy(pending[pending_put % PENDING_MAX].value, value, KDB_LINE_MAX);
	__atomic_store_n(&pending_put, pending_put + 1, __ATOMIC_RELEASE);
	kdb_printf("%s: will be set when the machine goes on\n", s->name);
}

static void
kdb_sysctl_set(const struct sysctl *s, const char *value)
{
	char err[160];

	if ((s->flags & SYSCTL_WR) == 0)
		kdb_printf("%s: is read-only\n", s->name);
	else if (s->var == NULL)
		kdb_sysctl_defer(s, value);
	else if (sysctl_value_set(s, value, err, sizeof(err)) < 0)
		kdb_printf("%s: %s\n", s->name, err);
	else
		kdb_sysctl_print(s, true, false);
}

void
kdb_command_ktr(char *mod, char *args)
{
	char specs[KDB_LINE_MAX] = "", *word;
	const char *verb = kdb_word(&args);
	size_t n = 0;

	while ((word = kdb_word(&args)) != NULL)
		n +=
		    (size_t)snprintf(specs + n, sizeof(specs) - n, "%s%s", n > 0 ? "\n" : "", word);
	if (verb != NULL && strcmp(verb, "on") == 0 && n > 0)
		kdb_sysctl_set(sysctl_find("debug.ktr.on"), specs);
	else if (verb != NULL && strcmp(verb, "off") == 0)
		kdb_sysctl_set(sysctl_find("debug.ktr.off"), n > 0 ? specs : ":::");
	else
		kdb_printf("ktr: expected on SPEC..., or off [SPEC...]\n");
}

void
kdb_command_sysctl(char *mod, char *args)
{
	const struct sysctl *s;
	char *name = kdb_word(&args), *value;
	size_t len;

	if (name == NULL) {
		kdb_printf("sysctl: expected NAME or NAME=VALUE\n");
		return;
	}
	value = strchr(name, '=');
	if (value != NULL)
		*value++ = '\0';
	len = strlen(name);
	if (len > 0 && name[len - 1] == '.')
		name[--len] = '\0';
	s = sysctl_find(name);
	if (s == NULL && (value != NULL || !kdb_sysctl_list(name, len)))
		kdb_printf("sysctl: no variable \"%s\"; \"sysctl debug\" lists those of debug\n",
			   name);
	else if (s != NULL && value == NULL)
		kdb_sysctl_print(s, true, false);
	else if (s != NULL)
		kdb_sysctl_set(s, value);
}
