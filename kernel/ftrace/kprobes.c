/*
 * kprobes.c - kprobe_events, uprobe_events, their profiles, and how events of these probes are
 * printed.
 *
 * The probes are those of `ktr probe` (kernel/probe/kprobe.h), and of programs (uprobe.h). Their
 * group is always `kprobes`, or `uprobes`. In the files, arg says which: PROBES_KERNEL or
 * PROBES_USER.
 * Locking: ftrace_lock; the control lock guards the probes.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/ftrace_private.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/probe/kprobe.h"
#include "ktr/dynamic.h"
#include "ktr/event.h"
#include "ktr/glob.h"
#include "ktr/intern.h"
#include "ktr/port.h"

/* ---- kprobe_events ---- */

/* PLACE and arguments: what comes after the name. */
static const char *
rest_of(const char *definition)
{
	const char *blank = strchr(definition, ' ');

	return blank != NULL ? blank + 1 : "";
}

/* PATH: what comes before the last : of the place. */
static int
path_size(const char *place)
{
	const char *end = strchr(place, ' '), *colon = place;

	for (const char *p = place; *p != '\0' && p != end; p++)
		if (*p == ':')
			colon = p;
	return (int)(colon - place);
}

static void
show_kernel(const struct kprobe_info *k, void *out)
{
	if (!k->user)
		sbuf_printf(out, "%c:" EVENT_KPROBES "/%s %s\n", k->is_return ? 'r' : 'p', k->name,
			    rest_of(k->definition));
}

static void
show_user(const struct kprobe_info *k, void *out)
{
	const char *place = rest_of(k->definition), *args = rest_of(place);

	if (k->user)
		sbuf_printf(out, "%c:" EVENT_UPROBES "/%s %.*s:0x%016lx%s%s\n",
			    k->is_return ? 'r' : 'p', k->name, path_size(place), place, k->offset,
			    *args != '\0' ? " " : "", args);
}

static void
kprobes_each(void (*f)(const struct kprobe_info *info, void *arg), void *arg)
{
	ktr_port_lock();
	kprobe_each(f, arg);
	ktr_port_unlock();
}

void
kprobes_show(uintptr_t arg, struct sbuf *out)
{
	kprobes_each(arg == PROBES_USER ? show_user : show_kernel, out);
}

static void
profile_kernel(const struct kprobe_info *k, void *out)
{
	if (!k->user)
		sbuf_printf(out, "  %-44s %15lu %15lu\n", k->name, k->hits, k->misses);
}

static void
profile_user(const struct kprobe_info *k, void *out)
{
	const char *place = rest_of(k->definition);

	if (k->user)
		sbuf_printf(out, "  %.*s %-44s %15lu\n", path_size(place), place, k->name, k->hits);
}

void
kprobes_show_profile(uintptr_t arg, struct sbuf *out)
{
	kprobes_each(arg == PROBES_USER ? profile_user : profile_kernel, out);
}

/* The place in the definition of which the message is about: "character 8: no function …". */
static size_t
place_of(const char **message)
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
	    {"expected the name of the probe", "Event name is not specified"},
	    {"the name of the probe is*", "Event name is too long"},
	    {"expected*the probe's name", "Event name must follow the same rules as C identifiers"},
	    {"there is a probe*", "Given group/event name is already used by another event"},
	    {"no file*", "Failed to find the given file"},
	    {"*is no program", "Not a regular file"},
	    {"no instruction is at that offset*", "Invalid uprobe offset"},
	    {"expected an offset in the file*", "Invalid uprobe offset"},
	    {"expected PATH:OFFSET", "Invalid uprobe offset"},
	    {"*functions have that name*", "The symbol is not unique"},
	    {"*no*function*", "Invalid probed address or symbol"},
	    {"*a function*", "Invalid probed address or symbol"},
	    {"* is not so long", "Invalid probed address or symbol"},
	    {"* cannot be probed*", "Invalid probed address or symbol"},
	    {"expected a space after the place", "Invalid probed address suffix"},
	    {"a return has no offset*", "Retprobe address must be an function entry"},
	    {"* is inside an instruction*", "Probe point is not an instruction boundary"},
	    {"no type*", "Unknown type is specified"},
	    {"*the name of an argument*", "Argument name is too long"},
	    {"more than*arguments", "Too many arguments are specified"},
	    {"expected = *", "Invalid fetch argument"},
	    {"expected %*", "Invalid fetch argument"},
	    {"expected a space, or a type*", "Invalid fetch argument"},
	    {"*regist*", "Invalid register name"},
	    {"$retval*", "$retval is not available on probe"},
	    {"$*: expected $arg1*", "Invalid argument number"},
	    {"$comm is no address", "$comm can not be dereferenced"},
	    {"*string*", "String accepts only memory argument"},
	    {"*the name of a type*", "Unknown type is specified"},
	    {"*variable*", "Invalid $-valiable specified"},
	    {"$*", "Invalid $-valiable specified"},
	    {"*program's symbols*", "Symbol is not available with uprobe"},
	    {"*symbol*", "Invalid memory address"},
	    {"expected an address*", "Invalid memory address"},
	    {"expected a number,*", "Invalid immediate value"},
	    {"*bits*", "Invalid bitfield"},
	    {"more than*", "Dereference is too much nested"},
	    {"expected ( *", "Dereference needs a brace"},
	    {"expected )", "Dereference brace is not closed"},
	    {"expected an offset,*", "Invalid dereference offset"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (ktr_glob(all[i].glob, message))
			return all[i].words;
	return "Failed to register probe event";
}

/* What is looked for among the probes. */
struct found {
	const char *name;
	bool user;
	const struct ktr_site *site;
	const struct ktr_entry *entry;
	struct sbuf *out;
	bool done;
	char any[EVENT_NAME]; /* find_any() */
};

static void
find_name(const struct kprobe_info *k, void *arg)
{
	struct found *f = arg;

	if (k->user != f->user || strcmp(k->name, f->name) != 0)
		return;
	f->site = k->site;
	f->done = true;
}

/* Removes a probe, whose event must not be enabled. */
static int
probe_remove(const char *name, bool user, char *err, size_t errlen)
{
	struct found f = {.name = name, .user = user};

	kprobes_each(find_name, &f);
	if (f.done && event_is_used(f.site))
		return -EBUSY;
	if (f.done)
		event_filter_drop(f.site);
	return kprobe_del(name, user, err, errlen);
}

static int
command(char *line, bool user)
{
	char err[128] = "";
	const char *message = err, *name = strchr(line, '/');
	int error;
	size_t at;

	if (strncmp(line, "-:", 2) == 0)
		error = probe_remove(name != NULL ? name + 1 : line + 2, user, err, sizeof(err));
	else
		error = kprobe_add(line, user, err, sizeof(err));
	event_filters_clean();
	if (error == 0 || error == -EBUSY)
		return error;
	at = place_of(&message);
	error_log_add(user ? "trace_uprobe" : "trace_kprobe", linux_words(message), line, at);
	return error;
}

static int
command_kernel(char *line)
{
	return command(line, false);
}

static int
command_user(char *line)
{
	return command(line, true);
}

/* Those before a wrong line are made. */
int
kprobes_store(uintptr_t arg, char *text)
{
	return tracefs_lines(text, arg == PROBES_USER ? command_user : command_kernel);
}

static void
find_any(const struct kprobe_info *k, void *arg)
{
	struct found *f = arg;

	if (k->user != f->user)
		return;
	f->done = true;
	strlcpy(f->any, k->name, sizeof(f->any));
}

/* `> kprobe_events` removes all of its kind. */
int
kprobes_clear(uintptr_t arg)
{
	char err[128];
	int error = 0;

	while (error == 0) {
		struct found f = {.user = arg == PROBES_USER};

		kprobes_each(find_any, &f);
		if (!f.done)
			break;
		error = probe_remove(f.any, f.user, err, sizeof(err));
	}
	event_filters_clean();
	return error;
}

static void
kprobe_gone(void)
{
	mutex_lock(&ftrace_lock);
	event_filters_clean();
	mutex_unlock(&ftrace_lock);
}
HOOK(kprobe_removed, kprobe_gone);

/* ---- printing ---- */

/* Bytes of the function that begins at that address. */
static size_t
function_size(uintptr_t start)
{
	size_t low = 0, high = 16;
	uintptr_t offset;

	/* The function has the byte at `low`, and not the one at `high`. */
	while (ksym_lookup(start + high, &offset) != NULL && offset == high)
		low = high, high *= 2;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (ksym_lookup(start + middle, &offset) != NULL && offset == middle)
			low = middle;
		else
			high = middle;
	}
	return high;
}

void
print_address(struct sbuf *out, uintptr_t at)
{
	uintptr_t offset;
	const char *name = ksym_lookup(at, &offset);

	if (name == NULL)
		sbuf_printf(out, "0x%lx", at);
	else
		sbuf_printf(out, "%s+0x%lx/0x%lx", name, offset, function_size(at - offset));
}

static void
print_place(const struct kprobe_info *k, void *arg)
{
	struct found *f = arg;

	if (k->site != f->site)
		return;
	f->done = true;
	sbuf_putc(f->out, '(');
	if (k->user) {
		/* after what the format shows: where it is; and before that, where it returns to */
		unsigned n = k->site->nargs;

		if (k->is_return && n + 1 < KTR_MAXARGS)
			sbuf_printf(f->out, "0x%lx <- ", f->entry->args[n + 1]);
		sbuf_printf(f->out, n < KTR_MAXARGS ? "0x%lx)" : "?)", f->entry->args[n]);
		return;
	}
	if (!k->is_return)
		print_address(f->out, ksym_address(k->function) + k->offset);
	else if (k->site->nargs < KTR_MAXARGS) /* after what the format shows */
		print_address(f->out, f->entry->args[k->site->nargs]);
	sbuf_printf(f->out, k->is_return ? " <- %s)" : ")", k->function);
}

static const char *
string_of(void *buf, unsigned i, uint64_t value)
{
	(void)i;
	return ktr_string_text(value, buf);
}

bool
kprobes_print(struct sbuf *out, const struct ktr_site *site, const struct ktr_entry *e)
{
	char fmt[KTR_DYNAMIC_TEXT], buf[KTR_STRING_MAX], text[KTR_STRING_MAX];
	struct found f = {.site = site, .entry = e, .out = out};
	const char *params;

	if (strncmp(site->fmt + 1, "probe:::", 8) != 0)
		return false;
	kprobe_each(print_place, &f);
	if (!f.done)
		sbuf_puts(out, "(?)"); /* the probe was removed */
	/* "kprobe:::NAME: fd %#lx" is printed as " fd=%#lx". */
	params = strstr(site->fmt, ": ");
	if (params == NULL)
		return true;
	strlcpy(fmt, params + 1, sizeof(fmt));
	for (char *p = fmt; *p != '\0'; p++)
		if (p[0] == ' ' && p[1] == '%')
			*p = '=';
	ktr_event_text(text, sizeof(text), NULL, fmt, e->args, site->nargs, string_of, buf);
	sbuf_puts(out, text);
	return true;
}
