/*
 * hook.h - how a lower layer of the kernel calls layers above it without including their headers.
 *
 * A file that wants to be called puts a function into a list, which is a linker section. The file
 * that owns the list calls all its functions. Nothing is registered at run time: a list is complete
 * from the first instruction on, and needs no lock.
 *
 * HOOK(clock_tick, watchdog_tick);        in the upper file
 *
 * HOOK_LIST(clock_tick);                  in the file that owns the list
 *   HOOK_RUN(clock_tick);
 *
 * kernel/sections.ld names the lists; the header of a list's owner says when it runs.
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
