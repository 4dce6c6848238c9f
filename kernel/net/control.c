/* control.c - reads control messages. It runs on the host, too. */
#include "kernel/net/control.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"

int
control_next(struct control *c)
{
	struct cmsghdr h;
	size_t step;

	if (c->left < sizeof(h))
		return 0;
	memcpy(&h, c->at, sizeof(h));
	if (h.cmsg_len < sizeof(h) || h.cmsg_len > c->left)
		return -EINVAL;
	c->level = h.cmsg_level;
	c->type = h.cmsg_type;
	c->data = c->at + sizeof(h);
	c->len = (size_t)h.cmsg_len - sizeof(h);
	step = CMSG_ALIGN((size_t)h.cmsg_len);
	step = step < c->left ? step : c->left;
	c->at += step;
	c->left -= step;
	return 1;
}

static int
add_files(const struct control *c, struct unix_control *out)
{
	size_t n = c->len / sizeof(out->fds[0]);

	if (n > SCM_MAX_FD - out->nfds)
		return -EINVAL;
	memcpy(out->fds + out->nfds, c->data, n * sizeof(out->fds[0]));
	out->nfds += (unsigned)n;
	return 0;
}

static int
take_credentials(const struct control *c, struct unix_control *out)
{
	if (c->len != sizeof(out->cred))
		return -EINVAL;
	memcpy(&out->cred, c->data, sizeof(out->cred));
	out->has_cred = true;
	return 0;
}

int
unix_control_parse(const void *control, size_t len, struct unix_control *out)
{
	struct control c = {.at = control, .left = len};
	int r;

	out->has_cred = false;
	out->nfds = 0;
	while ((r = control_next(&c)) == 1) {
		if (c.level != SOL_SOCKET)
			continue;
		r = c.type == SCM_RIGHTS        ? add_files(&c, out)
		    : c.type == SCM_CREDENTIALS ? take_credentials(&c, out)
						: -EINVAL;
		if (r != 0)
			break;
	}
	return r;
}
