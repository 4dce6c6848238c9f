/*
 * fmt.c - the one printf engine.
 *
 * Invariant: every argument is fetched exactly once and in order, also those of '*'; a number is
 * cut to the width of its type before it is printed, so that an int that travelled in 64 bits
 * prints as an int. Locking: none.
 */
#include "ktr/fmt.h"
#include "ktr/name.h"

struct fmt_out {
	const struct fmt_ops *ops;
	void *arg;
	size_t count;
};

static void
fmt_put(struct fmt_out *o, const char *text, size_t n)
{
	if (n == 0)
		return;
	o->ops->put(o->arg, text, n);
	o->count += n;
}

static void
fmt_pad(struct fmt_out *o, char c, long n)
{
	char pad[16];
	if (n <= 0)
		return;
	if (n > FMT_PAD_MAX)
		n = FMT_PAD_MAX;
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] = c;
	for (; n > 0; n -= (long)sizeof(pad))
		fmt_put(o, pad, n < (long)sizeof(pad) ? (size_t)n : sizeof(pad));
}

static bool
fmt_scan_number(const char **p, int *value)
{
	if (**p < '0' || **p > '9')
		return false;
	int n = 0;
	for (; **p >= '0' && **p <= '9'; ++*p)
		if (n < 100000)
			n = n * 10 + (**p - '0');
	*value = n;
	return true;
}

static void
fmt_scan_flags(const char **p, struct fmt_spec *s)
{
	for (;; ++*p) {
		switch (**p) {
		case '-':
			s->left = true;
			break;
		case '+':
			s->plus = true;
			break;
		case ' ':
			s->space = true;
			break;
		case '#':
			s->alt = true;
			break;
		case '0':
			s->zero = true;
			break;
		case '\'':
			break;
		default:
			return;
		}
	}
}

static enum fmt_type
fmt_scan_type(const char **p)
{
	switch (*(*p)++) {
	case 'h':
		if (**p != 'h')
			return FMT_SHORT;
		++*p;
		return FMT_CHAR;
	case 'l':
		if (**p != 'l')
			return FMT_LONG;
		++*p;
		return FMT_LONGLONG;
	case 'j':
		return FMT_INTMAX;
	case 'z':
		return FMT_SIZE;
	case 't':
		return FMT_PTRDIFF;
	default:
		--*p;
		return FMT_INT;
	}
}

/* Reads {name}. A word that begins with a digit, or no word at all, is no name. */
static void
fmt_scan_name(const char **p, struct fmt_spec *s)
{
	const char *name = *p + 1;
	size_t n = **p == '{' && !(*name >= '0' && *name <= '9') ? ktr_word_length(name) : 0;

	if (n == 0 || name[n] != '}')
		return;
	s->name = name;
	s->name_len = n;
	*p = name + n + 1;
}

void
fmt_scan_head(const char **fmt, struct fmt_spec *s)
{
	const char *p = *fmt;
	*s = (struct fmt_spec){.precision = -1};
	fmt_scan_name(&p, s);
	fmt_scan_flags(&p, s);
	if (*p == '*') {
		s->star_width = true;
		p++;
	} else {
		fmt_scan_number(&p, &s->width);
	}
	if (*p == '.') {
		p++;
		if (*p == '*') {
			s->star_precision = true;
			p++;
		} else if (!fmt_scan_number(&p, &s->precision)) {
			s->precision = 0;
		}
	}
	s->type = fmt_scan_type(&p);
	*fmt = p;
}

void
fmt_scan(const char **fmt, struct fmt_spec *s)
{
	const char *p = *fmt;
	fmt_scan_head(&p, s);
	switch (*p) {
	case 'i':
	case 'd':
		s->conv = 'd';
		break;
	case 'u':
	case 'x':
	case 'X':
	case 'o':
	case '%':
		s->conv = *p;
		break;
	case 'c':
		s->conv = 'c';
		s->type = FMT_INT;
		break;
	case 's':
		s->conv = 's';
		s->type = FMT_STRING;
		break;
	case 'p':
		s->conv = 'p';
		s->type = FMT_POINTER;
		if (p[1] == 'I' && p[2] == '4') {
			s->conv = 'I';
			p += 2;
		} else if (p[1] == 'D') {
			s->conv = 'D';
			p++;
		}
		break;
	default:
		return;
	}
	*fmt = p + 1;
}

/* The value cut to the size of its type, and extended to 64 bits again. */
static uint64_t
fmt_narrow(uint64_t v, enum fmt_type type, bool is_signed)
{
	switch (type) {
	case FMT_CHAR:
		return is_signed ? (uint64_t)(signed char)v : (unsigned char)v;
	case FMT_SHORT:
		return is_signed ? (uint64_t)(short)v : (unsigned short)v;
	case FMT_INT:
		return is_signed ? (uint64_t)(int)v : (unsigned)v;
	case FMT_LONG:
		return is_signed ? (uint64_t)(long)v : (unsigned long)v;
	case FMT_SIZE:
	case FMT_PTRDIFF:
		return is_signed ? (uint64_t)(ptrdiff_t)v : (size_t)v;
	default:
		return v;
	}
}

char *
fmt_decimal(char *p, uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
				    "31323334353637383940414243444546474849505152535455565758596061"
				    "62636465666768697071727374757677787980818283848586878889909192"
				    "93949596979899";
	/* Divisions by constants are multiplications and shifts. */
	for (; v >= 100; v /= 100) {
		p -= 2;
		__builtin_memcpy(p, pairs + v % 100 * 2, 2);
	}
	if (v < 10)
		*--p = (char)('0' + v);
	else
		__builtin_memcpy(p -= 2, pairs + v * 2, 2);
	return p;
}

/* Digits of v before `end`; returns their number, 0 for 0. 64 bits in octal are 22 digits. */
static int
fmt_digits(char *end, uint64_t v, unsigned base, const char *set)
{
	char *p = end;
	if (base == 10)
		return v != 0 ? (int)(end - fmt_decimal(end, v)) : 0;
	for (unsigned shift = base == 16 ? 4 : 3; v != 0; v >>= shift)
		*--p = set[v & (base - 1)];
	return (int)(end - p);
}

/* Sign or base prefix, zeros up to the precision, digits, padding around. */
static void
fmt_number(struct fmt_out *o, const struct fmt_spec *s, uint64_t v, bool negative, unsigned base)
{
	char digits[FMT_DECIMAL];
	const char *set = s->conv == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	int n = fmt_digits(digits + FMT_DECIMAL, v, base, set);

	const char *prefix = "";
	if (negative)
		prefix = "-";
	else if (s->conv == 'd' && s->plus)
		prefix = "+";
	else if (s->conv == 'd' && s->space)
		prefix = " ";
	else if (s->conv == 'p' || (s->alt && base == 16 && v != 0))
		prefix = s->conv == 'X' ? "0X" : "0x";
	int prefix_len = prefix[0] == '\0' ? 0 : prefix[1] == '\0' ? 1 : 2;

	int least = s->precision >= 0 ? s->precision : 1;
	if (base == 8 && s->alt && least <= n)
		least = n + 1;
	if (s->precision < 0 && s->zero && !s->left && s->width - prefix_len > least)
		least = s->width - prefix_len;
	int zeros = least > n ? least - n : 0;
	long pad = (long)s->width - prefix_len - zeros - n;

	if (!s->left)
		fmt_pad(o, ' ', pad);
	fmt_put(o, prefix, (size_t)prefix_len);
	fmt_pad(o, '0', zeros);
	fmt_put(o, digits + FMT_DECIMAL - n, (size_t)n);
	if (s->left)
		fmt_pad(o, ' ', pad);
}

static void
fmt_text(struct fmt_out *o, const struct fmt_spec *s, const char *text, size_t n)
{
	long pad = (long)s->width - (long)n;
	if (!s->left)
		fmt_pad(o, ' ', pad);
	fmt_put(o, text, n);
	if (s->left)
		fmt_pad(o, ' ', pad);
}

static void
fmt_string(struct fmt_out *o, const struct fmt_spec *s, uint64_t v)
{
	const char *text = "(null)";
	if (v != 0)
		text =
		    o->ops->string != NULL ? o->ops->string(o->arg, v) : (const char *)(uintptr_t)v;
	if (text == NULL) {
		struct fmt_spec hex = {.conv = 'p', .precision = -1};
		fmt_put(o, "(bad ", 5);
		fmt_number(o, &hex, v, false, 16);
		fmt_put(o, ")", 1);
		return;
	}
	size_t n = 0;
	while ((s->precision < 0 || n < (size_t)s->precision) && text[n] != '\0')
		n++;
	fmt_text(o, s, text, n);
}

static void
fmt_address(struct fmt_out *o, const struct fmt_spec *s, uint32_t address)
{
	char text[16], *p = text + sizeof(text);
	for (unsigned i = 4; i-- > 0;) {
		p = fmt_decimal(p, address >> 8 * i & 255);
		if (i > 0)
			*--p = '.';
	}
	fmt_text(o, s, p, (size_t)(text + sizeof(text) - p));
}

static void
fmt_device(struct fmt_out *o, const struct fmt_spec *s, uint32_t device)
{
	char text[2 * FMT_DECIMAL], *p = text + sizeof(text);
	p = fmt_decimal(p, device & ((1u << FMT_MINOR_BITS) - 1));
	*--p = ',';
	p = fmt_decimal(p, device >> FMT_MINOR_BITS);
	fmt_text(o, s, p, (size_t)(text + sizeof(text) - p));
}

static void
fmt_convert(struct fmt_out *o, const struct fmt_spec *s, uint64_t v)
{
	switch (s->conv) {
	case 'd':
		v = fmt_narrow(v, s->type, true);
		if ((int64_t)v < 0)
			fmt_number(o, s, -v, true, 10);
		else
			fmt_number(o, s, v, false, 10);
		break;
	case 'u':
		fmt_number(o, s, fmt_narrow(v, s->type, false), false, 10);
		break;
	case 'o':
		fmt_number(o, s, fmt_narrow(v, s->type, false), false, 8);
		break;
	case 'x':
	case 'X':
		fmt_number(o, s, fmt_narrow(v, s->type, false), false, 16);
		break;
	case 'p':
		fmt_number(o, s, (uintptr_t)v, false, 16);
		break;
	case 'I':
		fmt_address(o, s, (uint32_t)v);
		break;
	case 'D':
		fmt_device(o, s, (uint32_t)v);
		break;
	case 'c': {
		char c = (char)v;
		fmt_text(o, s, &c, 1);
		break;
	}
	default:
		fmt_string(o, s, v);
		break;
	}
}

void
fmt_value(void (*put)(void *arg, const char *text, size_t n), void *arg,
	  const struct fmt_spec *spec, uint64_t value)
{
	const struct fmt_ops ops = {.put = put};
	struct fmt_out o = {.ops = &ops, .arg = arg};
	fmt_convert(&o, spec, value);
}

size_t
fmt_format(const struct fmt_ops *ops, void *arg, const char *fmt)
{
	struct fmt_out o = {.ops = ops, .arg = arg};
	while (*fmt != '\0') {
		const char *p = fmt;
		while (*p != '\0' && *p != '%')
			p++;
		fmt_put(&o, fmt, (size_t)(p - fmt));
		fmt = p;
		if (*fmt == '\0')
			break;

		struct fmt_spec s;
		fmt++;
		fmt_scan(&fmt, &s);
		if (s.conv == 0 || s.conv == '%') {
			fmt_put(&o, "%", 1);
			continue;
		}
		if (s.star_width) {
			s.width = (int)ops->fetch(arg, FMT_INT);
			if (s.width < 0) {
				s.left = true;
				/* INT_MIN cannot be negated. */
				s.width = s.width < -100000 ? 100000 : -s.width;
			}
		}
		if (s.star_precision) {
			s.precision = (int)ops->fetch(arg, FMT_INT);
			if (s.precision < 0)
				s.precision = -1;
		}
		fmt_convert(&o, &s, ops->fetch(arg, s.type));
	}
	return o.count;
}

/* Arguments from a va_list, and the caller's put(). */
struct fmt_va {
	void (*put)(void *arg, const char *text, size_t n);
	void *arg;
	va_list ap;
};

static void
fmt_va_put(void *arg, const char *text, size_t n)
{
	struct fmt_va *va = arg;
	va->put(va->arg, text, n);
}

static uint64_t
fmt_va_fetch(void *arg, enum fmt_type type)
{
	struct fmt_va *va = arg;
	switch (type) {
	case FMT_LONG:
		return (uint64_t)va_arg(va->ap, long);
	case FMT_LONGLONG:
		return (uint64_t)va_arg(va->ap, long long);
	case FMT_INTMAX:
		return (uint64_t)va_arg(va->ap, intmax_t);
	case FMT_SIZE:
		return va_arg(va->ap, size_t);
	case FMT_PTRDIFF:
		return (uint64_t)va_arg(va->ap, ptrdiff_t);
	case FMT_POINTER:
	case FMT_STRING:
		return (uintptr_t)va_arg(va->ap, void *);
	default:
		return (uint64_t)va_arg(va->ap, int);
	}
}

size_t
fmt_vprint(void (*put)(void *arg, const char *text, size_t n), void *arg, const char *fmt,
	   va_list ap)
{
	static const struct fmt_ops ops = {.put = fmt_va_put, .fetch = fmt_va_fetch};
	struct fmt_va va = {.put = put, .arg = arg};
	va_copy(va.ap, ap);
	size_t n = fmt_format(&ops, &va, fmt);
	va_end(va.ap);
	return n;
}

struct fmt_buf {
	char *buf;
	size_t size, used;
};

static void
fmt_buf_put(void *arg, const char *text, size_t n)
{
	struct fmt_buf *b = arg;
	if (b->size == 0)
		return;
	char *to = b->buf + b->used;
	if (n > b->size - 1 - b->used)
		n = b->size - 1 - b->used;
	for (size_t i = 0; i < n; i++)
		to[i] = text[i];
	b->used += n;
}

int
fmt_vsnprintf(char *buf, size_t size, const char *fmt, va_list ap)
{
	struct fmt_buf b = {.buf = buf, .size = size};
	size_t n = fmt_vprint(fmt_buf_put, &b, fmt, ap);
	if (size > 0)
		buf[b.used] = '\0';
	return (int)n;
}

int
fmt_snprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = fmt_vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return n;
}
