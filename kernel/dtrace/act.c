/*
 * act.c - what programs may do to the system, if their consumer has asked for it. A signal cannot
 * be sent from where a probe fires. So it is noted, and the CPU interrupts itself. That interrupt
 * comes when interrupts are on again, at the latest on the way to user mode. Locking: each CPU has
 * its own notes, touched with interrupts off.
 */
#include "arch/pcpu.h"
#include "arch/smp.h"
#include "kernel/abi/signal.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

#define NOTES             64u
#define CHILL_INTERVAL_NS 1000000000u
#define CHILL_MAX_NS      500000000u

static struct {
	unsigned count;
	bool sending; /* while a note is sent: its own notes would be sent without end */
	struct {
		uint32_t pid;
		int sig;
	} notes[NOTES];
} noted[MAX_CPUS];

static void
act_note_signal(int sig)
{
	unsigned cpu = arch_cpu();
	const struct proc *p = curthread()->proc;

	if (p == NULL || noted[cpu].sending)
		return;
	/* A signal that is noted for the process is not noted again; so there are few at a time. */
	for (unsigned i = 0; i < noted[cpu].count; i++)
		if (noted[cpu].notes[i].pid == p->pid && noted[cpu].notes[i].sig == sig)
			return;
	if (noted[cpu].count == NOTES)
		return;
	noted[cpu].notes[noted[cpu].count].pid = p->pid;
	noted[cpu].notes[noted[cpu].count].sig = sig;
	noted[cpu].count++;
	arch_ipi_send(cpu, IPI_RESCHED);
}

/* Interrupts off. */
static void
send_noted(void)
{
	unsigned cpu = arch_cpu();

	noted[cpu].sending = true;
	while (noted[cpu].count > 0) {
		uint32_t pid;
		struct proc *p;
		int sig;

		noted[cpu].count--;
		pid = noted[cpu].notes[noted[cpu].count].pid;
		sig = noted[cpu].notes[noted[cpu].count].sig;
		spin_lock(&proc_lock);
		p = proc_find(pid);
		if (p != NULL)
			proc_signal_locked(p, sig);
		spin_unlock(&proc_lock);
	}
	noted[cpu].sending = false;
}
HOOK(resched, send_noted);

/*
 * Waits for ns; at most half of each second on a CPU, whoever asks. False if this would be more. A
 * second begins with the first wait in it, so the last half of one and the first half of the next
 * may follow each other.
 */
static bool
act_chill(uint64_t ns)
{
	static struct {
		uint64_t since, ns;
	} chilled[MAX_CPUS];
	unsigned cpu = arch_cpu();
	uint64_t now = clock_ns();

	if (now - chilled[cpu].since > CHILL_INTERVAL_NS) {
		chilled[cpu].since = now;
		chilled[cpu].ns = 0;
	}
	if (ns > CHILL_MAX_NS - chilled[cpu].ns)
		return false;
	chilled[cpu].ns += ns;
	clock_delay_ns(ns);
	return true;
}

bool
dif_port_act(const struct dif_at *at, enum dif_op op, uint64_t a)
{
	const struct ktr_probe_name *p = &((const struct dtrace_ecb *)at)->probe->name;

	switch (op) {
	case DIF_RAISE:
		if (a >= 1 && a <= 64)
			act_note_signal((int)a);
		return true;
	case DIF_STOP:
		act_note_signal(SIGSTOP);
		return true;
	case DIF_BREAK:
		panic_ask("dtrace: breakpoint action");
		return true;
	case DIF_PANIC:
		panic("dtrace: panic action at probe %s:%s:%s:%s", p->provider, p->module,
		      p->function, p->name);
	default:
		return act_chill(a); /* DIF_CHILL */
	}
}
