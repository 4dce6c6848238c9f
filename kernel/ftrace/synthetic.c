/*
 * synthetic.c - synthetic_events: events that histograms make (Documentation/trace/histogram.rst,
 * "Synthetic Events").
 *
 * An event is a site made at run time, of the provider `synthetic`. Locking: ftrace_lock; the
 * control lock guards the making of sites. synthetic_fire() runs in hooks.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/ftrace_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "ktr/dynamic.h"
#include "ktr/intern.h"
#include "ktr/port.h"

static struct list all = LIST_INIT(all);

static const struct type {
	const char *name, *format;
} types[] = {
    {"u64", "%lu"},   {"s64", "%ld"},
    {"u32", "%u"},    {"s32", "%d"},
    {"u16", "%hu"},   {"s16", "%hd"},
    {"u8", "%hhu"},   {"s8", "%hhd"},
    {"long", "%ld"},  {"unsigned long", "%lu"},
    {"int", "%d"},    {"unsigned int", "%u"},
    {"short", "%hd"}, {"unsigned short", "%hu"},
    {"char", "%hhd"}, {"unsigned char", "%hhu"},
    {"bool", "%hhu"}, {"pid_t", "%d"},
    {"gfp_t", "%u"},  {"size_t", "%lu"},
};

struct synthetic *
synthetic_find(const char *name)
{
	list_for_each (l, &all) {
		struct synthetic *s = list_entry(l, struct synthetic, link);

		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

void
synthetic_fire(const struct synthetic *s, const struct ktr_firing *f, const uint64_t *values)
{
	struct ktr_firing mine = {.site = s->site, .nargs = (uint16_t)s->n};
	uint64_t args[KTR_MAXARGS];

	for (unsigned i = 0; i < s->n; i++)
		args[i] = s->fields[i].format[1] == 's'
			      ? (uint64_t)(uintptr_t)ktr_intern((const char *)values[i])
			      : values[i];
	mine.args = args;
	mine.where = ktr_firing_where(f);
	dtrace_fire_within(&mine);
	instances_fire(&mine);
}

static bool
is_name(const char *s)
{
	const char *p = s;

	while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
	       (p > s && *p >= '0' && *p <= '9'))
		p++;
	return p > s && *p == '\0';
}

/* What is wrong with a command, and where. */
static int
fail(const char *command, size_t at, const char *message)
{
	error_log_add("synthetic_events", message, command, at);
	return -EINVAL;
}

/* Reads "TYPE NAME" or "char NAME[N]". The message, or NULL. */
static const char *
read_field(struct synthetic *s, char *text)
{
	char type[sizeof(s->fields[0].type)] = "", *word, *name = NULL, *array;
	struct sbuf out;

	if (s->n == KTR_MAXARGS)
		return "Too many fields";
	sbuf_init(&out, type, sizeof(type));
	while ((word = tracefs_word(&text)) != NULL) {
		if (name != NULL)
			sbuf_printf(&out, "%s%s", out.len > 0 ? " " : "", name);
		name = word;
	}
	if (out.len == 0 || sbuf_is_cut(&out))
		return "Incomplete type";
	struct synthetic_field *field = &s->fields[s->n];

	array = strchr(name, '[');
	if (array != NULL) {
		if (strcmp(type, "char") != 0 || name[strlen(name) - 1] != ']')
			return "Invalid array specification";
		sbuf_puts(&out, array);
		*array = '\0';
		field->format = "%s";
	}
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, type) == 0)
			field->format = types[i].format;
	if (field->format == NULL)
		return "Invalid type";
	if (!is_name(name) || strlen(name) >= sizeof(field->name))
		return "Invalid field";
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->fields[i].name, name) == 0)
			return "Duplicate field name";
	strlcpy(field->type, type, sizeof(field->type));
	strlcpy(field->name, name, sizeof(field->name));
	s->n++;
	return NULL;
}

static struct ktr_site *
make_site(const struct synthetic *s)
{
	struct ktr_dynamic d = {.provider = EVENT_SYNTHETIC,
				.module = "",
				.function = "",
				.name = s->name,
				.file = "synthetic",
				.nargs = s->n};
	char fmt[KTR_DYNAMIC_TEXT], err[128];
	struct ktr_site *site;
	struct sbuf out;

	sbuf_init(&out, fmt, sizeof(fmt));
	sbuf_printf(&out, EVENT_SYNTHETIC ":::%s: ", s->name);
	for (unsigned i = 0; i < s->n; i++)
		sbuf_printf(&out, "%s%s=%s", i > 0 ? " " : "", s->fields[i].name,
			    s->fields[i].format);
	d.fmt = fmt;
	if (sbuf_is_cut(&out))
		return NULL;
	ktr_port_lock();
	site = ktr_site_make(&d, err, sizeof(err));
	ktr_port_unlock();
	return site;
}

/* "NAME TYPE FIELD[; TYPE FIELD]…" */
static int
add(const char *command, char *text)
{
	struct synthetic *s = kzalloc(sizeof(*s));
	char *name = tracefs_word(&text);
	int error = 0;

	if (s == NULL)
		return -ENOMEM;
	strlcpy(s->name, name, sizeof(s->name));
	if (!is_name(name) || strlen(name) >= sizeof(s->name))
		error = fail(command, 0, "Illegal name");
	else if (synthetic_find(name) != NULL)
		error = fail(command, 0, "Event already exists");
	while (error == 0 && text != NULL) {
		char *end = strchr(text, ';');
		size_t at = (size_t)(text - name);
		const char *wrong;

		if (end != NULL)
			*end++ = '\0';
		while (*text == ' ')
			text++, at++;
		if (*text == '\0' && s->n > 0)
			break; /* after the last ';' */
		wrong = *text == '\0' ? "Command must be of the form: <name> field[;field] ..."
				      : read_field(s, text);
		if (wrong != NULL)
			error = fail(command, at, wrong);
		text = end;
	}
	if (error == 0 && s->n == 0)
		error = fail(command, strlen(command),
			     "Command must be of the form: <name> field[;field] ...");
	if (error == 0) {
		s->site = make_site(s);
		error = s->site != NULL ? 0 : -ENOSPC;
	}
	if (error != 0)
		kfree(s);
	else
		list_append(&all, &s->link);
	return error == -EINVAL && synthetic_find(name) != NULL ? -EEXIST : error;
}

static bool
is_used(const struct synthetic *s)
{
	return s->users > 0 || event_is_used(s->site);
}

static int
remove(struct synthetic *s)
{
	if (s == NULL)
		return -ENOENT;
	if (is_used(s))
		return -EBUSY;
	event_filter_drop(s->site);
	list_remove(&s->link);
	ktr_port_lock();
	ktr_site_free(s->site);
	ktr_port_unlock();
	kfree(s);
	return 0;
}

int
synthetic_command(char *text)
{
	char *copy, *name;
	int error;

	if (*text == '!') {
		text++;
		name = tracefs_word(&text);
		return remove(name != NULL ? synthetic_find(name) : NULL);
	}
	copy = kmalloc(strlen(text) + 1);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, text, strlen(text) + 1);
	error = add(copy, text);
	kfree(copy);
	return error;
}

int
synthetic_store(uintptr_t arg, char *text)
{
	(void)arg;
	return tracefs_lines(text, synthetic_command);
}

int
synthetic_clear(uintptr_t arg)
{
	(void)arg;
	list_for_each (l, &all) {
		const struct synthetic *s = list_entry(l, struct synthetic, link);

		if (is_used(s))
			return -EBUSY;
	}
	while (!list_empty(&all))
		remove(list_entry(list_first(&all), struct synthetic, link));
	return 0;
}

static void
show_fields(const struct synthetic *s, struct sbuf *out)
{
	for (unsigned i = 0; i < s->n; i++)
		sbuf_printf(out, "%s%s %s", i > 0 ? "; " : "", s->fields[i].type,
			    s->fields[i].name);
	sbuf_putc(out, '\n');
}

void
synthetic_show(uintptr_t arg, struct sbuf *out)
{
	(void)arg;
	list_for_each (l, &all) {
		const struct synthetic *s = list_entry(l, struct synthetic, link);

		sbuf_printf(out, "%s\t", s->name);
		show_fields(s, out);
	}
}

void
synthetic_show_dynamic(struct sbuf *out)
{
	list_for_each (l, &all) {
		const struct synthetic *s = list_entry(l, struct synthetic, link);

		sbuf_printf(out, "s:" EVENT_SYNTHETIC "/%s ", s->name);
		show_fields(s, out);
	}
}
