/*
 * kdb_show.c - the command show, its table of subcommands, and what it shows of CPUs. No locks.
 */
#include "arch/trap.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/stop.h"

#define CALLOUTS_MAX 100000

void
kdb_each_cpu(const char *command, char *args, void (*fn)(unsigned cpu))
{
	char *word = kdb_word(&args);
	uint64_t n;

	if (word == NULL) {
		for (unsigned i = 0; i < MAX_CPUS && !kdb.quit; i++)
			if (pcpus[i] != NULL)
				fn(i);
	} else if (!kdb_number(word, &n) || n >= MAX_CPUS || pcpus[n] == NULL) {
		kdb_printf("%s: \"%s\": expected a cpu, 0 to %u\n", command, word, ncpus - 1);
	} else {
		fn((unsigned)n);
	}
}

static void
show_pcpu(unsigned cpu)
{
	const struct pcpu *pc = pcpus[cpu];
	struct arch_trapframe *tf = __atomic_load_n(&pc->stopped, __ATOMIC_ACQUIRE);

	kdb_printf("cpu %u%s: %s%s, %s\n", cpu, cpu == 0 ? " (boot)" : "",
		   pc->online ? "online" : "offline", pc->resched ? ", wants to reschedule" : "",
		   (int)cpu == stop.owner ? "in the debugger"
		   : tf != NULL           ? "stopped"
					  : "did not stop");
	kdb_printf("  thread ");
	kdb_print_thread(pc->md.curthread);
	kdb_printf("%s\n", pc->md.curthread == pc->idle ? " (idle)" : "");
	kdb_printf("  spin locks %u, irq_push depth %d (interrupts were %s), nmi depth %u\n",
		   pc->locks, pc->irq_depth, pc->irq_was_on ? "on" : "off", pc->nmi);
	kdb_printf("  clock ticks %lu, idle %lu ms\n", pc->ticks, (sched_idle_ns(cpu) / 1000000));
	kdb_printf("  at ");
	if ((int)cpu == stop.owner)
		kdb_print_symbol(kdb.place.pc);
	else if (tf != NULL)
		kdb_print_symbol(arch_tf_pc(tf));
	else
		kdb_printf("?");
	kdb_printf("\n");
}

static void
show_pcpus(char *args)
{
	kdb_each_cpu("show pcpu", args, show_pcpu);
}

static void
show_callouts(unsigned cpu)
{
	const struct callout *c = NULL;
	struct callout copy;

	for (unsigned n = 0; n < CALLOUTS_MAX && !kdb.quit; n++) {
		c = callout_next_unlocked(cpu, c);
		if (c == NULL)
			return;
		if (!kdb_read(&copy, (uintptr_t)c, sizeof(copy))) {
			kdb_printf("cpu %u: the list is broken: %p is not readable\n", cpu, c);
			return;
		}
		kdb_printf("%-6u %6lu.%09lu ", cpu, copy.deadline_ns / 1000000000,
			   copy.deadline_ns % 1000000000);
		kdb_print_symbol((uintptr_t)copy.fn);
		kdb_printf(" argument %p\n", copy.arg);
	}
}

static void
show_callout(char *args)
{
	kdb_printf("%-6s %-16s %s\n", "CPU", "AT", "FUNCTION");
	kdb_each_cpu("show callout", args, show_callouts);
}

bool
kdb_register(const char *name, uint64_t *v)
{
	if (strcmp(name, "pc") == 0)
		*v = kdb.place.pc;
	else if (strcmp(name, "fp") == 0)
		*v = kdb.place.fp;
	else if (strcmp(name, "sp") == 0)
		*v = kdb.place.sp;
	else
		return kdb.place.tf != NULL && arch_tf_register(kdb.place.tf, name, v);
	return true;
}

static void
show_registers(char *args)
{
	if (kdb.place.tf != NULL)
		arch_tf_print(kdb.place.tf);
	else
		kdb_printf("entered by a call: sp %#lx fp %#lx\n", kdb.place.sp, kdb.place.fp);
	kdb_printf("at ");
	kdb_print_symbol(kdb.place.pc);
	kdb_printf("\n");
}

static const struct {
	const char *name;
	void (*fn)(char *args);
} shows[] = {
    {"alllocks", kdb_show_alllocks}, {"callout", show_callout},     {"lock", kdb_show_lock},
    {"map", kdb_show_map},           {"page", kdb_show_page},       {"pcpu", show_pcpus},
    {"proc", kdb_show_proc},         {"registers", show_registers}, {"runq", kdb_show_runq},
    {"sleepq", kdb_show_sleepq},     {"thread", kdb_show_thread},
};

void
kdb_command_show(char *mod, char *args)
{
	char *what = kdb_word(&args), *slash;

	slash = what != NULL ? strchr(what, '/') : NULL;
	if (slash != NULL)
		*slash++ = '\0';
	if (what != NULL && strcmp(what, "ktr") == 0) {
		kdb_command_show_ktr(slash, args);
		return;
	}
	for (size_t i = 0; what != NULL && i < sizeof(shows) / sizeof(shows[0]); i++)
		if (strcmp(shows[i].name, what) == 0) {
			shows[i].fn(args);
			return;
		}
	if (what != NULL)
		kdb_printf("show: no \"%s\"; expected ktr, ktr stats", what);
	else
		kdb_printf("show what? Expected ktr, ktr stats");
	for (size_t i = 0; i < sizeof(shows) / sizeof(shows[0]); i++)
		kdb_printf(", %s", shows[i].name);
	kdb_printf("\n");
}
