/*
 * dlang_fuzz.c - the D compiler: any text is compiled, or refused with a tag; nothing is kept.
 *
 * A first byte of 'B' means that the rest is BTF, which is used if it is good. '#': it is
 * preprocessed.
 */
#include <setjmp.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "userland/bin/dtrace/btf.h"
#include "userland/bin/dtrace/compile.h"
#include "userland/bin/dtrace/gen/gen.h"
#include "userland/bin/dtrace/read/read.h"

static jmp_buf failed;

static void
fail(const char *message)
{
	FUZZ_CHECK(strstr(message, "[D_") != NULL, "%s", message);
	longjmp(failed, 1);
}

static void
compile(const struct btf *btf, const char *text)
{
	struct source source = {.text = text, .fields = 4};
	uint32_t size;

	dt_fail = fail;
	compile_init(btf);
	if (setjmp(failed) == 0) {
		if (text[0] == '#')
			source.text = cpp_run("fuzz", text);
		compile_sources(&source, false);
		const struct dif_header *h = compile_image(&size);

		FUZZ_CHECK(h->size == size && h->clauses.count == source.count + 1, "%u", size);
	}
	dt_release();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char program[] = "BEGIN { trace(curthread->proc->pid); print(*curthread); }";
	struct btf btf;

	if (size > 0 && data[0] == 'B') {
		void *copy = malloc(size);

		FUZZ_CHECK(copy != NULL, "no memory");
		memcpy(copy, data + 1, size - 1);
		if (btf_open(&btf, copy, size - 1) == NULL) {
			compile(&btf, program);
			btf_close(&btf);
		}
		free(copy);
	} else {
		char *text = strndup((const char *)data, size);

		FUZZ_CHECK(text != NULL, "no memory");
		compile(NULL, text);
		free(text);
	}
	return 0;
}
