/*
 * spinlock.c - spin locks: a compare-and-swap changes the lock word from -1 to the CPU's number.
 */
#include "kernel/sync/spinlock.h"

#include "arch/irq.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/stop.h"
#include "ktr/intern.h"
#include "ktr/sdt.h"

#define LCB_F_SPIN 1u /* as in Linux */

extern const char __text_start[];

SDT_PROVIDER_DECLARE(lockstat);
SDT_PROVIDER_DECLARE(lock);
SDT_PROVIDER_DEFINE(preemptirq);
SDT_PROBE_DEFINE_TEXT(preemptirq, , , irq_disable, "irq_disable",
		      ": caller_offs=%#x parent_offs=%#x was_on=%d", 3, "uint32_t", "uint32_t",
		      "int");
SDT_PROBE_DEFINE_TEXT(preemptirq, , , irq_enable, "irq_enable", ": caller_offs=%#x parent_offs=%#x",
		      2, "uint32_t", "uint32_t");
SDT_PROBE_DEFINE_TEXT(lock, , , contention_begin, "contention_begin", ": lock_addr=%p flags=%#x", 2,
		      "void *", "unsigned");
SDT_PROBE_DEFINE_TEXT(lock, , , contention_end, "contention_end", ": lock_addr=%p ret=%d", 2,
		      "void *", "int");
SDT_PROBE_DEFINE_TEXT(lockstat, , , spin_acquire, "spin-acquire", ": spinlock %p name %s", 2,
		      "struct spinlock *", "char *");
SDT_PROBE_DEFINE_TEXT(lockstat, , , spin_spin, "spin-spin", ": spinlock %p ns %lu name %s", 3,
		      "struct spinlock *", "uint64_t", "char *");
SDT_PROBE_DEFINE_TEXT(lockstat, , , spin_release, "spin-release", ": spinlock %p name %s", 2,
		      "struct spinlock *", "char *");

/* As in Linux's events. A frame, as C has it, begins with the caller's and the return address. */
#define OFFSET(address) ((uint32_t)((uintptr_t)(address) - (uintptr_t)__text_start))
#define CALLER          OFFSET(__builtin_return_address(0))
#define PARENT          OFFSET(((void ***)__builtin_frame_address(0))[0][1])

void
irq_push(void)
{
	bool was_on = arch_irq_enabled();
	struct pcpu *pc;

	arch_irq_disable();
	pc = this_pcpu();
	if (pc->irq_depth++ == 0) {
		pc->irq_was_on = was_on;
		SDT_PROBE3(preemptirq, , , irq_disable, CALLER, PARENT, was_on);
	}
}

void
irq_pop(void)
{
	struct pcpu *pc = this_pcpu();
	bool on = pc->irq_was_on;

	if (arch_irq_enabled() || pc->irq_depth < 1)
		panic("irq_pop: depth %d, interrupts %s", pc->irq_depth,
		      arch_irq_enabled() ? "on" : "off");
	/* An NMI whose handler locks something changes irq_was_on from here on: it sees depth 0. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (--pc->irq_depth == 0 && on) {
		SDT_PROBE2(preemptirq, , , irq_enable, CALLER, PARENT);
		arch_irq_enable();
	}
}

void
spin_init(struct spinlock *l, const char *name)
{
	*l = (struct spinlock)SPINLOCK_INIT(name);
}

/* acquire: pairs with the release in spin_unlock() */
static bool
spin_take(struct spinlock *l)
{
	int32_t none = -1;
	struct pcpu *pc;

	if (!__atomic_compare_exchange_n(&l->owner, &none, (int32_t)arch_cpu(), false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	pc = this_pcpu();
	if (pc->locks < PCPU_LOCKS)
		pc->held[pc->locks] = l;
	pc->locks++;
	return true;
}

static __attribute__((noinline)) void
spin_contended(struct spinlock *l)
{
	uint32_t tid = ktr_port_tid(); /* 0: no threads yet */
	int32_t owner = __atomic_load_n(&l->owner, __ATOMIC_RELAXED);
	bool timed = SDT_PROBE_ENABLED(lockstat, , , spin_spin);
	uint64_t start = timed ? clock_ns() : 0;

	if (owner == (int32_t)arch_cpu())
		panic("spin lock %s: CPU %u holds it already", l->name, arch_cpu());
	if (stop_must_not_wait())
		panic("spin lock %s: held by CPU %d, which is stopped", l->name, owner);
	if (tid != 0)
		KTR_STATE1(KTR_LOCK, "thread", ktr_thread_ident(tid), "spinning", "lockname:\"%s\"",
			   l->name);
	SDT_CTR3(lock, , , contention_begin, SDT_ARGS2(l, LCB_F_SPIN), KTR_LOCK,
		 "spin contended: lock %s addr %p owner %d", l->name, l, owner);
	do {
		/* Only reads until it is free: a failed swap would take the owner's cache line. */
		while (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) != -1)
			arch_relax();
	} while (!spin_take(l));
	SDT_PROBE2(lock, , , contention_end, l, 0);
	if (timed)
		SDT_PROBE3(lockstat, , , spin_spin, l, clock_ns() - start, l->name);
	if (tid != 0)
		KTR_STATE0(KTR_LOCK, "thread", ktr_thread_ident(tid), "running");
}

void
spin_lock(struct spinlock *l)
{
	irq_push();
	if (!spin_take(l))
		spin_contended(l);
	SDT_CTR3(lockstat, , , spin_acquire, SDT_ARGS2(l, l->name), KTR_LOCK,
		 "spin acquire: lock %s addr %p caller %p", l->name, l,
		 __builtin_return_address(0));
}

bool
spin_trylock(struct spinlock *l)
{
	irq_push();
	if (!spin_take(l)) {
		irq_pop();
		return false;
	}
	SDT_CTR3(lockstat, , , spin_acquire, SDT_ARGS2(l, l->name), KTR_LOCK,
		 "spin acquire: lock %s addr %p caller %p", l->name, l,
		 __builtin_return_address(0));
	return true;
}

/* Removes l from the list of held locks; the last of the list takes its place. */
static void
spin_forget(struct pcpu *pc, const struct spinlock *l)
{
	unsigned n = --pc->locks;

	if (n >= PCPU_LOCKS || pc->held[n] == l)
		return;
	for (unsigned i = 0; i < n; i++)
		if (pc->held[i] == l)
			pc->held[i] = pc->held[n];
}

void
spin_abandon(unsigned keep)
{
	struct pcpu *pc = this_pcpu();

	while (pc->locks > keep) {
		unsigned n = --pc->locks;

		if (n < PCPU_LOCKS)
			__atomic_store_n(&pc->held[n]->owner, -1, __ATOMIC_RELEASE);
	}
}

void
spin_unlock(struct spinlock *l)
{
	if (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) != (int32_t)arch_cpu())
		panic("spin lock %s: unlocked by CPU %u, held by %d", l->name, arch_cpu(),
		      l->owner);
	SDT_CTR2(lockstat, , , spin_release, SDT_ARGS2(l, l->name), KTR_LOCK,
		 "spin release: lock %s addr %p", l->name, l);
	spin_forget(this_pcpu(), l);
	__atomic_store_n(&l->owner, -1,
			 __ATOMIC_RELEASE); /* pairs with the acquire in spin_take() */
	irq_pop();
}
