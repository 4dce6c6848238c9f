/*
 * vdso.c - runs in programs: what the kernel would say of the clocks, without a system call. A
 * shared object of one page, which exec maps into each program. Its names and their version are
 * those of Linux's vdso(7); ARCH/md/vdso.map says which there are.
 */
#include "arch/vdso.h"
#include "arch/clock.h"
#include "kernel/abi/syscall.h"
#include "kernel/abi/time.h"
#include "kernel/proc/vdso/data.h"

#define NS_PER_S 1000000000ul

extern const struct vdso_data vdso_data __attribute__((visibility("hidden")));

int VDSO_NAME(clock_gettime)(uint32_t clock, struct timespec *t);
int VDSO_NAME(clock_getres)(uint32_t clock, struct timespec *t);
int VDSO_NAME(gettimeofday)(struct timeval *t, uint64_t *zone);
int64_t VDSO_NAME(time)(int64_t *t);
long VDSO_NAME(getcpu)(uint32_t *cpu, uint32_t *node);

/* clock_ns(). */
static inline uint64_t
monotonic_ns(void)
{
	uint64_t ticks = vdso_ticks(), boot = vdso_data.scale.boot_ticks;

	return clock_scale_ns(&vdso_data.scale, ticks > boot ? ticks - boot : 0);
}

static inline uint64_t
real_ns(void)
{
	return monotonic_ns() + __atomic_load_n(&vdso_data.real_ns, __ATOMIC_RELAXED);
}

int
VDSO_NAME(clock_gettime)(uint32_t clock, struct timespec *t)
{
	uint64_t ns;

	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		ns = real_ns();
		break;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		ns = monotonic_ns();
		break;
	default:
		return (int)vdso_call(NR_clock_gettime, clock, (uintptr_t)t);
	}
	t->tv_sec = (int64_t)(ns / NS_PER_S);
	t->tv_nsec = (int64_t)(ns % NS_PER_S);
	return 0;
}

int
VDSO_NAME(clock_getres)(uint32_t clock, struct timespec *t)
{
	return (int)vdso_call(NR_clock_getres, clock, (uintptr_t)t);
}

int
VDSO_NAME(gettimeofday)(struct timeval *t, uint64_t *zone)
{
	uint64_t ns = real_ns();

	if (t != NULL)
		*t = (struct timeval){(int64_t)(ns / NS_PER_S), (int64_t)(ns % NS_PER_S / 1000)};
	if (zone != NULL)
		*zone = 0; /* two words: minutes west of UTC, and no summer time */
	return 0;
}

int64_t
VDSO_NAME(time)(int64_t *t)
{
	int64_t now = (int64_t)(real_ns() / NS_PER_S);

	if (t != NULL)
		*t = now;
	return now;
}

long
VDSO_NAME(getcpu)(uint32_t *cpu, uint32_t *node)
{
	return vdso_call(NR_getcpu, (uintptr_t)cpu, (uintptr_t)node);
}
