/* proc_private.h - between the files of kernel/proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/resource.h"

struct arch_trapframe;
struct proc;
struct vmspace;

extern struct spinlock proc_lock;
extern struct list procs; /* proc_lock */

/* The process after p in the list of all; NULL starts, and ends. proc_lock held. */
struct proc *proc_next(const struct proc *p);
#define for_each_proc(p) for (struct proc *p = proc_next(NULL); p != NULL; p = proc_next(p))

/* Nanoseconds for which the current thread has had a CPU. Any context but NMI. */
uint64_t thread_cpu_ns(void);
/* The limits of process 1. */
void rlimit_init(struct rlimit limits[RLIMIT_NLIMITS]);
/* Loads a new image into the current process, and fills tf. On error the old one is intact. */
int exec_image(struct proc *p, const char *path, char *const argv[], char *const envp[],
	       struct arch_trapframe *tf);
/*
 * Makes vm the address space of the current process, p. NULL: p has only the kernel's. The caller
 * then destroys the old space. proc_lock held.
 */
void proc_set_space(struct proc *p, struct vmspace *vm);
/* The current process, p, has left the address space of its parent, which may wait for that. */
void proc_vfork_done(struct proc *p);
/*
 * The hooks proc_exit run when the current process has no memory and no files any more, and is not
 * a zombie yet: thread context. The hooks user_return run before a return to user mode, if
 * pcpu.work is set and whenever signals or rescheduling are looked for: thread context, no lock
 * held.
 */
/* Ends the current process with a wait status. */
_Noreturn void proc_exit(int wait_status);
/* Sends sig to one process. proc_lock held. */
void proc_signal_locked(struct proc *p, int sig);
/*
 * A system call of the current process failed for lack of memory. True: the process is user 0's,
 * and a process of a user who holds too much was killed, so try again. Thread context, no lock
 * held.
 */
bool proc_reclaim(void);
/*
 * A page fault of the current process found no memory: kills a process (oom.c) and waits a short
 * time for its end. True: try again. False: nothing can be freed, or the current process has to
 * die. Thread context, no spin lock held.
 */
bool proc_out_of_memory(void);
/* Acts on pending signals of the current process before it returns to user mode. */
void proc_deliver_signals(void);
