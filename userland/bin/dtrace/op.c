/*
 * op.c - the operators with two operands.
 */
#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/dt.h"

static const struct op ops[] = {
    {OP2('|', '|'), 1, OP_LOGIC, {DIF_OR, DIF_OR}, false, 0},
    {OP2('^', '^'), 2, OP_LOGIC, {DIF_XOR, DIF_XOR}, false, 0},
    {OP2('&', '&'), 3, OP_LOGIC, {DIF_AND, DIF_AND}, false, 0},
    {'|', 4, OP_ARITHMETIC, {DIF_OR, DIF_OR}, false, 0},
    {'^', 5, OP_ARITHMETIC, {DIF_XOR, DIF_XOR}, false, 0},
    {'&', 6, OP_ARITHMETIC, {DIF_AND, DIF_AND}, false, 0},
    {OP2('=', '='), 7, OP_COMPARE, {DIF_JEQ, DIF_JEQ}, false, OP2('!', '=')},
    {OP2('!', '='), 7, OP_COMPARE, {DIF_JNE, DIF_JNE}, false, OP2('=', '=')},
    {'<', 8, OP_COMPARE, {DIF_JLT, DIF_JULT}, false, OP2('>', '=')},
    {'>', 8, OP_COMPARE, {DIF_JLT, DIF_JULT}, true, OP2('<', '=')},
    {OP2('<', '='), 8, OP_COMPARE, {DIF_JLE, DIF_JULE}, false, '>'},
    {OP2('>', '='), 8, OP_COMPARE, {DIF_JLE, DIF_JULE}, true, '<'},
    {OP2('<', '<'), 9, OP_SHIFT, {DIF_SHL, DIF_SHL}, false, 0},
    {OP2('>', '>'), 9, OP_SHIFT, {DIF_SAR, DIF_SHR}, false, 0},
    {'+', 10, OP_ADD, {DIF_ADD, DIF_ADD}, false, 0},
    {'-', 10, OP_ADD, {DIF_SUB, DIF_SUB}, false, 0},
    {'*', 11, OP_ARITHMETIC, {DIF_MUL, DIF_MUL}, false, 0},
    {'/', 11, OP_ARITHMETIC, {DIF_SDIV, DIF_UDIV}, false, 0},
    {'%', 11, OP_ARITHMETIC, {DIF_SREM, DIF_UREM}, false, 0},
};

const struct op *
op_find(uint32_t op)
{
	static const struct op none;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].op == op)
			return &ops[i];
	return &none;
}
