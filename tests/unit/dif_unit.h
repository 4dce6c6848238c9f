/*
 * dif_unit.h - what the unit tests of the program engine share: one image, one consumer, and a host
 * whose user memory is known.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kernel/dtrace/host/host.h"
#include "tests/unit/dif_help.h"

#define USER 0x400000ul

#define RET                         \
	{                           \
		DIF_RET, 0, 0, 0, 0 \
	}
#define SET(reg, n)                            \
	{                                      \
		DIF_OR | DIF_IMM, reg, 0, 0, n \
	}
#define TEXT(reg, s)                                              \
	{                                                         \
		DIF_STRING, reg, 0, 0, (int32_t)put_string(&m, s) \
	}
#define STV(var, reg)                              \
	{                                          \
		DIF_STV, 0, reg, 0, (int32_t)(var) \
	}
#define LDV(reg, var)                              \
	{                                          \
		DIF_LDV, reg, 0, 0, (int32_t)(var) \
	}
#define KEY(reg)                      \
	{                             \
		DIF_KEY, 0, reg, 0, 0 \
	}
#define KEYS(reg)                         \
	{                                 \
		DIF_KEY_STR, 0, reg, 0, 0 \
	}
#define AGG(agg, v, w)                           \
	{                                        \
		DIF_AGG, 0, v, w, (int32_t)(agg) \
	}
#define CALL(to, sub, r)                          \
	{                                         \
		DIF_CALL, to, r, 0, DIF_SUB_##sub \
	}
#define REC(layout)                                 \
	{                                           \
		DIF_REC, 0, 0, 0, (int32_t)(layout) \
	}
/* What a program leaves in register 1 is stored into variable 0. */
#define STORE_1 {DIF_STV, 0, 1, 0, 0}, RET

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static struct maker m;
static struct dif d;
static uint8_t user_bytes[8192];

static int
set_up(void **state)
{
	make(&m);
	memset(user_bytes, 0, sizeof(user_bytes));
	dif_host = (struct dif_host){.user = {USER, user_bytes, sizeof(user_bytes)},
				     .time = 1000,
				     .thread = 5,
				     .pid = 42,
				     .alloc_left = -1};
	return 0;
}

static int
tear_down(void **state)
{
	dif_unload(&d);
	return 0;
}

static inline void
load_it(unsigned cpus)
{
	struct dif_refusal why;
	const char *error = load_made(&m, &d, cpus, &why);

	if (error != NULL)
		fail_msg("clause %u instruction %u: %s", why.clause, why.insn, error);
}

static inline struct dif_status
status(void)
{
	struct dif_status s;

	dif_status(&d, &s);
	assert_int_equal(s.fired, s.predicate_false + s.completed + s.faulted + s.dropped);
	return s;
}

static inline uint64_t
global(uint32_t var)
{
	return *(uint64_t *)(d.globals + d.variables[var].place);
}

static inline const char *
global_str(uint32_t var)
{
	return (const char *)(d.globals + d.variables[var].place + 8);
}

static inline void
ok(unsigned cpu, uint32_t clause)
{
	assert_int_equal(fire(&d, cpu, clause), DIF_FAULT_NONE);
}
