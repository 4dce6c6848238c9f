/*
 * prctl.c - what a process says of itself: its rights (capabilities), and prctl(). Rights are the
 * process's, as its ids. Locking: proc_lock.
 */
#include "kernel/abi/prctl.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"

static int cap_last_cap = CAP_LAST_CAP;
SYSCTL_INT(kernel_cap_last_cap, "kernel.cap_last_cap", 0, &cap_last_cap, 0, 0,
	   "the highest number of a capability");

/* Takes the head of capget() and capset(). Returns how many words a set has, or -errno. */
static int
take_header(uint64_t from, struct cap_header *h)
{
	const uint32_t best = CAPABILITY_VERSION_3;

	if (copy_in(h, from, sizeof(*h)) != 0)
		return -EFAULT;
	if (h->version == CAPABILITY_VERSION_1)
		return 1;
	if (h->version == CAPABILITY_VERSION_2 || h->version == CAPABILITY_VERSION_3)
		return 2;
	return copy_out(from, &best, sizeof(best)) != 0 ? -EFAULT : -EINVAL;
}

int64_t
sys_capget(const uint64_t a[6])
{
	struct cap_header h;
	struct cap_data d[2];
	struct caps c;
	const struct proc *p;
	int words = take_header(a[0], &h);

	if (words < 0)
		return words == -EINVAL && a[1] == 0 ? 0 : words;
	if (h.pid < 0)
		return -EINVAL;
	spin_lock(&proc_lock);
	p = h.pid == 0 ? curproc() : proc_find_any((uint32_t)h.pid);
	if (p != NULL)
		c = p->caps;
	spin_unlock(&proc_lock);
	if (p == NULL)
		return -ESRCH;
	for (int i = 0; i < 2; i++)
		d[i] = (struct cap_data){(uint32_t)(c.effective >> 32 * i),
					 (uint32_t)(c.permitted >> 32 * i),
					 (uint32_t)(c.inheritable >> 32 * i)};
	return a[1] != 0 ? copy_out(a[1], d, (size_t)words * sizeof(d[0])) : 0;
}

/* Changes rights: no process gets rights that it has not. proc_lock held. */
static int
caps_set(struct caps *c, uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	uint64_t more = inheritable & ~c->inheritable;

	if ((permitted & ~c->permitted) || (effective & ~permitted) || (more & ~c->bounding) ||
	    ((more & ~c->permitted) && !capable(CAP_SETPCAP)))
		return -EPERM;
	__atomic_store_n(&c->effective, effective, __ATOMIC_RELAXED);
	c->permitted = permitted;
	c->inheritable = inheritable;
	return 0;
}

int64_t
sys_capset(const uint64_t a[6])
{
	struct cap_header h;
	struct cap_data d[2] = {0};
	int words = take_header(a[0], &h), error;

	if (words < 0)
		return words;
	if (h.pid != 0 && (uint32_t)h.pid != curthread()->tid)
		return -EPERM;
	if (copy_in(d, a[1], (size_t)words * sizeof(d[0])) != 0)
		return -EFAULT;
	spin_lock(&proc_lock);
	error =
	    caps_set(&curproc()->caps, CAP_ALL & (d[0].effective | (uint64_t)d[1].effective << 32),
		     CAP_ALL & (d[0].permitted | (uint64_t)d[1].permitted << 32),
		     CAP_ALL & (d[0].inheritable | (uint64_t)d[1].inheritable << 32));
	spin_unlock(&proc_lock);
	return error;
}

static int64_t
rename_self(uint64_t from)
{
	char name[16] = "";

	for (unsigned i = 0; i < sizeof(name) - 1; i++) {
		if (copy_in(&name[i], from + i, 1) != 0)
			return -EFAULT;
		if (name[i] == '\0')
			break;
	}
	spin_lock(&proc_lock);
	proc_rename(curlwp(), name);
	spin_unlock(&proc_lock);
	return 0;
}

/* Sets what is on or off. */
static int64_t
set_flag(bool *flag, uint64_t to)
{
	if (to > 1)
		return -EINVAL;
	*flag = to;
	return 0;
}

static int64_t
give_number(uint64_t to, int number)
{
	return copy_out(to, &number, sizeof(number));
}

int64_t
sys_prctl(const uint64_t a[6])
{
	struct proc *p = curproc();
	struct lwp *l = curlwp();
	char name[16] = "";
	bool no;

	switch ((uint32_t)a[0]) {
	case PR_SET_PDEATHSIG:
		if (a[1] > NSIG)
			return -EINVAL;
		p->death_signal = (int)a[1];
		return 0;
	case PR_GET_PDEATHSIG:
		return give_number(a[1], p->death_signal);
	case PR_GET_DUMPABLE:
		return !p->undumpable;
	case PR_SET_DUMPABLE:
		return set_flag(&no, a[1]) != 0 ? -EINVAL : set_flag(&p->undumpable, !a[1]);
	case PR_GET_KEEPCAPS:
		return p->caps.keep;
	case PR_GET_SECUREBITS:
		return p->caps.keep ? SECBIT_KEEP_CAPS : 0;
	case PR_SET_SECUREBITS:
		return !capable(CAP_SETPCAP) || (a[1] & ~(uint64_t)SECBIT_KEEP_CAPS)
			   ? -EPERM
			   : set_flag(&p->caps.keep, a[1] != 0);
	case PR_SET_KEEPCAPS:
		return set_flag(&p->caps.keep, a[1]);
	case PR_SET_NAME:
		return rename_self(a[1]);
	case PR_GET_NAME:
		strlcpy(name, curthread()->name, sizeof(name));
		return copy_out(a[1], name, sizeof(name));
	case PR_CAPBSET_READ:
		return a[1] <= CAP_LAST_CAP ? (int64_t)(p->caps.bounding >> a[1] & 1) : -EINVAL;
	case PR_CAPBSET_DROP:
		if (!capable(CAP_SETPCAP))
			return -EPERM;
		if (a[1] > CAP_LAST_CAP)
			return -EINVAL;
		__atomic_fetch_and(&p->caps.bounding, ~(1ul << a[1]), __ATOMIC_RELAXED);
		return 0;
	case PR_SET_TIMERSLACK:
		l->timer_slack = a[1] - 1 < INT64_MAX ? a[1] : l->timer_slack_default;
		return 0;
	case PR_GET_TIMERSLACK:
		return (int64_t)l->timer_slack;
	case PR_SET_CHILD_SUBREAPER:
		p->subreaper = a[1] != 0;
		return 0;
	case PR_GET_CHILD_SUBREAPER:
		return give_number(a[1], p->subreaper);
	case PR_SET_NO_NEW_PRIVS:
		if (a[1] != 1 || a[2] != 0 || a[3] != 0 || a[4] != 0)
			return -EINVAL;
		p->caps.no_new = true;
		return 0;
	case PR_GET_NO_NEW_PRIVS:
		return a[1] != 0 || a[2] != 0 || a[3] != 0 || a[4] != 0 ? -EINVAL : p->caps.no_new;
	}
	return -EINVAL;
}
