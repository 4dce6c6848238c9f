/*
 * data.c - events with long data: recording the parts, and joining them where the ring is at hand.
 *
 * ktr/wire.h says how data are stored in a ring. The parts are recorded before the event. So a
 * reader that finds the event also finds its parts, unless they have been overwritten. An NMI may
 * record between the parts, even data of its own; each event's parts have a number. The decoder
 * joins parts in ktr/decode_data.c.
 *
 * Locking: none.
 */
#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "ktr/sdt.h"
#include "ktr/str.h"
#include "ktr/wire.h"

#define STRANGERS 64u /* entries between two parts, beyond which a part counts as lost */

struct ktr_site ktr_data_site KTR_SITE_SECTION_ = {.file = __FILE__,
						   .func = "ktr_log_record_data",
						   .fmt = KTR_DATA_FORMAT,
						   .line = __LINE__,
						   .nargs = KTR_MAXARGS,
						   .kind = KTR_SITE_RECORD};

static inline uint32_t
data_min(uint64_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

static bool
record_parts(struct ktr_log *log, uint32_t number, const uint8_t *data, uint32_t size)
{
	bool recorded = true;
	for (uint32_t part = (size + KTR_DATA_PART - 1) / KTR_DATA_PART; recorded && part-- > 0;) {
		uint32_t at = part * KTR_DATA_PART;
		uint64_t words[KTR_MAXARGS] = {ktr_data_word(part, number)};
		ktr_copy(&words[1], data + at, data_min(size - at, KTR_DATA_PART));
		recorded = ktr_log_record(log, &ktr_data_site, words);
	}
	return recorded;
}

bool
ktr_log_record_data(struct ktr_log *log, const struct ktr_site *site,
		    const uint64_t args[KTR_MAXARGS], const void *data, size_t len)
{
	uint64_t words[KTR_MAXARGS];
	uintptr_t irq = ktr_port_irq_save();
	uint32_t number =
	    __atomic_fetch_add(&log->cpu[ktr_port_cpu()].data_number, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < KTR_MAXARGS; i++)
		words[i] = i + 1 == site->nargs
			       ? ktr_data_word(data_min(len, KTR_DATA_LENGTH), number)
			       : args[i];
	bool recorded = record_parts(log, number, data, data_min(len, KTR_DATA_MAX)) &&
			ktr_log_record(log, site, words);
	ktr_port_irq_restore(irq);
	return recorded;
}

void
ktr_record_data(const struct ktr_site *site, const void *data, size_t len, uint64_t a1, uint64_t a2,
		uint64_t a3, uint64_t a4, uint64_t a5)
{
	const uint64_t args[KTR_MAXARGS] = {a1, a2, a3, a4, a5};
	ktr_log_record_data(&ktr_main, site, args, data, len);
}

void
ktr_record_sdt7(const struct ktr_site *site, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
		uint64_t a4, uint64_t a5, uint64_t a6)
{
	char text[64];
	const uint64_t last[] = {a5, a6};
	size_t n =
	    (size_t)ktr_event_text(text, sizeof(text), NULL, site->sdt->last, last, 2, NULL, NULL);
	ktr_record_data(site, text, n < sizeof(text) ? n : sizeof(text) - 1, a0, a1, a2, a3, a4);
}

/* Looks from *before downwards for an entry that holds that part of the data, and goes there. */
static bool
find_part(const struct ktr_log *log, unsigned cpu, uint64_t *before, uint64_t word,
	  struct ktr_entry *e)
{
	uint64_t tail, head, seq = *before;
	if (!ktr_log_window(log, cpu, &tail, &head))
		return false;
	seq = seq < head ? seq : head;
	for (unsigned n = 0; n <= STRANGERS && seq-- > tail; n++) {
		if (ktr_log_read(log, cpu, seq, e) == KTR_READ_OK && ktr_entry_is_part(e) &&
		    e->args[0] == word) {
			*before = seq;
			return true;
		}
	}
	return false;
}

uint32_t
ktr_data_bytes(const struct ktr_log *log, unsigned cpu, uint64_t before, uint64_t word, void *buf,
	       uint32_t room)
{
	uint32_t want = data_min(ktr_data_middle(word), room), have = 0;
	struct ktr_entry e;
	while (have < want && find_part(log, cpu, &before,
					ktr_data_word(have / KTR_DATA_PART, (uint32_t)word), &e)) {
		uint32_t n = data_min(want - have, KTR_DATA_PART);
		ktr_copy((char *)buf + have, &e.args[1], n);
		have += n;
	}
	return have;
}

const char *
ktr_data_text(const struct ktr_log *log, unsigned cpu, uint64_t before, uint64_t word, char *buf)
{
	uint32_t length = ktr_data_middle(word), most = KTR_STRING_MAX - KTR_DATA_CUT_MAX;
	uint32_t have = ktr_data_bytes(log, cpu, before, word, buf, most);
	buf[have] = '\0';
	if (have < length && ktr_strlen(buf) == have)
		fmt_snprintf(buf + have, KTR_DATA_CUT_MAX, KTR_DATA_CUT, (unsigned)have,
			     (unsigned)length);
	return buf;
}
