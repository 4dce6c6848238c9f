/*
 * dif_gen.c - writes an image of programs to standard output, for tests of tracing that begins with
 * the boot: a record at each start of a program, and a count of system calls.
 */
#include <stdio.h>

#include "tests/unit/dif_help.h"

int
main(void)
{
	static struct maker m;
	uint32_t size;
	uint8_t *image;

	make(&m);
	put_agg(&m, DIF_COUNT, 0);
	put_layout(&m, 32);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_EXECNAME}, {DIF_REC, 0, 0, 0, 0},
	       {DIF_REC_STR, 0, 1, 0, DIF_PLACE(0, 32)}, {DIF_RET, 0, 0, 0, 0});
	m.clauses[0].probes = put_string(&m, "proc:::exec-success");
	CLAUSE(&m, {DIF_AGG, 0, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0});
	m.clauses[1].probes = put_string(&m, "syscall:::entry");
	image = make_image(&m, &size);
	if (image == NULL || fwrite(image, 1, size, stdout) != size)
		return 1;
	dif_port_free(image);
	return fflush(stdout) != 0;
}
