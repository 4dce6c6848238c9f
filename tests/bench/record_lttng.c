/*
 * record_lttng.c - the record benchmark's LTTng-UST tracepoint with six integers: a shared object,
 * which record.c loads when there is a session to record into.
 */
#include <lttng_tp.h>

#include "tests/bench/record.h"

void
bench_lttng(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		lttng_ust_tracepoint(kestrel_bench, six, i, n, i + 1, n + 1, i, n);
}
