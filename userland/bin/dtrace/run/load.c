/*
 * load.c - gives an image to the kernel, and says what it matches.
 */
#include "userland/bin/dtrace/run/run.h"

#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/options.h"

/* The first of the names, which have commas between, that no probe has; NULL: all are names. */
static const char *
find_unknown(const char *names)
{
	char *rest = dt_format("%s", names), *name;

	while ((name = strsep(&rest, ",")) != NULL) {
		const struct probe *p = probe_all();

		while (p != NULL && !probe_matches(name, &p->p))
			p = p->next;
		if (p == NULL)
			return name;
	}
	return NULL;
}

static void
say_matches(struct source *s, const uint32_t *matches)
{
	const struct dif_clause *c =
	    (const void *)((const char *)view.image + view.image->clauses.offset);
	const struct clause *clause = dt_program.clauses;
	unsigned total = 0;
	const char *how = s != NULL ? "matched" : "specified";

	probe_forget(); /* the kernel has made some probes for the image */
	for (; s != NULL; s = s->next) {
		compile_context(s);
		s->matched = 0;
		for (unsigned n = s->first; n < s->first + s->count; n++) {
			const char *names = view.strings + c[n].probes;

			s->matched += matches[n];
			if (strchr(names, ',') != NULL)
				names = find_unknown(names);
			else if (matches[n] != 0)
				names = NULL;
			if (names != NULL && !dt_options.zdefs)
				dt_error(clause->at.file != NULL ? clause->at : (struct place){0},
					 "D_PDESC_ZERO",
					 "probe description %s does not match any probes%s", names,
					 suggest_probe(names));
			clause = clause->next;
		}
		if (!dt_options.quiet)
			warnx("%s '%s' matched %u probe%s",
			      s->script != NULL ? "script" : "description", compile_name(s),
			      s->matched, s->matched == 1 ? "" : "s");
		if (dt_options.verbose)
			compile_report(print_out, s);
		total += s->matched;
	}
	if (total == 0 && !dt_options.zdefs)
		errx(1, "no probes %s", how);
}

static void
refuse_destruction(void)
{
	if (dt_destroys != NULL && !dt_destructive)
		errx(1, "could not enable tracing: Destructive actions not allowed");
}

/* A buffer must have room for a record, and for one element. */
static void
check_sizes(const struct dif_header *h)
{
	if (h->options.bufsize < sizeof(struct dif_record) ||
	    (h->aggs.count > 0 && h->options.aggsize < sizeof(struct dif_entry) + 8))
		errx(1, "could not enable tracing: Enabling exceeds size of buffer");
}

void
load_check(const void *image)
{
	refuse_destruction();
	check_sizes(image);
}

/* Where a clause of the image is, for a message. */
static const char *
clause_text(uint32_t number)
{
	const struct clause *c = dt_program.clauses;

	for (; c != NULL && number > 0; number--)
		c = c->next;
	if (c == NULL || c->at.line == 0)
		return "";
	return dt_format("%s%sthe clause of line %u, ", c->at.file != NULL ? c->at.file : "",
			 c->at.file != NULL ? ": " : "", c->at.line);
}

static void
say_lowered(const char *what, uint64_t meant, uint64_t got)
{
	if (got < meant)
		warnx("%s lowered to %luk", what, (unsigned long)got / 1024);
}

void
load_image(int device, void *image, struct source *sources)
{
	struct dif_header *h = image;
	struct dif_options meant = h->options;
	uint32_t *matches = dt_alloc((h->clauses.count + 1) * sizeof(*matches));
	struct dif_load l = {.image = (uintptr_t)image,
			     .size = h->size,
			     .matches = (uintptr_t)matches};

	while (ioctl(device, DIF_IOC_LOAD, &l) < 0) {
		if (errno == ENOMEM && dif_lower_sizes(&h->options))
			continue;
		refuse_destruction();
		if (l.error[0] == '"') /* a rate that cannot be */
			dt_error((struct place){0}, "D_PDESC_ZERO",
				 "probe description does not match any probes: %s", l.error);
		if (l.error[0] != '\0' && l.clause == UINT32_MAX)
			errx(1, "failed to enable: %s", l.error);
		if (errno == EINVAL && l.error[0] != '\0')
			errx(1, "failed to enable: %sinstruction %u: %s", clause_text(l.clause),
			     l.insn, l.error);
		err(1, "failed to enable");
	}
	say_matches(sources, matches);
	say_lowered("buffer size", meant.bufsize, h->options.bufsize);
	say_lowered("aggregation size", meant.aggsize, h->options.aggsize);
	say_lowered("dynamic variable size", meant.dynvarsize, h->options.dynvarsize);
	say_lowered("speculation size", meant.specsize, h->options.specsize);
	say_lowered("scratch size", meant.scratch, h->options.scratch);
	load_check(h);
}
