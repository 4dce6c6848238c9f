/*
 * ktr_control_test.c - switching sites by class, owner and glob, and the strings that events may
 * name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/probe.h"
#include "ktr/ring.h"

static unsigned line_of_alpha;

static void
alpha(void)
{
	line_of_alpha = __LINE__ + 1;
	CTR1(KTR_SCHED, "alpha switches to %d", 1);
}

static void
beta(void)
{
	CTR1(KTR_PROC | KTR_SIG, "beta signals %d", 2);
}

static void
gamma_(void)
{
	CTR0(KTR_PROC, "gamma exits");
}

static int
begin(void **state)
{
	ktr_mask_set(0);
	ktr_select(KTR_OWNER_COMMAND, "*", false, NULL, NULL, 0);
	return 0;
}

static uint64_t
head(void)
{
	uint64_t tail, seq;
	assert_true(ktr_ring_window(0, &tail, &seq));
	return seq;
}

/* Which of the three functions record an event: bits 0, 1, 2. */
static unsigned
on(void)
{
	unsigned mask = 0;
	void (*const calls[])(void) = {alpha, beta, gamma_};
	for (unsigned i = 0; i < 3; i++) {
		uint64_t before = head();
		calls[i]();
		mask |= (unsigned)(head() - before) << i;
	}
	return mask;
}

static int
command(const char *spec, bool enable)
{
	return ktr_select(KTR_OWNER_COMMAND, spec, enable, NULL, NULL, 0);
}

static void
mask_switches_classes(void **state)
{
	assert_int_equal(on(), 0);
	ktr_mask_set(KTR_SCHED);
	assert_int_equal(on(), 1);
	ktr_mask_set(KTR_SIG);
	assert_int_equal(on(), 2);
	ktr_mask_set(KTR_PROC);
	assert_int_equal(on(), 6);
	assert_int_equal(ktr_mask_get(), KTR_PROC);
	ktr_mask_set(0);
	assert_int_equal(on(), 0);
}

static void
command_switches_sites_by_glob(void **state)
{
	char spec[80];
	assert_int_equal(command("alpha", true), 1);
	assert_int_equal(on(), 1);
	assert_int_equal(command("alpha", false), 1);
	assert_int_equal(on(), 0);
	assert_int_equal(command("*signals*", true), 1);
	assert_int_equal(on(), 2);
	assert_int_equal(command("ktr_control_test.c", true), 3);
	assert_int_equal(on(), 7);
	assert_int_equal(command("*", false), 3);
	assert_int_equal(on(), 0);
	snprintf(spec, sizeof(spec), "ktr_control_test.c:%u", line_of_alpha);
	assert_int_equal(command(spec, true), 1);
	assert_int_equal(on(), 1);
	snprintf(spec, sizeof(spec), "*/ktr_control_test.c:%u", line_of_alpha);
	assert_int_equal(command(spec, false), 1);
	assert_int_equal(on(), 0);
}

static void
command_with_a_class_changes_the_mask(void **state)
{
	ktr_mask_set(KTR_NET);
	assert_int_equal(command("PROC,sched", true), 3);
	assert_int_equal(ktr_mask_get(), KTR_NET | KTR_PROC | KTR_SCHED);
	assert_int_equal(on(), 7);
	assert_int_equal(command("KTR_PROC", false), 2);
	assert_int_equal(ktr_mask_get(), KTR_NET | KTR_SCHED);
	assert_int_equal(on(), 1);
	assert_int_equal(command("GEOM", true), 0); /* a class without sites */
}

static void
off_by_name_works_whoever_switched_on(void **state)
{
	struct ktr_selection found;
	ktr_mask_set(KTR_SCHED | KTR_PROC);
	assert_int_equal(command("gamma_", true), 1); /* on already, by its class */
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "gamma_", false, &found, NULL, 0), 1);
	assert_int_equal(found.changed, 1);
	assert_int_equal(found.on, 0);
	assert_int_equal(on(), 3);
	assert_int_equal(ktr_mask_get(), KTR_SCHED | KTR_PROC); /* beta is on */
	/* Other classes change: the site stays off until its own class is switched on. */
	ktr_mask_change(KTR_LOCK, KTR_SIG);
	assert_int_equal(on(), 3);
	assert_int_equal(command("PROC", true), 2);
	assert_int_equal(on(), 7);
	assert_int_equal(command("gamma_", false), 1);
	ktr_mask_set(KTR_SCHED | KTR_PROC | KTR_LOCK);
	assert_int_equal(on(), 7);
	/* A class leaves the mask when all its sites are off. */
	assert_int_equal(command("alpha", false), 1);
	assert_int_equal(ktr_mask_get(), KTR_PROC | KTR_LOCK);
	assert_int_equal(on(), 6);
	/* A class that is switched off also switches off sites that a name switched on. */
	assert_int_equal(command("alpha", true), 1);
	assert_int_equal(on(), 7);
	assert_int_equal(command("SCHED", false), 1);
	assert_int_equal(on(), 6);
	assert_int_equal(command("beta", true), 1);
	assert_int_equal(command("*", false), 3);
	assert_int_equal(on(), 0);
	assert_int_equal(ktr_mask_get(), 0);
}

static void
off_of_one_owner_leaves_sites_on_for_another(void **state)
{
	struct ktr_selection found;
	int owner = ktr_owner_register("test", NULL);
	assert_true(owner >= 2);
	assert_string_equal(ktr_owner_name((unsigned)owner), "test");
	ktr_mask_set(KTR_SCHED);
	assert_int_equal(ktr_select((unsigned)owner, "alpha", true, NULL, NULL, 0), 1);
	assert_int_equal(ktr_owner_sites((unsigned)owner), 1);
	assert_int_equal(ktr_owner_sites(KTR_OWNER_MASK), 1);
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "alpha", false, &found, NULL, 0), 1);
	assert_int_equal(found.on, 1);
	assert_int_equal(found.changed, 0);
	assert_int_equal(found.owners, 1u << owner);
	assert_int_equal(on(), 1);
	ktr_mask_set(0);
	assert_int_equal(on(), 1);
	/* An owner's selection by class does not change the mask. */
	assert_int_equal(ktr_select((unsigned)owner, "PROC", true, &found, NULL, 0), 2);
	assert_int_equal(found.on, 2);
	assert_int_equal(on(), 7);
	assert_int_equal(ktr_mask_get(), 0);
	assert_int_equal(ktr_select((unsigned)owner, "*", false, &found, NULL, 0), 3);
	assert_int_equal(found.on, 0);
	assert_int_equal(on(), 0);
}

static void
selection_errors_say_what_was_expected(void **state)
{
	char err[200];
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "SCHD", true, NULL, err, sizeof(err)),
			 -KTR_ENOENT);
	assert_string_equal(err, "no class \"SCHD\"; did you mean SCHED?");
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "nothing*", true, NULL, err, sizeof(err)),
			 -KTR_ENOENT);
	assert_string_equal(err,
			    "nothing matches \"nothing*\": expected file:line, function or format "
			    "of a trace point, or provider:module:function:name");
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "fbt:::", true, NULL, err, sizeof(err)),
			 -KTR_ENOENT);
	assert_non_null(strstr(err, "provider:module:function:name"));
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "", true, NULL, err, sizeof(err)),
			 -KTR_EINVAL);
	assert_non_null(strstr(err, "expected classes"));
	assert_int_equal(ktr_select(31, "alpha", true, NULL, err, sizeof(err)), -KTR_EINVAL);
	assert_int_equal(on(), 0);
}

static void
probes_are_named_as_in_dtrace(void **state)
{
	static const struct {
		const char *spec;
		bool point, entry, ret;
	} cases[] = {
	    {"ktr:fs:vfs_open:file-open", true, false, false},
	    {"fbt:fs:vfs_open:entry", false, true, false},
	    {"fbt:fs:vfs_open:return", false, false, true},
	    {":::", true, true, true},
	    {"fbt:::", false, true, true},
	    {"::vfs_*:", true, true, true},
	    {"vfs_open:", true, true, true}, /* fields on the left are missing */
	    {"vfs_open:entry", false, true, false},
	    {":entry", false, true, false},
	    {"?bt:f[rs]:vfs_open:[er]*", false, true, true},
	    {"fbt:mm::", false, false, false},
	    {"fbt:mm::,fbt:fs::entry", false, true, false},
	    {"ktr:::,,:return,x", true, false, true},
	    {"fbt:fs:vfs_open", false, false, false}, /* read as module, function and name */
	    {"entry", false, false, false}, /* without a colon it is not the name of a probe */
	    {"fbt:fs:vfs_open:entry:", false, false, false},
	    {"", false, false, false},
	};
	const struct ktr_site point = {.file = "kernel/fs/vfs.c",
				       .func = "vfs_open",
				       .fmt = "file open: path %s",
				       .kind = KTR_SITE_POINT};
	struct ktr_site entry = point, ret = point;
	struct ktr_probe_name name;
	entry.kind = KTR_SITE_ENTRY;
	ret.kind = KTR_SITE_RETURN;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ktr_probe_matches(&point, cases[i].spec), cases[i].point);
		assert_int_equal(ktr_probe_matches(&entry, cases[i].spec), cases[i].entry);
		assert_int_equal(ktr_probe_matches(&ret, cases[i].spec), cases[i].ret);
	}
	/* System calls: their own provider, with the call for a function. */
	struct ktr_site call = {.file = "kernel/proc/syscall.c",
				.func = "call_read",
				.fmt = "syscall read: arg0 %#lx"};
	assert_true(ktr_probe_matches(&call, "syscall:proc:read:entry"));
	assert_true(ktr_probe_matches(&call, "syscall::read:"));
	assert_false(ktr_probe_matches(&call, "ktr:::"));
	assert_false(ktr_probe_matches(&call, "syscall:::return"));
	call.fmt = "sysret read: ret %ld";
	assert_true(ktr_probe_matches(&call, "syscall::read:return"));
	call.fmt = "syscall %d is unknown";
	assert_true(ktr_probe_matches(&call, "ktr:proc:call_read:syscall"));
	call.fmt = "syscall table full: %d";
	assert_true(ktr_probe_matches(&call, "ktr:proc:call_read:syscall-table-full"));
	/* Formats in the place of names. */
	static const struct {
		const char *spec, *fmt;
		bool matches;
	} formats[] = {
	    {"ktr:::\"syscall %s\"", "syscall read: arg0 %#lx", true},
	    {"ktr:::\"syscall %s\"", "syscall %s: arg0 %#lx", true},
	    {"ktr:::\"syscall %s? arg0 %lu\"", "syscall %s: arg0 %#lx", true},
	    {"ktr:proc:read:\"syscall read? arg0 %#lx\"", "syscall read: arg0 %#lx", true},
	    {"ktr::write:\"syscall %s\"", "syscall read: arg0 %#lx", false},
	    {"syscall:::\"syscall %s\"", "syscall read: arg0 %#lx", false},
	    {"ktr:::\"syscall %s %d\"", "syscall read: arg0 %#lx", false},
	    {"ktr:::\"syscall %s", "syscall read: arg0 %#lx", false},
	    {"fbt:::,ktr:::\"%s %d more\",x:", "4 %u more: %d", true},
	    {"fbt:::,ktr:::\"%d %d %d %d\"", "4 %u more: %d", false},
	    {"ktr:::\"a %5.2lx b and more\"", "a %d b", false},
	    {"ktr:::\"\"", "any", true},
	    {"ktr:::\"%\"", "", false},
	    {"ktr:::\"\"", "", false},
	};
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		call.fmt = formats[i].fmt;
		if (ktr_probe_matches(&call, formats[i].spec) != formats[i].matches)
			fail_msg("%s and %s", formats[i].spec, formats[i].fmt);
	}
	assert_false(ktr_probe_matches(&entry, "ktr:::\"\""));
	/* A file outside all folders, and a name that is cut. */
	const struct ktr_site odd = {
	    .file = "main.c",
	    .func = "main",
	    .fmt = "a format whose first words go on and on until there is no more "
		   "room for them: %d"};
	ktr_probe_name(&odd, &name);
	assert_string_equal(name.module, "");
	assert_int_equal(strlen(name.name), KTR_PROBE_TEXT - 1);
	assert_true(ktr_probe_matches(&odd, "ktr::main:a-format-whose-first-*"));
}

static void
sites_are_numbered_without_holes(void **state)
{
	unsigned own = 0;
	/* one is that of long data */
	assert_int_equal(ktr_site_count(), 4 + KTR_DYNAMIC_SITES);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(ktr_site_number(ktr_site_get(i)), i);
		own += strcmp(ktr_site_get(i)->file, __FILE__) == 0;
	}
	assert_int_equal(own, 3);
	assert_null(ktr_site_get(ktr_site_count()));
}

static const char *
text_of(const char *handle)
{
	static char buf[KTR_STRING_MAX];
	return ktr_string_text((uintptr_t)handle, buf);
}

static void
interned_strings_are_one_and_resolve(void **state)
{
	char text[40], local[] = "local";
	const char *first = ktr_intern("hello");
	snprintf(text, sizeof(text), "%s", "hello");
	assert_ptr_equal(ktr_intern(text), first);
	assert_string_equal(text_of(first), "hello");
	assert_ptr_not_equal(ktr_intern("hell"), first);
	assert_string_equal(text_of(ktr_intern("")), "");
	assert_string_equal(text_of("read-only"), "read-only");
	assert_null(text_of(local));
	assert_null(text_of((const char *)1));
	assert_null(text_of((const char *)UINT64_MAX));
}

static void
thread_names_follow_their_threads(void **state)
{
	char buf[KTR_THREAD_NAME];
	assert_null(ktr_thread_name_get(5, buf));
	assert_string_equal(text_of(ktr_thread_ident(5)), "tid 5");
	ktr_thread_name(5, "sh");
	assert_string_equal(ktr_thread_name_get(5, buf), "sh");
	assert_string_equal(text_of(ktr_thread_ident(5)), "sh tid 5");
	ktr_thread_name(5, "load");
	assert_string_equal(ktr_thread_name_get(5, buf), "load");
	/* Thousands of other threads are made and end: a living thread keeps its name. */
	for (uint32_t tid = 1000; tid < 9000; tid++) {
		ktr_thread_name(tid, "other");
		assert_string_equal(ktr_thread_name_get(tid, buf), "other");
		ktr_thread_gone(tid);
		assert_string_equal(ktr_thread_name_get(tid, buf), "other");
	}
	assert_string_equal(ktr_thread_name_get(5, buf), "load");
	/* After its end, its place is used again. */
	ktr_thread_gone(5);
	for (uint32_t tid = 5 + 256; tid <= 5 + 256 * 8; tid += 256)
		ktr_thread_name(tid, "late");
	assert_null(ktr_thread_name_get(5, buf));
	ktr_thread_name(7, "a name that has more than the 31 characters for which there is room");
	assert_string_equal(ktr_thread_name_get(7, buf), "a name that has more than the 3");
}

static const char *beside;

/* Another one names thread 9 while its name is being stored. */
static void
name_beside(enum ktr_host_step step)
{
	const char *name = beside;
	beside = NULL;
	if (step == KTR_HOST_NAME && name != NULL)
		ktr_thread_name(9, name);
}

static unsigned
names_of_thread(uint32_t tid)
{
	const uint64_t *set = ktr_names_get()->threads[tid % KTR_THREAD_SETS];
	unsigned n = 0;
	for (unsigned way = 0; way < KTR_THREAD_WAYS; way++)
		n += set[way] >> 32 == tid;
	return n;
}

static void
a_thread_that_two_name_at_once_has_one_name(void **state)
{
	char buf[KTR_THREAD_NAME];
	ktr_thread_name(9, "before");
	for (unsigned i = 0; i < 2; i++) {
		beside = "second";
		ktr_host_interrupt = name_beside;
		ktr_thread_name(9, "first");
		ktr_host_interrupt = NULL;
		assert_int_equal(names_of_thread(9), 1);
		assert_string_equal(ktr_thread_name_get(9, buf), "second");
	}
	ktr_thread_gone(9);
	for (uint32_t tid = 9 + 256; tid <= 9 + 256 * 4; tid += 256)
		ktr_thread_name(tid, "late");
	for (uint32_t tid = 9 + 256; tid <= 9 + 256 * 4; tid += 256)
		assert_string_equal(ktr_thread_name_get(tid, buf), "late");
}

/* As if a user ran one program after the other, each with another name. */
#define NAMES 10000u

static void
names_without_end_leave_the_newest_readable(void **state)
{
	static const char *handles[NAMES];
	char text[40], buf[KTR_THREAD_NAME];
	unsigned gone = 0;
	const char *kept = ktr_intern_keep("CPU 0 load");
	ktr_thread_name(3, "init");
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "program number %u", i);
		handles[i] = ktr_intern(text);
		assert_string_equal(text_of(handles[i]), text);
		assert_ptr_equal(ktr_intern(text), handles[i]);
		ktr_thread_name(1000 + i, text);
		ktr_thread_gone(1000 + i);
	}
	/* A text takes 8 bytes more and a NUL, rounded up. */
	unsigned stay = KTR_INTERN_BYTES / 32;
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "program number %u", i);
		gone += strcmp(text_of(handles[i]), "(gone)") == 0;
		if (strcmp(text_of(handles[i]), "(gone)") != 0 || i >= NAMES - stay)
			assert_string_equal(text_of(handles[i]), text);
	}
	assert_in_range(gone, NAMES / 2, NAMES - stay);
	assert_string_equal(text_of(ktr_intern("panic: the last word")), "panic: the last word");
	/* Other texts displace neither the kernel's own texts nor a living thread's name. */
	assert_string_equal(text_of(kept), "CPU 0 load");
	assert_string_equal(ktr_thread_name_get(3, buf), "init");
}

static void
text_in_use_stays_readable(void **state)
{
	char text[40];
	unsigned handles = 0;
	const char *last = NULL;
	for (unsigned i = 0; i < NAMES; i++) {
		const char *used = ktr_intern("used again and again");
		snprintf(text, sizeof(text), "others %u", i);
		ktr_intern(text);
		assert_string_equal(text_of(used), "used again and again");
		handles += used != last;
		last = used;
	}
	assert_in_range(handles, 2, NAMES / 100);
}

static void
texts_that_stay_never_take_all_room(void **state)
{
	char text[40];
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "a text that stays %u", i);
		assert_string_equal(text_of(ktr_intern_keep(text)), text);
	}
}

/*
 * A damaged handle or text may lead to any byte of this memory. The result is a text or "(gone)".
 */
static void
damaged_texts_are_gone(void **state)
{
	static struct ktr_names hurt;
	char buf[KTR_STRING_MAX];
	const char *handle = ktr_intern("a text to be damaged");
	uint64_t value = (uintptr_t)handle;
	size_t at = KTR_INTERN_KEPT + (value - KTR_INTERN_KEPT) % KTR_INTERN_BYTES;
	for (unsigned bit = 0; bit < 8 * 28; bit++) {
		hurt = *ktr_names_get();
		((uint8_t *)hurt.texts)[at + bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_string_equal(ktr_names_text(&hurt, value, buf), "(gone)");
	}
	for (uint64_t off = 0; off < sizeof(hurt.texts); off++)
		assert_non_null(ktr_names_text(&hurt, KTR_INTERN_TAG << 48 | off, buf));
	memset(hurt.texts, 'x', sizeof(hurt.texts));
	assert_string_equal(ktr_names_text(&hurt, value, buf), "(gone)");
}

static void
long_strings_are_cut(void **state)
{
	char text[400];
	memset(text, 'x', sizeof(text));
	text[399] = '\0';
	assert_int_equal(strlen(text_of(ktr_intern(text))), 255);
}

static void
entry_text_prints_an_event_of_this_program(void **state)
{
	char buf[100];
	ktr_mask_set(KTR_SCHED);
	alpha();
	struct ktr_entry e;
	assert_int_equal(ktr_ring_read(0, head() - 1, &e), KTR_READ_OK);
	ktr_entry_text(buf, sizeof(buf), ktr_site_get(e.site), &e, 0, head());
	assert_string_equal(buf, "alpha switches to 1");
}

static void
names_move_and_keep_what_they_held(void **state)
{
	static struct ktr_names elsewhere;
	char buf[KTR_THREAD_NAME];
	const char *old = ktr_intern("from before"), *kept = ktr_intern_keep("kept from before");
	ktr_thread_name(77, "mover");
	ktr_names_move(&elsewhere);
	assert_ptr_equal(ktr_names_get(), &elsewhere);
	assert_string_equal(ktr_thread_name_get(77, buf), "mover");
	assert_ptr_equal(ktr_intern("from before"), old);
	assert_string_equal(text_of(old), "from before");
	assert_string_equal(text_of(kept), "kept from before");
	assert_string_equal(text_of(ktr_intern("later")), "later");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(mask_switches_classes, begin),
	    cmocka_unit_test_setup(command_switches_sites_by_glob, begin),
	    cmocka_unit_test_setup(command_with_a_class_changes_the_mask, begin),
	    cmocka_unit_test_setup(off_by_name_works_whoever_switched_on, begin),
	    cmocka_unit_test_setup(off_of_one_owner_leaves_sites_on_for_another, begin),
	    cmocka_unit_test_setup(selection_errors_say_what_was_expected, begin),
	    cmocka_unit_test(probes_are_named_as_in_dtrace),
	    cmocka_unit_test_setup(sites_are_numbered_without_holes, begin),
	    cmocka_unit_test(interned_strings_are_one_and_resolve),
	    cmocka_unit_test(thread_names_follow_their_threads),
	    cmocka_unit_test(a_thread_that_two_name_at_once_has_one_name),
	    cmocka_unit_test(long_strings_are_cut),
	    cmocka_unit_test(names_move_and_keep_what_they_held),
	    cmocka_unit_test_setup(entry_text_prints_an_event_of_this_program, begin),
	    cmocka_unit_test(names_without_end_leave_the_newest_readable),
	    cmocka_unit_test(text_in_use_stays_readable),
	    cmocka_unit_test(texts_that_stay_never_take_all_room),
	    cmocka_unit_test(damaged_texts_are_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
