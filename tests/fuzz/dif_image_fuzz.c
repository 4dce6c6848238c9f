/*
 * dif_image_fuzz.c - an image of working programs, of which any bytes are changed: it is refused
 * with a reason, or its programs run, and touch only what they may.
 */
#include "tests/fuzz/dif_fuzz.h"

static struct maker m;

static void
programs(void)
{
	make(&m);
	m.h.options.bufsize = 512;
	m.h.options.aggsize = 4096;
	m.h.options.dynvarsize = 2048;
	m.h.options.specsize = 256;
	m.h.options.strsize = 32;
	m.h.options.scratch = 256;
	put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	put_var(&m, DIF_SELF, DIF_STR, 0, 0);
	put_var(&m, DIF_GLOBAL, DIF_INT, 8, DIF_KEYS_AND(DIF_K_STR, DIF_K_INT));
	put_var(&m, DIF_THIS, DIF_BYTES, 16, 0);
	put_agg(&m, DIF_COUNT, DIF_KEYS_AND(DIF_K_STR, DIF_K_STACK));
	put_agg(&m, DIF_QUANTIZE, 0);
	memcpy(m.aggs[put_agg(&m, DIF_LQUANTIZE, 0)].p, (int64_t[]){-5, 50, 10}, 24);
	memcpy(m.aggs[put_agg(&m, DIF_LLQUANTIZE, 0)].p, (int64_t[]){2, 1, 6, 4}, 32);
	put_layout(&m, 64);
	put_string(&m, "/some/text/../of a./program");
	CLAUSE(&m, {DIF_ARG, 1, 0, 0, 3}, {DIF_JEQ, 0, 1, 0, 4}, {DIF_STRING, 2, 0, 0, 1},
	       {DIF_KEY_STR, 0, 2, 0, 0}, {DIF_KEY_STACK, 0, 0, 0, 8}, {DIF_AGG, 0, 1, 0, 0},
	       {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_EXECNAME}, {DIF_STV, 0, 1, 0, 1},
	       {DIF_LDV, 2, 0, 0, 1}, {DIF_CALL, 3, 2, 0, DIF_SUB_BASENAME},
	       {DIF_KEY_STR, 0, 3, 0, 0}, {DIF_KEY, 0, 1, 0, 0}, {DIF_STV, 0, 1, 0, 2},
	       {DIF_AGG, 0, 1, 0, 1}, {DIF_AGG, 0, 1, 0, 2}, {DIF_AGG, 0, 1, 0, 3},
	       {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_CALL, 1, 0, 0, DIF_SUB_SPECULATION}, {DIF_SPECULATE, 0, 1, 0, 0},
	       {DIF_REC, 0, 0, 0, 0}, {DIF_REC8, 0, 1, 0, 8}, {DIF_STRING, 2, 0, 0, 1},
	       {DIF_REC_STR, 0, 2, 0, DIF_PLACE(16, 20)},
	       {DIF_REC_STACK, 0, 0, 0, DIF_PLACE(40, 24)}, {DIF_RET, 0, 0, 0, 0});
	CLAUSE(&m, {DIF_OR | DIF_IMM, 1, 0, 0, 1}, {DIF_COMMIT, 0, 1, 0, 0}, {DIF_LDV, 2, 0, 0, 3},
	       {DIF_ST8, 0, 2, 1, 8}, {DIF_LD8, 3, 2, 0, 8}, {DIF_REC, 0, 0, 0, 0},
	       {DIF_REC_MEM, 0, 2, 1, DIF_PLACE(0, 16)}, {DIF_RET, 0, 0, 0, 0});
}

static void
try_one(const uint8_t *data, size_t size)
{
	static uint8_t *unchanged;
	static uint32_t length;
	struct fuzz_input in = {data, size};
	struct dif_refusal why;
	struct dif d;
	uint8_t *image;
	int error;

	fuzz_host();
	if (unchanged == NULL) {
		programs();
		unchanged = make_image(&m, &length);
	}
	image = memcpy(dif_port_alloc(length), unchanged, length);
	while (in.left > 0) {
		uint32_t at = (uint32_t)fuzz_byte(&in) * 8 + fuzz_byte(&in) % 8;

		image[at % length] = fuzz_byte(&in);
	}
	error = dif_load(&d, image, length, FUZZ_CPUS, &why);
	FUZZ_CHECK(size > 0 || error == 0, "%s", why.error);
	FUZZ_CHECK(error == 0 || error == -12 || (error == -22 && why.error != NULL), "%d", error);
	dif_port_free(image);
	if (error == 0) {
		d.state = DIF_ACTIVE;
		fuzz_run(&d);
		dif_unload(&d);
	}
	*(error == 0 ? &fuzz_loaded : &fuzz_refused) += 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_variants(data, size, try_one);
}
