/*
 * persist.h - the log's memory that survives a reset (ktr/persist.h), and the log of the boot
 * before in it.
 */
#pragma once

/*
 * Finds the region of the boot before, and makes this boot's region with CPU 0's ring in it.
 * Reserves the memory of both. After tunable_init(), before page_init(). One CPU.
 */
void trace_persist_init(void);
