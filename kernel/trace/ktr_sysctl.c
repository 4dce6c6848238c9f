/*
 * ktr_sysctl.c - debug.ktr.*: masks, CPUs, printing, accounts, and the lists of classes and sites.
 *
 * The variables of the flush, debug.ktr.alq_*, are in alq.c.
 * Locking: ktr's control lock, taken inside its functions, and where names of owners are printed.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/sched.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/registry.h"
#include "ktr/class.h"
#include "ktr/control.h"
#include "ktr/port.h"
#include "ktr/probe.h"
#include "ktr/ring.h"
#include "ktr/site.h"

#define MASK_TEXT 512 /* all class names */
#define KEPT_TEXT 512 /* names of owners */

static int version = KTR_VERSION;
SYSCTL_INT(debug_ktr_version, "debug.ktr.version", 0, &version, 0, INT32_MAX,
	   "layout version of the event log");

static void
print_mask(uint64_t mask, struct sbuf *out)
{
	char text[MASK_TEXT];

	ktr_mask_print(mask, text, sizeof(text));
	sbuf_puts(out, text);
}

static void
mask_get(const struct sysctl *s, struct sbuf *out)
{
	print_mask(ktr_mask_get(), out);
}

static int
mask_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	uint64_t on, off, before = ktr_mask_get();
	int error = ktr_mask_parse_change(val, &on, &off, err, errlen);

	if (error != 0)
		return error;
	ktr_mask_change(on, off);
	if ((on & ~before & KTR_SCHED) != 0)
		sched_trace_running();
	return 0;
}

static void
compile_get(const struct sysctl *s, struct sbuf *out)
{
	print_mask(ktr_compile_get(), out);
}

static void
cpumask_get(const struct sysctl *s, struct sbuf *out)
{
	char text[MASK_TEXT];

	ktr_cpumask_print(__atomic_load_n(&ktr_cpumask, __ATOMIC_RELAXED), text, sizeof(text));
	sbuf_puts(out, text);
}

static int
cpumask_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	uint64_t cpus;
	int error = ktr_cpumask_parse(val, &cpus, err, errlen);

	if (error != 0)
		return error;
	ktr_cpumask_set(cpus);
	sched_trace_running();
	return 0;
}

static uint64_t
verbose_get(void)
{
	return (uint64_t)__atomic_load_n(&ktr_verbose, __ATOMIC_RELAXED);
}

static int
verbose_set(int64_t level, char *err, size_t errlen)
{
	return ktr_verbose_set((int)level);
}

static void
stats_get(const struct sysctl *s, struct sbuf *out)
{
	struct ktr_stats st;

	sbuf_puts(out, "cpu recorded delivered resident overwritten suppressed lost");
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		if (ktr_stats_get(cpu, &st))
			sbuf_printf(out, "\n%u %llu %llu %llu %llu %llu %llu", cpu,
				    (unsigned long long)st.recorded,
				    (unsigned long long)st.delivered,
				    (unsigned long long)st.resident,
				    (unsigned long long)st.overwritten,
				    (unsigned long long)st.suppressed, (unsigned long long)st.lost);
}

static void
classes_get(const struct sysctl *s, struct sbuf *out)
{
	uint64_t mask = ktr_mask_get();

	sbuf_puts(out, "class value state sites covers");
	for (unsigned i = 0; i < ktr_class_count; i++) {
		const struct ktr_class *c = &ktr_classes[i];
		unsigned sites = 0;

		for (unsigned n = 0; n < ktr_site_count(); n++)
			sites += (ktr_site_get(n)->classes & c->bit) != 0;
		sbuf_printf(out, "\n%s 0x%llx %s %u %s", c->name, (unsigned long long)c->bit,
			    mask & c->bit ? "on" : "off", sites, c->text);
	}
}

/* Names of the owners that want a site on, with commas; "-" when none does. Control lock. */
static void
print_owners_locked(uint32_t owners, struct sbuf *out)
{
	const char *comma = "";

	if (owners == 0)
		sbuf_putc(out, '-');
	for (unsigned n = 0; n < KTR_OWNER_MAX; n++) {
		const char *name = ktr_owner_name(n);

		if ((owners >> n & 1) == 0)
			continue;
		sbuf_printf(out, "%s%s", comma, name != NULL ? name : "?");
		comma = ",";
	}
}

/* Takes the lock for each site, since anybody may print all of them, all the time: nobody waits
 * long. */
static void
print_owners(uint32_t owners, struct sbuf *out)
{
	if (owners != 0)
		ktr_port_lock(); /* so that no owner goes meanwhile */
	print_owners_locked(owners, out);
	if (owners != 0)
		ktr_port_unlock();
}

/* Prints a format as in C source: those of the graph macros have quotes. */
static void
print_quoted(const char *text, struct sbuf *out)
{
	sbuf_putc(out, '"');
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			sbuf_putc(out, '\\');
		if (*text == '\n')
			sbuf_puts(out, "\\n");
		else
			sbuf_putc(out, *text);
	}
	sbuf_putc(out, '"');
}

static void
sites_get(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, "id state owners class file:line function format");
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);
		uint32_t owners = __atomic_load_n(&site->owners, __ATOMIC_RELAXED);

		if (site->kind != KTR_SITE_POINT)
			continue;
		sbuf_printf(out, "\n%u %s ", n, owners != 0 ? "on" : "off");
		print_owners(owners, out);
		sbuf_putc(out, ' ');
		print_mask(site->classes, out);
		sbuf_printf(out, " %s:%u %s ", site->file, site->line, site->func);
		print_quoted(site->fmt, out);
	}
}

/* Prints the types of a probe's arguments, and what D translates them to. */
static void
print_types(const struct ktr_sdt *sdt, struct sbuf *out)
{
	for (unsigned i = 0; i < KTR_SDT_ARGS && sdt->types[i] != NULL; i++) {
		sbuf_printf(out, "%s%s", i == 0 ? " (" : ", ", sdt->types[i]);
		if (sdt->xlate[i] != NULL)
			sbuf_printf(out, " > %s", sdt->xlate[i]);
	}
	if (sdt->types[0] != NULL)
		sbuf_putc(out, ')');
}

static void
print_probe(const struct ktr_site *site, struct sbuf *out)
{
	struct ktr_probe_name name;

	ktr_probe_name(site, &name);
	sbuf_printf(out, " %s %s %s %s ", name.provider, name.module,
		    name.function[0] != '\0' ? name.function : "-", name.name);
	print_quoted(site->fmt, out);
	if (site->kind >= KTR_SITE_PROBE)
		print_types(site->sdt, out);
}

static void
probes_get(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, "id state owners provider module function name format");
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);
		bool made = site->kind >= KTR_SITE_MADE;
		uint32_t owners;

		if (!ktr_site_is_probe(site))
			continue;
		if (made)
			ktr_port_lock(); /* so that it does not go meanwhile, if it has not gone */
		owners = __atomic_load_n(&site->owners, __ATOMIC_RELAXED);
		if (ktr_site_is_probe(site)) {
			sbuf_printf(out, "\n%u %s ", n + 1, owners != 0 ? "on" : "off");
			if (made)
				print_owners_locked(owners, out);
			else
				print_owners(owners, out);
			print_probe(site, out);
		}
		if (made)
			ktr_port_unlock();
	}
}

/* What debug.ktr.on and debug.ktr.off did last. The sysctl mutex. */
static struct ktr_selection selected;
static bool selected_on;
/* The names of owners, since they may have gone when this is read. An owner that went between
 * ktr_select() and this is "?", or has the name of the one with its number. */
static char selected_owners[KEPT_TEXT];

static void
select_get(const struct sysctl *s, struct sbuf *out)
{
	const char *state = selected_on ? "on" : "off";
	unsigned kept = selected_on ? 0 : selected.on, n = selected.changed;
	unsigned before = selected.matched - selected.changed - kept;

	sbuf_printf(out, "%u trace point%s switched %s", n, n == 1 ? "" : "s", state);
	if (before > 0)
		sbuf_printf(out, "; %u %s %s", before, before == 1 ? "was" : "were", state);
	if (kept > 0)
		sbuf_printf(out, "; %u kept on by %s", kept, selected_owners);
}

/* A line is a spec, so that `ktr on` switches all of its words, or none. */
static int
select_set(const char *val, bool on, char *err, size_t errlen)
{
	static char specs[SYSCTL_VALUE_MAX]; /* The sysctl mutex. */
	struct ktr_selection found;
	struct sbuf names;
	uint64_t classes;
	bool running = false;
	char *spec = specs, *end;
	unsigned count = 1;
	int n;

	strlcpy(specs, val, sizeof(specs));
	for (; (end = strchr(spec, '\n')) != NULL; spec = end + 1, count++)
		*end = '\0';
	n = ktr_select_list(KTR_OWNER_COMMAND, specs, count, on, &found, err, errlen);
	if (n < 0)
		return n;
	spec = specs;
	for (unsigned i = 0; on && i < count; i++, spec += strlen(spec) + 1)
		running |=
		    ktr_mask_parse(spec, &classes, NULL, 0) == 0 && (classes & KTR_SCHED) != 0;
	if (running)
		sched_trace_running();
	selected = found;
	selected_on = on;
	sbuf_init(&names, selected_owners, sizeof(selected_owners));
	print_owners(found.owners, &names);
	return 0;
}

static int
select_on(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	return select_set(val, true, err, errlen);
}

static int
select_off(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	return select_set(val, false, err, errlen);
}

static void
ktr_sysctl_clear(void)
{
	ktr_clear();
	sched_trace_running();
}

SYSCTL_TEXT(
    debug_ktr_mask, "debug.ktr.mask", SYSCTL_WR | SYSCTL_TUN, mask_get, mask_set,
    "event classes that are recorded: SCHED,PROC, ALL, NONE or a number; +LOCK,-VM changes it");
SYSCTL_TEXT(debug_ktr_compile, "debug.ktr.compile", 0, compile_get, NULL,
	    "event classes compiled in");
SYSCTL_TEXT(debug_ktr_cpumask, "debug.ktr.cpumask", SYSCTL_WR | SYSCTL_TUN, cpumask_get,
	    cpumask_set, "CPUs that record: 0-3,5 or all or a hexadecimal number");
SYSCTL_INT_CALL(debug_ktr_verbose, "debug.ktr.verbose", SYSCTL_WR | SYSCTL_TUN, verbose_get,
		verbose_set, 0, 2,
		"print events on the console: 1 cpu and message, 2 also file and line");
SYSCTL_INT_CALL(kernel_tracepoint_printk, "kernel.tracepoint_printk", SYSCTL_WR, verbose_get,
		verbose_set, 0, 1, "Linux's name of debug.ktr.verbose");
SYSCTL_COMMAND(debug_ktr_clear, "debug.ktr.clear", ktr_sysctl_clear, "write 1 to empty the rings");
SYSCTL_TEXT(debug_ktr_stats, "debug.ktr.stats", 0, stats_get, NULL,
	    "events by CPU: recorded = delivered + resident + overwritten; and lost");
SYSCTL_TEXT(debug_ktr_classes, "debug.ktr.classes", 0, classes_get, NULL,
	    "event classes: which are on, and how many trace points each has");
SYSCTL_TEXT(debug_ktr_sites, "debug.ktr.sites", SYSCTL_FREE, sites_get, NULL,
	    "trace points: which are on, and who wants them on");
SYSCTL_TEXT(debug_ktr_probes, "debug.ktr.probes", SYSCTL_FREE, probes_get, NULL,
	    "everything that can be traced: which are on, and who wants them on");
SYSCTL_TEXT(debug_ktr_on, "debug.ktr.on", SYSCTL_WR | SYSCTL_TUN, select_get, select_on,
	    "switches on: classes, a glob over file:line, function or format, or a probe's name");
SYSCTL_TEXT(debug_ktr_off, "debug.ktr.off", SYSCTL_WR | SYSCTL_TUN, select_get, select_off,
	    "switches off what is written, whoever had switched it on");
