/* abi_md.h - what differs by architecture in the Linux ABI: aarch64. */
#pragma once

#include <stdint.h>

#define ELF_MACHINE 183 /* EM_AARCH64 */

/* Which arguments of clone() these are. */
#define CLONE_ARG_TLS       3
#define CLONE_ARG_CHILD_TID 4

#define O_DIRECT    0200000
#define O_DIRECTORY 040000 /* Linux arch/arm64/include/uapi/asm/fcntl.h */
#define O_NOFOLLOW  0100000

#define EPOLL_EVENT_LAYOUT /* struct epoll_event: 16 bytes */

#define SEMID_TIME_WORDS 1 /* no room after the times of struct semid_ds */

struct stat { /* Linux include/uapi/asm-generic/stat.h */
	uint64_t st_dev;
	uint64_t st_ino;
	uint32_t st_mode;
	uint32_t st_nlink;
	uint32_t st_uid;
	uint32_t st_gid;
	uint64_t st_rdev;
	uint64_t st_pad1;
	int64_t st_size;
	int32_t st_blksize;
	int32_t st_pad2;
	int64_t st_blocks;
	int64_t st_atime;
	uint64_t st_atime_nsec;
	int64_t st_mtime;
	uint64_t st_mtime_nsec;
	int64_t st_ctime;
	uint64_t st_ctime_nsec;
	uint32_t st_unused[2];
};

_Static_assert(sizeof(struct stat) == 128, "Linux's aarch64 struct stat");
