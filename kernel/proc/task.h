/*
 * task.h - what files, devices and locks ask of the current process: whose it is, where it stands
 * in the tree of names, what it has open, what it may take, and whether a signal ends its wait. Of
 * a kernel thread the answers are those of user 0, in the root of the machine, with all rights and
 * no limit of its own.
 *
 * Only a process has a number, files and real ids: proc_pid(), proc_files(), proc_real_user() and
 * proc_real_caps() are not for kernel threads. Functions without a word on their context: any
 * context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/capability.h"
#include "kernel/abi/resource.h"

struct file;
struct filetable;
struct siginfo;
struct uidinfo;
struct vnode;

#define FILES_HELD 4 /* files that a system call may use at once */

/* What a thread's system call has references to, because other threads may close it. They are
 * dropped when the call ends. */
struct held {
	struct file *files[FILES_HELD];
	unsigned nfiles;
	struct vnode *cwd; /* NULL: it has not asked for it */
	uint32_t resolve;  /* RESOLVE_…: where paths may lead */
};

/* The current thread's, of a process. */
struct held *proc_held(void);
/* RESOLVE_…, of the current system call. */
uint32_t proc_resolve(void);
/* Does the current process have several threads, or share its table of files with another
 * process? False in kernel threads. */
bool proc_is_threaded(void);
/* From now on no other process has its table of files. 0; -EINVAL: its threads have it; -ENOMEM. */
int proc_unshare_files(void);

/* The current process's files. */
struct filetable *proc_files(void);
/* The current process's number. */
uint32_t proc_pid(void);
/* The user and the group that count for files; the effective ones; and the real user. */
uint32_t proc_user(void);
uint32_t proc_group(void);
uint32_t proc_effective_user(void);
uint32_t proc_effective_group(void);
uint32_t proc_real_user(void);
/* The user, the group and the rights that count for files. */
struct task_cred {
	uint32_t user, group;
	uint64_t caps;
};

/*
 * The current thread, of the kernel, acts as somebody else, until it calls this with NULL: then it
 * is the kernel again, which is user 0 in group 0 with all rights.
 */
void task_act_as(const struct task_cred *cred);
/* Has the current process, or kernel thread, the right CAP_…? */
bool capable(unsigned cap);
/* The rights that the current process, or kernel thread, has; and those that it would have as its
 * real user. */
uint64_t proc_caps(void);
uint64_t proc_real_caps(void);
/* Is the current process, or kernel thread, in a group? */
bool proc_in_group(uint32_t gid);
/* As proc_in_group(), with the real group in the place of the effective one. */
bool proc_in_real_group(uint32_t gid);
/* The user to whom allocations are counted: the current process's. */
struct uidinfo *proc_uidinfo(void);
/* The current process's limit, RLIMIT_…; RLIM_INFINITY in kernel threads. */
uint64_t proc_limit(unsigned resource);
/* What the current process has asked for with personality(). */
uint32_t proc_personality(void);
/* Permission bits that the current process does not give to what it makes. */
uint32_t proc_umask(void);

/*
 * The current process's directory, which stays until the system call has ended; NULL in kernel
 * threads. Thread context, no spin lock held.
 */
struct vnode *proc_cwd(void);
/* Makes vn, whose reference this takes over, the current process's directory. Returns the old
 * one with its reference. */
struct vnode *proc_chdir(struct vnode *vn);

/* The root of the current process's paths; NULL: that of the machine. vfs_lock held. */
struct vnode *proc_root(void);
/*
 * Makes vn, whose reference this takes over, the root of the current process's paths. Returns the
 * old one with its reference, or NULL. vfs_lock held.
 */
struct vnode *proc_change_root(struct vnode *vn);

/* Whom a signal tells: F_OWNER_TID, _PID or _PGRP, and its number; and who has said so. */
struct task_owner {
	int32_t kind;
	uint32_t pid, user, real_user; /* pid 0: nobody */
};

/* The current process becomes the one who has said so. False: there is no such owner. */
bool task_owner_set(struct task_owner *o);
/*
 * Signals the owner, if the one who chose it may signal it. As in Linux, an owner for whom too many
 * signals wait gets SIGIO instead, which says that one was lost. Any context but NMI; proc_lock is
 * not held.
 */
void task_signal_owner(const struct task_owner *o, const struct siginfo *info);
/* Signals the current thread (SIGPIPE, SIGXFSZ). Thread context; a kernel thread gets none. */
void proc_signal_self(int sig);
/*
 * The current thread blocks the signals in mask. The old mask is back when the system call has
 * ended and a handler, if one is to run, was prepared.
 */
void proc_signals_mask(uint64_t mask);
/* Brings the old mask back now. */
void proc_signals_unmask(void);
/*
 * Until when a system call that may wait for ns has to wait; ns may be DEADLINE_NEVER. A call that
 * begins again, because no handler ran, waits until its old deadline; if a handler runs just before
 * it begins again, the call fails with -EINTR. Whoever waits in a call that is WAITED, TIMED or
 * FINAL (kernel/syscall.h) asks once, before anything can fail. Thread context.
 */
uint64_t proc_deadline(uint64_t ns);
/*
 * The current thread's system call, which a signal has interrupted, does not begin again, whatever
 * its row says. Only if another thread takes the signal, it does, with this deadline: one of
 * proc_deadline(), or DEADLINE_NEVER. Thread context.
 */
void proc_call_final(uint64_t deadline);
/* Is there a signal to act on? Long kernel loops and sleeps call this. */
bool proc_signal_pending(void);
/*
 * Is there a signal that ends the process? Reads and writes of regular files ask this, since others
 * wait until these end. Any context but NMI; proc_lock is not held.
 */
bool proc_signal_kills(void);
