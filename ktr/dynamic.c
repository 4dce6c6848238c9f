/*
 * dynamic.c - sites made at run time: their memory, their texts, and which numbers are free.
 *
 * A freed site keeps its texts, because its events may still be in the rings. So a number that was
 * never used is taken first. When there is none, the rings are searched for numbers in use.
 *
 * Locking: the control lock.
 */
#include "ktr/dynamic.h"

#include "ktr/control.h"
#include "ktr/crc32c.h"
#include "ktr/fmt.h"
#include "ktr/image.h"
#include "ktr/ktr.h"
#include "ktr/persist.h"
#include "ktr/ring.h"
#include "ktr/str.h"

#define ALL [0 ... KTR_DYNAMIC_SITES - 1]
__extension__ struct ktr_site ktr_dynamic_sites[KTR_DYNAMIC_SITES] KTR_SITE_SECTION_ = {
    ALL = {.file = "", .func = "", .fmt = "", .kind = KTR_SITE_FREE}};
struct ktr_dynamic_texts ktr_dynamic_texts[KTR_DYNAMIC_SITES];
uint64_t ktr_dynamic_reused;

static unsigned fresh;                 /* sites from here on were never used */
static bool usable[KTR_DYNAMIC_SITES]; /* number is free, and no ring has an event of it */

uint32_t
ktr_dynamic_check(const char text[KTR_DYNAMIC_TEXT])
{
	return ktr_crc32c(text, KTR_DYNAMIC_TEXT);
}

static void
dynamic_nothing(void *arg)
{
	(void)arg;
}

/* Finds the free sites of which no ring has an event. */
static void
find_usable(void)
{
	uint32_t first = ktr_site_number(ktr_dynamic_sites);
	for (unsigned i = 0; i < KTR_DYNAMIC_SITES; i++)
		usable[i] = ktr_dynamic_sites[i].kind == KTR_SITE_FREE;
	ktr_port_exchange(dynamic_nothing, NULL); /* what was being recorded is in the rings */
	for (const struct ktr_log *log = &ktr_main; log != NULL; log = log->next) {
		for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
			const struct ktr_ring *ring = ktr_log_ring(log, cpu);
			uint64_t seq, head;
			if (!ktr_log_window(log, cpu, &seq, &head))
				continue;
			for (; seq < head; seq++) {
				uint32_t site = __atomic_load_n(&ktr_ring_slot(ring, seq)->site,
								__ATOMIC_RELAXED);
				site = ktr_site_number_of(site) - first;
				if (site < KTR_DYNAMIC_SITES)
					usable[site] = false;
			}
		}
	}
}

/* Finds a number that may be used. KTR_DYNAMIC_SITES: there is none. */
static unsigned
take_usable(void)
{
	unsigned i = 0;
	while (i < KTR_DYNAMIC_SITES && !usable[i])
		i++;
	if (i < KTR_DYNAMIC_SITES)
		usable[i] = false;
	return i;
}

static unsigned
dynamic_take_number(void)
{
	if (fresh < KTR_DYNAMIC_SITES)
		return fresh++;
	ktr_dynamic_reused++;
	unsigned i = take_usable();
	if (i < KTR_DYNAMIC_SITES)
		return i;
	find_usable();
	return take_usable();
}

/* Copies a text to *to, which then points after it. */
static const char *
dynamic_put(char **to, const char *text)
{
	char *start = *to;
	size_t n = ktr_strlen(text) + 1;
	ktr_copy(start, text, n);
	*to = start + n;
	return start;
}

static void
dynamic_fill(unsigned i, const struct ktr_dynamic *d)
{
	struct ktr_site *site = &ktr_dynamic_sites[i];
	struct ktr_dynamic_texts *t = &ktr_dynamic_texts[i];
	char *to = t->text;
	ktr_zero(t->text, sizeof(t->text));
	site->file = dynamic_put(&to, d->file);
	site->fmt = dynamic_put(&to, d->fmt);
	t->sdt = (struct ktr_sdt){.provider = dynamic_put(&to, d->provider),
				  .module = dynamic_put(&to, d->module),
				  .function = dynamic_put(&to, d->function),
				  .name = dynamic_put(&to, d->name)};
	ktr_copy(t->sdt.types, d->types, sizeof(d->types));
	site->func = t->sdt.function;
	site->sdt = &t->sdt;
	site->line = d->line;
	site->nargs = (uint8_t)d->nargs;
	site->strings = 0;
	site->pc = ktr_dynamic_check(t->text);
	ktr_hook_own(site, 0);
	/* Whoever sees the kind, without the lock, sees the texts. */
	__atomic_store_n(&site->kind, KTR_SITE_MADE, __ATOMIC_RELEASE);
	ktr_persist_store(t, sizeof(*t));
	ktr_persist_store(site, sizeof(*site));
}

struct ktr_site *
ktr_site_make(const struct ktr_dynamic *d, char *err, size_t errlen)
{
	const char *const texts[] = {d->file, d->fmt, d->provider, d->module, d->function, d->name};
	size_t size = 0;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		size += ktr_strlen(texts[i]) + 1;
	if (size > KTR_DYNAMIC_TEXT || d->nargs > KTR_MAXARGS) {
		fmt_snprintf(err, errlen,
			     "the probe's texts have %u bytes and it has %u arguments; expected at "
			     "most %u and %u",
			     (unsigned)size, d->nargs, KTR_DYNAMIC_TEXT, KTR_MAXARGS);
		return NULL;
	}
	if (fresh == 0)
		ktr_image_add_text(ktr_dynamic_texts, sizeof(ktr_dynamic_texts));
	unsigned i = dynamic_take_number();
	if (i < KTR_DYNAMIC_SITES)
		dynamic_fill(i, d);
	if (i < KTR_DYNAMIC_SITES)
		return &ktr_dynamic_sites[i];
	fmt_snprintf(err, errlen,
		     "all %u numbers of probes made at run time are taken: by probes, or by events "
		     "in the rings of probes that are gone",
		     KTR_DYNAMIC_SITES);
	return NULL;
}

void
ktr_site_free(struct ktr_site *site)
{
	if (site->owners != 0) {
		ktr_hook_own(site, 0);
		ktr_sites_apply();
	}
	site->kind = KTR_SITE_FREE;
}
