/*
 * shutdown.h - orderly power-off and reboot.
 *
 * HOOK(shutdown, fn): fn is called first, and may wait for a bounded time. Thread context.
 * HOOK(shutdown_sync, fn): the same, after all of those, which may write to files.
 */
#pragma once

/* Thread context. */
_Noreturn void shutdown_poweroff(unsigned status);
_Noreturn void shutdown_reboot(void);
/* The machine will stand still: the caller stops it after this. Thread context. */
void shutdown_before_halt(void);
