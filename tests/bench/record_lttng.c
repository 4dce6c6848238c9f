/*
 * record_lttng.c - the LTTng-UST tracepoint of the record benchmark, with six integers: a shared
 * object, which record.c loads if there is a session.
 */
#include <lttng_tp.h>

#include "tests/bench/record.h"

void
bench_lttng(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		lttng_ust_tracepoint(kestrel_bench, six, i, n, i + 1, n + 1, i, n);
}
