/*
 * sched.h - per-CPU run queues with priorities and fair shares, preemption and stealing.
 *
 * Locking: one spin lock for each run queue, held across the context switch; taken after
 * sleep-queue locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cpu_sums;
struct fair_group;
struct thread;

/* Makes the present context of the boot CPU its idle thread. */
void sched_init(void);
/* The idle loop. Never returns. */
_Noreturn void sched_idle(void);
/* Gives the CPU to a better thread at the end of an interrupt. Interrupts off. */
void sched_preempt_irq(void);
/* Tells the log which thread runs, and whether its events are suppressed. Interrupts off. */
void sched_set_thread(const struct thread *t);
/* Makes a new thread runnable. */
void wake_up_new_task(struct thread *t);
/*
 * Makes a thread runnable, which the caller took off its sleep queue. Any context but NMI. Returns
 * 1, as Linux's if it woke it.
 */
int wake_up_process(struct thread *t);
/* Lets threads of the same or better priority run. Thread context, no spin lock held. */
void sched_yield(void);
/* Gives the CPU to a better thread, if one waits. Interrupts on, no spin lock held. */
void sched_preempt(void);
/*
 * Sets the CPUs on which a thread may run: bit n is CPU n, and at least one is online. If the
 * current thread may not stay on its CPU, it moves at the next sched_preempt(). Any context but
 * NMI; the thread must not end meanwhile.
 */
void sched_set_cpus(struct thread *t, uint64_t cpus);
/* If t runs on another CPU, that enters the kernel soon. Context and locks as sched_set_cpus(). */
void sched_kick(const struct thread *t);
/* A thread's time on a CPU up to now, wherever it runs. Context and locks as sched_set_cpus(). */
uint64_t sched_runtime_ns(const struct thread *t);
/*
 * The time of the threads counted in these sums, up to now. If they are charged all the time, some
 * of it may be told later; what is told never becomes less. Context, locks as sched_set_cpus().
 */
uint64_t sched_sums_ns(struct cpu_sums *sums);
/*
 * Counts the current thread's time in these sums, which begin with the time that it has used; it
 * was counted in none. NULL: it is counted in none from now on, and its sums may go.
 */
void sched_count_in(struct cpu_sums *sums);
/* How a program's thread is scheduled. kernel/abi/sched.h has the policies. */
struct sched_params {
	uint8_t policy;
	uint8_t rt_prio; /* SCHED_FIFO, SCHED_RR: 1 to 99, a higher one goes first; others: 0 */
	int8_t nice;     /* -20 to 19; of a real-time thread it is only remembered */
	bool reset_on_fork;
};
/* Changes how a thread is scheduled. Context as sched_set_cpus(). */
void sched_set_params(struct thread *t, const struct sched_params *params);
/* Gives t the share of another user: `groups` of struct uidinfo. Context as sched_set_cpus(). */
void sched_set_user(struct thread *t, struct fair_group *groups);
/* Gives a new thread, which does not run yet, parameters, CPUs and share of the current one. */
void sched_inherit(struct thread *to);
/* For how long a thread runs before another of its priority: nanoseconds; 0: until it blocks. */
uint64_t sched_slice_ns(const struct thread *t);
/*
 * For hooks of the probes sched_switch, sched_wakeup and sched_wakeup_new: the thread that gets the
 * CPU, or is queued there.
 */
const struct thread *sched_probed(unsigned cpu);
/*
 * A thread's name, as Linux has it: "swapper/N" is the thread that idles on a CPU. A handle, as of
 * ktr_intern(). Any context but NMI.
 */
const char *sched_comm(const struct thread *t);
/* How many threads run or wait for a CPU, without idle ones. May be a little old. */
unsigned sched_runnable(void);
/* That number, on average over the last 1, 5 and 15 minutes, in 1/65536. Any context. */
void sched_load_average(uint64_t loads[3]);
/* Nanoseconds that a CPU has been idle since boot, up to its last switch or tick. */
uint64_t sched_idle_ns(unsigned cpu);
/*
 * If that is traced, records what each CPU runs. So a trace tells it from its beginning on, even of
 * CPUs that go on with one thread. Thread context, no spin lock held; or early boot.
 */
void sched_trace_running(void);
/*
 * From now on the current thread's events are not recorded, or are again. It reads the log, and
 * would otherwise read about its own reading. Its switches are recorded all the same. Thread
 * context.
 */
void sched_suppress_events(bool suppress);
/*
 * Suppresses its events until the silence of that number ends, or sched_suppress_events(); until
 * the silence ends tracers record no calls of functions either, but for those of interrupts. Ends
 * it of others when their next turn begins.
 */
enum { SILENCES = 64 };
void sched_silence(unsigned number); /* 1 to SILENCES */
void sched_end_silence(unsigned number);
