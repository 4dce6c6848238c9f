/* fpu.c - floating point and vector registers: each process has its own. */
#include <fenv.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PROCESSES 4
#define TURNS     2000
#define PATTERN   0x5a5a000000000000ul

static void
fill(uint64_t words[FPU_WORDS], unsigned long who)
{
	for (unsigned i = 0; i < FPU_WORDS; i++)
		words[i] = PATTERN | who << 16 | i;
}

static int
keeps_registers(void *arg)
{
	uint64_t in[FPU_WORDS], out[FPU_WORDS];

	fill(in, (unsigned long)getpid());
	fpu_round_trip(in, out, how_often(TURNS));
	return memcmp(in, out, fpu_words * 8) == 0 ? 0 : 1;
}

static double
series(void)
{
	volatile double sum = 0;

	for (int i = 1; i < 60000; i++)
		sum += sin(i) / i + sqrt(i) * 1e-9;
	return sum;
}

static int
computes(void *expected)
{
	for (int i = 0; i < 3; i++) {
		double found = series();
		if (memcmp(&found, expected, sizeof(found)) != 0)
			return 1;
	}
	return 0;
}

/* Runs fn in several processes at once. True: all return 0. */
static bool
at_once(int (*fn)(void *), void *arg)
{
	bool good = true;
	pid_t pids[PROCESSES];

	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(fn(arg));
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			good = false;
	}
	return good;
}

static int
keeps_rounding(void *arg)
{
	static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
	uint64_t words[FPU_WORDS] = {0};
	int mode = modes[getpid() % 4];

	if (fesetround(mode) != 0)
		return 2;
	for (int i = 0; i < 100; i++) {
		fpu_round_trip(words, words, 5);
		if (fegetround() != mode)
			return 1;
	}
	return 0;
}

static int
has_parents_rounding(void *arg)
{
	return fegetround() == FE_UPWARD ? 0 : 1;
}

int
fpu_as_executed(void)
{
	uint64_t words[FPU_WORDS];

	fpu_store(words);
	for (unsigned i = 0; i < fpu_words; i++)
		if ((words[i] & 0xffff000000000000) == PATTERN)
			return 1;
	return fegetround() == FE_TONEAREST ? 0 : 2;
}

static int
execute_with_registers_full(void *arg)
{
	uint64_t words[FPU_WORDS];
	int r;

	fill(words, 1);
	fesetround(FE_UPWARD);
	fpu_round_trip(words, words, 1);
	r = execute_self("fpu-executed");
	return r;
}

void
test_fpu(void)
{
	double expected = series();

	result(at_once(keeps_registers, NULL), "vector registers survive switches");
	result(at_once(keeps_rounding, NULL), "the rounding mode survives switches");
	result(at_once(computes, &expected), "processes that compute at once get exact results");
	fesetround(FE_UPWARD);
	result(in_child(has_parents_rounding, NULL) == 0, "fork copies the registers");
	fesetround(FE_TONEAREST);
	result(execute_with_registers_full(NULL) == 0, "exec leaves nothing in the registers");
	fesetround(FE_TONEAREST);
}
