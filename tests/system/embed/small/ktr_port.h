/*
 * ktr_port.h - a port for the smallest log: the program is on one of eight CPUs at a time.
 */
#pragma once

#include <stdint.h>

extern unsigned small_cpu;
extern uint32_t small_tid;
extern uint64_t small_clock;

#define KTR_SMALL
#define KTR_PORT_MAXCPU      8
#define KTR_CPU()            small_cpu
#define KTR_CLOCK()          ++small_clock
#define KTR_THREAD()         small_tid
#define KTR_IRQ_SAVE()       0
#define KTR_IRQ_RESTORE(s)   (void)(s)
#define KTR_PORT_ARENA_BYTES (7 * 4160) /* ktr/README.md: a ring of each CPU but the first */
#include "ktr/port/ktr_port_default.h"
