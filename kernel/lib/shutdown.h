/* shutdown.h - ending the machine in good order: the trace stream gets its end record first. */
#pragma once

/* Thread context. */
_Noreturn void shutdown_poweroff(unsigned status);
_Noreturn void shutdown_reboot(void);
