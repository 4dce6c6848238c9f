/*
 * kdb_bt.c - backtraces and the list of threads, over memory that may be broken: every pointer is
 * followed by a probe, every list has an end. No locks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/debug.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/debug/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/pcpu.h"
#include "kernel/sched/thread.h"

#define BT_DEPTH    64
#define PS_THREADS  65536
#define KDB_NAMELEN 32

const char *
kdb_text(const char *src, char *buf, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!arch_probe_copy(&buf[i], src + i, 1)) {
			strlcpy(buf, "?", size);
			return buf;
		}
		if (buf[i] == '\0')
			return buf;
		if (buf[i] < ' ' || buf[i] > '~')
			buf[i] = '?';
	}
	buf[size - 1] = '\0';
	return buf;
}

/* back: 1 for a return address, which may be the next function's or line's; else 0. */
static void
kdb_print_place(uintptr_t pc, unsigned back)
{
	const char *name, *file;
	uintptr_t offset;
	unsigned line;

	name = ksym_lookup(pc - back, &offset);
	if (name == NULL) {
		kdb_printf("%#lx", (unsigned long)pc);
		return;
	}
	kdb_printf("%s+%#lx", name, (unsigned long)offset + back);
	if (ksym_line(pc - back, &file, &line))
		kdb_printf(" (%s:%u)", file, line);
}

void
kdb_print_symbol(uintptr_t pc)
{
	kdb_print_place(pc, 0);
}

/* One step up a chain of frames. False at its end, or where it is broken. */
static bool
unwind(uintptr_t *fp, uintptr_t *pc)
{
	uint64_t next, ret;

	/* Frames are aligned, in the kernel's half, and only ever lie further up. */
	if (*fp % 8 != 0 || *fp < ARCH_DIRECT_BASE || !arch_probe_read(&next, (void *)*fp) ||
	    !arch_probe_read(&ret, (void *)(*fp + 8)) || ret == 0)
		return false;
	*pc = ret;
	*fp = next > *fp ? next : 0;
	return true;
}

void
kdb_backtrace(uintptr_t pc, uintptr_t fp, bool trapped)
{
	unsigned back = trapped ? 0 : 1;

	for (unsigned n = 0; n < BT_DEPTH && !kdb.quit; n++) {
		kdb_printf("#%-2u 0x%016lx ", n, (unsigned long)pc);
		kdb_print_place(pc, back);
		kdb_printf("\n");
		back = 1;
		if (!unwind(&fp, &pc))
			return;
	}
	kdb_printf("... more than %d frames\n", BT_DEPTH);
}

static void
kdb_backtrace_cpu(unsigned cpu)
{
	struct pcpu *pc = cpu < MAX_CPUS ? pcpus[cpu] : NULL;
	struct arch_trapframe *tf;

	if (pc == NULL) {
		kdb_printf("no cpu %u; there are 0 to %u\n", cpu, ncpus - 1);
		return;
	}
	if ((int)cpu == kdb.owner) {
		kdb_backtrace(kdb.place.pc, kdb.place.fp, kdb.place.tf != NULL);
		return;
	}
	tf = __atomic_load_n(&pc->stopped, __ATOMIC_ACQUIRE);
	if (tf == NULL)
		kdb_printf("cpu %u did not stop; its stack is unknown\n", cpu);
	else if (arch_tf_user(tf))
		kdb_printf("cpu %u runs user code at %#lx\n", cpu, (unsigned long)arch_tf_pc(tf));
	else
		kdb_backtrace(arch_tf_pc(tf), arch_tf_fp(tf), true);
}

/* CPU on which t runs just now, KDB_NO_CPU when it is switched out. */
static int
kdb_thread_cpu(const struct thread *t)
{
	for (unsigned i = 0; i < MAX_CPUS; i++)
		if (pcpus[i] != NULL && pcpus[i]->md.curthread == t)
			return (int)i;
	return KDB_NO_CPU;
}

static void
kdb_backtrace_tid(uint32_t tid)
{
	struct thread *t = NULL, copy;
	uintptr_t pc, fp;
	int cpu;

	for (unsigned n = 0; n < PS_THREADS; n++) {
		t = thread_next_unlocked(t);
		if (t == NULL || !arch_probe_copy(&copy, t, sizeof(copy)))
			break;
		if (copy.tid != tid)
			continue;
		cpu = kdb_thread_cpu(t);
		if (cpu != KDB_NO_CPU) {
			kdb_backtrace_cpu((unsigned)cpu);
			return;
		}
		arch_context_frame(t, &pc, &fp);
		kdb_backtrace(pc, fp, false);
		return;
	}
	kdb_printf("no thread %u; ps lists them\n", tid);
}

void
kdb_command_bt(char *mod, char *args)
{
	char *word = kdb_word(&args);
	uint64_t n;
	bool cpu = word != NULL && strcmp(word, "cpu") == 0;

	(void)mod;
	if (word == NULL) {
		kdb_backtrace(kdb.place.pc, kdb.place.fp, kdb.place.tf != NULL);
		return;
	}
	if (cpu)
		word = kdb_word(&args);
	if (word == NULL || !kdb_number(word, &n) || n > UINT32_MAX) {
		kdb_printf("bt: \"%s\": expected a thread id, or cpu and its number\n",
			   word != NULL ? word : "");
		return;
	}
	if (cpu)
		kdb_backtrace_cpu((unsigned)n);
	else
		kdb_backtrace_tid((uint32_t)n);
}

static const char *
kdb_state_name(const struct thread *t)
{
	switch (t->state) {
	case THREAD_RUNNABLE:
		return "ready";
	case THREAD_RUNNING:
		return "run";
	case THREAD_SLEEPING:
		return t->lockname != NULL ? "blocked" : "sleep";
	case THREAD_DEAD:
		return "dead";
	}
	return "?";
}

static void
kdb_ps_line(const struct thread *t)
{
	char name[KDB_NAMELEN], why[KDB_NAMELEN] = "-";
	struct proc p;

	kdb_text(t->name, name, sizeof(name));
	if (t->state == THREAD_SLEEPING && (t->lockname != NULL || t->wmesg != NULL))
		kdb_text(t->lockname != NULL ? t->lockname : t->wmesg, why, sizeof(why));
	kdb_printf("%6u %4u %3u %-8s %-12s ", t->tid, t->prio, t->cpu, kdb_state_name(t), why);
	if (t->proc != NULL && arch_probe_copy(&p, t->proc, sizeof(p)))
		kdb_printf("%6u %5u %s\n", p.pgid, p.uid, name);
	else
		kdb_printf("%6s %5s [%s]\n", "-", "-", name);
}

void
kdb_command_ps(char *mod, char *args)
{
	struct thread *t = NULL, copy;
	unsigned n = 0;

	(void)mod;
	(void)args;
	kdb_printf("%6s %4s %3s %-8s %-12s %6s %5s %s\n", "TID", "PRIO", "CPU", "STATE",
		   "WAITS FOR", "PGRP", "UID", "NAME");
	while (!kdb.quit && n++ < PS_THREADS && (t = thread_next_unlocked(t)) != NULL) {
		if (!arch_probe_copy(&copy, t, sizeof(copy))) {
			kdb_printf("the list of threads is broken: %p is not readable\n",
				   (void *)t);
			return;
		}
		kdb_ps_line(&copy);
	}
}
