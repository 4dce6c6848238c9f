/*
 * steps.c - an NMI at each instruction of a record call (x86_64). First, single steps (RFLAGS.TF)
 * through some calls find the instructions. Then a breakpoint at one after the other stands for the
 * NMI.
 *
 * The handler records, closes the ring or has events suppressed. It returns as a kernel must: to
 * the beginning of a restartable sequence. Its events must be suppressed if it interrupted a record
 * that runs with interrupts off, and only then. Locking: none, there is one thread; the handler
 * also makes the calls of other CPUs, such as ktr_cpumask_set().
 */
#define _GNU_SOURCE
#include <ktr.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ENTRIES 8u
#define STRIKES 4u      /* an NMI records 0 to 3 events */
#define TF      0x100ul /* RFLAGS: a debug exception after each instruction (SDM vol. 3B, 17.3.1.4) */
#define TID     7u

#define INT3       0xcc
#define PAGE       4096ul
#define PLACES_MAX 400u

extern char __executable_start[], etext[]; /* from the linker */

void steps(void);
void thread_run(uint32_t tid); /* kernel.c */

enum what { RECORDS, CLOSES, REFUSES_ITS_OWN, REFUSES, WHATS };

static struct {
	enum what what;
	unsigned events; /* that the NMI records */
	uint8_t *at;     /* it comes before this instruction; NULL: find instructions */
	uint8_t insn;    /* its first byte */
	bool came, busy; /* busy: it came inside a record */
} strike;
static uint64_t next_id;
static uintptr_t places[PLACES_MAX]; /* instructions of record calls */
static unsigned place_count, came, restarted;

__attribute__((noinline)) static void
record(uint64_t id)
{
	CTR6(KTR_SPARE2, "%lu %lu %lu %lu %lu %lu", id, ~id, id + 2, id + 3, id + 4, id + 5);
}

__attribute__((format(printf, 1, 2))) static void
fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "steps: what %d, %u events before %p: ", strike.what, strike.events,
		(void *)strike.at);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

static void
nmi(void)
{
	strike.busy = ktr_log_ring(&ktr_main, 0)->busy;
	if (strike.what == REFUSES || strike.what == REFUSES_ITS_OWN)
		ktr_cpumask_set(0);
	for (unsigned i = 0; i < strike.events; i++)
		record(next_id++);
	if (strike.what == REFUSES_ITS_OWN)
		ktr_cpumask_set(~0ull);
	else if (strike.what == CLOSES)
		ktr_ring_close(0);
}

/* Adds an instruction that a single step has found. */
static void
note_place(uintptr_t pc)
{
	for (unsigned i = 0; i < place_count; i++)
		if (places[i] == pc)
			return;
	if (place_count == PLACES_MAX)
		fail("more than %u instructions", PLACES_MAX);
	places[place_count++] = pc;
}

static void
on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const struct ktr_restart *r;

	(void)signal;
	(void)info;
	if (strike.at == NULL) {
		note_place((uintptr_t)regs[REG_RIP]);
		return;
	}
	/* RIP is after the breakpoint. */
	*strike.at = strike.insn;
	regs[REG_RIP]--;
	strike.came = true;
	nmi();
	r = ktr_restart_find((uintptr_t)regs[REG_RIP]);
	if (r == NULL)
		return;
	restarted += (uintptr_t)regs[REG_RIP] != r->from;
	regs[REG_RIP] = (greg_t)r->from;
}

/* Checks the last `count` events: whole, each once, in order of time and (but for one) of ids. */
static void
check(uint64_t head, uint64_t count)
{
	uint64_t ticks = 0, last = 0, sum = 0, first_id = next_id - count;
	unsigned back = 0;

	for (uint64_t seq = head - count; seq < head; seq++) {
		struct ktr_entry e;
		enum ktr_read_status status = ktr_ring_read(0, seq, &e);
		uint64_t id = e.args[0];

		if (status != KTR_READ_OK)
			fail("event %lu: read status %d, expected %d", seq, status, KTR_READ_OK);
		if (id < first_id || id >= next_id || e.args[1] != ~id || e.args[5] != id + 5)
			fail("event %lu: found %#lx, %#lx, … %#lx, expected of id %lu to %lu", seq,
			     id, e.args[1], e.args[5], first_id, next_id - 1);
		if (e.tid != TID || ktr_site_get(e.site)->nargs != 6)
			fail("event %lu: thread %u, site %u", seq, e.tid, e.site);
		if (e.ticks < ticks)
			fail("event %lu: older than the one before", seq);
		back += id < last;
		ticks = e.ticks;
		last = id;
		sum += id;
	}
	if (sum != count * (first_id + next_id - 1) / 2 || back > 1)
		fail("ids %lu to %lu: found sum %lu, %u out of order", first_id, next_id - 1, sum,
		     back);
}

static struct ktr_stats
stats(void)
{
	struct ktr_stats s;

	if (!ktr_stats_get(0, &s) || s.recorded != s.resident + s.overwritten + s.delivered)
		fail("the accounts do not add up");
	return s;
}

/* Finds the instructions of records: one turn of the ring, and an event that finds it closed. */
static void
find_places(void)
{
	strike.at = NULL;
	for (unsigned i = 0; i < ENTRIES + 1; i++) {
		if (i == ENTRIES)
			ktr_ring_close(0);
		__asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" : : "i"(TF) : "memory", "cc");
		record(i);
		__asm__ volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq"
				 :
				 : "i"(~TF)
				 : "memory", "cc");
	}
	next_id = ENTRIES + 1;
}

static void
run(void)
{
	struct ktr_stats before = stats(), after;
	uint64_t suppressed = 0;

	strike.came = false;
	strike.insn = *strike.at;
	*strike.at = INT3;
	record(next_id++);
	*strike.at = strike.insn;
	if (strike.came && (strike.what == REFUSES_ITS_OWN || strike.busy))
		suppressed = strike.events;
	if (strike.came && strike.what == REFUSES) {
		record(next_id++); /* must be suppressed; the interrupted one may be */
		suppressed = strike.events + 1;
		ktr_cpumask_set(~0ull);
	}
	after = stats();
	if (strike.what == REFUSES && after.suppressed - before.suppressed == suppressed + 1)
		suppressed++;
	uint64_t begun = 1 + (strike.came ? strike.events + (strike.what == REFUSES) : 0);
	if (after.suppressed - before.suppressed != suppressed ||
	    after.recorded - before.recorded != begun - suppressed)
		fail("%lu events recorded, %lu suppressed; expected %lu and %lu",
		     after.recorded - before.recorded, after.suppressed - before.suppressed,
		     begun - suppressed, suppressed);
	if (strike.came && strike.busy && strike.what != REFUSES)
		next_id -= suppressed, begun -= suppressed, suppressed = 0;
	if (suppressed == 0)
		check(after.recorded, begun);
	if (strike.what == RECORDS && ktr_log_ring(&ktr_main, 0)->limit == 0)
		fail("the ring is not opened again");
	came += strike.came;
}

/* Runs on CPU 0, whose control lock is free. */
void
steps(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	uintptr_t text = (uintptr_t)__executable_start & -PAGE;

	if (sigaction(SIGTRAP, &action, NULL) != 0 ||
	    mprotect((void *)text, (uintptr_t)etext - text, PROT_READ | PROT_WRITE | PROT_EXEC) !=
		0)
		fail("sigaction() or mprotect()");
	thread_run(TID);
	ktr_mask_set(KTR_SPARE2);
	find_places();
	for (unsigned phase = 0; phase < WHATS * STRIKES * ENTRIES; phase++) {
		strike.what = phase / ENTRIES / STRIKES;
		strike.events = phase / ENTRIES % STRIKES;
		for (unsigned i = 0; i < place_count; i++) {
			strike.at = (uint8_t *)places[i];
			/* Each turn begins at another point, in a ring of another size. */
			if (ktr_resize(i % 2 == 0 ? ENTRIES : 2 * ENTRIES) != 0)
				fail("ktr_resize()");
			while (ktr_ring_head(ktr_log_ring(&ktr_main, 0)) % ENTRIES !=
			       phase % ENTRIES)
				record(next_id++);
			run();
		}
	}
	fprintf(stderr, "steps: %u places, %u NMIs, %u restarted\n", place_count, came, restarted);
}
