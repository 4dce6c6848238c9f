/*
 * event_name.c - what events are called, and what their formats and records have.
 *
 * Events have the names and formats that trace.dat has for them (ktr/event_format.h), and system
 * calls those of Linux. Locking: the control lock guards the probes, which event_record() looks at.
 */
#include "kernel/ftrace/event/event.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/probe/kprobe.h"
#include "kernel/syscall.h"
#include "ktr/class.h"
#include "ktr/dynamic.h"
#include "ktr/event_format.h"
#include "ktr/param.h"
#include "ktr/probe.h"

/* As in Linux, calls that the kernel does not know have no event of their own (raw_syscalls has
 * them). */
static bool
event_is_syscall(const struct ktr_probe_name *name)
{
	return strcmp(name->provider, "syscall") == 0 && strcmp(name->function, "unknown") != 0;
}

const char *
event_system(const struct ktr_site *site)
{
	struct ktr_probe_name name;

	if (site->kind == KTR_SITE_PROBE) {
		const struct ktr_sdt *p = site->sdt;

		/* These have Linux's events alone, and not D's providers of the same names. */
		if (strcmp(p->provider, "sched") == 0 && strncmp(p->name, "sched_", 6) != 0)
			return "scheduler";
		if (strcmp(p->provider, "tcp") == 0 && strncmp(p->name, "tcp_", 4) != 0)
			return "dtrace_tcp";
		if (strcmp(p->provider, "udp") == 0 && strncmp(p->name, "udp_", 4) != 0)
			return "dtrace_udp";
		return strcmp(p->provider, "dtrace") != 0 ? p->provider : NULL;
	}
	if (__atomic_load_n(&site->kind, __ATOMIC_ACQUIRE) == KTR_SITE_MADE)
		return strcmp(site->sdt->provider + 1, "probe") == 0 ? kprobe_group(site)
		       : strncmp(site->sdt->provider, "pid", 3) == 0 ? NULL
								     : EVENT_SYNTHETIC;
	if (site->kind != KTR_SITE_POINT)
		return NULL;
	ktr_probe_name(site, &name);
	if (event_is_syscall(&name))
		return "syscalls";
	for (unsigned i = 0; i < ktr_class_count; i++)
		if (site->classes & ktr_classes[i].bit)
			return ktr_classes[i].name;
	return NULL;
}

bool
event_is_in(const struct ktr_site *site, const char *system)
{
	const char *found = event_system(site);

	return found != NULL && strcmp(found, system) == 0;
}

/* A system call's name, without "sys_enter_"; NULL: the event is none of a system call. */
static const char *
call_of(const struct ktr_site *site, struct ktr_probe_name *probe)
{
	if (site->kind != KTR_SITE_POINT)
		return NULL;
	ktr_probe_name(site, probe);
	return event_is_syscall(probe) ? probe->function : NULL;
}

bool
event_is_call(const struct ktr_site *site)
{
	struct ktr_probe_name probe;

	return call_of(site, &probe) != NULL;
}

void
event_name(const struct ktr_site *site, char name[EVENT_NAME])
{
	struct ktr_probe_name probe;
	struct ktr_event_name event;
	const char *call = call_of(site, &probe);

	ktr_event_name(&event, site->func, site->line, site->fmt);
	if (call != NULL)
		snprintf(name, EVENT_NAME, "sys_%s_%s",
			 strcmp(probe.name, "entry") == 0 ? "enter" : "exit", call);
	else
		strlcpy(name, event.name, EVENT_NAME);
}

/* Names of the parameters of Linux's system calls. */
static const struct {
	const char *call, *names[6];
} calls[] = {
#define A(name, kind, type, field) #field,
#define KESTREL(...)
#define SYSCALL(number, name, restart, enomem, ...) {#name, {__VA_ARGS__}},
#include <syscalls.def>
#undef SYSCALL
#undef A
};

/* As Linux prints it: "sys_dup2(oldfd: 1, newfd: 2)", "sys_dup2 -> 0x2". */
static unsigned
call_format(const char *call, bool enter, bool as_recorded, char fmt[EVENT_FORMAT])
{
	static const char *const unknown[6] = {"arg0", "arg1", "arg2", "arg3", "arg4", "arg5"};
	const char *const *names = unknown;
	struct sbuf out;
	unsigned n = 0;

	sbuf_init(&out, fmt, EVENT_FORMAT);
	if (!enter) {
		sbuf_printf(&out, "sys_%s -> %s", call, as_recorded ? "0x%lx" : "ret=%#lx");
		return 1;
	}
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].call, call) == 0)
			names = calls[i].names;
	sbuf_printf(&out, "sys_%s(", call);
	for (; n < 6 && names[n] != NULL; n++)
		sbuf_printf(&out, "%s%s: %%lx", n > 0 ? ", " : "", names[n]);
	sbuf_putc(&out, ')');
	return n;
}

struct ktr_site *
event_find(const char *system, const char *event)
{
	char name[EVENT_NAME];

	for (unsigned n = 0; n < ktr_site_count(); n++) {
		struct ktr_site *site = ktr_site_get(n);

		if (!event_is_in(site, system))
			continue;
		event_name(site, name);
		if (strcmp(name, event) == 0)
			return site;
	}
	return NULL;
}

unsigned
event_format(const struct ktr_site *site, bool as_recorded, char fmt[EVENT_FORMAT])
{
	const char *last = site->kind == KTR_SITE_PROBE ? site->sdt->last : NULL;
	struct ktr_probe_name probe;
	struct ktr_event_name event;
	const char *call = call_of(site, &probe);

	if (call != NULL)
		return call_format(call, strcmp(probe.name, "entry") == 0, as_recorded, fmt);
	ktr_event_name(&event, site->func, site->line, site->fmt);
	if (kprobe_event_format(site, event.fmt, fmt))
		return site->nargs;
	strlcpy(fmt, event.fmt, EVENT_FORMAT);
	if (last == NULL || as_recorded)
		return site->nargs;
	strlcpy(fmt + strlen(fmt) - 2, last, EVENT_FORMAT - strlen(fmt)); /* in the place of %s */
	return KTR_SDT_ARGS;
}

unsigned
event_params(const struct ktr_site *site, struct ktr_param params[KTR_SDT_ARGS])
{
	char fmt[EVENT_FORMAT];
	unsigned n = event_format(site, false, fmt);

	ktr_params_scan(fmt, params, n);
	return n;
}

bool
event_is_raw_call(const struct ktr_site *site)
{
	return site->kind == KTR_SITE_PROBE && strcmp(site->sdt->provider, "raw_syscalls") == 0;
}

uint64_t
event_call_number(const struct ktr_site *site)
{
	struct ktr_probe_name probe;
	const char *call = call_of(site, &probe);
	uint64_t nr = 0;

	while (call != NULL && strcmp(syscall_find(nr)->name, call) != 0)
		nr++;
	return nr;
}

unsigned
event_record(const struct ktr_site *site, char fmt[EVENT_FORMAT],
	     struct ktr_param params[EVENT_RECORD])
{
	unsigned places = kprobe_event_places(site), n = event_format(site, false, fmt);
	char rest[EVENT_FORMAT], *named;

	if (event_is_call(site)) {
		params[0] = (struct ktr_param){"__syscall_nr", .is_signed = true, .bits = 32};
		ktr_params_scan(fmt, params + 1, n);
		return 1 + n;
	}
	ktr_params_scan(fmt, params + places, n);
	named = strstr(fmt, KPROBE_REST "="); /* the text has names */
	if (named != NULL)
		memmove(named, named + sizeof(KPROBE_REST),
			strlen(named) - sizeof(KPROBE_REST) + 1);
	if (event_is_raw_call(site))
		strlcpy(fmt, n == 2 ? EVENT_RAW_EXIT : EVENT_RAW_ENTER, EVENT_FORMAT);
	if (places == 0)
		return n;
	for (unsigned i = 0; i < places; i++) {
		params[i] = (struct ktr_param){.bits = 64};
		strlcpy(params[i].name,
			places == 1 ? "__probe_ip"
			: i == 0    ? "__probe_func"
				    : "__probe_ret_ip",
			KTR_PARAM_NAME);
	}
	strlcpy(rest, fmt, sizeof(rest));
	snprintf(fmt, EVENT_FORMAT, "%s%s%.280s", places == 1 ? "(%lx)" : "(%lx <- %lx)",
		 n > 0 ? " " : "", rest);
	return places + n;
}
