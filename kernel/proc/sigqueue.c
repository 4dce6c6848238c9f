/*
 * sigqueue.c - pending signals: each that was sent, with its reason, in the order of sending.
 * Locking: proc_lock.
 */
#include "kernel/abi/signal.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"

#define BIT(sig) (1ul << ((sig)-1))

struct sigqueue *
sigqueue_alloc(struct proc *p, bool limited)
{
	struct uidinfo *ui = p->ui;
	uint64_t limit = p->limits[RLIMIT_SIGPENDING].rlim_cur;
	bool many = __atomic_fetch_add(&ui->signals, 1, __ATOMIC_RELAXED) >= limit;
	struct sigqueue *q = limited && many ? NULL : uidinfo_alloc(ui, sizeof(*q));

	if (q != NULL)
		q->ui = ui;
	else
		__atomic_fetch_sub(&ui->signals, 1, __ATOMIC_RELAXED);
	return q;
}

void
sigqueue_free(struct sigqueue *q)
{
	q->kept = false;
	if (q->queued)
		return; /* who takes it frees it */
	__atomic_fetch_sub(&q->ui->signals, 1, __ATOMIC_RELAXED);
	uidinfo_free(q->ui, q);
}

void
sigqueue_add(struct sigpending *to, struct sigqueue *q)
{
	q->next = NULL;
	q->queued = true;
	*(to->queue != NULL ? &to->last->next : &to->queue) = q;
	to->last = q;
}

void
sigqueue_moved(struct sigpending *in, const struct sigqueue *from, struct sigqueue *to)
{
	for (struct sigqueue **at = &in->queue; *at != NULL; at = &(*at)->next)
		if (*at == from)
			*at = to;
	if (in->last == from)
		in->last = to;
}

void
sigqueue_take(struct sigpending *from, int sig, struct siginfo *info)
{
	struct sigqueue **at = &from->queue, *before = NULL, *q, *more;

	for (; *at != NULL && (*at)->info.si_signo != sig; at = &before->next)
		before = *at;
	q = *at;
	*info = q != NULL ? q->info : (struct siginfo){.si_signo = sig, .si_code = SI_USER};
	for (more = q != NULL ? q->next : NULL; more != NULL && more->info.si_signo != sig;)
		more = more->next;
	if (more == NULL)
		from->set &= ~BIT(sig);
	if (q == NULL)
		return;
	*at = q->next;
	if (from->last == q)
		from->last = before;
	q->queued = false;
	if (!q->kept)
		sigqueue_free(q);
}

void
sigpending_drop(struct proc *p, struct sigpending *from, uint64_t set)
{
	struct siginfo info;

	while (from->set & set) {
		sigqueue_take(from, __builtin_ctzl(from->set & set) + 1, &info);
		proc_timers_take(p, &info, true);
	}
}

void
proc_signals_drop_thread(struct lwp *l)
{
	sigpending_drop(l->thread->proc, &l->pending, ~0ul);
}

void
proc_signals_drop(struct proc *p, uint64_t set)
{
	sigpending_drop(p, &p->pending, set);
	for_each_lwp(l, p) sigpending_drop(p, &l->pending, set);
}
