/*
 * sdt.h - statically defined tracing: probes with names and typed arguments, with the macros of
 * FreeBSD's SDT(9), up to FreeBSD 10.0; later versions make `sname` of `name`. For C.
 *
 *	SDT_PROVIDER_DEFINE(icmp);
 *	SDT_PROBE_DEFINE1(icmp, , unreach, pkt_receive, pkt-receive, "struct icmp *");
 *	…
 *	SDT_PROBE1(icmp, , unreach, pkt_receive, icp);
 *
 * This defines the probe icmp::unreach:pkt-receive (ktr/probe.h), and one tracepoint. A field may
 * be empty. A formatter of C must leave the dashes of an sname alone. The argument `name` belongs
 * to the C identifier, and `sname` is the probe's name. A probe is one struct ktr_site, and each
 * of its tracepoints is one no-op that is patched with it. So a probe may have tracepoints in
 * several functions and files, or none. A tracepoint may stand in any context, as those of
 * ktr/ktr.h may. No argument is evaluated while the probe is off.
 *
 * Owners switch probes on by name (ktr_select()). No bit of the class mask does. What a probe
 * records is an event of the log. An event has six parameters; the last two arguments of a probe
 * with seven are recorded as one text.
 *
 * Unlike in FreeBSD, a probe that is off costs one no-op and no load.
 */
#pragma once

#include "ktr/ktr.h"

/** Defines a provider. Once in the program, at file level. */
#define SDT_PROVIDER_DEFINE(prov) const char sdt_provider_##prov[] = #prov
/** Declares a provider that another file defines. */
#define SDT_PROVIDER_DECLARE(prov) extern const char sdt_provider_##prov[]

/** Declares a probe that another file defines. */
#define SDT_PROBE_DECLARE(prov, mod, func, name) \
	extern struct ktr_site SDT_SITE_(prov, mod, func, name)

/**
 * Defines a probe of a provider that is declared. text: the probe's name; format: of its arguments,
 * which begins with ": ", or "" if it has none; then their number and their types.
 */
#define SDT_PROBE_DEFINE_TEXT(prov, mod, func, probe, text, format, n, ...) \
	SDT_XLATE_(prov, mod, func, probe, text, format, n, ktr_record##n, (__VA_ARGS__), (NULL))
/**
 * A probe with seven arguments. `format` is that of the first five, and ends with a
 * %s, which stands for the last two. These are printed by the format `last`.
 */
#define SDT_PROBE_DEFINE_TEXT7(prov, mod, func, probe, text, format, last, ...) \
	SDT_XLATE7_(prov, mod, func, probe, text, format, last, (__VA_ARGS__), (NULL))
/** A probe whose one argument is a text: its tracepoints use SDT_ARGS_DATA0(). */
#define SDT_PROBE_DEFINE_DATA(prov, mod, func, probe, text, format) \
	SDT_XLATE_(prov, mod, func, probe, text, format, 1, ktr_record_data, ("char *"), (NULL))

/** A probe with the types to which D translates the arguments: two lists in parentheses. */
#define SDT_PROBE_DEFINE_TEXT_XLATE(prov, mod, func, probe, text, format, n, types, xlates) \
	SDT_XLATE_(prov, mod, func, probe, text, format, n, ktr_record##n, types, xlates)

/** Defines a probe without arguments. */
#define SDT_PROBE_DEFINE(prov, mod, func, name, sname) \
	SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, #sname, "", 0, NULL)
#define SDT_PROBE_DEFINE0(prov, mod, func, name, sname) \
	SDT_PROBE_DEFINE(prov, mod, func, name, sname)
/** Defines a probe with arguments of these types, which are strings. */
#define SDT_PROBE_DEFINE1(prov, mod, func, name, sname, t0) \
	SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, #sname, SDT_FORMAT1_, 1, t0)
#define SDT_PROBE_DEFINE2(prov, mod, func, name, sname, t0, t1) \
	SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, #sname, SDT_FORMAT2_, 2, t0, t1)
#define SDT_PROBE_DEFINE3(prov, mod, func, name, sname, t0, t1, t2) \
	SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, #sname, SDT_FORMAT3_, 3, t0, t1, t2)
#define SDT_PROBE_DEFINE4(prov, mod, func, name, sname, t0, t1, t2, t3) \
	SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, #sname, SDT_FORMAT4_, 4, t0, t1, t2, t3)
#define SDT_PROBE_DEFINE5(prov, mod, func, name, sname, t0, t1, t2, t3, t4) \
	SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, #sname, SDT_FORMAT5_, 5, t0, t1, t2, t3, t4)
#define SDT_PROBE_DEFINE6(prov, mod, func, name, sname, t0, t1, t2, t3, t4, t5)                   \
	SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, #sname, SDT_FORMAT6_, 6, t0, t1, t2, t3, t4, \
			      t5)
#define SDT_PROBE_DEFINE7(prov, mod, func, name, sname, t0, t1, t2, t3, t4, t5, t6)                \
	SDT_PROBE_DEFINE_TEXT7(prov, mod, func, name, #sname, SDT_FORMAT7_, SDT_LAST_, t0, t1, t2, \
			       t3, t4, t5, t6)

/** Probes with the types to which D translates the arguments: type, translated type, …. */
#define SDT_PROBE_DEFINE0_XLATE(prov, mod, func, name, sname) \
	SDT_PROBE_DEFINE(prov, mod, func, name, sname)
#define SDT_PROBE_DEFINE1_XLATE(prov, mod, func, name, sname, t0, x0) \
	SDT_XLATE_(prov, mod, func, name, #sname, SDT_FORMAT1_, 1, ktr_record1, (t0), (x0))
#define SDT_PROBE_DEFINE2_XLATE(prov, mod, func, name, sname, t0, x0, t1, x1) \
	SDT_XLATE_(prov, mod, func, name, #sname, SDT_FORMAT2_, 2, ktr_record2, (t0, t1), (x0, x1))
#define SDT_PROBE_DEFINE3_XLATE(prov, mod, func, name, sname, t0, x0, t1, x1, t2, x2)         \
	SDT_XLATE_(prov, mod, func, name, #sname, SDT_FORMAT3_, 3, ktr_record3, (t0, t1, t2), \
		   (x0, x1, x2))
#define SDT_PROBE_DEFINE4_XLATE(prov, mod, func, name, sname, t0, x0, t1, x1, t2, x2, t3, x3)     \
	SDT_XLATE_(prov, mod, func, name, #sname, SDT_FORMAT4_, 4, ktr_record4, (t0, t1, t2, t3), \
		   (x0, x1, x2, x3))
#define SDT_PROBE_DEFINE5_XLATE(prov, mod, func, name, sname, t0, x0, t1, x1, t2, x2, t3, x3, t4, \
				x4)                                                               \
	SDT_XLATE_(prov, mod, func, name, #sname, SDT_FORMAT5_, 5, ktr_record5,                   \
		   (t0, t1, t2, t3, t4), (x0, x1, x2, x3, x4))
#define SDT_PROBE_DEFINE6_XLATE(prov, mod, func, name, sname, t0, x0, t1, x1, t2, x2, t3, x3, t4, \
				x4, t5, x5)                                                       \
	SDT_XLATE_(prov, mod, func, name, #sname, SDT_FORMAT6_, 6, ktr_record6,                   \
		   (t0, t1, t2, t3, t4, t5), (x0, x1, x2, x3, x4, x5))
#define SDT_PROBE_DEFINE7_XLATE(prov, mod, func, name, sname, t0, x0, t1, x1, t2, x2, t3, x3, t4, \
				x4, t5, x5, t6, x6)                                               \
	SDT_XLATE7_(prov, mod, func, name, #sname, SDT_FORMAT7_, SDT_LAST_,                       \
		    (t0, t1, t2, t3, t4, t5, t6), (x0, x1, x2, x3, x4, x5, x6))

/** A tracepoint. Arguments are integers or pointers. Any context. */
#define SDT_PROBE0(prov, mod, func, name) SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS0())
#define SDT_PROBE1(prov, mod, func, name, a0) \
	SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS1(a0))
#define SDT_PROBE2(prov, mod, func, name, a0, a1) \
	SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS2(a0, a1))
#define SDT_PROBE3(prov, mod, func, name, a0, a1, a2) \
	SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS3(a0, a1, a2))
#define SDT_PROBE4(prov, mod, func, name, a0, a1, a2, a3) \
	SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS4(a0, a1, a2, a3))
#define SDT_PROBE5(prov, mod, func, name, a0, a1, a2, a3, a4) \
	SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS5(a0, a1, a2, a3, a4))
#define SDT_PROBE6(prov, mod, func, name, a0, a1, a2, a3, a4, a5) \
	SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS6(a0, a1, a2, a3, a4, a5))
#define SDT_PROBE7(prov, mod, func, name, a0, a1, a2, a3, a4, a5, a6) \
	SDT_FIRE_(SDT_SITE_(prov, mod, func, name), SDT_ARGS7(a0, a1, a2, a3, a4, a5, a6))
/** Five arguments. The old name. */
#define SDT_PROBE(prov, mod, func, name, a0, a1, a2, a3, a4) \
	SDT_PROBE5(prov, mod, func, name, a0, a1, a2, a3, a4)

/** A tracepoint whose arguments are SDT_ARGSn(…) or SDT_ARGS_DATA0(…). */
#define SDT_FIRE(prov, mod, func, name, sdt) SDT_FIRE_(SDT_SITE_(prov, mod, func, name), sdt)

/** True while the probe is on: for what is expensive to find out. Any context. */
#define SDT_PROBE_ENABLED(prov, mod, func, name) KTR_OWNED_(&SDT_SITE_(prov, mod, func, name))

/**
 * SDT_PROBEn and CTRn in one place: they share one no-op, and each has its own parameters. The
 * macro's number is that of CTRn. `sdt` has the arguments of the probe: SDT_ARGSn(…).
 *
 *	SDT_CTR1(proc, , , exit, SDT_ARGS1(reason), KTR_PROC, "exit: pid %u", p->pid);
 */
#define SDT_CTR0(prov, mod, func, name, sdt, m, format) \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 0, format, (), ktr_record0, ())
#define SDT_CTR1(prov, mod, func, name, sdt, m, format, p1)                                \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 1, format, (, p1), ktr_record1, \
		 (, KTR_ARG_(p1)))
#define SDT_CTR2(prov, mod, func, name, sdt, m, format, p1, p2)                                \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 2, format, (, p1, p2), ktr_record2, \
		 (, KTR_ARG_(p1), KTR_ARG_(p2)))
#define SDT_CTR3(prov, mod, func, name, sdt, m, format, p1, p2, p3)                                \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 3, format, (, p1, p2, p3), ktr_record3, \
		 (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3)))
#define SDT_CTR4(prov, mod, func, name, sdt, m, format, p1, p2, p3, p4)                   \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 4, format, (, p1, p2, p3, p4), \
		 ktr_record4, (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4)))
#define SDT_CTR5(prov, mod, func, name, sdt, m, format, p1, p2, p3, p4, p5)                   \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 5, format, (, p1, p2, p3, p4, p5), \
		 ktr_record5,                                                                 \
		 (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4),                   \
		  KTR_PAIR_(KTR_ARG_(p5), 0)))
#define SDT_CTR6(prov, mod, func, name, sdt, m, format, p1, p2, p3, p4, p5, p6)                   \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 6, format, (, p1, p2, p3, p4, p5, p6), \
		 ktr_record6,                                                                     \
		 (, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4),                       \
		  KTR_PAIR_(KTR_ARG_(p5), KTR_ARG_(p6))))
/** A tracepoint and a CTR_DATA4 in one. */
#define SDT_CTR_DATA4(prov, mod, func, name, sdt, m, format, p1, p2, p3, p4, data, len) \
	SDT_CTR_(SDT_SITE_(prov, mod, func, name), sdt, m, 5, format,                   \
		 (, p1, p2, p3, p4, (const char *)(data)), ktr_record_data,             \
		 (, data, len, KTR_ARG_(p1), KTR_ARG_(p2), KTR_ARG_(p3), KTR_ARG_(p4), 0))

/* Fires the probe ktr_probe_. DATA0: its only argument is a text of `len` bytes. */
#define SDT_ARGS_DATA0(data, len) \
	KTR_FIRE_(ktr_probe_, ktr_record_data)(ktr_probe_, data, len, 0, 0, 0, 0, 0)
#define SDT_ARGS0()     KTR_FIRE_(ktr_probe_, ktr_record0)(ktr_probe_)
#define SDT_ARGS1(a)    KTR_FIRE_(ktr_probe_, ktr_record1)(ktr_probe_, KTR_ARG_(a))
#define SDT_ARGS2(a, b) KTR_FIRE_(ktr_probe_, ktr_record2)(ktr_probe_, KTR_ARG_(a), KTR_ARG_(b))
#define SDT_ARGS3(a, b, c) \
	KTR_FIRE_(ktr_probe_, ktr_record3)(ktr_probe_, KTR_ARG_(a), KTR_ARG_(b), KTR_ARG_(c))
#define SDT_ARGS4(a, b, c, d)              \
	KTR_FIRE_(ktr_probe_, ktr_record4) \
	(ktr_probe_, KTR_ARG_(a), KTR_ARG_(b), KTR_ARG_(c), KTR_ARG_(d))
#define SDT_ARGS5(a, b, c, d, e)           \
	KTR_FIRE_(ktr_probe_, ktr_record5) \
	(ktr_probe_, KTR_ARG_(a), KTR_ARG_(b), KTR_ARG_(c), KTR_ARG_(d), KTR_PAIR_(KTR_ARG_(e), 0))
#define SDT_ARGS6(a, b, c, d, e, f)                                      \
	KTR_FIRE_(ktr_probe_, ktr_record6)                               \
	(ktr_probe_, KTR_ARG_(a), KTR_ARG_(b), KTR_ARG_(c), KTR_ARG_(d), \
	 KTR_PAIR_(KTR_ARG_(e), KTR_ARG_(f)))
#define SDT_ARGS7(a, b, c, d, e, f, g)                                                             \
	KTR_FIRE_(ktr_probe_, ktr_record_sdt7)                                                     \
	(ktr_probe_, KTR_ARG_(a), KTR_ARG_(b), KTR_ARG_(c), KTR_ARG_(d), KTR_ARG_(e), KTR_ARG_(f), \
	 KTR_ARG_(g))

/** Records an event of a probe with seven arguments. Any context. */
void ktr_record_sdt7(const struct ktr_site *site, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6);

#define KTR_OWNED_(site) (__atomic_load_n(&(site)->owners, __ATOMIC_RELAXED) != 0)

#define SDT_NAME_(what, prov, mod, func, name) what##_##prov##_##mod##_##func##_##name
#define SDT_SITE_(prov, mod, func, name)       SDT_NAME_(sdt, prov, mod, func, name)

#define SDT_FORMAT1_ ": arg0 %#lx"
#define SDT_FORMAT2_ SDT_FORMAT1_ " arg1 %#lx"
#define SDT_FORMAT3_ SDT_FORMAT2_ " arg2 %#lx"
#define SDT_FORMAT4_ SDT_FORMAT3_ " arg3 %#lx"
#define SDT_FORMAT5_ SDT_FORMAT4_ " arg4 %#lx"
#define SDT_FORMAT6_ SDT_FORMAT5_ " arg5 %#lx"
#define SDT_FORMAT7_ SDT_FORMAT5_ " arg5 %s"
#define SDT_LAST_    "%#lx arg6 %#lx"

#define SDT_XLATE_(prov, mod, func, probe, text, format, n, record, t, x) \
	SDT_INFO_(prov, mod, func, probe, text, format, n, record, t, x, NULL)

#define SDT_XLATE7_(prov, mod, func, probe, text, format, last, t, x) \
	SDT_INFO_(prov, mod, func, probe, text, format, 6, ktr_record_sdt7, t, x, last)

#define SDT_INFO_(prov, mod, func, probe, text, format, n, record, t, x, more)      \
	static const struct ktr_sdt SDT_NAME_(sdt_info, prov, mod, func, probe) = { \
	    .provider = sdt_provider_##prov,                                        \
	    .module = #mod,                                                         \
	    .function = #func,                                                      \
	    .name = (text),                                                         \
	    .types = {KTR_UNPAREN_ t},                                              \
	    .xlate = {KTR_UNPAREN_ x},                                              \
	    .last = (more),                                                         \
	};                                                                          \
	SDT_DEFINE_(prov, mod, func, probe, #prov ":" #mod ":" #func ":" text format, n, record)

#define SDT_DEFINE_(prov, mod, function, probe, format, n, record)                  \
	struct ktr_site SDT_SITE_(prov, mod, function, probe) KTR_SITE_SECTION_ = { \
	    .file = __FILE__,                                                       \
	    .func = #function,                                                      \
	    .fmt = (format),                                                        \
	    .line = __LINE__,                                                       \
	    .nargs = (n),                                                           \
	    .kind = KTR_SITE_PROBE,                                                 \
	    .fire = (ktr_fire_fn *)(record),                                        \
	    .sdt = &SDT_NAME_(sdt_info, prov, mod, function, probe),                \
	}

#define SDT_FIRE_(probe, sdt)                                       \
	do {                                                        \
		if (KTR_PORT_SITE_ON(&probe)) {                     \
			const struct ktr_site *ktr_probe_ = &probe; \
			sdt;                                        \
		}                                                   \
	} while (0)

/*
 * Tests one word if only the trace point is on. While owners change, what only one of them wants
 * may be recorded, or not, for a short time.
 */
#define SDT_CTR_(probe, sdt, m, n, format, args, record, cargs)                         \
	do {                                                                            \
		if (((uint64_t)(m)&KTR_COMPILE) == 0) {                                 \
			SDT_FIRE_(probe, sdt);                                          \
		} else {                                                                \
			KTR_SITE_(ktr_site_, "", m, n, format, record, &probe);         \
			if (KTR_PORT_SITE_ON(&ktr_site_)) {                             \
				if (__atomic_load_n(&ktr_site_.on, __ATOMIC_RELAXED) == \
				    KTR_SITE_ON) {                                      \
					KTR_FIRE_(&ktr_site_, record)                   \
					(&ktr_site_ KTR_UNPAREN_ cargs);                \
				} else {                                                \
					const struct ktr_site *ktr_probe_ = &probe;     \
					if (KTR_OWNED_(&ktr_site_))                     \
						KTR_FIRE_(&ktr_site_, record)           \
					(&ktr_site_ KTR_UNPAREN_ cargs);                \
					if (KTR_OWNED_(&probe))                         \
						sdt;                                    \
				}                                                       \
			}                                                               \
		}                                                                       \
		if (0)                                                                  \
			ktr_check_format(format KTR_UNPAREN_ args);                     \
	} while (0)
