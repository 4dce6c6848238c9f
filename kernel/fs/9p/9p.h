/*
 * 9p.h - messages of 9P2000.L: making them, and taking them apart. Sources: the manual pages of
 * section 5 of Plan 9, and "9P2000.L" of diod
 * (https://github.com/chaos/diod/blob/master/protocol.md).
 *
 * A message is: its size (4 bytes), its type (1), a tag (2), and what the type says, little-endian.
 * Nothing that comes from the other side is believed. Pure functions: any context, no locks.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P9_HDRSZ    7
#define P9_IOHDRSZ  23 /* bytes around the data of a write; its reply, and a read's, have fewer */
#define P9_MSIZE    65536
#define P9_NOTAG    0xffffu
#define P9_NOFID    0xffffffffu
#define P9_NAME_MAX 255

/* Types of requests; a reply has the next number. */
enum p9_msg_t {
	P9_RLERROR = 7,
	P9_TSTATFS = 8,
	P9_TLOPEN = 12,
	P9_TLCREATE = 14,
	P9_TSYMLINK = 16,
	P9_TMKNOD = 18,
	P9_TREADLINK = 22,
	P9_TGETATTR = 24,
	P9_TSETATTR = 26,
	P9_TREADDIR = 40,
	P9_TFSYNC = 50,
	P9_TLINK = 70,
	P9_TMKDIR = 72,
	P9_TRENAMEAT = 74,
	P9_TUNLINKAT = 76,
	P9_TVERSION = 100,
	P9_TATTACH = 104,
	P9_TFLUSH = 108,
	P9_TWALK = 110,
	P9_TREAD = 116,
	P9_TWRITE = 118,
	P9_TCLUNK = 120,
};

#define P9_DOTL_CREATE       0100
#define P9_DOTL_EXCL         0200
#define P9_DOTL_AT_REMOVEDIR 0x200

#define P9_STATS_BASIC 0x7ffull

#define P9_ATTR_MODE      0x1u
#define P9_ATTR_UID       0x2u
#define P9_ATTR_GID       0x4u
#define P9_ATTR_SIZE      0x8u
#define P9_ATTR_ATIME     0x10u /* now, if not with ..._SET */
#define P9_ATTR_MTIME     0x20u
#define P9_ATTR_ATIME_SET 0x80u
#define P9_ATTR_MTIME_SET 0x100u

struct p9_qid {
	uint8_t type;
	uint32_t version;
	uint64_t path;
};

struct p9_stat_dotl {
	struct p9_qid qid;
	uint32_t mode, uid, gid;
	uint64_t nlink, rdev, size, blksize, blocks;
	uint64_t atime_sec, atime_nsec, mtime_sec, mtime_nsec, ctime_sec, ctime_nsec;
};

struct p9_iattr_dotl {
	uint32_t valid; /* P9_ATTR_… */
	uint32_t mode, uid, gid;
	uint64_t size, atime_sec, atime_nsec, mtime_sec, mtime_nsec;
};

struct p9_rstatfs {
	uint32_t type, bsize;
	uint64_t blocks, bfree, bavail, files, ffree, fsid;
	uint32_t namelen;
};

struct p9_dirent {
	struct p9_qid qid;
	uint64_t off; /* of the entry after it */
	uint8_t type; /* DT_… */
	char name[P9_NAME_MAX + 1];
};

/* A message: `size` bytes of `capacity`. */
struct p9_fcall {
	uint8_t *sdata;
	uint32_t size, capacity;
	uint32_t offset; /* of what is read next */
};

/*
 * Add to a message what fmt says, a letter each: b, w, d, q for a number of 1, 2, 4 or 8 bytes (q
 * is a uint64_t), s for a text. False if the message has no room for all.
 */
bool p9pdu_writef(struct p9_fcall *pdu, const char *fmt, ...);
bool p9pdu_vwritef(struct p9_fcall *pdu, const char *fmt, va_list ap);
/* Begins a message, which p9pdu_finalize() ends. */
void p9pdu_prepare(struct p9_fcall *pdu, uint8_t type, uint16_t tag);
void p9pdu_finalize(struct p9_fcall *pdu);
/*
 * Takes from a message what fmt says, a letter each. Numbers as above, to pointers. s: a text, to a
 * char * of the size that follows (size_t). Q: a struct p9_qid. A: the rest of Rgetattr, to a
 * struct p9_stat_dotl. r, the last: as many bytes as the d before it says, to a const uint8_t **.
 * False if the message is too short, or a text has a NUL, or is too long.
 */
bool p9pdu_readf(struct p9_fcall *pdu, const char *fmt, ...);
/*
 * Checks the `length` bytes that the other side has written as the reply to a request of that type
 * and tag. 0 if they are the reply, of which the rest is to be read; the error that Rlerror names;
 * or -EPROTO.
 */
int p9_check_reply(struct p9_fcall *pdu, uint32_t length, uint8_t type, uint16_t tag);
/* Takes a name of a directory from Rreaddir's bytes. False: there is none, or it is wrong. */
bool p9dirent_read(struct p9_fcall *pdu, struct p9_dirent *dirent);
/* Can it be a file's name, other than "." and ".."? */
bool p9_good_name(const char *name);
