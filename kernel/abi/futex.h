/* futex.h - what futex() does, and lists of robust mutexes: Linux's numbers and layout. */
#pragma once

#include <stdint.h>

#define FUTEX_WAIT           0 /* word, value, relative time or 0 */
#define FUTEX_WAKE           1 /* word, how many */
#define FUTEX_REQUEUE        3 /* word, how many, how many more, other word */
#define FUTEX_CMP_REQUEUE    4 /* … and the value of the word */
#define FUTEX_WAIT_BITSET    9 /* word, value, absolute time or 0, -, bits */
#define FUTEX_WAKE_BITSET    10
#define FUTEX_PRIVATE_FLAG   128
#define FUTEX_CLOCK_REALTIME 256
#define FUTEX_CMD_MASK       (~(uint32_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME))

/* A robust mutex has the number of its owner's thread, and these. */
#define FUTEX_WAITERS    0x80000000u
#define FUTEX_OWNER_DIED 0x40000000u
#define FUTEX_TID_MASK   0x3fffffffu

struct robust_list_head {
	uint64_t next;    /* the first mutex's entry, which has the address of the next one */
	int64_t offset;   /* from an entry to the mutex's word */
	uint64_t pending; /* the mutex that is being taken or released; 0: none */
};
