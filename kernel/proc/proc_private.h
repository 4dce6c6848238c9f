/* proc_private.h - between the files of kernel/proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe;
struct proc;
struct vmspace;

extern struct spinlock proc_lock;
extern struct list procs; /* proc_lock */

/* The process after p in the list of all, the first for NULL; NULL at the end. proc_lock held. */
struct proc *proc_next(const struct proc *p);
#define for_each_proc(p) for (struct proc *p = proc_next(NULL); p != NULL; p = proc_next(p))

/* Builds a new image for the current process and fills tf. On error the old image is intact. */
int exec_image(struct proc *p, const char *path, char *const argv[], char *const envp[],
	       struct arch_trapframe *tf);
/*
 * The current process, p, runs in vm from now on; NULL: in the kernel's space alone. The caller
 * destroys the space before. proc_lock held.
 */
void proc_set_space(struct proc *p, struct vmspace *vm);
/* The current process ends with a wait status. */
_Noreturn void proc_exit(int wait_status);
/* Sends sig to one process. proc_lock held. */
void proc_signal_locked(struct proc *p, int sig);
/*
 * A system call of the current process failed for want of memory. True: it is user 0's, another
 * user had taken the memory, and a process of that user has been killed: try again. Thread context,
 * no lock held.
 */
bool proc_reclaim(void);
/*
 * A page fault of the current process found no memory: kills a process (oom.c) and waits a little
 * for it to go. True: try again. False: no use, or the current process is to die itself. Thread
 * context, no spin lock held.
 */
bool proc_out_of_memory(void);
/* Acts on pending signals of the current process, before it returns to user mode. */
void proc_deliver_signals(void);
