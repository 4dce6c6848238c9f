/*
 * uprobe_pid.c - probes in one process, with names of their own: D's provider pid. They are not
 * among those of uprobe_events. Locking: the control lock, but not while files are read.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/probe/kprobe_private.h"
#include "kernel/probe/uprobe.h"
#include "kernel/sched/sleepq.h"
#include "ktr/dynamic.h"
#include "ktr/port.h"
#include "ktr/probe.h"

#define UPROBE_IN_TEXT 512        /* of a definition, with NUL */
#define FUNCTION_MAX   (1u << 20) /* bytes from its beginning up to a probe */

/* What D has as arguments: those of the function; 0 and the value that it returns. */
static const char *const fetches[] = {[UPROBE_ENTRY] = " $arg1 $arg2 $arg3 $arg4 $arg5 $arg6",
				      [UPROBE_RETURN] = " \\0 $retval",
				      [UPROBE_OFFSET] = ""};

static struct ktr_site *
uprobe_make_site(const struct uprobe_in *in, const struct kdefinition *def, char *err,
		 size_t errlen)
{
	char provider[16], fmt[96];
	struct ktr_dynamic d = {.provider = provider,
				.module = in->module,
				.function = in->function,
				.name = in->name,
				.file = "",
				.fmt = fmt,
				.nargs = def->nargs};

	snprintf(provider, sizeof(provider), "pid%u", in->pid);
	snprintf(fmt, sizeof(fmt), "%s:%s", provider, in->kind == UPROBE_RETURN ? " <-" : " ->");
	for (unsigned i = 0; i < d.nargs; i++) {
		d.types[i] = "uint64_t";
		strlcpy(fmt + strlen(fmt), " %#lx", sizeof(fmt) - strlen(fmt));
	}
	return ktr_site_make(&d, err, errlen);
}

/* Checks that an instruction begins at the offset. 0; or -errno, and perhaps a sentence. */
static int
check_boundary(struct vnode *vn, uint64_t start, uint64_t offset, char *err, size_t errlen)
{
	uint8_t code[ARCH_INSN_MAX] = {0};
	size_t size = 1;

	if (offset > start && offset - start > FUNCTION_MAX) {
		snprintf(err, errlen, "it is more than %u bytes from the function's beginning",
			 FUNCTION_MAX);
		return -EINVAL;
	}
	while (start < offset && size != 0) {
		if (sleepq_signal_pending())
			return -EINTR;
		size = 0;
		if (vnode_read(vn, code, sizeof(code), start) > 0)
			size = arch_insn_length(code);
		start += size;
	}
	if (start == offset)
		return 0;
	snprintf(err, errlen, "no instruction begins there");
	return -EINVAL;
}

/* Is it one of these already? */
static bool
uprobe_in_is_there(const struct uprobe_in *in, const char *text, const struct kprobe *all)
{
	struct ktr_probe_name name;

	for (; all != NULL; all = all->user.mine) {
		if (all->user.offset != in->offset || all->user.pid != in->pid ||
		    strcmp(all->text, text) != 0)
			continue;
		ktr_probe_name(all->site, &name);
		if (strcmp(name.module, in->module) == 0 &&
		    strcmp(name.function, in->function) == 0 && strcmp(name.name, in->name) == 0)
			return true;
	}
	return false;
}

bool
uprobe_in_other(const struct ktr_site *site, const struct kprobe *all)
{
	if (site->kind < KTR_SITE_MADE)
		return false;
	while (all != NULL && all->site != site)
		all = all->user.mine;
	if (all != NULL)
		return false;
	list_for_each_entry (const struct kprobe, k, &kprobes, link)
		if (k->site == site)
			return k->user.pid != 0;
	return false;
}

/* The probe's definition. False: it is too long. */
static bool
uprobe_in_text(const struct uprobe_in *in, char *text, size_t size)
{
	return (size_t)snprintf(text, size, "%c %s:%#lx%s", in->kind == UPROBE_RETURN ? 'r' : 'p',
				in->path, in->offset, fetches[in->kind]) < size;
}

/* Makes the probe, without its site. It reads the file, which may take long: without the lock. */
static int
uprobe_in_make(const struct uprobe_in *in, const char *text, struct kdefinition *def,
	       struct kprobe **made, char *err, size_t errlen)
{
	struct ktold told = {.err = err, .errlen = errlen};
	char words[UPROBE_IN_TEXT];
	int error;

	strlcpy(words, text, sizeof(words));
	for (char *c = words + 2; c < words + 2 + strlen(in->path); c++)
		if (*c == ' ') /* a blank would end the path in the language of definitions */
			*c = '_';
	error = kprobe_parse(words, KPROBE_USER, def, err, errlen);
	if (error == 0)
		error = uprobe_make(def, text, &told, made);
	if (error != 0)
		return error;
	error = check_boundary((*made)->user.vn, in->start, in->offset, err, errlen);
	if (error != 0)
		kprobe_free(*made);
	return error;
}

int
uprobe_in_add(const struct uprobe_in *in, struct kprobe **to, char *err, size_t errlen)
{
	struct kdefinition *def;
	char text[UPROBE_IN_TEXT];
	struct kprobe *k;
	bool there;
	int error;

	err[0] = '\0';
	if (!uprobe_in_text(in, text, sizeof(text)))
		return -ENAMETOOLONG;
	ktr_port_lock();
	there = uprobe_in_is_there(in, text, *to);
	ktr_port_unlock();
	if (there)
		return 0;
	def = kmalloc(sizeof(*def)); /* it is large */
	if (def == NULL)
		return -ENOMEM;
	error = uprobe_in_make(in, text, def, &k, err, errlen);
	if (error == 0) {
		ktr_port_lock();
		k->user.pid = in->pid;
		k->user.entry = in->kind == UPROBE_ENTRY;
		there = uprobe_in_is_there(in, text, *to); /* made by another thread meanwhile */
		k->site = there ? NULL : uprobe_make_site(in, def, err, errlen);
		if (k->site != NULL) {
			list_append(&kprobes, &k->link);
			k->user.mine = *to;
			*to = k;
		} else if (!there) {
			error = -ENOSPC;
		}
		ktr_port_unlock();
		if (there || error != 0)
			kprobe_free(k);
	}
	kfree(def);
	return error;
}

void
uprobe_in_free(struct kprobe **all)
{
	struct list closing = LIST_INIT(closing);

	ktr_port_lock();
	for (struct kprobe *k = *all; k != NULL; k = k->user.mine)
		k->gone = true;
	*all = NULL;
	kprobe_remove_marked(&closing);
	ktr_port_unlock();
	kprobe_free_all(&closing);
}
