/*
 * probed.c - what probes of programs must not change: run while probes are at the functions
 * probed_*, at every instruction of them. Prints how often they were called.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define THREADS 4
#define DEPTH   100
#define NOIPA   __attribute__((noipa))
#define PAGE    4096ul

static atomic_ulong leafs, handled, alone, tails, sums;
static sigjmp_buf back;
static void *volatile fault_at, *volatile fault_pc;
static volatile sig_atomic_t traps;
static uint8_t bad_page[PAGE] __attribute__((aligned(4096)));

NOIPA static unsigned long
probed_leaf(unsigned long a, unsigned long b)
{
	unsigned long sum = a * 3;

	for (unsigned i = 0; i < 3; i++)
		sum += (b >> i) % 7 == 0 ? sum >> 5 : ~b;
	return sum;
}

/* Without data of its own, and without calls: it runs wherever it is mapped. */
NOIPA static __attribute__((aligned(64))) unsigned long
probed_alone(unsigned long a)
{
	return (a ^ a >> 7) * 5 + 1;
}

/* More parameters than registers have room for. */
NOIPA static unsigned long
probed_ten(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e,
	   unsigned long f, unsigned long g, unsigned long h, unsigned long i, unsigned long j)
{
	return a + b * c + d * e + f * g + h * i + j;
}

/* Alone in its page, which is first touched by a child that shares the memory. */
NOIPA static __attribute__((aligned(4096))) unsigned long
probed_shared(unsigned long a)
{
	return a * 3 + 1;
}

/* It ends with a jump to the other function, without optimization, too. */
NOIPA static __attribute__((aligned(4096), optimize("optimize-sibling-calls"))) unsigned long
probed_tail(unsigned long a, unsigned long b)
{
	return probed_leaf(b, a);
}

static unsigned long (*const volatile functions[])(unsigned long, unsigned long) = {probed_leaf,
										    probed_tail};

/* Jumps by a table, calls by pointers in memory and in registers, data near the code, floats. */
NOIPA static unsigned long
probed_sum(unsigned long n, const char *text)
{
	unsigned long sum = strlen(text);
	double f = 0.5;

	for (unsigned long i = 0; i < n; i++) {
		switch (i % 6) {
		case 0:
			sum += functions[i / 6 % 2](i, sum);
			break;
		case 1:
			sum = sum << 3 | sum >> 61;
			break;
		case 2:
			f = f * 1.25 + (double)(sum % 3);
			break;
		case 3:
			sum ^= (unsigned long)(f * 8);
			break;
		case 4:
			sum -= (unsigned long)text[i % 3];
			break;
		default:
			sum = ~sum;
		}
	}
	return sum;
}

/* It calls itself, and is no loop. */
NOIPA static unsigned long
probed_recurse(unsigned n)
{
	return n == 0 ? 1 : probed_recurse(n - 1) * 3 + n;
}

NOIPA static void
probed_jump(unsigned n)
{
	if (n == 0)
		siglongjmp(back, 1);
	probed_jump(n - 1);
	atomic_fetch_add(&alone, 1000000); /* never */
}

NOIPA static int
probed_fault(const int *p)
{
	return *p;
}

/* How often the program calls what is counted: leafs count themselves by their callers. */
static unsigned long
leaf(unsigned long a, unsigned long b)
{
	atomic_fetch_add(&leafs, 1);
	return probed_leaf(a, b);
}

static unsigned long
sum(unsigned long n)
{
	atomic_fetch_add(&sums, 1);
	atomic_fetch_add(&leafs, (n + 5) / 6);
	atomic_fetch_add(&tails, (n + 5) / 6 / 2);
	return probed_sum(n, "abc");
}

NOIPA static void
probed_handler(int sig)
{
	atomic_fetch_add(&handled, 1);
	leaf((unsigned long)sig, 7);
}

static bool
expect(bool good, const char *what)
{
	if (!good)
		printf("wrong: %s\n", what);
	return good;
}

static unsigned turns;

static void *
work(void *arg)
{
	unsigned long first = leaf(1, 2), again = sum(40), deep = probed_recurse(20);
	bool good = true;

	for (unsigned i = 0; i < turns; i++)
		good =
		    good && leaf(1, 2) == first && sum(40) == again && probed_recurse(20) == deep;
	return good ? NULL : arg;
}

NOIPA static bool
threads(void)
{
	pthread_t t[THREADS];
	bool good = true;
	void *r;

	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		good &= pthread_join(t[i], &r) == 0 && r == NULL;
	return good;
}

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	fault_at = info->si_addr;
	fault_pc = (void *)frame_pc(context);
	siglongjmp(back, 1);
}

/* The address of the fault, and that of an instruction in probed_fault(). */
NOIPA static bool
faults(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;
	bool good;

	mprotect(bad_page, PAGE, PROT_NONE);
	sigaction(SIGSEGV, &act, &old);
	for (volatile int i = 0; i < 3; i++)
		if (sigsetjmp(back, 1) == 0)
			probed_fault((int *)(bad_page + 64));
	sigaction(SIGSEGV, &old, NULL);
	mprotect(bad_page, PAGE, PROT_READ | PROT_WRITE);
	good = (uint8_t *)fault_at == bad_page + 64;
	return good && (uintptr_t)fault_pc - (uintptr_t)probed_fault < 32;
}

static void
on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	traps++;
	skip_breakpoint(context);
}

NOIPA static bool
recursion(void)
{
	unsigned long deep = 1;

	for (unsigned i = 1; i <= DEPTH; i++)
		deep = deep * 3 + i;
	return probed_recurse(DEPTH) == deep;
}

static bool
own_breakpoints(void)
{
	struct sigaction act = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, old;

	sigaction(SIGTRAP, &act, &old);
	for (unsigned i = 0; i < 5; i++)
		breakpoint();
	sigaction(SIGTRAP, &old, NULL);
	return traps == 5;
}

static int
child(void *arg)
{
	return sum(40) == (unsigned long)arg && probed_recurse(DEPTH) != 0 ? 7 : 1;
}

NOIPA static bool
forks(void)
{
	unsigned long expected = sum(40);
	bool good = in_child(child, (void *)expected) == 7;
	int status = 0;
	pid_t pid;

	/* the child's calls, which its memory counts */
	atomic_fetch_add(&sums, 1);
	atomic_fetch_add(&leafs, 7);
	atomic_fetch_add(&tails, 3);
	pid = vfork();
	if (pid == 0) {
		leaf(1, 2);
		probed_shared(1);
		_exit(9);
	}
	good &= probed_shared(2) == 7 && probed_shared(3) == 10;
	return good && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 9;
}

/* A second mapping of the program's code: private, changed, moved, shared. */
static bool
maps(void)
{
	uintptr_t at = (uintptr_t)probed_alone & ~(PAGE - 1);
	extern const char __executable_start[];
	int fd = open(linux_test_path(), O_RDONLY);
	off_t offset = (off_t)(at - (uintptr_t)__executable_start);
	unsigned long (*f)(unsigned long), want = probed_alone(9);
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, offset), *q;
	bool good = fd >= 0 && p != MAP_FAILED;
	volatile char touch = good ? *p : 0;

	(void)touch;
	atomic_fetch_add(&alone, 1);
	if (!good)
		return false;
#define CALL(base) (f = (void *)((base) + ((uintptr_t)probed_alone - at)), f(9) == want)
	good = expect(mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0 && CALL(p), "a mapping");
	good &= expect(mprotect(p, PAGE, PROT_READ) == 0 && memcmp(p, (void *)at, 16) != -1000 &&
			   mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0 && CALL(p),
		       "a mapping again");
	q = mremap(p, PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	good &= expect(q != MAP_FAILED && CALL(q), "a mapping that was moved");
	atomic_fetch_add(&alone, 3);
	good &= expect(mprotect(q, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	*(volatile char *)q = *(volatile char *)q;
	good &=
	    expect(mprotect(q, PAGE, PROT_READ | PROT_EXEC) == 0 && CALL(q), "a page of its own");
	good &= expect(munmap(q, 16 * PAGE) == 0, "munmap");
	p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, offset);
	good &= expect(p != MAP_FAILED && CALL(p), "a shared mapping");
	munmap(p, PAGE);
	close(fd);
	return good;
}

int
probed_run(const char *count)
{
	static char stack[64 * 1024];
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction act = {.sa_handler = probed_handler, .sa_flags = SA_RESTART | SA_ONSTACK};
	struct itimerval often = {{0, 2000}, {0, 2000}}, never = {0};
	volatile unsigned jumps = 0;
	bool good;

	turns = (unsigned)atoi(count);
	sigaltstack(&other, NULL);
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	good = expect(threads(), "threads");
	good &= expect(probed_ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 151, "ten parameters");
	for (volatile unsigned i = 0; i < 5; i++)
		if (sigsetjmp(back, 1) == 0)
			probed_jump(10 + i);
		else
			jumps++;
	good &= expect(jumps == 5, "longjmp") & expect(faults(), "faults");
	good &= expect(own_breakpoints(), "breakpoints of its own");
	while (atomic_load(&handled) == 0)
		sum(6);
	setitimer(ITIMER_REAL, &never, NULL);
	/* More calls than a thread's returns are awaited of: their room must not be lost. A handler
	 * that came then would not be counted. */
	good &= expect(recursion(), "recursion");
	if (sigsetjmp(back, 1) == 0)
		probed_jump(DEPTH);
	good &= expect(forks(), "fork") & expect(maps(), "maps");
	printf("probed: %s leaf %lu handler %lu alone %lu tail %lu sum %lu\n",
	       good ? "good" : "bad", leafs, handled, alone, tails, sums);
	return good ? 0 : 1;
}

/* Calls a probed function until somebody kills it. */
int
probed_for_ever(void)
{
	puts("begins");
	fflush(stdout);
	for (;;)
		probed_leaf(1, rand()); /* with a function of the C library */
}
