/*
 * unix_name.c - names of sockets of AF_UNIX: paths, abstract names, and none.
 *
 * The vnode of a path knows its socket by vnode.data, without a reference: a socket that is closed
 * takes itself out, and the path then leads to nothing. Abstract names are looked up in the list of
 * all sockets with one. Locking: unix_private.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/random.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/unix_private.h"
#include "kernel/proc/task.h"
#include "ktr/ktr.h"

#define PATH_AT  offsetof(struct sockaddr_un, sun_path)
#define AUTO_MAX 0x100000u /* names that autobind gives: five hexadecimal digits */
#define BUCKETS  64        /* a power of two */

struct list unix_all = LIST_INIT(unix_all);
/* Sockets with abstract names, by a hash of the name: the first of each bucket. unix_lock */
static struct unix_socket *abstract[BUCKETS];

struct unix_name *
unix_name_ref(struct unix_name *name)
{
	if (name != NULL)
		__atomic_fetch_add(&name->refs, 1, __ATOMIC_RELAXED);
	return name;
}

void
unix_name_unref(struct unix_name *name)
{
	if (name == NULL || __atomic_sub_fetch(&name->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	vnode_unref(name->vn);
	uidinfo_free(name->ui, name);
}

static bool
is_abstract(const struct unix_name *name)
{
	return name->vn == NULL;
}

/* A name that is a copy of an address. A path's length is that of its text, with NUL. */
static struct unix_name *
name_alloc(const struct socket_name *from, int *err)
{
	struct uidinfo *ui = proc_uidinfo();
	struct unix_name *name;

	*err = -EINVAL;
	if (from->len <= PATH_AT || from->len > sizeof(struct sockaddr_un) ||
	    from->family != AF_UNIX)
		return NULL;
	*err = -ENOMEM;
	name = uidinfo_alloc(ui, sizeof(*name));
	if (name == NULL)
		return NULL;
	name->refs = 1;
	name->ui = ui;
	memcpy(name->bytes, from->data, from->len);
	name->len = from->len;
	if (name->address.sun_path[0] != '\0')
		name->len = (uint32_t)(PATH_AT + strlen(name->bytes + PATH_AT) + 1);
	*err = 0;
	return name;
}

/* ---- abstract names ---- */

static struct unix_socket **
bucket_of(const char *bytes, uint32_t len)
{
	uint64_t h = len;

	for (uint32_t i = PATH_AT; i < len; i++)
		h = (h ^ h >> 29 ^ (uint8_t)bytes[i]) * 0x9e3779b97f4a7c15ul;
	return &abstract[h >> 32 & (BUCKETS - 1)];
}

/* The socket of this type with the abstract name. NULL: there is none. unix_lock held. */
static struct unix_socket *
find_abstract(const char *bytes, uint32_t len, uint16_t type)
{
	struct unix_socket *us = *bucket_of(bytes, len);

	while (us != NULL &&
	       (us->so.type != type || us->name->len != len ||
		memcmp(us->name->bytes + PATH_AT, bytes + PATH_AT, len - PATH_AT) != 0))
		us = us->same_hash;
	return us;
}

/* The socket has the name from now on. Both locks held. */
static void
give_name(struct unix_socket *us, struct unix_name *name)
{
	struct unix_socket **bucket;

	mutex_lock(&us->so.lock);
	/* release: pairs with the acquire in unix_name_copy() */
	__atomic_store_n(&us->name, name, __ATOMIC_RELEASE);
	mutex_unlock(&us->so.lock);
	if (!is_abstract(name)) {
		name->vn->data = us;
		return;
	}
	bucket = bucket_of(name->bytes, name->len);
	us->same_hash = *bucket;
	*bucket = us;
	us->hashed = true;
}

void
unix_name_forget(struct unix_socket *us)
{
	struct unix_name *name = us->name;

	if (name == NULL)
		return;
	if (!is_abstract(name)) {
		if (name->vn->data == us)
			name->vn->data = NULL;
	} else if (us->hashed) {
		struct unix_socket **at = bucket_of(name->bytes, name->len);

		while (*at != us)
			at = &(*at)->same_hash;
		*at = us->same_hash;
		us->hashed = false;
	}
}

/* ---- bind ---- */

/* Makes the node of a path. */
static int
unix_name_make_node(struct unix_name *name)
{
	const char *path = name->bytes + PATH_AT;
	int error;

	name->vn = vnode_mknod(proc_cwd(), path, S_IFSOCK | (0777 & ~proc_umask()), 0, &error);
	return name->vn != NULL ? 0 : error == -EEXIST ? -EADDRINUSE : error;
}

/* This thread alone may give the socket a name from now on. 0 or -EINVAL. */
static int
bind_begin(struct unix_socket *us)
{
	int error = 0;

	mutex_lock(&unix_lock);
	if (us->name != NULL || us->dead || us->naming)
		error = -EINVAL;
	else
		us->naming = true;
	mutex_unlock(&unix_lock);
	return error;
}

/* Gives us the name, which the caller has made. No lock is held while the disk is waited for. */
static int
bind_name(struct unix_socket *us, struct unix_name *name)
{
	bool path = name->address.sun_path[0] != '\0';
	int error = bind_begin(us);

	if (error != 0)
		return error;
	if (path)
		error = unix_name_make_node(name);
	mutex_lock(&unix_lock);
	if (!path && find_abstract(name->bytes, name->len, us->so.type) != NULL)
		error = -EADDRINUSE;
	if (error == 0)
		give_name(us, name);
	us->naming = false;
	mutex_unlock(&unix_lock);
	return error;
}

static int
bind_address(struct unix_socket *us, const struct socket_name *from)
{
	int error;
	struct unix_name *name = name_alloc(from, &error);

	if (name == NULL)
		return error;
	error = bind_name(us, name);
	if (error != 0)
		unix_name_unref(name);
	return error;
}

/* An abstract name that nobody has. */
static int
bind_any(struct unix_socket *us)
{
	struct socket_name name = {.len = PATH_AT + 6, .family = AF_UNIX};
	uint32_t first = 0;
	int error;

	random_bytes(&first, sizeof(first));
	for (uint32_t i = 0; i < AUTO_MAX; i++) {
		char digits[8];

		snprintf(digits, sizeof(digits), "%05x", (first + i) % AUTO_MAX);
		memcpy(name.data + PATH_AT + 1, digits, 5);
		error = bind_address(us, &name);
		if (error != -EADDRINUSE)
			return error == -EINVAL ? 0 : error; /* it has one meanwhile */
	}
	return -ENOSPC;
}

int
unix_bind(struct socket *so, const struct socket_name *name)
{
	struct unix_socket *us = unix_of(so);

	if (name->len == PATH_AT && name->family == AF_UNIX)
		return us->name == NULL ? bind_any(us) : 0;
	return bind_address(us, name);
}

int
unix_autobind(struct unix_socket *us)
{
	if (!socket_has(&us->so, SO_PASSCRED) ||
	    __atomic_load_n(&us->name, __ATOMIC_RELAXED) != NULL)
		return 0;
	return bind_any(us);
}

/* ---- look-up ---- */

/* unix_lock is not held: the disk may have to be waited for. */
static struct unix_socket *
find_path(const struct socket_name *name, int *err)
{
	char path[UNIX_PATH_MAX + 1];
	struct unix_socket *us;
	struct vnode *vn;

	memcpy(path, name->data + PATH_AT, name->len - PATH_AT);
	path[name->len - PATH_AT] = '\0';
	vn = vnode_lookup(proc_cwd(), path, err);
	if (vn == NULL)
		return NULL;
	*err = vnode_access(vn, VNODE_WRITE);
	mutex_lock(&unix_lock);
	if (*err == 0 && (!S_ISSOCK(vn->mode) || vn->ops == &socket_file_ops || vn->data == NULL))
		*err = -ECONNREFUSED;
	us = *err == 0 ? unix_ref(vn->data) : NULL;
	mutex_unlock(&unix_lock);
	vnode_unref(vn);
	return us;
}

struct unix_socket *
unix_find(const struct socket_name *name, uint16_t type, int *err)
{
	struct unix_socket *us;

	*err = -EINVAL;
	if (name->len <= PATH_AT || name->len > sizeof(struct sockaddr_un) ||
	    name->family != AF_UNIX)
		return NULL;
	if (name->data[PATH_AT] == '\0') {
		us = find_abstract(name->data, name->len, type);
		*err = us != NULL ? 0 : -ECONNREFUSED;
		return us != NULL ? unix_ref(us) : NULL;
	}
	mutex_unlock(&unix_lock);
	us = find_path(name, err);
	if (us != NULL && us->so.type != type) {
		unix_unref(us);
		us = NULL;
		*err = -EPROTOTYPE;
	}
	mutex_lock(&unix_lock);
	return us;
}

void
unix_name_copy(const struct unix_socket *us, struct socket_name *to)
{
	/* acquire: pairs with the release in give_name() */
	const struct unix_name *name = __atomic_load_n(&us->name, __ATOMIC_ACQUIRE);

	to->family = AF_UNIX;
	to->len = name != NULL ? name->len : PATH_AT;
	if (name != NULL)
		memcpy(to->data, name->bytes, name->len);
}

int
unix_getname(struct socket *so, struct socket_name *name, enum socket_end end)
{
	bool peer = end != SOCKET_OWN;
	struct unix_socket *us = unix_of(so);
	int error = 0;

	mutex_lock(&us->so.lock);
	if (peer && us->peer == NULL)
		error = -ENOTCONN;
	else
		unix_name_copy(peer ? us->peer : us, name);
	mutex_unlock(&us->so.lock);
	return error;
}

/* ---- /proc/net/unix ---- */

static void
unix_name_print(const struct unix_name *name, struct sbuf *out)
{
	const char *text = name->bytes + PATH_AT;

	sbuf_putc(out, ' ');
	if (!is_abstract(name)) {
		sbuf_puts(out, text);
		return;
	}
	for (uint32_t i = 0; i < name->len - PATH_AT; i++)
		sbuf_putc(out, text[i] != '\0' ? text[i] : '@');
}

int
unix_print(struct sbuf *out)
{
	sbuf_puts(out, "Num               RefCount Protocol Flags    Type St Inode Path\n");
	mutex_lock(&unix_lock);
	list_for_each_entry (const struct unix_socket, us, &unix_all, all) {
		uint64_t ino = __atomic_load_n(&us->so.ino, __ATOMIC_RELAXED);

		sbuf_printf(out, "%016lx: %08X %08X %08X %04X %02X %5lu",
			    capable(CAP_SYSLOG) ? (uint64_t)(uintptr_t)us : 0,
			    __atomic_load_n(&us->so.refs, __ATOMIC_RELAXED), us->so.protocol,
			    us->state == UNIX_LISTENING ? 0x10000 : 0, us->so.type,
			    us->state != UNIX_CONNECTED ? 1
			    : ino != 0                  ? 3
							: 2,
			    ino);
		if (us->name != NULL)
			unix_name_print(us->name, out);
		sbuf_putc(out, '\n');
	}
	mutex_unlock(&unix_lock);
	return 0;
}
