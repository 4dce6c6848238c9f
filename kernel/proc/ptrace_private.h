/* ptrace_private.h - between ptrace.c and ptrace_syscall.c. proc_lock held, but for ptrace_alloc().
 */
#pragma once

struct lwp;
struct proc;
struct ptrace;

/* A record, of nobody. NULL: no memory. */
struct ptrace *ptrace_alloc(void);
void ptrace_attach(struct ptrace *pt, struct proc *tracer, struct lwp *l);
/* The tracer leaves the thread, which goes on. */
void ptrace_detach(struct ptrace *pt);
