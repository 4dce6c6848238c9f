/*
 * option.c - setsockopt and getsockopt: what all families have in common, the level SOL_SOCKET.
 * Locking: socket.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/time.h"
#include "kernel/mm/uaccess.h"
#include "kernel/net/socket.h"
#include "kernel/proc/task.h"

#define BUFFER_MAX 212992 /* as Linux's net.core.wmem_max and rmem_max */
#define SNDBUF_MIN 4608
#define RCVBUF_MIN 2304

#define BIT(option) (1ul << (option))

/* Options that are yes or no. */
static const uint64_t switches = BIT(SO_DEBUG) | BIT(SO_REUSEADDR) | BIT(SO_DONTROUTE) |
				 BIT(SO_BROADCAST) | BIT(SO_KEEPALIVE) | BIT(SO_OOBINLINE) |
				 BIT(SO_PASSCRED);

static bool
is_switch(int name)
{
	return name > 0 && name < 64 && (switches & BIT(name));
}

static void
set_switch(struct socket *so, int name, bool on)
{
	if (on)
		__atomic_fetch_or(&so->options, BIT(name), __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&so->options, ~BIT(name), __ATOMIC_RELAXED);
}

/* The size of a buffer as Linux has it: twice what is asked for. */
static uint32_t
option_buffer_size(int32_t asked, uint32_t min, bool force)
{
	uint32_t size = force && asked < 0 ? 0 : (uint32_t)asked;

	if (!force && size > BUFFER_MAX)
		size = BUFFER_MAX;
	if (size > INT32_MAX / 2)
		size = INT32_MAX / 2;
	return size * 2 > min ? size * 2 : min;
}

static int
set_timeout(uint64_t *timeout, uint64_t uvalue, uint32_t len)
{
	struct timeval t;
	uint64_t ns;

	if (len < sizeof(t))
		return -EINVAL;
	if (copy_in(&t, uvalue, sizeof(t)) != 0)
		return -EFAULT;
	if (t.tv_usec < 0 || t.tv_usec >= 1000000)
		return -EDOM;
	ns = t.tv_sec < 0          ? 1 /* it does not wait */
	     : t.tv_sec < 1l << 30 ? (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000
				   : 0;
	__atomic_store_n(timeout, ns, __ATOMIC_RELAXED);
	return 0;
}

static int
set_linger(struct socket *so, uint64_t uvalue, uint32_t len)
{
	struct linger l;

	if (len < sizeof(l))
		return -EINVAL;
	if (copy_in(&l, uvalue, sizeof(l)) != 0)
		return -EFAULT;
	mutex_lock(&so->lock);
	so->linger = l;
	mutex_unlock(&so->lock);
	return 0;
}

/* An option that is an int. */
static int
set_number(struct socket *so, int name, int32_t value)
{
	bool force = name == SO_SNDBUFFORCE || name == SO_RCVBUFFORCE;

	if (is_switch(name)) {
		set_switch(so, name, value != 0);
		return 0;
	}
	switch (name) {
	case SO_SNDBUF:
	case SO_SNDBUFFORCE:
		if (force && !capable(CAP_NET_ADMIN))
			return -EPERM;
		__atomic_store_n(&so->sndbuf, option_buffer_size(value, SNDBUF_MIN, force),
				 __ATOMIC_RELAXED);
		return 0;
	case SO_RCVBUF:
	case SO_RCVBUFFORCE:
		if (force && !capable(CAP_NET_ADMIN))
			return -EPERM;
		__atomic_store_n(&so->rcvbuf, option_buffer_size(value, RCVBUF_MIN, force),
				 __ATOMIC_RELAXED);
		return 0;
	case SO_PRIORITY:
		if ((value < 0 || value > 6) && !capable(CAP_NET_ADMIN))
			return -EPERM;
		so->priority = (uint32_t)value;
		return 0;
	case SO_RCVLOWAT:
		so->rcvlowat = value > 0 ? (uint32_t)value : value < 0 ? INT32_MAX : 1;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int
set_generic(struct socket *so, int name, uint64_t uvalue, uint32_t len)
{
	int32_t value;

	if (len < sizeof(value))
		return -EINVAL;
	if (copy_in(&value, uvalue, sizeof(value)) != 0)
		return -EFAULT;
	switch (name) {
	case SO_RCVTIMEO:
		return set_timeout(&so->rcvtimeo, uvalue, len);
	case SO_SNDTIMEO:
		return set_timeout(&so->sndtimeo, uvalue, len);
	case SO_LINGER:
		return set_linger(so, uvalue, len);
	default:
		return set_number(so, name, value);
	}
}

int
socket_set_option(struct socket *so, int level, int name, uint64_t uvalue, uint32_t len)
{
	int error;

	if ((int32_t)len < 0)
		return -EINVAL;
	if (level != SOL_SOCKET)
		return so->ops->set_option != NULL
			   ? so->ops->set_option(so, level, name, uvalue, len)
			   : -EOPNOTSUPP;
	error = set_generic(so, name, uvalue, len);
	if (error == 0 && so->ops->option_changed != NULL)
		so->ops->option_changed(so, name);
	return error;
}

int
socket_put_option(uint64_t uvalue, uint64_t ulen, const void *value, uint32_t size)
{
	int32_t room;

	if (copy_in(&room, ulen, sizeof(room)) != 0)
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	if ((uint32_t)room < size)
		size = (uint32_t)room;
	if (copy_out(uvalue, value, size) != 0 || copy_out(ulen, &size, sizeof(size)) != 0)
		return -EFAULT;
	return 0;
}

static int
get_number(struct socket *so, int name, int32_t *value)
{
	switch (name) {
	case SO_TYPE:
		*value = so->type;
		return 0;
	case SO_DOMAIN:
		*value = so->family->domain;
		return 0;
	case SO_PROTOCOL:
		*value = so->protocol;
		return 0;
	case SO_ERROR:
		*value = -socket_take_error(so);
		return 0;
	case SO_ACCEPTCONN:
		*value = so->ops->is_listening != NULL && so->ops->is_listening(so);
		return 0;
	case SO_SNDBUF:
		*value = (int32_t)__atomic_load_n(&so->sndbuf, __ATOMIC_RELAXED);
		return 0;
	case SO_RCVBUF:
		*value = (int32_t)__atomic_load_n(&so->rcvbuf, __ATOMIC_RELAXED);
		return 0;
	case SO_PRIORITY:
		*value = (int32_t)so->priority;
		return 0;
	case SO_RCVLOWAT:
		*value = (int32_t)so->rcvlowat;
		return 0;
	case SO_SNDLOWAT:
		*value = 1;
		return 0;
	default:
		*value = is_switch(name) && socket_has(so, name);
		return is_switch(name) ? 0 : -ENOPROTOOPT;
	}
}

static struct timeval
timeout_to_timeval(const uint64_t *timeout)
{
	uint64_t us = (__atomic_load_n(timeout, __ATOMIC_RELAXED) + 999) / 1000;

	return (struct timeval){.tv_sec = (int64_t)(us / 1000000),
				.tv_usec = (int64_t)(us % 1000000)};
}

int
socket_get_option(struct socket *so, int level, int name, uint64_t uvalue, uint64_t ulen)
{
	struct ucred cred = {0, UINT32_MAX, UINT32_MAX};
	struct linger linger;
	struct timeval time;
	int32_t value;
	int error;

	if (level != SOL_SOCKET)
		return so->ops->get_option != NULL
			   ? so->ops->get_option(so, level, name, uvalue, ulen)
			   : -EOPNOTSUPP;
	switch (name) {
	case SO_RCVTIMEO:
	case SO_SNDTIMEO:
		time = timeout_to_timeval(name == SO_RCVTIMEO ? &so->rcvtimeo : &so->sndtimeo);
		return socket_put_option(uvalue, ulen, &time, sizeof(time));
	case SO_LINGER:
		mutex_lock(&so->lock);
		linger = so->linger;
		mutex_unlock(&so->lock);
		return socket_put_option(uvalue, ulen, &linger, sizeof(linger));
	case SO_PEERCRED:
		if (so->ops->peer_credentials != NULL)
			so->ops->peer_credentials(so, &cred);
		return socket_put_option(uvalue, ulen, &cred, sizeof(cred));
	default:
		error = get_number(so, name, &value);
		return error == 0 ? socket_put_option(uvalue, ulen, &value, sizeof(value)) : error;
	}
}
