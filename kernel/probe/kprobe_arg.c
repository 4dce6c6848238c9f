/*
 * kprobe_arg.c - understands the arguments in a definition of a kprobe: [NAME=]FETCH[:TYPE]
 * (kprobe.h). Locking: none.
 */
#include "arch/trap.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/probe/kprobe_private.h"
#include "kernel/probe/kprobe_reader.h"
#include "ktr/name.h"
#include "ktr/word.h"

#define STACK_WORDS 2048u /* $stackN of the kernel: N is at most this, as in Linux */

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
	if (r->d->kind == KPROBE_AT_EVENT)
		return REFUSE(r, start, "at an event, no register is a variable");
	if (!kread_name(r, "a register", "", name, sizeof(name)))
		return REFUSE(r, start, "expected the name of a register");
	return find_register(name, &f->reg) || REFUSE(r, start, "no register %%%s", name);
}

/* After a $: arg, retval, stack, comm. */
static bool
take_variable(struct reader *r, struct kfetch *f)
{
	static const char *const args[] = ARCH_ARG_REGISTERS;
	const char *start = r->at++;
	char name[KPROBE_EVENT];
	bool is_text, huge;
	uint64_t n = 0;
	size_t digits;

	if (!kread_name(r, "a variable", "", name, sizeof(name)))
		return REFUSE(r, start, "$: expected $argN, $retval, $stack, $stackN or $comm");
	digits = strlen(name);
	while (digits > 0 && kread_is_digit(name[digits - 1]))
		digits--;
	huge = ktr_number(name + digits, strlen(name + digits), 10, &n) == KTR_NUMBER_HUGE;
	f->base = KFETCH_REGISTER;
	if (r->d->kind == KPROBE_AT_EVENT &&
	    kprobe_events->field(r->d->target, name, &f->reg, &is_text)) {
		f->base = KFETCH_FIELD;
		f->print = is_text ? KFETCH_STRING : f->print;
		return true;
	}
	if (strcmp(name, "comm") == 0 ||
	    (r->d->kind == KPROBE_AT_EVENT && strcmp(name, "COMM") == 0)) {
		f->base = KFETCH_COMM;
		f->print = KFETCH_STRING;
		return true;
	}
	if (r->d->kind == KPROBE_AT_EVENT)
		return REFUSE(r, r->argument, "the event has no field \"%s\"", name);
	if (strcmp(name, "retval") == 0) {
		if (!r->d->is_return)
			return REFUSE(r, start, "$retval: only a probe r: has it");
		return find_register(ARCH_RETURN_REGISTER, &f->reg);
	}
	if (strncmp(name, "stack", 5) == 0 && digits == 5 && !huge) {
		if (n > STACK_WORDS && r->d->kind == KPROBE_KERNEL)
			return REFUSE(r, start, "$%s: expected at most $stack%u", name,
				      STACK_WORDS);
		if (name[5] != '\0') /* as in Linux, N has 32 bits */
			f->offset[f->derefs++] = (int64_t)(uint32_t)n * 8;
		f->is_value = true;
		return find_register(ARCH_STACK_REGISTER, &f->reg);
	}
	if (strncmp(name, "arg", 3) == 0 && digits == 3 && name[3] != '\0' && !huge) {
		if (r->d->is_return || (r->d->offset != 0 && r->d->kind != KPROBE_USER))
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
	const char *start = r->at++;
	char symbol[64];
	int64_t offset = 0;

	f->base = KFETCH_NUMBER;
	f->offset[f->derefs++] = 0;
	if (kread_is_digit(*r->at))
		return kread_value(r, &f->number) ||
		       REFUSE(r, start, "expected an address, decimal or 0x...");
	if (*r->at == '+') {
		if (r->d->kind != KPROBE_USER)
			return REFUSE(r, start, "only a program's probe reads its file");
		f->base = KFETCH_FILE;
		r->at++;
		return kread_value(r, &f->number) ||
		       REFUSE(r, start, "expected the place of a datum in the file");
	}
	if (r->d->kind == KPROBE_USER)
		return REFUSE(
		    r, start,
		    "a program's symbols are not known: expected an address, or +OFFSET in the file");
	if (!kread_name(r, "a symbol", ".", symbol, sizeof(symbol)))
		return REFUSE(r, start, "expected the name of a symbol, or an address");
	f->number = ksym_address(symbol);
	if (f->number == 0)
		return REFUSE(r, start, "no symbol \"%s\"", symbol);
	if ((*r->at == '+' || *r->at == '-') &&
	    !kread_offset(r, "an offset from the symbol", &offset))
		return false;
	f->number += (uint64_t)offset;
	return true;
}

/* After a backslash: a number, or a text in ". */
static bool
take_immediate(struct reader *r, struct kfetch *f)
{
	int64_t offset;
	size_t n = 0;

	r->at++;
	f->base = KFETCH_NUMBER;
	f->is_value = true;
	if (*r->at == '-') {
		if (!kread_offset(r, "a number", &offset))
			return false;
		f->number = (uint64_t)offset;
		return true;
	}
	if (*r->at != '"')
		return kread_number(r, "a number", &f->number);
	r->at++;
	while (r->at[n] != '\0' && r->at[n] != ' ' && r->at[n] != '"')
		n++;
	if (r->at[n] != '"')
		return REFUSE(r, r->at + n, "expected \" at the end of the text");
	f->base = KFETCH_TEXT;
	f->print = KFETCH_STRING;
	f->number = (uint64_t)(r->at - r->text);
	f->text_len = (uint16_t)n;
	r->at += n + 1;
	return true;
}

static bool take_fetch(struct reader *r, struct kfetch *f);

/* Reads +OFFSET(FETCH), +uOFFSET(FETCH), and with -. The argument's length bounds the depth. */
static bool
take_deref(struct reader *r, struct kfetch *f)
{
	const char *start = r->at, *end = start;
	bool minus = *r->at++ == '-', user = *r->at == 'u';
	const char *inner;
	uint64_t offset;

	r->at += user;
	while (*end != '\0' && *end != ' ' && *end != '(')
		end++;
	if (*end != '(')
		return REFUSE(r, start, "expected ( after the offset");
	if (!kread_value(r, &offset) || r->at != end)
		return REFUSE(r, start, "expected an offset before (, decimal or 0x...");
	r->at = inner = end + 1;
	if (!take_fetch(r, f))
		return false;
	if (f->base == KFETCH_COMM || f->base == KFETCH_TEXT)
		return REFUSE(r, inner, "a text is no address");
	if (f->derefs == KPROBE_DEREFS)
		return REFUSE(r, start, "more than %d offsets in one another", KPROBE_DEREFS);
	if (r->closed == NULL)
		r->closed = r->at;
	if (*r->at != ')') /* as in Linux, the message is about the innermost ) that is missing */
		return REFUSE(r, r->closed, "expected )");
	r->at++;
	f->user |= (uint16_t)(user << f->derefs);
	f->offset[f->derefs++] = minus ? (int64_t)(0 - offset) : (int64_t)offset;
	f->is_value = false;
	f->print = KFETCH_HEX;
	return true;
}

static bool
take_fetch(struct reader *r, struct kfetch *f)
{
	switch (*r->at) {
	case '%':
		return take_register(r, f);
	case '$':
		return take_variable(r, f);
	case '@':
		return take_memory(r, f);
	case '\\':
		return take_immediate(r, f);
	case '+':
	case '-':
		return take_deref(r, f);
	}
	return REFUSE(r, r->at,
		      "expected %%REGISTER, $VARIABLE, @ADDRESS, @SYMBOL, +OFFSET(...), "
		      "-OFFSET(...), \\NUMBER or \\\"TEXT\"");
}

/* Reads a number of bits, and the character after it; '\0': the end of the argument. */
static bool
take_bit_number(struct reader *r, char end, uint64_t *v)
{
	size_t n = 0;
	bool good;

	while (kread_is_digit(r->at[n]))
		n++;
	good = ktr_number(r->at, n, 10, v) == KTR_NUMBER_OK &&
	       (r->at[n] == end || (end == '\0' && r->at[n] == ' '));
	if (good)
		r->at += n + (end != '\0');
	return good;
}

/* bWIDTH@OFFSET/SIZE */
static bool
take_bits(struct reader *r, struct kfetch *f)
{
	const char *start = r->at++;
	uint64_t width, shift, size;

	if (!take_bit_number(r, '@', &width) || !take_bit_number(r, '/', &shift) ||
	    !take_bit_number(r, '\0', &size))
		return REFUSE(r, start, "expected bWIDTH@OFFSET/SIZE, numbers of bits");
	if ((size != 8 && size != 16 && size != 32 && size != 64) || width < 1 || width > size ||
	    shift > size - width)
		return REFUSE(r, start, "bits that are not inside of 8, 16, 32 or 64");
	f->print = KFETCH_UNSIGNED;
	f->size = (unsigned)size / 8;
	f->width = (unsigned)width;
	f->shift = (unsigned)shift;
	return true;
}

/* [COUNT] after a type. */
static bool
take_count(struct reader *r, struct kfetch *f)
{
	const char *start = ++r->at;
	uint64_t count;

	while (*r->at != '\0' && *r->at != ' ' && *r->at != ']')
		r->at++;
	if (*r->at != ']')
		return REFUSE(r, r->at, "expected ] after the number of elements");
	if (r->at[1] != '\0' && r->at[1] != ' ')
		return REFUSE(r, r->at + 1, "expected a space after the array");
	if (ktr_number(start, (size_t)(r->at - start), 0, &count) != KTR_NUMBER_OK || count == 0)
		return REFUSE(r, start, "expected a number of elements");
	if (count > KPROBE_ARRAY)
		return REFUSE(r, start, "an array has at most %u elements", KPROBE_ARRAY);
	f->count = (unsigned)count;
	r->at++;
	return true;
}

/* The field is the address of a text. */
static void
take_address(struct kfetch *f)
{
	f->offset[f->derefs++] = 0;
	f->is_value = false;
}

static bool
take_type(struct reader *r, struct kfetch *f)
{
	static const struct {
		const char *name;
		enum kfetch_print print;
		unsigned size;
		bool user;
	} types[] = {{"char", KFETCH_CHAR, 1, false},     {"string", KFETCH_STRING, 8, false},
		     {"ustring", KFETCH_STRING, 8, true}, {"symbol", KFETCH_SYMBOL, 8, false},
		     {"u8", KFETCH_UNSIGNED, 1, false},   {"u16", KFETCH_UNSIGNED, 2, false},
		     {"u32", KFETCH_UNSIGNED, 4, false},  {"u64", KFETCH_UNSIGNED, 8, false},
		     {"s8", KFETCH_SIGNED, 1, false},     {"s16", KFETCH_SIGNED, 2, false},
		     {"s32", KFETCH_SIGNED, 4, false},    {"s64", KFETCH_SIGNED, 8, false},
		     {"x8", KFETCH_HEX, 1, false},        {"x16", KFETCH_HEX, 2, false},
		     {"x32", KFETCH_HEX, 4, false},       {"x64", KFETCH_HEX, 8, false}};
	bool is_text = f->base == KFETCH_COMM || f->base == KFETCH_TEXT;
	const char *start = r->at;
	char name[16];

	if (*r->at == 'b')
		return take_bits(r, f);
	if (!kread_name(r, "a type", "", name, sizeof(name)))
		return false;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, name) != 0)
			continue;
		if (*r->at == '[' && !take_count(r, f))
			return false;
		if (f->base == KFETCH_FIELD && f->derefs == 0 && types[i].print == KFETCH_STRING)
			take_address(f);
		if (is_text ? types[i].print != KFETCH_STRING || f->count > 0
			    : (types[i].print == KFETCH_STRING || f->count > 0) &&
				  (f->derefs == 0 || f->is_value))
			return REFUSE(r, start,
				      is_text ? "it is a string, whatever the type"
					      : "a string is in memory: expected +OFFSET(...) or "
						"@ADDRESS before it");
		f->print = types[i].print;
		f->size = types[i].size;
		if (types[i].user && !is_text)
			f->user |= (uint16_t)(1 << (f->derefs - 1));
		return true;
	}
	return REFUSE(r, start,
		      "no type \"%s\": expected u8 to u64, s8 to s64, x8 to x64, "
		      "bWIDTH@OFFSET/SIZE, char, string, ustring or symbol",
		      name);
}

/* NAME=, or the argument's number. */
static bool
take_argument_name(struct reader *r, const struct kdefinition *d, struct kfetch *f)
{
	const char *start = r->at, *equal = start;
	size_t n = ktr_word_length(start);

	while (*equal != '\0' && *equal != ' ' && *equal != '=')
		equal++;
	if (*equal == '=') {
		if (equal == start)
			return REFUSE(r, start, "expected an argument's name before =");
		if (equal - start >= KPROBE_NAME)
			return REFUSE(r, start, "the name of an argument is too long");
		if (start + n != equal || kread_is_digit(*start))
			return REFUSE(r, start, "an argument's name is no C identifier");
		memcpy(f->name, start, n);
		f->name[n] = '\0';
		r->at = equal + 1;
	} else if (n > 0) {
		return REFUSE(r, start, "expected = after the argument's name");
	}
	for (const struct kfetch *other = d->args; other != f; other++)
		if (strcmp(other->name, f->name) == 0)
			return REFUSE(r, start, "another argument is called %s", f->name);
	return strncmp(f->name, "common_", 7) != 0 ||
	       REFUSE(r, start, "each event has a field, and no argument, called %s", f->name);
}

bool
kread_argument(struct reader *r, struct kdefinition *d)
{
	struct kfetch *f = &d->args[d->nargs];
	const char *start;
	size_t n = 0;

	r->argument = r->at;
	if (d->nargs == KPROBE_ARGS)
		return REFUSE(r, r->at, "more than %d arguments", KPROBE_ARGS);
	*f = (struct kfetch){.print = KFETCH_HEX, .size = 8};
	snprintf(f->name, sizeof(f->name), "arg%u", ++d->nargs);
	if (!take_argument_name(r, d, f))
		return false;
	start = r->at;
	r->closed = NULL;
	while (start[n] != '\0' && start[n] != ' ')
		n++;
	if (n == 0)
		return REFUSE(r, start, "expected what the argument is: %%REGISTER ...");
	if (n > KPROBE_ARGUMENT)
		return REFUSE(r, start, "the argument has more than %u characters",
			      KPROBE_ARGUMENT);
	if (!take_fetch(r, f))
		return false;
	if (*r->at == ':') {
		r->at++;
		if (!take_type(r, f))
			return false;
	} else if (f->base == KFETCH_FIELD && f->derefs == 0 && f->print == KFETCH_STRING) {
		take_address(f);
	}
	if (d->kind == KPROBE_USER) /* who chooses its addresses must not read the kernel's */
		f->user = UINT16_MAX;
	f->at = (uint16_t)(start - r->text);
	f->len = (uint16_t)n;
	return *r->at == '\0' || *r->at == ' ' ||
	       REFUSE(r, r->at, "expected a space, or a type after :");
}
