/*
 * decode.c - arguments of system calls as their kinds say, with the names of the kernel's headers.
 * It includes no header of the C library that has the same constants.
 */
#include <stdio.h>
#include <string.h>

#include "kernel/abi/epoll.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/futex.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/kestrel.h"
#include "kernel/abi/mman.h"
#include "kernel/abi/prctl.h"
#include "kernel/abi/resource.h"
#include "kernel/abi/sched.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/socket.h"
#include "kernel/abi/time.h"
#include "kernel/abi/wait.h"
#include "userland/bin/kdump/kdump.h"

struct word {
	uint64_t value;
	const char *name;
};

#define W(constant)                 \
	{                           \
		constant, #constant \
	}
#define END             \
	{               \
		0, NULL \
	}

static const struct word clocks[] = {W(CLOCK_REALTIME), W(CLOCK_MONOTONIC), W(CLOCK_BOOTTIME), END};
static const struct word epolls[] = {W(EPOLL_CTL_ADD), W(EPOLL_CTL_DEL), W(EPOLL_CTL_MOD), END};
static const struct word eventfds[] = {{1, "EFD_SEMAPHORE"},
				       {O_NONBLOCK, "EFD_NONBLOCK"},
				       {O_CLOEXEC, "EFD_CLOEXEC"},
				       END};
static const struct word fcntls[] = {W(F_DUPFD),      W(F_GETFD),      W(F_SETFD),
				     W(F_GETFL),      W(F_SETFL),      W(F_GETLK),
				     W(F_SETLK),      W(F_SETLKW),     W(F_OFD_GETLK),
				     W(F_OFD_SETLK),  W(F_OFD_SETLKW), W(F_DUPFD_CLOEXEC),
				     W(F_GETPIPE_SZ), W(F_SETPIPE_SZ), W(F_SETOWN),
				     W(F_GETOWN),     W(F_SETSIG),     W(F_GETSIG),
				     W(F_SETOWN_EX),  W(F_GETOWN_EX),  END};
static const struct word futexes[] = {W(FUTEX_WAIT),
				      W(FUTEX_WAKE),
				      W(FUTEX_REQUEUE),
				      W(FUTEX_CMP_REQUEUE),
				      W(FUTEX_WAIT_BITSET),
				      W(FUTEX_WAKE_BITSET),
				      END};
static const struct word ioctls[] = {
    W(TCGETS),     W(TCSETS),     W(TCSETSW),    W(TCSETSF),  W(TIOCGPGRP), W(TIOCSPGRP),
    W(TIOCGWINSZ), W(TIOCSWINSZ), W(TCSBRK),     W(TCFLSH),   W(TIOCSCTTY), W(FIONREAD),
    W(FIONBIO),    W(TIOCNOTTY),  W(TIOCGSID),   W(FIONCLEX), W(FIOCLEX),   W(TIOCGPTPEER),
    W(TIOCGPTN),   W(TIOCSPTLCK), W(TIOCGPTLCK), END};
static const struct word ktrops[] = {W(KTROP_SET), W(KTROP_CLEAR), W(KTROP_CLEARFILE), END};
static const struct word prctls[] = {W(PR_SET_NAME),
				     W(PR_GET_NAME),
				     W(PR_SET_PDEATHSIG),
				     W(PR_GET_PDEATHSIG),
				     W(PR_GET_DUMPABLE),
				     W(PR_SET_DUMPABLE),
				     W(PR_GET_KEEPCAPS),
				     W(PR_SET_KEEPCAPS),
				     W(PR_CAPBSET_READ),
				     W(PR_CAPBSET_DROP),
				     W(PR_GET_SECUREBITS),
				     W(PR_SET_TIMERSLACK),
				     W(PR_GET_TIMERSLACK),
				     W(PR_SET_CHILD_SUBREAPER),
				     W(PR_GET_CHILD_SUBREAPER),
				     W(PR_SET_NO_NEW_PRIVS),
				     W(PR_GET_NO_NEW_PRIVS),
				     END};
static const struct word rlimits[] = {W(RLIMIT_CPU),
				      W(RLIMIT_FSIZE),
				      W(RLIMIT_DATA),
				      W(RLIMIT_STACK),
				      W(RLIMIT_CORE),
				      W(RLIMIT_RSS),
				      W(RLIMIT_NPROC),
				      W(RLIMIT_NOFILE),
				      W(RLIMIT_MEMLOCK),
				      W(RLIMIT_AS),
				      W(RLIMIT_LOCKS),
				      W(RLIMIT_SIGPENDING),
				      W(RLIMIT_MSGQUEUE),
				      W(RLIMIT_NICE),
				      W(RLIMIT_RTPRIO),
				      W(RLIMIT_RTTIME),
				      END};
static const struct word scheds[] = {W(SCHED_OTHER), W(SCHED_FIFO),     W(SCHED_RR), W(SCHED_BATCH),
				     W(SCHED_IDLE),  W(SCHED_DEADLINE), END};
static const struct word shutdowns[] = {W(SHUTDOWN_POWEROFF), W(SHUTDOWN_REBOOT), END};
static const struct word shuts[] = {W(SHUT_RD), W(SHUT_WR), W(SHUT_RDWR), END};
static const struct word sock_families[] = {W(AF_UNSPEC), W(AF_UNIX), W(AF_INET), END};
static const struct word sock_levels[] = {W(SOL_SOCKET),
					  {6, "IPPROTO_TCP"},
					  {0, "IPPROTO_IP"},
					  END};
static const struct word sock_options[] = {W(SO_DEBUG),
					   W(SO_REUSEADDR),
					   W(SO_TYPE),
					   W(SO_ERROR),
					   W(SO_DONTROUTE),
					   W(SO_BROADCAST),
					   W(SO_SNDBUF),
					   W(SO_RCVBUF),
					   W(SO_KEEPALIVE),
					   W(SO_OOBINLINE),
					   W(SO_PRIORITY),
					   W(SO_LINGER),
					   W(SO_REUSEPORT),
					   W(SO_PASSCRED),
					   W(SO_PEERCRED),
					   W(SO_RCVLOWAT),
					   W(SO_SNDLOWAT),
					   W(SO_RCVTIMEO),
					   W(SO_SNDTIMEO),
					   W(SO_ACCEPTCONN),
					   W(SO_PROTOCOL),
					   W(SO_DOMAIN),
					   END};
static const struct word sock_types[] = {W(SOCK_STREAM), W(SOCK_DGRAM), W(SOCK_RAW),
					 W(SOCK_SEQPACKET), END};
static const struct word sighows[] = {{0, "SIG_BLOCK"},
				      {1, "SIG_UNBLOCK"},
				      {2, "SIG_SETMASK"},
				      END};
static const struct word signals[] = {W(SIGHUP),  W(SIGINT),  W(SIGQUIT), W(SIGILL),  W(SIGTRAP),
				      W(SIGABRT), W(SIGBUS),  W(SIGFPE),  W(SIGKILL), W(SIGUSR1),
				      W(SIGSEGV), W(SIGUSR2), W(SIGPIPE), W(SIGALRM), W(SIGTERM),
				      W(SIGCHLD), W(SIGCONT), W(SIGSTOP), W(SIGTSTP), W(SIGTTIN),
				      W(SIGTTOU), W(SIGURG),  W(SIGXCPU), W(SIGXFSZ), W(SIGWINCH),
				      W(SIGIO),   W(SIGSYS),  END};
static const struct word sysctls[] = {W(SYSCTL_GET), W(SYSCTL_SET), W(SYSCTL_NEXT), W(SYSCTL_INFO),
				      END};
static const struct word timers[] = {W(TIMER_ABSTIME), END};
static const struct word close_ranges[] = {W(CLOSE_RANGE_UNSHARE), W(CLOSE_RANGE_CLOEXEC), END};
static const struct word flocks[] = {W(LOCK_SH), W(LOCK_EX), W(LOCK_NB), W(LOCK_UN), END};
static const struct word memfds[] = {W(MFD_CLOEXEC), W(MFD_ALLOW_SEALING), W(MFD_NOEXEC_SEAL),
				     W(MFD_EXEC), END};
static const struct word renames[] = {W(RENAME_NOREPLACE), W(RENAME_EXCHANGE), END};
static const struct word rwfs[] = {W(RWF_HIPRI), W(RWF_DSYNC), W(RWF_SYNC), W(RWF_NOWAIT), END};
static const struct word splices[] = {
    {1, "SPLICE_F_MOVE"}, W(SPLICE_F_NONBLOCK), {4, "SPLICE_F_MORE"}, {8, "SPLICE_F_GIFT"}, END};
static const struct word whences[] = {W(SEEK_SET),  W(SEEK_CUR),  W(SEEK_END),
				      W(SEEK_DATA), W(SEEK_HOLE), END};

static const struct word accesses[] = {{4, "R_OK"}, {2, "W_OK"}, {1, "X_OK"}, END};
static const struct word ats[] = {W(AT_SYMLINK_NOFOLLOW), W(AT_REMOVEDIR),  W(AT_SYMLINK_FOLLOW),
				  W(AT_NO_AUTOMOUNT),     W(AT_EMPTY_PATH), END};
static const struct word clones[] = {W(CLONE_VM),
				     W(CLONE_FS),
				     W(CLONE_FILES),
				     W(CLONE_SIGHAND),
				     W(CLONE_VFORK),
				     W(CLONE_THREAD),
				     W(CLONE_SYSVSEM),
				     W(CLONE_SETTLS),
				     W(CLONE_PARENT_SETTID),
				     W(CLONE_CHILD_CLEARTID),
				     W(CLONE_DETACHED),
				     W(CLONE_CHILD_SETTID),
				     END};
static const struct word facs[] = {
    W(KTRFAC_SYSCALL),  W(KTRFAC_SYSRET),   W(KTRFAC_NAMEI),    W(KTRFAC_GENIO),
    W(KTRFAC_PSIG),     W(KTRFAC_CSW),      W(KTRFAC_USER),     W(KTRFAC_STRUCT),
    W(KTRFAC_SYSCTL),   W(KTRFAC_PROCCTOR), W(KTRFAC_PROCDTOR), W(KTRFAC_FAULT),
    W(KTRFAC_FAULTEND), W(KTRFAC_ROOT),     W(KTRFAC_INHERIT),  END};
static const struct word maps[] = {W(MAP_SHARED),          W(MAP_PRIVATE),
				   W(MAP_FIXED),           W(MAP_ANONYMOUS),
				   W(MAP_DENYWRITE),       W(MAP_NORESERVE),
				   W(MAP_POPULATE),        W(MAP_STACK),
				   W(MAP_FIXED_NOREPLACE), END};
static const struct word advices[] = {W(MADV_NORMAL),
				      W(MADV_RANDOM),
				      W(MADV_SEQUENTIAL),
				      W(MADV_WILLNEED),
				      W(MADV_DONTNEED),
				      W(MADV_FREE),
				      END};
static const struct word mremaps[] = {W(MREMAP_MAYMOVE), W(MREMAP_FIXED), W(MREMAP_DONTUNMAP), END};
static const struct word msyncs[] = {W(MS_ASYNC), W(MS_INVALIDATE), W(MS_SYNC), END};
static const struct word modes[] = {{0400, "S_IRUSR"},
				    {0200, "S_IWUSR"},
				    {0100, "S_IXUSR"},
				    {040, "S_IRGRP"},
				    {020, "S_IWGRP"},
				    {010, "S_IXGRP"},
				    {04, "S_IROTH"},
				    {02, "S_IWOTH"},
				    {01, "S_IXOTH"},
				    {01000, "S_ISTXT"},
				    END};
/* O_DIRECTORY and O_NOFOLLOW are the machine's. */
static const struct word opens[] = {W(O_CREAT),  W(O_EXCL),     W(O_NOCTTY),  W(O_TRUNC),
				    W(O_APPEND), W(O_NONBLOCK), W(O_CLOEXEC), W(O_DSYNC),
				    W(O_ASYNC),  W(O_NOATIME),  W(O_PATH),    END};
static const struct word messages[] = {W(MSG_OOB),        W(MSG_PEEK),         W(MSG_DONTROUTE),
				       W(MSG_CTRUNC),     W(MSG_TRUNC),        W(MSG_DONTWAIT),
				       W(MSG_EOR),        W(MSG_WAITALL),      W(MSG_CONFIRM),
				       W(MSG_ERRQUEUE),   W(MSG_NOSIGNAL),     W(MSG_MORE),
				       W(MSG_WAITFORONE), W(MSG_CMSG_CLOEXEC), END};
static const struct word sock_flags[] = {W(SOCK_NONBLOCK), W(SOCK_CLOEXEC), END};
static const struct word prots[] = {W(PROT_READ), W(PROT_WRITE), W(PROT_EXEC), END};
static const struct word waits[] = {W(WNOHANG),       W(WUNTRACED),
				    W(WCONTINUED),    {WNOTHREAD, "__WNOTHREAD"},
				    {WALL, "__WALL"}, END};
static const struct word waitids[] = {W(WNOHANG),       W(WSTOPPED), W(WEXITED),
				      W(WCONTINUED),    W(WNOWAIT),  {WNOTHREAD, "__WNOTHREAD"},
				      {WALL, "__WALL"}, END};
static const struct word waitid_kinds[] = {W(P_ALL), W(P_PID), W(P_PGID), W(P_PIDFD), END};

static const char *
find(const struct word *words, uint64_t v)
{
	for (; words->name != NULL; words++)
		if (words->value == v)
			return words->name;
	return NULL;
}

void
kdump_print_number(uint64_t v)
{
	printf(kdump_options.decimal ? "%ld" : "%#lx", v);
}

/* All of these are ints: a program may leave anything in the upper half of the register. */
static void
print_choice(const struct word *words, uint64_t v)
{
	const char *name = find(words, (uint32_t)v);

	if (name != NULL)
		fputs(name, stdout);
	else
		kdump_print_number(v);
}

/* Prints the names of the bits of *v after `bar`, and clears them. Returns what separates more. */
static const char *
print_bits(const struct word *words, uint64_t *v, const char *bar)
{
	for (; words->name != NULL; words++) {
		if ((*v & words->value) == 0)
			continue;
		printf("%s%s", bar, words->name);
		*v &= ~words->value;
		bar = "|";
	}
	return bar;
}

static void
print_rest(uint64_t v, const char *bar)
{
	if (v != 0)
		printf("%s%#lx", bar, v);
	putchar('>');
}

static void
print_mask(const struct word *words, uint64_t v)
{
	const char *bar = "";

	kdump_print_number(v);
	if (v == 0)
		return;
	putchar('<');
	bar = print_bits(words, &v, bar);
	print_rest(v, bar);
}

static void
print_open(const struct kdump_machine *m, uint64_t v)
{
	static const char *const how[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
	const struct word own[] = {{m->o_directory, "O_DIRECTORY"},
				   {m->o_nofollow, "O_NOFOLLOW"},
				   END};
	const char *bar = "|";

	v &= UINT32_MAX;
	kdump_print_number(v);
	printf("<%s", how[v & O_ACCMODE]);
	v &= ~(uint64_t)O_ACCMODE;
	bar = print_bits(own, &v, bar);
	bar = print_bits(opens, &v, bar);
	print_rest(v, bar);
}

/* The lowest bits are the type, or 0 of accept4(). */
static void
print_socket_type(uint64_t v)
{
	const char *type = find(sock_types, v & SOCK_TYPE_MASK), *bar = "";

	kdump_print_number(v & UINT32_MAX);
	if ((uint32_t)v == 0)
		return;
	printf("<%s", type != NULL ? type : "");
	v &= UINT32_MAX & ~(uint64_t)(type != NULL ? SOCK_TYPE_MASK : 0);
	bar = print_bits(sock_flags, &v, type != NULL ? "|" : "");
	print_rest(v, bar);
}

/* The lowest byte is the signal that the child sends when it ends. */
static void
print_clone(uint64_t v)
{
	const char *sig = find(signals, v & 0xff), *bar = "";

	kdump_print_number(v);
	putchar('<');
	v &= sig != NULL ? ~0xfful : ~0ul;
	bar = print_bits(clones, &v, bar);
	if (sig != NULL)
		printf("%s%s", bar, sig);
	print_rest(v, sig != NULL ? "|" : bar);
}

const char *
kdump_signal(int sig)
{
	return sig > 0 ? find(signals, (uint64_t)sig) : NULL;
}

const char *
kdump_signal_code(int sig, int code)
{
	static const struct word codes[] = {W(SI_USER), W(SI_KERNEL), W(SI_TIMER), W(SI_TKILL),
					    END};
	static const struct {
		int sig;
		const char *names[9]; /* from 1 on, and a NULL */
	} own[] = {
	    {SIGILL,
	     {"ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG",
	      "ILL_COPROC", "ILL_BADSTK"}},
	    {SIGTRAP, {"TRAP_BRKPT", "TRAP_TRACE"}},
	    {SIGBUS, {"BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR"}},
	    {SIGFPE,
	     {"FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES",
	      "FPE_FLTINV", "FPE_FLTSUB"}},
	    {SIGSEGV, {"SEGV_MAPERR", "SEGV_ACCERR"}},
	    {SIGCHLD,
	     {"CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED",
	      "CLD_CONTINUED"}},
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i].sig == sig && code >= 1 && code <= 8)
			return own[i].names[code - 1];
	return find(codes, (uint64_t)code);
}

/* Kinds of which a value is one of the words, or a set of them. */
static const struct kind {
	const struct word *words;
	bool set; /* of bits of an int */
} kinds[] = {
#define ARG(kind, words, bits) [ARG_##kind] = {words, bits},
    KDUMP_WORDS(ARG)
#undef ARG
};

static void
print_words(enum kdump_arg_kind kind, uint64_t v)
{
	const struct kind *k = &kinds[kind];

	if (k->set)
		print_mask(k->words, (uint32_t)v);
	else
		print_choice(k->words, v);
}

void
kdump_print_arg(const struct kdump_machine *m, enum kdump_arg_kind kind, uint64_t v)
{
	if (kdump_options.raw)
		kind = ARG_NUMBER;
	switch (kind) {
	case ARG_NUMBER:
		kdump_print_number(v);
		break;
	case ARG_SIGNED:
		/* Numbers such as -1 are smaller than half of all numbers, and are meant as int. */
		if ((int64_t)(int32_t)v < 0 && (v >> 32 == 0 || v >> 32 == UINT32_MAX))
			printf("%d", (int)v);
		else
			kdump_print_number(v);
		break;
	case ARG_ACCESS:
		if ((uint32_t)v == 0)
			fputs("0<F_OK>", stdout);
		else
			print_mask(accesses, (uint32_t)v);
		break;
	case ARG_ATFD:
		if ((int32_t)v == AT_FDCWD)
			fputs("AT_FDCWD", stdout);
		else
			kdump_print_number(v);
		break;
	case ARG_CLONE:
		print_clone(v);
		break;
	case ARG_FUTEX:
		print_choice(futexes, v & FUTEX_CMD_MASK);
		if (v & FUTEX_PRIVATE_FLAG)
			fputs("|FUTEX_PRIVATE_FLAG", stdout);
		if (v & FUTEX_CLOCK_REALTIME)
			fputs("|FUTEX_CLOCK_REALTIME", stdout);
		break;
	case ARG_KTROP:
		print_choice(ktrops, KTROP(v));
		if (v & KTRFLAG_DESCEND)
			fputs("|KTRFLAG_DESCEND", stdout);
		break;
	case ARG_OPEN:
		print_open(m, v);
		break;
	case ARG_SOCKTYPE:
		print_socket_type(v);
		break;
	case ARG_PROT:
		if (v == PROT_NONE)
			fputs("PROT_NONE", stdout);
		else
			print_mask(prots, v);
		break;
	default:
		print_words(kind, v);
	}
}
