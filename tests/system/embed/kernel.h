/*
 * kernel.h - the kernel that ktr/README.md adds the log to: what its port calls; here a program
 * whose two CPUs take turns (kernel.c). Locking: none, there is one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_CPUS 2

struct cpu {
	uint64_t ktr_head;
	uint32_t tid;
};

struct mutex {
	bool held;
};

extern struct cpu cpus[MAX_CPUS];
extern unsigned cpu_now;
extern const char __rodata_start[], __rodata_end[];

static inline struct cpu *
this_cpu(void)
{
	return &cpus[cpu_now];
}

/** Ticks. */
uint64_t clock_read(void);
/** Ends the program when it is held already, or not. */
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
/** Zeroed, aligned to 64. */
void *memory_alloc(size_t size);
void memory_free(void *p, size_t size);
bool cpus_quiesce(void);
void cpus_stop_run(void (*fn)(void *), void *arg);
void console_print(unsigned cpu, const char *file, const char *text);
/** Where the stream goes. */
void line_write(const void *data, size_t len);
