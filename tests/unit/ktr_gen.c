/*
 * ktr_gen.c - writes small, repeatable streams to standard output, for the tests of ktrdump.
 *
 * usage: ktr_gen sample|mix N|loss|torn|truncated|live|boots
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/control.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/stream.h"

static uint64_t gen_ticks = 1000000;
static uint64_t gen_step = 1000;

static uint64_t
gen_clock(void)
{
	return gen_ticks += gen_step;
}

static void
gen_info(unsigned boot)
{
	static struct ktr_info info = {.arch = "x86_64",
				       .build = "ktr_gen",
				       .hz = 1000000000,
				       .boot_ticks = 1000000,
				       .ncpu = 2};
	memset(info.boot_id, (int)boot, sizeof(info.boot_id));
	ktr_info_set(&info);
}

static struct ktr_stream gen_stream;

static void
gen_drain(void)
{
	static char buf[777];
	size_t n;
	while ((n = ktr_stream_read(&gen_stream, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, n, stdout);
}

static void
gen_close(bool truncated)
{
	ktr_stream_close(&gen_stream, truncated);
	gen_drain();
}

static void
gen_run_on(unsigned cpu, uint32_t tid)
{
	ktr_host_cpu = cpu;
	ktr_host_tid = tid;
}

/* Ten events on two CPUs with every kind of parameter. */
static void
gen_events(void)
{
	static char wild[] = "not read-only";
	gen_run_on(0, 7);
	CTR0(KTR_INIT, "boot");
	CTR2(KTR_PROC, "fork parent %d child %d", 7, 8);
	gen_run_on(1, 8);
	KTR_STATE1(KTR_SCHED, "thread", ktr_thread_ident(8), "running", "prio:%d", 120);
	CTR6(KTR_SYSC, "syscall %d args %#lx %#lx %lu %ld %p", 1, 0x10ul, ~0ul, 3ul, -4l, &wild);
	gen_run_on(0, 7);
	CTR3(KTR_VFS | KTR_VOP, "open \"%s\" mode %c %5.2s", ktr_intern("/etc/motd"), 'r', "abc");
	CTR1(KTR_TRAP, "wild %s", wild);
	CTR1(KTR_TRAP, "null %s", (const char *)NULL);
	TR1("percent 100%% of %llu", 18446744073709551615ull);
	gen_run_on(1, 9);
	CTR1(KTR_SIG, "quote \" and \\ and tab\tand newline\n%d", -1);
	KTR_COUNTER0(KTR_SCHED, "load", ktr_intern("CPU 1 load"), 2);
}

/* A mix of scheduler and system call events, as a busy machine makes it. */
static void
gen_mix(unsigned long events)
{
	gen_step = 0;
	const char *names[] = {"load", "sh", "ktrflush", "idle"};
	uint32_t random = 12345;
	for (unsigned i = 0; i < 8; i++)
		ktr_thread_name(100 + i, names[i % 4]);
	for (unsigned long n = 0; n + 8 <= events; n += 8) {
		random = random * 1664525 + 1013904223;
		uint32_t tid = 100 + (random >> 16) % 8, next = 100 + (random >> 20) % 8;
		uint64_t buf = 0x7ffe12340000ull + (random >> 12) % 65536;
		gen_run_on((random >> 8) % 2, tid);
		gen_ticks += 1000 + (random >> 20);
		CTR6(KTR_SYSC, "enter %d %#lx %#lx %#lx %#lx %#lx", (int)(random >> 28), 3ul, buf,
		     4096ul, 0ul, 0ul);
		gen_ticks += 300;
		CTR2(KTR_LOCK, "acquire %s by %d", "pipe", (int)tid);
		gen_ticks += 200;
		CTR2(KTR_SYSC, "exit %d = %ld", (int)(random >> 28), 4096l);
		gen_ticks += 700;
		KTR_POINT2(KTR_SCHED, "thread", ktr_thread_ident(tid), "wokeup", KTR_ATTR_LINKED,
			   ktr_thread_ident(next), "prio:%d", 120);
		gen_ticks += 150;
		KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(next), "runq add", "prio:%d", 120,
			   KTR_ATTR_LINKED, ktr_thread_ident(tid));
		gen_ticks += 400;
		KTR_STATE3(KTR_SCHED, "thread", ktr_thread_ident(tid), "sleep", "prio:%d", 120,
			   "wmesg:\"%s\"", "piperd", "lockname:\"%s\"", "pipe");
		gen_ticks += 100;
		KTR_STATE1(KTR_SCHED, "thread", ktr_thread_ident(next), "runq rem", "prio:%d", 120);
		gen_ticks += 100;
		ktr_host_tid = next;
		KTR_STATE1(KTR_SCHED, "thread", ktr_thread_ident(next), "running", "prio:%d", 120);
		if (n % 4096 == 0)
			gen_drain();
	}
}

static void
gen_loss(void)
{
	gen_run_on(0, 7);
	CTR1(KTR_GEN, "before %d", 1);
	gen_drain();
	for (int i = 0; i < 5000; i++)
		CTR1(KTR_GEN, "many %d", i);
}

static jmp_buf gen_jump;

static void
gen_tear(enum ktr_host_step step)
{
	if (step == KTR_HOST_CLAIMED)
		longjmp(gen_jump, 1);
}

static void
gen_torn(void)
{
	gen_run_on(0, 7);
	CTR0(KTR_GEN, "whole");
	if (setjmp(gen_jump) == 0) {
		ktr_host_interrupt = gen_tear;
		CTR0(KTR_GEN, "torn");
	}
	ktr_host_interrupt = NULL;
	CTR0(KTR_GEN, "whole again");
}

static void
gen_boot(unsigned boot)
{
	gen_info(boot);
	ktr_stream_open(&gen_stream, KTR_STREAM_ACCOUNT);
	gen_events();
	gen_drain();
	gen_close(false);
}

int
main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	ktr_host_clock = gen_clock;
	ktr_host_cpus = 2;
	gen_info(1);
	ktr_cpu_init(0);
	ktr_cpu_init(1);
	ktr_mask_set(KTR_ALL);
	ktr_thread_name(7, "sh");
	ktr_thread_name(8, "load");
	if (strcmp(kind, "boots") == 0) {
		gen_boot(1);
		gen_boot(2);
		return 0;
	}
	ktr_stream_open(&gen_stream,
			strcmp(kind, "live") == 0 ? KTR_STREAM_LIVE : KTR_STREAM_ACCOUNT);
	if (strcmp(kind, "mix") == 0 && argc > 2)
		gen_mix(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "loss") == 0)
		gen_loss();
	else if (strcmp(kind, "torn") == 0)
		gen_torn();
	else if (strcmp(kind, "sample") == 0 || strcmp(kind, "live") == 0 ||
		 strcmp(kind, "truncated") == 0)
		gen_events();
	else
		return 2;
	gen_drain();
	if (strcmp(kind, "truncated") == 0)
		gen_events();
	if (strcmp(kind, "live") != 0)
		gen_close(strcmp(kind, "truncated") == 0);
	return 0;
}
