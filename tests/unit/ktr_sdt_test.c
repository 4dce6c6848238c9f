/*
 * ktr_sdt_test.c - probes of SDT: what their names, types and events are, and what a probe and a
 * trace point record that share one instruction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/event.h"
#include "ktr/probe.h"
#include "ktr/ring.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DEFINE(unit);
SDT_PROVIDER_DECLARE(unit);
/* The formatter would put blanks around the dashes of the names. */
/* clang-format off */
SDT_PROBE_DEFINE(unit, , , none, no-arguments);
SDT_PROBE_DEFINE1(unit, , unreach, one, pkt-receive, "struct icmp *");
SDT_PROBE_DEFINE2(unit, net, , two, two, "int", "int");
SDT_PROBE_DEFINE3(unit, , , three, three, "int", "int", "int");
SDT_PROBE_DEFINE4(unit, , , four, four, "int", "int", "int", "int");
SDT_PROBE_DEFINE5(unit, , , five, five, "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE6(unit, , , six, six, "int", "int", "int", "int", "int", "int");
SDT_PROBE_DEFINE7(unit, , , seven, seven, "int", "int", "int", "int", "int", "int", "char *");
SDT_PROBE_DEFINE0_XLATE(unit, , , x0, x-0);
SDT_PROBE_DEFINE1_XLATE(unit, , , x1, x-1, "a", "A");
SDT_PROBE_DEFINE2_XLATE(unit, , , x2, x-2, "a", "A", "b", "B");
SDT_PROBE_DEFINE3_XLATE(unit, , , x3, x-3, "a", "A", "b", "B", "c", "C");
SDT_PROBE_DEFINE4_XLATE(unit, , , x4, x-4, "a", "A", "b", "B", "c", "C", "d", "D");
SDT_PROBE_DEFINE5_XLATE(unit, , , x5, x-5, "a", "A", "b", "B", "c", "C", "d", "D", "e", "E");
SDT_PROBE_DEFINE6_XLATE(unit, , , x6, x-6, "a", "A", "b", "B", "c", "C", "d", "D", "e", "E",
			"f", "F");
SDT_PROBE_DEFINE7_XLATE(unit, , , x7, x-7, "a", "A", "b", "B", "c", "C", "d", "D", "e", "E",
			"f", "F", "g", "G");
/* clang-format on */
SDT_PROBE_DEFINE_TEXT(unit, , , shared, "shared", ": first %d second %s", 2, "int", "char *");
SDT_PROBE_DECLARE(unit, , , shared);
SDT_PROBE_DEFINE_TEXT(unit, , , masked, "masked", ": value %d", 1, "int");

static uint64_t
head(void)
{
	uint64_t tail, seq;
	assert_true(ktr_ring_window(0, &tail, &seq));
	return seq;
}

/* The text of the n-th last event. */
static const char *
last(unsigned n)
{
	static char text[256];
	struct ktr_entry e;
	uint64_t seq = head() - n;
	assert_int_equal(ktr_log_read(&ktr_main, 0, seq, &e), KTR_READ_OK);
	ktr_entry_text(text, sizeof(text), ktr_site_get(e.site), &e, 0, seq);
	return text;
}

static int
command(const char *spec, bool on, struct ktr_selection *found)
{
	return ktr_select(KTR_OWNER_COMMAND, spec, on, found, NULL, 0);
}

static int
begin(void **state)
{
	ktr_mask_set(0);
	command("unit:::,ktr:::", false, NULL);
	return 0;
}

static int evaluated;

static int
argument(void)
{
	return ++evaluated;
}

static void
fire_all(void)
{
	SDT_PROBE0(unit, , , none);
	SDT_PROBE1(unit, , unreach, one, argument());
	SDT_PROBE2(unit, net, , two, 1, 2);
	SDT_PROBE3(unit, , , three, 1, 2, 3);
	SDT_PROBE4(unit, , , four, 1, 2, 3, 4);
	SDT_PROBE(unit, , , five, 1, 2, 3, 4, 5);
	SDT_PROBE6(unit, , , six, 1, 2, 3, 4, 5, 6);
	SDT_PROBE7(unit, , , seven, 1, 2, 3, 4, 5, 6, -1l);
	SDT_PROBE0(unit, , , x0);
	SDT_PROBE1(unit, , , x1, 17);
	SDT_PROBE2(unit, , , x2, 1, 2);
	SDT_PROBE3(unit, , , x3, 1, 2, 3);
	SDT_PROBE4(unit, , , x4, 1, 2, 3, 4);
	SDT_PROBE5(unit, , , x5, 1, 2, 3, 4, 5);
	SDT_PROBE6(unit, , , x6, 1, 2, 3, 4, 5, 6);
	SDT_PROBE7(unit, , , x7, 1, 2, 3, 4, 5, 6, 7);
}

static void
a_probe_records_its_arguments(void **state)
{
	static const char *const texts[] = {
	    "unit:::no-arguments",
	    "unit::unreach:pkt-receive: arg0 0x1",
	    "unit:net::two: arg0 0x1 arg1 0x2",
	    "unit:::three: arg0 0x1 arg1 0x2 arg2 0x3",
	    "unit:::four: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4",
	    "unit:::five: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4 arg4 0x5",
	    "unit:::six: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4 arg4 0x5 arg5 0x6",
	    "unit:::seven: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4 arg4 0x5 arg5 0x6 "
	    "arg6 0xffffffffffffffff",
	    "unit:::x-0",
	    "unit:::x-1: arg0 0x11",
	    "unit:::x-2: arg0 0x1 arg1 0x2",
	    "unit:::x-3: arg0 0x1 arg1 0x2 arg2 0x3",
	    "unit:::x-4: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4",
	    "unit:::x-5: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4 arg4 0x5",
	    "unit:::x-6: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4 arg4 0x5 arg5 0x6",
	    "unit:::x-7: arg0 0x1 arg1 0x2 arg2 0x3 arg3 0x4 arg4 0x5 arg5 0x6 arg6 0x7",
	};
	unsigned n = sizeof(texts) / sizeof(texts[0]), data = 2; /* parts of seven's and x-7's */
	uint64_t before = head();
	fire_all();
	assert_int_equal(head(), before);
	assert_int_equal(evaluated, 0);
	assert_int_equal(command("unit:::", true, NULL), 18);
	fire_all();
	assert_int_equal(head() - before, n + data);
	for (unsigned i = 0; i < n; i++)
		assert_string_equal(last(n - i + (i < 7) + (i < n - 1)), texts[i]);
	assert_int_equal(evaluated, 1);
	command("unit:::", false, NULL);
	fire_all();
	assert_int_equal(head() - before, n + data);
	assert_int_equal(evaluated, 1);
}

static void
tracepoint_elsewhere(void)
{
	SDT_PROBE2(unit, net, , two, 3, 4);
}

static void
a_probe_has_several_tracepoints(void **state)
{
	struct ktr_selection found;
	assert_int_equal(command("unit:net::", true, &found), 1);
	assert_int_equal(found.changed, 1);
	fire_all();
	assert_string_equal(last(1), "unit:net::two: arg0 0x1 arg1 0x2");
	tracepoint_elsewhere();
	assert_string_equal(last(1), "unit:net::two: arg0 0x3 arg1 0x4");
}

static void
names_and_types_are_those_of_the_source(void **state)
{
	struct ktr_probe_name name;
	const struct ktr_sdt *sdt = sdt_unit__unreach_one.sdt;
	ktr_probe_name(&sdt_unit__unreach_one, &name);
	assert_string_equal(name.provider, "unit");
	assert_string_equal(name.module, "unit"); /* the folder of this file */
	assert_string_equal(name.function, "unreach");
	assert_string_equal(name.name, "pkt-receive");
	ktr_probe_name(&sdt_unit_net__two, &name);
	assert_string_equal(name.module, "net");
	assert_string_equal(name.function, "");
	assert_string_equal(sdt->types[0], "struct icmp *");
	assert_null(sdt->types[1]);
	assert_null(sdt->xlate[0]);
	assert_null(sdt_unit___none.sdt->types[0]);
	assert_string_equal(sdt_unit___seven.sdt->types[6], "char *");
	/* Letters: types a to g, and A to G for D. */
	static struct ktr_site *const x[] = {&sdt_unit___x0, &sdt_unit___x1, &sdt_unit___x2,
					     &sdt_unit___x3, &sdt_unit___x4, &sdt_unit___x5,
					     &sdt_unit___x6, &sdt_unit___x7};
	for (unsigned n = 0; n < 8; n++) {
		sdt = x[n]->sdt;
		assert_int_equal(x[n]->nargs, n < 6 ? n : 6);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(sdt->types[i][0], "abcdefg"[i]);
			assert_int_equal(sdt->xlate[i][0], "ABCDEFG"[i]);
		}
		if (n < KTR_SDT_ARGS)
			assert_null(sdt->types[n]);
	}
	assert_true(ktr_probe_matches(&sdt_unit__unreach_one, "unit::unreach:pkt-*"));
	assert_false(ktr_probe_matches(&sdt_unit__unreach_one, "ktr:::,fbt:::"));
	assert_false(ktr_site_matches(&sdt_unit__unreach_one, "*receive*")); /* not by format */
}

static void
the_mask_does_not_switch_probes(void **state)
{
	uint64_t before = head();
	ktr_mask_set(KTR_ALL);
	SDT_PROBE0(unit, , , none);
	assert_int_equal(head(), before);
	assert_false(SDT_PROBE_ENABLED(unit, , , none));
	assert_int_equal(command("unit:::no-arguments", true, NULL), 1);
	assert_true(SDT_PROBE_ENABLED(unit, , , none));
	ktr_mask_set(0);
	SDT_PROBE0(unit, , , none);
	assert_int_equal(head(), before + 1);
}

static void
both(void)
{
	SDT_CTR2(unit, , , shared, SDT_ARGS2(argument(), "text"), KTR_PROC, "both: pid %u data %s",
		 7, "read-only");
}

/* Both have one instruction. Each is on and off for itself. */
static void
a_probe_and_a_trace_point_share_a_place(void **state)
{
	struct ktr_selection found;
	uint64_t before = head();
	evaluated = 0;
	both();
	assert_int_equal(head(), before);

	ktr_mask_set(KTR_PROC);
	both();
	assert_int_equal(head(), ++before);
	assert_int_equal(evaluated, 0); /* the probe's */
	assert_memory_equal(last(1), "both: pid 7 data ", 17);

	assert_int_equal(command("unit:::shared", true, &found), 1);
	assert_int_equal(found.changed, 1);
	both();
	assert_int_equal(head(), before += 2);
	assert_memory_equal(last(2), "both: pid 7 data ", 17);
	assert_memory_equal(last(1), "unit:::shared: first 1 second ", 30);

	ktr_mask_set(0);
	both();
	assert_int_equal(head(), ++before);
	assert_memory_equal(last(1), "unit:::shared: first 2 second ", 30);
	/* What the command counts is who wants a site, and not what its instruction does. */
	assert_int_equal(command("ktr:::both", true, &found), 1);
	assert_int_equal(found.changed, 1);
	assert_int_equal(command("ktr:::both", true, &found), 1);
	assert_int_equal(found.changed, 0);
	assert_int_equal(command("ktr:::both", false, &found), 1);
	assert_int_equal(found.changed, 1);
	assert_int_equal(found.on, 0);

	assert_int_equal(command("unit:::shared", false, &found), 1);
	both();
	assert_int_equal(head(), before);
	assert_int_equal(evaluated, 2);
}

/* Both may have any number of parameters. */
static void
a_trace_point_beside_a_probe_has_its_parameters(void **state)
{
	static const char *const texts[] = {
	    "zero",
	    "one: a 1",
	    "two: a 1 b 2",
	    "three: a 1 b 2 c 3",
	    "four: a 1 b 2 c 3 d 4",
	    "five: a 1 b 2 c 3 d 4 e 5",
	    "six: a 1 b 2 c 3 d 4 e 5 f 6",
	    "data: a 1 b 2 c 3 d 4 text long data",
	};
	unsigned n = sizeof(texts) / sizeof(texts[0]);
	uint64_t before = head();
	for (unsigned probe = 0; probe < 2; probe++) {
		ktr_mask_set(KTR_PROC);
		command("unit:::masked", probe, NULL);
		before = head();
		SDT_CTR0(unit, , , masked, SDT_ARGS1(9), KTR_PROC, "zero");
		SDT_CTR1(unit, , , masked, SDT_ARGS1(9), KTR_PROC, "one: a %d", 1);
		SDT_CTR2(unit, , , masked, SDT_ARGS1(9), KTR_PROC, "two: a %d b %d", 1, 2);
		SDT_CTR3(unit, , , masked, SDT_ARGS1(9), KTR_PROC, "three: a %d b %d c %d", 1, 2,
			 3);
		SDT_CTR4(unit, , , masked, SDT_ARGS1(9), KTR_PROC, "four: a %d b %d c %d d %d", 1,
			 2, 3, 4);
		SDT_CTR5(unit, , , masked, SDT_ARGS1(9), KTR_PROC, "five: a %d b %d c %d d %d e %d",
			 1, 2, 3, 4, 5);
		SDT_CTR6(unit, , , masked, SDT_ARGS1(9), KTR_PROC,
			 "six: a %d b %d c %d d %d e %d f %d", 1, 2, 3, 4, 5, 6);
		SDT_CTR_DATA4(unit, , , masked, SDT_ARGS1(9), KTR_PROC,
			      "data: a %d b %d c %d d %d text %s", 1, 2, 3, 4, "long data", 9);
		/* The data are an entry more, before their event. */
		assert_int_equal(head() - before, n * (1 + probe) + 1);
		for (unsigned i = 0; i < n; i++) {
			unsigned ago = (n - i) * (1 + probe) + (i < n - 1);
			assert_string_equal(last(ago), texts[i]);
			if (probe > 0)
				assert_string_equal(last(ago - 1), "unit:::masked: value 9");
		}
	}
}

/* The class of the trace point is not compiled in. */
#undef KTR_COMPILE_MASK
#define KTR_COMPILE_MASK KTR_SCHED

static void
a_probe_stays_without_its_trace_point(void **state)
{
	uint64_t before = head();
	ktr_mask_set(KTR_ALL);
	command("unit:::masked", true, NULL);
	SDT_CTR1(unit, , , masked, SDT_ARGS1(5), KTR_PROC, "left out: %d", 6);
	assert_int_equal(head(), before + 1);
	assert_string_equal(last(1), "unit:::masked: value 5");
}

static void
a_misspelt_name_gets_a_suggestion(void **state)
{
	static const char *const cases[][2] = {
	    {"unit:::pkt-recieve", "unit:::pkt-receive"},
	    {"unti:::two", "unit:::two"},
	    {"unit:nte::two", "unit:net::two"},
	    {"unit::unraech:", "unit::unreach:"},
	    {":pkt-recieve", ":::pkt-receive"},
	    {"unit:::xyzzy", NULL},
	    {"unti:::tow", NULL}, /* two fields are wrong */
	    {"a:b:c:d:e", NULL},
	    {"two", NULL},
	    {"unit", "unit:::"}, /* a provider */
	};
	char text[128];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool found = ktr_probe_suggest(cases[i][0], text, sizeof(text));
		assert_int_equal(found, cases[i][1] != NULL);
		if (found)
			assert_string_equal(text, cases[i][1]);
	}
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "unti:::two", true, NULL, text, 128),
			 -KTR_ENOENT);
	assert_string_equal(text, "nothing matches \"unti:::two\"; did you mean unit:::two?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_probe_records_its_arguments, begin),
	    cmocka_unit_test_setup(a_probe_has_several_tracepoints, begin),
	    cmocka_unit_test_setup(names_and_types_are_those_of_the_source, begin),
	    cmocka_unit_test_setup(the_mask_does_not_switch_probes, begin),
	    cmocka_unit_test_setup(a_probe_and_a_trace_point_share_a_place, begin),
	    cmocka_unit_test_setup(a_trace_point_beside_a_probe_has_its_parameters, begin),
	    cmocka_unit_test_setup(a_probe_stays_without_its_trace_point, begin),
	    cmocka_unit_test_setup(a_misspelt_name_gets_a_suggestion, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
