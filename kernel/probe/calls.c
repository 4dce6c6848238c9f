/* calls.c - the stacks of calls of the threads. Locking: calls.h; `used` is atomic. */
#include "kernel/probe/calls.h"

#include "kernel/lib/clock.h"

static bool used;
/* Number of this use. Calls of another use, or from before a nap, are forgotten. */
static uint32_t run; /* atomic */

bool
calls_start(void)
{
	if (__atomic_exchange_n(&used, true, __ATOMIC_ACQUIRE))
		return false;
	calls_forget();
	return true;
}

void
calls_forget(void)
{
	__atomic_fetch_add(&run, 1, __ATOMIC_RELAXED);
}

void
calls_stop(void)
{
	__atomic_store_n(&used, false, __ATOMIC_RELEASE);
}

struct thread_calls *
calls_mine(void)
{
	struct thread *t = curthread();
	uint32_t now = __atomic_load_n(&run, __ATOMIC_RELAXED) +
		       __atomic_load_n(&ktr_functions_naps, __ATOMIC_RELAXED);

	if (t == NULL)
		return NULL;
	if (t->calls.run != now) {
		t->calls.run = now;
		t->calls.depth = t->calls.lost = 0;
	}
	return &t->calls;
}

struct thread_call *
calls_enter(struct thread_calls *calls, uint32_t function)
{
	if (calls->depth++ >= THREAD_CALLS) {
		calls->lost++;
		return NULL;
	}
	struct thread_call *call = &calls->call[calls->depth - 1];

	*call = (struct thread_call){.function = function, .start_ns = clock_ns()};
	return call;
}

struct thread_call *
calls_leave(struct thread_calls *calls, uint32_t function)
{
	uint32_t depth = calls->depth;

	if (depth > THREAD_CALLS) {
		/* The function may be another one, if a call did not return. */
		calls->depth--;
		return NULL;
	}
	while (depth > 0 && calls->call[depth - 1].function != function)
		depth--;
	if (depth == 0)
		return NULL; /* the function was entered before its probe was on */
	calls->depth = depth - 1;
	return &calls->call[depth - 1];
}
