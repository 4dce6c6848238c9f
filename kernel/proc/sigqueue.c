/*
 * sigqueue.c - pending signals: each that was sent, with its reason; those of one number in the
 * order of sending.
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

/* The place of the last `sig` in the list, or where it would be. */
static struct sigqueue **
sigqueue_find_last(struct sigpending *in, int sig)
{
	struct sigqueue **at = &in->queue;

	while (*at != NULL && (*at)->info.si_signo != sig)
		at = &(*at)->other;
	return at;
}

void
sigqueue_add(struct sigpending *to, struct sigqueue *q)
{
	struct sigqueue **at = sigqueue_find_last(to, q->info.si_signo), *last = *at;

	q->next = last != NULL ? last->next : q;
	q->other = last != NULL ? last->other : NULL;
	if (last != NULL)
		last->next = q;
	*at = q;
	q->queued = true;
}

void
sigqueue_moved(struct sigpending *in, const struct sigqueue *from, struct sigqueue *to)
{
	struct sigqueue **at = sigqueue_find_last(in, to->info.si_signo), *before = *at;

	if (!to->queued)
		return;
	while (before->next != from)
		before = before->next;
	before->next = to;
	if (*at == from)
		*at = to;
	if (to->next == from)
		to->next = to;
}

/* Takes the one after `before` out of the ring whose last one is *at. */
static struct sigqueue *
sigqueue_unlink(struct sigqueue **at, struct sigqueue *before)
{
	struct sigqueue *q = before->next;

	if (q == before) {
		*at = q->other;
	} else {
		before->next = q->next;
		if (*at == q) {
			before->other = q->other;
			*at = before;
		}
	}
	q->queued = false;
	return q;
}

bool
sigqueue_take(struct sigpending *from, int sig, struct siginfo *info)
{
	struct sigqueue **at = sigqueue_find_last(from, sig), *last = *at;
	struct sigqueue *q = last != NULL ? last->next : NULL;
	bool kept = q != NULL && q->kept;

	*info = q != NULL ? q->info : (struct siginfo){.si_signo = sig, .si_code = SI_USER};
	if (q == last)
		from->set &= ~BIT(sig);
	if (q == NULL)
		return false;
	sigqueue_unlink(at, last);
	if (!kept)
		sigqueue_free(q);
	return kept;
}

void
sigpending_drop(struct proc *p, struct sigpending *from, uint64_t set)
{
	struct siginfo info;

	while (from->set & set) {
		bool kept = sigqueue_take(from, __builtin_ctzl(from->set & set) + 1, &info);

		proc_timers_take(p, &info, kept, true);
	}
}

/* Those that timers have sent, which are no more. */
static void
sigpending_drop_timers(struct sigpending *from)
{
	struct sigqueue **at = &from->queue, *before, *q;
	bool more;

	while (*at != NULL) {
		int sig = (*at)->info.si_signo;

		before = *at;
		do {
			q = before->next;
			more = q != *at;
			if (q->info.si_code == SI_TIMER)
				sigqueue_free(sigqueue_unlink(at, before));
			else
				before = q;
		} while (more);
		if (*at == NULL || (*at)->info.si_signo != sig)
			from->set &= ~BIT(sig);
		else
			at = &(*at)->other;
	}
}

void
proc_signals_drop_timers(struct proc *p)
{
	sigpending_drop_timers(&p->pending);
	sigpending_drop_timers(&curlwp()->pending);
	proc_signals_update(p);
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
