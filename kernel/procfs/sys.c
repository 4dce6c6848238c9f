/*
 * sys.c - /proc/sys: the sysctls. Each part of a name is a directory, or the file.
 * Locking: that of the sysctls (registry.c).
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sysctl/registry.h"

static int
value_show(const struct procfs_node *n, struct sbuf *out)
{
	size_t start = out->len;

	sysctl_get_text(sysctl_find(n->text), out);
	if (out->len == start || out->len != sbuf_stored(out) || out->buf[out->len - 1] != '\n')
		sbuf_putc(out, '\n');
	return 0;
}

static int
value_store(const struct procfs_node *n, char *text)
{
	char err[256];
	int error = sysctl_set_text(n->text, text, err, sizeof(err));

	return error == -ERANGE ? -EINVAL : error; /* as Linux has it here */
}

static const struct procfs_file readable = {.mode = S_IFREG | 0444, .show = value_show};
static const struct procfs_file writable = {.mode = S_IFREG | 0644,
					    .show = value_show,
					    .store = value_store};

static const struct procfs_file parts = {.mode = S_IFDIR | 0555,
					 .find = procfs_sys_find,
					 .list = procfs_sys_list};

/* The first sysctl below `name`; all are below "". NULL: there is none. */
static const struct sysctl *
first_below(const char *name)
{
	size_t n = strlen(name);
	char text[SYSCTL_NAME_MAX + 2];
	const struct sysctl *s;

	if (n == 0)
		return sysctl_after("");
	if (n >= SYSCTL_NAME_MAX)
		return NULL;
	memcpy(text, name, n);
	memcpy(text + n, ".", 2);
	s = sysctl_after(text);
	return s != NULL && strncmp(s->name, text, n + 1) == 0 ? s : NULL;
}

bool
procfs_sys_find(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	const char *above = dir->text != NULL ? dir->text : "";
	const struct sysctl *s;

	if (strchr(name, '.') != NULL)
		return false;
	child->text = procfs_text(child, "%s%s%s", above, *above != '\0' ? "." : "", name);
	if (child->text == NULL)
		return false;
	s = sysctl_find(child->text);
	if (s != NULL)
		child->file = s->flags & SYSCTL_WR ? &writable : &readable;
	else if (first_below(child->text) != NULL)
		child->file = &parts;
	return child->file != NULL;
}

/* The cookie is the number of the sysctl, in the order of names, with which the part begins. */
void
procfs_sys_list(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg)
{
	const char *above = dir->text != NULL ? dir->text : "";
	size_t skip = *above != '\0' ? strlen(above) + 1 : 0, last_len = 0;
	char last[SYSCTL_NAME_MAX] = "";
	uint64_t cookie = 0;

	for (const struct sysctl *s = first_below(above);
	     s != NULL &&
	     (skip == 0 || (strncmp(s->name, above, skip - 1) == 0 && s->name[skip - 1] == '.'));
	     s = sysctl_after(s->name)) {
		const char *part = s->name + skip, *end = strchr(part, '.');
		size_t n = end != NULL ? (size_t)(end - part) : strlen(part);

		cookie++;
		if (n == last_len && strncmp(part, last, n) == 0)
			continue;
		memcpy(last, part, n);
		last[n] = '\0';
		last_len = n;
		if (cookie > from && !add(arg, last,
					  end != NULL            ? parts.mode
					  : s->flags & SYSCTL_WR ? writable.mode
								 : readable.mode,
					  cookie))
			return;
	}
}
