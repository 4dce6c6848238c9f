/* fcntl.h - open flags, file modes, seek and *at constants: Linux's asm-generic values. */
#pragma once

#include <abi_md.h> /* O_DIRECT, O_DIRECTORY, O_NOFOLLOW: they differ by architecture */
#include <stdint.h>

#define O_RDONLY   0
#define O_WRONLY   1
#define O_RDWR     2
#define O_ACCMODE  3
#define O_CREAT    0100
#define O_EXCL     0200
#define O_NOCTTY   0400
#define O_TRUNC    01000
#define O_APPEND   02000
#define O_NONBLOCK 04000
#define O_DSYNC    010000
#define O_ASYNC    020000
#define O_SYNC     04010000
#define O_NOATIME  01000000
#define O_CLOEXEC  02000000
#define O_PATH     010000000
#define O_UNNAMED  020000000 /* of O_TMPFILE: Linux's __O_TMPFILE */
#define O_TMPFILE  (O_UNNAMED | O_DIRECTORY)

struct open_how { /* of openat2() */
	uint64_t flags, mode, resolve;
};

#define OPEN_HOW_SIZE_VER0 24
#define OPEN_FLAGS_KNOWN   037777703ul /* with some that have no effect */

#define POSIX_FADV_NOREUSE 5 /* the last advice of fadvise64() */

/* resolve: */
#define RESOLVE_NO_XDEV       0x01 /* through no mount */
#define RESOLVE_NO_MAGICLINKS 0x02 /* through no link of /proc to a file itself */
#define RESOLVE_NO_SYMLINKS   0x04
#define RESOLVE_BENEATH       0x08 /* never above the directory where the path begins */
#define RESOLVE_IN_ROOT       0x10 /* the directory of dirfd is the root of the path */
#define RESOLVE_ALL           0x1f

#define AT_FDCWD            (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_REMOVEDIR        0x200
#define AT_EACCESS          0x200 /* of faccessat2: with the effective user's rights */
#define AT_SYMLINK_FOLLOW   0x400
#define AT_NO_AUTOMOUNT     0x800
#define AT_EMPTY_PATH       0x1000
#define AT_STATX_SYNC_TYPE  0x6000 /* two bits, of which one may be set */

#define SEEK_SET  0
#define SEEK_CUR  1
#define SEEK_END  2
#define SEEK_DATA 3
#define SEEK_HOLE 4

#define F_DUPFD    0
#define F_GETFD    1
#define F_SETFD    2
#define F_GETFL    3
#define F_SETFL    4
#define F_GETLK    5
#define F_SETLK    6
#define F_SETLKW   7
#define F_SETOWN   8
#define F_GETOWN   9
#define F_SETSIG   10
#define F_GETSIG   11
#define FD_CLOEXEC 1

#define F_SETOWN_EX 15
#define F_GETOWN_EX 16

#define F_OWNER_TID  0 /* f_owner_ex.type */
#define F_OWNER_PID  1
#define F_OWNER_PGRP 2

struct f_owner_ex {
	int32_t type, pid;
};

#define F_OFD_GETLK  36
#define F_OFD_SETLK  37
#define F_OFD_SETLKW 38

#define F_RDLCK 0 /* flock.l_type */
#define F_WRLCK 1
#define F_UNLCK 2

struct flock {
	int16_t l_type, l_whence;
	int64_t l_start, l_len; /* bytes; l_len 0: to the end, wherever it will be */
	int32_t l_pid;          /* F_GETLK: who has the lock; -1: an open file */
};

#define F_NOTIFY     1026
#define DN_MULTISHOT 0x80000000u /* above six bits for events (dnotify.c) */

#define F_DUPFD_CLOEXEC 1030
#define F_SETPIPE_SZ    1031
#define F_ADD_SEALS     1033
#define F_GET_SEALS     1034
#define F_GETPIPE_SZ    1032

#define S_IFMT   0170000
#define S_IFIFO  0010000
#define S_IFCHR  0020000
#define S_IFDIR  0040000
#define S_IFBLK  0060000
#define S_IFREG  0100000
#define S_IFLNK  0120000
#define S_IFSOCK 0140000
#define S_ISUID  04000 /* exec gives the owner's rights */
#define S_ISGID  02000 /* exec gives the group's; in a directory: what is made has its group */

#define S_ISDIR(m)  (((m)&S_IFMT) == S_IFDIR)
#define S_ISREG(m)  (((m)&S_IFMT) == S_IFREG)
#define S_ISCHR(m)  (((m)&S_IFMT) == S_IFCHR)
#define S_ISLNK(m)  (((m)&S_IFMT) == S_IFLNK)
#define S_ISFIFO(m) (((m)&S_IFMT) == S_IFIFO)
#define S_ISBLK(m)  (((m)&S_IFMT) == S_IFBLK)
#define S_ISSOCK(m) (((m)&S_IFMT) == S_IFSOCK)

#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2

#define SPLICE_F_NONBLOCK 2u
#define SPLICE_F_ALL      15u /* all flags, with those that only say what is faster */

#define LOCK_SH 1 /* operations of flock() */
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8

/* Seals of a memfd. */
#define F_SEAL_SEAL         1u
#define F_SEAL_SHRINK       2u
#define F_SEAL_GROW         4u
#define F_SEAL_WRITE        8u
#define F_SEAL_FUTURE_WRITE 16u
#define F_ALL_SEALS         31u

#define FALLOC_FL_KEEP_SIZE  1u
#define FALLOC_FL_PUNCH_HOLE 2u

#define MFD_CLOEXEC       1u
#define MFD_ALLOW_SEALING 2u
#define MFD_NOEXEC_SEAL   8u
#define MFD_EXEC          16u

#define CLOSE_RANGE_UNSHARE 2u
#define CLOSE_RANGE_CLOEXEC 4u

#define RWF_HIPRI  1 /* of preadv2 and pwritev2: changes nothing */
#define RWF_DSYNC  2 /* as O_DSYNC, O_SYNC: */
#define RWF_SYNC   4
#define RWF_NOWAIT 8

#define SYNC_FILE_RANGE_ALL 7u /* sync_file_range(): flags that ask for a write, or a wait */
#define PATH_MAX            1024
#define NAME_MAX            255
