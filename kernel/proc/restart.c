/*
 * restart.c - a system call that a signal has interrupted ends with EINTR, or begins again.
 * Locking: none; the process's own thread.
 */
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"

static enum syscall_restart
interrupted_call(const struct arch_trapframe *tf)
{
	enum syscall_restart how;

	if (!arch_tf_in_syscall(tf) || arch_tf_return(tf) != (uint64_t)-EINTR)
		return RESTART_NOT;
	how = syscall_find(arch_tf_syscall(tf))->restart;
	if (curlwp()->call_final)
		return RESTART_FINAL;
	if (how == RESTART_TIMED)
		return arch_tf_arg(tf, 3) != 0 ? RESTART_WAITED : RESTART_AGAIN;
	return how;
}

struct interrupted
interrupted_find(const struct arch_trapframe *tf)
{
	return (struct interrupted){.how = interrupted_call(tf), .pc = arch_tf_pc(tf)};
}

void
interrupted_show(struct interrupted *c, struct arch_trapframe *tf)
{
	if (!ARCH_CALL_REWOUND || c->rewound || c->how == RESTART_NOT || c->how == RESTART_FINAL)
		return;
	arch_tf_syscall_again(tf);
	c->rewound = true;
	c->again = arch_tf_pc(tf);
}

void
interrupted_look(struct interrupted *c, const struct arch_trapframe *tf)
{
	if (!ARCH_CALL_REWOUND)
		c->how = interrupted_call(tf);
	else if (c->rewound ? arch_tf_pc(tf) != c->again
			    : arch_tf_pc(tf) != c->pc || interrupted_call(tf) != c->how)
		c->how = RESTART_NOT;
}

void
interrupted_handler(struct interrupted *c, struct arch_trapframe *tf, bool restarts)
{
	bool again = c->how == RESTART_ALWAYS || (c->how == RESTART_AGAIN && restarts);

	if (again && !c->rewound) {
		arch_tf_syscall_again(tf);
	} else if (!again && c->rewound && c->how != RESTART_NOT) {
		arch_tf_set_pc(tf, c->pc);
		arch_tf_set_return(tf, (uint64_t)-EINTR);
	}
	c->how = RESTART_NOT;
}

void
interrupted_end(struct interrupted *c, struct arch_trapframe *tf, bool any)
{
	struct lwp *l = curlwp();

	/* Another thread may have taken the signal: nothing has happened to the call. */
	if (c->how == RESTART_NOT || (c->how == RESTART_FINAL && any))
		return;
	if (!c->rewound)
		arch_tf_syscall_again(tf);
	if ((c->how == RESTART_WAITED || c->how == RESTART_FINAL) &&
	    l->thread->interrupted_ns != DEADLINE_NEVER) {
		l->again_ns = l->thread->interrupted_ns;
		l->again_pc = arch_tf_pc(tf);
	}
}
