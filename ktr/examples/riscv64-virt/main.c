/*
 * main.c - harts that record from a loop and from the timer interrupt that comes into it, while
 * hart 0 writes the stream to the UART: an example of the log in a program that is no kernel yet.
 * With -DTRACED hart 0 answers dtrace there instead, and all of them loop for ever.
 *
 * Machine: QEMU's `virt` (hw/riscv/virt.c), all in M-mode. Locking: none but the log's own.
 */
#include <ktr.h>
#ifdef TRACED
#include <dif.h>
#else
#define TRACED 0
#endif

#define UART    ((volatile uint8_t *)0x10000000) /* 16550 */
#define RTC     ((volatile uint32_t *)0x101000)  /* goldfish: ns since 1970, low half first */
#define CLINT   ((volatile uint64_t *)0x2000000) /* mtimecmp of hart n at 0x4000 + 8 n */
#define TEST    (*(volatile uint32_t *)0x100000) /* sifive_test: ends the machine */
#define TIME_HZ 10000000u

#define UART_LSR      5
#define UART_LSR_DR   0x01
#define UART_LSR_THRE 0x20
#define MTIMECMP      (0x4000 / 8)
#define TEST_PASS     0x5555u
#define TEST_FAIL     0x3333u /* status in the upper half */

#define LOOPS  1000u /* of each hart, at least */
#define TICKS  20u   /* … and timer interrupts */
#define PACE   200u  /* mtime ticks that a loop takes: 20 us */
#define PERIOD 1000u /* … between timer interrupts */
#define BURST  (KTR_ENTRIES_DEFAULT + 1000u)
#define DRAIN  256u /* events that are worth a pass */

#define MCAUSE_TIMER 0x8000000000000007ull
#define MIE_MTIE     0x80ul

#define CSR_READ(csr)                                          \
	__extension__({                                        \
		uint64_t v_;                                   \
		__asm__ volatile("csrr %0, " #csr : "=r"(v_)); \
		v_;                                            \
	})
#define CSR_SET(csr, bits)   __asm__ volatile("csrs " #csr ", %0" : : "r"(bits) : "memory")
#define CSR_CLEAR(csr, bits) __asm__ volatile("csrc " #csr ", %0" : : "r"(bits) : "memory")
#define CSR_WRITE(csr, v)    __asm__ volatile("csrw " #csr ", %0" : : "r"(v) : "memory")

/* atomic: hart 0 has made the rings. Not in .bss, which hart 0 clears while others look at it. */
bool harts_go __attribute__((section(".data")));

static struct ktr_stream stream;

void hart_main(unsigned hart);

static void
machine_end(unsigned status)
{
	TEST = status == 0 ? TEST_PASS : status << 16 | TEST_FAIL;
	for (;;)
		;
}

static void
timer_arm(void)
{
	CLINT[MTIMECMP + (this_hart - harts)] = ktr_port_time() + PERIOD;
}

static __attribute__((interrupt("machine"), aligned(4))) void
trap(void)
{
	uint64_t pc = CSR_READ(mepc);
	if (CSR_READ(mcause) != MCAUSE_TIMER)
		machine_end(1);
	this_hart->ticks++;
	CTR2(KTR_INTR, "tick %u pc %p", this_hart->ticks, (void *)pc);
	timer_arm();
#if TRACED
	dif_tick(pc, false);
#endif
}

static void
uart_write(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		while ((UART[UART_LSR] & UART_LSR_THRE) == 0)
			;
		UART[0] = bytes[i];
	}
}

#if TRACED
void
dif_port_send(const void *bytes, size_t n)
{
	uart_write(bytes, n);
}

/* Gives what has come to dif.c, which answers. */
static void
drain(void)
{
	while ((UART[UART_LSR] & UART_LSR_DR) != 0)
		dif_serve_byte(UART[0]);
}
#else
/* Writes one pass of the stream. */
static void
drain(void)
{
	static uint8_t buf[1024];
	size_t n;
	while ((n = ktr_stream_read(&stream, buf, sizeof(buf))) > 0)
		uart_write(buf, n);
}
#endif

/* Returns how often it went round. */
static unsigned
record_loop(void)
{
	unsigned n = 0;
	for (; TRACED || n < LOOPS || *(volatile uint32_t *)&this_hart->ticks < TICKS; n++) {
		uint64_t start = ktr_port_time();
		CTR1(KTR_GEN, "loop %u", n);
		CTR2(KTR_SUBSYS, "half %u of %u", n, LOOPS);
		while (ktr_port_time() - start < PACE)
			;
		hart_pass();
		if (this_hart == harts && n == LOOPS / 2)
			ktr_mask_set(ktr_mask_get() | KTR_SUBSYS);
		if (this_hart == harts && (TRACED || ktr_stream_pending(&stream) >= DRAIN))
			drain();
	}
	return n;
}

/* The hart's last event. */
static void
record_done(unsigned loops)
{
	CSR_CLEAR(mie, MIE_MTIE);
	CTR2(KTR_PROC, "done: loops %u ticks %u", loops, this_hart->ticks);
}

static void
boot(void)
{
	uint64_t ns = RTC[0] | (uint64_t)RTC[1] << 32;
	struct ktr_info info = {.arch = "riscv64",
				.build = "ktr/examples/riscv64-virt",
				.hz = TIME_HZ,
				.boot_ticks = ktr_port_time(),
				.ncpu = HARTS};
	for (unsigned i = 0; i < sizeof(ns); i++)
		info.boot_id[i] = (uint8_t)(ns >> 8 * i);
	for (unsigned i = 0; i < HARTS; i++) {
		harts[i].ring = i == 0 ? &ktr_boot_ring.ring : &ktr_ring_none;
		harts[i].tid = i + 1;
		ktr_thread_name(i + 1, i == 0 ? "drain" : "loop");
	}
	ktr_mask_set(KTR_GEN | KTR_INTR | KTR_PROC);
	CTR1(KTR_GEN, "boot: %s, no ring yet", info.arch);
	ktr_info_set(&info);
	for (unsigned i = 0; i < HARTS; i++)
		if (ktr_cpu_init(i) < 0)
			machine_end(2);
	ktr_stream_open(&stream, KTR_STREAM_ACCOUNT);
	/* release: the other harts find all this done */
	__atomic_store_n(&harts_go, true, __ATOMIC_RELEASE);
}

/* Hart 0: waits for the others, records more than a ring holds, and ends the stream. */
static void
finish(unsigned loops)
{
	for (unsigned i = 1; i < HARTS; i++)
		while (__atomic_load_n(&harts[i].state, __ATOMIC_ACQUIRE) != HART_DONE)
			drain();
	drain();
	for (unsigned i = 0; i < BURST; i++)
		CTR1(KTR_GEN, "burst %u",
		     i); /* events that nobody drains are lost, and the stream says so */
	record_done(loops);
	drain();
	ktr_stream_close(&stream, false);
	drain();
	machine_end(0);
}

/* Called by start.S, on each hart's own stack; by hart 0 first. */
void
hart_main(unsigned hart)
{
	CSR_WRITE(mtvec, trap);
	if (hart == 0)
		boot();
	/* seq_cst, with what follows: pairs with ktr_port_sync() */
	__atomic_exchange_n(&this_hart->state, HART_RUNS, __ATOMIC_SEQ_CST);
	hart_pass();
	timer_arm();
	CSR_SET(mie, MIE_MTIE);
	CSR_SET(mstatus, MSTATUS_MIE);
	unsigned loops = record_loop();
	if (hart == 0)
		finish(loops);
	record_done(loops);
	/* release: pairs with the acquires in finish() and in ktr_port_sync() */
	__atomic_store_n(&this_hart->state, HART_DONE, __ATOMIC_RELEASE);
	for (;;)
		__asm__ volatile("wfi");
}
