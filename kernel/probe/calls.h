/*
 * calls.h - the functions in which a thread is: a stack of calls for each thread, which hooks of
 * function entries and returns keep (struct thread_calls). One user at a time: the function
 * profiler, or the graph tracer.
 *
 * A thread's stack is written by the CPU on which it runs, in a hook: interrupts are off, and hooks
 * do not interrupt each other. So there are no locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/sched/thread.h"
#include "ktr/hook.h"

/** Takes the stacks into use and empties them. False: somebody else uses them. Thread context. */
bool calls_start(void);
/** Empties the stacks: hooks may have missed returns. Any context. */
void calls_forget(void);
/** The hooks of the user are gone. Thread context. */
void calls_stop(void);

/** The stack of the current thread. NULL: there is no thread yet. As of a hook. */
struct thread_calls *calls_mine(void);

/**
 * A function is entered. Returns its call, to be filled in; NULL if the stack is full, and the call
 * only counts in calls->depth.
 */
struct thread_call *calls_enter(struct thread_calls *calls, uint32_t function);
/**
 * A function returns: takes its call off the stack, and all calls above it, which have not
 * returned. The call stays as it is until the thread's next call. NULL if the entry is not on the
 * stack.
 */
struct thread_call *calls_leave(struct thread_calls *calls, uint32_t function);

/**
 * The entry of the function to which a site belongs, which is the site of its entry or one of its
 * returns. mkfbt writes them one after the other: entry, returns, entry, … A function that does not
 * return has no site for it; one that jumps to others has one for each of them.
 */
static inline const struct ktr_site *
calls_function(const struct ktr_site *site)
{
	while (site->kind == KTR_SITE_RETURN)
		site--;
	return site;
}
