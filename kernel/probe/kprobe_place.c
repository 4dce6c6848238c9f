/*
 * kprobe_place.c - where a kprobe may be, and how the instruction there is run.
 * Locking: the control lock.
 */
#include "arch/fixup.h"
#include "arch/insn.h"
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/entry.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/probe/fbt.h"
#include "kernel/probe/kprobe_private.h"
#include "ktr/site.h"

extern char __kprobe_slots[], __kprobe_slots_end[];

static const struct ktr_patch *
find_patch(uintptr_t at)
{
	for (const struct ktr_patch *p = __start_ktr_patch; p < __stop_ktr_patch; p++)
		if (ktr_patch_at(p) == at)
			return p;
	return NULL;
}

/* A site of FBT of the function that begins there. NULL: none. */
static const struct ktr_site *
find_fbt(uintptr_t function, enum ktr_site_kind kind)
{
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *s = ktr_site_get(n);

		if (s->kind == kind && s->pc == (uint32_t)function)
			return s;
	}
	return NULL;
}

/* The reason why FBT has no probe for a function: a line "FUNCTION REASON". */
static const char *
exception_of(const char *function, size_t *len)
{
	size_t n = strlen(function);

	for (const char *line = fbt_exceptions; *line != '\0'; line++) {
		const char *end = strchr(line, '\n');

		*len = (size_t)((end != NULL ? end : line + strlen(line)) - line);
		if (strncmp(line, function, n) == 0 && line[n] == ' ') {
			*len -= n + 1;
			return line + n + 1;
		}
		line += *len;
		if (*line == '\0')
			break;
	}
	*len = strlen("it is no C function");
	return "it is no C function";
}

/* Slots are free if all their bytes are 0. Returns KPLACE_NO_SLOT if there is none. */
static uint32_t
slot_take(void)
{
	uint32_t size = (uint32_t)(__kprobe_slots_end - __kprobe_slots);

	for (uint32_t at = 0; at + ARCH_SLOT_SIZE <= size; at += ARCH_SLOT_SIZE) {
		const char *slot = __kprobe_slots + at;
		size_t n = 0;

		while (n < ARCH_SLOT_SIZE && slot[n] == 0)
			n++;
		if (n == ARCH_SLOT_SIZE)
			return at;
	}
	return KPLACE_NO_SLOT;
}

static void
slot_write(uint32_t slot, const uint8_t code[ARCH_SLOT_SIZE])
{
	uintptr_t at = (uintptr_t)__kprobe_slots + slot;

	entry_text_write(at, code, ARCH_SLOT_SIZE);
	arch_icache_sync((const void *)at, ARCH_SLOT_SIZE);
}

bool
kplace_prepare(struct place *p)
{
	uint8_t code[ARCH_SLOT_SIZE] = {0};
	const size_t half = ARCH_SLOT_SIZE / 2;

	p->slot = KPLACE_NO_SLOT;
	if (p->patch != NULL || arch_insn_slot(p->insn, p->at, p->at, true, code) == 0)
		return true;
	p->slot = slot_take();
	if (p->slot == KPLACE_NO_SLOT)
		return false;
	memset(code, 0, sizeof(code));
	uintptr_t at = (uintptr_t)__kprobe_slots + p->slot;
	arch_insn_slot(p->insn, p->at, at, true, code);
	arch_insn_slot(p->insn, p->at, at + half, false, code + half);
	slot_write(p->slot, code);
	return true;
}

int
kplace_check(struct ktold *t, const char *name, uintptr_t function, size_t offset, struct place *p)
{
	size_t size = offset + ARCH_INSN_MAX, at = 0, n;
	const char *why;
	uint8_t *code;
	int error = 0;

	if (find_fbt(function, KTR_SITE_ENTRY) == NULL) {
		why = exception_of(name, &n);
		return kprobe_refuse(t->err, t->errlen, t->at, "%s cannot be probed: %.*s", name,
				     (int)n, why);
	}
	for (const struct arch_fixup *f = __start_ex_table; f < __stop_ex_table; f++)
		if (f->from == function + offset)
			return kprobe_refuse(
			    t->err, t->errlen, t->at,
			    "the instruction there accesses memory that may be missing");
	code = kmalloc(size);
	if (code == NULL)
		return -ENOMEM;
	kprobe_read_text(function, code, size);
	while (at < offset && (n = arch_insn_length(code + at)) != 0)
		at += n;
	*p = (struct place){.at = function + offset,
			    .patch = find_patch(function + offset),
			    .slot = KPLACE_NO_SLOT};
	memcpy(p->insn, code + offset, ARCH_INSN_MAX);
	why = p->patch == NULL ? arch_insn_refuse(code, offset) : NULL;
	if (at != offset)
		error = kprobe_refuse(t->err, t->errlen, t->at,
				      "%s+%#zx is inside an instruction; one begins at +%#zx", name,
				      offset, at);
	else if (why != NULL)
		error = kprobe_refuse(t->err, t->errlen, t->at, "%s+%#zx: %s", name, offset, why);
	kfree(code);
	return error;
}

void
kplace_release(struct place *p)
{
	static const uint8_t nothing[ARCH_SLOT_SIZE];

	if (p->slot != KPLACE_NO_SLOT)
		slot_write(p->slot, nothing);
}

unsigned
kplace_returns(uintptr_t function, struct place *places)
{
	const struct ktr_site *site = find_fbt(function, KTR_SITE_RETURN);
	unsigned n = 0;

	for (const struct ktr_patch *p = __start_ktr_patch; p < __stop_ktr_patch; p++) {
		if (site == NULL || ktr_patch_site(p) != site)
			continue;
		if (places != NULL) {
			places[n] = (struct place){.at = ktr_patch_at(p),
						   .patch = p,
						   .slot = KPLACE_NO_SLOT};
			kprobe_read_text(places[n].at, places[n].insn, ARCH_INSN_MAX);
		}
		n++;
	}
	return n;
}
