/*
 * fmt.h - the one printf engine: kernel output, the user C library and the event decoder share it.
 *
 * Understands %[-+ #0'][width|*][.precision|.*][hh|h|l|ll|j|z|t]{d i u x X o c s p %}, as C99 does
 * without floating point (' is accepted and ignored), and %pI4, an IPv4 address: not a pointer to
 * one, as in Linux, but a pointer with that value, in network order; and %pD, the number of a
 * device, major,minor, of which the lower FMT_MINOR_BITS are the minor number. A name in braces
 * after the % is not printed: it is what the argument is called (ktr/param.h). An unknown
 * conversion is printed as it stands. Padding, with blanks or zeros, is cut at FMT_PAD_MAX
 * characters.
 *
 * No locks, no state, no allocation; any context.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FMT_PAD_MAX    4095
#define FMT_MINOR_BITS 20 /* as in Linux's dev_t */

/** Type of an argument, as its length modifier gives it. */
enum fmt_type {
	FMT_CHAR,  /* hh */
	FMT_SHORT, /* h */
	FMT_INT,
	FMT_LONG,     /* l */
	FMT_LONGLONG, /* ll */
	FMT_INTMAX,   /* j */
	FMT_SIZE,     /* z */
	FMT_PTRDIFF,  /* t */
	FMT_POINTER,  /* p */
	FMT_STRING    /* s */
};

/** One conversion of a format, as fmt_scan() finds it. */
struct fmt_spec {
	char conv; /* d u x X o c s p %, I: pI4, D: pD; i reads as d; 0: it is malformed here */
	const char *name; /* not terminated; NULL: it has none */
	size_t name_len;
	enum fmt_type type; /* of the argument; none for % */
	bool left, plus, space, alt, zero;
	bool star_width, star_precision; /* an int argument each, before the value */
	int width;                       /* 0 none */
	int precision;                   /* -1 none */
};

/**
 * Where characters go, and where arguments come from.
 *
 * put is called with pieces of the output, never with n 0. fetch returns the next argument: the
 * value sign-extended or zero-extended to 64 bits; a pointer as a number. string turns a FMT_STRING
 * argument into text that may be read up to its NUL; NULL prints `(bad 0x…)`. A NULL `string` takes
 * the number as a pointer. A null pointer prints `(null)` in any case.
 */
struct fmt_ops {
	void (*put)(void *arg, const char *text, size_t n);
	uint64_t (*fetch)(void *arg, enum fmt_type type);
	const char *(*string)(void *arg, uint64_t value);
};

/** Formats; arg is passed to all of ops. Returns the number of characters put. */
size_t fmt_format(const struct fmt_ops *ops, void *arg, const char *fmt);

/**
 * Finds the conversions of a format. *fmt points after '%', and is advanced to what follows the
 * conversion; at a malformed one conv is 0 and *fmt stays.
 */
void fmt_scan(const char **fmt, struct fmt_spec *spec);

/** Scans what a conversion has before its letter: flags, width, precision, length. conv stays 0. */
void fmt_scan_head(const char **fmt, struct fmt_spec *spec);

/** Prints one value, a string by its address, by a conversion (not %), without its stars. */
void fmt_value(void (*put)(void *arg, const char *text, size_t n), void *arg,
	       const struct fmt_spec *spec, uint64_t value);

/** fmt_format() with the arguments of a va_list. put as in struct fmt_ops. */
size_t fmt_vprint(void (*put)(void *arg, const char *text, size_t n), void *arg, const char *fmt,
		  va_list ap);

/** As C99's vsnprintf: at most size bytes with the NUL; returns the length the whole text has. */
int fmt_vsnprintf(char *buf, size_t size, const char *fmt, va_list ap);
__attribute__((format(printf, 3, 4))) int fmt_snprintf(char *buf, size_t size, const char *fmt,
						       ...);

/** More characters than a decimal number has. */
#define FMT_DECIMAL 24u

/** Writes a decimal number that ends at `end`. Returns where it begins. */
char *fmt_decimal(char *end, uint64_t v);
