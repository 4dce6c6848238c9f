/*
 * hook.h - how a lower floor of the kernel calls the floors above it without knowing them.
 *
 * A file that wants to be called puts a function into a list, which is a linker section; the file
 * that owns the list runs through it. Nothing is registered at run time, so a list is complete from
 * the first instruction on, and needs no lock.
 *
 *   HOOK(clock_tick, watchdog_tick);        in the file above
 *
 *   HOOK_LIST(clock_tick);                  in the file that owns the list
 *   HOOK_RUN(clock_tick);
 *
 * The lists are in kernel/sections.ld; the header of a list's owner says when it is run.
 */
#pragma once

#define HOOK(list, fn) \
	static void (*const hook_##fn)(void) __attribute__((section("hooks_" #list), used)) = fn

#define HOOK_LIST(list) \
	extern void (*const __start_hooks_##list[])(void), (*const __stop_hooks_##list[])(void)

/* Calls all functions of the list, in no particular order. */
#define HOOK_RUN(list)                                                                         \
	do {                                                                                   \
		for (void (*const *f_)(void) = __start_hooks_##list; f_ < __stop_hooks_##list; \
		     f_++)                                                                     \
			(*f_)();                                                               \
	} while (0)
