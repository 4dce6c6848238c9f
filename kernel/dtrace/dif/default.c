/*
 * default.c - the program engine's port to any kernel: what port.h says that a kernel may define,
 * as weak bodies, and the rest. Locking: none; each CPU has its own room for a name.
 */
#include "kernel/dtrace/dif/session.h"
#include "kernel/dtrace/port.h"
#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/port.h"
#include "ktr/str.h"
#include "ktr/stream.h"

#define WEAK __attribute__((weak))

/* Memory for sessions, if the kernel has no dif_port_alloc(): ktr_port.h may define it. */
#ifndef DIF_PORT_ARENA_BYTES
#define DIF_PORT_ARENA_BYTES 64
#endif

static uint8_t default_blocks[DIF_PORT_ARENA_BYTES] __attribute__((aligned(64)));
static size_t default_blocks_used;
static unsigned default_blocks_count;
static char default_names[KTR_PORT_MAXCPU][DIF_PORT_NAME];

struct dif_port_range dif_port_direct[DIF_PORT_DIRECT] = {
    [2] = {(uintptr_t)default_names, sizeof(default_names)}};
struct dif_port_range dif_port_quick_range;

WEAK void *
dif_port_alloc(size_t size)
{
	uint8_t *p = default_blocks + default_blocks_used;

	size = (size + 63) & ~(size_t)63;
	if (size > sizeof(default_blocks) - default_blocks_used)
		return NULL;
	default_blocks_used += size;
	default_blocks_count++;
	ktr_zero(p, size);
	return p;
}

/* What is freed is used again when no block is left: a session frees all of its own. */
WEAK void
dif_port_free_all(void *const *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		default_blocks_count -= p[i] != NULL;
	if (default_blocks_count == 0)
		default_blocks_used = 0;
}

WEAK bool
dif_port_load(void *dst, uint64_t addr, size_t n)
{
	(void)dst, (void)addr, (void)n;
	return false;
}

WEAK bool
dif_port_user_load(void *dst, uint64_t addr, size_t n)
{
	(void)dst, (void)addr, (void)n;
	return false;
}

WEAK unsigned
dif_port_stack(const struct ktr_firing *f, uint64_t *pcs, unsigned max)
{
	if (max > 0)
		pcs[0] = ktr_firing_where(f).pc;
	return max > 0;
}

WEAK uint32_t
dif_port_pid(void)
{
	return ktr_port_tid();
}

/* The name of the thread, as the log knows it. */
WEAK const char *
dif_port_name(char buf[DIF_PORT_NAME])
{
	_Static_assert(DIF_PORT_NAME >= KTR_THREAD_NAME, "room for a thread's name");
	return ktr_thread_name_get(ktr_port_tid(), buf) != NULL ? buf : "";
}

WEAK void
dif_port_send(const void *bytes, size_t n)
{
	(void)bytes, (void)n;
}

/* ---- the rest ---- */

uint64_t
dif_port_ns(uint64_t stamp)
{
	const struct ktr_info *info = ktr_info_get();
	uint64_t ticks = stamp - info->boot_ticks;

	return info->hz == 0 || info->hz == 1000000000 ? ticks : ktr_ticks_to_ns(ticks, info->hz);
}

static uint64_t
default_mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	return v ^ v >> 31;
}

uint64_t
dif_port_rand(void)
{
	static uint64_t counter;

	return default_mix(__atomic_add_fetch(&counter, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED) ^
			   ktr_port_time());
}

/* As good as the clock: a kernel that traces for strangers has random numbers of its own. */
uint64_t
dif_port_secret(void)
{
	return dif_port_rand();
}

uint64_t
dif_port_thread(void)
{
	return ktr_port_tid();
}

/* Few: a kernel's stacks may be small, and it is on one. */
#define DEFAULT_FRAMES 32u

static __attribute__((noinline)) uint64_t
default_stack(const struct ktr_firing *f, enum dif_builtin what)
{
	uint64_t pcs[DEFAULT_FRAMES] = {0};
	unsigned n = dif_port_stack(f, pcs, DEFAULT_FRAMES);

	return what == DIF_B_STACKDEPTH ? n : pcs[1];
}

uint64_t
dif_port_builtin(const struct dif_at *at, const struct ktr_firing *f, enum dif_builtin what)
{
	const struct session_ecb *ecb = (const struct session_ecb *)at;
	const struct dtrace_probe *p = ecb->probe;

	switch (what) {
	case DIF_B_TIMESTAMP: /* the event's time, so that it is the same in a recorded trace */
		return dif_port_ns(f->owners != 0 && f->ticks != 0 ? f->ticks : ktr_port_time());
	case DIF_B_EXECNAME:
		return (uintptr_t)dif_port_name(default_names[ktr_port_cpu()]);
	case DIF_B_PROBEPROV:
		return (uintptr_t)p->name.provider;
	case DIF_B_PROBEMOD:
		return (uintptr_t)p->name.module;
	case DIF_B_PROBEFUNC:
		return (uintptr_t)p->name.function;
	case DIF_B_PROBENAME:
		return (uintptr_t)p->name.name;
	case DIF_B_ERRNO:
		return p->sysret ? dtrace_errno(f) : 0;
	case DIF_B_CALLER:
	case DIF_B_STACKDEPTH:
		return default_stack(f, what);
	case DIF_B_CPU:
	case DIF_B_PID:
	case DIF_B_TID:
		return dif_port_quick(at, what);
	default: /* dtrace refuses what nobody knows here */
		return 0;
	}
}

void
dif_port_fault(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	dif_session_fault(at, c, f);
}

/* ---- what no kernel has that is not known ---- */

bool
dif_port_user_store(uint64_t addr, const void *src, size_t n)
{
	(void)addr, (void)src, (void)n;
	return false;
}

uint64_t
dif_port_argument(const struct ktr_firing *f, unsigned n)
{
	(void)f, (void)n;
	return 0;
}

void
dif_port_upcall(const struct dif_at *at, const struct ktr_firing *f, int32_t imm,
		const uint64_t *args)
{
	(void)at, (void)f, (void)imm, (void)args;
}

bool
dif_port_uregister(uint64_t n, uint64_t *v)
{
	(void)n, (void)v;
	return false;
}

unsigned
dif_port_ustack(const struct ktr_firing *f, uint64_t *pid, uint64_t *pcs, unsigned max)
{
	(void)f, (void)pcs, (void)max;
	*pid = dif_port_pid();
	return 0;
}

bool
dif_port_mutex_owner(uint64_t addr, uint64_t *thread)
{
	(void)addr, (void)thread;
	return false;
}

bool
dif_port_progenyof(uint64_t pid)
{
	return pid == dif_port_pid();
}

bool
dif_port_act(const struct dif_at *at, enum dif_op op, uint64_t a)
{
	(void)at, (void)op, (void)a;
	return false;
}
