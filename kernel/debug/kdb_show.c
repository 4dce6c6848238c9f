/*
 * kdb_show.c - show and x: CPUs and memory. Every address is read by probes. No locks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/trap.h"
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/debug/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/sched/pcpu.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"

#define X_COUNT_MAX 65536
#define X_LINE      16 /* bytes */

static void
kdb_show_pcpu(unsigned cpu)
{
	const struct pcpu *pc = pcpus[cpu];
	struct arch_trapframe *tf = __atomic_load_n(&pc->stopped, __ATOMIC_ACQUIRE);
	struct thread t;
	char name[32];

	kdb_printf("cpu %u%s: %s%s, %s\n", cpu, cpu == 0 ? " (boot)" : "",
		   pc->online ? "online" : "offline", pc->resched ? ", wants to reschedule" : "",
		   (int)cpu == kdb.owner ? "in the debugger"
		   : tf != NULL          ? "stopped"
					 : "did not stop");
	kdb_printf("  thread ");
	if (arch_probe_copy(&t, pc->md.curthread, sizeof(t)))
		kdb_printf("%s tid %u%s\n", kdb_text(t.name, name, sizeof(name)), t.tid,
			   pc->md.curthread == pc->idle ? " (idle)" : "");
	else
		kdb_printf("%p\n", (void *)pc->md.curthread);
	kdb_printf("  spin locks %u, irq_push depth %d (interrupts were %s), nmi depth %u\n",
		   pc->locks, pc->irq_depth, pc->irq_was_on ? "on" : "off", pc->nmi);
	kdb_printf("  clock ticks %llu, idle %llu ms\n", (unsigned long long)pc->ticks,
		   (unsigned long long)(sched_idle_ns(cpu) / 1000000));
	kdb_printf("  at ");
	if ((int)cpu == kdb.owner)
		kdb_print_symbol(kdb.place.pc);
	else if (tf != NULL)
		kdb_print_symbol(arch_tf_pc(tf));
	else
		kdb_printf("?");
	kdb_printf("\n");
}

static void
kdb_command_show_pcpu(char *args)
{
	char *word = kdb_word(&args);
	uint64_t n;

	if (word == NULL) {
		for (unsigned i = 0; i < MAX_CPUS && !kdb.quit; i++)
			if (pcpus[i] != NULL)
				kdb_show_pcpu(i);
	} else if (!kdb_number(word, &n) || n >= MAX_CPUS || pcpus[n] == NULL) {
		kdb_printf("show pcpu: \"%s\": expected a cpu, 0 to %u\n", word, ncpus - 1);
	} else {
		kdb_show_pcpu((unsigned)n);
	}
}

void
kdb_command_show(char *mod, char *args)
{
	char *what = kdb_word(&args), *next = args, *slash, *word;

	(void)mod;
	if (what == NULL) {
		kdb_printf("show what? Expected ktr, ktr stats, pcpu or registers\n");
		return;
	}
	slash = strchr(what, '/');
	if (slash != NULL)
		*slash++ = '\0';
	if (strcmp(what, "ktr") == 0) {
		char first[8];

		while (*next == ' ')
			next++;
		strlcpy(first, next, sizeof(first));
		word = first;
		word = kdb_word(&word);
		if (word != NULL && strcmp(word, "stats") == 0)
			kdb_command_show_ktr_stats();
		else
			kdb_command_show_ktr(slash, args);
	} else if (strcmp(what, "pcpu") == 0) {
		kdb_command_show_pcpu(args);
	} else if (strcmp(what, "registers") == 0) {
		if (kdb.place.tf != NULL)
			arch_tf_print(kdb.place.tf);
		else
			kdb_printf("entered by a call: pc %#lx sp %#lx fp %#lx\n",
				   (unsigned long)kdb.place.pc, (unsigned long)kdb.place.sp,
				   (unsigned long)kdb.place.fp);
	} else {
		kdb_printf("show: no \"%s\"; expected ktr, ktr stats, pcpu or registers\n", what);
	}
}

struct x_format {
	unsigned size; /* bytes an item; 0: a string */
	char kind;     /* x d u o c a s */
	uint64_t count;
};

static bool
kdb_x_format(const char *mod, struct x_format *f)
{
	*f = (struct x_format){.size = 8, .kind = 'x', .count = 0};
	for (; mod != NULL && *mod != '\0'; mod++) {
		switch (*mod) {
		case 'b':
			f->size = 1;
			break;
		case 'h':
			f->size = 2;
			break;
		case 'w':
			f->size = 4;
			break;
		case 'g':
			f->size = 8;
			break;
		case 'c':
			f->size = 1;
			f->kind = 'c';
			break;
		case 's':
			f->size = 0;
			f->kind = 's';
			break;
		case 'a':
			f->size = 8;
			f->kind = 'a';
			break;
		case 'x':
		case 'd':
		case 'u':
		case 'o':
			f->kind = *mod;
			break;
		default:
			if (*mod < '0' || *mod > '9' || f->count > X_COUNT_MAX) {
				kdb_printf(
				    "x: format \"%c\": expected digits, a size of b h w g, a "
				    "kind of x d u o c a s\n",
				    *mod);
				return false;
			}
			f->count = f->count * 10 + (unsigned)(*mod - '0');
		}
	}
	return true;
}

static void
kdb_x_item(const struct x_format *f, uint64_t v)
{
	int bits = (int)f->size * 8;
	int64_t sv = bits == 0 ? 0 : (int64_t)(v << (64 - bits)) >> (64 - bits);

	switch (f->kind) {
	case 'x':
		kdb_printf(" 0x%0*llx", (int)f->size * 2, (unsigned long long)v);
		break;
	case 'd':
		kdb_printf(" %lld", (long long)sv);
		break;
	case 'u':
		kdb_printf(" %llu", (unsigned long long)v);
		break;
	case 'o':
		kdb_printf(" %#llo", (unsigned long long)v);
		break;
	case 'c':
		kdb_printf(v >= ' ' && v <= '~' ? " '%c'" : " \\x%02x", (int)v);
		break;
	default:
		kdb_printf(" ");
		kdb_print_symbol((uintptr_t)v);
	}
}

/* Prints the label of an address: its number and, where known, its symbol. */
static void
kdb_x_label(uint64_t addr)
{
	uintptr_t offset;
	const char *name = ksym_lookup((uintptr_t)addr, &offset);

	kdb_printf("0x%016llx", (unsigned long long)addr);
	if (name != NULL)
		kdb_printf(" <%s+%#lx>", name, (unsigned long)offset);
	kdb_printf(":");
}

static bool
kdb_x_string(uint64_t *addr)
{
	char text[128], c;
	size_t n = 0;

	do {
		if (!arch_probe_copy(&c, (const void *)*addr, 1))
			return false;
		(*addr)++;
		text[n++] = c == '\0' || (c >= ' ' && c <= '~') ? c : '?';
	} while (c != '\0' && n < sizeof(text) - 1);
	text[n] = '\0';
	kdb_printf(" \"%s\"%s", text, c == '\0' ? "" : "...");
	return true;
}

static void
kdb_examine(const struct x_format *f, uint64_t addr)
{
	unsigned per_line = f->kind == 'a' || f->kind == 's' ? 1 : X_LINE / f->size;

	for (uint64_t i = 0; i < f->count && !kdb.quit; i++) {
		uint64_t v = 0;
		bool ok = true;

		if (i % per_line == 0)
			kdb_x_label(addr);
		if (f->kind == 's') {
			ok = kdb_x_string(&addr);
		} else if ((ok = arch_probe_copy(&v, (const void *)addr, f->size))) {
			kdb_x_item(f, v); /* little-endian, as both ports are */
			addr += f->size;
		}
		if (!ok) {
			kdb_printf(" not readable\n");
			return;
		}
		if (i % per_line == per_line - 1 || i + 1 == f->count)
			kdb_printf("\n");
	}
}

void
kdb_command_x(char *mod, char *args)
{
	const char *text = args;
	struct x_format f;
	uint64_t addr;
	char *word;

	if (!kdb_x_format(mod, &f))
		return;
	while (*text == ' ')
		text++;
	if (*text == '\0') {
		kdb_printf("x: expected x[/FORMAT] ADDRESS [COUNT]\n");
		return;
	}
	if (!kdb_expr(&text, &addr))
		return;
	args += text - args;
	word = kdb_word(&args);
	if (word != NULL && (!kdb_number(word, &f.count) || f.count > X_COUNT_MAX)) {
		kdb_printf("x: count \"%s\": expected 1 to %d\n", word, X_COUNT_MAX);
		return;
	}
	if (f.count == 0)
		f.count = f.kind == 'a' || f.kind == 's' ? 1 : X_LINE / f.size;
	kdb_examine(&f, addr);
}
