/* sched.h - what clone() shares and does, Linux's numbers. Bits 0 to 7: the child's exit signal. */
#pragma once

/* A thread: CLONE_VM | FS | FILES | SIGHAND | THREAD. CLONE_VM else only with CLONE_VFORK. */
#define CLONE_VM             0x00000100ul
#define CLONE_FS             0x00000200ul
#define CLONE_FILES          0x00000400ul
#define CLONE_SIGHAND        0x00000800ul
#define CLONE_VFORK          0x00004000ul /* the parent waits until the child executes or ends */
#define CLONE_THREAD         0x00010000ul
#define CLONE_SYSVSEM        0x00040000ul /* there is nothing to share */
#define CLONE_SETTLS         0x00080000ul
#define CLONE_PARENT_SETTID  0x00100000ul
#define CLONE_CHILD_CLEARTID 0x00200000ul
#define CLONE_DETACHED       0x00400000ul /* no effect */
#define CLONE_CHILD_SETTID   0x01000000ul
