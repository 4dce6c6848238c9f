/* sched.h - what clone() shares and does, and policies of scheduling: Linux's numbers. */
#pragma once

#include <stdint.h>

/* Bits 0 to 7 are the child's exit signal. A thread is made with CLONE_VM | FS | FILES | SIGHAND
 * | THREAD. A process may share VM and FILES only. */
#define CLONE_VM             0x00000100ul
#define CLONE_FS             0x00000200ul
#define CLONE_FILES          0x00000400ul
#define CLONE_SIGHAND        0x00000800ul
#define CLONE_PIDFD          0x00001000ul /* a file of the child, as pidfd_open() makes one */
#define CLONE_VFORK          0x00004000ul /* the parent waits until the child executes or ends */
#define CLONE_PARENT         0x00008000ul /* the child is the parent's sibling */
#define CLONE_THREAD         0x00010000ul
#define CLONE_SYSVSEM        0x00040000ul /* threads always share what semop() has to undo */
#define CLONE_SETTLS         0x00080000ul
#define CLONE_PARENT_SETTID  0x00100000ul
#define CLONE_CHILD_CLEARTID 0x00200000ul
#define CLONE_DETACHED       0x00400000ul /* no effect */
#define CLONE_CHILD_SETTID   0x01000000ul

/* Namespaces, of which there is one each. */
#define CLONE_NEWTIME   0x00000080ul
#define CLONE_NEWNS     0x00020000ul
#define CLONE_NEWCGROUP 0x02000000ul
#define CLONE_NEWUTS    0x04000000ul
#define CLONE_NEWIPC    0x08000000ul
#define CLONE_NEWUSER   0x10000000ul
#define CLONE_NEWPID    0x20000000ul
#define CLONE_NEWNET    0x40000000ul
#define CLONE_NAMESPACES                                                               \
	(CLONE_NEWTIME | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

#define CLONE_CLEAR_SIGHAND 0x100000000ul /* the child has no handlers */

struct clone_args { /* of clone3() */
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

#define CLONE_ARGS_SIZE_VER0 64

#define SCHED_OTHER    0
#define SCHED_FIFO     1 /* runs until it blocks, yields, or a better one is ready */
#define SCHED_RR       2 /* as SCHED_FIFO, and takes turns with others of its priority */
#define SCHED_BATCH    3 /* like SCHED_OTHER */
#define SCHED_IDLE     5 /* worse than any niceness */
#define SCHED_DEADLINE 6 /* not here; its priorities are 0 */

#define SCHED_RESET_ON_FORK 0x40000000 /* of a policy: children are of SCHED_OTHER */

#define RT_PRIO_MIN 1
#define RT_PRIO_MAX 99

/* sched_setattr(), sched_getattr() */
struct sched_attr {
	uint32_t size; /* of the structure, as the caller knows it: SCHED_ATTR_SIZE_0 or more */
	uint32_t sched_policy;
	uint64_t sched_flags;
	int32_t sched_nice;
	uint32_t sched_priority;
	uint64_t sched_runtime, sched_deadline, sched_period;
	uint32_t sched_util_min, sched_util_max;
};

#define SCHED_ATTR_SIZE_0 48u

#define SCHED_FLAG_RESET_ON_FORK 0x01ul
#define SCHED_FLAG_KEEP_POLICY   0x08ul
#define SCHED_FLAG_KEEP_PARAMS   0x10ul
