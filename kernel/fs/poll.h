/* poll.h - waiting until one of several files is ready. */
#pragma once

/*
 * A file may have become ready. The driver calls it after the change, which poll() of the file's
 * vnode_ops then sees. Any context but NMI.
 */
void poll_notify(void);
