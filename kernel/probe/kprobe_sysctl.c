/* kprobe_sysctl.c - kprobes as the user sees them: the sysctls debug.kprobe.*, and the site of
 * each. */
#include "kernel/lib/hook.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/probe/kprobe.h"
#include "kernel/probe/kprobe_private.h"
#include "ktr/dynamic.h"
#include "ktr/port.h"

HOOK_LIST(kprobe_removed);

static const char *const providers[] = {"kprobe", "uprobe", "eprobe"};

/* The format of the event: "kprobe:::mine: fd %#lx n %lu". %-s: a text that is no string. */
static void
print_format(const struct kdefinition *d, struct sbuf *out)
{
	static const char *const conversions[] = {
	    [KFETCH_UNSIGNED] = "%lu", [KFETCH_SIGNED] = "%ld", [KFETCH_HEX] = "%#lx",
	    [KFETCH_CHAR] = "%c",      [KFETCH_STRING] = "%s",  [KFETCH_SYMBOL] = "%-s"};

	sbuf_printf(out, "%s:::%s", providers[d->kind], d->name);
	for (unsigned i = 0; i < kprobe_first(d); i++)
		sbuf_printf(out, "%s %s %s", i == 0 ? ":" : "", d->args[i].name,
			    d->args[i].count > 0 ? "%-s" : conversions[d->args[i].print]);
	if (d->nargs > KTR_MAXARGS)
		sbuf_puts(out, " " KPROBE_REST " %-s");
}

struct ktr_site *
kprobe_site(const struct kprobe *k, char *err, size_t errlen)
{
	static const char *const types[] = {
	    [KFETCH_UNSIGNED] = "uint64_t", [KFETCH_SIGNED] = "int64_t",
	    [KFETCH_HEX] = "uint64_t",      [KFETCH_CHAR] = "char",
	    [KFETCH_STRING] = "char *",     [KFETCH_SYMBOL] = "char *"};
	char fmt[KTR_DYNAMIC_TEXT];
	struct sbuf out;
	char offset[24];
	struct ktr_dynamic d = {.provider = providers[k->def.kind],
				.module = "",
				.function = k->def.function,
				.name = k->def.name,
				.file = "",
				.fmt = fmt,
				.nargs = k->nargs + (k->def.nargs > k->nargs)};
	unsigned line = 0;

	if (k->def.kind == KPROBE_USER) {
		snprintf(offset, sizeof(offset), "%#zx", k->def.offset);
		d.module = k->def.function;
		d.function = offset;
	} else if (k->def.kind == KPROBE_KERNEL) {
		ksym_line(k->places[0].at, &d.file, &line);
	}
	d.line = line;
	for (unsigned i = 0; i < d.nargs; i++)
		d.types[i] =
		    types[i == k->nargs || k->def.args[i].count > 0 ? KFETCH_STRING
								    : k->def.args[i].print];
	sbuf_init(&out, fmt, sizeof(fmt));
	print_format(&k->def, &out);
	return ktr_site_make(&d, err, errlen);
}

/* How many of the event's first fields are read. */
static unsigned
fields_of(const struct kdefinition *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].base == KFETCH_FIELD && d->args[i].reg >= n)
			n = d->args[i].reg + 1;
	return n;
}

void
kprobe_each(void (*f)(const struct kprobe_info *info, void *arg), void *arg)
{
	list_for_each_entry (struct kprobe, k, &kprobes, link) {
		const struct kprobe_info info = {.probe = k,
						 .site = k->site,
						 .group = k->def.group,
						 .name = k->def.name,
						 .function = k->def.function,
						 .offset = k->def.offset,
						 .address = k->function + k->def.offset,
						 .is_return = k->def.is_return,
						 .path = k->text + k->def.place_at,
						 .path_size = k->def.path,
						 .kind = k->def.kind,
						 .target = k->def.target,
						 .filter = k->def.filter != 0
							       ? k->text + k->def.filter
							       : NULL,
						 .fields = fields_of(&k->def),
						 .definition = k->text,
						 .hits = k->hits,
						 .misses = k->misses};

		if (k->user.pid == 0)
			f(&info, arg);
	}
}

void
kprobe_list(struct sbuf *out)
{
	sbuf_puts(out, "name state hits misses faults definition");
	ktr_port_lock();
	list_for_each_entry (const struct kprobe, k, &kprobes, link) {
		if (k->user.pid != 0)
			continue;
		sbuf_printf(out, "\n%s %s %lu %lu %lu %s", k->def.name,
			    k->site->owners != 0 ? "on" : "off", k->hits, k->misses, k->faults,
			    k->text);
	}
	ktr_port_unlock();
}

static void
list_get(const struct sysctl *s, struct sbuf *out)
{
	kprobe_list(out);
}

static int
add_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	return kprobe_add(val, KPROBE_KERNEL, err, errlen);
}

static int
del_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	int error = kprobe_del(val, KPROBE_KERNEL, err, errlen);

	if (error == 0)
		HOOK_RUN(kprobe_removed);
	return error;
}

SYSCTL_TEXT(debug_kprobe_list, "debug.kprobe.list", 0, list_get, NULL,
	    "probes at instructions: name, state, counts, definition");
SYSCTL_TEXT(debug_kprobe_add, "debug.kprobe.add", SYSCTL_WR, list_get, add_set,
	    "makes a probe: p:NAME FUNCTION+OFFSET [NAME=FETCH[:TYPE]]..., r:NAME FUNCTION ...");
SYSCTL_TEXT(debug_kprobe_del, "debug.kprobe.del", SYSCTL_WR, list_get, del_set,
	    "removes the probe of that name");
