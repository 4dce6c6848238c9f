/*
 * synthetic.c - synthetic_events: events that histograms make (Documentation/trace/histogram.rst,
 * "Synthetic Events").
 *
 * An event is a site made at run time, of the provider `synthetic`. Locking: ftrace_lock; the
 * control lock guards the making of sites. synthetic_fire() runs in hooks.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "ktr/dynamic.h"
#include "ktr/intern.h"
#include "ktr/name.h"
#include "ktr/port.h"
#include "ktr/word.h"

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
	list_for_each_entry (struct synthetic, s, &all, link)
		if (strcmp(s->name, name) == 0)
			return s;
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
synthetic_is_name(const char *s)
{
	return *s != '\0' && !(*s >= '0' && *s <= '9') && s[ktr_word_length(s)] == '\0';
}

#define FORM      "Command must be of the form: "
#define TEXT_MOST 256u /* of an array of char, as in Linux */

/* A command that is read: words of its copy are ended by NULs. */
struct reading {
	struct synthetic *s;
	const char *command, *copy;
	const char *message; /* NULL: nothing is wrong */
	size_t at;
};

static bool
synthetic_fail(struct reading *r, const char *at, const char *message)
{
	r->message = message;
	r->at = (size_t)(at - r->copy);
	return false;
}

/* Is the text the [] or [N] of an array of char? */
static bool
is_array(const char *text)
{
	size_t n = strlen(text);
	uint64_t size;

	if (text[n - 1] != ']' || n > sizeof("[256]") - 1)
		return false;
	return n == 2 ||
	       (ktr_number(text + 1, n - 2, 0, &size) == KTR_NUMBER_OK && size <= TEXT_MOST);
}

/* Reads TYPE NAME: two words, or three, the first of which is "unsigned". */
static bool
synthetic_read_field(struct reading *r, char *const *words, unsigned n, unsigned *taken)
{
	bool is_unsigned = strcmp(words[0], "unsigned") == 0;
	struct synthetic *s = r->s;
	struct synthetic_field *field = &s->fields[s->n];
	char *word = words[is_unsigned], *name = words[1 + is_unsigned], *array;

	*taken = 2 + is_unsigned;
	if (n < *taken)
		return synthetic_fail(r, words[0],
				      is_unsigned ? "Incomplete type" : "Invalid field");
	if (s->n == KTR_MAXARGS)
		return synthetic_fail(r, r->copy, "Too many fields");
	snprintf(field->type, sizeof(field->type), "%s%s", is_unsigned ? "unsigned " : "", word);
	array = strchr(name, '[');
	if (array != NULL && strcmp(word, "char") == 0) {
		if (!is_array(array))
			return synthetic_fail(r, name, "Invalid array specification");
		snprintf(field->type + strlen(field->type), sizeof("[256]"), "%s", array);
		field->format = "%s";
		*array = '\0';
	}
	if (!synthetic_is_name(name) || strlen(name) >= sizeof(field->name))
		return synthetic_fail(r, name, "Illegal name");
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]) && field->format == NULL; i++)
		if (strcmp(types[i].name, field->type) == 0)
			field->format = types[i].format;
	if (field->format == NULL)
		return synthetic_fail(r, word, "Invalid type");
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->fields[i].name, name) == 0)
			return synthetic_fail(r, name, "Duplicate field name");
	strlcpy(field->name, name, sizeof(field->name));
	s->n++;
	return true;
}

/* Reads the fields up to a semicolon; as in Linux, several may be there. */
static bool
synthetic_read_fields(struct reading *r, char *text)
{
	char *words[3 * (KTR_MAXARGS + 1)];
	unsigned n = 0, taken;

	while (n < sizeof(words) / sizeof(words[0]) && (words[n] = tracefs_word(&text)) != NULL)
		n++;
	for (unsigned i = 0; i < n; i += taken)
		if (!synthetic_read_field(r, words + i, n - i, &taken))
			return false;
	return true;
}

static struct ktr_site *
synthetic_make_site(const struct synthetic *s)
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
	site = event_find(EVENT_SYNTHETIC, s->name) == NULL /* a uprobe may just have come */
		   ? ktr_site_make(&d, err, sizeof(err))
		   : NULL;
	ktr_port_unlock();
	return site;
}

/* Are there a name and a field before the first semicolon? */
static bool
synthetic_has_field(const char *text)
{
	unsigned words = 0;

	for (; *text != '\0' && *text != ';'; text++)
		words += *text != ' ' && *text != '\t' &&
			 (text[1] == ' ' || text[1] == '\t' || text[1] == ';' || text[1] == '\0');
	return words >= 3;
}

/* Probes may be of this group, too. */
static bool
synthetic_is_taken(const char *name)
{
	return synthetic_find(name) != NULL || event_find(EVENT_SYNTHETIC, name) != NULL;
}

/* NAME TYPE FIELD[; TYPE FIELD]… */
static bool
synthetic_read_event(struct reading *r, char *text)
{
	char *name;

	if (!synthetic_has_field(text))
		return synthetic_fail(r, r->copy, FORM "<name> field[;field] ...");
	name = tracefs_word(&text);
	strlcpy(r->s->name, name, sizeof(r->s->name));
	if (!synthetic_is_name(name) || strlen(name) >= sizeof(r->s->name))
		return synthetic_fail(r, name, "Illegal name");
	if (synthetic_is_taken(name))
		return synthetic_fail(r, name, "Event already exists");
	while (text != NULL) {
		char *end = strchr(text, ';');

		if (end != NULL)
			*end++ = '\0';
		if (!synthetic_read_fields(r, text))
			return false;
		text = end;
	}
	return true;
}

/* text: within the copy of the command. */
static int
synthetic_add(struct reading *r, char *text)
{
	struct synthetic *s = kzalloc(sizeof(*s));
	bool is_there;

	if (s == NULL)
		return -ENOMEM;
	r->s = s;
	if (!synthetic_read_event(r, text)) {
		is_there = synthetic_is_taken(s->name);
		kfree(s);
		error_log_add(&instance_top, "synthetic_events", r->message, r->command, r->at);
		return is_there ? -EEXIST : -EINVAL;
	}
	s->site = synthetic_make_site(s);
	if (s->site == NULL) {
		kfree(s);
		return -ENOSPC;
	}
	list_append(&all, &s->link);
	tracefs_appears(EVENT_SYNTHETIC, s->name);
	return 0;
}

static bool
synthetic_is_used(const struct synthetic *s)
{
	return s->users > 0 || event_is_used(s->site);
}

static int
synthetic_remove(struct synthetic *s)
{
	bool busy;

	if (s == NULL)
		return -ENOENT;
	if (synthetic_is_used(s))
		return -EBUSY;
	event_filter_drop(s->site);
	ktr_port_lock();
	busy = ktr_site_users(s->site) != 0; /* D has switched it on since then */
	if (!busy)
		ktr_site_free(s->site);
	ktr_port_unlock();
	if (busy)
		return -EBUSY;
	list_remove(&s->link);
	kfree(s);
	return 0;
}

/* A command that makes an event; its name is at `begin`. */
static int
synthetic_make(const char *command, size_t begin)
{
	struct reading r = {.command = command};
	char *copy = kmalloc(strlen(command) + 1);
	int error;

	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, command, strlen(command) + 1);
	r.copy = copy;
	error = synthetic_add(&r, copy + begin);
	kfree(copy);
	return error;
}

int
synthetic_command(char *text)
{
	char *name;

	if (*text != '!')
		return synthetic_make(text, 0);
	text++;
	name = tracefs_word(&text);
	return synthetic_remove(name != NULL ? synthetic_find(name) : NULL);
}

int
synthetic_command_dynamic(char *text)
{
	static const char group[] = "s:" EVENT_SYNTHETIC "/";
	const char *slash = strchr(text, '/'), *blank = strchr(text, ' ');

	if (strncmp(text, group, sizeof(group) - 1) == 0)
		return synthetic_make(text, sizeof(group) - 1);
	if (slash == NULL || (blank != NULL && blank < slash))
		return synthetic_make(text, 2);
	error_log_add(&instance_top, "synthetic_events",
		      FORM "s or -:[synthetic/]<name> field[;field] ...", text, 0);
	return -EINVAL;
}

int
synthetic_store(struct instance *i, uintptr_t arg, char *text)
{
	return tracefs_lines(text, synthetic_command);
}

bool
synthetic_any_used(void)
{
	list_for_each_entry (const struct synthetic, s, &all, link)
		if (s->users > 0 || eprobes_apart_used(s->site))
			return true;
	return false;
}

int
synthetic_clear(struct instance *i, uintptr_t arg)
{
	int error = 0;

	list_for_each_entry (const struct synthetic, s, &all, link)
		if (synthetic_is_used(s))
			return -EBUSY;
	while (error == 0 && !list_empty(&all))
		error = synthetic_remove(list_entry(list_first(&all), struct synthetic, link));
	return error;
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
synthetic_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	list_for_each_entry (const struct synthetic, s, &all, link) {
		sbuf_printf(out, "%s\t", s->name);
		show_fields(s, out);
	}
}

void
synthetic_show_dynamic(struct sbuf *out)
{
	list_for_each_entry (const struct synthetic, s, &all, link) {
		sbuf_printf(out, "s:" EVENT_SYNTHETIC "/%s ", s->name);
		show_fields(s, out);
	}
}
