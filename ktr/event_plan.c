/*
 * event_plan.c - the text of an event whose format was read once. Locking: none.
 */
#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/str.h"

enum plan_kind {
	PLAN_END,
	PLAN_D32,
	PLAN_D64,
	PLAN_U32,
	PLAN_U64,
	PLAN_X32,
	PLAN_X64,
	PLAN_ALT_X32,
	PLAN_ALT_X64,
	PLAN_P,
	PLAN_S
};

#define PLAN_NONE 255u

/* The kind of a conversion, when nothing about it is special. */
static unsigned
plan_kind(const struct fmt_spec *s)
{
	bool narrow = s->type == FMT_INT;
	bool wide = s->type == FMT_LONG || s->type == FMT_LONGLONG || s->type == FMT_INTMAX ||
		    s->type == FMT_SIZE || s->type == FMT_PTRDIFF;
	if (s->left || s->plus || s->space || s->zero || s->star_width || s->star_precision ||
	    s->width != 0 || s->precision >= 0 || (s->alt && s->conv != 'x') ||
	    (wide && sizeof(long) != 8))
		return PLAN_NONE;
	switch (s->conv) {
	case 'd':
		return narrow ? PLAN_D32 : wide ? PLAN_D64 : PLAN_NONE;
	case 'u':
		return narrow ? PLAN_U32 : wide ? PLAN_U64 : PLAN_NONE;
	case 'x':
		if (!narrow && !wide)
			return PLAN_NONE;
		return (unsigned)(s->alt ? PLAN_ALT_X32 : PLAN_X32) + wide;
	case 'p':
		return PLAN_P;
	case 's':
		return PLAN_S;
	default:
		return PLAN_NONE;
	}
}

void
ktr_event_plan(struct ktr_event_plan *plan, const char *fmt)
{
	const char *p = fmt;
	unsigned n = 0;
	plan->count = 0;
	while (n < KTR_PLAN_PIECES) {
		struct ktr_plan_piece *piece = &plan->pieces[n++];
		struct fmt_spec s;
		piece->start = (uint16_t)(p - fmt);
		while (*p != '\0' && *p != '%')
			p++;
		if (p - fmt > UINT16_MAX)
			return;
		piece->len = (uint16_t)(p - fmt - piece->start);
		piece->kind = PLAN_END;
		if (*p == '\0') {
			plan->count = (uint8_t)n;
			return;
		}
		p++;
		fmt_scan(&p, &s);
		unsigned kind = s.conv == 0 || s.conv == '%' ? PLAN_NONE : plan_kind(&s);
		if (kind == PLAN_NONE)
			return;
		piece->kind = (uint8_t)kind;
	}
}

static char *
plan_decimal(char *to, uint64_t v)
{
	char digits[FMT_DECIMAL];
	const char *p = fmt_decimal(digits + FMT_DECIMAL, v);
	size_t n = (size_t)(digits + FMT_DECIMAL - p);
	ktr_copy(to, p, n);
	return to + n;
}

static char *
plan_hex(char *to, uint64_t v, bool prefix)
{
	int shift = v != 0 ? (63 - __builtin_clzll(v)) & ~3 : 0;
	if (prefix) {
		*to++ = '0';
		*to++ = 'x';
	}
	for (; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[v >> shift & 15];
	return to;
}

static char *
plan_number(char *to, unsigned kind, uint64_t v)
{
	switch (kind) {
	case PLAN_D32:
		v = (uint64_t)(int32_t)v;
		/* fallthrough */
	case PLAN_D64:
		if ((int64_t)v < 0)
			*to++ = '-';
		return plan_decimal(to, (int64_t)v < 0 ? -v : v);
	case PLAN_U32:
		return plan_decimal(to, (uint32_t)v);
	case PLAN_U64:
		return plan_decimal(to, v);
	case PLAN_X32:
	case PLAN_ALT_X32:
		v = (uint32_t)v;
		/* fallthrough */
	case PLAN_X64:
	case PLAN_ALT_X64:
		return plan_hex(to, v, kind >= PLAN_ALT_X32 && v != 0);
	default:
		return plan_hex(to, v, true);
	}
}

int
ktr_event_plan_text(char *buf, size_t len, const struct ktr_event_plan *plan, const char *fmt,
		    const uint64_t *args, unsigned nargs, const char *const *strings)
{
	if (plan->count == 0 || len == 0)
		return -1;
	char *to = buf, *end = buf + len;
	for (unsigned i = 0; i < plan->count; i++) {
		const struct ktr_plan_piece *piece = &plan->pieces[i];
		uint64_t v = i < nargs ? args[i] : 0;
		/* Room for the literal and a number, or for what stands for a string. */
		if ((size_t)(end - to) < piece->len + FMT_DECIMAL + 8)
			return -1;
		ktr_copy(to, fmt + piece->start, piece->len);
		to += piece->len;
		if (piece->kind == PLAN_END)
			break;
		if (piece->kind != PLAN_S) {
			to = plan_number(to, piece->kind, v);
			continue;
		}
		const char *text = v == 0 ? "(null)" : i < nargs ? strings[i] : NULL;
		if (text == NULL) {
			ktr_copy(to, "(bad ", 5);
			to = plan_hex(to + 5, v, true);
			*to++ = ')';
			continue;
		}
		size_t n = ktr_strlen(text);
		if ((size_t)(end - to) <= n)
			return -1;
		ktr_copy(to, text, n);
		to += n;
	}
	*to = '\0';
	return (int)(to - buf);
}
