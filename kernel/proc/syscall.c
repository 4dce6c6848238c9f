/*
 * syscall.c - calls the function of a system call.
 *
 * The table also makes trace points for each system call. So one event has the call's name and all
 * six argument registers, and a single call can be traced: `ktr on 'syscall write:*'`.
 */
#include "kernel/syscall.h"

#include "arch/clock.h"
#include "arch/irq.h"
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/syscall.h"
#include "kernel/entry.h"
#include "kernel/fs/file.h"
#include "kernel/lib/hook.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(raw_syscalls);
SDT_PROBE_DEFINE_TEXT7(raw_syscalls, , , sys_enter, "sys_enter",
		       ": id=%ld arg0=%lx arg1=%lx arg2=%lx arg3=%lx arg4=%s", "%lx arg5=%lx",
		       "long", "uint64_t", "uint64_t", "uint64_t", "uint64_t", "uint64_t",
		       "uint64_t");
SDT_PROBE_DEFINE_TEXT(raw_syscalls, , , sys_exit, "sys_exit", ": id=%ld ret=%ld", 2, "long",
		      "long");

HOOK_LIST(user_return);

/* Inline, however long: a call would cost each system call the registers that it saves. */
static inline __attribute__((always_inline)) int64_t
syscall_dispatch(uint64_t nr, const uint64_t a[6])
{
	int64_t r;

	switch (nr) {
#define SYSCALL(number, name, ...)                                                    \
	case number:                                                                  \
		CTR6(KTR_SYSC,                                                        \
		     "syscall " #name                                                 \
		     ": arg0 %#lx arg1 %#lx arg2 %#lx arg3 %#lx arg4 %#lx arg5 %#lx", \
		     a[0], a[1], a[2], a[3], a[4], a[5]);                             \
		r = sys_##name(a);                                                    \
		CTR1(KTR_SYSC, "sysret " #name ": ret %ld", r);                       \
		break;
#include <syscalls.def>
#undef SYSCALL
	default:
		CTR1(KTR_SYSC, "syscall unknown: number %lu", nr);
		r = -ENOSYS;
		CTR1(KTR_SYSC, "sysret unknown: ret %ld", r);
	}
	return r;
}

const struct syscall *
syscall_find(uint64_t nr)
{
	static const struct syscall unknown = {"", RESTART_AGAIN, ENOMEM_RETRY};
	static const struct syscall calls[] = {
#define SYSCALL(number, name, restart, enomem, ...) \
	[number] = {#name, RESTART_##restart, ENOMEM_##enomem},
#include <syscalls.def>
#undef SYSCALL
	};
	bool known = nr < sizeof(calls) / sizeof(calls[0]) && calls[nr].name != NULL;

	return known ? &calls[nr] : &unknown;
}

/*
 * Should a failed call be made again at once? After EINTR, proc_deliver_signals() decides, even if
 * another thread has taken the signal meanwhile.
 */
static __attribute__((noinline)) bool
may_repeat(uint64_t nr, int64_t r)
{
	if (r == -EINTR)
		curthread()->holds = true;
	return r == -ENOMEM && syscall_find(nr)->enomem == ENOMEM_RETRY && proc_reclaim();
}

static inline __attribute__((always_inline)) void
do_syscall(struct arch_trapframe *tf)
{
	uint64_t nr = arch_tf_syscall(tf), a[6];
	int64_t r;

	for (unsigned i = 0; i < 6; i++)
		a[i] = arch_tf_arg(tf, i);
	SDT_PROBE7(raw_syscalls, , , sys_enter, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	do
		r = syscall_dispatch(nr, a);
	while ((uint64_t)(r + ENOMEM) <= ENOMEM - EINTR && may_repeat(nr, r));
	SDT_PROBE2(raw_syscalls, , , sys_exit, nr, r);
	arch_tf_set_return(tf, (uint64_t)r);
}

void
entry_syscall(struct arch_trapframe *tf)
{
	/* The tracer may change the call. */
	bool made = !curthread()->traced || ptrace_call_enter(tf);

	if (made)
		do_syscall(tf);
	if (curthread()->traced)
		ptrace_call_leave(tf);
}

/* Not inline: the registers that it needs would be saved at each return of a call. */
static __attribute__((noinline)) void
do_work(struct arch_trapframe *tf)
{
	this_pcpu()->work = false;
	arch_irq_enable();
	if (curthread()->holds)
		file_release_held();
	HOOK_RUN(user_return);
	if (!lwp_stepping(tf))
		proc_deliver_signals(tf);
	sched_preempt();
	arch_irq_disable();
	if (curlwp()->ptrace != NULL)
		ptrace_return(tf);
}

void
entry_user_leave(void)
{
	struct thread *t = curthread();
	uint64_t now = arch_clock_read(), ticks = now - t->user_mark;

	t->user_mark = now; /* an NMI returns to user mode without entry_user_return() */
	t->user_ticks += ticks;
	this_pcpu()->user_ticks += ticks;
}

void
entry_user_return(struct arch_trapframe *tf)
{
	while ((__atomic_load_n(&curthread()->user_work, __ATOMIC_RELAXED) != 0 &&
		!lwp_stepping(tf)) ||
	       __atomic_load_n(&this_pcpu()->wanted, __ATOMIC_RELAXED))
		do_work(tf);
	curthread()->user_mark = arch_clock_read();
}
