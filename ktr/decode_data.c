/*
 * decode_data.c - the decoder joins long data (ktr/wire.h): parts come first, the last one first,
 * then the event that names them.
 *
 * Invariant: text holds the parts [low, high) of a group. A part that is not number low - 1 starts
 * the interval again, so an event always shows the beginning of its data.
 * Locking: none.
 */
#include "ktr/decode_private.h"

#include "ktr/fmt.h"
#include "ktr/str.h"

/*
 * An NMI may record data while data are being recorded. If another NMI interrupts it, which on
 * x86_64 is possible after a breakpoint in it, the first text is cut.
 */
#define GROUPS 2u

struct decode_data {
	unsigned newest; /* the group that changed last */
	struct decode_group {
		bool used;
		uint32_t number, low, high;
		/* The last byte is always 0, so an old pointer to it never leads beyond it. */
		char text[KTR_DATA_MAX + KTR_DATA_CUT_MAX];
	} groups[GROUPS];
};

bool
decode_data_format(const char *fmt)
{
	const char *expected = KTR_DATA_FORMAT;
	while (*fmt == *expected && *fmt != '\0') {
		fmt++;
		expected++;
	}
	return *fmt == *expected;
}

/* Finds the group of that number; a new one takes an older one's place. NULL: no memory. */
static struct decode_group *
group_of(struct ktr_decoder *d, unsigned cpu, uint32_t number)
{
	struct decode_data **data = &d->cpu[cpu].data;
	if (*data == NULL) {
		*data = d->ops.realloc(NULL, sizeof(**data));
		d->no_memory |= *data == NULL;
		if (*data == NULL)
			return NULL;
		ktr_zero(*data, sizeof(**data));
	}
	unsigned i = 0;
	while (i < GROUPS && !((*data)->groups[i].used && (*data)->groups[i].number == number))
		i++;
	if (i == GROUPS) {
		i = ((*data)->newest + 1) % GROUPS;
		(*data)->groups[i].used = true;
		(*data)->groups[i].number = number;
		(*data)->groups[i].low = (*data)->groups[i].high = 0;
	}
	(*data)->newest = i;
	return &(*data)->groups[i];
}

void
decode_data_part(struct ktr_decoder *d, unsigned cpu, const uint64_t args[6])
{
	uint32_t index = ktr_data_middle(args[0]);
	if (!ktr_data_is_word(args[0]) || index >= KTR_DATA_MAX / KTR_DATA_PART)
		return;
	struct decode_group *g = group_of(d, cpu, (uint32_t)args[0]);
	if (g == NULL)
		return;
	if (index + 1 != g->low)
		g->high = index + 1;
	g->low = index;
	ktr_copy(g->text + (size_t)index * KTR_DATA_PART, &args[1], KTR_DATA_PART);
}

const char *
decode_data_text(struct ktr_decoder *d, unsigned cpu, uint64_t word)
{
	struct decode_group *g = group_of(d, cpu, (uint32_t)word);
	if (g == NULL)
		return NULL;
	uint32_t length = ktr_data_middle(word), have = 0;
	if (g->low == 0)
		have = g->high * KTR_DATA_PART;
	if (have > length)
		have = length;
	g->text[have] = '\0';
	if (have < length && ktr_strlen(g->text) == have)
		fmt_snprintf(g->text + have, KTR_DATA_CUT_MAX, KTR_DATA_CUT, (unsigned)have,
			     (unsigned)length);
	g->used = false;
	return g->text;
}
