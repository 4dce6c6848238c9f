/*
 * dif_program_fuzz.c - programs of any instructions: each is refused with a reason, or runs, and
 * touches only what it may.
 */
#include "tests/fuzz/dif_fuzz.h"

static struct maker m;

/* Instructions that are mostly possible, so that whole programs are. */
static struct dif_insn
insn(struct fuzz_input *in)
{
	static const uint8_t ops[] = {
	    DIF_RET,       DIF_ADD,     DIF_ADD | DIF_IMM, DIF_SDIV,      DIF_UREM,
	    DIF_OR,        DIF_SHL,     DIF_SLT,           DIF_HIGH,      DIF_EXT,
	    DIF_SCMP,      DIF_JA,      DIF_JEQ,           DIF_JLT,       DIF_LD1,
	    DIF_LD8,       DIF_LDS2,    DIF_ST1,           DIF_ST8,       DIF_STRING,
	    DIF_ARG,       DIF_BUILTIN, DIF_UREG,          DIF_CALL,      DIF_CALL,
	    DIF_CALL,      DIF_KEY,     DIF_KEY_STR,       DIF_KEY_STACK, DIF_KEY_USTACK,
	    DIF_LDV,       DIF_STV,     DIF_AGG,           DIF_REC,       DIF_REC1,
	    DIF_REC8,      DIF_REC_STR, DIF_REC_MEM,       DIF_REC_STACK, DIF_REC_USTACK,
	    DIF_SPECULATE, DIF_COMMIT,  DIF_DISCARD,       DIF_EXIT,      DIF_RAISE,
	    DIF_CHILL,     DIF_ARGSTR,  DIF_LOG,           DIF_UPCALL};
	struct dif_insn i = {0};
	uint8_t op = fuzz_byte(in);

	if (op >= 250) { /* anything */
		i = (struct dif_insn){fuzz_byte(in), fuzz_byte(in), fuzz_byte(in), fuzz_byte(in),
				      (int32_t)fuzz_number(in)};
		return i;
	}
	i.op = ops[op % sizeof(ops)];
	op = i.op & ~DIF_IMM;
	i.a = op == DIF_RET || op == DIF_JA || op == DIF_REC || op == DIF_HIGH ? 0
									       : fuzz_byte(in) % 16;
	if ((op >= DIF_STRING && op <= DIF_BUILTIN) || op == DIF_KEY_STACK ||
	    op == DIF_KEY_USTACK || op == DIF_LDV || op == DIF_REC_STACK || op == DIF_REC_USTACK)
		i.a = 0;
	if ((op > DIF_RET && op <= DIF_EXT) || op == DIF_SCMP ||
	    (op >= DIF_LD1 && op <= DIF_LDS4) || (op >= DIF_STRING && op <= DIF_ARGSTR) ||
	    op == DIF_LDV)
		i.d = 1 + fuzz_byte(in) % 15;
	if ((op >= DIF_ADD && op <= DIF_ULE && i.op == op) || op == DIF_SCMP ||
	    (op >= DIF_JEQ && op <= DIF_JULE) || (op >= DIF_ST1 && op <= DIF_ST8) ||
	    op == DIF_AGG || op == DIF_REC_MEM || op == DIF_UPCALL)
		i.b = fuzz_byte(in) % 16;
	if (op >= DIF_REC_STR && op <= DIF_REC_USTACK)
		i.imm = DIF_PLACE(fuzz_byte(in) % 8 * 8, fuzz_byte(in) % 8 * 8);
	else if (op == DIF_RET || i.op != op || op >= DIF_HIGH)
		i.imm = op == DIF_SCMP || op == DIF_UREG || op == DIF_KEY || op == DIF_KEY_STR ||
				op >= DIF_SPECULATE
			    ? 0
			    : (int32_t)(fuzz_byte(in) % 64 - (op == DIF_LD1 ? 8 : 0));
	return i;
}

static void
declare(void)
{
	make(&m);
	m.h.flags = DIF_DESTRUCTIVE | DIF_KERNEL;
	m.h.options.bufsize = 512;
	m.h.options.aggsize = 4096;
	m.h.options.dynvarsize = 2048;
	m.h.options.specsize = 256;
	m.h.options.strsize = 32;
	m.h.options.scratch = 256;
	for (unsigned scope = DIF_GLOBAL; scope <= DIF_THIS; scope++)
		for (unsigned kind = DIF_INT; kind <= DIF_STR; kind++)
			put_var(&m, (enum dif_scope)scope, (enum dif_kind)kind,
				kind == DIF_INT ? 8 : 20, 0);
	put_var(&m, DIF_GLOBAL, DIF_INT, 8, DIF_K_INT);
	put_var(&m, DIF_SELF, DIF_STR, 0, DIF_K_STR);
	put_var(&m, DIF_GLOBAL, DIF_BYTES, 9, DIF_K_STACK);
	for (unsigned f = DIF_COUNT; f <= DIF_QUANTIZE; f++)
		put_agg(&m, (enum dif_func)f, f % 3 == 0 ? 0 : f % 3 == 1 ? DIF_K_INT : DIF_K_STR);
	memcpy(m.aggs[put_agg(&m, DIF_LQUANTIZE, 0)].p, (int64_t[]){-5, 50, 10}, 24);
	memcpy(m.aggs[put_agg(&m, DIF_LLQUANTIZE, 0)].p, (int64_t[]){2, 1, 6, 4}, 32);
	for (unsigned i = 0; i < 4; i++)
		put_layout(&m, 8 + 31 * i);
	put_string(&m, "/some/text/../of a./program");
	put_string(&m, "./ ");
}

static void
try_one(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	static struct dif_insn code[512];
	struct dif_refusal why;
	struct dif d;

	fuzz_host();
	if (m.h.magic == 0)
		declare();
	m.h.clauses.count = m.h.code.count = 0;
	m.h.options.policy = fuzz_byte(&in) % 3;
	for (unsigned clause = fuzz_byte(&in) % 3; clause < 3; clause++) {
		uint32_t n = 0;

		for (uint8_t reg = 1; reg < DIF_REGS; reg++) {
			code[n++] = (struct dif_insn){DIF_OR | DIF_IMM, reg, 0, 0,
						      (int32_t)fuzz_number(&in)};
			if (fuzz_byte(&in) % 4 == 0) /* the kernel's memory, or close to it */
				code[n++] =
				    (struct dif_insn){DIF_HIGH, reg, 0, 0, (int32_t)0xffff8000};
		}
		for (unsigned end = fuzz_byte(&in) % 64; end > 0; end--)
			code[n++] = insn(&in);
		code[n++] = (struct dif_insn){DIF_RET, 0, 0, 0, 0};
		put_clause(&m, code, n);
	}
	if (load_made(&m, &d, FUZZ_CPUS, &why) == NULL) {
		fuzz_run(&d);
		dif_unload(&d);
		fuzz_loaded++;
	} else {
		FUZZ_CHECK(why.error != NULL && why.clause < m.h.clauses.count, "no reason");
		fuzz_refused++;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_variants(data, size, try_one);
}
