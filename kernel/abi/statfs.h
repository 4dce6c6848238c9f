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

#define MS_MGC_VAL     0xc0ed0000ul
#define MS_MGC_MSK     0xffff0000ul
#define MS_RDONLY      0x1 /* this and the next three are flags of statfs(), too */
#define MS_NOSUID      0x2
#define MS_NODEV       0x4
#define MS_NOEXEC      0x8
#define MS_NOSYMFOLLOW 0x100 /* no path leads through a link there */
#define MS_REMOUNT     0x20
#define MS_NOATIME     0x400 /* this flag and the next are kept, and change nothing */
#define MS_NODIRATIME  0x800
#define MS_SILENT      0x8000 /* nothing to do */
#define MS_RELATIME    (1 << 21)
#define MS_STRICTATIME (1 << 24)
#define MS_LAZYTIME    (1 << 25) /* nothing to do */
#define MS_ATIMES      (MS_NOATIME | MS_NODIRATIME | MS_RELATIME)
#define ST_RELATIME    0x1000
#define ST_NOSYMFOLLOW 0x2000
#define ST_VALID       0x20 /* statfs() has flags */

#define MNT_DETACH      2
#define UMOUNT_NOFOLLOW 8
