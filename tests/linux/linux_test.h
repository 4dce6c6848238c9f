/* linux_test.h - between the files of linux_test, a program of Linux: static, over glibc. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The call has failed with this error. */
#define FAILS(call, error) ((call) == -1 && errno == (error))
/* An address where nothing is; the compiler does not know that. */
extern void *volatile no_address;
#define NOWHERE no_address
#define MS      1000000l /* ns */

/* Prints the result of a test, TAP. */
void result(bool good, const char *promise);
/* Runs fn(arg) in a child. Its result, 0 to 125; 128 + the signal that killed it. */
int in_child(int (*fn)(void *), void *arg);
/* The state of that process, or thread of it (0: its first one), as /proc shows it: 'S', 'T'. '\0':
 * it is gone. */
char state_of(pid_t pid, pid_t tid);
/* Returns when it has that state. False: it has ended. */
bool await_state(pid_t pid, pid_t tid, char state);
/* The same where it is to wait in the kernel. */
bool await_sleep(pid_t pid, pid_t tid);
/* Nanoseconds of a clock. -1: it cannot be read. */
long now_ns(clockid_t clock);
/* Executes this program with one argument. Returns as in_child(). */
int execute_self(const char *word);
/* How often a test does something that it would do n times: less with the word "brief", where each
 * step takes long. */
unsigned how_often(unsigned n);
/* Is this Kestrel? Other systems have other limits. */
bool is_kestrel(void);
/* usage.c: the number after a word in a process's status. -1: there is none. */
long status_number(pid_t pid, const char *word);
/* This program's path. */
const char *linux_test_path(void);

/* fpu.c */
void test_fpu(void);
int fpu_as_executed(void);
/* calls.c */
void test_calls(void);
int auxv_as_executed(void);
int arguments_as_executed(int argc, char *argv[]);

/* signals.c */
void test_signals(void);
int signals_as_executed(void);
/* A process of several threads is killed a moment before one of them ends it. */
int killed_among_threads(void);

/* seals.c: the same on Linux. */
void test_seals(void);

/* stacks.c: the same on Linux. */
void test_stacks(void);
int stacks_as_executed(void);

/* usage.c: the same on Linux. */
void test_usage(void);
int usage_as_executed(void);
int usage_beside(unsigned n); /* computes with CPU timers, beside n threads that sleep */
int room_as_executed(void);

/* cputime.c: the same on Linux. */
void test_cputime(void);
int cputime_sleepers(void); /* 0: many threads wake in the order of their times */

/* clones.c: the same on Linux. */
void test_clones(void);
int clones_as_executed(void);

/* sysv.c: the same on Linux. */
void test_sysv(void);
int sysv_renumbered(void);

/* queue.c: the same on Linux. */
void test_queue(void);
int queue_forgotten(unsigned n); /* prints how long that takes */
int queue_awaited(unsigned n);

/* caps.c: the same on Linux. */
void test_caps(void);
int caps_as_executed(void);
int caps_as_tracer(void);

/* vdso.c: the same on Linux. */
void test_vdso(void);

/* memory.c: the same on Linux. */
void test_memory(void);

/* edges.c: the same on Linux. */
void test_edges(void);
#define EDGES_NAMELESS "LINUX_TEST_NAMELESS" /* in the environment of this program, executed so */
int edges_nameless(int argc, char *argv[]);

/* misc.c: the same on Linux. */
void test_misc(void);

/* names.c, bytes.c: the same on Linux. */
void test_names(void);
void test_bytes(void);

/* threads.c */
void test_threads(void);
int threads_as_executed(const char *pid);
/* A thread executes this program, as above; how: what the first one does, 0 to 3. */
int threads_execute(int how);
int threads_far(unsigned n, bool shared);

/* workers.c: exit statuses. */
int workers_traced(void);
int workers_unmap(void);
int workers_compute(double seconds);

/* maps.c: makes a directory, and prints what happens there. An exit status. */
int maps_are(const char *dir);
int maps_of_host(const char *dir); /* the same of a file there, of which maps cannot be written */
int maps_holes(long size);         /* makes the files "holes" and "room" */
int maps_fill(const char *path, size_t size, bool code);
int misc_read_ahead(const char *path); /* 0: readahead() has read most of the file */
int moves_dsync(const char *path);     /* 0: a write with RWF_DSYNC says that the disk fails */
int moves_exchange(const char *a, const char *b);   /* prints what RENAME_EXCHANGE says */
int moves_linked(const char *fd, const char *path); /* prints what a link to an open file says */
int maps_resting(const char *path, int syncs);      /* 0: it is mapped, written, and synced */
int maps_unlinked(const char *path);                /* 0: the file is unlinked, and then unmapped */

/* probed.c: exit statuses. */
int probed_run(const char *count);
int probed_for_ever(void);

/* files.c */
void test_files(void);

/* events.c */
void test_events(void);
/* Changes one of that many descriptors in a set, and waits for single events. 0: done. */
int epoll_among(unsigned others);
/* Sets a handler of SIGALRM, which counts in `signals_seen`. */
void on_alarm(int flags);
extern volatile sig_atomic_t signals_seen;
/* Sends SIGALRM again and again, so that a call that it does not end is interrupted later. */
void send_alarms(bool on);
/* epoll_ctl(). */
int watch(int set, int op, int fd, uint32_t events, uint64_t data);
/* What epoll_wait() tells now: the events of the only file, 0: nothing, UINT32_MAX: several. */
uint32_t told(int set);

/* inotify.c: the same on Linux. */
void test_inotify(void);
int inotify_as_executed(void);

/* mounts.c: the same on Linux. */
void test_mounts(void);
int mounts_as_executed(void);

/* pidfds.c: the same on Linux. */
void test_pidfds(void);
int pidfds_as_executed(void);

/* xattrs.c: the same on Linux. */
void test_xattrs(void);

/* waits.c: the same on Linux. */
void test_waits(void);
int waits_as_executed(void);

/* moves.c */
void test_moves(void);

/* locks.c: the same on Linux. */
void test_locks(void);

/* devs.c: the same on Linux. */
void test_devs(void);

/* ptrace.c: the same on Linux. */
void test_ptrace(void);
/* What a debugger runs, and where the probes of tests/system/test_uprobe.py are. */
int ptraced_steps(void);
int ptraced_target(void);
int ptraced_calls(void);
int ptraced_sum(int a, int b);

/* ptys.c: the same on Linux. */
void test_ptys(void);
int ptys_reserved(void);
/* A pair, unlocked. The slave is not opened as anybody's terminal. False: there is none. */
bool ptys_pair(int *master, int *slave);

/* stops.c: the same on Linux. */
void test_stops(void);
/* Exit statuses. */
int stops_orphans(unsigned n);
int stops_found(unsigned n);
int stops_answers(unsigned n);
int stops_at_once(void);  /* beside probes: prints what comes first */
int stops_shortage(void); /* only in a guest: it takes the memory of the machine */

/* ttys.c: the same on Linux. */
void test_ttys(void);

/* ways.c: the same on Linux. */
void test_ways(void);

/* sockets.c, socket_names.c, socket_rights.c, socket_threads.c: the same on Linux. */
void test_sockets(void);
/* Reads from a full queue, while there are that many other sockets. 0: done. */
int sockets_among(unsigned others);
void test_socket_names(void);
void test_socket_rights(void);
void test_socket_threads(void);

/* pipes.c */
void test_pipes(void);

/* answers.c: the same on Linux. */
void test_answers(void);
int answers_as_executed(void);

/* looks.c: the same on Linux. */
void test_looks(void);

/* texts.c */
void test_texts(void);
int texts_stay(void);

/* nodes.c */
void test_nodes(void);

/* ids.c */
void test_ids(void);
int ids_as_executed(void);

/* timers.c */
void test_timers(void);
int timers_as_executed(void);

/* proc.c */
void test_proc(void);

/* admin.c */
void test_admin(void);

/* sched.c */
void test_sched(void);

/* rt.c */
void test_rt(void);
int rt_as_executed(void);
int rt_naps(void);

/* links.c */
void test_links(void);

/* inet.c: the same on Linux. */
void test_inet(void);
struct sockaddr_in;
/* The loopback's address; port: network order. */
struct sockaddr_in inet_local(uint16_t port);
/* A socket of its own port, which listens if backlog is not negative; -1: none. *name: its name. */
int inet_bound(int type, int backlog, struct sockaddr_in *name);
/* What poll() tells of it within ms. */
short inet_polled(int fd, int ms);
/* The checksum of the Internet (RFC 1071) of an even number of bytes; 0 of what has its own in it.
 */
uint16_t inet_checksum(const void *bytes, size_t n);
/* SO_ERROR. */
int inet_error(int s);
/* Two ends of a connection; the first one connected. */
bool inet_connected(int end[2]);

/* fasync.c: the same on Linux. */
void test_fasync(void);

/* streams.c: the same on Linux. */
void test_streams(void);
/* One thread reads 4321 bytes, and another one looks, without waiting, until they are read. 0:
 * done. */
int streams_looked_at(void);
/* One thread peeks at 4321 bytes, and another one that found nothing meanwhile is told of them. */
int streams_peeked_at(void);
/* datagrams.c: the same on Linux. */
void test_datagrams(void);
int datagrams_told(const char *address);
int datagrams_heard(const char *last);

/* floods.c, forged.c: not on the host. */
void test_floods(void);
void test_forged(void);

#define FPU_WORDS 64 /* at most: 8-byte words of vector registers */
/* ARCH/registers.c: how many words there are. */
extern const size_t fpu_words;
/*
 * Loads all vector registers, calls sched_yield() `turns` times, and stores them; without an
 * instruction in between that could change them.
 */
void fpu_round_trip(const uint64_t in[FPU_WORDS], uint64_t out[FPU_WORDS], unsigned long turns);
/* Stores the vector registers as they are. */
void fpu_store(uint64_t out[FPU_WORDS]);
void undefined_instruction(void);
/* Changes the registers that a signal's frame (a ucontext_t) holds: gives them rights; the pc. */
void frame_take_rights(void *context);
void frame_set_pc(void *context, uint64_t pc);
uint64_t frame_pc(const void *context);
/* Does it tell of a write to that address, as the thread's last fault? */
bool frame_tells_fault(const void *context, uintptr_t at);
/* A breakpoint instruction, and what goes on after it. */
void breakpoint(void);
void skip_breakpoint(void *context);
/* A system call of three arguments, made by the function at `code`, into which this puts it. */
void code_of_call(void *code);
long call_at(const void *code, long nr, uint64_t a, uint64_t b, uint64_t c);
/* Faults that a program can make, and what their handlers must get. make NULL: the end. */
struct port_fault {
	void (*make)(void);
	int sig, code;
	bool placed;   /* si_addr is the instruction's address, else 0 */
	bool may_miss; /* QEMU's TCG does not make it */
};
extern const struct port_fault port_faults[];
/* Has this process rights that frame_take_rights() asked for? */
bool has_rights(void);
/* Calls rt_sigreturn() with the stack pointer in the middle of 1024 words. */
void return_by_frame(uint64_t words[1024]);

/* synced.c: they write until the machine is reset. */
int synced_write(const char *dir, unsigned id);
int synced_scribble(const char *path, unsigned seed);
