/*
 * ksyms_dev.c - /dev/ksyms, the kernel's own symbols and lines (ksyms.h) as they lie in memory: a
 * tool in the guest names functions by them.
 *
 * Locking: none; the table never changes. Two threads that read one open file may get the same
 * bytes.
 */
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/ksyms.h"

extern const char __ksyms_start[], __ksyms_end[];

static int
ksyms_open(struct file *f)
{
	f->priv = NULL; /* how many bytes were read */
	return 0;
}

static int64_t
ksyms_read(struct file *f, struct uio *u)
{
	size_t at = (size_t)(uintptr_t)f->priv, start = u->resid;
	int error = uio_put(u, __ksyms_start + at, (size_t)(__ksyms_end - __ksyms_start) - at);

	f->priv = (void *)(at + (start - u->resid));
	return error < 0 && start == u->resid ? error : (int64_t)(start - u->resid);
}

int
ksyms_dev_init(void)
{
	static const struct dev_ops ops = {
	    .open = ksyms_open,
	    .read = ksyms_read,
	    .mode = 0400,
	    .root_only = true,
	};

	return devfs_register("ksyms", &ops, NULL);
}
