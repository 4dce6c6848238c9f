/*
 * ktr_gen.c - writes small, repeatable streams to standard output, for the tests of ktrdump.
 *
 * usage: ktr_gen sample|mix N|guest N|ticks N|threads N|forks N|enters N|data N|calls N|
 *                entries N|odd|empty|one|loss|wrapped|corrupt|truncated|live|boots|clock
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/control.h"
#include "ktr/image_read.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/stream.h"

#define GEN_HZ 1000000000u

static uint64_t gen_ticks = 1000000;
static uint64_t gen_step = 1000;

static uint64_t
gen_clock(void)
{
	return gen_ticks += gen_step;
}

static void
gen_info(unsigned boot, uint64_t hz)
{
	static struct ktr_info info = {.arch = "x86_64",
				       .build = "ktr_gen",
				       .boot_ticks = 1000000,
				       .ncpu = 2};
	info.hz = hz;
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

/* Data of lengths up to `longest` on two CPUs; the log cuts the longest of all. */
static void
gen_data(unsigned long longest)
{
	static const unsigned lengths[] = {0, 1, 39, 40, 41, 254, 255, 256, 1000, 4000, 5000};
	static char args[5000];
	for (unsigned i = 0; i < sizeof(args); i++)
		args[i] = "/bin/cat -n \"file\" \t"[i % 20];
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && lengths[i] <= longest;
	     i++) {
		gen_run_on(i % 2, 7 + i % 2);
		CTR_DATA4(KTR_PROC, "exec: pid %u name %s entry %#lx argc %u args %s", i,
			  "/bin/cat", 0x400000ul, 3u, args, lengths[i]);
		CTR1(KTR_PROC, "next %u", i);
	}
	CTR_DATA0(KTR_PROC, "ends at the zero byte: %s", "here\0not", 8);
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
gen_switch(uint32_t next, int prio)
{
	ktr_host_tid = next;
	KTR_STATE1(KTR_SCHED, "thread", ktr_thread_ident(next), "running", "prio:%d", prio);
}

/* An interrupt, here in the idle thread. It wakes a sleeping thread if `wakes` is not 0. */
static void
gen_interrupt(unsigned vector, const char *name, uint32_t wakes)
{
	const char *self = ktr_thread_ident(ktr_host_tid);
	CTR4(KTR_INTR, "interrupt enter: vector %#x name %s pc %#lx user %d", vector, name,
	     0xffffffff80001234ul, 0);
	if (wakes != 0) {
		KTR_POINT1(KTR_SCHED, "thread", self, "wokeup", KTR_ATTR_LINKED,
			   ktr_thread_ident(wakes));
		KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(wakes), "runq add", "prio:%d", 20,
			   KTR_ATTR_LINKED, self);
	}
	CTR1(KTR_INTR, "interrupt exit: vector %#x", vector);
}

#define GEN_CALL(name, arg0, arg1, arg2)                                                       \
	CTR6(KTR_SYSC,                                                                         \
	     "syscall " #name ": arg0 %#lx arg1 %#lx arg2 %#lx arg3 %#lx arg4 %#lx arg5 %#lx", \
	     (unsigned long)(arg0), (unsigned long)(arg1), (unsigned long)(arg2), 0ul, 0ul, 0ul)

/* A process, from fork to exit. */
static void
gen_process(uint32_t parent, uint32_t child)
{
	GEN_CALL(fork, 0, 0, 0);
	ktr_thread_name(child, "load");
	CTR2(KTR_PROC, "thread create: tid %u name %s", child, "load");
	CTR3(KTR_PROC, "fork: parent %u child %u name %s", parent, child, "load");
	KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(child), "runq add", "prio:%d", 30,
		   KTR_ATTR_LINKED, ktr_thread_ident(parent));
	CTR1(KTR_SYSC, "sysret fork: ret %ld", (long)child);
	KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(parent), "blocked", "prio:%d", 20,
		   "lockname:\"%s\"", "proc");
	gen_switch(child, 30);
	GEN_CALL(execve, 0x4000, 0x5000, 0x6000);
	ktr_thread_name(child, "a \"long\" name of a program");
	CTR4(KTR_PROC, "exec: pid %u name %s entry %#lx argc %u", child, "/bin/true", 0x400000ul,
	     1u);
	GEN_CALL(trace_me, 1, 2, 3);
	CTR1(KTR_SYSC, "sysret trace_me: ret %ld", -38l);
	GEN_CALL(exit, 1, 0, 0);
	CTR3(KTR_PROC, "exit: pid %u status %#x name %s", child, 0x100, "true");
	CTR1(KTR_PROC, "thread exit: tid %u", child);
	KTR_STATE1(KTR_SCHED, "thread", ktr_thread_ident(child), "thread exit", "prio:%d", 30);
	gen_switch(parent, 20);
}

/*
 * The events of the kernel's own trace points: two CPUs, each with an idle thread and a working
 * one.
 */
static void
gen_guest(unsigned long rounds, bool drains)
{
	static uint32_t child = 100; /* each thread has another number */
	gen_step = 700;
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		ktr_thread_name(1 + cpu, cpu == 0 ? "idle/0" : "idle/1");
		gen_run_on(cpu, 1 + cpu);
		gen_switch(1 + cpu, 255);
	}
	for (unsigned long n = 0; n < rounds; n++) {
		uint32_t cpu = n % 2, tid = 7 + cpu;
		gen_run_on(cpu, 1 + cpu);
		gen_ticks += (n * 7919) % 100000;
		gen_interrupt(0x20, "timer", 0);
		gen_ticks += (n * 104729) % 50000;
		gen_interrupt(0x24, "uart", tid);
		gen_switch(tid, 20);
		if (n >= 2)
			CTR1(KTR_SYSC, "sysret read: ret %ld", 5000000000l + (long)n);
		GEN_CALL(openat, -100, 0x7fff1000, 0);
		CTR1(KTR_SYSC, "sysret openat: ret %ld", n % 3 == 0 ? -2l : 3l);
		if (n % 16 == 3)
			gen_process(tid, child++);
		gen_interrupt(0x20, "timer", 0);
		GEN_CALL(read, 3, 0x7fff2000, 4096);
		KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(tid), "sleep", "prio:%d", 20,
			   "wmesg:\"%s\"", "ttyin");
		gen_switch(1 + cpu, 255);
		if (drains && n % 64 == 0)
			gen_drain();
	}
}

/* Functions of the kernel, whose entries and returns have the texts of kernel/probe's mkfbt. */
static void
vnode_ref(uint64_t vnode)
{
	CTR1(KTR_GEN, "-> vnode_ref(vnode %p)", (void *)(uintptr_t)vnode);
	CTR1(KTR_GEN, "<- vnode_ref+%#x", 0x11);
}

static int
vfs_open(uint64_t path, int flags, bool lost)
{
	CTR2(KTR_GEN, "-> vfs_open(path %p, flags %d)", (void *)(uintptr_t)path, flags);
	vnode_ref(path);
	if (flags > 0)
		vfs_open(path, flags - 1, false);
	if (!lost)
		CTR2(KTR_GEN, "<- vfs_open+%#x = %d", 0x6c, -flags);
	return -flags;
}

static void
timer_interrupt(void)
{
	CTR0(KTR_GEN, "-> timer_interrupt()");
	gen_ticks += 300;
	CTR1(KTR_GEN, "<- timer_interrupt+%#x", 0x40);
}

/* The thread sleeps within a function; another one runs meanwhile. */
static void
sleepq_wait(uint32_t tid, uint32_t next)
{
	CTR0(KTR_GEN, "-> sleepq_wait()");
	KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(tid), "sleep", "prio:%d", 20,
		   "wmesg:\"%s\"", "ttyin");
	gen_switch(next, 20);
	vnode_ref(next);
	KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(tid), "runq add", "prio:%d", 20,
		   KTR_ATTR_LINKED, ktr_thread_ident(next));
	gen_switch(tid, 20);
	CTR2(KTR_GEN, "<- sleepq_wait+%#x = %d", 0x99, 0);
}

static void
syscall_entry(unsigned long n, uint32_t tid)
{
	CTR0(KTR_GEN, "-> syscall_entry()");
	GEN_CALL(openat, -100, 0x7fff1000, 0);
	vfs_open(0x7fff1000 + n, (int)(n % 3), n % 8 == 5);
	CTR4(KTR_INTR, "interrupt enter: vector %#x name %s pc %#lx user %d", 0x20, "timer",
	     0xffffffff80001234ul, 0);
	timer_interrupt();
	CTR1(KTR_INTR, "interrupt exit: vector %#x", 0x20);
	sleepq_wait(tid, 17 + tid);
	CTR1(KTR_SYSC, "sysret openat: ret %ld", 3l);
	CTR2(KTR_GEN, "<- syscall_entry+%#x = %d", 0x80, 3);
}

static void
fork_return(void)
{
	CTR2(KTR_GEN, "<- fork_return+%#x = %d", 0x20, 0);
}

/*
 * Functions outside and inside of system calls and interrupts, within themselves, in a thread that
 * sleeps, with a return that is missing now and then, and one without its entry.
 */
static void
gen_calls(unsigned long rounds)
{
	gen_step = 50;
	ktr_thread_name(24, "cat");
	ktr_thread_name(25, "wc");
	gen_run_on(0, 7);
	fork_return();
	for (unsigned long n = 0; n < rounds; n++) {
		gen_ticks += n * 7919 % 3000;
		gen_run_on(n % 2, 7 + n % 2);
		syscall_entry(n, 7 + n % 2);
	}
}

static void
file_read(uint64_t n)
{
	CTR2(KTR_GEN, "-> file_read(f %p, n %lu)", (void *)0x1000ul, n);
}

/* Functions of which only the entries are on. */
static void
gen_entries(unsigned long rounds)
{
	gen_run_on(0, 7);
	for (unsigned long n = 0; n < rounds; n++) {
		CTR1(KTR_GEN, "-> gen_entries(n %lu)", n);
		if (n % 3 == 0)
			file_read(n);
		if (n % 40 == 39)
			gen_switch(7 + n / 40 % 2, 20);
		if (n % 2048 == 2047)
			gen_drain();
	}
}

/*
 * Beginnings of interrupts without their ends, as if the class of the ends were off. Two threads
 * alternate.
 */
static void
gen_enters(unsigned long interrupts)
{
	gen_step = 700;
	gen_run_on(0, 7);
	for (uint32_t n = 0; n < interrupts; n++) {
		CTR4(KTR_INTR, "interrupt enter: vector %#x name %s pc %#lx user %d", n % 3,
		     n % 3 == 0 ? "timer" : "uart", 0ul, 0);
		if (n % 20 == 13)
			gen_switch(7 + n / 20 % 2, 20);
	}
}

/* Many processes, each with a number of its own, of which few live at a time. */
static void
gen_forks(unsigned long forks)
{
	gen_step = 700;
	for (uint32_t n = 0; n < forks; n++) {
		uint32_t cpu = n % 2, child = 100 + n;
		gen_run_on(cpu, 7 + cpu);
		gen_process(7 + cpu, child);
		ktr_thread_gone(child);
		if (n % 16 == 0)
			gen_drain();
	}
}

/* A statistics clock of 100 Hz on both CPUs, and a counter of the load of each. */
static void
gen_statclock(unsigned long ticks)
{
	gen_step = 100;
	for (unsigned long n = 0; n < ticks; n++) {
		gen_ticks = (n + 1) * 10000000;
		for (uint32_t cpu = 0; cpu < 2; cpu++) {
			const char *load = cpu == 0 ? "CPU 0 load" : "CPU 1 load";
			const char *self = ktr_thread_ident(7 + cpu);
			gen_run_on(cpu, 7 + cpu);
			KTR_POINT2(KTR_SCHED, "thread", self, "statclock", "prio:%d", 20,
				   "stathz:%d", 100);
			KTR_COUNTER0(KTR_SCHED, "load", ktr_intern(load), (int)(n % 3));
			KTR_COUNTER0(KTR_SCHED, "nothing", ktr_intern("never above 0"), 0);
			KTR_STATE0(KTR_SCHED, "thread", self, "running");
		}
		gen_drain();
	}
}

/* More threads than fit into a reader's table. */
static void
gen_threads(unsigned long threads)
{
	for (uint32_t n = 0; n < threads; n++) {
		gen_run_on(n % 2, 1000 + n);
		CTR1(KTR_GEN, "thread: number %u", n);
		if (n % 64 == 0)
			gen_drain();
	}
}

/* Names and texts with quotes, control characters and bytes that are not UTF-8. */
static void
gen_odd(void)
{
	static const char *const odd[] = {"\"q\" \\ 'a' {b} %d, <&>",
					  "tab\tnew\nline\x1b[31m\x7f",
					  "Zürich 東京 für alle",
					  "\xff\xfe not UTF-8 \xc3",
					  "",
					  "a;b c|d $e `f`",
					  "lock 3",
					  "a number of many digits"};
	for (uint32_t n = 0; n < sizeof(odd) / sizeof(odd[0]); n++) {
		const char *text = ktr_intern(odd[n]);
		uint32_t tid = n < 7 ? 20 + n : 987654321;
		ktr_thread_name(tid, odd[n]);
		gen_run_on(n % 2, tid);
		gen_switch(tid, 10);
		CTR2(KTR_GEN, "odd: text %s number %u", text, n);
		CTR4(KTR_INTR, "interrupt enter: vector %#x name %s pc %#lx user %d", n, text, 0ul,
		     1);
		CTR1(KTR_INTR, "interrupt exit: vector %#x", n);
		CTR4(KTR_PROC, "exec: pid %u name %s entry %#lx argc %u", tid, text, 0ul, 1u);
		KTR_STATE2(KTR_SCHED, "thread", ktr_thread_ident(tid), "sleep", "prio:%d", 10,
			   "wmesg:\"%s\"", text);
	}
	CTR1(KTR_GEN, "sched_switch: event %u, string", 1u);
	CTR3(KTR_GEN, "sys_enter_read: string %u int %u struct %u", 1u, 2u, 3u);
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

/* A reader that reads rarely: the rings are overwritten between two reads. */
static void
gen_wrapped(void)
{
	for (unsigned i = 0; i < 2; i++) {
		gen_guest(50000, false);
		gen_drain();
	}
}

static bool
gen_read_memory(void *arg, uint64_t va, void *buf, size_t n)
{
	memcpy(buf, (const void *)(uintptr_t)va, n);
	return true;
}

/* An entry with an impossible site, as a reset may leave it. */
static void
gen_corrupt(void)
{
	static struct ktr_image image;
	static uint8_t buf[4096];
	char err[200];
	size_t n;
	/* The program's own constants, in place of a kernel's. */
	extern const char __executable_start[], __data_start[];
	ktr_image_add_text(__executable_start, (size_t)(__data_start - __executable_start));
	gen_run_on(0, 7);
	CTR0(KTR_GEN, "whole");
	CTR0(KTR_GEN, "damaged");
	struct ktr_ring *ring = ktr_log_ring(&ktr_main, 0);
	ktr_ring_slot(ring, ktr_ring_head(ring) - 1)->site ^= 1;
	CTR0(KTR_GEN, "whole again");
	if (ktr_image_open(&image, gen_read_memory, NULL, (uintptr_t)ktr_image, err, sizeof(err)) !=
	    0) {
		fprintf(stderr, "ktr_gen: %s\n", err);
		exit(1);
	}
	while ((n = ktr_image_stream(&image, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, n, stdout);
	exit(fflush(stdout) != 0); /* the rest of the log is not drained */
}

/* The rate of the clock becomes known only after some events. */
static void
gen_clock_found(void)
{
	gen_mix(300000);
	gen_info(1, GEN_HZ);
	gen_mix(300000);
}

static void
gen_boot(unsigned boot)
{
	gen_info(boot, GEN_HZ);
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
	gen_info(1, strcmp(kind, "clock") == 0 ? 0 : GEN_HZ);
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
	else if (strcmp(kind, "guest") == 0 && argc > 2)
		gen_guest(strtoul(argv[2], NULL, 0), true);
	else if (strcmp(kind, "ticks") == 0 && argc > 2)
		gen_statclock(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "threads") == 0 && argc > 2)
		gen_threads(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "forks") == 0 && argc > 2)
		gen_forks(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "clock") == 0)
		gen_clock_found();
	else if (strcmp(kind, "enters") == 0 && argc > 2)
		gen_enters(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "data") == 0 && argc > 2)
		gen_data(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "calls") == 0 && argc > 2)
		gen_calls(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "entries") == 0 && argc > 2)
		gen_entries(strtoul(argv[2], NULL, 0));
	else if (strcmp(kind, "odd") == 0)
		gen_odd();
	else if (strcmp(kind, "one") == 0)
		CTR1(KTR_GEN, "one: event %d", 1);
	else if (strcmp(kind, "wrapped") == 0)
		gen_wrapped();
	else if (strcmp(kind, "loss") == 0)
		gen_loss();
	else if (strcmp(kind, "corrupt") == 0)
		gen_corrupt();
	else if (strcmp(kind, "sample") == 0 || strcmp(kind, "live") == 0 ||
		 strcmp(kind, "truncated") == 0)
		gen_events();
	else if (strcmp(kind, "empty") != 0)
		return 2;
	gen_drain();
	if (strcmp(kind, "truncated") == 0)
		gen_events();
	if (strcmp(kind, "live") != 0)
		gen_close(strcmp(kind, "truncated") == 0);
	return 0;
}
