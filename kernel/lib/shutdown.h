/*
 * shutdown.h - ending the machine in good order.
 *
 * HOOK(shutdown, fn): fn is called before; it may wait, for a bounded time. Thread context.
 */
#pragma once

/* Thread context. */
_Noreturn void shutdown_poweroff(unsigned status);
_Noreturn void shutdown_reboot(void);
