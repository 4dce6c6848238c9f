/* capability.h - parts of user 0's rights, with Linux's numbers (include/uapi/linux/capability.h).
 */
#pragma once

#include <stdint.h>

#define CAP_CHOWN            0 /* gives files away */
#define CAP_DAC_OVERRIDE     1 /* whatever a file's mode says */
#define CAP_DAC_READ_SEARCH  2 /* the same, but only reads and searches */
#define CAP_FOWNER           3 /* changes files of others */
#define CAP_FSETID           4 /* set-id bits stay when it changes a file */
#define CAP_KILL             5
#define CAP_SETGID           6
#define CAP_SETUID           7
#define CAP_SETPCAP          8  /* takes rights from the set that exec gives user 0 */
#define CAP_NET_BIND_SERVICE 10 /* names below 1024 */
#define CAP_NET_ADMIN        12
#define CAP_NET_RAW          13
#define CAP_IPC_LOCK         14 /* locks as much memory as it likes */
#define CAP_IPC_OWNER        15 /* uses System V IPC of others */
#define CAP_SYS_CHROOT       18
#define CAP_SYS_PTRACE       19
#define CAP_SYS_ADMIN        21 /* mounts, sysctls, devices of the kernel */
#define CAP_SYS_BOOT         22
#define CAP_SYS_NICE         23
#define CAP_SYS_RESOURCE     24 /* above limits */
#define CAP_SYS_TIME         25
#define CAP_MKNOD            27
#define CAP_SYSLOG           34
#define CAP_LAST_CAP         40
/* Capabilities to use files whatever their modes say: a process has none of them while its user
 * for files is not 0. */
#define CAPS_OF_FILES                                                              \
	(1ul << CAP_CHOWN | 1ul << CAP_DAC_OVERRIDE | 1ul << CAP_DAC_READ_SEARCH | \
	 1ul << CAP_FOWNER | 1ul << CAP_FSETID | 1ul << CAP_MKNOD)
#define CAP_ALL ((2ul << CAP_LAST_CAP) - 1)

/* Versions of what capget() and capset() take: a set is one word, or two. */
#define CAPABILITY_VERSION_1 0x19980330u
#define CAPABILITY_VERSION_2 0x20071026u
#define CAPABILITY_VERSION_3 0x20080522u

struct cap_header {
	uint32_t version;
	int32_t pid;
};

struct cap_data {
	uint32_t effective, permitted, inheritable;
};
