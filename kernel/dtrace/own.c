/* own.c - the engine's own probes, and the ids of all. */
#include "kernel/dtrace/probe.h"
#include "kernel/lib/string.h"
#include "ktr/event.h"

SDT_PROVIDER_DEFINE(dtrace);
SDT_PROBE_DEFINE0(dtrace, , , BEGIN, BEGIN);
SDT_PROBE_DEFINE0(dtrace, , , END, END);
SDT_PROBE_DEFINE5(dtrace, , , ERROR, ERROR, "uint32_t", "uint32_t", "uint32_t", "int", "uintptr_t");

struct ktr_site *const dtrace_own[] = {
    [DIF_PROBE_BEGIN] = &SDT_SITE_(dtrace, , , BEGIN),
    [DIF_PROBE_END] = &SDT_SITE_(dtrace, , , END),
    [DIF_PROBE_ERROR] = &SDT_SITE_(dtrace, , , ERROR),
};

uint32_t
dtrace_probe_id(const struct ktr_site *site)
{
	for (uint32_t i = DIF_PROBE_BEGIN; i < DTRACE_OWN; i++)
		if (site == dtrace_own[i])
			return i;
	return DTRACE_OWN + ktr_site_number(site);
}

void
dtrace_probe_name(const struct ktr_site *site, struct ktr_probe_name *name)
{
	ktr_probe_name(site, name);
	if (dtrace_probe_id(site) < DTRACE_OWN || strcmp(name->provider, "profile") == 0)
		name->module[0] = '\0';
}

struct ktr_site *
dtrace_probe_site(uint32_t id)
{
	return id < DTRACE_OWN ? dtrace_own[id] : ktr_site_get(id - DTRACE_OWN);
}

void
dtrace_probe_describe(struct dtrace_probe *p, const struct ktr_site *site, bool as_d)
{
	dtrace_probe_name(site, &p->name);
	p->id = dtrace_probe_id(site);
	p->made = site->kind == KTR_SITE_MADE;
	p->texts = as_d && (site->kind == KTR_SITE_POINT || site->kind == KTR_SITE_PROBE)
		       ? ktr_event_strings(site->fmt) & 0x7f
		       : 0;
	p->sysret = as_d && site->kind == KTR_SITE_POINT &&
		    strcmp(p->name.provider, "syscall") == 0 && strcmp(p->name.name, "return") == 0;
}
