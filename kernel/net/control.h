/*
 * control.h - reads control messages, the bytes that a program gives sendmsg(): cmsg(3). No byte
 * of them is trusted. Any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/abi/socket.h"

struct control {
	const char *at; /* begins at the first one */
	size_t left;    /* bytes from there on */
	/* The one that control_next() has found. */
	int level, type;
	const char *data;
	size_t len; /* of the data */
};

/* Goes to the next message. 1; 0: there are no more; -EINVAL: its length is impossible. */
int control_next(struct control *c);

/* What the control messages of one message to a socket of AF_UNIX say. */
struct unix_control {
	struct ucred cred;
	bool has_cred;
	unsigned nfds;
	int32_t fds[SCM_MAX_FD];
};

/*
 * Reads all. -EINVAL: an impossible length, more than SCM_MAX_FD files, or a type of SOL_SOCKET
 * that is unknown. Those of other levels are passed over, as Linux does.
 */
int unix_control_parse(const void *control, size_t len, struct unix_control *out);
