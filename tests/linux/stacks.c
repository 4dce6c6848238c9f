/*
 * stacks.c - what may be executed or read though it was not asked for, stacks for handlers, holes
 * of files. The same on Linux (word "stacks").
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PAGE 4096ul
#define RW   (PROT_READ | PROT_WRITE)
#define COPY "/tmp/linux-test-copy"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

/* A function that only returns. */
#ifdef __x86_64__
static const unsigned char returns[] = {0xc3};
#else
static const unsigned char returns[] = {0xc0, 0x03, 0x5f, 0xd6};
#endif

static unsigned long map_start; /* of what map_at() has found */

/* The rights of the map with this address, and its name. "": none. */
static const char *
map_at(const void *p)
{
	static char found[256];
	unsigned long at = (unsigned long)p, start, end;
	char line[512], rights[8], name[64];
	FILE *f = fopen("/proc/self/maps", "r");

	found[0] = '\0';
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		name[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %63s", &start, &end, rights, name) >= 3 &&
		    start <= at && at < end) {
			snprintf(found, sizeof(found), "%s %s", rights, name);
			map_start = start;
		}
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static sigjmp_buf back;
static void *volatile fault_at;
#ifdef __aarch64__
static volatile unsigned long fault_told; /* of the machine's registers */
#endif

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	fault_at = info->si_addr;
#ifdef __aarch64__
	fault_told = ((ucontext_t *)context)->uc_mcontext.fault_address;
#endif
	siglongjmp(back, sig);
}

static void
catch_faults(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &act, NULL);
}

/* Runs a function that only returns, at this place. 0, or the signal. */
static int
run_at(void *p)
{
	void (*f)(void) = (void (*)(void))p;
	int sig = sigsetjmp(back, 1);

	if (sig == 0)
		f();
	return sig;
}

static void __attribute__((noinline)) use_stack(void)
{
	volatile char deep[256 * PAGE];

	deep[0] = 1;
	(void)deep[0];
}

/* What a program has unmapped at the low end of its stack is there when it needs it. */
static int
stack_grows_again(void *arg)
{
	char here;

	use_stack();
	if (strstr(map_at(&here), "[stack]") == NULL || munmap((void *)map_start, 64 * PAGE) != 0)
		return 1;
	*(volatile char *)(map_start + 64 * PAGE - 5) = 's';
	return strstr(map_at((char *)map_start + 64 * PAGE - 5), "[stack]") == NULL ? 2 : 0;
}

/* An executable of this program as the test wants it: its stack runs, its code is not to be read.
 */
int
stacks_as_executed(void)
{
	unsigned long text = (unsigned long)stacks_as_executed & ~(PAGE - 1);
	extern char etext[];
	unsigned char code[64];
	int good = 0;

	for (; text < (unsigned long)etext; text += PAGE)
		(void)*(volatile char *)text;
	catch_faults();
	memcpy(code, returns, sizeof(returns));
	__builtin___clear_cache((char *)code, (char *)code + sizeof(code));
	good |= run_at(code) == 0 ? 1 : 0;
	good |= strcmp(map_at(code), "rwxp [stack]") == 0 ? 2 : 0;
	good |= personality(0xffffffff) & READ_IMPLIES_EXEC ? 0 : 4;
	return good;
}

/* A copy of this program with other rights of one of its segments. */
static bool
copy_self(unsigned type, unsigned is, unsigned flags)
{
	int from = open(linux_test_path(), O_RDONLY);
	int to = open(COPY, O_RDWR | O_CREAT | O_TRUNC, 0755);
	struct stat st;
	ElfW(Ehdr) * e;
	ElfW(Phdr) * ph;
	bool found = false;

	if (from < 0 || to < 0 || fstat(from, &st) != 0)
		return false;
	e = mmap(NULL, (size_t)st.st_size, RW, MAP_PRIVATE, from, 0);
	if (e == MAP_FAILED)
		return false;
	ph = (ElfW(Phdr) *)((char *)e + e->e_phoff);
	for (int i = 0; i < e->e_phnum; i++)
		if (ph[i].p_type == type && ph[i].p_flags == is) {
			ph[i].p_flags = flags;
			found = true;
		}
	found &= write(to, e, (size_t)st.st_size) == st.st_size;
	munmap(e, (size_t)st.st_size);
	close(from);
	close(to);
	return found;
}

static int
execute_copy(void *arg)
{
	execl(COPY, COPY, "stacks-executed", NULL);
	return 99;
}

/* The stack is writable; with PF_X of PT_GNU_STACK it also runs. */
static bool
stack_runs_if_the_file_asks(void)
{
	bool good = copy_self(PT_GNU_STACK, PF_R | PF_W, PF_R | PF_W | PF_X) &&
		    in_child(execute_copy, NULL) == 7;

	unlink(COPY);
	return good && execute_self("stacks-executed") == 4;
}

/* Where the CPU has no such right, and its kernel knows none. */
static bool
code_can_be_read(void)
{
	int fd = open("/proc/cpuinfo", O_RDONLY);
	static char text[65536];
	bool keys = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, " pku") != NULL;
	bool good =
	    copy_self(PT_LOAD, PF_R | PF_X, PF_X) && (keys || in_child(execute_copy, NULL) == 4);

	close(fd);
	unlink(COPY);
	return good;
}

/* As the C library does for a library that needs it. */
static int
make_stack_run(void *arg)
{
	unsigned char code[64];
	void *page = (void *)((unsigned long)code & ~(PAGE - 1));

	catch_faults();
	memcpy(code, returns, sizeof(returns));
	__builtin___clear_cache((char *)code, (char *)code + sizeof(code));
	if (run_at(code) != SIGSEGV || strncmp(map_at(code), "rw-p", 4) != 0)
		return 1;
	if (mprotect(page, PAGE, RW | PROT_EXEC | PROT_GROWSDOWN) != 0 || run_at(code) != 0)
		return 2;
	/* down to the stack's end */
	return strncmp(map_at(code), "rwxp", 4) == 0 &&
		       strncmp(map_at((char *)page - PAGE), "rwxp", 4) == 0
		   ? 0
		   : 3;
}

static bool
rights_go_down(void)
{
	char *p = mmap(NULL, 8 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *low = mmap(NULL, 8 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	bool good = FAILS(mprotect(p + PAGE, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL) &&
		    FAILS(mprotect(p, PAGE, PROT_READ | PROT_GROWSUP), EINVAL) &&
		    FAILS(mprotect(low, PAGE, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP), EINVAL) &&
		    FAILS(mprotect(p, PAGE, PROT_READ | 0x40), EINVAL) &&
		    mprotect(p, PAGE, PROT_READ | 8 /* PROT_SEM */) == 0 &&
		    strncmp(map_at(p), "r--p", 4) == 0;

	good &= mprotect(low + 4 * PAGE, PAGE, PROT_READ | PROT_GROWSDOWN) == 0 &&
		strncmp(map_at(low), "r--p", 4) == 0 &&
		strncmp(map_at(low + 4 * PAGE), "r--p", 4) == 0 &&
		strncmp(map_at(low + 5 * PAGE), "rw-p", 4) == 0;
	munmap(low, 8 * PAGE);
	munmap(p, 8 * PAGE);
	/* mmap() does not look at what it does not know */
	p = mmap(NULL, PAGE, PROT_READ | 8 | 0x40 | PROT_GROWSDOWN, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	good &= p != MAP_FAILED && strncmp(map_at(p), "r--p", 4) == 0;
	munmap(p, PAGE);
	return good;
}

static int
read_is_exec(void *arg)
{
	char *p = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q, *heap;
	bool good = strncmp(map_at(p), "rw-p", 4) == 0;

	personality(READ_IMPLIES_EXEC);
	q = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	good &= strncmp(map_at(q), "r-xp", 4) == 0;
	q = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	good &= strncmp(map_at(q), "---p", 4) == 0;
	good &= mprotect(p, PAGE, RW) == 0 && strncmp(map_at(p), "rwxp", 4) == 0 &&
		strncmp(map_at(p + PAGE), "rw-p", 4) == 0;
	memcpy(p, returns, sizeof(returns));
	__builtin___clear_cache(p, p + sizeof(returns));
	catch_faults();
	good &= run_at(p) == 0 && run_at(p + PAGE) == SIGSEGV;
	heap = sbrk(4 * PAGE);
	good &= heap != (void *)-1 && strncmp(map_at(heap + 3 * PAGE), "rwxp", 4) == 0;
	/* and the next program begins without it */
	return good ? execute_self("stacks-executed") : 1;
}

static int on_which;

static void
note_stack(int sig)
{
	stack_t now;

	sigaltstack(NULL, &now);
	on_which = now.ss_flags;
	if (now.ss_flags == SS_DISABLE) { /* it may set another one, though it runs on the first */
		stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};

		if (sigaltstack(&other, NULL) != 0)
			on_which = -1;
	}
}

static bool
stacks_disarm_themselves(void)
{
	char *at = malloc(65536);
	stack_t s = {.ss_sp = at, .ss_size = 65536, .ss_flags = 3}, now;
	struct sigaction act = {.sa_handler = note_stack, .sa_flags = SA_ONSTACK};
	bool good = FAILS(sigaltstack(&s, NULL), EINVAL);

	s.ss_flags = 4;
	good &= FAILS(sigaltstack(&s, NULL), EINVAL);
	sigaction(SIGUSR1, &act, NULL);
	s.ss_flags = SS_ONSTACK;
	good &= sigaltstack(&s, NULL) == 0 && raise(SIGUSR1) == 0 && on_which == SS_ONSTACK;
	s.ss_flags = (int)SS_AUTODISARM;
	good &= sigaltstack(&s, NULL) == 0 && sigaltstack(NULL, &now) == 0 &&
		now.ss_flags == (int)SS_AUTODISARM && raise(SIGUSR1) == 0 &&
		on_which == SS_DISABLE && sigaltstack(NULL, &now) == 0 &&
		now.ss_flags == (int)SS_AUTODISARM && now.ss_sp == at;
	s.ss_flags = SS_DISABLE;
	good &= sigaltstack(&s, NULL) == 0;
	signal(SIGUSR1, SIG_DFL);
	free(at);
	return good;
}

/* Private pages that nobody has changed are the file's, also where it had a hole. */
static bool
holes_are_seen_through(void)
{
	int fd = memfd_create("holes", 0);
	char *p = ftruncate(fd, 2 * PAGE) == 0 ? mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0)
					       : MAP_FAILED;
	bool good = p != MAP_FAILED && p[0] == 0 && p[PAGE] == 0;

	p[PAGE] = 'p';
	good &= pwrite(fd, "xy", 2, 0) == 2 && pwrite(fd, "z", 1, PAGE) == 1 && p[0] == 'x' &&
		p[1] == 'y' && p[PAGE] == 'p';
	munmap(p, 2 * PAGE);
	close(fd);
	return good;
}

/* On arm64, the top byte of a program's address is its own. */
static int
tags_are_ignored(void *arg)
{
#ifdef __aarch64__
	const unsigned long tag = 0x5aul << 56;
	volatile char *p = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile char *tagged = (volatile char *)((unsigned long)p | tag);

	tagged[3] = 't';
	if (p[3] != 't' || write(1, (const char *)tagged, 1) != -1 || errno != EFAULT)
		return 1;
	mprotect((char *)p + PAGE, PAGE, PROT_NONE);
	catch_faults();
	if (sigsetjmp(back, 1) == 0) {
		(void)tagged[PAGE + 5];
		return 2;
	}
	return fault_at == p + PAGE + 5 && fault_told == (unsigned long)fault_at ? 0 : 3;
#else
	return 0;
#endif
}

void
test_stacks(void)
{
	result(stack_runs_if_the_file_asks(), "PT_GNU_STACK makes the stack executable");
	result(code_can_be_read(), "a segment that only runs can be read");
	result(in_child(make_stack_run, NULL) == 0,
	       "mprotect() with PROT_GROWSDOWN makes the stack executable");
	result(rights_go_down(), "PROT_GROWSDOWN is for what grows; mmap() ignores unknown rights");
	result(in_child(read_is_exec, NULL) == 4, "READ_IMPLIES_EXEC, until the next execve()");
	result(stacks_disarm_themselves(), "SS_AUTODISARM");
	result(holes_are_seen_through(), "a private page of a hole shows what is written there");
	result(in_child(tags_are_ignored, NULL) == 0, "tags of addresses");
	result(in_child(stack_grows_again, NULL) == 0, "a stack grows where it was unmapped");
}
