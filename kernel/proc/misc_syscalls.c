/*
 * misc_syscalls.c - system calls on the CPU and the machine.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/kestrel.h"
#include "kernel/abi/membarrier.h"
#include "kernel/abi/personality.h"
#include "kernel/abi/sysinfo.h"
#include "kernel/entry.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/random.h"
#include "kernel/lib/shutdown.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "kernel/sysctl/uts.h"

uint32_t
proc_personality(void)
{
	return curproc()->personality;
}

int64_t
sys_personality(const uint64_t a[6])
{
	struct proc *p = curproc();
	uint32_t old = p->personality, new = (uint32_t)a[0];

	if (new == UINT32_MAX)
		return old;
	p->personality = new;
	return old;
}

int64_t
sys_arch_prctl(const uint64_t a[6])
{
	enum {
		ARCH_SET_FS = 0x1002,
		ARCH_GET_FS = 0x1003,
		ARCH_GET_CPUID = 0x1011,
		ARCH_SET_CPUID = 0x1012
	}; /* Linux asm/prctl.h */

	uint32_t option = (uint32_t)a[0];

	if (option == ARCH_GET_FS)
		return copy_out(a[1], &curthread()->tls, sizeof(curthread()->tls));
	if (option == ARCH_GET_CPUID) /* the instruction is always allowed */
		return 1;
	if (option != ARCH_SET_FS)
		return option == ARCH_SET_CPUID ? -ENODEV : -EINVAL;
	if (a[1] >= ARCH_USER_END)
		return -EPERM;
	irq_push();
	curthread()->tls = a[1];
	arch_context_prepare((uintptr_t)curthread()->kstack + KSTACK_SIZE, a[1]);
	irq_pop();
	return 0;
}

int64_t
sys_machine_shutdown(const uint64_t a[6])
{
	if (!capable(CAP_SYS_BOOT))
		return -EPERM;
	if (a[0] == SHUTDOWN_REBOOT)
		shutdown_reboot();
	if (a[0] != SHUTDOWN_POWEROFF || a[1] > 63)
		return -EINVAL;
	shutdown_poweroff((unsigned)a[1]);
}

int64_t
sys_uname(const uint64_t a[6])
{
	struct utsname u = uts_get();

	return copy_out(a[0], &u, sizeof(u));
}

int64_t
sys_getrandom(const uint64_t a[6])
{
	uint64_t want = a[1] < INT32_MAX ? a[1] : INT32_MAX, done = 0;
	uint8_t piece[256];

	/* GRND_NONBLOCK, GRND_RANDOM, GRND_INSECURE: there is one source; the last two exclude each
	 * other */
	if (((uint32_t)a[2] & ~7u) || (a[2] & 6) == 6)
		return -EINVAL;
	while (done < want && (done == 0 || !proc_signal_pending())) {
		size_t n = want - done < sizeof(piece) ? want - done : sizeof(piece);

		random_bytes(piece, n);
		if (copy_out(a[0] + done, piece, n) != 0)
			return done > 0 ? (int64_t)done : -EFAULT;
		done += n;
	}
	return (int64_t)done;
}

/*
 * Returns when every CPU has passed a memory barrier since the call. All who wait share one round
 * of interrupts, and there is one a millisecond at most: each disturbs all CPUs.
 */
static void
membarrier_global(void)
{
	static struct mutex mutex = MUTEX_INIT("membarrier");
	static uint64_t rounds; /* atomic: begun; with the mutex held, also ended */
	uint64_t seen = __atomic_load_n(&rounds, __ATOMIC_SEQ_CST);

	mutex_lock(&mutex);
	if (__atomic_load_n(&rounds, __ATOMIC_RELAXED) == seen) {
		thread_sleep_ns(1000000, 0, "membarrier");
		__atomic_fetch_add(&rounds, 1, __ATOMIC_SEQ_CST);
		smp_call_all(NULL, NULL);
	}
	mutex_unlock(&mutex);
}

int64_t
sys_membarrier(const uint64_t a[6])
{
	struct proc *p = curproc();

	if ((uint32_t)a[1] != 0)
		return -EINVAL;
	switch ((uint32_t)a[0]) {
	case MEMBARRIER_CMD_QUERY:
		return MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_PRIVATE_EXPEDITED |
		       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
	case MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED:
		p->membarrier = true;
		return 0;
	case MEMBARRIER_CMD_PRIVATE_EXPEDITED:
		if (!p->membarrier)
			return -EPERM;
		smp_call_users(curthread()->root, NULL, NULL);
		return 0;
	case MEMBARRIER_CMD_GLOBAL:
		membarrier_global();
		return 0;
	}
	return -EINVAL;
}

int64_t
sys_getcpu(const uint64_t a[6])
{
	uint32_t cpu = arch_cpu(), node = 0;

	if (a[0] != 0 && copy_out(a[0], &cpu, sizeof(cpu)) != 0)
		return -EFAULT;
	return a[1] != 0 && copy_out(a[1], &node, sizeof(node)) != 0 ? -EFAULT : 0;
}

int64_t
sys_sysinfo(const uint64_t a[6])
{
	struct sysinfo s = {.uptime = (int64_t)(clock_ns() / 1000000000),
			    .totalram = page_count_total() * PAGE_SIZE,
			    .freeram = page_count_free() * PAGE_SIZE,
			    .mem_unit = 1};

	sched_load_average(s.loads);
	spin_lock(&proc_lock);
	for_each_proc (p)
		s.procs++;
	spin_unlock(&proc_lock);
	return copy_out(a[0], &s, sizeof(s));
}

int64_t
sys_umask(const uint64_t a[6])
{
	uint32_t old = curproc()->umask;

	curproc()->umask = (uint32_t)a[0] & 0777;
	return old;
}
