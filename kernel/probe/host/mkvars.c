/*
 * mkvars.c - lists the variables of a linked kernel with their types, which BTF does not have.
 *
 * usage: mkvars IMAGE
 *
 * It prints a line for each variable at file level: NAME TYPE, as C writes the type without the
 * name
 * ("struct list *", "unsigned int [4]"). A type without a name is left out.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The type's text in text[TEXT]; false: it has no name. */
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
		    type_text(&type, text))
			printf("%s %s\n", dwarf_diename(&die), text);
	} while (dwarf_siblingof(&die, &die) == 0);
}

int
main(int argc, char **argv)
{
	Dwarf_Off offset = 0, next;
	size_t header;
	int fd;

	if (argc != 2)
		errx(2, "usage: mkvars IMAGE");
	fd = open(argv[1], O_RDONLY);
	Dwarf *dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (dwarf == NULL)
		errx(1, "%s: cannot read its debug information", argv[1]);
	for (; dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0; offset = next) {
		Dwarf_Die unit;

		if (dwarf_offdie(dwarf, offset + header, &unit) != NULL)
			list_unit(&unit);
	}
	return fflush(stdout) != 0;
}
