/*
 * event.c - the text of an event: its site's format over its parameters.
 *
 * Most conversions are plain: %d, %lx, %s and so on, without a width or a precision. A plan lists
 * the plain conversions at the beginning of a format, so that a format is read once for many
 * events. The rest of a format is printed by the engine of fmt.c. Locking: none.
 */
#include "ktr/event.h"

#include "ktr/fmt.h"
#include "ktr/str.h"

enum plan_kind {
	PLAN_END, /* the format ends here */
	PLAN_D32,
	PLAN_D64,
	PLAN_U32,
	PLAN_U64,
	PLAN_X32,
	PLAN_X64,
	PLAN_ALT_X32,
	PLAN_ALT_X64,
	PLAN_P,
	PLAN_S,
	PLAN_NONE
};

/* The kind of a conversion, when nothing about it is special. */
static enum plan_kind
plan_kind(const struct fmt_spec *s)
{
	bool narrow = s->type == FMT_INT;
	bool wide = s->type == FMT_LONG || s->type == FMT_LONGLONG || s->type == FMT_INTMAX ||
		    s->type == FMT_SIZE || s->type == FMT_PTRDIFF;
	if (s->left || s->plus || s->space || s->zero || s->star_width || s->star_precision ||
	    s->width != 0 || s->precision >= 0 || (s->alt && s->conv != 'x') ||
	    (wide && sizeof(long) != 8))
		return PLAN_NONE;
	if (s->conv == 's' || s->conv == 'p')
		return s->conv == 's' ? PLAN_S : PLAN_P;
	enum plan_kind kind = s->conv == 'd'             ? PLAN_D32
			      : s->conv == 'u'           ? PLAN_U32
			      : s->conv == 'x' && s->alt ? PLAN_ALT_X32
			      : s->conv == 'x'           ? PLAN_X32
							 : PLAN_NONE;
	return kind != PLAN_NONE && (narrow || wide) ? kind + wide : PLAN_NONE;
}

void
ktr_event_plan(struct ktr_event_plan *plan, const char *fmt)
{
	const char *p = fmt;
	plan->count = 0;
	plan->rest = 0;
	while (plan->count < KTR_PLAN_PIECES) {
		struct ktr_plan_piece *piece = &plan->pieces[plan->count];
		struct fmt_spec s = {.conv = 0};
		piece->start = (uint16_t)(p - fmt);
		while (*p != '\0' && *p != '%')
			p++;
		if (p - fmt > UINT16_MAX)
			return;
		piece->len = (uint16_t)(p - fmt - piece->start);
		piece->kind = PLAN_END;
		if (*p != '\0') {
			p++;
			fmt_scan(&p, &s);
			piece->kind = (uint8_t)plan_kind(&s);
		}
		if (piece->kind == PLAN_NONE)
			return;
		plan->count++;
		plan->rest = (uint32_t)(p - fmt);
		if (piece->kind == PLAN_END)
			return;
	}
}

static char *
put_decimal(char *to, uint64_t v)
{
	char digits[FMT_DECIMAL];
	const char *p = fmt_decimal(digits + FMT_DECIMAL, v);
	size_t n = (size_t)(digits + FMT_DECIMAL - p);
	ktr_copy(to, p, n);
	return to + n;
}

static char *
put_hex(char *to, uint64_t v, bool prefix)
{
	char digits[16], *p = digits + sizeof(digits);
	if (prefix) {
		*to++ = '0';
		*to++ = 'x';
	}
	do
		*--p = "0123456789abcdef"[v & 15];
	while ((v >>= 4) != 0);
	size_t n = (size_t)(digits + sizeof(digits) - p);
	ktr_copy(to, p, n);
	return to + n;
}

static char *
event_put_number(char *to, enum plan_kind kind, uint64_t v)
{
	switch (kind) {
	case PLAN_D32:
		v = (uint64_t)(int32_t)v;
		/* fallthrough */
	case PLAN_D64:
		if ((int64_t)v < 0)
			*to++ = '-';
		return put_decimal(to, (int64_t)v < 0 ? -v : v);
	case PLAN_U32:
		return put_decimal(to, (uint32_t)v);
	case PLAN_U64:
		return put_decimal(to, v);
	case PLAN_X32:
	case PLAN_ALT_X32:
		v = (uint32_t)v;
		/* fallthrough */
	case PLAN_X64:
	case PLAN_ALT_X64:
		return put_hex(to, v, kind >= PLAN_ALT_X32 && v != 0);
	default:
		return put_hex(to, v, true);
	}
}

struct event_text {
	char *buf;
	size_t len, used;
	const uint64_t *args;
	unsigned nargs, next;
	ktr_string_fn *string;
	void *arg;
};

static void
event_put(void *arg, const char *text, size_t n)
{
	struct event_text *e = arg;
	size_t room = e->len > 0 ? e->len - 1 - e->used : 0;
	if (room == 0)
		return; /* buf may be NULL */
	if (n > room)
		n = room;
	ktr_copy(e->buf + e->used, text, n);
	e->used += n;
}

static uint64_t
event_fetch(void *arg, enum fmt_type type)
{
	struct event_text *e = arg;
	(void)type;
	return e->next < e->nargs ? e->args[e->next++] : 0;
}

static inline const char *
string_of(ktr_string_fn *string, void *arg, unsigned i, uint64_t value)
{
	return string != NULL ? string(arg, i, value) : ((const char *const *)arg)[i];
}

static const char *
event_string(void *arg, uint64_t value)
{
	struct event_text *e = arg;
	return string_of(e->string, e->arg, e->next - 1, value);
}

int
ktr_event_text(char *buf, size_t len, const struct ktr_event_plan *plan, const char *fmt,
	       const uint64_t *args, unsigned nargs, ktr_string_fn *string, void *arg)
{
	static const struct fmt_ops ops = {event_put, event_fetch, event_string};
	unsigned count = plan != NULL ? plan->count : 0, i = 0;
	const char *rest = fmt;
	char *to = buf;
	for (; i < count; i++) {
		const struct ktr_plan_piece *piece = &plan->pieces[i];
		rest = fmt + piece->start;
		/* Room for the literal and a number, or for what stands for a string. */
		if (len - (size_t)(to - buf) < piece->len + FMT_DECIMAL + 8)
			break;
		ktr_copy(to, rest, piece->len);
		to += piece->len;
		rest += piece->len;
		if (piece->kind == PLAN_END) {
			*to = '\0';
			return (int)(to - buf);
		}
		uint64_t v = i < nargs ? args[i] : 0;
		if (piece->kind != PLAN_S) {
			to = event_put_number(to, piece->kind, v);
			continue;
		}
		const char *text = v == 0 ? "(null)" : string_of(string, arg, i, v);
		if (text == NULL) {
			ktr_copy(to, "(bad ", 5);
			to = put_hex(to + 5, v, true);
			*to++ = ')';
			continue;
		}
		size_t n = ktr_strlen(text);
		if (len - (size_t)(to - buf) <= n)
			break;
		ktr_copy(to, text, n);
		to += n;
	}
	if (i == count && plan != NULL)
		rest = fmt + plan->rest;
	struct event_text e = {.buf = buf,
			       .len = len,
			       .used = (size_t)(to - buf),
			       .args = args,
			       .nargs = nargs,
			       .next = i,
			       .string = string,
			       .arg = arg};
	size_t n = e.used + fmt_format(&ops, &e, rest);
	if (len > 0)
		buf[e.used] = '\0';
	return (int)n;
}

uint8_t
ktr_event_strings(const char *fmt)
{
	unsigned mask = 0, n = 0;
	while (*fmt != '\0') {
		if (*fmt++ != '%')
			continue;
		struct fmt_spec s;
		fmt_scan(&fmt, &s);
		if (s.conv == 0 || s.conv == '%')
			continue;
		n += s.star_width + s.star_precision;
		if (s.conv == 's' && n < 6)
			mask |= 1u << n;
		n++;
	}
	return (uint8_t)mask;
}
