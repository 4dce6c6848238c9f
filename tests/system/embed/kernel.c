/*
 * kernel.c - runs the code of ktr/README.md on the host. It records on two CPUs, flushes, resizes,
 * loses events, has some suppressed and one printed, and ends as after a panic. The stream goes to
 * standard output. Then interrupts come at each instruction of a record call (steps.c).
 */
#include <ktr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EVENTS   1000u
#define EVERY    100u /* rounds between passes */
#define BURST    (RING + 500u)
#define REFUSALS 16u
#define RING     2048u /* as in trace.c of ktr/README.md */

void trace_early(void);
void trace_init(void);
void trace_flush(void);
void trace_panic(void);
void thread_run(uint32_t tid);
void steps(void);

#ifdef KTR_PORT_RECORD
struct cpu cpus[MAX_CPUS] = {{.ktr_ring = &ktr_boot_ring.ring}, {.ktr_ring = &ktr_ring_none}};
#else
struct cpu cpus[MAX_CPUS];
#endif
unsigned cpu_now, irq_off;
static unsigned evaluated; /* how often parameters of sites that are on were evaluated */

/* The clock that record.inc reads, or nanoseconds. No test depends on the unit. */
uint64_t
clock_read(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

static void
fail(const char *why)
{
	fprintf(stderr, "kernel: %s\n", why);
	exit(1);
}

void
mutex_lock(struct mutex *m)
{
	if (m->held)
		fail("control lock: found held, expected free");
	m->held = true;
}

void
mutex_unlock(struct mutex *m)
{
	if (!m->held)
		fail("control lock: found free, expected held");
	m->held = false;
}

void *
memory_alloc(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) / 64 * 64);
	return p != NULL ? memset(p, 0, size) : NULL;
}

void
memory_free(void *p, size_t size)
{
	(void)size;
	free(p);
}

/* There is one thread, which is not in a record here. */
void
cpus_interrupt(void)
{
}

void
cpus_stop_run(void (*fn)(void *), void *arg)
{
	fn(arg);
}

void
console_print(unsigned cpu, const char *file, const char *text)
{
	fprintf(stderr, "cpu%u %s %s\n", cpu, file, text);
}

void
line_write(const void *data, size_t len)
{
	if (fwrite(data, 1, len, stdout) != len)
		fail("standard output: cannot write");
}

#if KTR_PORT_PATCH
/* x86_64, one thread: no CPU executes the instruction now. */
void
ktr_port_patch(void)
{
	static const uint8_t nop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	KTR_PATCH_EACH(p)
	{
		bool on = ktr_patch_on(p);
		uintptr_t at = ktr_patch_at(p);
		int32_t distance = (int32_t)(ktr_patch_target(p) - (at + sizeof(nop)));
		uint8_t jump[5] = {0xe9};
		memcpy(jump + 1, &distance, sizeof(distance));
		if (memcmp((void *)at, on ? nop : jump, sizeof(nop)) != 0)
			fail("a trace point that is to change is not what it was");
		if (mprotect((void *)(at & -page), 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) !=
		    0)
			fail("mprotect");
		memcpy((void *)at, on ? jump : nop, sizeof(nop));
	}
}
#endif

/* The scheduler's part: this CPU now runs that thread. */
void
thread_run(uint32_t tid)
{
	cpus[cpu_now].tid = tid;
}

/* Every other event here is suppressed, and counted. The ring has another size each time. */
static void
suppress_and_resize(void)
{
	struct ktr_stats before, after;
	if (!ktr_stats_get(0, &before))
		fail("cpu 0: no accounts");
	for (unsigned n = 0; n < REFUSALS; n++) {
		ktr_cpumask_set(n % 2 == 0 ? ~(uint64_t)1 : ~(uint64_t)0);
		CTR1(KTR_PROC, "refusal %u", n);
		ktr_ring_close(0); /* it opens by itself */
		if (n % 2 != 0 && ktr_resize(RING << n / 2 % 2) != 0)
			fail("cannot resize");
	}
	if (!ktr_stats_get(0, &after) || after.suppressed != before.suppressed + REFUSALS / 2)
		fail("cpu 0: other than half of the events are suppressed");
	if (ktr_resize(RING) != 0)
		fail("cannot resize back");
}

static unsigned
evaluate(unsigned n)
{
	evaluated++;
	return n;
}

int
main(void)
{
	trace_early();
	trace_init();
	for (unsigned n = 0; n < EVENTS; n++) {
		cpu_now = n % MAX_CPUS;
		thread_run(1 + n % 2);
		CTR2(KTR_SCHED, "event %u of %s", n, ktr_intern(n % 3 != 0 ? "all" : "third"));
		CTR1(KTR_VM, "never %u", evaluate(n));
		CTR6(KTR_PROC, "six %u %d %#lx %c %s %p", evaluate(n), -1, ~0ul, 'x', "text", NULL);
		if (n % EVERY == 0)
			trace_flush();
	}
	if (evaluated != EVENTS)
		fail("a trace point that is off evaluated its parameter");
	cpu_now = 0;
	ktr_verbose_set(1);
	CTR0(KTR_PROC, "printed");
	ktr_verbose_set(0);
	ktr_mask_set(KTR_NET);
	CTR0(KTR_PROC, "masked");
	ktr_mask_set(KTR_PROC);
	suppress_and_resize();
	cpu_now = 1;
	for (unsigned n = 0; n < BURST; n++)
		CTR1(KTR_PROC, "burst %u", n);
	trace_panic();
#ifdef __x86_64__
	cpu_now = 0;
	steps();
#endif
	return 0;
}
