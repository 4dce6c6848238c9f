/* record.h - what the parts of the record benchmark share. */
#pragma once

#include <stdint.h>

/** Entries of every ring here. */
#define BENCH_ENTRIES 4096u

/** Records n events of six parameters, or does n rounds of something else. Any pinned thread. */
typedef void bench_loop(uint64_t n);

/** One ring that all CPUs share, as FreeBSD's KTR is built. */
bench_loop bench_shared;
void bench_shared_init(void);

/** Name of this function in the shared object with LTTng's tracepoint. */
#define BENCH_LTTNG "bench_lttng"
bench_loop bench_lttng;
