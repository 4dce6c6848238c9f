/* ktr_hook_test.c - hooks: when they are called and with what, and owners that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "ktr/ktr.h"
#include "ktr/ring.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DEFINE(hook);
SDT_PROBE_DEFINE7(hook, , , seven, seven, "int", "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE_DATA(hook, , , text, "text", ": %s");
SDT_PROBE_DEFINE_TEXT(hook, , , shared, "shared", ": n %d", 1, "int");

static struct ktr_firing seen;
static uint64_t seen_args[KTR_SDT_ARGS];
static char seen_data[32];
static unsigned calls;

static void
see(const struct ktr_firing *f)
{
	calls++;
	seen = *f;
	seen.where = ktr_firing_where(f);
	for (unsigned i = 0; i < f->nargs; i++)
		seen_args[i] = f->args[i];
	if (f->has_data && f->len < sizeof(seen_data)) {
		memcpy(seen_data, f->data, f->len);
		seen_data[f->len] = '\0';
	}
}

static unsigned calls_2;

static void
see_2(const struct ktr_firing *f)
{
	calls_2++;
}

static uint64_t
head(void)
{
	uint64_t tail, seq;
	assert_true(ktr_ring_window(0, &tail, &seq));
	return seq;
}

static void
fire_points(void)
{
	CTR0(KTR_GEN, "point none");
	CTR1(KTR_GEN, "point one %d", 1);
	CTR2(KTR_GEN, "point two %d %d", 1, 2);
	CTR3(KTR_GEN, "point three %d %d %d", 1, 2, 3);
	CTR4(KTR_GEN, "point four %d %d %d %d", 1, 2, 3, 4);
	CTR5(KTR_GEN, "point five %d %d %d %d %d", 1, 2, 3, 4, 5);
	CTR6(KTR_GEN, "point six %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6);
	CTR_DATA2(KTR_GEN, "point data %d %d %s", 1, 2, "abc", 3);
}

static void
fire_shared(int n)
{
	SDT_CTR2(hook, , , shared, SDT_ARGS1(n), KTR_GEN, "shared %d %d", n, n + 1);
}

static int owner;

static int
begin(void **state)
{
	ktr_mask_set(0);
	ktr_select(KTR_OWNER_COMMAND, ":::", false, NULL, NULL, 0);
	calls = calls_2 = 0;
	memset(&seen, 0, sizeof(seen));
	owner = ktr_owner_register("hook", see);
	assert_true(owner > 1);
	return 0;
}

static int
end(void **state)
{
	assert_int_equal(ktr_owner_unregister((unsigned)owner), 0);
	return 0;
}

static int
select_for(int who, const char *spec, bool on)
{
	return ktr_select((unsigned)who, spec, on, NULL, NULL, 0);
}

static void
a_hook_has_the_parameters_of_every_macro(void **state)
{
	static const char *const names[] = {"none", "one", "two", "three", "four", "five", "six"};
	char glob[32];
	uint64_t before = head();
	for (unsigned n = 0; n < 7; n++) {
		snprintf(glob, sizeof(glob), "point %s*", names[n]);
		assert_int_equal(select_for(owner, glob, true), 1);
		calls = 0;
		fire_points();
		assert_int_equal(calls, 1);
		assert_int_equal(seen.nargs, n);
		assert_string_equal(seen.site->func, "fire_points");
		assert_false(seen.has_data);
		assert_int_equal(seen.where.ret, 0);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(seen_args[i], i + 1);
		assert_int_equal(select_for(owner, glob, false), 1);
		fire_points();
		assert_int_equal(calls, 1);
	}
	assert_int_equal(head(), before); /* nothing is recorded for it */
}

static void
a_hook_has_long_data(void **state)
{
	select_for(owner, "point data*", true);
	fire_points();
	assert_int_equal(calls, 1);
	assert_int_equal(seen.nargs, 3);
	assert_int_equal(seen_args[1], 2);
	assert_ptr_equal((const void *)(uintptr_t)seen_args[2], seen.data);
	assert_string_equal(seen_data, "abc");
	select_for(owner, "hook:::text", true);
	SDT_FIRE(hook, , , text, SDT_ARGS_DATA0("def", 3));
	assert_int_equal(seen.nargs, 1);
	assert_string_equal(seen_data, "def");
}

static void
a_hook_has_seven_arguments_of_a_probe(void **state)
{
	select_for(owner, "hook:::seven", true);
	SDT_PROBE7(hook, , , seven, 1, 2, 3, 4, 5, 6, 7);
	assert_int_equal(calls, 1);
	assert_int_equal(seen.nargs, 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(seen_args[i], i + 1);
}

static void
a_hook_does_not_take_the_log_s_events(void **state)
{
	int second = ktr_owner_register("hook2", see_2);
	uint64_t before = head();
	select_for(KTR_OWNER_COMMAND, "point two*", true);
	select_for(owner, "point two*", true);
	select_for(second, "point two*", true);
	fire_points();
	assert_int_equal(head(), before + 1);
	assert_int_equal(calls, 1);
	assert_int_equal(calls_2, 1);
	select_for(owner, "point two*", false);
	fire_points();
	assert_int_equal(head(), before + 2);
	assert_int_equal(calls, 1);
	assert_int_equal(calls_2, 2);
	assert_int_equal(ktr_owner_unregister((unsigned)second), 0);
	fire_points();
	assert_int_equal(head(), before + 3);
	assert_int_equal(calls_2, 2);
}

static void
a_hook_and_the_log_have_one_time_of_a_firing(void **state)
{
	struct ktr_entry entry;
	select_for(owner, "hook:::shared", true);
	fire_shared(1);
	assert_int_equal(seen.owners, 0); /* the log has no time of it */
	select_for(KTR_OWNER_COMMAND, "hook:::shared", true);
	fire_shared(2);
	assert_int_equal(ktr_ring_read(0, head() - 1, &entry), KTR_READ_OK);
	assert_int_equal(seen.ticks, entry.ticks);
	ktr_host_refuse = true;
	ktr_ring_close(0);
	fire_shared(3);
	ktr_host_refuse = false;
	assert_int_equal(seen_args[0], 3);
	assert_int_equal(seen.ticks, 0);
	select_for(KTR_OWNER_COMMAND, "point data*", true);
	select_for(owner, "point data*", true);
	fire_points();
	assert_string_equal(seen_data, "abc");
	assert_int_equal(ktr_ring_read(0, head() - 1, &entry), KTR_READ_OK);
	assert_int_equal(seen.ticks, entry.ticks);
}

static void
a_trace_point_and_a_probe_in_one_place_have_their_own_hooks(void **state)
{
	uint64_t before = head();
	select_for(owner, "hook:::shared", true);
	fire_shared(5);
	assert_int_equal(calls, 1);
	assert_int_equal(seen.nargs, 1);
	assert_int_equal(head(), before);
	select_for(KTR_OWNER_COMMAND, "shared*", true);
	fire_shared(6);
	assert_int_equal(calls, 2);
	assert_int_equal(head(), before + 1);
	select_for(owner, "hook:::shared", false);
	select_for(owner, "shared*", true);
	fire_shared(7);
	assert_int_equal(calls, 3);
	assert_int_equal(seen.nargs, 2);
	assert_int_equal(seen_args[1], 8);
	assert_int_equal(head(), before + 2);
}

static void
fire_inside(const struct ktr_firing *f)
{
	see(f);
	fire_points();
}

static void
a_hook_does_not_interrupt_a_hook(void **state)
{
	int inside = ktr_owner_register("inside", fire_inside);
	uint64_t before = head();
	select_for(inside, "point one*", true);
	select_for(inside, "point two*", true);
	select_for(KTR_OWNER_COMMAND, "point two*", true);
	fire_points();
	/* one and two fire; in each hook they fire again, and are refused; the log records two */
	assert_int_equal(calls, 2);
	assert_int_equal(ktr_hook_refused((unsigned)inside), 4);
	assert_int_equal(ktr_hook_refused((unsigned)owner), 0);
	assert_int_equal(head(), before + 3);
	assert_int_equal(ktr_owner_unregister((unsigned)inside), 0);
	assert_int_equal(ktr_hook_refused((unsigned)inside), 0);
}

static void
fire_without(void *arg)
{
	fire_points();
	++*(int *)arg;
}

static void
no_hook_is_called_without_hooks(void **state)
{
	int ran = 0;
	uint64_t before = head();
	select_for(owner, "point one*", true);
	ktr_hook_without(fire_without, &ran);
	assert_int_equal(ran, 1);
	assert_int_equal(calls, 0);
	assert_int_equal(ktr_hook_refused((unsigned)owner), 1);
	assert_int_equal(head(), before);
	fire_points();
	assert_int_equal(calls, 1);
}

static void
what_is_no_trace_point_can_fire(void **state)
{
	static const uint64_t args[] = {4, 5};
	struct ktr_firing f = {.site = &sdt_hook___shared,
			       .args = args,
			       .nargs = 2,
			       .where = {.pc = 17}};
	uint64_t before = head();
	select_for(owner, "hook:::shared", true);
	ktr_fire(&f);
	assert_int_equal(calls, 1);
	assert_int_equal(seen.where.pc, 17);
	assert_int_equal(head(), before);
	select_for(KTR_OWNER_COMMAND, "hook:::shared", true);
	ktr_fire(&f);
	assert_int_equal(calls, 2);
	assert_int_equal(head(), before + 1);
}

static bool turns_on;

/* Switches the log's owner while the probe fires. */
static void
see_and_switch(const struct ktr_firing *f)
{
	select_for(KTR_OWNER_COMMAND, "hook:::shared", turns_on);
	ktr_fire_once(f);
}

static void
who_comes_or_goes_meanwhile_records_the_firing_once(void **state)
{
	int switches = ktr_owner_register("switches", see_and_switch);
	uint64_t before = head();
	assert_true(switches > 1);
	select_for(switches, "hook:::shared", true);
	for (unsigned n = 1; n <= 4; n++) {
		turns_on = n % 2 != 0;
		fire_shared(1);
		assert_int_equal(head(), before + n);
	}
	assert_int_equal(ktr_owner_unregister((unsigned)switches), 0);
}

static void
sites_move_to_another_owner(void **state)
{
	int other = ktr_owner_register("other", see_2), logs = ktr_owner_register("logs", NULL);
	uint64_t before = head();
	assert_true(other > 1 && logs > 1);
	select_for(owner, "hook:::shared", true);
	ktr_owner_move((unsigned)owner, (unsigned)other);
	fire_shared(1);
	assert_true(calls == 0 && calls_2 == 1 && head() == before);
	assert_int_equal(ktr_owner_sites((unsigned)owner), 0);
	ktr_owner_move((unsigned)other, (unsigned)logs);
	fire_shared(1);
	assert_true(calls_2 == 1 && head() == before + 1);
	ktr_owner_move((unsigned)logs, (unsigned)owner);
	fire_shared(1);
	assert_true(calls == 1 && head() == before + 1);
	assert_int_equal(ktr_owner_unregister((unsigned)other), 0);
	assert_int_equal(ktr_owner_unregister((unsigned)logs), 0);
}

/* kernel/ftrace looks for more than the site's parameters in the entry. */
static void
what_a_firing_does_not_give_is_zero(void **state)
{
	static const uint64_t args[] = {4, 5};
	const struct ktr_dynamic d = {"made", "", "", "here", "hook.c", 1, "a %d b %d", 2, {NULL}};
	char err[80];
	ktr_port_lock();
	struct ktr_site *made = ktr_site_make(&d, err, sizeof(err));
	ktr_port_unlock();
	struct ktr_firing f = {.site = made, .args = args};
	struct ktr_entry e;
	assert_non_null(made);
	select_for(KTR_OWNER_COMMAND, "made:::here", true);
	for (f.nargs = 0; f.nargs <= 2; f.nargs++) {
		for (unsigned i = 0; i < ktr_entries_get(); i++)
			ktr_record6(f.site, 9, 9, 9, 9, (struct ktr_pair){9, 9});
		ktr_fire(&f);
		for (unsigned i = 0; i < KTR_RING_SPARE; i++)
			ktr_record6(f.site, 9, 9, 9, 9, (struct ktr_pair){9, 9});
		assert_int_equal(ktr_log_read(&ktr_main, 0, head() - 1 - KTR_RING_SPARE, &e),
				 KTR_READ_OK);
		for (unsigned i = 0; i < KTR_MAXARGS; i++)
			assert_int_equal(e.args[i], i < f.nargs ? args[i] : 0);
	}
	ktr_port_lock();
	ktr_site_free(made);
	ktr_port_unlock();
}

#define MORE (KTR_OWNER_MAX - 3) /* the mask, the command and `owner` are there */

static void
numbers_of_owners_are_used_again(void **state)
{
	for (unsigned round = 0; round < 3; round++) {
		int more[MORE];
		for (unsigned i = 0; i < MORE; i++) {
			more[i] = ktr_owner_register("more", see_2);
			assert_true(more[i] > 1);
		}
		assert_int_equal(ktr_owner_register("too many", see_2), -KTR_ENOSPC);
		for (unsigned i = 0; i < MORE; i++) {
			select_for(more[i], "point one*", true);
			assert_int_equal(ktr_owner_unregister((unsigned)more[i]), 0);
			assert_null(ktr_owner_name((unsigned)more[i]));
		}
	}
	calls_2 = 0;
	fire_points();
	assert_int_equal(calls_2, 0);
	assert_int_equal(ktr_owner_unregister(KTR_OWNER_MASK), -KTR_EINVAL);
	assert_int_equal(ktr_owner_unregister(KTR_OWNER_COMMAND), -KTR_EINVAL);
	assert_int_equal(ktr_owner_unregister(31), -KTR_EINVAL);
	assert_int_equal(ktr_owner_unregister(99), -KTR_EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_hook_has_the_parameters_of_every_macro, begin, end),
	    cmocka_unit_test_setup_teardown(a_hook_has_long_data, begin, end),
	    cmocka_unit_test_setup_teardown(a_hook_has_seven_arguments_of_a_probe, begin, end),
	    cmocka_unit_test_setup_teardown(a_hook_does_not_take_the_log_s_events, begin, end),
	    cmocka_unit_test_setup_teardown(a_hook_and_the_log_have_one_time_of_a_firing, begin,
					    end),
	    cmocka_unit_test_setup_teardown(
		a_trace_point_and_a_probe_in_one_place_have_their_own_hooks, begin, end),
	    cmocka_unit_test_setup_teardown(a_hook_does_not_interrupt_a_hook, begin, end),
	    cmocka_unit_test_setup_teardown(no_hook_is_called_without_hooks, begin, end),
	    cmocka_unit_test_setup_teardown(what_is_no_trace_point_can_fire, begin, end),
	    cmocka_unit_test_setup_teardown(who_comes_or_goes_meanwhile_records_the_firing_once,
					    begin, end),
	    cmocka_unit_test_setup_teardown(sites_move_to_another_owner, begin, end),
	    cmocka_unit_test_setup_teardown(what_a_firing_does_not_give_is_zero, begin, end),
	    cmocka_unit_test_setup_teardown(numbers_of_owners_are_used_again, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
