/*
 * sysctl_syscall.c - the sysctl system call, specified in kernel/abi/kestrel.h.
 *
 * A value is built in kernel memory and copied out afterwards, so that no sysctl function runs
 * during a page fault of the caller. Locking: none here.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/kestrel.h"

#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/syscall.h"
#include "kernel/sysctl/registry.h"

#define SYSCTL_GET_MAX (4u << 20) /* limit of the buffer; no value is longer */

/* The call's arguments. */
struct sysctl_args {
	uint64_t op;
	char name[SYSCTL_NAME_MAX];
	uint64_t ubuf, buflen; /* user's buffer */
	uint64_t uval, vallen;
};

/* Copies out text with its NUL, as much as fits. Returns the whole length, or -EFAULT. */
static int64_t
give_text(const struct sysctl_args *a, const struct sbuf *out)
{
	size_t have = sbuf_stored(out) + 1, n = have < a->buflen ? have : a->buflen;

	if (n > 0 && copy_out(a->ubuf, out->buf, n) < 0)
		return -EFAULT;
	return (int64_t)out->len;
}

static int64_t
do_get(const struct sysctl_args *a)
{
	const struct sysctl *s = sysctl_find(a->name);
	size_t size = (a->buflen < SYSCTL_GET_MAX ? a->buflen : SYSCTL_GET_MAX) + 1;
	struct uidinfo *ui = curproc()->ui; /* another thread may change it meanwhile */
	struct sbuf out;
	int64_t n;
	char *buf;

	if (s == NULL)
		return -ENOENT;
	buf = uidinfo_alloc(ui, size);
	if (buf == NULL)
		return -ENOMEM;
	sbuf_init(&out, buf, size);
	sysctl_get_text(s, &out);
	n = give_text(a, &out);
	uidinfo_free(ui, buf);
	return n;
}

static int64_t
do_next(const struct sysctl_args *a)
{
	const struct sysctl *s = sysctl_after(a->name);
	char buf[SYSCTL_NAME_MAX];
	struct sbuf out;

	if (s == NULL)
		return -ENOENT;
	sbuf_init(&out, buf, sizeof(buf));
	sbuf_puts(&out, s->name);
	return give_text(a, &out);
}

static int64_t
do_info(const struct sysctl_args *a)
{
	static const char *const types[] = {"int", "u64", "text"};
	const struct sysctl *s = sysctl_find(a->name);
	char buf[256];
	struct sbuf out;

	if (s == NULL)
		return -ENOENT;
	sbuf_init(&out, buf, sizeof(buf));
	sbuf_printf(&out, "%s r%s%s %s", types[s->type], s->flags & SYSCTL_WR ? "w" : "",
		    s->flags & SYSCTL_TUN ? "t" : "", s->descr);
	return give_text(a, &out);
}

/* Copies the value into val (SYSCTL_VALUE_MAX bytes) and sets the sysctl. */
static int
take_and_set(const struct sysctl_args *a, char *val, char *err, size_t errlen)
{
	if (!capable(CAP_SYS_ADMIN)) {
		snprintf(err, errlen, "user %u may not set it, expected CAP_SYS_ADMIN",
			 curproc()->uid);
		return -EPERM;
	}
	if (a->vallen >= SYSCTL_VALUE_MAX) {
		snprintf(err, errlen, "value of %lu characters, expected less than %d", a->vallen,
			 SYSCTL_VALUE_MAX);
		return -EINVAL;
	}
	if (copy_in(val, a->uval, a->vallen) < 0) {
		snprintf(err, errlen, "the value is not readable memory");
		return -EFAULT;
	}
	val[a->vallen] = '\0';
	if (strlen(val) != a->vallen) {
		snprintf(err, errlen, "the value contains a NUL, expected text");
		return -EINVAL;
	}
	return sysctl_set_text(a->name, val, err, errlen);
}

static int64_t
do_set(const struct sysctl_args *a)
{
	char *val = kmalloc(SYSCTL_VALUE_MAX), err[256] = "";
	size_t n;
	int error;

	if (val == NULL)
		return -ENOMEM;
	error = take_and_set(a, val, err, sizeof(err));
	kfree(val);
	if (error < 0 && a->buflen > 0) {
		n = strlen(err);
		if (n >= a->buflen)
			n = a->buflen - 1;
		err[n] = '\0';
		if (copy_out(a->ubuf, err, n + 1) < 0)
			return -EFAULT;
	}
	return error < 0 ? error : 0;
}

int64_t
sys_sysctl(const uint64_t arg[6])
{
	struct sysctl_args a = {
	    .op = arg[0], .ubuf = arg[2], .buflen = arg[3], .uval = arg[4], .vallen = arg[5]};
	int n = copy_in_str(a.name, arg[1], sizeof(a.name));

	/* No sysctl has so long a name: it is cut, and then unknown like any other. */
	if (n == -ENAMETOOLONG)
		a.name[sizeof(a.name) - 1] = '\0';
	else if (n < 0)
		return n;
	switch (a.op) {
	case SYSCTL_GET:
		return do_get(&a);
	case SYSCTL_SET:
		return do_set(&a);
	case SYSCTL_NEXT:
		return do_next(&a);
	case SYSCTL_INFO:
		return do_info(&a);
	default:
		return -EINVAL;
	}
}
