/*
 * mkfbt.c - writes the probes of a linked kernel's functions as assembly, for the next link.
 *
 * usage: mkfbt IMAGE LIST >fbt.S
 *        mkfbt --fuse IMAGE
 *
 * For each C function with a no-op at its entry, it writes two struct ktr_site (ktr/site.h), one
 * for the entry and one for all returns; their formats name the parameters. For the entry and for
 * each return, it writes a struct ktr_patch, which says what to patch, and a stub to jump to. A
 * jump to another function is a return as well. For each function to which one jumps, it writes a
 * struct ktr_site of its own, whose format names that function. LIST names the functions that get
 * no probe, and why.
 *
 * What it writes is data, and code for the end of .text. So functions do not move when the kernel
 * is linked again, and the addresses stay right. The build checks this: it runs mkfbt again on the
 * final image, and the output must be the same.
 *
 * At an entry on x86_64, the compiler leaves five no-ops of one byte. --fuse replaces them, in the
 * image, by one no-op of five bytes. A function then runs only one more instruction, and no CPU can
 * be between two of the five when they are changed.
 */
#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/host/symbols.h"

#define REGISTERS 6    /* that carry parameters, in both ABIs */
#define FORMAT    1023 /* KTR_WIRE_FMT_MAX */

struct function {
	Dwarf_Addr entry; /* where the no-op is */
	Dwarf_Addr body;  /* where the debug information says that it begins */
	Dwarf_Die die;
	const char *name;
	const char *file;
	int line;
	const char *skip; /* why it has no probe; NULL: it has one */
	bool returns;     /* it has a return */
};

/* What a slot is; from SLOT_TAIL on: the jump of tails[slot.kind - SLOT_TAIL]. */
enum { SLOT_ENTRY, SLOT_RETURN, SLOT_TAIL };

struct slot {
	Dwarf_Addr at;
	size_t function, kind;
};

/* The jumps from one function to another one. */
struct tail {
	size_t function;
	Dwarf_Addr to;
};

struct machine {
	GElf_Half elf;
	uint8_t entry[5]; /* the compiler's no-ops */
	uint8_t fused[5]; /* as one instruction */
	size_t entry_size;
	int parameter[REGISTERS]; /* DWARF's numbers of the registers */
	/* A stub, as long as a struct ktr_patch; its %s is `entry`, `return` or `tail`. */
	const char *stub;
	/* A stub elsewhere for a jump whose instruction is changed; NULL: the jump stays. Its
	 * number, the jump's distance from .text, its record's distance from the first one. */
	const char *tail;
};

static const struct machine machines[] = {
    /* System V ABI for AMD64, 3.2.3 and figure 3.36 */
    {EM_X86_64,
     {0x90, 0x90, 0x90, 0x90, 0x90},
     {0x0f, 0x1f, 0x44, 0x00, 0x00},
     5,
     {5, 4, 1, 2, 8, 9},
     "call fbt_%s; .nops 7",
     ".Lfbt_tail_%zu: call fbt_tail; jmp.d32 __ktr_record_start + %#llx; .balign 4; .long %zu\n"},
    /* Procedure Call Standard for the Arm 64-bit Architecture, 6.4; DWARF for it, 4.1 */
    {EM_AARCH64,
     {0x1f, 0x20, 0x03, 0xd5},
     {0x1f, 0x20, 0x03, 0xd5},
     4,
     {0, 1, 2, 3, 4, 5},
     "adr x17, .\n\tb fbt_%s\n\tnop",
     NULL},
};

static const struct machine *machine;
static struct function *functions;
static struct slot *slots;
static struct tail *tails;
static size_t function_count, slot_count, tail_count;
static Dwarf_Addr text_address; /* __ktr_record_start: .text begins with it */
static Elf_Data *text;

/* ---- the list of functions without probes ---- */

struct exception {
	char *name, *why;
};
static struct exception *exceptions;
static size_t exception_count;

static void
read_exceptions(const char *path)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "r");
	if (f == NULL)
		err(1, "%s", path);
	while (getline(&line, &size, f) > 0) {
		char *name = strtok(line, " \t\n"), *why = strtok(NULL, "\n");
		if (name == NULL || *name == '#')
			continue;
		if (why == NULL)
			errx(1, "%s: %s: expected a reason after the name", path, name);
		ARRAY_ADD(exceptions, exception_count,
			  (struct exception){strdup(name), strdup(why + strspn(why, " \t"))});
	}
	free(line);
	fclose(f);
}

static const char *
exception(const char *name)
{
	for (size_t i = 0; i < exception_count; i++)
		if (strcmp(exceptions[i].name, name) == 0)
			return exceptions[i].why;
	return NULL;
}

/* ---- functions and their returns ---- */

static bool
has_slot(Dwarf_Addr at)
{
	return at >= text_address && at - text_address + machine->entry_size <= text->d_size &&
	       memcmp((char *)text->d_buf + (at - text_address), machine->entry,
		      machine->entry_size) == 0;
}

static int
add_function(Dwarf_Die *die, void *arg)
{
	struct function f = {.die = *die};
	if (dwarf_entrypc(die, &f.body) != 0)
		return DWARF_CB_OK;
	/* On aarch64 the debug information says that a function begins after the no-op (GCC 12). */
	f.entry = f.body;
	f.name = symbol(f.entry, dwarf_diename(die));
	if (f.name == NULL) {
		f.entry = f.body - machine->entry_size;
		f.name = symbol(f.entry, dwarf_diename(die));
	}
	if (f.name == NULL)
		return DWARF_CB_OK;
	f.skip = has_slot(f.entry) ? exception(f.name) : "part of the log";
	f.file = dwarf_decl_file(die);
	if (f.file != NULL && strncmp(f.file, "./", 2) == 0)
		f.file += 2;
	dwarf_decl_line(die, &f.line);
	ARRAY_ADD(functions, function_count, f);
	return DWARF_CB_OK;
}

/* Lists the symbols in .text that have no probe of that name. */
static void
put_exceptions(void)
{
	GElf_Sym sym;
	const char *name;
	printf(".section .rodata.fbt, \"a\", @progbits\n");
	for (size_t i = 0; i < function_count; i++)
		if (functions[i].skip != NULL)
			printf(".ascii \"%s %s\\n\"\n", functions[i].name, functions[i].skip);
	for (size_t i = 0; (name = elf_symbol(i, &sym)) != NULL; i++) {
		size_t f = 0;
		if (sym.st_value - text_address >= text->d_size || sym.st_value < text_address ||
		    (GELF_ST_TYPE(sym.st_info) != STT_NOTYPE &&
		     GELF_ST_TYPE(sym.st_info) != STT_FUNC))
			continue;
		while (f < function_count && functions[f].entry != sym.st_value)
			f++;
		if (f == function_count && *name != '$' && strncmp(name, "__", 2) != 0 &&
		    strstr(name, ".cold") == NULL)
			printf(".ascii \"%s assembly\\n\"\n", name);
		else if (f < function_count && functions[f].skip == NULL &&
			 strcmp(name, functions[f].name) != 0)
			printf(".ascii \"%s the same code as %s\\n\"\n", name, functions[f].name);
	}
}

static int
by_entry(const void *a, const void *b)
{
	const struct function *f = a, *g = b;
	return f->entry < g->entry ? -1 : f->entry > g->entry;
}

static int
by_address(const void *a, const void *b)
{
	const struct slot *s = a, *t = b;
	return s->at < t->at ? -1 : s->at > t->at;
}

static void
add_slot(Dwarf_Addr at, size_t function, size_t kind)
{
	ARRAY_ADD(slots, slot_count, (struct slot){at, function, kind});
}

/* The function that an address is in: the last one that begins before, unless the address is in a
 * second piece, of code that rarely runs. */
static size_t
function_of(Dwarf_Addr at)
{
	size_t low = 0, high = function_count; /* below `low` all begin at or before the address */
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (functions[middle].entry <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0 && dwarf_haspc(&functions[low - 1].die, at) == 1)
		return low - 1;
	for (size_t i = 0; i < function_count; i++)
		if (dwarf_haspc(&functions[i].die, at) == 1)
			return i;
	return function_count;
}

/* Where the instruction jumps to that a return's address stands for; 0: it is a return. */
static Dwarf_Addr
jump(Dwarf_Addr at)
{
	const uint8_t *code = (const uint8_t *)text->d_buf + (at - text_address);
	int32_t distance;
	uint32_t insn;
	memcpy(&distance, code + 1, 4);
	memcpy(&insn, code + 4, 4); /* after the no-op */
	if (machine->elf == EM_X86_64 ? code[0] == 0xc3 : insn == 0xd65f03c0)
		return 0;
	if (machine->elf == EM_X86_64 && code[0] == 0xe9)
		return at + 5 + (Dwarf_Addr)(int64_t)distance;
	if (machine->elf == EM_AARCH64 && insn >> 26 == 5)
		return at + 4 + (Dwarf_Addr)(int64_t)((int32_t)(insn << 6) >> 4);
	errx(1, "%#llx: expected a return or a jump", (unsigned long long)at);
}

/* The kind of a slot from which a function jumps to an address. */
static size_t
add_tail(size_t function, Dwarf_Addr to)
{
	for (size_t i = 0; i < tail_count; i++)
		if (tails[i].function == function && tails[i].to == to)
			return SLOT_TAIL + i;
	ARRAY_ADD(tails, tail_count, (struct tail){function, to});
	return SLOT_TAIL + tail_count - 1;
}

static void
add_slots(void)
{
	GElf_Shdr header;
	Elf_Data *returns = elf_section("fbt_return", &header);
	for (size_t i = 0; i < function_count; i++)
		if (functions[i].skip == NULL)
			add_slot(functions[i].entry, i, SLOT_ENTRY);
	for (size_t i = 0; i < returns->d_size / 8; i++) {
		uint64_t at;
		memcpy(&at, (char *)returns->d_buf + 8 * i, 8);
		size_t f = function_of(at);
		if (f == function_count || functions[f].skip != NULL)
			continue;
		Dwarf_Addr to = jump(at);
		if (to == 0) {
			functions[f].returns = true;
			add_slot(at, f, SLOT_RETURN);
		} else if (function_of(to) != f && symbol(to, NULL) != NULL) {
			add_slot(at, f, add_tail(f, to));
		}
	}
	qsort(slots, slot_count, sizeof(*slots), by_address);
}

/* ---- types ---- */

/* Removes typedef, const and volatile from a type. *name becomes the outermost typedef's name.
 * False: the type is void. */
static bool
strip(Dwarf_Die *type, const char **name)
{
	Dwarf_Attribute attr;
	*name = "";
	for (;;) {
		int tag = dwarf_tag(type);
		if (tag == DW_TAG_typedef && **name == '\0')
			*name = dwarf_diename(type);
		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
		    tag != DW_TAG_volatile_type)
			return true;
		if (dwarf_attr_integrate(type, DW_AT_type, &attr) == NULL ||
		    dwarf_formref_die(&attr, type) == NULL)
			return false; /* void */
	}
}

/* The conversion that prints a value of the entry's type; NULL: void. *registers is the number of
 * registers that the value takes. */
static const char *
conversion(Dwarf_Die *die, unsigned *registers)
{
	static const char *const of_signed[] = {"%hhd", "%hd", "%d", "%ld"};
	static const char *const of_unsigned[] = {"%hhu", "%hu", "%u", "%lu"};
	Dwarf_Attribute attr;
	Dwarf_Die type;
	Dwarf_Word size = 8, encoding = DW_ATE_unsigned;
	const char *name;
	*registers = 1;
	if (dwarf_attr_integrate(die, DW_AT_type, &attr) == NULL ||
	    dwarf_formref_die(&attr, &type) == NULL || !strip(&type, &name))
		return NULL;
	if (dwarf_aggregate_size(&type, &size) != 0)
		size = 8;
	*registers = (unsigned)((size + 7) / 8);
	switch (dwarf_tag(&type)) {
	case DW_TAG_pointer_type:
		return "%p";
	case DW_TAG_enumeration_type:
		return "%d";
	case DW_TAG_base_type:
		if (dwarf_attr_integrate(&type, DW_AT_encoding, &attr) != NULL)
			dwarf_formudata(&attr, &encoding);
		/* A size_t is decimal. All other unsigned numbers of 64 bits are hexadecimal. */
		if (encoding == DW_ATE_unsigned && size == 8 && strcmp(name, "size_t") != 0)
			return "%#lx";
		unsigned n = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
		return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char ? of_signed[n]
										   : of_unsigned[n];
	default:
		return "%#lx";
	}
}

/* Which register has a parameter at the function's entry: 0 to 5; -1: none, or not known. */
static int
register_of(Dwarf_Die *parameter, Dwarf_Addr entry)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t length;
	if (dwarf_attr(parameter, DW_AT_location, &attr) == NULL ||
	    dwarf_getlocation_addr(&attr, entry, &op, &length, 1) != 1 || length < 1 ||
	    op->atom < DW_OP_reg0 || op->atom > DW_OP_reg31)
		return -1;
	for (int i = 0; i < REGISTERS; i++)
		if (machine->parameter[i] == op->atom - DW_OP_reg0)
			return i;
	return -1;
}

/* ---- output ---- */

/* Makes the format of the entry. Returns how many parameters it prints. */
static unsigned
entry_format(struct function *f, char format[FORMAT + 1])
{
	char *parameter[REGISTERS] = {NULL}, *at = format, *end = format + FORMAT;
	bool copy = strchr(f->name, '.') != NULL; /* a specialised copy may lack parameters */
	unsigned next = 0, count = 0;
	Dwarf_Die child;
	if (dwarf_child(&f->die, &child) == 0) {
		do {
			unsigned registers;
			const char *name;
			if (dwarf_tag(&child) != DW_TAG_formal_parameter)
				continue;
			const char *how = conversion(&child, &registers);
			int reg = register_of(&child, f->body);
			if (reg < 0 && copy)
				continue;
			if (reg >= 0)
				next = (unsigned)reg;
			if (registers > 2 && machine->elf == EM_X86_64 && reg < 0)
				continue; /* on the stack */
			if (next >= REGISTERS)
				break;
			name = dwarf_diename(&child);
			if (asprintf(&parameter[next], "%s %s", name != NULL ? name : "?",
				     registers > 1 ? "%#lx" : how) < 0 ||
			    (registers == 2 && next + 1 < REGISTERS &&
			     asprintf(&parameter[next + 1], "%s+8 %%#lx", name) < 0))
				err(1, "asprintf");
			next += registers > 2 ? 1 : registers;
		} while (dwarf_siblingof(&child, &child) == 0);
	}
	for (unsigned i = 0; i < REGISTERS; i++)
		if (parameter[i] != NULL)
			count = i + 1;
	at += snprintf(at, (size_t)(end - at), "-> %s(", f->name);
	for (unsigned i = 0; i < count; i++) {
		at += snprintf(at, (size_t)(end - at), "%s%s", i > 0 ? ", " : "",
			       parameter[i] != NULL ? parameter[i] : "- %#lx");
		free(parameter[i]);
	}
	snprintf(at, (size_t)(end - at), ")");
	return count;
}

static unsigned
return_format(struct function *f, size_t kind, char format[FORMAT + 1])
{
	unsigned registers;
	if (kind >= SLOT_TAIL) {
		Dwarf_Addr to = tails[kind - SLOT_TAIL].to;
		size_t callee = function_of(to);
		snprintf(format, FORMAT, "<- %s+%%#x jumps to %s", f->name,
			 callee < function_count ? functions[callee].name : symbol(to, NULL));
		return 1;
	}
	const char *how = conversion(&f->die, &registers);
	snprintf(format, FORMAT, "<- %s+%%#x%s%s", f->name, how != NULL ? " = " : "",
		 how != NULL ? how : "");
	return how != NULL ? 2 : 1;
}

static void
put_site(size_t number, size_t kind)
{
	char format[FORMAT + 1];
	struct function *f = &functions[number];
	bool ret = kind != SLOT_ENTRY;
	unsigned nargs = ret ? return_format(f, kind, format) : entry_format(f, format);
	printf(".pushsection .rodata.str1.1, \"aMS\", @progbits, 1\n"
	       "7: .string \"%s\"\n8: .string \"%s\"\n9: .string \"%s\"\n.popsection\n",
	       f->file != NULL ? f->file : "?", f->name, format);
	printf("fbt_site_%zu_%zu: .quad 7b, 8b, 9b, 0; .long %d, 0; .byte %u, 0, 0, %d; "
	       ".long %#x; .quad ktr_record%d; .balign 64\n",
	       number, kind, f->line, nargs, ret ? 2 : 1, (uint32_t)f->entry, ret ? 2 : 6);
}

/* text_offset: where .text is in the file. */
static void
fuse(int fd, off_t text_offset)
{
	for (size_t i = 0; i < function_count; i++) {
		off_t at = text_offset + (off_t)(functions[i].entry - text_address);
		if (has_slot(functions[i].entry) && pwrite(fd, machine->fused, machine->entry_size,
							   at) != (ssize_t)machine->entry_size)
			err(1, "cannot write the image");
	}
}

int
main(int argc, char **argv)
{
	GElf_Ehdr header;
	GElf_Shdr text_header;
	if (argc != 3)
		errx(2, "usage: mkfbt IMAGE LIST >fbt.S, or mkfbt --fuse IMAGE");
	bool fusing = strcmp(argv[1], "--fuse") == 0;
	const char *image = fusing ? argv[2] : argv[1];
	int fd = elf_open(image, fusing ? O_RDWR : O_RDONLY);
	gelf_getehdr(elf, &header);
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].elf == header.e_machine)
			machine = &machines[i];
	if (machine == NULL)
		errx(1, "%s: machine %u is unknown", image, header.e_machine);
	text = elf_section(".text", &text_header);
	text_address = text_header.sh_addr;
	if (!fusing)
		read_exceptions(argv[2]);
	read_symbols();

	Dwarf_Die unit;
	for (Dwarf_CU *cu = NULL; dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0;)
		dwarf_getfuncs(&unit, add_function, NULL, 0);
	if (fusing) {
		fuse(fd, (off_t)text_header.sh_offset);
		return 0;
	}
	qsort(functions, function_count, sizeof(*functions), by_entry);
	add_slots();

	printf("/* Made by mkfbt. */\n.section ktr_sites_fbt, \"aw\", @progbits\n.balign 64\n");
	for (size_t i = 0; i < function_count; i++) {
		if (functions[i].skip != NULL)
			continue;
		put_site(i, SLOT_ENTRY);
		if (functions[i].returns)
			put_site(i, SLOT_RETURN);
		for (size_t t = 0; t < tail_count; t++)
			if (tails[t].function == i)
				put_site(i, SLOT_TAIL + t);
	}
	printf(".section ktr_patch_fbt, \"a\", @progbits\n.balign 4\n");
	for (size_t i = 0; i < slot_count; i++) {
		bool elsewhere = slots[i].kind >= SLOT_TAIL && machine->tail != NULL;
		printf(".long __ktr_record_start + %#llx - ., %s%zu - ., fbt_site_%zu_%zu - .\n",
		       (unsigned long long)(slots[i].at - text_address),
		       elsewhere ? ".Lfbt_tail_" : "__fbt_stubs + ", elsewhere ? i : 12 * i,
		       slots[i].function, slots[i].kind);
	}
	printf(".section .text.fbt_stubs, \"ax\", @progbits\n.balign 8\n"
	       ".cfi_sections .debug_frame\n.cfi_startproc\n");
	for (size_t i = 0; i < slot_count; i++) {
		size_t kind = slots[i].kind;
		printf("\t");
		printf(machine->stub, kind == SLOT_ENTRY    ? "entry"
				      : kind == SLOT_RETURN ? "return"
							    : "tail");
		printf("\n");
	}
	printf(".cfi_endproc\n.section .text.fbt_tails, \"ax\", @progbits\n.cfi_startproc\n");
	for (size_t i = 0; i < slot_count && machine->tail != NULL; i++)
		if (slots[i].kind >= SLOT_TAIL)
			printf(machine->tail, i,
			       (unsigned long long)(tails[slots[i].kind - SLOT_TAIL].to -
						    text_address),
			       12 * i);
	printf(".cfi_endproc\n");
	put_exceptions();
	printf(".section .note.GNU-stack, \"\", @progbits\n");
	if (fflush(stdout) != 0)
		err(1, "standard output");
	return 0;
}
