/* ptrace_private.h - between the files of ptrace(). proc_lock held, but for ptrace_alloc() and
 * ptrace_memory_word().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lwp;
struct proc;
struct ptrace;

/* A record, of nobody. NULL: no memory. */
struct ptrace *ptrace_alloc(void);
void ptrace_attach(struct ptrace *pt, struct proc *tracer, struct lwp *l);
/* The tracer leaves the thread, which goes on. */
void ptrace_detach(struct ptrace *pt);
/* May the current process look into p, and change it? Process 1 must always run. */
bool ptrace_may_attach(const struct proc *p);
/* The record of a tracee that is stopped; its requests are made with it. NULL: there is none. */
struct ptrace *ptrace_find_stopped(uint32_t tid);
/* Writes a word of a tracee's memory, or copies one to `data` of the caller. 0 or -errno. */
int64_t ptrace_memory_word(uint32_t tid, bool write, uint64_t at, uint64_t data);
