/* kprobe_parse.c - understands a definition of a kprobe (kprobe.h). Locking: none. */
#include <stdarg.h>

#include "arch/insn.h"
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/probe/kprobe_private.h"
#include "ktr/word.h"

/* What is being read, and where the error goes. */
struct reader {
	const char *text, *at;
	char *err;
	size_t errlen;
	const struct kdefinition *d;
};

int
kprobe_refuse(char *err, size_t errlen, size_t at, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(err, errlen, "character %zu: ", at + 1);

	va_start(ap, fmt);
	if ((size_t)n < errlen)
		vsnprintf(err + n, errlen - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

#define REFUSE(r, where, ...) \
	(kprobe_refuse((r)->err, (r)->errlen, (size_t)((where) - (r)->text), __VA_ARGS__) == 0)

static bool
is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Takes a name of letters, digits, _ and the characters of `more`. False: none, or too long. what:
 * whose name it is.
 */
static bool
take_name(struct reader *r, const char *what, const char *more, char *to, size_t size)
{
	size_t n = 0;

	while (is_name(r->at[n]) || (r->at[n] != '\0' && strchr(more, r->at[n]) != NULL))
		n++;
	if (n == 0 || n >= size)
		return REFUSE(r, r->at,
			      n == 0 ? "expected the name of %s" : "the name of %s is too long",
			      what);
	memcpy(to, r->at, n);
	to[n] = '\0';
	r->at += n;
	return true;
}

/* Takes a number: decimal, or hexadecimal after 0x. */
static bool
take_number(struct reader *r, const char *what, uint64_t *v)
{
	size_t n = 0;

	while (is_name(r->at[n]))
		n++;
	if (ktr_number(r->at, n, 0, v) != KTR_NUMBER_OK)
		return REFUSE(r, r->at, "expected %s, decimal or 0x...", what);
	r->at += n;
	return true;
}

/* Takes + or -, and a number. */
static bool
take_offset(struct reader *r, int64_t *offset)
{
	bool minus = *r->at == '-';
	uint64_t v;

	r->at++;
	if (*r->at ==
	    'u') /* Linux's sign of a user's address, which this kernel sees from the address */
		r->at++;
	if (!take_number(r, "an offset", &v))
		return false;
	*offset = minus ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

/* The register of that name: its place in the trap frame. */
static bool
find_register(const char *name, unsigned *reg)
{
	struct arch_trapframe tf;
	uint64_t *words = (uint64_t *)&tf, v;
	char full[16];

	for (unsigned i = 0; i < sizeof(tf) / sizeof(*words); i++)
		words[i] = i;
	snprintf(full, sizeof(full), "r%.12s", name); /* Linux's %di is rdi */
	if (!arch_tf_register(&tf, name, &v) && !arch_tf_register(&tf, full, &v))
		return false;
	*reg = (unsigned)v;
	return true;
}

static bool
take_register(struct reader *r, struct kfetch *f)
{
	const char *start = r->at++;
	char name[16];

	f->base = KFETCH_REGISTER;
	if (!take_name(r, "a register", "", name, sizeof(name)))
		return false;
	return find_register(name, &f->reg) || REFUSE(r, start, "no register %%%s", name);
}

/* After a $: arg, retval, stack, comm. */
static bool
take_variable(struct reader *r, struct kfetch *f)
{
	static const char *const args[] = ARCH_ARG_REGISTERS;
	const char *start = r->at++;
	char name[16];
	uint64_t n = 0;
	size_t digits;

	if (!take_name(r, "a variable", "", name, sizeof(name)))
		return false;
	digits = strlen(name);
	while (digits > 0 && is_digit(name[digits - 1]))
		digits--;
	if (name[digits] != '\0')
		ktr_number(name + digits, strlen(name + digits), 10, &n);
	f->base = KFETCH_REGISTER;
	if (strcmp(name, "comm") == 0) {
		f->base = KFETCH_COMM;
		f->print = KFETCH_STRING;
		return true;
	}
	if (strcmp(name, "retval") == 0) {
		if (!r->d->is_return)
			return REFUSE(r, start, "$retval: only a probe r: has it");
		return find_register(ARCH_RETURN_REGISTER, &f->reg);
	}
	if (strncmp(name, "stack", 5) == 0 && digits == 5 && n < 4096) {
		if (name[5] != '\0')
			f->offset[f->derefs++] = (int64_t)n * 8;
		return find_register(ARCH_STACK_REGISTER, &f->reg);
	}
	if (strncmp(name, "arg", 3) == 0 && digits == 3 && name[3] != '\0') {
		if (r->d->is_return || (r->d->offset != 0 && !r->d->user))
			return REFUSE(r, start,
				      "$%s: only a probe at the start of a function has it", name);
		if (n < 1 || n > sizeof(args) / sizeof(args[0]))
			return REFUSE(r, start, "$%s: expected $arg1 to $arg%zu", name,
				      sizeof(args) / sizeof(args[0]));
		return find_register(args[n - 1], &f->reg);
	}
	return REFUSE(r, start, "$%s: expected $argN, $retval, $stack, $stackN or $comm", name);
}

/* After an @: the memory at an address, or at a symbol. */
static bool
take_memory(struct reader *r, struct kfetch *f)
{
	const char *start = ++r->at;
	char symbol[64];
	int64_t offset = 0;

	f->base = KFETCH_NUMBER;
	f->offset[f->derefs++] = 0;
	if (is_digit(*r->at))
		return take_number(r, "an address", &f->number);
	if (r->d->user && *r->at == '+') {
		f->base = KFETCH_FILE;
		r->at++;
		return take_number(r, "an offset in the file", &f->number);
	}
	if (r->d->user)
		return REFUSE(
		    r, start,
		    "a program's symbols are not known: expected an address, or +OFFSET in the file");
	if (!take_name(r, "a symbol", ".", symbol, sizeof(symbol)))
		return false;
	f->number = ksym_address(symbol);
	if (f->number == 0)
		return REFUSE(r, start, "no symbol \"%s\"", symbol);
	if ((*r->at == '+' || *r->at == '-') && !take_offset(r, &offset))
		return false;
	f->number += (uint64_t)offset;
	return true;
}

static bool
take_fetch(struct reader *r, struct kfetch *f, unsigned depth)
{
	int64_t offset;

	switch (*r->at) {
	case '%':
		return take_register(r, f);
	case '$':
		return take_variable(r, f);
	case '@':
		return take_memory(r, f);
	case '\\':
		f->base = KFETCH_NUMBER;
		r->at++;
		if (*r->at == '-') {
			if (!take_offset(r, &offset))
				return false;
			f->number = (uint64_t)offset;
			return true;
		}
		return take_number(r, "a number", &f->number);
	case '+':
	case '-':
		if (depth == KPROBE_DEREFS - 1)
			return REFUSE(r, r->at, "more than %d offsets in one another",
				      KPROBE_DEREFS - 1);
		if (!take_offset(r, &offset))
			return false;
		if (*r->at != '(')
			return REFUSE(r, r->at, "expected ( after the offset");
		r->at++;
		if (!take_fetch(r, f, depth + 1))
			return false;
		if (f->base == KFETCH_COMM)
			return REFUSE(r, r->at, "$comm is no address");
		if (*r->at != ')')
			return REFUSE(r, r->at, "expected )");
		r->at++;
		f->offset[f->derefs++] = offset;
		return true;
	}
	return REFUSE(r, r->at,
		      "expected %%REGISTER, $VARIABLE, @ADDRESS, @SYMBOL, +OFFSET(...), "
		      "-OFFSET(...) or \\NUMBER");
}

/* bWIDTH@OFFSET/SIZE */
static bool
take_bits(struct reader *r, struct kfetch *f)
{
	const char *start = r->at++;
	uint64_t width, shift, size;

	if (!take_number(r, "a number of bits", &width))
		return false;
	if (*r->at != '@')
		return REFUSE(r, r->at, "expected @ and the offset of the bits");
	r->at++;
	if (!take_number(r, "a number of bits", &shift))
		return false;
	if (*r->at != '/')
		return REFUSE(r, r->at, "expected / and 8, 16, 32 or 64 bits");
	r->at++;
	if (!take_number(r, "a number of bits", &size))
		return false;
	if ((size != 8 && size != 16 && size != 32 && size != 64) || width < 1 || width > size ||
	    shift > size - width)
		return REFUSE(r, start, "bits that are not inside of 8, 16, 32 or 64");
	f->print = KFETCH_HEX;
	f->size = (unsigned)size / 8;
	f->width = (unsigned)width;
	f->shift = (unsigned)shift;
	return true;
}

static bool
take_type(struct reader *r, struct kfetch *f)
{
	static const struct {
		const char *name;
		enum kfetch_print print;
		unsigned size;
	} types[] = {{"char", KFETCH_CHAR, 1},      {"string", KFETCH_STRING, 8},
		     {"ustring", KFETCH_STRING, 8}, {"symbol", KFETCH_SYMBOL, 8},
		     {"u8", KFETCH_UNSIGNED, 1},    {"u16", KFETCH_UNSIGNED, 2},
		     {"u32", KFETCH_UNSIGNED, 4},   {"u64", KFETCH_UNSIGNED, 8},
		     {"s8", KFETCH_SIGNED, 1},      {"s16", KFETCH_SIGNED, 2},
		     {"s32", KFETCH_SIGNED, 4},     {"s64", KFETCH_SIGNED, 8},
		     {"x8", KFETCH_HEX, 1},         {"x16", KFETCH_HEX, 2},
		     {"x32", KFETCH_HEX, 4},        {"x64", KFETCH_HEX, 8}};
	const char *start = r->at;
	char name[16];

	if (*r->at == 'b')
		return take_bits(r, f);
	if (!take_name(r, "a type", "", name, sizeof(name)))
		return false;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, name) != 0)
			continue;
		if (types[i].print == KFETCH_STRING ? f->derefs == 0 && f->base != KFETCH_COMM
						    : f->base == KFETCH_COMM)
			return REFUSE(r, start,
				      f->base == KFETCH_COMM
					  ? "$comm is a string"
					  : "a string is in memory: expected +OFFSET(...) or "
					    "@ADDRESS before it");
		f->print = types[i].print;
		f->size = types[i].size;
		return true;
	}
	return REFUSE(r, start,
		      "no type \"%s\": expected u8 to u64, s8 to s64, x8 to x64, "
		      "bWIDTH@OFFSET/SIZE, char, string or symbol",
		      name);
}

static bool
take_argument(struct reader *r, struct kdefinition *d)
{
	struct kfetch *f = &d->args[d->nargs];
	size_t n = 0;

	if (d->nargs == KTR_MAXARGS)
		return REFUSE(r, r->at, "more than %d arguments", KTR_MAXARGS);
	*f = (struct kfetch){.print = KFETCH_HEX, .size = 8};
	snprintf(f->name, sizeof(f->name), "arg%u", ++d->nargs);
	while (is_name(r->at[n]))
		n++;
	if (n > 0) {
		if (!take_name(r, "an argument", "", f->name, sizeof(f->name)))
			return false;
		if (*r->at != '=')
			return REFUSE(r, r->at, "expected = after the argument's name");
		r->at++;
	}
	if (!take_fetch(r, f, 0))
		return false;
	if (*r->at == ':') {
		r->at++;
		if (!take_type(r, f))
			return false;
	}
	return *r->at == '\0' || *r->at == ' ' ||
	       REFUSE(r, r->at, "expected a space, or a type after :");
}

/* p or r, and a name. */
static bool
take_head(struct reader *r, struct kdefinition *d)
{
	if (*r->at != 'p' && *r->at != 'r')
		return REFUSE(r, r->at, "expected p:NAME or r:NAME");
	d->is_return = *r->at++ == 'r';
	while (d->is_return && is_digit(*r->at)) /* Linux's MAXACTIVE; here there is no limit */
		r->at++;
	if (*r->at == ' ' || *r->at == '\0')
		return true;
	if (*r->at != ':')
		return REFUSE(r, r->at, "expected : and the probe's name");
	r->at++;
	if (!take_name(r, "the probe", "", d->name, sizeof(d->name)))
		return false;
	if (*r->at == '/') { /* that was the group */
		r->at++;
		if (!take_name(r, "the probe", "", d->name, sizeof(d->name)))
			return false;
	}
	return *r->at == ' ' || *r->at == '\0' ||
	       REFUSE(r, r->at, "expected a space after the probe's name");
}

/* PATH:OFFSET. The last part of PATH is the probe's module. */
static bool
take_file(struct reader *r, struct kdefinition *d)
{
	const char *start = r->at, *colon = NULL, *base = start;
	size_t n;

	for (; *r->at != '\0' && *r->at != ' '; r->at++) {
		if (*r->at == ':')
			colon = r->at;
		else if (*r->at == '/' && colon == NULL)
			base = r->at + 1;
	}
	if (colon == NULL || colon == base)
		return REFUSE(r, colon == NULL ? r->at : start, "expected PATH:OFFSET");
	d->path = (size_t)(colon - start);
	n = (size_t)(colon - base);
	n = n < sizeof(d->function) ? n : sizeof(d->function) - 1;
	memcpy(d->function, base, n);
	d->function[n] = '\0';
	r->at = colon + 1;
	if (!take_number(r, "an offset in the file", &d->offset))
		return false;
	return *r->at == '\0' || *r->at == ' ' ||
	       REFUSE(r, r->at, "expected a space after the place");
}

static bool
take_place(struct reader *r, struct kdefinition *d)
{
	const char *start = r->at;
	int64_t offset = 0;
	unsigned count;

	d->place_at = (size_t)(start - r->text);
	if (d->user)
		return take_file(r, d);
	if (*r->at == '\0')
		return REFUSE(r, r->at,
			      "expected a place: FUNCTION, FUNCTION+OFFSET or an address");
	if (is_digit(*r->at)) {
		if (!take_number(r, "an address", &d->address))
			return false;
	} else {
		if (!take_name(r, "a function", ".", d->function, sizeof(d->function)))
			return false;
		d->address = ksym_find(d->function, &count);
		if (count == 0)
			return REFUSE(r, start, "no function \"%s\"", d->function);
		if (count > 1)
			return REFUSE(r, start, "%u functions have that name: expected an address",
				      count);
		if (*r->at == '+') {
			if (!take_offset(r, &offset))
				return false;
			d->offset = (size_t)offset;
		}
	}
	if (strncmp(r->at, "%return", 7) == 0) { /* p:NAME FUNCTION%return is r:NAME FUNCTION */
		d->is_return = true;
		r->at += 7;
	}
	if (d->is_return && d->offset != 0)
		return REFUSE(r, start, "a return has no offset: expected the name of a function");
	return *r->at == '\0' || *r->at == ' ' ||
	       REFUSE(r, r->at, "expected a space after the place");
}

static void
skip_spaces(struct reader *r)
{
	while (*r->at == ' ')
		r->at++;
}

/* As Linux names it. Of a file's name up to the first of . - _ */
static void
make_name(struct kdefinition *d)
{
	char kind = d->is_return ? 'r' : 'p';
	int n = 0;

	while (n < 10 && is_name(d->function[n]) && d->function[n] != '_')
		n++;
	if (d->user)
		snprintf(d->name, sizeof(d->name), "%c_%.*s_0x%zx", kind, n, d->function,
			 d->offset);
	else
		snprintf(d->name, sizeof(d->name), "%c_%.18s_%zu", kind, d->function, d->offset);
}

int
kprobe_parse(const char *text, bool user, struct kdefinition *d, char *err, size_t errlen)
{
	struct reader r = {.text = text, .at = text, .err = err, .errlen = errlen, .d = d};
	bool good;

	*d = (struct kdefinition){.user = user};
	skip_spaces(&r);
	good = take_head(&r, d);
	skip_spaces(&r);
	good = good && take_place(&r, d);
	for (skip_spaces(&r); good && *r.at != '\0'; skip_spaces(&r))
		good = take_argument(&r, d);
	if (good && d->name[0] == '\0')
		make_name(d);
	return good ? 0 : -EINVAL;
}
