/*
 * small.c - records at 600 trace points on eight CPUs, by twenty threads, in the smallest log, and
 * writes the stream to standard output. Of names and texts there are more than the log and its
 * encoder have room for.
 */
#include <ktr_port.h>
#include <stdio.h>
#include <stdlib.h>

#include "ktr/control.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/stream.h"

#define CPUS    8u
#define THREADS 20u
#define TEXTS   20u
#define FIRST   100u

/* X for each number that p and one digit, or two, make. */
#define TEN(X, p) X(p##0) X(p##1) X(p##2) X(p##3) X(p##4) X(p##5) X(p##6) X(p##7) X(p##8) X(p##9)
#define HUNDRED(X, p) \
	TEN(X, p##0)  \
	TEN(X, p##1)  \
	TEN(X, p##2)  \
	TEN(X, p##3)  \
	TEN(X, p##4) TEN(X, p##5) TEN(X, p##6) TEN(X, p##7) TEN(X, p##8) TEN(X, p##9)

#define TEXT(n) #n " is the number of a text that has more than forty-seven characters",
static const char *const texts[TEXTS] = {TEN(TEXT, 1) TEN(TEXT, 2)};

unsigned small_cpu;
uint32_t small_tid = 1;
uint64_t small_clock;
static unsigned number = FIRST, count;
static struct ktr_stream stream;

static void
fail(const char *why)
{
	fprintf(stderr, "small: %s\n", why);
	exit(1);
}

static void
flush(void)
{
	static uint8_t buf[512];
	size_t n;
	while ((n = ktr_stream_read(&stream, buf, sizeof(buf))) > 0) {
		if (fwrite(buf, 1, n, stdout) != n)
			fail("standard output: cannot write");
	}
}

/* The next event is another CPU's and another thread's. */
static void
next(void)
{
	number++;
	count++;
	small_cpu = count % CPUS;
	small_tid = 1 + count % THREADS;
	if (count % 200 == 0)
		flush();
}

#define SITE(n)                                                                          \
	CTR2(KTR_PROC, "site " #n ": number %u text %s", number, texts[number % TEXTS]); \
	next();

static void
record(void)
{
	number = FIRST;
	HUNDRED(SITE, 1)
	HUNDRED(SITE, 2)
	HUNDRED(SITE, 3)
	HUNDRED(SITE, 4)
	HUNDRED(SITE, 5)
	HUNDRED(SITE, 6)
}

int
main(void)
{
	static const struct ktr_info info = {.arch = "host",
					     .build = "small",
					     .hz = 1,
					     .ncpu = CPUS};
	unsigned owners = 0;
	char name[8];
	if (!ktr_names_sound(ktr_names_get(), sizeof(struct ktr_names)))
		fail("two sizes of struct ktr_names");
	while (ktr_owner_register("an owner", NULL) >= 0)
		owners++;
	if (owners != KTR_OWNER_MAX - 2)
		fail("another number of owners than KTR_OWNER_MAX");
	ktr_info_set(&info);
	ktr_mask_set(KTR_PROC);
	for (unsigned cpu = 1; cpu < CPUS; cpu++) {
		/* Some of the new rings fit. They are given back, or the next ones would not. */
		if (cpu == 3 && ktr_resize(2 * ktr_entries_get()) != -KTR_ENOMEM)
			fail("there is memory for larger rings");
		if (ktr_cpu_init(cpu) != 0)
			fail("a ring takes more memory than ktr/README.md says");
	}
	for (unsigned tid = 1; tid <= THREADS; tid++) {
		snprintf(name, sizeof(name), "t%u", tid);
		ktr_thread_name(tid, name);
	}
	ktr_stream_open(&stream, KTR_STREAM_ACCOUNT);
	record();
	record();
	CTR6(KTR_PROC, "%s %s %s %s %s %s", texts[0], texts[1], texts[2], texts[3], texts[4],
	     texts[5]);
	flush();
	ktr_stream_close(&stream, false);
	flush();
	return 0;
}
