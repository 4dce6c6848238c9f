/* event_format.c - formats of events for Linux's tools. Locking: none. */
#include "ktr/event_format.h"

#include <stdarg.h>

#include "ktr/fmt.h"
#include "ktr/name.h"

__attribute__((format(printf, 2, 3))) static void
format_print(const struct ktr_format_out *out, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fmt_vprint(out->put, out->arg, fmt, ap);
	va_end(ap);
}

static void
copy_name(char *to, size_t room, const char *from, size_t n)
{
	if (n > room - 1)
		n = room - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = ktr_is_word(from[i]) ? from[i] : '_';
	to[n] = '\0';
}

void
ktr_event_name(struct ktr_event_name *to, const char *func, unsigned line, const char *fmt)
{
	/* "provider:module:function:name: …", without blanks in the names */
	const char *colons[4], *p = fmt;
	unsigned n = 0;
	for (; n < 4 && *p != '\0' && *p != ' ' && *p != '%'; p++)
		if (*p == ':')
			colons[n++] = p;
	*to = (struct ktr_event_name){.fmt = fmt};
	if (n >= 3 && (n == 4 || *p == '\0')) {
		const char *end = n == 4 ? colons[3] : p;
		copy_name(to->system, sizeof(to->system), fmt, (size_t)(colons[0] - fmt));
		copy_name(to->name, sizeof(to->name), colons[2] + 1, (size_t)(end - colons[2] - 1));
		to->fmt = end[0] == ':' && end[1] == ' ' ? end + 2 : end;
		return;
	}
	char text[KTR_EVENT_NAME];
	int len = fmt_snprintf(text, sizeof(text), "%s_%u", func, line);
	copy_name(to->name, sizeof(to->name), text, (size_t)len);
}

const char ktr_format_header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				      "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				      "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				      "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
const char ktr_format_header_event[] = "# compressed entry header\n"
				       "\ttype_len    :    5 bits\n"
				       "\ttime_delta  :   27 bits\n"
				       "\tarray       :   32 bits\n\n"
				       "\tpadding     : type == 29\n"
				       "\ttime_extend : type == 30\n"
				       "\ttime_stamp : type == 31\n"
				       "\tdata max type_len  == 28\n";

#define DELTA_BITS  27u
#define TIME_EXTEND 30u

size_t
ktr_format_record_head(uint8_t *to, uint64_t delta, size_t n)
{
	uint32_t words[4];
	unsigned used = 0;
	if (delta >> DELTA_BITS != 0) {
		words[used++] = TIME_EXTEND | (uint32_t)(delta & ((1u << DELTA_BITS) - 1)) << 5;
		words[used++] = (uint32_t)(delta >> DELTA_BITS);
		delta = 0;
	}
	words[used++] = (uint32_t)(n <= 112 ? n / 4 : 0) | (uint32_t)delta << 5;
	if (n > 112)
		words[used++] = (uint32_t)n + 4;
	for (unsigned i = 0; i < used * sizeof(words[0]); i++)
		to[i] = (uint8_t)(words[i / 4] >> i % 4 * 8);
	return used * sizeof(words[0]);
}

void
ktr_format_begin(const struct ktr_format_out *out, const char *name, unsigned id)
{
	format_print(out,
		     "name: %s\nID: %u\nformat:\n"
		     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		     "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		     name, id);
}

static const struct {
	const char *type, *array;
	uint8_t size, align;
	bool is_signed;
} field_types[] = {
    [KTR_FIELD_INT] = {"int", "", 4, 1, true},
    [KTR_FIELD_UINT] = {"unsigned int", "", 4, 1, false},
    [KTR_FIELD_LONG] = {"long", "", 8, 1, true},
    [KTR_FIELD_ULONG] = {"unsigned long", "", 8, 1, false},
    [KTR_FIELD_S64] = {"s64", "", 8, 1, true},
    [KTR_FIELD_U64] = {"u64", "", 8, 1, false},
    [KTR_FIELD_COMM] = {"char", "[16]", KTR_FORMAT_COMM, 1, false},
    [KTR_FIELD_STRING] = {"__data_loc char[]", "", 4, 1, false},
    [KTR_FIELD_REST] = {"char", "[]", 0, 1, false},
    [KTR_FIELD_CALLERS] = {"unsigned long", "[8]", 64, 8, false},
};

void
ktr_format_field(const struct ktr_format_out *out, enum ktr_field type, const char *name,
		 unsigned *at)
{
	const unsigned align = field_types[type].align, size = field_types[type].size;
	*at = (*at + align - 1) & ~(align - 1);
	format_print(out, "\tfield:%s %s%s;\toffset:%u;\tsize:%u;\tsigned:%d;\n",
		     field_types[type].type, name, field_types[type].array, *at, size,
		     field_types[type].is_signed);
	*at += size;
}

enum ktr_field
ktr_param_field(const struct ktr_param *p)
{
	return ktr_param_is_comm(p) ? KTR_FIELD_COMM
	       : p->string          ? KTR_FIELD_STRING
	       : p->is_signed       ? KTR_FIELD_S64
				    : KTR_FIELD_U64;
}

/* Writes n bytes, then zeros up to `size`. Returns where they end. */
static uint8_t *
format_put(uint8_t *to, const void *from, size_t n, size_t size)
{
	__builtin_memcpy(to, from, n);
	for (; n < size; n++)
		to[n] = 0;
	return to + n;
}

size_t
ktr_record_put(uint8_t *to, uint32_t id, uint32_t tid, const struct ktr_value *v, unsigned n)
{
	uint8_t *at = format_put(format_put(to, &id, 4, 4), &tid, 4, 4);
	uint32_t strings = KTR_FORMAT_COMMON;
	for (unsigned i = 0; i < n; i++)
		strings += field_types[v[i].type].size;
	for (unsigned i = 0; i < n; i++) {
		const unsigned size = field_types[v[i].type].size;
		const size_t len = v[i].len;
		const uint32_t place = strings | (uint32_t)(len + 1) << 16;
		if (v[i].type < KTR_FIELD_COMM) {
			at = format_put(at, &v[i].number, size, size);
		} else if (v[i].type == KTR_FIELD_COMM) {
			at = format_put(at, v[i].text, len < size ? len : size - 1, size);
		} else if (v[i].type == KTR_FIELD_STRING) {
			at = format_put(at, &place, 4, 4);
			strings += (uint32_t)len + 1;
		} else {
			while ((size_t)(at - to) % field_types[v[i].type].align != 0)
				*at++ = 0;
			at = format_put(at, v[i].text, len, len);
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (v[i].type == KTR_FIELD_STRING)
			at = format_put(at, v[i].text, v[i].len, v[i].len + 1);
	while ((at - to) % 4 != 0)
		*at++ = 0;
	return (size_t)(at - to);
}

/* A character of a C string literal. One that is not printable is printed as an escape. */
static void
put_literal(const struct ktr_format_out *out, char c)
{
	if (c == '"' || c == '\\')
		format_print(out, "\\%c", c);
	else if (c == '\n' || c == '\t')
		format_print(out, "\\\\%c", c == '\n' ? 'n' : 't');
	else if (c >= ' ' && c <= '~')
		out->put(out->arg, &c, 1);
	else
		format_print(out, "\\\\x%02x", (unsigned char)c);
}

/* Writes a conversion of 64 bits. The readers know neither ' ' nor '+', and at most one '*'. */
static void
put_conversion(const struct ktr_format_out *out, const struct fmt_spec *s)
{
	bool stars = s->star_width && s->star_precision;
	if (s->conv == 'I') { /* the readers' own %pI4 wants an array of bytes */
		format_print(out, "%%llu.%%llu.%%llu.%%llu");
		return;
	}
	if (s->conv == 'D') {
		format_print(out, "%%llu,%%llu");
		return;
	}
	format_print(out, "%s%%%s%s%s", s->conv == 'p' && s->width == 0 ? "0x" : "",
		     s->left ? "-" : "", s->alt || (s->conv == 'p' && s->width != 0) ? "#" : "",
		     s->zero ? "0" : "");
	if (s->star_width && !stars)
		format_print(out, "*");
	else if (s->width > 0)
		format_print(out, "%d", s->width);
	if (s->star_precision && !stars)
		format_print(out, ".*");
	else if (s->precision >= 0)
		format_print(out, ".%d", s->precision);
	if (s->conv == 's')
		format_print(out, "s");
	else
		format_print(out, "ll%c", s->conv == 'p' ? 'x' : s->conv == 'c' ? 'd' : s->conv);
}

/* What stands for a parameter that the format wants, but the trace point does not have. */
static const char *
format_missing(const struct fmt_spec *s)
{
	return s->conv == 's'   ? "(null)"
	       : s->conv == 'p' ? "0x0"
	       : s->conv == 'I' ? "0.0.0.0"
	       : s->conv == 'D' ? "0,0"
				: "0";
}

/* Writes the text with its conversions, as Linux's programs take them; or, if args is set, an
 * expression for each conversion: REC->NAME. */
static void
put_print_fmt(const struct ktr_format_out *out, const char *fmt, const struct ktr_param *params,
	      unsigned nargs, bool args)
{
	unsigned n = 0;
	while (*fmt != '\0') {
		struct fmt_spec s;
		if (*fmt != '%') {
			if (!args)
				put_literal(out, *fmt);
			fmt++;
			continue;
		}
		fmt++;
		fmt_scan(&fmt, &s);
		unsigned stars = (unsigned)s.star_width + s.star_precision;
		bool found = s.conv != 0 && s.conv != '%' && n + stars < nargs;
		if (!args && found)
			put_conversion(out, &s);
		else if (!args)
			format_print(out, "%s",
				     s.conv == 0 || s.conv == '%' ? "%%" : format_missing(&s));
		if (!found)
			continue;
		if (args && stars == 1)
			format_print(out, ", REC->%s", params[n].name);
		n += stars;
		if (args && s.conv == 'I')
			format_print(
			    out,
			    ", REC->%s & 255, (REC->%s >> 8) & 255, (REC->%s >> 16) & 255, "
			    "(REC->%s >> 24) & 255",
			    params[n].name, params[n].name, params[n].name, params[n].name);
		else if (args && s.conv == 'D')
			format_print(out, ", REC->%s >> %u, REC->%s & %u", params[n].name,
				     FMT_MINOR_BITS, params[n].name, (1u << FMT_MINOR_BITS) - 1);
		else if (args)
			format_print(out,
				     params[n].string && !ktr_param_is_comm(&params[n])
					 ? ", __get_str(%s)"
					 : ", REC->%s",
				     params[n].name);
		n++;
	}
}

void
ktr_format_site(const struct ktr_format_out *out, const char *fmt, const struct ktr_param *params,
		unsigned nargs, unsigned silent)
{
	unsigned at = KTR_FORMAT_COMMON;
	for (unsigned i = 0; i < nargs; i++)
		ktr_format_field(out, ktr_param_field(&params[i]), params[i].name, &at);
	format_print(out, "\nprint fmt: \"");
	put_print_fmt(out, fmt, params + silent, nargs - silent, false);
	format_print(out, "\"");
	put_print_fmt(out, fmt, params + silent, nargs - silent, true);
	format_print(out, "\n");
}
