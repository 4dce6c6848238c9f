/* auxvec.h - what a program finds above its environment, Linux's numbers. */
#pragma once

#define AT_NULL         0
#define AT_PHDR         3
#define AT_PHENT        4
#define AT_PHNUM        5
#define AT_PAGESZ       6
#define AT_BASE         7 /* where the dynamic linker is: nowhere, 0 */
#define AT_FLAGS        8
#define AT_ENTRY        9
#define AT_UID          11
#define AT_EUID         12
#define AT_GID          13
#define AT_EGID         14
#define AT_HWCAP        16 /* arch_hwcap() */
#define AT_CLKTCK       17 /* ticks a second of times() */
#define AT_SECURE       23 /* 1: the program has rights that its caller has not */
#define AT_RANDOM       25 /* address of 16 random bytes */
#define AT_EXECFN       31 /* address of the path that was executed */
#define AT_SYSINFO_EHDR 33 /* where the vDSO is */
#define AT_MINSIGSTKSZ  51 /* bytes of stack that a signal needs */
