/*
 * kernel.h - the kernel to which ktr/README.md adds the log: the functions that its port calls.
 * Here it is a program whose two CPUs take turns (kernel.c). Locking: none, there is one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_CPUS 2

struct ktr_ring;

struct cpu {
	struct ktr_ring *ktr_ring; /* with record.inc */
	uint32_t tid;
};

struct mutex {
	bool held;
};

extern struct cpu cpus[MAX_CPUS];
extern unsigned cpu_now;
extern const char __rodata_start[], __rodata_end[];

static inline unsigned
cpu_number(void)
{
	return cpu_now;
}

static inline uint32_t
thread_id(void)
{
	return cpus[cpu_now].tid;
}

/** "Interrupts off", which nests. What comes nevertheless is an NMI. */
extern unsigned irq_off;

static inline unsigned
irq_save(void)
{
	return irq_off++;
}

static inline void
irq_restore(unsigned state)
{
	irq_off = state;
}

/** Ticks. */
uint64_t clock_read(void);
/** Ends the program when it is held already, or not. */
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
/** Zeroed, aligned to 64. */
void *memory_alloc(size_t size);
void memory_free(void *p, size_t size);
/** Every CPU has taken an interrupt. */
void cpus_interrupt(void);
void cpus_stop_run(void (*fn)(void *), void *arg);
void console_print(unsigned cpu, const char *file, const char *text);
/** Where the stream goes. */
void line_write(const void *data, size_t len);
/** False: it is no RAM. */
bool memory_read(void *to, uint64_t address, size_t n);
void console_input(uint8_t byte);
