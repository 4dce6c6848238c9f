/*
 * clock.c - measures the rates of the time-stamp counter and the APIC timer against the 8254 (its
 * data sheet; 1,193,182 Hz), runs the one-shot timer, and reads the real-time clock.
 */
#include "arch/clock.h"
#include "arch/pio.h"
#include "arch/x86_64/x86.h"
#include "kernel/lib/panic.h"

#define PIT_HZ 1193182ul

static uint64_t tsc_hz = 1000000000; /* a guess until measured */
static uint64_t apic_hz = 62500000;

uint64_t
arch_clock_hz(void)
{
	return tsc_hz;
}

struct sample {
	uint64_t tsc, gap;
	uint32_t apic;
	uint32_t pit; /* counts down from 65535 */
};

static uint32_t
pit_read(void)
{
	uint32_t lo;

	arch_pio_out8(0x43, 0x80); /* latch counter 2 */
	lo = arch_pio_in8(0x42);
	return lo | (uint32_t)arch_pio_in8(0x42) << 8;
}

/*
 * Reads all clocks close together. Of several tries, returns the one that took the shortest time.
 */
static struct sample
clock_sample(void)
{
	struct sample best = {.gap = UINT64_MAX};

	for (unsigned i = 0; i < 8; i++) {
		uint64_t t0 = arch_clock_read();
		uint32_t pit = pit_read();
		uint32_t apic = lapic_timer_read();
		uint64_t t1 = arch_clock_read();
		if (t1 - t0 < best.gap)
			best = (struct sample){t0 + (t1 - t0) / 2, t1 - t0, apic, pit};
	}
	return best;
}

/* Lets some microseconds pass. A look at a clock takes long where the machine is virtual. */
static void
clock_pass(void)
{
	for (unsigned i = 0; i < 4096; i++)
		__asm__ volatile("");
}

/* Starts counter 2 from 65535. False: it does not count. */
static bool
pit_start(void)
{
	/* Gate on, speaker off; mode 0, low byte then high byte. */
	arch_pio_out8(0x61, (arch_pio_in8(0x61) & ~2u) | 1);
	arch_pio_out8(0x43, 0xb0);
	arch_pio_out8(0x42, 0xff);
	arch_pio_out8(0x42, 0xff);
	for (unsigned i = 0; i < 1000000; i++)
		if (pit_read() <= 65500) /* the counter loads the new count at its next clock */
			return true;
	return false;
}

/* Has counter 2 been at 0 since its start? From there it goes on at 65535. */
static bool
pit_wrapped(void)
{
	return (arch_pio_in8(0x61) & 0x20) != 0; /* its output, mode 0 */
}

/*
 * Takes two samples at least 1 ms apart, between which the interval timer did not wrap. Its host
 * may not run this CPU, if it is virtual, for longer than the 55 ms after which the timer wraps.
 */
static void
sample_near(struct sample *a, struct sample *b)
{
	for (unsigned tries = 0; tries < 1000; tries++) {
		if (!pit_start())
			panic("the interval timer does not count");
		lapic_timer_start(UINT32_MAX);
		*a = clock_sample();
		do {
			clock_pass();
			*b = clock_sample();
		} while (a->pit - b->pit < PIT_HZ / 1000 && !pit_wrapped());
		if (!pit_wrapped())
			return;
	}
	panic("the interval timer wrapped within 1 ms in 1000 tries");
}

void
arch_clock_init(void)
{
	struct sample a, b;
	uint64_t tsc, pit, about;

	do {
		sample_near(&a, &b);
		tsc = b.tsc - a.tsc;
		pit = a.pit - b.pit;
		while (arch_clock_read() - a.tsc < 25 * tsc)
			clock_pass();
		b = clock_sample();
		about = (b.tsc - a.tsc) * pit / tsc;
	} while (about > 2 * PIT_HZ); /* again if the counter may have wrapped more than once */
	lapic_timer_start(0);

	/* The near samples tell the ticks to less than half a turn; the counter, the rest. */
	tsc = b.tsc - a.tsc;
	pit = (a.pit - b.pit) & 0xffff;
	pit += (about + 0x8000 - pit) & ~0xffffull;
	tsc_hz = tsc * PIT_HZ / pit;
	apic_hz = (uint64_t)(a.apic - b.apic) * PIT_HZ / pit;
}

void
arch_timer_set(uint64_t delta_ns)
{
	uint64_t count;

	count = delta_ns * (apic_hz / 1000) / 1000000;
	lapic_timer_start(count == 0 ? 1 : (uint32_t)count);
}

/* ---- the real-time clock (MC146818 data sheet) --------------------------------------------- */

#define RTC_FIELDS 6 /* year, month, day, hours, minutes, seconds */
#define RTC_B      0x0b
#define RTC_B_BIN  4u /* binary, not BCD */
#define RTC_B_24   2u /* hours from 0 to 23; else from 1 to 12, with bit 7 in the afternoon */

static unsigned
cmos_read(uint8_t reg)
{
	arch_pio_out8(0x70, reg);
	return arch_pio_in8(0x71);
}

static unsigned
rtc_number(unsigned v, unsigned b)
{
	return (b & RTC_B_BIN) != 0 ? v : v / 16 * 10 + v % 16;
}

uint64_t
arch_rtc_read(void)
{
	static const uint8_t reg[RTC_FIELDS] = {9, 8, 7, 4, 2, 0};
	static const unsigned before[12] = {0,   31,  59,  90,  120, 151,
					    181, 212, 243, 273, 304, 334}; /* days, by month */
	unsigned v[RTC_FIELDS], b = cmos_read(RTC_B), pm, days;
	bool same = false;

	/* Two equal readings: no second ended in between. */
	for (unsigned i = 0; i < RTC_FIELDS; i++)
		v[i] = 0;
	for (unsigned tries = 0; !same && tries < 10; tries++) {
		same = true;
		for (unsigned i = 0; i < RTC_FIELDS; i++) {
			unsigned now = cmos_read(reg[i]);
			same &= now == v[i];
			v[i] = now;
		}
	}
	pm = (b & RTC_B_24) == 0 && (v[3] & 0x80) != 0 ? 12 : 0;
	v[3] &= 0x7f;
	for (unsigned i = 0; i < RTC_FIELDS; i++)
		v[i] = rtc_number(v[i], b);
	if ((b & RTC_B_24) == 0)
		v[3] = v[3] % 12 + pm;
	if (!same || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 || v[3] > 23)
		return 0;
	/* 2000 to 2099, where each fourth year is a leap year; 10957 days from 1970. */
	days = 10957 + v[0] * 365 + (v[0] + 3) / 4 + before[v[1] - 1] + v[2] - 1;
	days += v[0] % 4 == 0 && v[1] > 2;
	return ((days * 24ul + v[3]) * 60 + v[4]) * 60 + v[5];
}
