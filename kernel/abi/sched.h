/* sched.h - what clone() shares and does, Linux's numbers. Bits 0 to 7: the child's exit signal. */
#pragma once

#define CLONE_VM             0x00000100ul /* only with CLONE_VFORK */
#define CLONE_VFORK          0x00004000ul /* the parent waits until the child executes or ends */
#define CLONE_SETTLS         0x00080000ul
#define CLONE_PARENT_SETTID  0x00100000ul
#define CLONE_CHILD_CLEARTID 0x00200000ul
#define CLONE_CHILD_SETTID   0x01000000ul
