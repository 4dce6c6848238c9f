/*
 * list.c - the instructions of a clause as text: -S.
 */
#include <stdio.h>
#include <string.h>

#include "userland/bin/dtrace/gen/gen.h"

static const struct {
	const char *name, *form;
} ops[] = {
#define DIF_OP(name, code, text, form) [code] = {#text, form},
#include "kernel/abi/dif_ops.def"
};

static const char *const subs[] = {
#define SUB_NAME(name, nargs) #name,
    DIF_SUBS(SUB_NAME)
#undef SUB_NAME
};

static const char *
variable_name(uint32_t number)
{
	for (struct variable *v = dt_variables; v != NULL; v = v->next)
		if (!v->builtin && v->code == number + 1)
			return ident_text(v);
	return "?";
}

static void
print_part(char letter, const struct dif_insn *i, size_t at)
{
	switch (letter) {
	case 'd':
		printf("%%r%u", i->d);
		break;
	case 'a':
		printf("%%r%u", i->a);
		break;
	case 'b':
		if (i->op & DIF_IMM)
			printf("%d", i->imm);
		else
			printf("%%r%u", i->b);
		break;
	case 'm':
		printf("[%%r%u%+d]", i->a, i->imm);
		break;
	case 'j':
		printf("%lu", (unsigned long)(at + 1 + (size_t)i->imm));
		break;
	case 'p':
		printf("%u:%u", (uint32_t)i->imm & 0xffff, (uint32_t)i->imm >> 16);
		break;
	case 's':
		printf("\"%s\"", (const char *)gen_image.strings.data + i->imm);
		break;
	case 'c':
		printf("%s", subs[i->imm]);
		break;
	case 'v':
		printf("%s", variable_name((uint32_t)i->imm));
		break;
	default:
		printf("%d", i->imm);
	}
}

void
gen_list(const struct clause *c, size_t first)
{
	const struct dif_insn *code = (const struct dif_insn *)gen_image.code.data;
	size_t count = gen_image.code.size / sizeof(*code);

	printf("\nDIFO for %s\nOFF OPCODE            INSTRUCTION\n", c->probes->text);
	for (size_t at = first; at < count; at++) {
		const struct dif_insn *i = &code[at];
		size_t n = i->op & ~DIF_IMM;
		uint64_t word;

		memcpy(&word, i, sizeof(word));
		printf("%02lu: %016lx  %-9s", (unsigned long)(at - first), (unsigned long)word,
		       ops[n].name);
		for (const char *form = ops[n].form; *form != '\0' && *form != 'w'; form++) {
			printf(" ");
			print_part(*form, i, at - first);
		}
		printf("\n");
	}
}
