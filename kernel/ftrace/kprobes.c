/*
 * kprobes.c - kprobe_events, kprobe_profile, dynamic_events, and how events of kprobes are printed.
 *
 * The probes are those of `ktr probe` (kernel/probe/kprobe.h). Their group is always `kprobes`.
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

static void
show_one(const struct kprobe_info *k, void *out)
{
	sbuf_printf(out, "%c:" EVENT_KPROBES "/%s %s\n", k->is_return ? 'r' : 'p', k->name,
		    rest_of(k->definition));
}

static void
each(void (*f)(const struct kprobe_info *info, void *arg), void *arg)
{
	ktr_port_lock();
	kprobe_each(f, arg);
	ktr_port_unlock();
}

void
kprobes_show(uintptr_t arg, struct sbuf *out)
{
	(void)arg;
	each(show_one, out);
}

static void
show_profile(const struct kprobe_info *k, void *out)
{
	sbuf_printf(out, "  %-44s %15lu %15lu\n", k->name, k->hits, k->misses);
}

void
kprobes_show_profile(uintptr_t arg, struct sbuf *out)
{
	(void)arg;
	each(show_profile, out);
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

/* What is looked for among the probes. */
struct found {
	const char *name;
	const struct ktr_site *site;
	const struct ktr_entry *entry;
	struct sbuf *out;
	bool done;
};

static void
find_name(const struct kprobe_info *k, void *arg)
{
	struct found *f = arg;

	if (strcmp(k->name, f->name) != 0)
		return;
	f->site = k->site;
	f->done = true;
}

/* Removes a probe, whose event must not be enabled. */
static int
probe_remove(const char *name, char *err, size_t errlen)
{
	struct found f = {.name = name};

	each(find_name, &f);
	if (f.done && event_is_used(f.site))
		return -EBUSY;
	if (f.done)
		event_filter_drop(f.site);
	return kprobe_del(name, err, errlen);
}

static int
command(char *line)
{
	char err[128] = "";
	const char *message = err, *name = strchr(line, '/');
	int error;
	size_t at;

	if (strncmp(line, "-:", 2) == 0)
		error = probe_remove(name != NULL ? name + 1 : line + 2, err, sizeof(err));
	else
		error = kprobe_add(line, err, sizeof(err));
	event_filters_clean();
	if (error == 0 || error == -EBUSY)
		return error;
	at = place_of(&message);
	error_log_add("trace_kprobe", message, line, at);
	return error;
}

/* Those before a wrong line are made. */
int
kprobes_store(uintptr_t arg, char *text)
{
	(void)arg;
	return tracefs_lines(text, command);
}

static void
find_one(const struct kprobe_info *k, void *name)
{
	strlcpy(name, k->name, EVENT_NAME);
}

/* `> kprobe_events` removes all. */
int
kprobes_clear(uintptr_t arg)
{
	char err[128];
	int error = 0;

	(void)arg;
	while (error == 0) {
		char name[EVENT_NAME] = "";

		each(find_one, name);
		if (name[0] == '\0')
			break;
		error = probe_remove(name, err, sizeof(err));
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

/* FUNCTION+OFFSET/SIZE. */
static void
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

	if (strncmp(site->fmt, "kprobe:::", 9) != 0)
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
