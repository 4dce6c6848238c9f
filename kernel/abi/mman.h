/* mman.h - mmap protection and flags, Linux's values. */
#pragma once

#define MLOCK_ONFAULT 1 /* mlock2(): pages stay from when they are used */
#define MCL_CURRENT   1 /* mlockall(): what is mapped */
#define MCL_FUTURE    2 /* mlockall(): what will be mapped */
#define MCL_ALL       7 /* mlockall(): MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT */
#define MCL_ONFAULT   4 /* not alone */

#define PROT_NONE  0
#define PROT_READ  1
#define PROT_WRITE 2
#define PROT_EXEC  4
#define PROT_SEM   8 /* of no effect */
/* mprotect(): from the start of an area that grows down, to the end of one that grows up. */
#define PROT_GROWSDOWN 0x01000000
#define PROT_GROWSUP   0x02000000

#define MAP_SHARED          0x01
#define MAP_PRIVATE         0x02
#define MAP_SHARED_VALIDATE 0x03
#define MAP_TYPE            0x0f
#define MAP_FIXED           0x10
#define MAP_ANONYMOUS       0x20
#define MAP_GROWSDOWN       0x100
#define MAP_DENYWRITE       0x800
#define MAP_NORESERVE       0x4000
#define MAP_LOCKED          0x2000
#define MAP_POPULATE        0x8000
#define MAP_STACK           0x20000
#define MAP_FIXED_NOREPLACE 0x100000

#define MREMAP_MAYMOVE   1
#define MREMAP_FIXED     2
#define MREMAP_DONTUNMAP 4

#define MADV_NORMAL     0
#define MADV_RANDOM     1
#define MADV_SEQUENTIAL 2
#define MADV_WILLNEED   3
#define MADV_DONTNEED   4
#define MADV_FREE       8
#define MADV_REMOVE     9
#define MADV_DONTFORK   10
#define MADV_DOFORK     11
/* KSM, huge pages and dumps: 12 to 17 */
#define MADV_WIPEONFORK     18
#define MADV_KEEPONFORK     19
#define MADV_COLD           20
#define MADV_PAGEOUT        21
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23

#define MS_ASYNC      1
#define MS_INVALIDATE 2
#define MS_SYNC       4
