/*
 * site.h - a place in the program's text where events are recorded, and the records that say where
 * to patch it.
 *
 * Sites stand in the linker section ktr_sites, which is one array: a site's number is its index.
 * The compiler may copy a trace point (inlining, unrolling), so that one site may have several
 * patch records, or none.
 *
 * Locking legend: [c] constant, [k] written under the control lock, read anywhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Other machines are refused by the compiler. */
_Static_assert(sizeof(void *) == 8,
	       "ktr needs a 64-bit machine: heads and parameters are single 64-bit words");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "ktr needs a little-endian machine: ports store an entry's words in parts");

/* ThreadSanitizer sees no races in words that are stored as atomics. */
#if defined(__SANITIZE_THREAD__)
#define KTR_TSAN_ 1
#elif defined(__has_feature)
#define KTR_TSAN_ __has_feature(thread_sanitizer)
#else
#define KTR_TSAN_ 0
#endif

/** What a site is. */
enum ktr_site_kind {
	KTR_SITE_POINT,  /* a trace point, CTRn in the source */
	KTR_SITE_ENTRY,  /* the entry of a function: made by the port, not by ktr.h */
	KTR_SITE_RETURN, /* all returns of a function */
	KTR_SITE_RECORD, /* no probe: ktr_log_record() is called with it */
	KTR_SITE_PROBE,  /* a probe of SDT, with any number of tracepoints (ktr/sdt.h) */
	KTR_SITE_MADE,   /* made at run time (ktr/dynamic.h) */
	KTR_SITE_FREE,   /* none; one may be made, or was */
};

#define KTR_SDT_ARGS 7

/** What is known of a probe of SDT, or of one made at run time; constant. */
struct ktr_sdt {
	const char *provider, *module, *function, *name; /* "": any */
	const char *types[KTR_SDT_ARGS]; /* of its arguments, as C writes them; NULL: no more */
	const char *xlate[KTR_SDT_ARGS]; /* what D translates them to, or NULL */
	const char *last; /* seven arguments: what the log prints of the last two; else NULL */
};

/** Why a site's instructions jump: bits. */
enum ktr_site_why {
	KTR_SITE_OFF = 0,
	KTR_SITE_ON = 1,   /* an owner wants it */
	KTR_SITE_ALSO = 2, /* an owner wants the site `also` */
};

/** A function that records an event of a site; its parameters are those of ktr_record0(), …. */
typedef void ktr_fire_fn(void);

struct ktr_site {
	const char *file;   /* [c] as the compiler was given it */
	const char *func;   /* [c] */
	const char *fmt;    /* [c] printf format of the parameters */
	uint64_t classes;   /* [c] one or more KTR_… bits */
	uint32_t line : 24; /* [c] */
	uint8_t hook;       /* [k] what fire() calls: hook.c */
	uint32_t owners;    /* [k] bit N: owner N wants it on; see ktr_hook_own() */
	uint8_t nargs;      /* [c] 0 to 6 */
	uint8_t on;         /* [k] enum ktr_site_why; what the fallback test loads */
	uint8_t strings;    /* [k] bit N: parameter N is a %s; valid when bit 7 is set */
	uint8_t kind;       /* [c] enum ktr_site_kind */
	uint32_t pc; /* [c] KTR_SITE_ENTRY, KTR_SITE_RETURN: the function, low half of address;
			KTR_SITE_MADE, KTR_SITE_FREE: ktr_dynamic_check() */
	ktr_fire_fn *fire; /* [k] records an event, or calls hooks (ktr/hook.h); see KTR_FIRE_() */
	union {
		/* [c] KTR_SITE_POINT: a probe that fires at the same instructions, or NULL */
		struct ktr_site *also;
		const struct ktr_sdt *sdt; /* [c] KTR_SITE_PROBE, KTR_SITE_MADE */
		/* KTR_SITE_ENTRY, KTR_SITE_RETURN: KTR_PREDICATE(), or 0; atomic */
		uint64_t predicate;
	};
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct ktr_site) == 64, "ktr_sites has no holes");
_Static_assert(offsetof(struct ktr_site, classes) == 24 && offsetof(struct ktr_site, hook) == 35 &&
		   offsetof(struct ktr_site, nargs) == 40 && offsetof(struct ktr_site, pc) == 44 &&
		   offsetof(struct ktr_site, fire) == 48 &&
		   offsetof(struct ktr_site, predicate) == 56,
	       "known to assembly");

/**
 * One place to patch: three offsets, each from its own address. Written by the port's
 * KTR_PORT_SITE_ON() into the linker section ktr_patch.
 */
struct ktr_patch {
	int32_t at;     /* the instruction */
	int32_t target; /* where it jumps when the site is on */
	int32_t site;   /* its struct ktr_site */
};

_Static_assert(sizeof(struct ktr_patch) == 12, "written by assembly");

/* The prefix by which an operand is printed without the assembler's $ or #; RISC-V's port says "%".
 */
#ifndef KTR_PORT_OPERAND
#define KTR_PORT_OPERAND "%c"
#endif

/* The constraint of an operand that is an address which the linker knows. aarch64's port says "S",
 * as GCC refuses "i" there in position-independent code. */
#ifndef KTR_PORT_SYMBOL
#define KTR_PORT_SYMBOL "i"
#endif

#ifdef __clang__
#define KTR_COLD_LABEL_ /* Clang has no attribute for it */
#else
#define KTR_COLD_LABEL_ __attribute__((cold))
#endif

/**
 * The body of a port's KTR_PORT_SITE_ON(site): false until `insn`, a no-op given as assembly text,
 * is rewritten to a jump to where it is true.
 * An insn with a label 1 of its own means the instruction after that label. The record belongs to
 * the function's section group, if there is one: the linker drops both or neither ("?"). Clang
 * takes no site of an inline C++ function with -fPIC, unless with -fvisibility=hidden.
 */
#define KTR_PATCH_ASM_(insn, site)                         \
	__asm__ goto("1:\t" insn "\n\t"                    \
		     ".pushsection ktr_patch, \"a?\"\n\t"  \
		     ".balign 4\n\t"                       \
		     ".long 1b - .\n\t"                    \
		     ".long %l[ktr_on_] - .\n\t"           \
		     ".long " KTR_PORT_OPERAND "0 - .\n\t" \
		     ".popsection"                         \
		     :                                     \
		     : KTR_PORT_SYMBOL(site)               \
		     :                                     \
		     : ktr_on_)
#ifdef __cplusplus
/* A separate function: Clang 14 takes each label in a function for a target of every asm goto. */
#define KTR_PATCH_SITE_ON(insn, site)                \
	([]() __attribute__((always_inline))->bool { \
		KTR_PATCH_ASM_(insn, site);          \
		return false;                        \
	ktr_on_:                                     \
		return true;                         \
	}())
#else
#define KTR_PATCH_SITE_ON(insn, site)        \
	__extension__({                      \
		__label__ ktr_on_, ktr_end_; \
		_Bool ktr_hit_ = 0;          \
		KTR_PATCH_ASM_(insn, site);  \
		goto ktr_end_;               \
	ktr_on_:                             \
		KTR_COLD_LABEL_;             \
		ktr_hit_ = 1;                \
	ktr_end_:;                           \
		ktr_hit_;                    \
	})
#endif

static inline uintptr_t
ktr_patch_at(const struct ktr_patch *p)
{
	return (uintptr_t)&p->at + (uintptr_t)(intptr_t)p->at;
}

static inline uintptr_t
ktr_patch_target(const struct ktr_patch *p)
{
	return (uintptr_t)&p->target + (uintptr_t)(intptr_t)p->target;
}

static inline struct ktr_site *
ktr_patch_site(const struct ktr_patch *p)
{
	return (struct ktr_site *)((uintptr_t)&p->site + (uintptr_t)(intptr_t)p->site);
}

/* The linker's. Weak: a program may have no site. Hidden: reached without a table of addresses. */
#define KTR_LINKER_ __attribute__((weak, visibility("hidden")))
extern struct ktr_site __start_ktr_sites[] KTR_LINKER_;
extern struct ktr_site __stop_ktr_sites[] KTR_LINKER_;

extern const struct ktr_patch __start_ktr_patch[] KTR_LINKER_;
extern const struct ktr_patch __stop_ktr_patch[] KTR_LINKER_;

/** Why a site's instructions are to jump. */
static inline unsigned
ktr_site_why(const struct ktr_site *site)
{
	unsigned why = KTR_SITE_OFF;
	if (__atomic_load_n(&site->owners, __ATOMIC_RELAXED) != 0)
		why |= KTR_SITE_ON;
	if (site->kind == KTR_SITE_POINT && site->also != NULL &&
	    __atomic_load_n(&site->also->owners, __ATOMIC_RELAXED) != 0)
		why |= KTR_SITE_ALSO;
	return why;
}

/** What the instruction is to do: jump to its target, or what it does by itself. */
static inline bool
ktr_patch_on(const struct ktr_patch *p)
{
	return ktr_site_why(ktr_patch_site(p)) != KTR_SITE_OFF;
}

/** Runs the statement that follows for every record whose instruction is to change. Control lock.
 */
#define KTR_PATCH_EACH(p)                                                              \
	for (const struct ktr_patch *p = __start_ktr_patch; p < __stop_ktr_patch; p++) \
		if ((ktr_patch_site(p)->on != KTR_SITE_OFF) != ktr_patch_on(p))

/** False: nothing fires at this site. */
static inline bool
ktr_site_is_probe(const struct ktr_site *site)
{
	return site->kind != KTR_SITE_RECORD && site->kind != KTR_SITE_FREE;
}

/** Sites in the program, at most 65536; numbers run from 0. Any context. */
static inline unsigned
ktr_site_count(void)
{
	return (unsigned)(((uintptr_t)__stop_ktr_sites - (uintptr_t)__start_ktr_sites) /
			  sizeof(struct ktr_site));
}

/** The site with that number, NULL when there is none. Any context. */
static inline struct ktr_site *
ktr_site_get(unsigned number)
{
	return number < ktr_site_count() ? &__start_ktr_sites[number] : NULL;
}

/** The number of the site whose address has this low half. */
static inline uint32_t
ktr_site_number_of(uint32_t low)
{
	return (low - (uint32_t)(uintptr_t)__start_ktr_sites) / sizeof(struct ktr_site);
}

static inline uint32_t
ktr_site_number(const struct ktr_site *site)
{
	return ktr_site_number_of((uint32_t)(uintptr_t)site);
}
