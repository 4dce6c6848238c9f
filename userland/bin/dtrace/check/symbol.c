/*
 * symbol.c - the kernel's functions and variables.
 */
#include "userland/bin/dtrace/check/check.h"

#include <string.h>

/* As kernel/lib/ksyms.h describes: the header, and the table that follows it. */
#define MAGIC 0x324d534bu

static struct {
	uint32_t magic, symbols, lines, frames, files, reserved;
	uint64_t base, names_size;
} head;

struct symbol {
	uint32_t address, name;
};
static const struct symbol *symbols;
static const char *names;
static uint64_t end;

const char *
symbol_open(const void *data, size_t size)
{
	uint64_t names_at;

	if (size < sizeof(head))
		return "it is too short";
	memcpy(&head, data, sizeof(head));
	names_at = sizeof(head) + 8ull * head.symbols + 8ull * head.lines + 8ull * head.frames +
		   4ull * head.files;
	if (head.magic != MAGIC || head.symbols == 0 || names_at > size ||
	    head.names_size > size - names_at || head.names_size == 0) {
		head.symbols = 0;
		return "it is no table of the kernel's symbols";
	}
	symbols = (const struct symbol *)((const char *)data + sizeof(head));
	names = (const char *)data + names_at;
	if (names[head.names_size - 1] != '\0') {
		head.symbols = 0;
		return "its names are cut off";
	}
	end = head.base + symbols[head.symbols - 1].address + 1;
	return NULL;
}

static const char *
name_of(const struct symbol *s)
{
	return s->name < head.names_size ? names + s->name : "";
}

bool
symbol_find(const char *name, uint64_t *address, struct type **type)
{
	for (uint32_t i = 0; i < head.symbols; i++)
		if (strcmp(name_of(&symbols[i]), name) == 0) {
			*address = head.base + symbols[i].address;
			*type = type_function(name);
			if (*type == NULL)
				*type = type_variable(name);
			return true;
		}
	return false;
}

const char *
symbol_at(uint64_t address, uint64_t *start)
{
	uint32_t low = 0, high = head.symbols;

	if (head.symbols == 0 || address < head.base || address >= end)
		return NULL;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (head.base + symbols[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	*start = head.base + symbols[low].address;
	return name_of(&symbols[low]);
}
