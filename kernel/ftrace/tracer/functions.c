/*
 * functions.c - lists of functions: set_ftrace_filter, set_ftrace_notrace, set_graph_function,
 * set_graph_notrace.
 *
 * A name may be several functions'. Locking: ftrace_lock; hooks read the bits at any time.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/probe/calls.h"
#include "ktr/glob.h"
#include "ktr/probe.h"

#define WORDS (sizeof(instance_top.functions.bits[0]) / sizeof(uint64_t))

bool
functions_any(const struct functions *f, enum function_list list)
{
	return __atomic_load_n(&f->any[list], __ATOMIC_RELAXED);
}

bool
functions_have(const struct functions *f, enum function_list list, const struct ktr_site *site)
{
	unsigned n = ktr_site_number(calls_function(site));

	return (__atomic_load_n(&f->bits[list][n / 64], __ATOMIC_RELAXED) >> n % 64 & 1) != 0;
}

bool
functions_traced(const struct functions *f, const struct ktr_site *site)
{
	if (site->kind != KTR_SITE_ENTRY && site->kind != KTR_SITE_RETURN)
		return false;
	return (!functions_any(f, FUNCTIONS_FILTER) || functions_have(f, FUNCTIONS_FILTER, site)) &&
	       !functions_have(f, FUNCTIONS_NOTRACE, site);
}

bool
function_is(const struct ktr_site *site, const char *glob)
{
	const char *alias;
	bool own, other;

	if (site->kind != KTR_SITE_ENTRY)
		return false;
	alias = ksym_alias(function_address(site));
	own = ktr_glob(glob, site->func);
	other = alias != NULL && ktr_glob(glob, alias);
	if (alias != NULL && (own || other))
		ksym_ask(function_address(site), own, other);
	return own || other;
}

const char *
function_name(const struct ktr_site *entry)
{
	uintptr_t offset;
	const char *alias = ksym_alias(function_address(entry));

	return alias != NULL ? ksym_lookup(function_address(entry), &offset) : entry->func;
}

static void
show_list(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct functions *f = &i->functions;

	if (!functions_any(f, (enum function_list)arg)) {
		sbuf_puts(out, arg == FUNCTIONS_NOTRACE || arg == FUNCTIONS_GRAPH_NOTRACE
				   ? "#### no functions disabled ####\n"
				   : "#### all functions enabled ####\n");
		return;
	}
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);

		if (site->kind == KTR_SITE_ENTRY &&
		    functions_have(f, (enum function_list)arg, site)) {
			const char *also = ksym_also(function_address(site));

			sbuf_printf(out, also != NULL ? "%s\n%s\n" : "%s\n", function_name(site),
				    also);
		}
	}
}

/* Notes a word about a module that is not there. False: it names none, or there are too many. */
static bool
functions_wait(struct functions *f, enum function_list list, const char *word)
{
	char *text = list <= FUNCTIONS_NOTRACE ? f->waiting[list] : NULL;
	size_t size = sizeof(f->waiting[0]);

	if (text == NULL || *word == '!' || strlen(text) + strlen(word) + 2 > size)
		return false;
	strlcpy(text + strlen(text), word, size - strlen(text));
	strlcpy(text + strlen(text), "\n", size - strlen(text));
	return true;
}

void
functions_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	show_list(i, arg, out);
	if (arg <= FUNCTIONS_NOTRACE)
		sbuf_puts(out, i->functions.waiting[arg]);
	if (arg == FUNCTIONS_FILTER)
		triggers_show_functions(i, out);
}

/* How many lines of available_filter_functions a site has. */
static unsigned
lines_of(const struct ktr_site *site)
{
	return site->kind != KTR_SITE_ENTRY ? 0 : 1 + (ksym_alias(function_address(site)) != NULL);
}

void
functions_show_all(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);

		unsigned lines = lines_of(site);

		if (lines > 0)
			sbuf_printf(out, lines > 1 ? "%s\n%s\n" : "%s\n", site->func,
				    ksym_alias(function_address(site)));
	}
}

/* Shows how many functions there are, and the pages that tell where; they are one group. */
void
functions_show_total(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	unsigned functions = 0, sites = ktr_site_count();

	for (unsigned n = 0; n < sites; n++)
		functions += ktr_site_get(n)->kind == KTR_SITE_ENTRY;
	sbuf_printf(out, "%u pages:%lu groups: 1\n", functions,
		    (sites * sizeof(struct ktr_site) + PAGE_SIZE - 1) / PAGE_SIZE);
}

/* Shows functions whose entry is a probe that is on, and how many owners it has. */
void
functions_show_enabled(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);

		unsigned users = 0;

		for (uint32_t o = site->owners; o != 0; o &= o - 1)
			users++;
		if (site->kind == KTR_SITE_ENTRY && users > 0)
			sbuf_printf(out, "%s (%u)\n", function_name(site), users);
	}
}

/*
 * Adds to the set, or takes away, what a word names: a glob; "GLOB:mod:FOLDER"; or the number of a
 * line of available_filter_functions. False: nothing has that name.
 */
static bool
functions_change(uint64_t set[WORDS], char *word)
{
	bool off = *word == '!', found = false;
	char *glob = off ? word + 1 : word, *mod = strstr(glob, ":mod:");
	uint64_t line = 0, lines = 0;

	if (*glob >= '0' && *glob <= '9' && tracefs_number(glob, &line) != 0)
		return false;
	if (mod != NULL) {
		*mod = '\0';
		mod += 5;
	}
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);
		struct ktr_probe_name name;

		lines += lines_of(site);
		if (line > 0 ? lines_of(site) == 0 || line > lines || line + lines_of(site) <= lines
			     : !function_is(site, glob))
			continue;
		if (mod != NULL) {
			ktr_probe_name(site, &name);
			if (!ktr_glob(mod, name.module))
				continue;
		}
		found = true;
		if (off)
			set[n / 64] &= ~(1ull << n % 64);
		else
			set[n / 64] |= 1ull << n % 64;
	}
	return found;
}

/* The list becomes what `set` says. */
static void
functions_replace(struct instance *of, enum function_list list, const uint64_t *set)
{
	struct functions *f = &of->functions;
	bool found = false;

	for (unsigned i = 0; i < WORDS; i++) {
		found |= set[i] != 0;
		__atomic_store_n(&f->bits[list][i], set[i], __ATOMIC_RELAXED);
	}
	__atomic_store_n(&f->any[list], found, __ATOMIC_RELAXED);
	tracer_update(of);
	profile_update();
	stack_update();
}

int
functions_store(struct instance *i, uintptr_t arg, char *text)
{
	enum function_list list = (enum function_list)arg;
	struct functions *f = &i->functions;
	uint64_t *set = kzalloc(sizeof(f->bits[0]));
	bool found = true;
	int error = 0;
	char *word;

	if (set == NULL)
		return -ENOMEM;
	if (!f->anew[list])
		memcpy(set, f->bits[list], sizeof(f->bits[0]));
	else if (list <= FUNCTIONS_NOTRACE)
		f->waiting[list][0] = '\0';
	f->anew[list] = false;
	while (found && error == 0 && (word = tracefs_word(&text)) != NULL) {
		char *mod = strstr(word, ":mod:");
		bool command = strchr(word, ':') != NULL && mod == NULL;

		if (command && list == FUNCTIONS_FILTER)
			error = trigger_store_function(i, word);
		else
			found = functions_change(set, word);
		if (!found && mod != NULL) {
			*mod = ':';
			found = functions_wait(f, list, word);
		}
	}
	functions_replace(i, list, set); /* the words before a wrong one count */
	kfree(set);
	return found ? error : -EINVAL;
}

/* No probe is switched for a list that is empty between `>` and the first word. */
int
functions_clear(struct instance *i, uintptr_t arg)
{
	i->functions.anew[arg] = true;
	return 0;
}

void
functions_close(struct instance *i, uintptr_t arg)
{
	if (i->functions.anew[arg])
		functions_store(i, arg, (char[]){""});
}
