/* kdump.h - between the files of kdump. One thread; output goes to stdout. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel/abi/ktrace.h"

/* Words of decode.c, and whether they are bits. */
#define KDUMP_WORDS(X)                      \
	X(AT, ats, true)                    \
	X(CLOCK, clocks, false)             \
	X(CLOSERANGE, close_ranges, true)   \
	X(EPOLL, epolls, false)             \
	X(EVENTFD, eventfds, true)          \
	X(FCNTL, fcntls, false)             \
	X(FLOCK, flocks, true)              \
	X(IOCTL, ioctls, false)             \
	X(KTRFAC, facs, true)               \
	X(MADVICE, advices, false)          \
	X(MAP, maps, true)                  \
	X(MREMAP, mremaps, true)            \
	X(MSYNC, msyncs, true)              \
	X(MFD, memfds, true)                \
	X(MODE, modes, true)                \
	X(MSG, messages, true)              \
	X(PRCTL, prctls, false)             \
	X(RLIMIT, rlimits, false)           \
	X(RENAME, renames, true)            \
	X(RWF, rwfs, true)                  \
	X(SCHED, scheds, false)             \
	X(SHUT, shuts, false)               \
	X(SHUTDOWN, shutdowns, false)       \
	X(SIGHOW, sighows, false)           \
	X(SIGNAL, signals, false)           \
	X(SOCKFAMILY, sock_families, false) \
	X(SOCKLEVEL, sock_levels, false)    \
	X(SOCKOPT, sock_options, false)     \
	X(SPLICE, splices, true)            \
	X(SYSCTL, sysctls, false)           \
	X(TIMER, timers, true)              \
	X(WAIT, waits, true)                \
	X(WAITID, waitids, true)            \
	X(WAITWHO, waitid_kinds, false)     \
	X(WHENCE, whences, false)

enum kdump_arg_kind {
	ARG_NUMBER,
	ARG_ACCESS,
	ARG_SIGNED,
	ARG_ATFD,
	ARG_CLONE,
	ARG_FUTEX,
	ARG_KTROP,
	ARG_OPEN,
	ARG_PROT,
	ARG_SOCKTYPE,
#define ARG(kind, words, bits) ARG_##kind,
	KDUMP_WORDS(ARG)
#undef ARG
};

#define KDUMP_ARGS 6

struct kdump_arg {
	const char *name; /* NULL: no more */
	enum kdump_arg_kind kind;
};

/* A system call of a machine. */
struct kdump_call {
	uint32_t code;
	const char *name;
	struct kdump_arg args[KDUMP_ARGS];
};

/* struct stat, of any machine. */
struct kdump_stat {
	uint64_t dev, ino, mode, nlink, uid, gid, rdev, blksize, blocks;
	int64_t size, atime, mtime, ctime;
	int64_t atime_nsec, mtime_nsec, ctime_nsec;
};

/* The machine whose kernel wrote a record. */
struct kdump_machine {
	uint16_t id; /* ELF's e_machine */
	const char *name;
	const struct kdump_call *calls;
	size_t ncalls;
	uint32_t o_directory, o_nofollow;
	size_t stat_size;
	void (*stat)(const void *bytes, struct kdump_stat *st);
};

extern const struct kdump_machine kdump_x86_64, kdump_aarch64;

struct kdump_options {
	bool abi, decimal, elapsed, absolute, relative, tid, raw, symbolic, numbers, no_data, jsonl,
	    live;
	uint64_t max_data; /* bytes of I/O that are printed */
	uint32_t points;   /* KTRFAC_… that are printed */
	int64_t pid;       /* the only process or thread to print; -1: all */
	int64_t child;     /* --child; 0: none */
	FILE *freebsd;     /* NULL, or where records are written in FreeBSD's format */
};

extern struct kdump_options kdump_options;

/* NULL: unknown. */
const struct kdump_machine *kdump_machine(uint16_t id);
/* The system call with that number; NULL: unknown. */
const struct kdump_call *kdump_call(const struct kdump_machine *m, uint32_t code);

/*
 * Prints all records that read() has to give. read: as read(2), 0 at the end. Returns 0, or 1 after
 * messages about damage.
 */
int kdump_stream(int64_t (*read)(void *arg, void *buf, size_t len), void *arg);

/* live.c. A record was read. */
void kdump_lives(const struct ktr_header *h);
/* With -l, at the end of the file: may more records come? Yes if a process lives that the
 * records so far are about, or if there was none yet. */
bool kdump_live(void);
/* --child: a child of this process, whose records are awaited. */
void kdump_child(int64_t pid);
/* With --child: has a process ended without its last records? Says so. */
bool kdump_misses(void);

/* Prints what a record says after its first columns. The record has been checked. */
void kdump_text(const struct ktr_header *h, const uint8_t *data);
/* Prints a record as one JSON object, on a line. The record has been checked. */
void kdump_json(const struct ktr_header *h, const uint8_t *data);
/* Writes a record in FreeBSD's format, or nothing if its type is unknown. The record has been
 * checked. */
void kdump_freebsd(const struct ktr_header *h, const uint8_t *data);
/* "CALL", …; NULL: unknown. */
const char *kdump_type(unsigned type);

/* Prints a number as the options want it: hexadecimal, or decimal. */
void kdump_print_number(uint64_t v);
/* Prints an argument as C would write it. */
void kdump_print_arg(const struct kdump_machine *m, enum kdump_arg_kind kind, uint64_t v);
/* "SIGINT", or NULL; "SI_USER", "SEGV_MAPERR", or NULL. */
const char *kdump_signal(int sig);
const char *kdump_signal_code(int sig, int code);
/* Prints bytes so that no terminal is harmed: what does not print becomes \n, \0, \377. */
void kdump_print_bytes(const uint8_t *p, size_t n);
/* Finds the bytes of a struct in a record KTR_STRUCT, which begins with the struct's name. NULL
 * if the name has no end. */
const uint8_t *kdump_struct(const struct ktr_header *h, const uint8_t *data, size_t *size);
