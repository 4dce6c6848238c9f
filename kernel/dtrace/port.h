/*
 * port.h - what the program engine asks of the kernel, or of a test on the host. Programs call
 * these functions with interrupts off, in any context: no lock, no sleep, no allocation.
 * What a kernel may define that takes the engine as it takes the log is in dif/port.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/dif.h"
#include "kernel/dtrace/dif/port.h"

struct dif_at;
struct dif_cpu;

static inline void
dif_port_free(void *p)
{
	dif_port_free_all(&p, 1);
}

/* Memory that is always there, and may be read directly. Constant while programs run. */
#define DIF_PORT_DIRECT 3
extern struct dif_port_range {
	uint64_t start, size;
} dif_port_direct[DIF_PORT_DIRECT];
/* Most of that memory: 64 KiB from each address of this range may be read directly. Constant. */
#define DIF_PORT_QUICK_SIZE 65536u
extern struct dif_port_range dif_port_quick_range;
static inline bool
dif_port_is_quick(uint64_t addr)
{
	return addr - dif_port_quick_range.start < dif_port_quick_range.size;
}

/* Copies to the current user's memory as far as it is present. */
bool dif_port_user_store(uint64_t addr, const void *src, size_t n);

/* A number that nobody can predict. Thread context. */
uint64_t dif_port_secret(void);
uint64_t dif_port_thread(void); /* tells threads apart: the key of their variables */
/*
 * The value of a built-in variable; of a string, an address that a program may read. The engine
 * knows some variables itself, and does not ask for them: ID, EPID, PC, NARGS, DATA and DATALEN.
 */
uint64_t dif_port_builtin(const struct dif_at *at, const struct ktr_firing *f,
			  enum dif_builtin what);
/* The text of argument n, cut to size bytes with its NUL. False: the argument is no text. */
bool dif_port_text(const struct ktr_firing *f, unsigned n, char *to, size_t size);
/*
 * Argument n, 6 to 9, at the entry of a function that has so many; else 0. Arguments 0 to 5 are in
 * the firing. The firing of ERROR is still at that entry, if it is a program's.
 */
uint64_t dif_port_argument(const struct ktr_firing *f, unsigned n);
/* DIF_LOG. */
void dif_port_log(const struct ktr_firing *f);
/* DIF_UPCALL. */
void dif_port_upcall(const struct dif_at *at, const struct ktr_firing *f, int32_t imm,
		     const uint64_t *args);
/* False: no such register, or no user. */
bool dif_port_uregister(uint64_t n, uint64_t *v);
/* The return addresses of the user's stack. 0: there is no user. *pid is the process. */
unsigned dif_port_ustack(const struct ktr_firing *f, uint64_t *pid, uint64_t *pcs, unsigned max);

/* The thread that owns the mutex at addr, or 0. False: not readable. */
bool dif_port_mutex_owner(uint64_t addr, uint64_t *thread);
bool dif_port_progenyof(uint64_t pid);
uint64_t dif_port_rand(void);
/* DIF_RAISE to DIF_CHILL. False: DIF_FAULT_ILLOP. */
bool dif_port_act(const struct dif_at *at, enum dif_op op, uint64_t a);
/* A program has faulted: fires ERROR. */
void dif_port_fault(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f);

/*
 * In the kernel these are no calls. dif_port_time() is nanoseconds since boot. dif_port_stamp() is
 * a time that dif_port_ns() turns into nanoseconds since boot. dif_port_quick() is the value of a
 * built-in variable, one of those that DIF_PORT_QUICK(X) names by X(enum dif_builtin).
 */
#if defined(DIF_PORT_DEFAULT)
#include "kernel/dtrace/dif/quick.h"
#elif __STDC_HOSTED__
uint64_t dif_port_time(void);
#define dif_port_stamp()   dif_port_time()
#define dif_port_ns(stamp) (stamp)
uint64_t dif_port_quick(const struct dif_at *at, enum dif_builtin what);
#define DIF_PORT_QUICK(X)  X(DIF_B_PID) X(DIF_B_EXECNAME)
#else
#include "kernel/dtrace/quick.h"
#endif
