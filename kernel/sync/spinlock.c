/*
 * spinlock.c - ticket locks: served in the order of arrival, so nobody starves.
 *
 * owner is written by the holder only; another CPU may read it a moment late, never its own number
 * while it does not hold the lock.
 */
#include "kernel/sync/spinlock.h"

#include "arch/irq.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/pcpu.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"

void
irq_push(void)
{
	bool was_on = arch_irq_enabled();
	struct pcpu *pc;

	arch_irq_disable();
	pc = this_pcpu();
	if (pc->irq_depth++ == 0)
		pc->irq_was_on = was_on;
}

void
irq_pop(void)
{
	struct pcpu *pc = this_pcpu();

	if (arch_irq_enabled() || pc->irq_depth < 1)
		panic("irq_pop: depth %d, interrupts %s", pc->irq_depth,
		      arch_irq_enabled() ? "on" : "off");
	if (--pc->irq_depth == 0 && pc->irq_was_on)
		arch_irq_enable();
}

void
spin_init(struct spinlock *l, const char *name)
{
	*l = (struct spinlock)SPINLOCK_INIT(name);
}

bool
spin_held(const struct spinlock *l)
{
	bool held;

	irq_push();
	held = __atomic_load_n(&l->owner, __ATOMIC_RELAXED) == (int32_t)arch_cpu();
	irq_pop();
	return held;
}

static void
taken(struct spinlock *l)
{
	__atomic_store_n(&l->owner, (int32_t)arch_cpu(), __ATOMIC_RELAXED);
	this_pcpu()->locks++;
	CTR2(KTR_LOCK, "spin acquire: lock %s addr %p", l->name, l);
}

static __attribute__((noinline)) void
spin_contended(struct spinlock *l, uint32_t ticket)
{
	struct thread *t = curthread();

	if (t != NULL)
		KTR_STATE1(KTR_LOCK, "thread", t->ident, "spinning", "lockname:\"%s\"", l->name);
	CTR3(KTR_LOCK, "spin contended: lock %s addr %p owner %d", l->name, l, l->owner);
	/* acquire: pairs with the release in spin_unlock() */
	while (__atomic_load_n(&l->serving, __ATOMIC_ACQUIRE) != ticket)
		arch_relax();
	if (t != NULL)
		KTR_STATE0(KTR_LOCK, "thread", t->ident, "running");
}

void
spin_lock(struct spinlock *l)
{
	uint32_t ticket;

	irq_push();
	if (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) == (int32_t)arch_cpu())
		panic("spin lock %s: CPU %u holds it already", l->name, arch_cpu());
	ticket = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&l->serving, __ATOMIC_ACQUIRE) != ticket)
		spin_contended(l, ticket);
	taken(l);
}

bool
spin_trylock(struct spinlock *l)
{
	uint32_t ticket;

	irq_push();
	ticket = __atomic_load_n(&l->serving, __ATOMIC_ACQUIRE);
	if (!__atomic_compare_exchange_n(&l->next, &ticket, ticket + 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED)) {
		irq_pop();
		return false;
	}
	taken(l);
	return true;
}

void
spin_unlock(struct spinlock *l)
{
	if (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) != (int32_t)arch_cpu())
		panic("spin lock %s: unlocked by CPU %u, held by %d", l->name, arch_cpu(), l->owner);
	CTR2(KTR_LOCK, "spin release: lock %s addr %p", l->name, l);
	this_pcpu()->locks--;
	__atomic_store_n(&l->owner, -1, __ATOMIC_RELAXED);
	/* release: pairs with the acquire in spin_lock() */
	__atomic_store_n(&l->serving, l->serving + 1, __ATOMIC_RELEASE);
	irq_pop();
}
