/*
 * kdb_mem.c - the commands x and write, and printing addresses. Memory is accessed by probes. No
 * locks.
 */
#include "arch/mmu.h"
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"

#define X_COUNT_MAX 65536
#define X_LINE      16 /* bytes on one line */

bool
kdb_read(void *to, uint64_t addr, size_t n)
{
	/* User memory of the stopped thread. Pages that are not present are not filled. */
	if (addr < ARCH_USER_END && n <= ARCH_USER_END - addr)
		return arch_copy_user(to, (const void *)addr, n);
	return arch_probe_copy(to, (const void *)addr, n);
}

const char *
kdb_text(const char *src, char *buf, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!arch_probe_copy(&buf[i], src + i, 1)) {
			strlcpy(buf, "?", size);
			return buf;
		}
		if (buf[i] == '\0')
			return buf;
		if (buf[i] < ' ' || buf[i] > '~')
			buf[i] = '?';
	}
	buf[size - 1] = '\0';
	return buf;
}

void
kdb_print_place(uintptr_t pc, bool called)
{
	const char *name, *file;
	uintptr_t offset;
	unsigned line;

	name = ksym_lookup(pc - called, &offset);
	if (name == NULL) {
		kdb_printf("%#lx", pc);
		return;
	}
	kdb_printf("%s+%#lx", name, offset + called);
	if (ksym_line(pc - called, &file, &line))
		kdb_printf(" (%s:%u)", file, line);
}

void
kdb_print_symbol(uintptr_t pc)
{
	kdb_print_place(pc, false);
}

extern const char __rodata_start[], __bss_end[];

void
kdb_print_variable(uintptr_t at)
{
	const uintptr_t from = (uintptr_t)__rodata_start, to = (uintptr_t)__bss_end;
	uintptr_t next = 0, offset;
	uint64_t v = 0;

	if (at < from || at >= to || ksym_lookup(at, &offset) == NULL || offset != 0)
		return;
	for (uint32_t i = 0; next <= at; i++)
		if (ksym_at(i, &next) == NULL)
			next = to;
	/* Up to the next symbol may be padding. It is 0, and the low bytes come first. */
	if (next - at <= sizeof(v) && kdb_read(&v, at, next - at))
		kdb_printf(" = %#lx %ld", v, (int64_t)v);
}

struct x_format {
	unsigned size; /* bytes of an item; 0: a string */
	char kind;     /* x d u o c a s */
	uint64_t count;
};

static bool
kdb_x_format(const char *mod, struct x_format *f)
{
	*f = (struct x_format){.size = 8, .kind = 'x', .count = 0};
	for (; mod != NULL && *mod != '\0'; mod++) {
		switch (*mod) {
		case 'b':
			f->size = 1;
			break;
		case 'h':
			f->size = 2;
			break;
		case 'w':
			f->size = 4;
			break;
		case 'g':
			f->size = 8;
			break;
		case 'c':
			f->size = 1;
			f->kind = 'c';
			break;
		case 's':
			f->size = 0;
			f->kind = 's';
			break;
		case 'a':
			f->size = 8;
			f->kind = 'a';
			break;
		case 'x':
		case 'd':
		case 'u':
		case 'o':
			f->kind = *mod;
			if (f->size == 0) /* after an s */
				f->size = 8;
			break;
		default:
			if (*mod < '0' || *mod > '9' || f->count > X_COUNT_MAX) {
				kdb_printf(
				    "x: format \"%c\": expected digits, a size of b h w g, a "
				    "kind of x d u o c a s\n",
				    *mod);
				return false;
			}
			f->count = f->count * 10 + (unsigned)(*mod - '0');
		}
	}
	return true;
}

static void
kdb_x_item(const struct x_format *f, uint64_t v)
{
	int bits = (int)f->size * 8;
	int64_t sv = bits == 0 ? 0 : (int64_t)(v << (64 - bits)) >> (64 - bits);

	switch (f->kind) {
	case 'x':
		kdb_printf(" 0x%0*lx", (int)f->size * 2, v);
		break;
	case 'd':
		kdb_printf(" %ld", (int64_t)sv);
		break;
	case 'u':
		kdb_printf(" %lu", v);
		break;
	case 'o':
		kdb_printf(" %#lo", v);
		break;
	case 'c':
		kdb_printf(v >= ' ' && v <= '~' ? " '%c'" : " \\x%02x", (int)v);
		break;
	default:
		kdb_printf(" ");
		kdb_print_symbol((uintptr_t)v);
	}
}

/* Prints the label of a line: the address and, if known, its symbol. */
static void
kdb_x_label(uint64_t addr)
{
	uintptr_t offset;
	const char *name = ksym_lookup((uintptr_t)addr, &offset);

	kdb_printf("0x%016lx", addr);
	if (name != NULL)
		kdb_printf(" <%s+%#lx>", name, offset);
	kdb_printf(":");
}

static bool
kdb_x_string(uint64_t *addr)
{
	char text[128], c;
	size_t n = 0;

	do {
		if (!kdb_read(&c, *addr, 1))
			return false;
		(*addr)++;
		text[n++] = c == '\0' || (c >= ' ' && c <= '~') ? c : '?';
	} while (c != '\0' && n < sizeof(text) - 1);
	text[n] = '\0';
	kdb_printf(" \"%s\"%s", text, c == '\0' ? "" : "...");
	return true;
}

static void
kdb_examine(const struct x_format *f, uint64_t addr)
{
	unsigned per_line = f->kind == 'a' || f->kind == 's' ? 1 : X_LINE / f->size;

	for (uint64_t i = 0; i < f->count && !kdb.quit; i++) {
		uint64_t v = 0;
		bool ok = true;

		if (i % per_line == 0)
			kdb_x_label(addr);
		if (f->kind == 's') {
			ok = kdb_x_string(&addr);
		} else if ((ok = kdb_read(&v, addr, f->size))) {
			kdb_x_item(f, v); /* the low bytes of v: both ports are little-endian */
			addr += f->size;
		}
		if (!ok) {
			kdb_printf(" not readable\n");
			return;
		}
		if (i % per_line == per_line - 1 || i + 1 == f->count)
			kdb_printf("\n");
	}
}

void
kdb_command_x(char *mod, char *args)
{
	const char *text = args;
	struct x_format f;
	uint64_t addr;
	char *word;

	if (!kdb_x_format(mod, &f))
		return;
	if (!kdb_more_words(&text)) {
		kdb_printf("x: expected x[/FORMAT] ADDRESS [COUNT]\n");
		return;
	}
	if (!kdb_expr(&text, &addr))
		return;
	args += text - args;
	word = kdb_word(&args);
	if (word != NULL && (!kdb_number(word, &f.count) || f.count > X_COUNT_MAX)) {
		kdb_printf("x: count \"%s\": expected 1 to %d\n", word, X_COUNT_MAX);
		return;
	}
	if (f.count == 0)
		f.count = f.kind == 'a' || f.kind == 's' ? 1 : X_LINE / f.size;
	kdb_examine(&f, addr);
}

/* Item size for a modifier of one letter; 8 without a modifier. 0: not a size. */
static unsigned
item_size(const char *mod)
{
	static const char letters[] = "bhwg";
	const char *at = mod == NULL || *mod == '\0' ? "g" : strchr(letters, *mod);

	return at == NULL || (mod != NULL && mod[0] != '\0' && mod[1] != '\0')
		   ? 0
		   : 1u << (mod == NULL || *mod == '\0' ? 3 : at - letters);
}

void
kdb_command_write(char *mod, char *args)
{
	unsigned size = item_size(mod);
	const char *text = args;
	uint64_t addr, value, old;
	bool any = false;

	if (size == 0) {
		kdb_printf("write: size \"%s\": expected b, h, w or g\n", mod);
		return;
	}
	if (!kdb_expr(&text, &addr))
		return;
	while (kdb_more_words(&text)) {
		any = true;
		old = 0;
		if (!kdb_expr(&text, &value))
			return;
		if (size < 8 && value >> 8 * size != 0 && ~value >> (8 * size - 1) != 0) {
			kdb_printf("write: %#lx: expected a number of %u bytes\n", value, size);
			return;
		}
		if (addr < ARCH_DIRECT_BASE || !arch_probe_copy(&old, (void *)addr, size) ||
		    !arch_probe_copy((void *)addr, &value, size)) {
			kdb_printf("write: %#lx is not writable kernel memory\n", addr);
			return;
		}
		kdb_x_label(addr);
		kdb_printf(" %#lx = %#lx\n", old,
			   (size < 8 ? value & ((1ul << 8 * size) - 1) : value));
		addr += size;
	}
	if (!any)
		kdb_printf("write: expected write[/SIZE] ADDR VALUE...\n");
}
