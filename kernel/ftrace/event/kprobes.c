/*
 * kprobes.c - kprobe_events, uprobe_events, and their profiles.
 *
 * The probes are those of `ktr probe` (kernel/probe/kprobe.h), of programs (uprobe.h), and of
 * events (eprobe.c). In the files, arg says which: PROBES_KERNEL, …. Locking: ftrace_lock; the
 * control lock guards the probes.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/probe/kprobe.h"
#include "ktr/dynamic.h"
#include "ktr/glob.h"
#include "ktr/port.h"

/* ---- kprobe_events ---- */

/* What is shown of probes: where, and of which. */
struct showing {
	struct sbuf *out;
	uintptr_t of;
};

static void
show_one(const struct kprobe_info *k, void *arg)
{
	const struct showing *s = arg;

	if ((uintptr_t)k->kind != s->of)
		return;
	kprobe_print(k, s->out);
	sbuf_putc(s->out, '\n');
}

static void
kprobes_each(void (*f)(const struct kprobe_info *info, void *arg), void *arg)
{
	ktr_port_lock();
	kprobe_each(f, arg);
	ktr_port_unlock();
}

void
kprobes_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	kprobes_each(show_one, &(struct showing){out, arg});
}

static void
profile_kernel(const struct kprobe_info *k, void *out)
{
	if (k->kind == KPROBE_KERNEL)
		sbuf_printf(out, "  %-44s %15lu %15lu\n", k->name, k->hits, k->misses);
}

static void
profile_user(const struct kprobe_info *k, void *out)
{
	if (k->kind == KPROBE_USER)
		sbuf_printf(out, "  %.*s %-44s %15lu\n", (int)k->path_size, k->path, k->name,
			    k->hits);
}

void
kprobes_show_profile(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	kprobes_each(arg == PROBES_USER ? profile_user : profile_kernel, out);
}

/* As Linux's report_probe() prints it. */
static void
kprobes_list_one(const struct kprobe_info *k, void *out)
{
	if (k->kind == KPROBE_KERNEL)
		sbuf_printf(out, "%lx  %c  %s+0x%lx    %s\n", ksym_address(k->function) + k->offset,
			    k->is_return ? 'r' : 'k', k->function, k->offset,
			    k->site->owners == 0 ? "[DISABLED]" : "");
}

static void
kprobes_show_list(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	kprobes_each(kprobes_list_one, out);
}

void
kprobes_fill(struct vnode *dir)
{
	static const struct tracefs_file list =
	    TRACEFS_TEXT("list", 0400, kprobes_show_list, NULL, NULL);

	tracefs_add(dir, &list, list.name, 0);
}

/* The place in the definition of which the message is about: "character 8: no function …". */
static size_t
kprobes_error_place(const char **message)
{
	static const char word[] = "character ";
	const char *colon = strstr(*message, ": ");
	uint64_t at = 0;
	char number[24];
	size_t n;

	if (strncmp(*message, word, sizeof(word) - 1) != 0 || colon == NULL)
		return 0;
	n = (size_t)(colon - *message) - (sizeof(word) - 1);
	if (n >= sizeof(number))
		return 0;
	memcpy(number, *message + sizeof(word) - 1, n);
	number[n] = '\0';
	*message = colon + 2;
	return tracefs_number(number, &at) == 0 && at > 0 ? at - 1 : 0;
}

/* What Linux says about the same error. */
static const char *
linux_words(const char *message)
{
	static const struct {
		const char *glob, *words;
	} all[] = {
	    {"expected the name of the group", "Group name is not specified"},
	    {"the name of the group is too long", "Group name is too long"},
	    {"the name of the group *", "Group name must follow the same rules as C identifiers"},
	    {"expected the name of the probe", "Event name is not specified"},
	    {"the name of the probe is too long", "Event name is too long"},
	    {"the name of the probe *", "Event name must follow the same rules as C identifiers"},
	    {"expected*the probe's name", "Event name must follow the same rules as C identifiers"},
	    {"a number of calls*", "Maxactive is not for kprobe"},
	    {"expected a number of calls", "Invalid maxactive number"},
	    {"the number of calls *", "Maxactive is too big"},
	    {"there is a probe*", "There is already the exact same probe event"},
	    {"there is an event*", "Given group/event name is already used by another event"},
	    {"the event * has probes*", "Probe type is different from existing probe"},
	    {"names and types *", "Argument type or name is different from existing probe"},
	    {"expected SYSTEM.EVENT", "This requires both group and event name to attach"},
	    {"no event*", "Attached event does not exist"},
	    {"the event has no field*", "Attached event does not have this field"},
	    {"expected a filter*", "No filter rule after 'if'"},
	    {"no file*", "Failed to find the given file"},
	    {"*is no program", "Not a regular file"},
	    {"no instruction is at that offset*", "Invalid uprobe offset"},
	    {"expected an offset in the file*", "Invalid uprobe offset"},
	    {"expected PATH:OFFSET", "Invalid uprobe offset"},
	    {"expected ) after the offset*", "Reference counter brace is not closed"},
	    {"expected a space after the counter", "Reference counter has wrong suffix"},
	    {"expected the offset of a counter", "Invalid reference counter offset"},
	    {"a return has no offset*", "Retprobe address must be an function entry"},
	    {"*no*function*", "Invalid probed address or symbol"},
	    {"*a function*", "Invalid probed address or symbol"},
	    {"expected a place*", "Invalid probed address or symbol"},
	    {"expected the * of an instruction*", "Invalid probed address or symbol"},
	    {"* cannot be probed*", "Invalid probed address or symbol"},
	    {"expected a space after the place", "Invalid probed address suffix"},
	    {"* is inside an instruction*", "Probe point is not an instruction boundary"},
	    {"no type*", "Unknown type is specified"},
	    {"*the name of a type*", "Unknown type is specified"},
	    {"the name of an argument*", "Argument name is too long"},
	    {"expected an argument's name*", "Argument name is not specified"},
	    {"an argument's name*", "Argument name must follow the same rules as C identifiers"},
	    {"another argument*", "This argument name is already used"},
	    {"each event has a field*", "This argument name is already used"},
	    {"the argument has more*", "Argument expression is too long"},
	    {"expected what the argument is*", "No argument expression"},
	    {"more than*arguments", "Too many arguments are specified"},
	    {"expected = *", "Invalid fetch argument"},
	    {"expected %*", "Invalid fetch argument"},
	    {"expected a space, or a type*", "Invalid fetch argument"},
	    {"at an event, no register*", "Invalid $-valiable specified"},
	    {"*register*", "Invalid register name"},
	    {"$retval*", "$retval is not available on probe"},
	    {"$stack*: expected at most*", "Invalid stack number"},
	    {"$*: expected $arg1*", "Invalid argument number"},
	    {"*variable*", "Invalid $-valiable specified"},
	    {"$*", "Invalid $-valiable specified"},
	    {"a text is no address", "$comm can not be dereferenced"},
	    {"*string*", "String accepts only memory argument"},
	    {"expected bWIDTH*", "Invalid bitfield"},
	    {"bits *", "Invalid bitfield"},
	    {"expected ] *", "Array is not closed"},
	    {"expected a space after the array", "Array has wrong suffix"},
	    {"expected a number of elements", "Invalid array size"},
	    {"an array has at most*", "Array number is too big"},
	    {"a program's symbols*", "Symbol is not available with uprobe"},
	    {"only a program's probe*", "File offset is not available with kprobe"},
	    {"expected the place of a datum*", "Invalid file offset value"},
	    {"*symbol*", "Invalid memory address"},
	    {"expected an address*", "Invalid memory address"},
	    {"expected a number,*", "Invalid immediate value"},
	    {"expected \" *", "String is not closed with '\"'"},
	    {"more than*", "Dereference is too much nested"},
	    {"expected ( *", "Dereference needs a brace"},
	    {"expected )", "Dereference brace is not closed"},
	    {"expected an offset before*", "Invalid dereference offset"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (ktr_glob(all[i].glob, message))
			return all[i].words;
	return "Failed to register probe event";
}

/* The last one that there is appears. */
static void
kprobe_appears(const struct kprobe_info *k, void *arg)
{
	tracefs_appears(event_system(k->site), k->name);
}

static int
kprobes_make(char *line, enum kprobe_kind kind)
{
	static const char *const systems[] = {"trace_kprobe", "trace_uprobe", "event_probe"};
	char err[128] = "";
	const char *message = err;
	int error;
	size_t at;

	if (kind == KPROBE_USER) /* the look-up of a file may wait for a disk, or a server */
		mutex_unlock(&ftrace_lock);
	error = kprobe_add(line, kind, err, sizeof(err));
	if (kind == KPROBE_USER)
		mutex_lock(&ftrace_lock);
	event_filters_clean();
	if (error == 0) {
		error = kind == KPROBE_AT_EVENT ? eprobe_attach() : 0;
		if (error == 0)
			kprobes_each(kprobe_appears, NULL);
		return error;
	}
	if (err[0] == '\0')
		return error; /* it has been said */
	at = kprobes_error_place(&message);
	error_log_add(&instance_top, systems[kind], linux_words(message), line, at);
	return error;
}

#define WORDS ((KTR_DYNAMIC_SITES + 63) / 64)

/* Probes that are to be removed. */
struct removal {
	const char *which;                  /* as of kprobe_del() */
	uintptr_t of;                       /* PROBES_KERNEL, … */
	uint64_t goes[WORDS], stays[WORDS]; /* sites that have probes of them, and others */
};

static bool
kprobe_is_of(const struct kprobe_info *k, uintptr_t of)
{
	return of == PROBES_ALL || k->kind == (enum kprobe_kind)of;
}

static void
find_sites(const struct kprobe_info *k, void *arg)
{
	struct removal *r = arg;
	size_t n = (size_t)(k->site - ktr_dynamic_sites);
	bool goes = kprobe_is_of(k, r->of) && kprobe_matches(k, r->which);

	(goes ? r->goes : r->stays)[n / 64] |= 1ull << n % 64;
}

/* Removes probes; an event that loses all of them must not be enabled. */
static int
remove_probes(uintptr_t of, const char *which)
{
	struct removal r = {.which = which, .of = of};
	int error = -ENOENT;
	char err[128];

	kprobes_each(find_sites, &r);
	for (unsigned busy = 1;; busy = 0) {
		for (unsigned n = 0; n < KTR_DYNAMIC_SITES; n++) {
			if (((r.goes[n / 64] & ~r.stays[n / 64]) >> n % 64 & 1) == 0)
				continue;
			if (busy == 0)
				event_filter_drop(&ktr_dynamic_sites[n]);
			else if (event_is_used(&ktr_dynamic_sites[n]))
				return -EBUSY;
		}
		if (busy == 0)
			break;
	}
	if (of == PROBES_ALL || of == PROBES_EVENT)
		eprobes_detach(which);
	for (uintptr_t kind = 0; kind < PROBES_ALL; kind++) {
		int one = of == PROBES_ALL || kind == of
			      ? kprobe_del(which, (enum kprobe_kind)kind, err, sizeof(err))
			      : -ENOENT;

		/* -EBUSY: D has switched a probe on since then */
		error = one == -EBUSY || error == -ENOENT ? one : error;
	}
	event_filters_clean();
	return error;
}

int
kprobes_command(uintptr_t of, char *line)
{
	char *name = strchr(line, ':'), *blank = strchr(line, ' ');

	if (*line != '-' && *line != '!')
		return kprobes_make(line, (enum kprobe_kind)of);
	if (name == NULL || (blank != NULL && blank < name) || (*line == '-' && name != line + 1))
		return -EINVAL;
	return name[1] != '\0' ? remove_probes(of, name + 1) : -EINVAL;
}

static int
command_kernel(char *line)
{
	return kprobes_command(PROBES_KERNEL, line);
}

static int
command_user(char *line)
{
	return kprobes_command(PROBES_USER, line);
}

/* Makes the probes of all lines; a wrong line ends it, and probes of earlier lines stay. */
int
kprobes_store(struct instance *i, uintptr_t arg, char *text)
{
	return tracefs_lines(text, arg == PROBES_USER ? command_user : command_kernel);
}

/* `> kprobe_events` removes all of its kind, or none if one is enabled. */
int
kprobes_clear(struct instance *i, uintptr_t arg)
{
	int error = remove_probes(arg, NULL);

	return error == -ENOENT ? 0 : error;
}

static void
kprobe_is_used(const struct kprobe_info *k, void *used)
{
	*(bool *)used |= eprobes_apart_used(k->site);
}

bool
kprobes_any_used(void)
{
	bool used = false;

	kprobes_each(kprobe_is_used, &used);
	return used;
}

static void
kprobe_gone(void)
{
	mutex_lock(&ftrace_lock);
	event_filters_clean();
	mutex_unlock(&ftrace_lock);
}
HOOK(kprobe_removed, kprobe_gone);

static bool
name_is_taken(const char *group, const char *name)
{
	/* What is in events/ besides the systems: a folder for the group would have no place. */
	static const char *const names[] = {EVENT_MARK, "enable", "header_page", "header_event"};
	bool taken = event_find(group, name) != NULL;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		taken |= strcmp(group, names[i]) == 0;
	return taken;
}

static void
kprobes_init(void)
{
	kprobe_name_taken = name_is_taken;
}
HOOK(booted, kprobes_init);
