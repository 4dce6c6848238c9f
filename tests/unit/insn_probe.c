/*
 * insn_probe.c - what a port says of instructions (arch/insn.h), for tests/unit/insn_test.py. It is
 * built once for each port. Input: a line for each function, its address and its bytes, in
 * hexadecimal. Output: a line for each instruction, "ADDRESS LENGTH copy", "… emulate" or "… refuse
 * REASON", and for a copy the bytes of a slot at the address SLOT.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/insn.h"
#include "arch/uaccess.h"

#define SLOT 0xffffffff80000000ull

/* Nothing is emulated here. */
bool
arch_copy_user(void *dst, const void *src, size_t n)
{
	(void)dst, (void)src, (void)n;
	return false;
}

static void
say(const uint8_t *function, size_t at, uintptr_t address)
{
	uint8_t slot[ARCH_SLOT_SIZE / 2];
	const char *why = arch_insn_refuse(function, at);
	size_t length = arch_insn_length(function + at), n;

	printf("%" PRIxPTR " %zu ", address + at, length);
	if (why != NULL) {
		printf("refuse %s\n", why);
		return;
	}
	n = arch_insn_slot(function + at, address + at, SLOT, true, slot);
	printf(n > 0 ? "copy " : "emulate");
	for (size_t i = 0; i < n; i++)
		printf("%02x", slot[i]);
	putchar('\n');
}

int
main(void)
{
	static char line[1 << 20];
	static uint8_t code[sizeof(line) / 2 + ARCH_INSN_MAX];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		uintptr_t address;
		int used;
		size_t size = 0, length;
		unsigned byte;

		if (sscanf(line, "%" SCNxPTR " %n", &address, &used) != 1)
			return 1;
		memset(code, 0, sizeof(code));
		for (const char *p = line + used; sscanf(p, "%2x", &byte) == 1; p += 2)
			code[size++] = (uint8_t)byte;
		for (size_t at = 0; at < size; at += length) {
			say(code, at, address);
			length = arch_insn_length(code + at);
			if (length == 0)
				break;
		}
	}
	return 0;
}
