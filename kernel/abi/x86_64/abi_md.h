/* abi_md.h - what differs by architecture in the Linux ABI: x86_64. */
#pragma once

#include <stdint.h>

#define ELF_MACHINE 62 /* EM_X86_64 */

/* Which arguments of clone() these are. */
#define CLONE_ARG_TLS       4
#define CLONE_ARG_CHILD_TID 3

#define O_DIRECT    040000
#define O_DIRECTORY 0200000
#define O_NOFOLLOW  0400000

#define EPOLL_EVENT_LAYOUT __attribute__((packed)) /* struct epoll_event: 12 bytes */

#define SEMID_TIME_WORDS 2 /* struct semid_ds keeps 8 bytes after each time */

struct stat { /* Linux arch/x86/include/uapi/asm/stat.h */
	uint64_t st_dev;
	uint64_t st_ino;
	uint64_t st_nlink;
	uint32_t st_mode;
	uint32_t st_uid;
	uint32_t st_gid;
	uint32_t st_pad0;
	uint64_t st_rdev;
	int64_t st_size;
	int64_t st_blksize;
	int64_t st_blocks;
	uint64_t st_atime, st_atime_nsec;
	uint64_t st_mtime, st_mtime_nsec;
	uint64_t st_ctime, st_ctime_nsec;
	int64_t st_unused[3];
};

_Static_assert(sizeof(struct stat) == 144, "Linux's x86_64 struct stat");
