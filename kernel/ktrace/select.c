/*
 * select.c - which probes ktrace needs, and what its hook is to do at each.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/syscall.h"
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "ktr/control.h"
#include "ktr/probe.h"
#include "ktr/sdt.h"

SDT_PROBE_DECLARE(proc, , , exec);
SDT_PROBE_DECLARE(proc, , , exit);
SDT_PROBE_DECLARE(proc, , , signal_handle);
SDT_PROBE_DECLARE(sched, , , off_cpu);
SDT_PROBE_DECLARE(sched, , , on_cpu);
SDT_PROBE_DECLARE(vfs, , , read);
SDT_PROBE_DECLARE(vfs, , , write);
SDT_PROBE_DECLARE(vfs, namei, lookup, entry);

static const struct call {
	uint32_t code;
	unsigned narg;
	const char *name;
} calls[] = {
#define A(...)                                  +1
#define SYSCALL(nr, name, restart, enomem, ...) {nr, 0 __VA_ARGS__, #name},
#include <syscalls.def>
#undef SYSCALL
#undef A
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

static int owner = -1;
static uint32_t selected; /* KTRFAC_… whose probes are on; ktrace_lock */

/* NULL: an unknown one. */
static const struct call *
call_find(const char *name)
{
	for (const struct call *c = calls; c < calls + CALLS; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

/* What the hook is to do at a site. */
static struct ktrace_action
action_of(const struct ktr_site *site)
{
	static const struct {
		const struct ktr_site *site;
		enum what what;
	} probes[] = {
	    {&sdt_proc___exec, EXEC},
	    {&sdt_proc___exit, EXIT},
	    {&sdt_proc___signal_handle, SIGNAL},
	    {&sdt_sched___off_cpu, OFF_CPU},
	    {&sdt_sched___on_cpu, ON_CPU},
	    {&sdt_vfs___read, READ},
	    {&sdt_vfs___write, WRITE},
	    {&sdt_vfs_namei_lookup_entry, NAME},
	};
	struct ktrace_action a = {.what = NOTHING, .code = KTRACE_UNKNOWN};
	struct ktr_probe_name name;
	const struct call *c;

	for (unsigned i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (probes[i].site == site)
			a.what = (uint8_t)probes[i].what;
	if (a.what != NOTHING || site->kind != KTR_SITE_POINT)
		return a;
	if (strncmp(site->fmt, "page fault", 10) == 0)
		a.what = strncmp(site->fmt, "page fault exit", 15) == 0 ? FAULT_END : FAULT;
	ktr_probe_name(site, &name);
	if (strcmp(name.provider, "syscall") != 0)
		return a;
	a.what = strcmp(name.name, "entry") == 0 ? CALL : RETURN;
	c = call_find(name.function);
	if (c == NULL)
		return a;
	a.code = (uint16_t)c->code;
	a.narg = c->narg;
	if (a.what == RETURN)
		a.narg = ktrace_has_struct(c->name, a.code) || c->code == NR_sysctl;
	return a;
}

int
ktrace_hook_init(void)
{
	unsigned n = ktr_site_count();

	if (ktrace_actions == NULL)
		ktrace_actions = kmap_alloc(n * sizeof(*ktrace_actions));
	if (ktrace_actions == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		ktrace_actions[i] = action_of(ktr_site_get(i));
	owner = ktr_owner_register("ktrace", ktrace_hook);
	return owner < 0 ? -EAGAIN : 0;
}

/* Kinds that have probes of their own; what all need is on while anything is traced. */
#define OWN_PROBES \
	(KTRFAC_NAMEI | KTRFAC_GENIO | KTRFAC_PSIG | KTRFAC_CSW | KTRFAC_FAULT | KTRFAC_FAULTEND)

/* Kinds of records that need a probe, by what the hook does there. */
static const uint32_t needs[] = {
    [CALL] = KTRFAC_MASK,   [RETURN] = KTRFAC_MASK,        [NAME] = KTRFAC_NAMEI,
    [EXEC] = KTRFAC_NAMEI,  [READ] = KTRFAC_GENIO,         [WRITE] = KTRFAC_GENIO,
    [SIGNAL] = KTRFAC_PSIG, [OFF_CPU] = KTRFAC_CSW,        [ON_CPU] = KTRFAC_MASK,
    [FAULT] = KTRFAC_FAULT, [FAULT_END] = KTRFAC_FAULTEND, [EXIT] = KTRFAC_MASK,
};

static bool
ktrace_site_wanted(const struct ktr_site *site, void *facs)
{
	return (*(uint32_t *)facs & needs[ktrace_actions[ktr_site_number(site)].what]) != 0;
}

/* All at once: whoever is traced may ask for it again and again, and each change of the kernel's
 * code interrupts all CPUs. */
void
ktrace_hook_select(uint32_t facs)
{
	if (((facs ^ selected) & OWN_PROBES) != 0 || (facs != 0) != (selected != 0))
		ktr_select_all((unsigned)owner, ktrace_site_wanted, &facs);
	selected = facs;
}
