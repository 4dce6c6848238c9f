/*
 * riscv64.c - counts the instructions of a record on riscv64, and of a firing of a D program that
 * counts (BENCH_IMAGE), with the port of ktr/examples/riscv64-virt, whose main.c this file
 * replaces. For `qemu-system-riscv64 -icount`, where minstret is exact.
 */
#include <dif.h>

#define UART     (*(volatile uint8_t *)0x10000000) /* QEMU's UART is never full */
#define TEST     (*(volatile uint32_t *)0x100000)  /* sifive_test: powers off */
#define TEST_END 0x5555u
#define ROUNDS   (40u * KTR_ENTRIES_DEFAULT) /* 40 turns of the ring */

bool harts_go; /* for start.S */

void hart_main(unsigned hart);

static void
print(const char *text)
{
	for (; *text != '\0'; text++)
		UART = (uint8_t)*text;
}

/* Prints a number given in hundredths. */
static void
print_hundredths(uint64_t n)
{
	char text[24], *p = text + sizeof(text);
	*--p = '\0';
	for (unsigned digit = 0; digit < 3 || n != 0; digit++, n /= 10) {
		if (digit == 2)
			*--p = '.';
		*--p = (char)('0' + n % 10);
	}
	print(p);
}

static inline uint64_t
minstret(void)
{
	uint64_t n;
	__asm__ volatile("csrr %0, minstret" : "=r"(n) : : "memory");
	return n;
}

/* Instructions of n rounds, with a trace point in each that may be on. */
static __attribute__((noinline)) uint64_t
rounds(unsigned n)
{
	uint64_t a = n, before = minstret();
	for (unsigned i = 0; i < n; i++) {
		__asm__ volatile("" : "+r"(a));
		CTR6(KTR_GEN, "%lu %lu %lu %lu %lu %lu", a, a, a, a, a, a);
	}
	return minstret() - before;
}

__asm__(".section .rodata\n\t.balign 8\nbench_image: .incbin \"" BENCH_IMAGE
	"\"\nbench_image_end:\n\t.previous");
extern const char bench_image[], bench_image_end[];

/* Prints a row of what a round takes more than with the trace point off, if all were counted. */
static void
row(const char *name, uint64_t on, uint64_t off, bool good)
{
	if (!good)
		return;
	print("bench ");
	print(name);
	print(" ");
	/* The patched instruction counts in both loops: as a jump or as a no-op. */
	print_hundredths((on - off) * 100 / ROUNDS);
	print(" instructions\n");
}

static void
count_firings(uint64_t off)
{
	struct dif_status s = {.state = DIF_EMPTY};
	const char *why;
	uint32_t matched;
	uint64_t on = 0;
	if (dif_session_load(bench_image, (size_t)(bench_image_end - bench_image), &matched,
			     &why) == 0 &&
	    dif_session_start() == 0)
		on = rounds(ROUNDS);
	dif_session_status(&s);
	row("dtrace_count", on, off, s.completed == ROUNDS);
}

void
hart_main(unsigned hart)
{
	(void)hart;
	harts[0].ring = &ktr_boot_ring.ring;
	uint64_t off = rounds(ROUNDS);
	ktr_mask_set(KTR_GEN);
	if (ktr_cpu_init(0) == 0) {
		uint64_t on = rounds(ROUNDS);
		struct ktr_stats stats;
		ktr_stats_get(0, &stats);
		row("ctr6", on, off, stats.recorded == ROUNDS);
	}
	ktr_mask_set(0);
	count_firings(off);
	TEST = TEST_END;
	for (;;)
		;
}
