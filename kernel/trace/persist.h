/*
 * persist.h - the log's memory that survives a reset (ktr/persist.h), and the log of the boot
 * before in it.
 */
#pragma once

/*
 * Finds what the boot before left, and makes this boot's region, with CPU 0's ring in it; both are
 * kept from the page allocator. After tunable_init(), before page_init(). One CPU.
 */
void trace_persist_init(void);
