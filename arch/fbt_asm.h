/* fbt_asm.h - constants for the fbt.S of each port. Assertions beside the C structures compare
 * them. */
#pragma once

/* struct ktr_patch and struct ktr_site (ktr/site.h) */
#define PATCH_AT       0
#define PATCH_SITE     8
#define SITE_HOOK      35
#define SITE_PC        44
#define SITE_FIRE      48
#define SITE_PREDICATE 56

#define THREAD_PREDCACHE 0 /* struct thread (kernel/sched/thread.h) */
