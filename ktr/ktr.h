/*
 * ktr.h - the macros that record events: CTR0–CTR6, TR0–TR6 and the graph macros, with FreeBSD's
 * names and argument order.
 *
 *	CTR2(KTR_PROC, "fork: parent %d child %d", parent, child);
 *
 * The first argument is one or more class bits (a constant); the format is a string literal,
 * checked like printf's, whose number of conversions is the macro's number. Parameters are integers
 * or pointers. A %s parameter must point to read-only data or be an interned string (ktr/intern.h):
 * anything else decodes as "(bad 0x…)".
 *
 * A macro may be used in any context: threads, interrupts, NMI, inside the scheduler and spin
 * locks, before other CPUs run. While its site is off it costs one no-op; no parameter is
 * evaluated.
 *
 * -DKTR_COMPILE_MASK='(KTR_SCHED|KTR_PROC)' leaves out the code and the sites of all other classes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/class.h"
#include "ktr/site.h"

#ifndef KTR_COMPILE_MASK
#define KTR_COMPILE_MASK KTR_ALL
#endif
/** Classes compiled in. */
#define KTR_COMPILE ((uint64_t)(KTR_COMPILE_MASK))

#if !KTR_PORT_PATCH
/** A port without text patching: load and test. Relaxed: a site's state orders nothing. */
#define KTR_PORT_SITE_ON(site) __builtin_expect(__atomic_load_n(&(site)->on, __ATOMIC_RELAXED), 0)
#endif

/* The last two parameters: one struct, so that x86_64 pushes both instead of padding the stack for
 * one. */
struct ktr_pair {
	uint64_t a5, a6;
} __attribute__((aligned(16)));

/*
 * Record one event of a site that is on; use the macros instead. Any context. Hidden, so that the
 * assembly that makes a site may name them in position-independent code.
 */
#pragma GCC visibility push(hidden)
void ktr_record0(const struct ktr_site *site);
void ktr_record1(const struct ktr_site *site, uint64_t a1);
void ktr_record2(const struct ktr_site *site, uint64_t a1, uint64_t a2);
void ktr_record3(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3);
void ktr_record4(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4);
void ktr_record5(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		 struct ktr_pair more);
void ktr_record6(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		 struct ktr_pair more);

/* Records an event with long data, which its last parameter prints, after up to five others. */
void ktr_record_data(const struct ktr_site *site, const void *data, size_t len, uint64_t a1,
		     uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
#pragma GCC visibility pop

/*
 * What a site that is on calls in place of `record`. It is loaded by a plain load, which the
 * compiler can make part of the call; an aligned pointer is loaded whole.
 */
#if KTR_TSAN_
#define KTR_FIRE_(site, record) \
	((__typeof__(&record))__atomic_load_n(&(site)->fire, __ATOMIC_RELAXED))
#else
#define KTR_FIRE_(site, record) ((__typeof__(&record))(site)->fire)
#endif

/* Never called: the compiler checks formats against it. */
__attribute__((format(printf, 1, 2))) static inline void
ktr_check_format(const char *fmt, ...)
{
	(void)fmt;
}

#define KTR_SITE_SECTION_ __attribute__((section("ktr_sites"), aligned(64)))
#define KTR_ARG_(a)       ((uint64_t)(uintptr_t)(a))
#define KTR_UNPAREN_(...) __VA_ARGS__

#if defined(__cplusplus) && !defined(__clang__)
/*
 * GCC refuses to place a variable of an inline function or a template in a section (its bug 41091).
 * So assembly makes the site: once in each file, however often the compiler copies the function.
 */
#define KTR_TEXT_(x)        #x
#define KTR_SITE_NAME_(n)   ktr_site_##n
#define KTR_SITE_AT_(n)     KTR_SITE_NAME_(n)
#define KTR_SITE_SYMBOL_(n) "ktr_site_" KTR_TEXT_(n)
#define KTR_SITE_(site, symbol, m, n, format, record, also_)                                   \
	extern struct ktr_site site __asm__(symbol) __attribute__((visibility("hidden")));     \
	__asm__ volatile(".ifndef " symbol "\n\t"                                              \
			 ".pushsection ktr_sites, \"aw\"\n\t"                                  \
			 ".balign 64\n" symbol ":\n\t"                                         \
			 ".quad " KTR_PORT_OPERAND "0, " KTR_PORT_OPERAND "1\n\t"              \
			 ".quad " KTR_PORT_OPERAND "2, " KTR_PORT_OPERAND "3\n\t"              \
			 ".long " KTR_PORT_OPERAND "4, 0\n\t"                                  \
			 ".byte " KTR_PORT_OPERAND "5, 0, 0, 0, 0, 0, 0, 0\n\t"                \
			 ".quad " KTR_PORT_OPERAND "6\n\t"                                     \
			 ".balign 64\n\t"                                                      \
			 ".popsection\n\t"                                                     \
			 ".endif"                                                              \
			 :                                                                     \
			 : KTR_PORT_SYMBOL(__FILE__), KTR_PORT_SYMBOL(__func__),               \
			   KTR_PORT_SYMBOL(format), "i"((uint64_t)(m)), "i"(__LINE__), "i"(n), \
			   KTR_PORT_SYMBOL(&record))
#define KTR_RECORD_(m, n, format, args, record, cargs) \
	KTR_RECORD_SITE_(__COUNTER__, m, n, format, args, record, cargs)
#define KTR_RECORD_SITE_(id, m, n, format, args, record, cargs) \
	KTR_RECORD_AT_(KTR_SITE_AT_(id), KTR_SITE_SYMBOL_(id), m, n, format, args, record, cargs)
#else
/* __extension__: C++ has designated initializers since C++20. */
#define KTR_SITE_(site, symbol, m, n, format, record, also_)            \
	__extension__ static struct ktr_site site KTR_SITE_SECTION_ = { \
	    .file = __FILE__,                                           \
	    .func = __func__,                                           \
	    .fmt = (format),                                            \
	    .classes = (m),                                             \
	    .line = __LINE__,                                           \
	    .nargs = (n),                                               \
	    .fire = (ktr_fire_fn *)(record),                            \
	    .also = (also_),                                            \
	}
#define KTR_RECORD_(m, n, format, args, record, cargs) \
	KTR_RECORD_AT_(ktr_site_, "", m, n, format, args, record, cargs)
#endif
#ifdef __cplusplus
#define KTR_PAIR_(a, b) (ktr_pair{(a), (b)})
#else
#define KTR_PAIR_(a, b) ((struct ktr_pair){(a), (b)})
#endif

/*
 * n: the number of parameters; args: the parameters, in parentheses, after a comma; record: the
 * function to call; cargs: what it gets after the site.
 */
#define KTR_RECORD_AT_(site, symbol, m, n, format, args, record, cargs)             \
	do {                                                                        \
		if (((uint64_t)(m)&KTR_COMPILE) != 0) {                             \
			KTR_SITE_(site, symbol, m, n, format, record, NULL);        \
			if (KTR_PORT_SITE_ON(&site))                                \
				KTR_FIRE_(&site, record)(&site KTR_UNPAREN_ cargs); \
		}                                                                   \
		if (0)                                                              \
			ktr_check_format(format KTR_UNPAREN_ args);                 \
	} while (0)

#define CTR0(m, format)     KTR_RECORD_(m, 0, format, (), ktr_record0, ())
#define CTR1(m, format, p1) KTR_RECORD_(m, 1, format, (, p1), ktr_record1, (, KTR_ARG_(p1)))
#define CTR2(m, format, p1, p2) \
	KTR_RECORD_(m, 2, format, (, p1, p2), ktr_record2, (, KTR_ARG_(p1), KTR_ARG_(p2)))
#define CTR3(m, format, p1, p2, p3)                            \
	KTR_RECORD_(m, 3, format, (, p1, p2, p3), ktr_record3, \
		    (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3)))
#define CTR4(m, format, p1, p2, p3, p4)                            \
	KTR_RECORD_(m, 4, format, (, p1, p2, p3, p4), ktr_record4, \
		    (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4)))
#define CTR5(m, format, p1, p2, p3, p4, p5)                                    \
	KTR_RECORD_(m, 5, format, (, p1, p2, p3, p4, p5), ktr_record5,         \
		    (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4), \
		     KTR_PAIR_(KTR_ARG_(p5), 0)))
#define CTR6(m, format, p1, p2, p3, p4, p5, p6)                                \
	KTR_RECORD_(m, 6, format, (, p1, p2, p3, p4, p5, p6), ktr_record6,     \
		    (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4), \
		     KTR_PAIR_(KTR_ARG_(p5), KTR_ARG_(p6))))

/**
 * With long data: the format's last conversion is a %s, which prints the `len` bytes at `data`, up
 * to a zero byte. The number of the macro is that of the parameters before it. See
 * ktr_log_record_data() in ktr/ring.h.
 */
#define CTR_DATA0(m, format, data, len)                                      \
	KTR_RECORD_(m, 1, format, (, (const char *)(data)), ktr_record_data, \
		    (, data, len, 0, 0, 0, 0, 0))
#define CTR_DATA1(m, format, p1, data, len)                                      \
	KTR_RECORD_(m, 2, format, (, p1, (const char *)(data)), ktr_record_data, \
		    (, data, len, KTR_ARG_(p1), 0, 0, 0, 0))
#define CTR_DATA2(m, format, p1, p2, data, len)                                      \
	KTR_RECORD_(m, 3, format, (, p1, p2, (const char *)(data)), ktr_record_data, \
		    (, data, len, KTR_ARG_(p1), KTR_ARG_(p2), 0, 0, 0))
#define CTR_DATA3(m, format, p1, p2, p3, data, len)                                      \
	KTR_RECORD_(m, 4, format, (, p1, p2, p3, (const char *)(data)), ktr_record_data, \
		    (, data, len, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), 0, 0))
#define CTR_DATA4(m, format, p1, p2, p3, p4, data, len)                                      \
	KTR_RECORD_(m, 5, format, (, p1, p2, p3, p4, (const char *)(data)), ktr_record_data, \
		    (, data, len, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4), 0))
#define CTR_DATA5(m, format, p1, p2, p3, p4, p5, data, len)                                      \
	KTR_RECORD_(m, 6, format, (, p1, p2, p3, p4, p5, (const char *)(data)), ktr_record_data, \
		    (, data, len, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4),        \
		     KTR_ARG_(p5)))

#define TR0(format)                         CTR0(KTR_GEN, format)
#define TR1(format, p1)                     CTR1(KTR_GEN, format, p1)
#define TR2(format, p1, p2)                 CTR2(KTR_GEN, format, p1, p2)
#define TR3(format, p1, p2, p3)             CTR3(KTR_GEN, format, p1, p2, p3)
#define TR4(format, p1, p2, p3, p4)         CTR4(KTR_GEN, format, p1, p2, p3, p4)
#define TR5(format, p1, p2, p3, p4, p5)     CTR5(KTR_GEN, format, p1, p2, p3, p4, p5)
#define TR6(format, p1, p2, p3, p4, p5, p6) CTR6(KTR_GEN, format, p1, p2, p3, p4, p5, p6)

/*
 * Graph events, for schedgraph: states, points, counters and intervals of something that has an
 * ident, with up to four attributes. group, attribute formats and the fixed texts are string
 * literals; ident and state are %s parameters and obey the rule for these.
 *
 *	KTR_STATE1(KTR_SCHED, "thread", td->ident, "running", "prio:%d", td->prio);
 */
#define KTR_GRAPH_(group, type) "KTRGRAPH group:\"" group "\", id:\"%s\", " type ", attributes: "

/** The format of a KTR_STATEn with these attributes, for SDT_CTR() (ktr/sdt.h). */
#define KTR_STATE_FORMAT(group, attributes) KTR_GRAPH_(group, "state:\"%s\"") attributes
#define KTR_POINT_FORMAT(group, attributes) KTR_GRAPH_(group, "point:\"%s\"") attributes

#define KTR_EVENT0(m, group, ident, type, value) \
	CTR2(m, KTR_GRAPH_(group, type) "none", ident, value)
#define KTR_EVENT1(m, group, ident, type, value, a0, v0) \
	CTR3(m, KTR_GRAPH_(group, type) a0, ident, value, (v0))
#define KTR_EVENT2(m, group, ident, type, value, a0, v0, a1, v1) \
	CTR4(m, KTR_GRAPH_(group, type) a0 ", " a1, ident, value, (v0), (v1))
#define KTR_EVENT3(m, group, ident, type, value, a0, v0, a1, v1, a2, v2) \
	CTR5(m, KTR_GRAPH_(group, type) a0 ", " a1 ", " a2, ident, value, (v0), (v1), (v2))
#define KTR_EVENT4(m, group, ident, type, value, a0, v0, a1, v1, a2, v2, a3, v3)              \
	CTR6(m, KTR_GRAPH_(group, type) a0 ", " a1 ", " a2 ", " a3, ident, value, (v0), (v1), \
	     (v2), (v3))

#define KTR_STATE0(m, group, ident, state) KTR_EVENT0(m, group, ident, "state:\"%s\"", state)
#define KTR_STATE1(m, group, ident, state, a0, v0) \
	KTR_EVENT1(m, group, ident, "state:\"%s\"", state, a0, (v0))
#define KTR_STATE2(m, group, ident, state, a0, v0, a1, v1) \
	KTR_EVENT2(m, group, ident, "state:\"%s\"", state, a0, (v0), a1, (v1))
#define KTR_STATE3(m, group, ident, state, a0, v0, a1, v1, a2, v2) \
	KTR_EVENT3(m, group, ident, "state:\"%s\"", state, a0, (v0), a1, (v1), a2, (v2))
#define KTR_STATE4(m, group, ident, state, a0, v0, a1, v1, a2, v2, a3, v3) \
	KTR_EVENT4(m, group, ident, "state:\"%s\"", state, a0, (v0), a1, (v1), a2, (v2), a3, (v3))

#define KTR_COUNTER0(m, group, ident, counter) KTR_EVENT0(m, group, ident, "counter:%d", counter)
#define KTR_COUNTER1(m, group, ident, counter, a0, v0) \
	KTR_EVENT1(m, group, ident, "counter:%d", counter, a0, (v0))
#define KTR_COUNTER2(m, group, ident, counter, a0, v0, a1, v1) \
	KTR_EVENT2(m, group, ident, "counter:%d", counter, a0, (v0), a1, (v1))
#define KTR_COUNTER3(m, group, ident, counter, a0, v0, a1, v1, a2, v2) \
	KTR_EVENT3(m, group, ident, "counter:%d", counter, a0, (v0), a1, (v1), a2, (v2))
#define KTR_COUNTER4(m, group, ident, counter, a0, v0, a1, v1, a2, v2, a3, v3) \
	KTR_EVENT4(m, group, ident, "counter:%d", counter, a0, (v0), a1, (v1), a2, (v2), a3, (v3))

#define KTR_POINT0(m, group, ident, point) KTR_EVENT0(m, group, ident, "point:\"%s\"", point)
#define KTR_POINT1(m, group, ident, point, a0, v0) \
	KTR_EVENT1(m, group, ident, "point:\"%s\"", point, a0, (v0))
#define KTR_POINT2(m, group, ident, point, a0, v0, a1, v1) \
	KTR_EVENT2(m, group, ident, "point:\"%s\"", point, a0, (v0), a1, (v1))
#define KTR_POINT3(m, group, ident, point, a0, v0, a1, v1, a2, v2) \
	KTR_EVENT3(m, group, ident, "point:\"%s\"", point, a0, (v0), a1, (v1), a2, (v2))
#define KTR_POINT4(m, group, ident, point, a0, v0, a1, v1, a2, v2, a3, v3) \
	KTR_EVENT4(m, group, ident, "point:\"%s\"", point, a0, (v0), a1, (v1), a2, (v2), a3, (v3))

#define KTR_START0(m, group, ident, key) \
	KTR_EVENT0(m, group, ident, "start:0x%jX", (uintmax_t)(key))
#define KTR_START1(m, group, ident, key, a0, v0) \
	KTR_EVENT1(m, group, ident, "start:0x%jX", (uintmax_t)(key), a0, (v0))
#define KTR_START2(m, group, ident, key, a0, v0, a1, v1) \
	KTR_EVENT2(m, group, ident, "start:0x%jX", (uintmax_t)(key), a0, (v0), a1, (v1))
#define KTR_START3(m, group, ident, key, a0, v0, a1, v1, a2, v2) \
	KTR_EVENT3(m, group, ident, "start:0x%jX", (uintmax_t)(key), a0, (v0), a1, (v1), a2, (v2))
#define KTR_START4(m, group, ident, key, a0, v0, a1, v1, a2, v2, a3, v3)                           \
	KTR_EVENT4(m, group, ident, "start:0x%jX", (uintmax_t)(key), a0, (v0), a1, (v1), a2, (v2), \
		   a3, (v3))

#define KTR_STOP0(m, group, ident, key) KTR_EVENT0(m, group, ident, "stop:0x%jX", (uintmax_t)(key))
#define KTR_STOP1(m, group, ident, key, a0, v0) \
	KTR_EVENT1(m, group, ident, "stop:0x%jX", (uintmax_t)(key), a0, (v0))
#define KTR_STOP2(m, group, ident, key, a0, v0, a1, v1) \
	KTR_EVENT2(m, group, ident, "stop:0x%jX", (uintmax_t)(key), a0, (v0), a1, (v1))
#define KTR_STOP3(m, group, ident, key, a0, v0, a1, v1, a2, v2) \
	KTR_EVENT3(m, group, ident, "stop:0x%jX", (uintmax_t)(key), a0, (v0), a1, (v1), a2, (v2))
#define KTR_STOP4(m, group, ident, key, a0, v0, a1, v1, a2, v2, a3, v3)                           \
	KTR_EVENT4(m, group, ident, "stop:0x%jX", (uintmax_t)(key), a0, (v0), a1, (v1), a2, (v2), \
		   a3, (v3))

/** Attribute that names the other end: KTR_POINT1(…, "wokeup", KTR_ATTR_LINKED, other->ident). */
#define KTR_ATTR_LINKED "linkedto:\"%s\""
