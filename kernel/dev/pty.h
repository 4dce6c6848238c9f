/* pty.h - pseudo-terminals: /dev/ptmx and /dev/pts. */
#pragma once

/* Makes both. Once, after vfs_init(). Thread context. */
void pty_init(void);
