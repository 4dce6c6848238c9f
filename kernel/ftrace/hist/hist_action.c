/*
 * hist_action.c - reads the actions of histograms, and what they name: variables of other
 * histograms, and fields of other events. Locking: ftrace_lock.
 */
#include "kernel/ftrace/hist/hist.h"
#include "kernel/lib/string.h"
#include "ktr/name.h"

/* ---- variables of other histograms ---- */

/* [SYSTEM.EVENT.]NAME, where a variable's NAME begins with '$'. */
struct reference {
	struct hist_slice written, name;
	bool variable, qualified;
	char system[EVENT_NAME], event[EVENT_NAME];
};

/* Reads a reference. False: it has one dot, or more than two, or is too long for an event. */
static bool
read_reference(const struct hist *h, struct hist_slice s, struct reference *r)
{
	struct hist_slice part[4], rest = s;
	unsigned n = 0;

	*r = (struct reference){.written = s};
	while (n < 4 && hist_slice_next(h, &rest, '.', &part[n]))
		n++;
	if (n != 1 && n != 3)
		return false;
	r->name = part[n - 1];
	r->qualified = n == 3;
	if (r->qualified && (!hist_slice_copy(h, part[0], r->system, sizeof(r->system)) ||
			     !hist_slice_copy(h, part[1], r->event, sizeof(r->event))))
		return false;
	r->variable = r->name.n > 0 && h->text[r->name.at] == '$';
	if (r->variable)
		r->name = (struct hist_slice){r->name.at + 1, r->name.n - 1};
	return true;
}

static unsigned
find_own(const struct hist *h, const struct hist *in, struct hist_slice name)
{
	for (unsigned i = 0; i < in->nown; i++)
		if (hist_slice_same(h, name, in, in->own[i].name))
			return i;
	return UINT32_MAX;
}

/* May a histogram with the keys of h name variables of `of`? Its own first keys are used. */
static bool
keys_fit(const struct hist *h, const struct hist *of)
{
	return of->nkeys <= h->nkeys && hist_kinds_of_first(h, of->nkeys) == hist_key_kinds(of);
}

/* The histogram, at a site (NULL: at any), that has the variable; *unique: no other event's has. */
static struct hist *
find_at(const struct hist_parser *p, const struct ktr_site *site, struct hist_slice name,
	unsigned *index, bool *unique)
{
	struct hist *found = NULL;

	for (struct hist *h = NULL; (h = hist_next(p->h->i, site, h)) != NULL;) {
		unsigned i = find_own(p->h, h, name);

		if (i == UINT32_MAX || !keys_fit(p->h, h))
			continue;
		*unique &= found == NULL || found->site == h->site;
		if (found == NULL) {
			found = h;
			*index = i;
		}
	}
	return found;
}

static struct hist *
hist_find_reference(const struct hist_parser *p, const struct reference *r, unsigned *index,
		    bool *unique)
{
	struct hist *found = NULL;
	const struct ktr_site *site;

	*unique = true;
	if (r->qualified) {
		site = event_find(r->system, r->event);
		return site != NULL ? find_at(p, site, r->name, index, unique) : NULL;
	}
	if (p->action != 0 && p->h->actions[p->action - 1].when == HIST_ONMATCH)
		found = find_at(p, p->match[p->h->actions[p->action - 1].match], r->name, index,
				unique);
	for (unsigned i = 0; i < p->nmatch && found == NULL; i++)
		found = find_at(p, p->match[i], r->name, index, unique);
	return found != NULL ? found : find_at(p, NULL, r->name, index, unique);
}

/* Is the variable of the event's histogram (NULL: any) known by this text? Then it is here, too. */
static bool
know_other(struct hist_parser *p, struct hist_slice written, const struct ktr_site *site,
	   const struct hist *of)
{
	struct hist *h = p->h;

	for (unsigned i = 0; i < h->nothers; i++) {
		struct hist_variable *v = &h->others[i];

		if (!hist_slice_same(h, v->written, h, written) || v->of->site != site ||
		    (of != NULL && v->of != of))
			continue;
		v->where |= 1u << p->action;
		return true;
	}
	return false;
}

static bool
add_other(struct hist_parser *p, struct hist_slice written, struct hist *of, unsigned index)
{
	struct hist *h = p->h;

	if (know_other(p, written, of->site, of))
		return true;
	if (hist_names_full(h))
		return hist_fail(p->error, written.at, "Too many variables defined");
	h->others[h->nothers++] = (struct hist_variable){.written = written,
							 .of = of,
							 .index = index,
							 .where = 1u << p->action};
	return true;
}

/* Takes note of a variable of another histogram. If h has one of its own, that counts. */
static bool
hist_refer(struct hist_parser *p, const struct reference *r, const char *missing)
{
	unsigned index = 0;
	bool unique;
	struct hist *of;

	if (find_own(p->h, p->h, r->name) != UINT32_MAX &&
	    (!r->qualified || event_find(r->system, r->event) == p->h->site))
		return true;
	of = hist_find_reference(p, r, &index, &unique);
	if (!unique)
		return hist_fail(p->error, r->name.at,
				 "Variable name not unique, need to use fully qualified name "
				 "(subsys.event.var) for variable");
	return of != NULL ? add_other(p, r->written, of, index)
			  : hist_fail(p->error, r->name.at, missing);
}

bool
hist_read_references(struct hist_parser *p, struct hist_slice s)
{
	const char *text = p->h->text;

	for (unsigned i = 0; i < s.n; i++) {
		unsigned from = s.at + i, to = s.at + i + 1;
		struct reference r;

		if (text[s.at + i] != '$')
			continue;
		while (from > s.at && (ktr_is_word(text[from - 1]) || text[from - 1] == '.'))
			from--;
		while (to < s.at + s.n && ktr_is_word(text[to]))
			to++;
		if (!read_reference(p->h, (struct hist_slice){from, to - from}, &r) || !r.variable)
			return hist_fail(p->error, from, "Couldn't find variable");
		if (!hist_refer(p, &r, "Couldn't find variable"))
			return false;
	}
	return true;
}

/* ---- fields of other events ---- */

/* A histogram of the event whose keys are of the same kinds. */
static const struct hist *
find_alike(const struct hist *h, const struct ktr_site *site)
{
	const struct hist *found = NULL;

	while ((found = hist_next(h->i, site, found)) != NULL &&
	       hist_key_kinds(found) != hist_key_kinds(h))
		;
	return found;
}

/* Makes a hidden histogram that keeps the field in a variable, by the same keys. As in Linux, it
 * is made like another histogram of that event. */
static bool
hist_make_hidden(struct hist_parser *p, const struct ktr_site *site, const struct reference *r)
{
	const struct hist *alike = find_alike(p->h, site);
	char text[512], field[HIST_NAME];
	struct hist_commands none;
	struct filter_error wrong;
	struct hist *made;
	struct sbuf out;

	if (alike == NULL)
		return hist_fail(p->error, r->name.at, "Matching event histogram not found");
	if (p->h->nhidden == HIST_HIDDEN)
		return hist_fail(p->error, r->name.at, "Too many field variables defined");
	hist_slice_copy(p->h, r->name, field, sizeof(field));
	sbuf_init(&out, text, sizeof(text));
	sbuf_puts(&out, "hist:keys=");
	hist_print_keys(alike, &out);
	sbuf_printf(&out, ":synthetic_%s=%s", field, field);
	if (alike->filter.n > 0) {
		sbuf_puts(&out, " if ");
		sbuf_write(&out, alike->text + alike->filter.at, alike->filter.n);
	}
	if (sbuf_is_cut(&out) || hist_parse(p->h->i, site, text, &made, &none, &wrong) != 0)
		return hist_fail(p->error, r->name.at, "Couldn't create histogram for field");
	p->h->hidden[p->h->nhidden++] = made;
	return add_other(p, r->written, made, 0);
}

static bool
hist_has_field(const struct hist_parser *p, const struct ktr_site *site, struct hist_slice name)
{
	struct filter_field field;
	char text[HIST_NAME];

	if (!hist_slice_copy(p->h, name, text, sizeof(text)))
		return false;
	return strcmp(text, "common_timestamp") == 0 || hist_field_find(site, text, &field);
}

/* ---- actions ---- */

/* A parameter of trace(): what a->params gets. */
static bool
read_param(struct hist_parser *p, struct hist_action *a, struct hist_slice s)
{
	const struct ktr_site *own = p->h->site, *site = own;
	struct reference r;

	if (!read_reference(p->h, s, &r))
		return hist_fail(p->error, s.at, "Invalid action param");
	a->params[a->n++] = s;
	if (r.variable)
		return hist_refer(p, &r, "Couldn't find param");
	if (r.qualified)
		site = event_find(r.system, r.event);
	if (site == NULL)
		return hist_fail(p->error, r.name.at, "Event file not found");
	if (site == own && hist_has_field(p, own, r.name)) {
		a->params[a->n - 1] = r.name;
		return true;
	}
	if (!r.qualified && a->when == HIST_ONMATCH)
		site = p->match[a->match];
	if (site == own || !hist_has_field(p, site, r.name))
		return hist_fail(p->error, r.name.at, "Couldn't find field");
	return know_other(p, s, site, NULL) || hist_make_hidden(p, site, &r);
}

/* save(PARAM,…), snapshot() */
static bool
read_params(struct hist_parser *p, struct hist_action *a, struct hist_slice name,
	    struct hist_slice list)
{
	unsigned most = a->what == HIST_SAVE ? HIST_PARAMS : 0;
	struct hist_slice part;

	if (a->when == HIST_ONMATCH)
		return hist_fail(p->error, name.at, "Handler doesn't support action");
	for (unsigned i = 0; i < p->h->nactions && most > 0; i++)
		if (p->h->actions[i].what == HIST_SAVE)
			return hist_fail(p->error, name.at,
					 "Can't have more than one save() action per hist");
	while (list.n > 0 && hist_slice_next(p->h, &list, ',', &part)) {
		if (a->n == most)
			return hist_fail(p->error, part.at, "Too many action params");
		if (!hist_read_references(p, part))
			return false;
		a->params[a->n++] = part;
	}
	return a->n > 0 || most == 0 || hist_fail(p->error, name.at, "No params found for save()");
}

/* trace(EVENT,PARAM,…), EVENT(PARAM,…), save(PARAM,…) or snapshot(), which is `call`. */
static bool
read_call(struct hist_parser *p, struct hist_action *a, struct hist_slice call)
{
	struct hist_slice name = {call.at, 0}, list, part;
	char text[sizeof(a->event->name)];

	while (name.n < call.n && p->h->text[call.at + name.n] != '(')
		name.n++;
	if (name.n == call.n || p->h->text[call.at + call.n - 1] != ')')
		return hist_fail(p->error, call.at + name.n,
				 name.n == call.n ? "No action found" : "No closing paren found");
	list = (struct hist_slice){call.at + name.n + 1, call.n - name.n - 2};
	if (hist_slice_is(p->h, name, "trace") &&
	    (!hist_slice_next(p->h, &list, ',', &name) || name.n == 0))
		return hist_fail(p->error, call.at, "Couldn't find synthetic event");
	if (!hist_slice_copy(p->h, name, text, sizeof(text)))
		return hist_fail(p->error, name.at, "Couldn't find synthetic event");
	if (strcmp(text, "save") == 0 || strcmp(text, "snapshot") == 0) {
		a->what = text[1] == 'a' ? HIST_SAVE : HIST_SNAPSHOT;
		return read_params(p, a, name, list);
	}
	a->event = synthetic_find(text);
	if (a->event == NULL)
		return hist_fail(p->error, name.at, "Couldn't find synthetic event");
	while (hist_slice_next(p->h, &list, ',', &part)) {
		if (part.n == 0 && a->n == 0)
			break;
		if (a->n == a->event->n || a->n == HIST_PARAMS)
			return hist_fail(p->error, name.at,
					 "Param count doesn't match synthetic event field count");
		if (!read_param(p, a, part))
			return false;
	}
	return a->n == a->event->n ||
	       hist_fail(p->error, name.at,
			 "Param count doesn't match synthetic event field count");
}

/* Takes what is within the parentheses. False: they do not end. */
static bool
inside_of(const struct hist *h, struct hist_slice of, struct hist_slice *inside)
{
	*inside = (struct hist_slice){of.at, 0};
	while (inside->n < of.n && h->text[of.at + inside->n] != ')')
		inside->n++;
	return inside->n < of.n;
}

/* SYSTEM.EVENT; *at: where EVENT is. */
static const struct ktr_site *
find_match(const struct hist *h, struct hist_slice inside, unsigned *at)
{
	char system[EVENT_NAME], event[EVENT_NAME];
	struct hist_slice rest = inside, word;

	hist_slice_next(h, &rest, '.', &word);
	*at = rest.at;
	if (rest.at == 0)
		return NULL;
	return hist_slice_copy(h, word, system, sizeof(system)) &&
		       hist_slice_copy(h, rest, event, sizeof(event))
		   ? event_find(system, event)
		   : NULL;
}

void
hist_read_match(struct hist_parser *p, struct hist_slice of)
{
	const struct ktr_site *site;
	struct hist_slice inside;
	unsigned at;

	if (p->nmatch == HIST_ACTIONS || !inside_of(p->h, of, &inside))
		return;
	site = find_match(p->h, inside, &at);
	if (site != NULL)
		p->match[p->nmatch++] = site;
}

/* What the action's handler looks at. */
static bool
read_handler(struct hist_parser *p, struct hist_action *a, struct hist_slice inside)
{
	const struct ktr_site *site;
	unsigned at;

	if (a->when == HIST_ONMATCH) {
		site = find_match(p->h, inside, &at);
		if (site == NULL)
			return hist_fail(p->error, at == 0 ? inside.at : at,
					 at == 0 ? "Missing subsystem"
						 : "Invalid subsystem or event name");
		while (a->match < p->nmatch && p->match[a->match] != site)
			a->match++;
		/* At the end: it was made, or took the name, since hist_read_match(). */
		return a->match < p->nmatch ||
		       hist_fail(p->error, at, "Invalid subsystem or event name");
	}
	a->variable = inside;
	if (inside.n == 0 || p->h->text[inside.at] != '$')
		return hist_fail(p->error, inside.at,
				 "For onmax(x) or onchange(x), x must be a variable");
	if (find_own(p->h, p->h, (struct hist_slice){inside.at + 1, inside.n - 1}) == UINT32_MAX)
		return hist_fail(p->error, inside.at, "Couldn't find onmax or onchange variable");
	return true;
}

/* onmatch(SYSTEM.EVENT).CALL, onmax($VARIABLE).CALL, onchange($VARIABLE).CALL */
bool
hist_read_action(struct hist_parser *p, struct hist_slice s, struct hist_slice of)
{
	struct hist_action *a = &p->h->actions[p->h->nactions];
	struct hist_slice inside;

	if (p->h->nactions == HIST_ACTIONS)
		return hist_fail(p->error, s.at, "Too many actions");
	*a = (struct hist_action){.when = hist_slice_is(p->h, (struct hist_slice){s.at, 5}, "onmax")
					      ? HIST_ONMAX
					      : HIST_ONCHANGE,
				  .text = s};
	if (hist_slice_is(p->h, (struct hist_slice){s.at, 7}, "onmatch"))
		a->when = HIST_ONMATCH;
	if (!inside_of(p->h, of, &inside))
		return hist_fail(p->error, of.at, "No closing paren found");
	if (of.n < inside.n + 2 || p->h->text[of.at + inside.n + 1] != '.')
		return hist_fail(p->error, of.at + inside.n, "No action found");
	if (!read_handler(p, a, inside))
		return false;
	p->action = p->h->nactions + 1;
	inside = (struct hist_slice){of.at + inside.n + 2, of.n - inside.n - 2};
	if (!read_call(p, a, inside))
		return false;
	p->action = 0;
	p->h->nactions++;
	return true;
}
