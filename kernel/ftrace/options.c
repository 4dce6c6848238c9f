/* options.c - trace_options and options/: how entries are printed. Locking: ftrace_lock;
 * option_on() reads one word. */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/string.h"

static const struct {
	const char *name;
	bool on;
} options[OPTIONS] = {
#define OPTION(name, text, on) {text, on},
    TRACE_OPTIONS(OPTION)
#undef OPTION
};

bool
option_on(const struct instance *i, enum trace_option option)
{
	return options[option].on != (__atomic_load_n(&i->options, __ATOMIC_RELAXED) >> option & 1);
}

/* Sets an option. 0; or -errno, and the option is as before. */
static int
option_set(struct instance *i, enum trace_option option, bool on)
{
	uint32_t bit = 1u << option, now = i->options;
	int error = 0;

	if (option == OPTION_OVERWRITE && !on && i == &instance_top)
		return -EINVAL; /* another reader of the main log wants what is new */
	__atomic_store_n(&i->options, options[option].on != on ? now | bit : now & ~bit,
			 __ATOMIC_RELAXED);
	if (option == OPTION_BLK_CLASSIC) /* its lines have what the context tells */
		return option_set(i, OPTION_CONTEXT_INFO, !on);
	if (option == OPTION_FUNCTION_TRACE)
		tracer_update(i);
	else if (option == OPTION_STACKTRACE || option == OPTION_USER_STACK)
		error = events_pids_changed(i);
	else if (option == OPTION_EVENT_FORK || option == OPTION_FUNCTION_FORK)
		error = pids_follow(i);
	if (error != 0)
		__atomic_store_n(&i->options, now, __ATOMIC_RELAXED);
	return error;
}

void
options_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	for (unsigned n = 0; n < OPTIONS; n++)
		sbuf_printf(out, "%s%s\n", option_on(i, n) ? "" : "no", options[n].name);
}

int
options_store(struct instance *i, uintptr_t arg, char *text)
{
	const char *word = tracefs_word(&text);

	for (unsigned n = 0; n < OPTIONS && word != NULL; n++) {
		bool off = strncmp(word, "no", 2) == 0 && strcmp(word + 2, options[n].name) == 0;

		if (off || strcmp(word, options[n].name) == 0)
			return option_set(i, n, !off);
	}
	return -EINVAL;
}

static void
option_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%d\n", option_on(i, (enum trace_option)arg));
}

static int
option_store(struct instance *i, uintptr_t arg, char *text)
{
	bool on;
	int error = tracefs_bool(text, &on);

	return error == 0 ? option_set(i, (enum trace_option)arg, on) : error;
}

static void
options_fill(struct vnode *dir)
{
	static const struct tracefs_file file =
	    TRACEFS_TEXT(NULL, 0640, option_show, option_store, NULL);

	for (unsigned i = 0; i < OPTIONS; i++)
		tracefs_add(dir, &file, options[i].name, i);
}

const struct tracefs_file options_dir = {.name = "options", .mode = 0750, .fill = options_fill};
