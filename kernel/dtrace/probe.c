/* probe.c - what consumers are told of probes, and what programs see of firings. */
#include "kernel/dtrace/probe.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"
#include "ktr/fmt.h"

#define PUT(to, text) fmt_snprintf(to, sizeof(to), "%s", text)

void
dif_probe_describe(struct dif_probe *p, uint32_t id, const struct ktr_probe_name *name,
		   const struct ktr_site *site)
{
	const struct ktr_sdt *sdt =
	    site->kind == KTR_SITE_PROBE || site->kind == KTR_SITE_MADE ? site->sdt : NULL;

	*p = (struct dif_probe){.id = id, .nargs = site->nargs};
	PUT(p->provider, name->provider);
	PUT(p->module, name->module);
	PUT(p->function, name->function);
	PUT(p->name, name->name);
	PUT(p->format, name->fmt != NULL ? name->fmt : "");
	for (unsigned i = 0; sdt != NULL && i < KTR_SDT_ARGS && sdt->types[i] != NULL; i++) {
		PUT(p->types[i], sdt->types[i]);
		if (sdt->xlate[i] != NULL)
			PUT(p->xlate[i], sdt->xlate[i]);
		p->nargs = i + 1;
	}
}

static void
probe_see_texts(const struct ktr_firing *f, uint8_t texts, struct dtrace_seen *to)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->nargs && n < 2; i++) {
		uint64_t tag = to->args[i] >> 48;
		bool handle = tag == KTR_IDENT_TAG || tag == KTR_INTERN_TAG ||
			      (f->has_data && i + 1 == f->nargs);

		if ((texts >> i & 1) != 0 && handle &&
		    dif_port_text(f, i, to->copies[n], sizeof(to->copies[n])))
			to->args[i] = (uintptr_t)to->copies[n++];
	}
}

/* The result of a system call, as D has it: -1 and errno. */
static uint64_t
probe_result(uint64_t v)
{
	return v > (uint64_t)-4096 ? (uint64_t)-1 : v;
}

const struct ktr_firing *
dtrace_see(const struct dtrace_probe *p, const struct ktr_firing *f, struct dtrace_seen *to)
{
	if (!p->sysret && p->texts == 0)
		return f;
	memcpy(to->args, f->args, f->nargs * sizeof(*to->args));
	probe_see_texts(f, p->texts, to);
	to->f = *f;
	to->f.args = to->args;
	if (p->sysret) {
		to->args[2] = to->args[0];
		to->args[0] = to->args[1] = probe_result(to->args[0]);
		to->f.nargs = 2;
	}
	return &to->f;
}
