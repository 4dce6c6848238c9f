/*
 * freebsd.c - writes a record as FreeBSD 14 and later have it, for their kdump: sys/ktrace.h, on
 * machines of 64 bits. Processes are told to be Linux's of 64 bits, so that FreeBSD's kdump knows
 * the numbers of system calls. Numbers of errors and signals become FreeBSD's.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/signal.h"
#include "userland/bin/kdump/kdump.h"

#define VERSIONED 0x4000u       /* of the type: the header has a version */
#define SV_FLAGS  (3u | 0x200u) /* sys/sysent.h: SV_ABI_LINUX, SV_LP64 */

struct header {
	int32_t len;
	uint16_t type;
	int16_t version;
	int32_t pid;
	char comm[KTR_COMM_SIZE];
	int64_t sec, nsec;
	int64_t tid;
	int32_t cpu, pad;
};
_Static_assert(sizeof(struct header) == 64 && offsetof(struct header, sec) == 32 &&
		   offsetof(struct header, cpu) == 56,
	       "struct ktr_header");

struct call {
	int16_t code, narg;
	int32_t pad;
	uint64_t args[KDUMP_ARGS + 1];
};

struct ret {
	int16_t code, eosys;
	int32_t error;
	int64_t retval;
};

struct genio {
	int32_t fd, rw;
};

struct psig {
	int32_t signo, pad;
	uint64_t action;
	int32_t code;
	uint32_t mask[4];
	int32_t end;
};

struct csw {
	int32_t out, user;
	char wmesg[8];
};

struct fault {
	uint64_t vaddr;
	int32_t type, pad;
};

struct stat_record {
	char name[5]; /* "stat" */
	struct __attribute__((packed)) {
		uint64_t dev, ino, nlink;
		uint16_t mode, bsdflags;
		uint32_t uid, gid, pad;
		uint64_t rdev;
		int64_t time[4][2]; /* times of access, change of data, change of status; birth */
		int64_t size, blocks;
		int32_t blksize;
		uint32_t flags;
		uint64_t gen, spare[10];
	} st;
} __attribute__((packed));
_Static_assert(sizeof(struct psig) == 40 && sizeof(struct stat_record) == 5 + 224, "sys/ktrace.h");

/* ---- numbers ---- */

struct pair {
	int32_t ours, theirs;
};

/* FreeBSD's number of an error, a signal or its code: the same, if it is not in the table. */
static int32_t
translate(const struct pair *table, size_t n, int32_t number)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].ours == number)
			return table[i].theirs;
	return number;
}
#define TRANSLATE(table, number) translate(table, sizeof(table) / sizeof((table)[0]), number)

static int32_t
errno_of(int32_t error)
{
	static const struct pair errors[] = {
	    {EAGAIN, 35},          {EDEADLK, 11},
	    {ENOLCK, 77},          {ENAMETOOLONG, 63},
	    {ENOSYS, 78},          {ENOTEMPTY, 66},
	    {ELOOP, 62},           {EOVERFLOW, 84},
	    {EPROTO, 92},          {ENODATA, 87}, /* ENOATTR */
	    {ENOTSOCK, 38},        {EDESTADDRREQ, 39},
	    {EMSGSIZE, 40},        {EPROTOTYPE, 41},
	    {ENOPROTOOPT, 42},     {EPROTONOSUPPORT, 43},
	    {ESOCKTNOSUPPORT, 44}, {EAFNOSUPPORT, 47},
	    {EADDRINUSE, 48},      {EADDRNOTAVAIL, 49},
	    {ENETDOWN, 50},        {ENETUNREACH, 51},
	    {ECONNABORTED, 53},    {ECONNRESET, 54},
	    {ENOBUFS, 55},         {EISCONN, 56},
	    {ENOTCONN, 57},        {ETOOMANYREFS, 59},
	    {ECONNREFUSED, 61},    {EHOSTUNREACH, 65},
	    {EALREADY, 37},        {EINPROGRESS, 36},
	    {EOPNOTSUPP, 45},      {ETIMEDOUT, 60},
	    {ECANCELED, 85},       {EIDRM, 82},
	    {ENOMSG, 83},          {EUCLEAN, 97 /* EINTEGRITY */},
	};

	return TRANSLATE(errors, error);
}

#define RT_FIRST 32 /* the first real-time signal; FreeBSD's is 65 */

/* 0: FreeBSD has no such signal. */
static int32_t
signal_of(int32_t sig)
{
	static const struct pair signals[] = {
	    {7, 10},  {10, 30}, {12, 31}, {16, 0},  {17, 20}, {18, 19},
	    {19, 17}, {20, 18}, {23, 16}, {29, 23}, {30, 0},  {31, 12},
	};

	return sig >= RT_FIRST ? sig - RT_FIRST + 65 : TRANSLATE(signals, sig);
}

static int32_t
code_of(int32_t sig, int32_t code)
{
	static const struct pair codes[] = {
	    {0, 0x10001},  {-1, 0x10002},   {-2, 0x10003}, {-3, 0x10005},
	    {-4, 0x10004}, {0x80, 0x10006}, {-6, 0x10007},
	};

	if (sig == SIGFPE && (code == 1 || code == 2))
		return 3 - code; /* FPE_INTDIV, FPE_INTOVF */
	return TRANSLATE(codes, code);
}

/* ---- records ---- */

static void
put(const void *p, size_t n)
{
	if (n > 0 && fwrite(p, 1, n, kdump_options.freebsd) != n)
		err(1, "--freebsd");
}

/* A record of a struct, and n bytes more. */
static void
put_record(const struct ktr_header *h, const void *first, size_t size, const void *more, size_t n)
{
	struct header f = {.len = (int32_t)(size + n),
			   .type = (uint16_t)(h->ktr_type | VERSIONED),
			   .version = 1,
			   .pid = (int32_t)h->ktr_pid,
			   .sec = h->ktr_sec,
			   .nsec = h->ktr_nsec,
			   .tid = h->ktr_tid,
			   .cpu = h->ktr_cpu};

	memcpy(f.comm, h->ktr_comm, sizeof(f.comm) - 1);
	put(&f, sizeof(f));
	put(first, size);
	put(more, n);
}

/*
 * Appends a 0 to the arguments: FreeBSD's kdump prints a fourth one of faccessat and fchmodat,
 * which have three in Linux.
 */
static void
put_call(const struct ktr_header *h, const struct ktr_syscall *c)
{
	uint32_t n = c->ktr_narg < KDUMP_ARGS ? c->ktr_narg : KDUMP_ARGS;
	struct call f = {(int16_t)c->ktr_code, (int16_t)n, 0, {0}};

	memcpy(f.args, c->ktr_args, n * sizeof(f.args[0]));
	put_record(h, &f, sizeof(f) - (KDUMP_ARGS - n) * sizeof(f.args[0]), NULL, 0);
}

static void
put_ret(const struct ktr_header *h, const struct ktr_sysret *r)
{
	struct ret f = {(int16_t)r->ktr_code, 0, errno_of(r->ktr_error), r->ktr_retval};

	put_record(h, &f, sizeof(f), NULL, 0);
}

static void
put_psig(const struct ktr_header *h, const struct ktr_psig *s)
{
	struct psig f = {.signo = signal_of(s->ktr_signo),
			 .action = s->ktr_action,
			 .code = code_of(s->ktr_signo, s->ktr_code)};

	for (int32_t sig = 1; sig <= NSIG; sig++) {
		int32_t theirs = s->ktr_mask >> (sig - 1) & 1 ? signal_of(sig) : 0;

		if (theirs != 0)
			f.mask[(theirs - 1) / 32] |= 1u << (theirs - 1) % 32;
	}
	put_record(h, &f, sizeof(f), NULL, 0);
}

static void
put_csw(const struct ktr_header *h, const struct ktr_csw *c)
{
	struct csw f = {(int32_t)c->ktr_out, (int32_t)c->ktr_user, ""};

	memcpy(f.wmesg, c->ktr_wmesg, sizeof(f.wmesg) - 1);
	put_record(h, &f, sizeof(f), NULL, 0);
}

static void
put_struct(const struct ktr_header *h, const uint8_t *data)
{
	const struct kdump_machine *m = kdump_machine(h->ktr_machine);
	struct stat_record f = {"stat", {0}};
	struct kdump_stat st;
	size_t size;
	const uint8_t *bytes = kdump_struct(h, data, &size);

	if (strcmp((const char *)data, "stat") != 0 || size != m->stat_size) {
		put_record(h, data, h->ktr_len, NULL, 0);
		return;
	}
	m->stat(bytes, &st);
	f.st.dev = st.dev;
	f.st.ino = st.ino;
	f.st.nlink = st.nlink;
	f.st.mode = (uint16_t)st.mode;
	f.st.uid = (uint32_t)st.uid;
	f.st.gid = (uint32_t)st.gid;
	f.st.rdev = st.rdev;
	f.st.time[0][0] = st.atime;
	f.st.time[0][1] = st.atime_nsec;
	f.st.time[1][0] = st.mtime;
	f.st.time[1][1] = st.mtime_nsec;
	f.st.time[2][0] = st.ctime;
	f.st.time[2][1] = st.ctime_nsec;
	f.st.time[3][0] = -1; /* no birth is known */
	f.st.size = st.size;
	f.st.blocks = (int64_t)st.blocks;
	f.st.blksize = (int32_t)st.blksize;
	put_record(h, &f, sizeof(f), NULL, 0);
}

void
kdump_freebsd(const struct ktr_header *h, const uint8_t *data)
{
	static const uint32_t flags = SV_FLAGS;
	const void *d = data;
	const struct ktr_genio *io = d;
	const struct ktr_fault *fault = d;
	const struct ktr_faultend *end = d;
	int32_t result;

	switch (h->ktr_type & KTR_TYPE) {
	case KTR_SYSCALL:
		put_call(h, d);
		break;
	case KTR_SYSRET:
		put_ret(h, d);
		break;
	case KTR_GENIO:
		put_record(h, &(struct genio){io->ktr_fd, io->ktr_rw}, sizeof(struct genio), io + 1,
			   h->ktr_len - sizeof(*io));
		break;
	case KTR_PSIG:
		put_psig(h, d);
		break;
	case KTR_CSW:
		put_csw(h, d);
		break;
	case KTR_STRUCT:
		put_struct(h, data);
		break;
	case KTR_PROCCTOR:
		put_record(h, &flags, sizeof(flags), NULL, 0);
		break;
	case KTR_PROCDTOR:
		put_record(h, NULL, 0, NULL, 0);
		break;
	case KTR_FAULT:
		put_record(h, &(struct fault){fault->ktr_vaddr, (int32_t)fault->ktr_access, 0},
			   sizeof(struct fault), NULL, 0);
		break;
	case KTR_FAULTEND:
		result = end->ktr_served ? 0 : 2; /* KERN_SUCCESS, KERN_PROTECTION_FAILURE */
		put_record(h, &result, sizeof(result), NULL, 0);
		break;
	case KTR_NAMEI:
	case KTR_USER:
	case KTR_SYSCTL:
		put_record(h, data, h->ktr_len, NULL, 0);
		break;
	}
}
