/*
 * ktr_port.c - the functions that ktr needs of this kernel (ktr/port.h).
 *
 * Locking: the control lock is a sleep mutex. Before threads exist, and while the debugger has
 * stopped the machine, only one CPU runs; then the lock is not taken.
 */
#include <ktr_port.h>

#include "arch/patch.h"
#include "arch/pcpu.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/probe/kprobe.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/stop.h"
#include "ktr/port.h"

extern const char __rodata_start[], __rodata_end[];

bool ktr_port_final;
uint8_t ktr_port_refused[KTR_PORT_MAXCPU];

static struct mutex control_lock = MUTEX_INIT("ktr control");

static bool
ktr_port_alone(void)
{
	return curthread() == NULL || stop_inside();
}

void
ktr_port_lock(void)
{
	if (!ktr_port_alone())
		mutex_lock(&control_lock);
}

void
ktr_port_unlock(void)
{
	if (!ktr_port_alone())
		mutex_unlock(&control_lock);
}

void
ktr_port_patch(void)
{
	arch_patch();
	kprobe_apply();
}

bool
ktr_port_sync(void)
{
	/* The other CPUs will never run again. */
	if (ktr_port_final || stop_panicked())
		return true;
	if (ktr_port_alone())
		return curthread() == NULL;
	smp_call_all(NULL, NULL);
	return true;
}

void
ktr_port_exchange(void (*fn)(void *), void *arg)
{
	if (ktr_port_alone())
		fn(arg);
	else
		smp_stop_run(fn, arg);
}

void *
ktr_port_alloc(size_t size)
{
	if (!ktr_port_alone() && !mutex_held(&control_lock))
		panic("ktr: memory without the control lock");
	return kmap_alloc(page_round_up(size));
}

void
ktr_port_free(void *p, size_t size)
{
	kmap_free(p);
}

bool
ktr_port_string_ok(const char *p)
{
	return p >= __rodata_start && p < __rodata_end;
}

bool
ktr_port_suppressed(void)
{
	return stop_inside() || ktr_port_refused[arch_cpu()] != 0;
}
