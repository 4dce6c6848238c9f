/* statfs.h - struct statfs, magic numbers of file systems, and flags of mount(), Linux's. */
#pragma once

#include <stdint.h>

#define PROC_MAGIC    0x9fa0
#define TMPFS_MAGIC   0x01021994
#define DEVPTS_MAGIC  0x1cd1
#define SYSFS_MAGIC   0x62656572
#define DEBUGFS_MAGIC 0x64626720
#define TRACEFS_MAGIC 0x74726163
#define PIPEFS_MAGIC  0x50495045
#define EXT2_MAGIC    0xef53

/* Sizes are in blocks of f_bsize bytes. */
struct statfs {
	int64_t f_type, f_bsize;
	uint64_t f_blocks, f_bfree, f_bavail, f_files, f_ffree;
	int32_t f_fsid[2];
	int64_t f_namelen, f_frsize, f_flags, f_spare[4];
};

_Static_assert(sizeof(struct statfs) == 120, "Linux's struct statfs");

#define MS_MGC_VAL 0xc0ed0000ul
#define MS_MGC_MSK 0xffff0000ul
#define MS_RDONLY  0x1 /* this and the next three are flags of statfs(), too */
#define MS_NOSUID  0x2
#define MS_NODEV   0x4
#define MS_NOEXEC  0x8
#define MS_REMOUNT 0x20
/* NOATIME, NODIRATIME, SILENT, RELATIME, STRICTATIME, LAZYTIME: nothing to do. */
#define MS_HARMLESS (0x400 | 0x800 | 0x8000 | 1 << 21 | 1 << 24 | 1 << 25)
#define ST_VALID    0x20 /* statfs() has flags */

#define MNT_DETACH      2
#define UMOUNT_NOFOLLOW 8
