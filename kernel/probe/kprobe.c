/*
 * kprobe.c - probes at any instruction: which there are, their breakpoints, and what happens at
 * one.
 *
 * A probe p: has one place, a probe r: one for each return of its function. The breakpoint's
 * handler looks the place up in a hash table, fires the probes that are on there, and has the
 * instruction run. Handler and slot run with interrupts off. Breakpoints are written while all
 * other CPUs wait in an interrupt handler, in code that has no probes. Only an NMI may hit one at
 * that time. So a place leaves the table only when all CPUs have left that handler after its
 * breakpoint went; and it is freed after all CPUs have been in the handler, and left it, once more.
 *
 * Locking: the control lock. A handler reads without it.
 */
#include "kernel/probe/kprobe.h"

#include <ktr_port.h>

#include "arch/insn.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/entry.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/list.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/probe/kprobe_private.h"
#include "kernel/probe/uprobe.h"
#include "kernel/sync/pcpu.h"
#include "ktr/dynamic.h"
#include "ktr/hook.h"
#include "ktr/port.h"
#include "ktr/str.h"

#define BUCKETS 256u

extern char __kprobe_slots[];

struct list kprobes = LIST_INIT(kprobes);
static struct place *buckets[BUCKETS];
static uint8_t busy[MAX_CPUS][2]; /* for each CPU: a probe fires; and a probe fires in an NMI */

/* ---- a breakpoint is hit ---- */

static struct place **
kprobe_bucket(uintptr_t at)
{
	return &buckets[(at ^ at >> 8) % BUCKETS];
}

/* Where the function returns to whose frame is not made yet, or not there any more. */
static inline uintptr_t
return_address(const struct arch_trapframe *tf)
{
	uintptr_t link = arch_tf_link(tf);

	return link != 0 ? link : *(const uintptr_t *)arch_tf_sp(tf);
}

static void
kprobe_fire(struct kprobe *p, const struct arch_trapframe *tf)
{
	uint8_t *mine = &busy[arch_cpu()][this_pcpu()->nmi != 0];
	struct kfetching in; /* `file` is for programs; `missing` is valid after a fault */
	uint64_t args[KTR_MAXARGS];
	struct ktr_firing f;
	unsigned nargs = p->nargs;

	if (*mine != 0) {
		__atomic_fetch_add(&p->misses, 1, __ATOMIC_RELAXED);
		return;
	}
	*(volatile uint8_t *)mine = 1;
	in.tf = tf;
	in.definition = p->text;
	in.faults = 0;
	for (unsigned i = 0; i < nargs; i++)
		args[i] = p->plain[i] != KPROBE_NOT_PLAIN ? ((const uint64_t *)tf)[p->plain[i]]
							  : kprobe_fetch(&p->def.args[i], &in);
	/*
	 * After the arguments that the format shows, the event tells where the probe was, if there
	 * is room and no argument tells it: the low halves of the addresses of the instruction, or
	 * of the function and of where that returns to.
	 */
	if (__atomic_load_n(&p->tells_more, __ATOMIC_RELAXED) && nargs < KTR_MAXARGS) {
		args[nargs] = nargs < p->def.nargs ? kprobe_fetch_rest(&p->def, &in)
			      : p->def.is_return ? (uint32_t)p->function | return_address(tf) << 32
						 : (uint32_t)arch_tf_pc(tf);
		nargs++;
	}
	__atomic_fetch_add(&p->hits, 1, __ATOMIC_RELAXED);
	if (in.faults != 0)
		__atomic_fetch_add(&p->faults, (uint64_t)in.faults, __ATOMIC_RELAXED);
	/* One by one: an initialiser would clear the others. */
	f.site = p->site;
	f.args = args;
	f.frame = NULL;
	f.nargs = (uint16_t)nargs;
	f.has_data = 0;
	f.owners = 0;
	f.where.pc = arch_tf_pc(tf);
	f.where.ret = p->frameless ? return_address(tf) : 0;
	f.where.fp = arch_tf_fp(tf);
	f.where.regs = tf;
	ktr_fire(&f);
	*(volatile uint8_t *)mine = 0;
}

bool
entry_probe(struct arch_trapframe *tf, uintptr_t at)
{
	const struct place *first;

	if (arch_tf_user(tf))
		return uprobe_trap(tf, at);
	first = *kprobe_bucket(at);
	while (first != NULL && first->at != at)
		first = first->next;
	if (first == NULL)
		return false;
	arch_tf_set_pc(tf, at);
	for (const struct place *p = first; p != NULL; p = p->next)
		if (p->at == at)
			kprobe_fire(p->probe, tf);
	if (first->patch != NULL)
		arch_patch_run(first->patch, tf);
	else if (first->slot == KPLACE_NO_SLOT)
		arch_insn_emulate(first->insn, at, tf, &at);
	else
		arch_insn_run((uintptr_t)__kprobe_slots + first->slot, tf);
	return true;
}

bool
entry_probe_at(uintptr_t at)
{
	const struct place *p = *kprobe_bucket(at);

	while (p != NULL && p->at != at)
		p = p->next;
	return p != NULL;
}

/* The bytes in whose place a breakpoint stands, or is to stand, as they would be now. */
static void
place_text(const struct place *p, uint8_t text[ARCH_BREAK_SIZE])
{
	if (p->patch != NULL)
		arch_patch_code(p->patch, text);
	else
		memcpy(text, p->insn, ARCH_BREAK_SIZE);
}

void
kprobe_read_text(uintptr_t from, uint8_t *to, size_t n)
{
	uint8_t text[ARCH_BREAK_SIZE];

	memcpy(to, (const void *)from, n);
	for (unsigned b = 0; b < BUCKETS; b++)
		for (const struct place *p = buckets[b]; p != NULL; p = p->next) {
			place_text(p, text);
			for (size_t i = 0; i < ARCH_BREAK_SIZE; i++)
				if (p->at + i - from < n)
					to[p->at + i - from] = text[i];
		}
}

/* ---- breakpoints ---- */

bool
kprobe_wanted(const struct kprobe *k)
{
	return !k->gone && ktr_site_why(k->site) != KTR_SITE_OFF;
}

static void
place_link(struct place *p)
{
	struct place **at = kprobe_bucket(p->at);

	p->next = *at;
	/* release: pairs with a handler's look at the table */
	__atomic_store_n(at, p, __ATOMIC_RELEASE);
}

static void
place_unlink(const struct place *p)
{
	struct place **at = kprobe_bucket(p->at);

	while (*at != NULL && *at != p)
		at = &(*at)->next;
	if (*at != NULL)
		*at = p->next;
}

/* Has another probe a breakpoint at the same place? */
static bool
place_shared(const struct place *p)
{
	const struct place *other = *kprobe_bucket(p->at);

	while (other != NULL && (other == p || !other->armed || other->at != p->at))
		other = other->next;
	return other != NULL;
}

static void
place_write(const struct place *p, const uint8_t text[ARCH_BREAK_SIZE])
{
	if (place_shared(p))
		return; /* the breakpoint is there, and stays */
	entry_text_write(p->at, text, ARCH_BREAK_SIZE);
	arch_icache_sync((const void *)p->at, ARCH_BREAK_SIZE);
}

/* Puts the breakpoint there, or what was there before. */
static void
place_switch(struct place *p, bool on)
{
	uint8_t text[ARCH_BREAK_SIZE];

	if (p->armed == on)
		return;
	if (on)
		place_link(p);
	p->armed = on;
	if (on)
		memcpy(text, arch_break_insn, sizeof(text));
	else
		place_text(p, text);
	place_write(p, text);
}

static void
write_all(void *arg)
{
	list_for_each_entry (struct kprobe, k, &kprobes, link)
		for (unsigned i = 0; i < k->count; i++)
			place_switch(&k->places[i], kprobe_wanted(k));
}

static void
unlink_all(void)
{
	list_for_each_entry (const struct kprobe, k, &kprobes, link)
		for (unsigned i = 0; i < k->count; i++)
			if (!k->places[i].armed)
				place_unlink(&k->places[i]);
}

void
kprobe_apply(void)
{
	uprobe_apply();
	list_for_each_entry (const struct kprobe, k, &kprobes, link)
		if (k->count != 0 && k->places[0].armed != kprobe_wanted(k)) {
			ktr_port_exchange(write_all, NULL);
			ktr_port_sync();
			unlink_all();
			ktr_port_sync();
			return;
		}
}

/* ---- probes ---- */

void
kprobe_free(struct kprobe *k)
{
	for (unsigned i = 0; i < k->count; i++)
		kplace_release(&k->places[i]);
	if (k->user.vn != NULL)
		uprobe_close(&k->user);
	kfree(k->text);
	kfree(k);
}

/* Is the value that of a register, unchanged? */
static bool
kprobe_is_plain(const struct kfetch *f)
{
	return f->base == KFETCH_REGISTER && f->derefs == 0 && f->size == 8 && f->width == 0 &&
	       (f->print == KFETCH_HEX || f->print == KFETCH_UNSIGNED || f->print == KFETCH_SIGNED);
}

/* A probe with room for so many places. NULL: no memory. */
static struct kprobe *
kprobe_new(const struct kdefinition *d, const char *text, unsigned places)
{
	struct kprobe *k = kzalloc(sizeof(*k) + places * sizeof(k->places[0]));

	if (k == NULL)
		return NULL;
	k->def = *d;
	k->nargs = kprobe_first(d);
	k->user.probe = k;
	k->text = kmalloc(strlen(text) + 1);
	if (k->text != NULL)
		memcpy(k->text, text, strlen(text) + 1);
	if (k->text != NULL)
		return k;
	kprobe_free(k);
	return NULL;
}

/* Makes a probe at an instruction of programs. 0 or -errno. */
int
uprobe_make(const struct kdefinition *d, const char *text, struct ktold *t, struct kprobe **made)
{
	struct kprobe *k = kprobe_new(d, text, 0);
	char *path = k != NULL ? kmalloc(d->path + 1) : NULL;
	int error = -ENOMEM;

	if (path != NULL) {
		ktr_copy(path, text + d->place_at, d->path);
		path[d->path] = '\0';
		k->user.offset = d->offset;
		error = uprobe_open(&k->user, path, t);
	}
	kfree(path);
	if (error != 0 && k != NULL)
		kprobe_free(k);
	*made = error == 0 ? k : NULL;
	return error;
}

/* Makes the probe, without its site. */
static int
kprobe_make(const struct kdefinition *d, const char *text, struct ktold *t, struct kprobe **made)
{
	struct place place;
	uintptr_t offset, function = d->address + d->offset;
	const char *name;
	struct kprobe *k;
	unsigned count;
	int error;

	name = ksym_alias(d->address);
	if (d->function[0] != '\0' && name != NULL)
		ksym_ask(d->address, strcmp(name, d->function) != 0,
			 strcmp(name, d->function) == 0);
	name = function >= d->address ? ksym_lookup(function, &offset) : NULL;
	if (name == NULL)
		return kprobe_refuse(t->err, t->errlen, t->at, "no function is at that address");
	function -= offset;
	if (d->is_return && offset != 0)
		return kprobe_refuse(t->err, t->errlen, t->at,
				     "a return has no offset: expected the start of a function");
	error = kplace_check(t, name, function, offset, &place);
	if (error != 0)
		return error;
	count = d->is_return ? kplace_returns(function, NULL) : 1;
	if (count == 0)
		return kprobe_refuse(t->err, t->errlen, t->at, "%s never returns", name);
	k = kprobe_new(d, text, count);
	if (k == NULL)
		return -ENOMEM;
	k->frameless = d->is_return || offset == 0;
	k->tells_more = d->is_return || d->nargs > KTR_MAXARGS;
	k->function = function;
	k->def.offset = offset;
	ktr_copy(k->def.function, name, strlen(name) < 63 ? strlen(name) + 1 : 63);
	for (unsigned i = 0; i < k->nargs; i++)
		k->plain[i] =
		    kprobe_is_plain(&d->args[i]) ? (uint8_t)d->args[i].reg : KPROBE_NOT_PLAIN;
	if (d->is_return)
		k->count = kplace_returns(function, k->places);
	else
		k->places[k->count++] = place;
	for (unsigned i = 0; i < k->count; i++)
		k->places[i].probe = k;
	if (!kplace_prepare(&k->places[0])) {
		snprintf(t->err, t->errlen, "there are too many probes inside of functions");
		kprobe_free(k);
		return -ENOSPC;
	}
	*made = k;
	return 0;
}

/* Makes the event's site. 0; -ENOSPC, and a sentence; or -ENOMEM. */
static int
kprobe_make_site(struct kprobe *k, char *err, size_t errlen)
{
	int error;

	k->site = kprobe_site(k, err, errlen);
	if (k->site == NULL)
		return -ENOSPC;
	error = kprobe_group_set(k->site, k->def.group, err, errlen);
	if (error != 0)
		ktr_site_free(k->site);
	return error;
}

/* Makes an event probe, without its site. */
static int
eprobe_make(const struct kdefinition *d, const char *text, struct ktold *t, struct kprobe **made)
{
	int error = kprobe_events->check(d->target, d->filter != 0 ? text + d->filter : NULL);

	*made = error == 0 ? kprobe_new(d, text, 0) : NULL;
	return error != 0 ? error : *made != NULL ? 0 : -ENOMEM;
}

/* Adds the probe *made, or one that it makes. If that fails, *made is the caller's still. */
static int
add_parsed(const struct kdefinition *d, const char *text, struct ktold *told, struct kprobe *made)
{
	struct kprobe *k = made, *event = kprobe_event_find(d->group, d->name);
	int error = 0;

	if (event != NULL)
		error = kprobe_event_check(event, d, text, told);
	else if (kprobe_name_taken != NULL && kprobe_name_taken(d->group, d->name))
		error = (snprintf(told->err, told->errlen, "there is an event \"%s/%s\" already",
				  d->group, d->name),
			 -EEXIST);
	told->at = d->place_at;
	if (error == 0 && k == NULL)
		error = d->kind == KPROBE_KERNEL ? kprobe_make(d, text, told, &k)
						 : eprobe_make(d, text, told, &k);
	if (error == 0 && event != NULL)
		k->site = event->site;
	else if (error == 0)
		error = kprobe_make_site(k, told->err, told->errlen);
	if (error != 0) {
		if (k != NULL && k != made)
			kprobe_free(k);
		return error;
	}
	list_append(&kprobes, &k->link);
	if (event != NULL)
		kprobe_event_is_several(k->site);
	kprobe_apply(); /* the event may be on */
	return 0;
}

int
kprobe_add(const char *definition, enum kprobe_kind kind, char *err, size_t errlen)
{
	struct kdefinition *d = kmalloc(sizeof(*d)); /* it is large */
	struct ktold told = {.err = err, .errlen = errlen};
	struct kprobe *k = NULL;
	int error = -ENOMEM;

	err[0] = '\0';
	if (kind != KPROBE_USER)
		ktr_port_lock();
	if (d != NULL)
		error = kprobe_parse(definition, kind, d, err, errlen);
	if (kind == KPROBE_USER) {
		/* without the lock: this reads the program's file, which may take long */
		if (error == 0) {
			told.at = d->place_at;
			error = uprobe_make(d, definition, &told, &k);
			told.at = 0;
		}
		ktr_port_lock();
	}
	if (error == 0)
		error = add_parsed(d, definition, &told, k);
	ktr_port_unlock();
	if (error != 0 && k != NULL)
		kprobe_free(k); /* without the lock: the last reference may remove the file */
	kfree(d);
	if (error == -ENOMEM && err[0] == '\0')
		snprintf(err, errlen, "no memory for a probe");
	return error;
}
