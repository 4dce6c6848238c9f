/*
 * chain.c - calls that tests of backtraces know: the sysctl debug.ktest.chain runs chain_outer(),
 * which calls chain_inner(), which calls chain_leaf() as often as the sysctl is set to. Locking:
 * none is needed.
 */
#include <stddef.h>

#include "kernel/lib/sysctl.h"

static uint64_t calls;

/*
 * So short that it is often interrupted at its first or last instructions. The numbers are those
 * of Knuth's MMIX generator (The Art of Computer Programming, 3.3.4): the top bit of what follows
 * is random.
 */
__attribute__((noipa)) static uint64_t
chain_leaf(uint64_t v)
{
	return v * 6364136223846793005 + 1442695040888963407;
}

__attribute__((noipa)) static uint64_t
chain_inner(uint64_t n)
{
	uint64_t v = 0;

	/*
	 * Every other turn, by chance, has a second call: else all turns were of one length, and
	 * all samples might fall on one instruction, by --icount. A mere sum would not do: it
	 * becomes a conditional move.
	 */
	for (; n > 0; n--) {
		v = chain_leaf(v);
		if (v >> 63)
			v ^= chain_leaf(n);
	}
	return v;
}

/* Its frame is large: no other stack is as deep as one that has it. */
__attribute__((noipa)) static uint64_t
chain_outer(uint64_t n)
{
	volatile uint64_t room[256];

	room[0] = chain_inner(n);
	return room[0] + 1;
}

static uint64_t
chain_calls(void)
{
	return calls;
}

static int
chain_run(int64_t n, char *err, size_t errlen)
{
	(void)err, (void)errlen;
	calls = chain_outer((uint64_t)n) != 0 ? (uint64_t)n : 0;
	return 0;
}

SYSCTL_U64_CALL(debug_ktest_chain, "debug.ktest.chain", SYSCTL_WR, chain_calls, chain_run,
		"runs a chain of three functions, whose last is called so often");
