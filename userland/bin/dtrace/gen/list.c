/*
 * list.c - the instructions of a clause as text: -S.
 */
#include <stdio.h>
#include <string.h>

#include "userland/bin/dtrace/gen/gen.h"

/* What the letters of a form stand for: d a b registers, i the number, j where a jump goes. */
static const struct {
	uint8_t op;
	const char *name, *form;
} ops[] = {
    {DIF_RET, "ret", "i"},
    {DIF_ADD, "add", "dab"},
    {DIF_SUB, "sub", "dab"},
    {DIF_MUL, "mul", "dab"},
    {DIF_SDIV, "sdiv", "dab"},
    {DIF_UDIV, "udiv", "dab"},
    {DIF_SREM, "srem", "dab"},
    {DIF_UREM, "urem", "dab"},
    {DIF_AND, "and", "dab"},
    {DIF_OR, "or", "dab"},
    {DIF_XOR, "xor", "dab"},
    {DIF_SHL, "shl", "dab"},
    {DIF_SHR, "shr", "dab"},
    {DIF_SAR, "sar", "dab"},
    {DIF_HIGH, "high", "di"},
    {DIF_EXT, "ext", "dai"},
    {DIF_SCMP, "scmp", "dab"},
    {DIF_JA, "ja", "j"},
    {DIF_JEQ, "jeq", "abj"},
    {DIF_JNE, "jne", "abj"},
    {DIF_JLT, "jlt", "abj"},
    {DIF_JLE, "jle", "abj"},
    {DIF_JULT, "jult", "abj"},
    {DIF_JULE, "jule", "abj"},
    {DIF_LD1, "ld1", "dm"},
    {DIF_LD2, "ld2", "dm"},
    {DIF_LD4, "ld4", "dm"},
    {DIF_LD8, "ld8", "dm"},
    {DIF_LDS1, "lds1", "dm"},
    {DIF_LDS2, "lds2", "dm"},
    {DIF_LDS4, "lds4", "dm"},
    {DIF_ST1, "st1", "bm"},
    {DIF_ST2, "st2", "bm"},
    {DIF_ST4, "st4", "bm"},
    {DIF_ST8, "st8", "bm"},
    {DIF_STRING, "string", "ds"},
    {DIF_ARG, "arg", "di"},
    {DIF_BUILTIN, "builtin", "di"},
    {DIF_UREG, "ureg", "da"},
    {DIF_ARGSTR, "argstr", "di"},
    {DIF_CALL, "call", "dac"},
    {DIF_KEY, "key", "a"},
    {DIF_KEY_STR, "keystr", "a"},
    {DIF_KEY_STACK, "keystack", "i"},
    {DIF_KEY_USTACK, "keyustack", "i"},
    {DIF_LDV, "ldv", "dv"},
    {DIF_STV, "stv", "av"},
    {DIF_AGG, "agg", "abi"},
    {DIF_REC, "rec", "i"},
    {DIF_REC1, "rec1", "ai"},
    {DIF_REC2, "rec2", "ai"},
    {DIF_REC4, "rec4", "ai"},
    {DIF_REC8, "rec8", "ai"},
    {DIF_REC_STR, "recstr", "ap"},
    {DIF_REC_MEM, "recmem", "abp"},
    {DIF_REC_STACK, "recstack", "p"},
    {DIF_REC_USTACK, "recustack", "p"},
    {DIF_SPECULATE, "speculate", "a"},
    {DIF_COMMIT, "commit", "a"},
    {DIF_DISCARD, "discard", "a"},
    {DIF_EXIT, "exit", "a"},
    {DIF_RAISE, "raise", "a"},
    {DIF_STOP, "stop", ""},
    {DIF_BREAK, "break", ""},
    {DIF_PANIC, "panic", ""},
    {DIF_CHILL, "chill", "a"},
    {DIF_LOG, "log", ""},
};

static const char *const subs[] = {
#define SUB_NAME(name, nargs) #name,
    DIF_SUBS(SUB_NAME)
#undef SUB_NAME
};

static const char *
variable_name(uint32_t number)
{
	for (struct variable *v = dt_variables; v != NULL; v = v->next) {
		if (!v->builtin && v->code == number + 1)
			return ident_text(v);
	}
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
		size_t n = 0;
		uint64_t word;

		while (ops[n].op != (i->op & ~DIF_IMM))
			n++;
		memcpy(&word, i, sizeof(word));
		printf("%02lu: %016lx  %-9s", (unsigned long)(at - first), (unsigned long)word,
		       ops[n].name);
		for (const char *form = ops[n].form; *form != '\0'; form++) {
			printf(" ");
			print_part(*form, i, at - first);
		}
		printf("\n");
	}
}
