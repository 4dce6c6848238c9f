/*
 * mksyms.c - writes the symbol, line and frame tables of a kernel image (kernel/lib/ksyms.h).
 *
 * usage: mksyms IMAGE OUTPUT PREFIX  makes the tables; sys_NAME is PREFIXsys_NAME, too
 *        mksyms --check ONE OTHER    fails when a symbol moved between two links
 */
#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/host/elf.h"
#include "kernel/lib/ksyms.h"
#include "userland/lib/array.h"

struct symbol {
	uint64_t addr;
	const char *name;
	bool other; /* what Linux calls it */
};

struct line {
	uint64_t addr;
	const char *file;
	unsigned line; /* 0: a run of code that has lines ends */
	size_t order;  /* as the compiler wrote them */
};

struct frame {
	uint64_t addr;
	struct ksyms_frame rule; /* without its address */
	bool end;                /* of a function: another one that begins there counts */
};

static GElf_Ehdr header;

static int
ascending(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* ---- symbols ---- */

static int
by_address(const void *a, const void *b)
{
	const struct symbol *s = a, *t = b;
	int r = ascending(s->addr, t->addr);

	if (r == 0)
		r = t->other - s->other;
	return r != 0 ? r : strcmp(s->name, t->name);
}

static bool
starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Is the symbol a function or an object of the kernel's memory? */
static bool
counts(const GElf_Sym *s, const char *name)
{
	GElf_Shdr section;
	unsigned type = GELF_ST_TYPE(s->st_info);

	return type != STT_FILE && type != STT_SECTION && GELF_ST_BIND(s->st_info) != STB_WEAK &&
	       s->st_shndx != SHN_UNDEF && s->st_shndx < SHN_LORESERVE &&
	       (int64_t)s->st_value < 0 && *name != '\0' && *name != '$' && !starts(name, ".L") &&
	       !starts(name, "__ksyms") &&
	       gelf_getshdr(elf_getscn(elf, s->st_shndx), &section) != NULL &&
	       (section.sh_flags & SHF_ALLOC) != 0;
}

/* Sorts functions and objects by address, one name each: the first one, but any name before a
 * section's (__…). */
static size_t
read_symbols(struct symbol **found)
{
	struct symbol *all = NULL;
	size_t count = 0, kept = 0;
	GElf_Sym sym;
	const char *name;

	for (size_t i = 0; (name = elf_symbol(i, &sym)) != NULL; i++)
		if (counts(&sym, name))
			ARRAY_ADD(all, count, (struct symbol){sym.st_value, name, false});
	if (all == NULL)
		errx(1, "no symbols in the image");
	qsort(all, count, sizeof(*all), by_address);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || all[kept - 1].addr != all[i].addr)
			all[kept++] = all[i];
		else if (starts(all[kept - 1].name, "__") && !starts(all[i].name, "__"))
			all[kept - 1] = all[i];
	}
	*found = all;
	return kept;
}

/* Functions with a name of FreeBSD's or of our own, and Linux's name of the function that does the
 * same. */
static const char *const linux_names[][2] = {
    {"callout_set", "hrtimer_start_range_ns"},
    {"callout_stop", "hrtimer_cancel"},
    {"file_open_at", "do_filp_open"},
    {"icmp_input", "icmp_rcv"},
    {"inet_datagram_receive", "udp_recvmsg"},
    {"inet_datagram_send", "udp_sendmsg"},
    {"inet_tcp_accept", "inet_csk_accept"},
    {"inet_tcp_connect", "tcp_v4_connect"},
    {"inet_tcp_receive", "tcp_recvmsg"},
    {"inet_tcp_send", "tcp_sendmsg"},
    {"ip4_input", "ip_rcv"},
    {"kmalloc", "__kmalloc"},
    {"page_alloc", "alloc_pages"},
    {"socket_receive", "sock_recvmsg"},
    {"socket_send", "sock_sendmsg"},
    {"tcp_input", "tcp_v4_rcv"},
    {"udp_input", "udp_rcv"},
    {"vm_fault", "handle_mm_fault"},
};

/* NULL: it has no other name. */
static const char *
other_name(const char *name, const char *prefix)
{
	static const char word[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	char *text;

	for (size_t i = 0; i < sizeof(linux_names) / sizeof(linux_names[0]); i++)
		if (strcmp(linux_names[i][0], name) == 0)
			return linux_names[i][1];
	if (!starts(name, "sys_") || name[4] == '\0' || name[strspn(name, word)] != '\0')
		return NULL;
	if (asprintf(&text, "%s%s", prefix, name) < 0)
		err(1, "asprintf");
	return text;
}

/* ---- lines ---- */

static int
by_line(const void *a, const void *b)
{
	const struct line *l = a, *m = b;
	int r = ascending(l->addr, m->addr);

	/* What a run's end says of an address counts only where no other line begins. */
	if (r == 0)
		r = (l->line == 0) - (m->line == 0);
	return r != 0 ? r : ascending(m->order, l->order);
}

/* A path without "." and "..". */
static const char *
normal(const char *path)
{
	char *text = strdup(path), *to = text;

	if (text == NULL)
		err(1, "strdup");
	for (const char *at = path; *at != '\0';) {
		size_t length = strcspn(at, "/");
		char *last = to > text ? to - 1 : text; /* where the part before begins */
		while (last > text && last[-1] != '/')
			last--;
		if (length == 2 && starts(at, "..") && to > text && !starts(last, "../")) {
			to = last;
		} else if (length > 0 && !(length == 1 && *at == '.')) {
			memcpy(to, at, length);
			to += length;
			*to++ = '/';
		}
		at += length + (at[length] == '/');
	}
	to[to > text ? -1 : 0] = '\0';
	return text;
}

/* Adds the rows of a unit. Consecutive rows of one file have the same pointer to its path. */
static void
read_unit(Dwarf_Die *unit, struct line **rows, size_t *count)
{
	Dwarf_Lines *lines;
	size_t n;
	const char *from = NULL, *path = NULL;

	if (dwarf_getsrclines(unit, &lines, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = dwarf_onesrcline(lines, i);
		Dwarf_Addr addr;
		bool end;
		int number;
		const char *source = dwarf_linesrc(l, NULL, NULL);
		if (source == NULL || dwarf_lineaddr(l, &addr) != 0 ||
		    dwarf_lineno(l, &number) != 0 || dwarf_lineendsequence(l, &end) != 0)
			continue;
		if (source != from)
			path = normal(source);
		from = source;
		struct line row = {addr, path, end ? 0 : (unsigned)number, *count};
		ARRAY_ADD(*rows, *count, row);
	}
}

/* Sorts by address, and keeps one row for each place where the line changes. */
static size_t
read_lines(struct line **found)
{
	struct line *rows = NULL;
	size_t count = 0, kept = 0;
	Dwarf_Die unit;

	for (Dwarf_CU *cu = NULL; dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0;)
		read_unit(&unit, &rows, &count);
	qsort(rows, count, sizeof(*rows), by_line);
	for (size_t i = 0; i < count; i++)
		if ((i == 0 || rows[i - 1].addr != rows[i].addr) &&
		    (kept == 0 || rows[kept - 1].line != rows[i].line ||
		     strcmp(rows[kept - 1].file, rows[i].file) != 0))
			rows[kept++] = rows[i];
	*found = rows;
	return kept;
}

/* ---- frames ---- */

/* Where a register is saved: words below the CFA; 0: not saved, -1: the table cannot express it. */
static int
saved(Dwarf_Frame *frame, int number)
{
	Dwarf_Op memory[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, number, memory, &ops, &n) != 0)
		return -1;
	if (n == 0) /* undefined, or as it was */
		return 0;
	if (n != 2 || ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_plus_uconst ||
	    (int64_t)ops[1].number > 0)
		return -1;
	return (int)(-(int64_t)ops[1].number / 8);
}

/* What the table says of a frame: that it is unknown, if the table cannot express it. */
static struct ksyms_frame
rule_of(Dwarf_Frame *frame, int return_address)
{
	bool arm = header.e_machine == EM_AARCH64;
	int sp = arm ? 31 : 7, fp = arm ? 29 : 6; /* DWARF's numbers of the registers */
	struct ksyms_frame rule = {0, 0, 0, 0};
	Dwarf_Op memory[3], *ops;
	size_t n;
	int ra = saved(frame, return_address), caller = saved(frame, fp);
	uint64_t cfa;

	/* A trap frame also saves the stack pointer; arch_unwind_trap() handles those. */
	if (dwarf_frame_register(frame, sp, memory, &ops, &n) != 0 ||
	    (n == 2 && ops[1].atom == DW_OP_plus_uconst) || ra < 0 || caller < 0)
		return rule;
	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n != 1 || ops->atom != DW_OP_bregx ||
	    ((int)ops->number != sp && (int)ops->number != fp) || (int64_t)ops->number2 < 0)
		return rule;
	cfa = ops->number2 / 8 + 1;
	uint16_t flags = (int)ops->number == fp ? KSYMS_CFA_FROM_FP : 0;
	if (ra > 255 || caller > 255) { /* both are saved at the other end of the frame */
		ra = ra != 0 ? (int)cfa - ra : 0;
		caller = caller != 0 ? (int)cfa - caller : 0;
		flags |= KSYMS_SAVED_FROM_BASE;
	}
	if (cfa > KSYMS_CFA_WORDS || ra < 0 || ra > 255 || caller < 0 || caller > 255)
		return rule;
	return (struct ksyms_frame){0, (uint16_t)(cfa | flags), (uint8_t)ra, (uint8_t)caller};
}

static int
by_frame(const void *a, const void *b)
{
	const struct frame *f = a, *g = b;
	int r = ascending(f->addr, g->addr);

	return r != 0 ? r : f->end - g->end;
}

/* Sorts by address, and keeps one row for each place where the rule changes. */
static size_t
read_frames(struct frame **found)
{
	GElf_Shdr of_section;
	Elf_Data *data = elf_section(".debug_frame", &of_section);
	Dwarf_CFI *cfi = dwarf_getcfi(dwarf);
	struct frame *rows = NULL;
	Dwarf_CFI_Entry entry;
	size_t count = 0, kept = 0;
	int r;

	for (Dwarf_Off at = 0, next;
	     (r = dwarf_next_cfi(header.e_ident, data, false, at, &next, &entry)) != 1; at = next) {
		uint64_t start, size;
		if (r != 0)
			errx(1, ".debug_frame: %s", dwarf_errmsg(-1));
		if (dwarf_cfi_cie_p(&entry))
			continue;
		memcpy(&start, entry.fde.start, 8);
		memcpy(&size, entry.fde.start + 8, 8);
		ARRAY_ADD(rows, count, (struct frame){start + size, {0, 0, 0, 0}, true});
		for (Dwarf_Addr from = start, to; from < start + size; from = to) {
			Dwarf_Frame *frame;
			if (dwarf_cfi_addrframe(cfi, from, &frame) != 0)
				errx(1, "%#llx: %s", (unsigned long long)from, dwarf_errmsg(-1));
			int ra = dwarf_frame_info(frame, NULL, &to, NULL);
			ARRAY_ADD(rows, count, (struct frame){from, rule_of(frame, ra), false});
			free(frame);
		}
	}
	if (rows == NULL)
		errx(1, "no frames in the image");
	qsort(rows, count, sizeof(*rows), by_frame);
	for (size_t i = 0; i < count; i++)
		if ((i == 0 || rows[i - 1].addr != rows[i].addr) &&
		    (kept == 0 ||
		     memcmp(&rows[kept - 1].rule, &rows[i].rule, sizeof(rows[i].rule)) != 0))
			rows[kept++] = rows[i];
	*found = rows;
	return kept;
}

/* ---- output ---- */

static char *names;
static size_t names_size;
static uint32_t *hashed; /* offsets of names + 1, by their hash; 0: free */
static size_t hashed_size;

static uint32_t
hash(const char *text)
{
	uint32_t h = 2166136261; /* FNV-1a */

	for (; *text != '\0'; text++)
		h = (h ^ (uint8_t)*text) * 16777619;
	return h;
}

/* The offset of a name, which is written once. */
static uint32_t
name_offset(const char *text)
{
	size_t slot = hash(text) % hashed_size, length = strlen(text) + 1;

	for (; hashed[slot] != 0; slot = (slot + 1) % hashed_size)
		if (strcmp(names + hashed[slot] - 1, text) == 0)
			return hashed[slot] - 1;
	hashed[slot] = (uint32_t)names_size + 1;
	for (size_t i = 0; i < length; i++)
		ARRAY_ADD(names, names_size, text[i]);
	return hashed[slot] - 1;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
put(FILE *out, const void *data, size_t size)
{
	if (fwrite(data, 1, size, out) != size)
		err(1, "cannot write the tables");
}

/* A hash table, at most half full. */
static void
put_hashes(FILE *out, const struct symbol *symbols, size_t count)
{
	size_t size = 1;

	while (size < 2 * count)
		size *= 2;
	uint32_t *table = calloc(size, sizeof(*table));
	if (table == NULL)
		err(1, "calloc");
	for (size_t i = 0; i < count; i++) {
		size_t slot = hash(symbols[i].name) % size;
		while (table[slot] != 0)
			slot = (slot + 1) % size;
		table[slot] = (uint32_t)i + 1;
	}
	put(out, table, size * sizeof(*table));
}

static void
make_tables(const char *output, const char *prefix)
{
	struct symbol *symbols;
	struct line *lines;
	struct frame *frames;
	size_t count = read_symbols(&symbols), line_count = read_lines(&lines);
	size_t frame_count = read_frames(&frames), own = count, file_count = 0;
	const char **files = NULL;

	uint64_t base = symbols[0].addr;
	while (line_count > 0 && lines->addr < base)
		lines++, line_count--;
	while (frame_count > 0 && frames->addr < base)
		frames++, frame_count--;
	for (size_t i = 0; i < own; i++) {
		const char *other = other_name(symbols[i].name, prefix);
		if (other != NULL)
			ARRAY_ADD(symbols, count, (struct symbol){symbols[i].addr, other, true});
	}
	qsort(symbols, count, sizeof(*symbols), by_address);
	if (count > KSYMS_MAX)
		errx(1, "%zu symbols are more than kernel/lib/ksyms.c takes", count);

	for (size_t i = 0; i < line_count; i++)
		if (i == 0 || lines[i - 1].file != lines[i].file)
			ARRAY_ADD(files, file_count, lines[i].file);
	qsort(files, file_count, sizeof(*files), by_text);
	size_t kept = 0;
	for (size_t i = 0; i < file_count; i++)
		if (kept == 0 || strcmp(files[kept - 1], files[i]) != 0)
			files[kept++] = files[i];
	file_count = kept;

	hashed_size = 4 * (count + file_count);
	hashed = calloc(hashed_size, sizeof(*hashed));
	FILE *out = fopen(output, "w");
	if (hashed == NULL || out == NULL)
		err(1, "%s", output);
	struct ksyms_header head = {KSYMS_MAGIC,
				    (uint32_t)count,
				    (uint32_t)line_count,
				    (uint32_t)frame_count,
				    (uint32_t)file_count,
				    0,
				    base,
				    0};
	put(out, &head, sizeof(head));
	for (size_t i = 0; i < count; i++) {
		struct ksyms_sym s = {(uint32_t)(symbols[i].addr - base),
				      name_offset(symbols[i].name)};
		put(out, &s, sizeof(s));
	}
	for (size_t i = 0; i < line_count; i++) {
		const char **file =
		    bsearch(&lines[i].file, files, file_count, sizeof(*files), by_text);
		struct ksyms_line l = {(uint32_t)(lines[i].addr - base), (uint16_t)(file - files),
				       (uint16_t)(lines[i].line < 65535 ? lines[i].line : 65535)};
		put(out, &l, sizeof(l));
	}
	for (size_t i = 0; i < frame_count; i++) {
		frames[i].rule.addr = (uint32_t)(frames[i].addr - base);
		put(out, &frames[i].rule, sizeof(frames[i].rule));
	}
	for (size_t i = 0; i < file_count; i++) {
		uint32_t offset = name_offset(files[i]);
		put(out, &offset, sizeof(offset));
	}
	put(out, names, names_size);
	put(out, "\0\0\0", -names_size & 3); /* not counted: who wants only names ends before */
	put_hashes(out, symbols, count);
	head.names_size = names_size;
	if (fseek(out, 0, SEEK_SET) != 0)
		err(1, "%s", output);
	put(out, &head, sizeof(head));
	if (fclose(out) != 0)
		err(1, "%s", output);
}

/* All symbols of an image but the kernel's end, which the tables move. */
static size_t
fixed_symbols(const char *image, struct symbol **found)
{
	elf_open(image, O_RDONLY);
	size_t count = read_symbols(found);

	return count > 0 && strcmp((*found)[count - 1].name, "__kernel_end") == 0 ? count - 1
										  : count;
}

static void
check(const char *one, const char *other)
{
	struct symbol *s, *t;
	size_t n = fixed_symbols(one, &s), m = fixed_symbols(other, &t), i = 0;

	while (i < n && i < m && s[i].addr == t[i].addr && strcmp(s[i].name, t[i].name) == 0)
		i++;
	if (i < n || i < m)
		errx(1, "%s: it moved between the links", i < n ? s[i].name : t[i].name);
}

int
main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: mksyms IMAGE OUTPUT PREFIX, or mksyms --check ONE OTHER");
	if (strcmp(argv[1], "--check") == 0) {
		check(argv[2], argv[3]);
		return 0;
	}
	elf_open(argv[1], O_RDONLY);
	gelf_getehdr(elf, &header);
	make_tables(argv[2], argv[3]);
	return 0;
}
