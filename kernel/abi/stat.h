/* stat.h - struct stat, in each architecture's Linux layout, and struct statx. */
#pragma once

#include <abi_md.h>
#include <stdint.h>

#define STATX_BASIC_STATS 0x7ffu /* all that struct stat has */
#define STATX_RESERVED    0x80000000u

struct statx_time {
	int64_t tv_sec;
	uint32_t tv_nsec, pad;
};

/* The numbers of which st_dev and st_rdev are made. */
#define STAT_MAJOR(dev) ((uint32_t)((dev) >> 8 & 0xfff))
#define STAT_MINOR(dev) ((uint32_t)(((dev)&0xff) | ((dev) >> 12 & 0xfff00)))

struct statx {
	uint32_t stx_mask; /* which fields are valid */
	uint32_t stx_blksize;
	uint64_t stx_attributes;
	uint32_t stx_nlink, stx_uid, stx_gid;
	uint16_t stx_mode, stx_pad1;
	uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
	struct statx_time stx_atime, stx_btime, stx_ctime, stx_mtime;
	uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
	uint64_t stx_pad2[14];
};

_Static_assert(sizeof(struct statx) == 256, "Linux's struct statx");
