/*
 * dif_test.c - the program engine (kernel/dtrace): what programs compute, what the verifier
 * refuses, and that each firing is counted once. The vectors say what kernel/abi/dif.h promises.
 */
#include "tests/unit/dif_unit.h"

#define KERNEL 0xffff800000100000ul

static uint8_t kernel_bytes[8192];

/* r1 = operation of a and b, with registers and with a constant. */
static void
arithmetic(void **state)
{
	static const struct {
		enum dif_op op;
		int64_t a, b, result;
	} vectors[] = {
	    {DIF_ADD, 7, 5, 12},          {DIF_ADD, INT64_MAX, 1, INT64_MIN},
	    {DIF_SUB, 5, 7, -2},          {DIF_MUL, -3, 5, -15},
	    {DIF_SDIV, -7, 2, -3},        {DIF_SDIV, INT64_MIN, -1, INT64_MIN},
	    {DIF_SREM, -7, 2, -1},        {DIF_SREM, INT64_MIN, -1, 0},
	    {DIF_UDIV, -1, 2, INT64_MAX}, {DIF_UREM, -1, 10, 5},
	    {DIF_AND, 12, 10, 8},         {DIF_OR, 12, 10, 14},
	    {DIF_XOR, 12, -1, -13},       {DIF_SHL, 1, 65, 2},
	    {DIF_SHR, -1, 60, 15},        {DIF_SAR, -16, 2, -4},
	    {DIF_SEQ, 3, 3, 1},           {DIF_SEQ, 3, 4, 0},
	    {DIF_SNE, 3, 4, 1},           {DIF_SNE, 3, 3, 0},
	    {DIF_SLT, -1, 0, 1},          {DIF_SLT, 0, 0, 0},
	    {DIF_SLE, 0, 0, 1},           {DIF_SLE, 1, 0, 0},
	    {DIF_ULT, -1, 0, 0},          {DIF_ULT, 0, -1, 1},
	    {DIF_ULE, -1, -1, 1},         {DIF_ULE, -1, 0, 0},
	};
	enum { N = sizeof(vectors) / sizeof(vectors[0]) };

	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	for (unsigned i = 0; i < N; i++) {
		int64_t a = vectors[i].a, b = vectors[i].b;
		struct dif_insn set_a = {DIF_OR | DIF_IMM, 2, 0, 0, (int32_t)a},
				high_a = {DIF_HIGH, 2, 0, 0, (int32_t)(a >> 32)};

		CLAUSE(&m, set_a, high_a, {DIF_OR | DIF_IMM, 3, 0, 0, (int32_t)b},
		       {(uint8_t)vectors[i].op, 1, 2, 3, 0}, STORE_1);
		CLAUSE(&m, set_a, high_a, {(uint8_t)vectors[i].op | DIF_IMM, 1, 2, 0, (int32_t)b},
		       STORE_1);
	}
	load_it(1);
	for (unsigned i = 0; i < 2 * N; i++) {
		assert_int_equal(fire(&d, 0, i), DIF_FAULT_NONE);
		if ((int64_t)global(0) != vectors[i / 2].result)
			fail_msg("vector %u: %#lx, expected %#lx", i, global(0),
				 vectors[i / 2].result);
	}
	assert_int_equal(status().completed, 2 * N);
}

static void
extensions_and_branches(void **state)
{
	static const struct {
		int32_t how;
		uint64_t result;
	} cuts[] = {{1, 0x88},
		    {2, 0x9988},
		    {4, 0xbbaa9988},
		    {-1, 0xffffffffffffff88},
		    {-2, 0xffffffffffff9988},
		    {-4, 0xffffffffbbaa9988}};
	static const struct {
		enum dif_op op;
		int32_t a, b;
		bool taken;
	} jumps[] = {{DIF_JA, 0, 0, true},     {DIF_JEQ, 1, 1, true},   {DIF_JEQ, 1, 2, false},
		     {DIF_JNE, 1, 2, true},    {DIF_JNE, 1, 1, false},  {DIF_JLT, -1, 1, true},
		     {DIF_JLT, 1, 1, false},   {DIF_JLE, 1, 1, true},   {DIF_JLE, 2, 1, false},
		     {DIF_JULT, -1, 1, false}, {DIF_JULT, 1, -1, true}, {DIF_JULE, -1, -1, true},
		     {DIF_JULE, -1, 1, false}};

	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	for (unsigned i = 0; i < 6; i++)
		CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, (int32_t)0xbbaa9988},
		       {DIF_HIGH, 2, 0, 0, 0x77665544}, {DIF_EXT, 1, 2, 0, cuts[i].how}, STORE_1);
	for (unsigned i = 0; i < 13; i++) {
		bool always = jumps[i].op == DIF_JA;

		CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, jumps[i].a},
		       {DIF_OR | DIF_IMM, 3, 0, 0, jumps[i].b}, {DIF_OR | DIF_IMM, 1, 0, 0, 1},
		       {(uint8_t)jumps[i].op, 0, always ? 0 : 2, always ? 0 : 3, 1},
		       {DIF_OR | DIF_IMM, 1, 0, 0, 0}, STORE_1);
	}
	load_it(1);
	for (unsigned i = 0; i < 6; i++) {
		fire(&d, 0, i);
		assert_int_equal(global(0), cuts[i].result);
	}
	for (unsigned i = 0; i < 13; i++) {
		fire(&d, 0, 6 + i);
		if (global(0) != jumps[i].taken)
			fail_msg("branch %u", i);
	}
}

static void
loads_read_what_they_may_and_else_fault(void **state)
{
	static const struct {
		enum dif_op op;
		uint64_t result;
	} loads[] = {{DIF_LD1, 0x88},
		     {DIF_LD2, 0x9988},
		     {DIF_LD4, 0xbbaa9988},
		     {DIF_LD8, 0xffeeddccbbaa9988},
		     {DIF_LDS1, 0xffffffffffffff88},
		     {DIF_LDS2, 0xffffffffffff9988},
		     {DIF_LDS4, 0xffffffffbbaa9988}};

	dif_host.kernel = (struct dif_host_area){KERNEL, kernel_bytes, sizeof(kernel_bytes)};
	for (unsigned i = 0; i < 8; i++)
		kernel_bytes[3 + i] = (uint8_t)(0x88 + 0x11 * i);
	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	for (unsigned i = 0; i < 7; i++)
		CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, (int32_t)KERNEL},
		       {DIF_HIGH, 2, 0, 0, (int32_t)(KERNEL >> 32)},
		       {(uint8_t)loads[i].op, 1, 2, 0, 3}, STORE_1);
	/* the last byte; one byte further; a null pointer; user memory */
	CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, (int32_t)KERNEL},
	       {DIF_HIGH, 2, 0, 0, (int32_t)(KERNEL >> 32)}, {DIF_LD8, 1, 2, 0, 8192 - 8}, STORE_1);
	CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, (int32_t)KERNEL},
	       {DIF_HIGH, 2, 0, 0, (int32_t)(KERNEL >> 32)}, {DIF_LD8, 1, 2, 0, 8192 - 7}, STORE_1);
	CLAUSE(&m, {DIF_LD1, 1, 0, 0, 0}, STORE_1);
	CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, USER}, {DIF_LD1, 1, 2, 0, 0}, STORE_1);
	/* the strings of the program; a store to them */
	uint32_t text = put_string(&m, "text");
	CLAUSE(&m, {DIF_STRING, 2, 0, 0, (int32_t)text}, {DIF_LD1, 1, 2, 0, 1}, STORE_1);
	CLAUSE(&m, {DIF_STRING, 2, 0, 0, (int32_t)text}, {DIF_ST1, 0, 2, 0, 1},
	       {DIF_RET, 0, 0, 0, 0});
	/* scratch memory: written and read; beyond its end */
	CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, 16}, {DIF_CALL, 3, 2, 0, DIF_SUB_ALLOCA},
	       {DIF_OR | DIF_IMM, 4, 0, 0, -2}, {DIF_ST8, 0, 3, 4, 8}, {DIF_LD4, 1, 3, 0, 8},
	       STORE_1);
	CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, 16}, {DIF_CALL, 3, 2, 0, DIF_SUB_ALLOCA},
	       {DIF_ST8, 0, 3, 0, 9}, {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_OR | DIF_IMM, 2, 0, 0, 1 << 20}, {DIF_CALL, 3, 2, 0, DIF_SUB_ALLOCA},
	       {DIF_RET, 0, 0, 0, 0});
	load_it(1);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(fire(&d, 0, i), DIF_FAULT_NONE);
		assert_int_equal(global(0), loads[i].result);
	}
	assert_int_equal(fire(&d, 0, 7), DIF_FAULT_NONE);
	assert_int_equal(fire(&d, 0, 8), DIF_FAULT_BADADDR);
	assert_int_equal(status().fault_addr, KERNEL + 8192 - 7);
	assert_int_equal(status().fault_insn, 2);
	assert_int_equal(status().fault_epid, 9);
	assert_int_equal(fire(&d, 0, 9), DIF_FAULT_BADADDR);
	assert_int_equal(status().fault_addr, 0);
	assert_int_equal(fire(&d, 0, 10), DIF_FAULT_BADADDR);
	assert_int_equal(fire(&d, 0, 11), DIF_FAULT_NONE);
	assert_int_equal(global(0), 'e');
	assert_int_equal(fire(&d, 0, 12), DIF_FAULT_BADADDR);
	assert_int_equal(fire(&d, 0, 13), DIF_FAULT_NONE);
	assert_int_equal(global(0), 0xfffffffe);
	assert_int_equal(fire(&d, 0, 14), DIF_FAULT_BADADDR);
	assert_int_equal(fire(&d, 0, 15), DIF_FAULT_NOSCRATCH);
	assert_int_equal(status().faulted, 6);
}

static void
upcalls_get_registers_that_have_values_and_are_the_kernels(void **state)
{
	struct dif_refusal why;

	m.h.flags = DIF_KERNEL;
	CLAUSE(&m, {DIF_OR | DIF_IMM, 3, 0, 0, 77}, {DIF_OR | DIF_IMM, 4, 0, 0, 1},
	       {DIF_UPCALL, 0, 3, 2, -5}, {DIF_RET, 0, 0, 0, 0});
	load_it(1);
	unsigned before = dif_host.upcalls;
	assert_int_equal(fire(&d, 0, 0), DIF_FAULT_NONE);
	assert_int_equal(dif_host.upcalls, before + 1);
	assert_int_equal(dif_host.upcall, -5);
	assert_int_equal(dif_host.upcall_arg, 77);
	dif_unload(&d);

	m.h.flags = 0;
	assert_string_equal(load_made(&m, &d, 1, &why), "only for the kernel's own");
	assert_int_equal(why.insn, 2);
	m.h.flags = DIF_KERNEL;
	m.code[2].b = 3;
	assert_string_equal(load_made(&m, &d, 1, &why), "register may have no value");
	m.code[2].b = 9;
	assert_string_equal(load_made(&m, &d, 1, &why), "expected at most 8 registers");
	m.code[2].b = 0;
	load_it(1);
}

static void
texts_of_arguments_are_copied_and_events_are_logged(void **state)
{
	dif_host.kernel = (struct dif_host_area){help_args[1], kernel_bytes, 64};
	memcpy(kernel_bytes, "some text", 10);
	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	uint32_t text = put_string(&m, "some text");
	CLAUSE(&m, {DIF_ARGSTR, 2, 0, 0, 1}, {DIF_STRING, 3, 0, 0, (int32_t)text},
	       {DIF_SCMP, 1, 2, 3, 0}, STORE_1);
	/* in scratch: it can be written */
	CLAUSE(&m, {DIF_ARGSTR, 2, 0, 0, 1}, {DIF_ST1, 0, 2, 0, 4}, {DIF_LD8, 1, 2, 0, 0}, STORE_1);
	CLAUSE(&m, {DIF_ARGSTR, 2, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_ARGSTR, 2, 0, 0, 9}, {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_LOG, 0, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0});
	load_it(1);
	assert_int_equal(fire(&d, 0, 0), DIF_FAULT_NONE);
	assert_int_equal(global(0), 0);
	for (unsigned i = 0; i < 100; i++) /* the scratch is empty each time */
		assert_int_equal(fire(&d, 0, 1), DIF_FAULT_NONE);
	assert_memory_equal(&(uint64_t){global(0)}, "some\0tex", 8);
	assert_string_equal((char *)kernel_bytes, "some text");
	assert_int_equal(fire(&d, 0, 2), DIF_FAULT_BADADDR);
	assert_int_equal(status().fault_addr, help_args[0]);
	assert_int_equal(fire(&d, 0, 3), DIF_FAULT_BADADDR);
	unsigned before = dif_host.logged;
	assert_int_equal(fire(&d, 0, 4), DIF_FAULT_NONE);
	assert_int_equal(dif_host.logged, before + 1);
}

static void
a_division_by_zero_is_a_fault_with_its_place(void **state)
{
	uint64_t args[DIF_ERROR_ARGS];

	for (unsigned i = 0; i < 4; i++)
		CLAUSE(&m, {DIF_OR, 1, 0, 0, 0}, {(uint8_t)(DIF_SDIV + i), 1, 1, 1, 0},
		       {DIF_RET, 0, 0, 0, 0});
	m.h.actions.count = m.h.code.count;
	for (unsigned i = 0; i < m.h.code.count; i++)
		m.actions[i] = (uint16_t)(50 + i);
	load_it(1);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(fire(&d, 0, i), DIF_FAULT_DIVZERO);
		dif_error_args(&d, 0, i, args);
		assert_int_equal(args[1], i + 1);
		assert_int_equal(args[2], 50 + 3 * i + 1);
		assert_int_equal(args[3], 1);
		assert_int_equal(args[4], DIF_FAULT_DIVZERO);
		assert_int_equal(args[5], 0);
	}
	assert_int_equal(status().faulted, 4);
}

/* A predicate is a branch to DIF_RET with 1. */
static void
each_firing_is_counted_once(void **state)
{
	put_layout(&m, 1000);
	CLAUSE(&m, {DIF_ARG, 1, 0, 0, 2}, {DIF_OR | DIF_IMM, 2, 0, 0, 102}, {DIF_JEQ, 0, 1, 2, 1},
	       {DIF_RET, 0, 0, 0, 1}, {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_ARG, 1, 0, 0, 9}, {DIF_JNE, 0, 1, 0, 1}, {DIF_RET, 0, 0, 0, 1},
	       {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_RET, 0, 0, 0, 1});
	CLAUSE(&m, {DIF_LD1, 1, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_REC, 0, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0});
	load_it(2);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		for (unsigned n = 0; n < 10; n++)
			for (unsigned i = 0; i < 6; i++)
				fire(&d, cpu, i);
	assert_int_equal(status().fired, 120);
	assert_int_equal(status().completed, 40 + 8); /* four records fit on each CPU */
	assert_int_equal(status().predicate_false, 40);
	assert_int_equal(status().faulted, 20);
	assert_int_equal(status().dropped, 12);
	assert_int_equal(status().buf_drops, 12);
}

static void
what_is_not_right_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *error;
		struct dif_insn code[4];
	} bad[] = {
	    {"no such operation", {{200, 0, 0, 0, 0}}},
	    {"no such operation", {{DIF_RET | DIF_IMM, 0, 0, 0, 0}}},
	    {"register may have no value", {{DIF_ADD, 1, 2, 0, 0}}},
	    {"register may have no value", {{DIF_HIGH, 1, 0, 0, 1}}},
	    {"expected a register, 1 to 15", {{DIF_ADD, 0, 0, 0, 0}}},
	    {"expected a register, 1 to 15", {{DIF_ADD, 16, 0, 0, 0}}},
	    {"expected a register, 0 to 15", {{DIF_ADD, 1, 16, 0, 0}}},
	    {"a field without a meaning is not 0", {{DIF_RET, 1, 0, 0, 0}}},
	    {"a field without a meaning is not 0", {{DIF_ADD, 1, 0, 0, 5}}},
	    {"goes back", {{DIF_JA, 0, 0, 0, -1}}},
	    {"goes beyond the program's end", {{DIF_JA, 0, 0, 0, 3}}},
	    {"goes beyond the program's end", {{DIF_JA, 0, 0, 0, INT32_MAX}}},
	    {"division by zero", {{DIF_UREM | DIF_IMM, 1, 0, 0, 0}}},
	    {"expected 0 or 1", {{DIF_RET, 0, 0, 0, 2}}},
	    {"expected 1, 2, 4, -1, -2 or -4 bytes", {{DIF_EXT, 1, 0, 0, 8}}},
	    {"expected 1, 2, 4, -1, -2 or -4 bytes", {{DIF_EXT, 1, 0, 0, -4 + -4}}},
	    {"not within the strings", {{DIF_STRING, 1, 0, 0, 1}}},
	    {"expected an argument, 0 to 9", {{DIF_ARG, 1, 0, 0, 10}}},
	    {"expected an argument, 0 to 9", {{DIF_ARGSTR, 1, 0, 0, -1}}},
	    {"no such variable", {{DIF_BUILTIN, 1, 0, 0, DIF_B_COUNT}}},
	    {"no such variable", {{DIF_LDV, 1, 0, 0, 1}}},
	    {"no such subroutine", {{DIF_CALL, 1, 0, 0, DIF_SUB_COUNT}}},
	    {"register may have no value", {{DIF_CALL, 1, 0, 0, DIF_SUB_COPYIN}}},
	    {"expected a register, 0 to 15",
	     {{DIF_OR, 15, 0, 0, 0}, {DIF_CALL, 1, 15, 0, DIF_SUB_COPYIN}}},
	    {"a field without a meaning is not 0", {{DIF_CALL, 1, 87, 0, DIF_SUB_RAND}}},
	    {"destructive, but not allowed", {{DIF_STOP, 0, 0, 0, 0}}},
	    {"destructive, but not allowed",
	     {{DIF_OR, 1, 0, 0, 0},
	      {DIF_OR, 2, 0, 0, 0},
	      {DIF_OR, 3, 0, 0, 0},
	      {DIF_CALL, 1, 1, 0, DIF_SUB_COPYOUT}}},
	    {"no such aggregation", {{DIF_AGG, 0, 0, 0, 2}}},
	    {"keys are not those of the declaration", {{DIF_AGG, 0, 0, 0, 1}}},
	    {"keys are not those of the declaration",
	     {{DIF_KEY_STR, 0, 0, 0, 0}, {DIF_AGG, 0, 0, 0, 1}}},
	    {"keys are not those of the declaration",
	     {{DIF_KEY, 0, 0, 0, 0}, {DIF_KEY, 0, 0, 0, 0}, {DIF_AGG, 0, 0, 0, 1}}},
	    {"keys differ between two ways to here",
	     {{DIF_JEQ, 0, 0, 0, 1}, {DIF_KEY, 0, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0}}},
	    {"expected 1 to 128 frames", {{DIF_KEY_STACK, 0, 0, 0, 129}}},
	    {"no such layout", {{DIF_REC, 0, 0, 0, 1}}},
	    {"no record is open", {{DIF_REC1, 0, 0, 0, 0}}},
	    {"not within the record", {{DIF_REC, 0, 0, 0, 0}, {DIF_REC8, 0, 0, 0, 9}}},
	    {"not within the record", {{DIF_REC, 0, 0, 0, 0}, {DIF_REC8, 0, 0, 0, -8}}},
	    {"not within the record",
	     {{DIF_REC, 0, 0, 0, 0}, {DIF_REC_STR, 0, 0, 0, DIF_PLACE(8, 9)}}},
	    {"not within the record",
	     {{DIF_REC, 0, 0, 0, 0}, {DIF_REC_MEM, 0, 0, 0, DIF_PLACE(0, 0)}}},
	    {"expected a place for 1 to 128 frames, in words",
	     {{DIF_REC, 0, 0, 0, 0}, {DIF_REC_STACK, 0, 0, 0, DIF_PLACE(4, 8)}}},
	    {"a record may be open", {{DIF_REC, 0, 0, 0, 0}, {DIF_RET, 0, 0, 0, 1}}},
	    {"a record may be open", {{DIF_REC, 0, 0, 0, 0}, {DIF_SPECULATE, 0, 0, 0, 0}}},
	    {"no record is open",
	     {{DIF_JEQ, 0, 0, 0, 1}, {DIF_REC, 0, 0, 0, 0}, {DIF_REC1, 0, 0, 0, 0}}},
	    {"register may have no value",
	     {{DIF_JEQ, 0, 0, 0, 1}, {DIF_OR, 1, 0, 0, 0}, {DIF_ADD, 2, 1, 0, 0}}},
	};
	struct dif_refusal why;
	const char *error;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make(&m);
		put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
		put_agg(&m, DIF_COUNT, 0);
		put_agg(&m, DIF_COUNT, DIF_K_INT);
		put_layout(&m, 16);
		put_clause(&m, bad[i].code, 4);
		error = load_made(&m, &d, 1, &why);
		if (error == NULL || strcmp(error, bad[i].error) != 0)
			fail_msg("program %u: %s, expected %s", i, error, bad[i].error);
	}
	/* The end of a program is DIF_RET, and its length is limited. */
	make(&m);
	CLAUSE(&m, {DIF_OR, 1, 0, 0, 0});
	assert_string_equal(load_made(&m, &d, 1, &why), "goes beyond the program's end");
	make(&m);
	CLAUSE(&m, {DIF_RET, 0, 0, 0, 0});
	m.clauses[0].length = 0;
	assert_string_equal(load_made(&m, &d, 1, &why), "expected 1 to 16384 instructions");
	m.clauses[0].length = m.h.code.count = DIF_MAX_CODE + 1;
	assert_string_equal(load_made(&m, &d, 1, &why), "expected 1 to 16384 instructions");
	/* Clauses that share a program are verified one by one, so all together have a limit. */
	make(&m);
	m.h.code.count = DIF_MAX_CODE; /* each a RET */
	for (m.h.clauses.count = 0; m.h.clauses.count <= DIF_MAX_ALL / DIF_MAX_CODE;)
		m.clauses[m.h.clauses.count++].length = DIF_MAX_CODE;
	assert_string_equal(load_made(&m, &d, 1, &why),
			    "expected at most 1,048,576 instructions in all clauses");
	/* 4 MiB are less than this many string searches may touch. */
	make(&m);
	CLAUSE(&m, {DIF_OR, 1, 0, 0, 0}, {DIF_OR, 2, 0, 0, 0});
	m.h.code.count = m.clauses[0].length = 1000;
	for (unsigned i = 2; i < 999; i++)
		m.code[i] = (struct dif_insn){DIF_CALL, 3, 1, 0, DIF_SUB_STRSTR};
	m.code[999] = (struct dif_insn){DIF_RET, 0, 0, 0, 0};
	assert_string_equal(load_made(&m, &d, 1, &why),
			    "touches too much memory; strsize, scratch and specsize count");
	/* So are 99 copies, if the variables that they may write have 64 KiB. */
	m.code[2] = (struct dif_insn){DIF_OR, 3, 0, 0, 0};
	for (unsigned i = 3; i < 999; i++)
		m.code[i] =
		    i < 102 ? (struct dif_insn){DIF_CALL, 3, 1, 0, DIF_SUB_BCOPY} : m.code[2];
	assert_null(load_made(&m, &d, 1, &why));
	dif_unload(&d);
	for (enum dif_scope scope = DIF_GLOBAL; scope <= DIF_THIS; scope += DIF_THIS - DIF_GLOBAL) {
		m.h.vars.count = 0;
		for (unsigned i = 0; i < 16; i++)
			put_var(&m, scope, DIF_BYTES, 4096, 0);
		assert_string_equal(load_made(&m, &d, 1, &why),
				    "touches too much memory; strsize, scratch and specsize count");
	}
}

static void
a_damaged_image_is_refused(void **state)
{
	static const char *const errors[] = {"not an image of this version",
					     "the image has not the size that it says",
					     "no such flag",
					     "a section is not within the image, or not aligned",
					     "clause: its program is not within the code",
					     "the strings do not end with a NUL",
					     "variable: no such scope, kind or size",
					     "aggregation: no such function or parameters",
					     "option strsize: expected 2 to 4096",
					     "option nspec: expected at most 64"};
	struct dif_refusal why;
	uint32_t size;

	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		make(&m);
		put_var(&m, i == 6 ? 7 : DIF_GLOBAL, DIF_INT, 8, 0);
		put_agg(&m, i == 7 ? DIF_LQUANTIZE : DIF_COUNT, 0);
		put_string(&m, "abc");
		CLAUSE(&m, {DIF_RET, 0, 0, 0, 0});
		m.h.flags = i == 2 ? 4 : 0;
		m.clauses[0].length = i == 4 ? 2 : 1;
		m.h.strings.count -= i == 5;
		m.h.options.strsize = i == 8 ? 1 : 0;
		m.h.options.nspec = i == 9 ? 65 : 0;
		uint8_t *image = make_image(&m, &size);
		struct dif_header *h = (struct dif_header *)image;
		h->magic += i == 0;
		h->size += i == 1;
		h->code.offset += i == 3 ? 4 : 0;
		assert_int_equal(dif_load(&d, image, size, 1, &why), -22);
		assert_string_equal(why.error, errors[i]);
		dif_port_free(image);
	}
	assert_int_equal(dif_load(&d, "", 0, 1, &why), -22);
	/* No allocation that fails loses another one (the sanitizers look). */
	make(&m);
	CLAUSE(&m, {DIF_RET, 0, 0, 0, 0});
	for (dif_host.alloc_left = 0; dif_host.alloc_left < 5; dif_host.alloc_left++) {
		int left = dif_host.alloc_left;
		assert_string_equal(load_made(&m, &d, 1, &why), "no memory");
		dif_host.alloc_left = left;
	}
}

/* `/pid == 42/`, as a compiler writes it: its registers have their values afterwards. */
static void
a_predicate_ends_the_program_or_lets_it_go_on(void **state)
{
	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_PID}, SET(2, 42), {DIF_JNE, 0, 1, 2, 5},
	       {DIF_LDV, 3, 0, 0, 0}, {DIF_ADD, 1, 1, 2, 0}, {DIF_ADD, 1, 1, 3, 0},
	       {DIF_STV, 0, 1, 0, 0}, RET, {DIF_RET, 0, 0, 0, 1});
	load_it(1);
	for (dif_host.pid = 40; dif_host.pid < 45; dif_host.pid++)
		ok(0, 0);
	assert_int_equal(global(0), 84);
	assert_int_equal(status().predicate_false, 4);
	assert_int_equal(status().completed, 1);
}

/* The clauses' numbers: of the same predicate, or of none that can be cached. */
static void
a_predicate_can_be_cached_if_it_asks_for_the_thread_alone(void **state)
{
#define THREAD_IS(n) {DIF_BUILTIN, 1, 0, 0, DIF_B_PID}, SET(2, n)
#define FALSE                       \
	{                           \
		DIF_RET, 0, 0, 0, 1 \
	}
	static const uint32_t numbers[] = {1,  1,  3, 4, 0,  0, 7,  0,  0,
					   10, 10, 0, 0, 14, 0, 16, 17, 17};

	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	CLAUSE(&m, THREAD_IS(42), {DIF_JNE, 0, 1, 2, 2}, {DIF_STV, 0, 1, 0, 0}, RET, FALSE);
	CLAUSE(&m, THREAD_IS(42), {DIF_JNE, 0, 1, 2, 1}, RET, FALSE);
	CLAUSE(&m, THREAD_IS(43), {DIF_JNE, 0, 1, 2, 1}, RET, FALSE);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_EXECNAME}, TEXT(2, "x"), {DIF_SCMP, 1, 1, 2, 0},
	       {DIF_JNE, 0, 1, 0, 1}, RET, FALSE);
	/* A text in memory may change, */
	CLAUSE(&m, SET(1, 0x1000), TEXT(2, "x"), {DIF_SCMP, 1, 1, 2, 0}, {DIF_JNE, 0, 1, 0, 1}, RET,
	       FALSE);
	/* even if there is such an address on one way only. */
	CLAUSE(&m, THREAD_IS(0x1000), {DIF_JEQ, 0, 1, 2, 1}, TEXT(2, "y"), TEXT(1, "x"),
	       {DIF_SCMP, 1, 1, 2, 0}, {DIF_JNE, 0, 1, 0, 1}, RET, FALSE);
	CLAUSE(&m, THREAD_IS(4), {DIF_JEQ, 0, 1, 2, 2}, TEXT(2, "y"), {DIF_JA, 0, 0, 0, 1},
	       TEXT(2, "z"), TEXT(1, "x"), {DIF_SCMP, 1, 1, 2, 0}, {DIF_JNE, 0, 1, 0, 1}, RET,
	       FALSE);
	/* More is asked for later; on the way between two branches; before. */
	CLAUSE(&m, THREAD_IS(4), {DIF_JNE, 0, 1, 2, 3}, {DIF_ARG, 1, 0, 0, 0},
	       {DIF_JEQ, 0, 1, 0, 1}, RET, FALSE);
	CLAUSE(&m, THREAD_IS(4), {DIF_JNE, 0, 1, 2, 4}, {DIF_LDV, 3, 0, 0, 0},
	       {DIF_JNE, 0, 3, 0, 1}, FALSE, RET, FALSE);
	/* What is never reached may be anything. */
	CLAUSE(&m, THREAD_IS(4), {DIF_JA, 0, 0, 0, 1}, {DIF_JA, 0, 0, 0, INT32_MIN},
	       {DIF_JNE, 0, 1, 2, 1}, RET, FALSE);
	CLAUSE(&m, THREAD_IS(4), {DIF_JA, 0, 0, 0, 1}, {DIF_JA, 0, 0, 0, INT32_MIN},
	       {DIF_JNE, 0, 1, 2, 2}, SET(1, 1), RET, FALSE);
	CLAUSE(&m, RET, {DIF_JA, 0, 0, 0, INT32_MIN}, {DIF_JA, 0, 0, 0, INT32_MAX}, FALSE);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_TIMESTAMP}, {DIF_STV, 0, 1, 0, 0}, THREAD_IS(4),
	       {DIF_JNE, 0, 1, 2, 1}, RET, FALSE);
	/* It is the opposite of the 16th. */
	CLAUSE(&m, THREAD_IS(7), {DIF_JEQ, 0, 1, 2, 1}, FALSE, RET);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_UID}, {DIF_JNE, 0, 1, 0, 1}, RET, FALSE);
	CLAUSE(&m, THREAD_IS(7), {DIF_JEQ, 0, 1, 2, 1}, RET, FALSE);
	/* pid == 5 || pid == 6 */
	CLAUSE(&m, THREAD_IS(5), {DIF_JEQ, 0, 1, 2, 2}, SET(2, 6), {DIF_JNE, 0, 1, 2, 1}, RET,
	       FALSE);
	CLAUSE(&m, THREAD_IS(5), {DIF_JEQ, 0, 1, 2, 2}, SET(2, 6), {DIF_JNE, 0, 1, 2, 2},
	       {DIF_STV, 0, 1, 0, 0}, RET, FALSE);
	load_it(1);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_int_equal(d.predicates[i].number, numbers[i]);
}

/* The port of these tests knows none of them. */
static void
variables_of_the_firing_are_asked_of_no_port(void **state)
{
	static const char text[] = "a long text";
	static const struct ktr_firing plain = {.args = help_args, .nargs = 3},
				       long_text = {.args = help_args,
						    .nargs = 2,
						    .has_data = 1,
						    .data = text,
						    .len = sizeof(text),
						    .where.pc = KERNEL + 8};
	static const struct {
		int32_t what;
		uint64_t plain, long_text;
	} vectors[] = {
	    {DIF_B_EPID, 1, 1},
	    {DIF_B_ID, 77, 77},
	    {DIF_B_PC, 0, KERNEL + 8},
	    {DIF_B_NARGS, 3, 2},
	    {DIF_B_DATA, 0, (uintptr_t)text},
	    {DIF_B_DATALEN, 0, sizeof(text)},
	};

	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, vectors[i].what}, STORE_1);
	load_it(1);
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		assert_int_equal(fire_as(&d, 0, i, &plain), DIF_FAULT_NONE);
		assert_int_equal(global(0), vectors[i].plain);
		assert_int_equal(fire_as(&d, 0, i, &long_text), DIF_FAULT_NONE);
		assert_int_equal(global(0), vectors[i].long_text);
	}
}

static void
a_program_that_begins_within_another_one_is_refused(void **state)
{
	struct dif_refusal why;

	for (uint32_t at = 0; at < 3; at++) {
		make(&m);
		CLAUSE(&m, SET(1, 5), RET);
		CLAUSE(&m, RET);
		m.clauses[1].code = at;
		m.clauses[1].length = 3 - at;
		assert_string_equal(
		    load_made(&m, &d, 1, &why) != NULL ? why.error : "loaded",
		    at < 2 ? "clause: its program begins within that of the clause before"
			   : "loaded");
		dif_unload(&d);
	}
}

/* Also the numbers of the engine's own operations, of aggregations that there are not. */
static void
what_is_never_reached_may_be_any_bytes(void **state)
{
	for (unsigned op = 0; op < 256; op++) {
		make(&m);
		put_agg(&m, DIF_COUNT, DIF_K_INT);
		CLAUSE(&m, {DIF_RET, 0, 0, 0, 0}, {DIF_OR | DIF_IMM, 1, 0, 0, INT32_MIN},
		       {DIF_KEY, 0, 1, 0, 0}, {(uint8_t)op, 1, 1, 1, INT32_MIN});
		load_it(1);
		ok(0, 0);
		dif_unload(&d);
	}
}

/* Memory that is not read directly costs a walk through page tables each time. */
static void
strings_are_compared_by_pieces(void **state)
{
	static char text[2 * 4096];

	memset(text, 'a', sizeof(text));
	m.h.options.strsize = 2000;
	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	CLAUSE(&m, SET(2, 0x10000), SET(3, 0x11000 - 77), {DIF_SCMP, 1, 2, 3, 0}, STORE_1);
	dif_host.kernel = (struct dif_host_area){0x10000, (uint8_t *)text, sizeof(text)};
	load_it(1);
	ok(0, 0);
	assert_int_equal(global(0), 0);
	assert_in_range(dif_host.loads, 1, 80);
	text[4096 - 77 + 1999] = 'b';
	ok(0, 0);
	assert_int_equal(global(0), -1ul);
	text[1998] = '\0';
	text[4096 - 77 + 1998] = '\0';
	ok(0, 0);
	assert_int_equal(global(0), 0);
	text[1990] = '\0';
	ok(0, 0);
	assert_int_equal(global(0), -1ul);
	/* The end of memory is a fault only for who comes there. */
	dif_host.kernel.size = 4096;
	memset(text, 'b', 10);
	ok(0, 0);
	assert_int_equal(global(0), 1);
	memset(text, 'a', 10);
	assert_int_equal(fire(&d, 0, 0), DIF_FAULT_BADADDR);
	assert_int_equal(d.cpu[0].fault.addr, 0x11000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(arithmetic),
	    TEST(extensions_and_branches),
	    TEST(strings_are_compared_by_pieces),
	    TEST(loads_read_what_they_may_and_else_fault),
	    TEST(upcalls_get_registers_that_have_values_and_are_the_kernels),
	    TEST(texts_of_arguments_are_copied_and_events_are_logged),
	    TEST(a_division_by_zero_is_a_fault_with_its_place),
	    TEST(each_firing_is_counted_once),
	    TEST(what_is_not_right_is_refused_with_a_reason),
	    TEST(a_damaged_image_is_refused),
	    TEST(a_predicate_ends_the_program_or_lets_it_go_on),
	    TEST(a_predicate_can_be_cached_if_it_asks_for_the_thread_alone),
	    TEST(variables_of_the_firing_are_asked_of_no_port),
	    TEST(a_program_that_begins_within_another_one_is_refused),
	    TEST(what_is_never_reached_may_be_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
