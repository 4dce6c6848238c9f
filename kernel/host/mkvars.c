/*
 * mkvars.c - lists the variables of a linked kernel with their types, which BTF does not have.
 *
 * usage: mkvars IMAGE
 *
 * It prints a line for each variable at file level: NAME TYPE, as C writes the type without the
 * name ("struct list *", "unsigned int [4]"). A type without a name is left out.
 *
 * It also prints a line for each probe of SDT (ktr/site.h), with the types of its arguments, and
 * those that D makes of them: :PROVIDER:MODULE:FUNCTION:NAME TYPE>TYPE;TYPE;
 */
#include <dwarf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/host/elf.h"

#define TEXT 256

static bool
target(Dwarf_Die *die, Dwarf_Die *to)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, DW_AT_type, &a) != NULL &&
	       dwarf_formref_die(&a, to) != NULL;
}

/* Appends the sizes of an array: [2][3]. */
static void
append_sizes(Dwarf_Die *array, char *text)
{
	Dwarf_Die part;
	size_t used = strlen(text);

	if (dwarf_child(array, &part) != 0)
		return;
	do {
		Dwarf_Attribute a;
		Dwarf_Word last, count = 0;

		if (dwarf_tag(&part) != DW_TAG_subrange_type)
			continue;
		if (dwarf_attr(&part, DW_AT_count, &a) != NULL)
			dwarf_formudata(&a, &count);
		else if (dwarf_attr(&part, DW_AT_upper_bound, &a) != NULL &&
			 dwarf_formudata(&a, &last) == 0)
			count = last + 1;
		used +=
		    (size_t)snprintf(text + used, used < TEXT ? TEXT - used : 0, "%s[%lu]",
				     strchr(text, '[') == NULL ? " " : "", (unsigned long)count);
	} while (used < TEXT && dwarf_siblingof(&part, &part) == 0);
}

/* Puts the type's text into text[TEXT]. False: the type has no name. */
static bool
type_text(Dwarf_Die *die, char *text)
{
	static const struct {
		int tag;
		const char *word;
	} words[] = {{DW_TAG_base_type, ""},
		     {DW_TAG_typedef, ""},
		     {DW_TAG_structure_type, "struct "},
		     {DW_TAG_union_type, "union "},
		     {DW_TAG_enumeration_type, "enum "}};
	int tag = dwarf_tag(die);
	Dwarf_Die to;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].tag != tag)
			continue;
		if (dwarf_diename(die) == NULL)
			return false;
		snprintf(text, TEXT, "%s%s", words[i].word, dwarf_diename(die));
		return true;
	}
	if (tag == DW_TAG_pointer_type) {
		if (!target(die, &to) || dwarf_tag(&to) == DW_TAG_subroutine_type ||
		    !type_text(&to, text) || strchr(text, '[') != NULL)
			strcpy(text, "void");
		if (strlen(text) + 3 > TEXT)
			return false;
		strcat(text, text[strlen(text) - 1] == '*' ? "*" : " *");
		return true;
	}
	if ((tag != DW_TAG_const_type && tag != DW_TAG_volatile_type && tag != DW_TAG_array_type) ||
	    !target(die, &to) || !type_text(&to, text))
		return tag == DW_TAG_const_type && !target(die, &to) &&
		       strcpy(text, "void") != NULL;
	if (tag == DW_TAG_array_type)
		append_sizes(die, text);
	return true;
}

/* ---- probes ---- */

#define SDT_ARGS 7 /* KTR_SDT_ARGS */

struct sdt { /* struct ktr_sdt */
	uint64_t name[4], types[SDT_ARGS], xlate[SDT_ARGS];
};

/* What the kernel has in `size` bytes at this address; NULL: nothing. */
static const void *
memory_at(uint64_t address, size_t size)
{
	size_t headers = 0, file_size;
	const char *file = elf_rawfile(elf, &file_size);
	GElf_Phdr h;

	elf_getphdrnum(elf, &headers);
	for (size_t i = 0; i < headers; i++)
		if (gelf_getphdr(elf, (int)i, &h) != NULL && h.p_type == PT_LOAD &&
		    address >= h.p_vaddr && address - h.p_vaddr <= h.p_filesz &&
		    size <= h.p_filesz - (address - h.p_vaddr))
			return file + h.p_offset + (address - h.p_vaddr);
	return NULL;
}

static const char *
text_at(uint64_t address)
{
	const char *text = address != 0 ? memory_at(address, 1) : NULL;

	return text != NULL ? text : "";
}

/* The folder of a file. */
static void
print_folder(const char *file)
{
	const char *end = strrchr(file, '/'), *start = end;

	while (start != NULL && start > file && start[-1] != '/')
		start--;
	if (start != NULL)
		printf("%.*s", (int)(end - start), start);
}

static void
list_probe(Dwarf_Die *unit, Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Op *op;
	size_t count;
	struct sdt s = {{0}, {0}, {0}};
	const void *at;

	if (dwarf_attr(die, DW_AT_location, &a) == NULL ||
	    dwarf_getlocation(&a, &op, &count) != 0 || count == 0 || op->atom != DW_OP_addr)
		errx(1, "%s: where is it?", dwarf_diename(die));
	at = memory_at(op->number, sizeof(s));
	if (at != NULL)
		memcpy(&s, at, sizeof(s));
	else
		errx(1, "%s: it is not in the file", dwarf_diename(die));
	for (unsigned i = 0; i < 4; i++) {
		printf(":%s", text_at(s.name[i]));
		if (i == 1 && *text_at(s.name[i]) == '\0')
			print_folder(dwarf_diename(unit));
	}
	printf(" ");
	for (unsigned i = 0; i < SDT_ARGS && s.types[i] != 0; i++)
		printf("%s%s%s;", text_at(s.types[i]), s.xlate[i] != 0 ? ">" : "",
		       text_at(s.xlate[i]));
	printf("\n");
}

static void
list_unit(Dwarf_Die *unit)
{
	Dwarf_Die die, type;
	char text[TEXT];

	if (dwarf_child(unit, &die) != 0)
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_variable && dwarf_hasattr(&die, DW_AT_location) &&
		    dwarf_hasattr_integrate(&die, DW_AT_name) && target(&die, &type) &&
		    type_text(&type, text)) {
			printf("%s %s\n", dwarf_diename(&die), text);
			if (strcmp(text, "struct ktr_sdt") == 0)
				list_probe(unit, &die);
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

int
main(int argc, char **argv)
{
	Dwarf_Die unit;

	if (argc != 2)
		errx(2, "usage: mkvars IMAGE");
	elf_open(argv[1], O_RDONLY);
	for (Dwarf_CU *cu = NULL; dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0;)
		list_unit(&unit);
	return fflush(stdout) != 0;
}
