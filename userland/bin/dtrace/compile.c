/*
 * compile.c - from the texts of D programs to an image.
 */
#include "userland/bin/dtrace/compile.h"
#include "userland/bin/dtrace/run/run.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/gen/gen.h"
#include "userland/bin/dtrace/options.h"
#include "userland/bin/dtrace/read/read.h"

struct dependency {
	struct dependency *next;
	const char *class, *name;
	struct place at;
};

static struct library {
	struct library *next;
	const char *text, *file;
	struct dependency *needs;
	enum { WAITS, BEGUN, DONE, LEFT_OUT } state;
} * libraries, *looked_at; /* for what it depends on */

void
compile_init(const struct btf *btf)
{
	memset(&gen_image, 0, sizeof(gen_image));
	type_init(btf);
	ident_init();
	parse_init();
	check_init();
	stable_init();
	option_init();
	dt_region = NULL;
	dt_context = "failed to compile";
}

bool
compile_has(const char *class, const char *name, struct place at)
{
	bool module = strcmp(class, "module") == 0;
	struct probe *known = probe_all();

	if (!module && strcmp(class, "provider") != 0)
		dt_error(at, "D_PRAGMA_INVAL",
			 "found #pragma D depends_on %s, expected library, provider or module",
			 class);
	/* Their probes are made when a program names them. */
	if (!module && (strcmp(name, "profile") == 0 || strcmp(name, "pid") == 0))
		return true;
	/* Without a kernel, those of its build are known. */
	if (known == NULL && (module || strcmp(name, "fbt") == 0 || strcmp(name, "syscall") == 0))
		return true;
	for (struct probe *p = known != NULL ? known : probe_described(); p != NULL; p = p->next)
		if (strcmp(module ? p->p.module : p->p.provider, name) == 0)
			return true;
	return false;
}

void
compile_library(const char *text, const char *file)
{
	struct library *l = dt_alloc(sizeof(*l)), **last = &libraries;

	*l = (struct library){.text = text, .file = file};
	while (*last != NULL)
		last = &(*last)->next;
	*last = l;
}

void
compile_needs(const char *class, const char *name, struct place at)
{
	struct dependency *d = dt_alloc(sizeof(*d)), **last = &looked_at->needs;

	*d = (struct dependency){NULL, class, name, at};
	while (*last != NULL)
		last = &(*last)->next;
	*last = d;
}

static const char *
file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* In the folder of l, else in the first one that has it. */
static struct library *
find_library(const struct library *l, const char *name, struct place at)
{
	int folder = (int)(file_name(l->file) - l->file);
	struct library *found = NULL;

	for (struct library *of = libraries; of != NULL; of = of->next) {
		bool same = file_name(of->file) - of->file == folder &&
			    strncmp(of->file, l->file, (size_t)folder) == 0;

		if (strcmp(file_name(of->file), name) == 0 && (found == NULL || same))
			found = of;
	}
	if (found == NULL)
		dt_error(at, "D_PRAGMA_DEPEND", "failed to find dependency in libpath: %s", name);
	return found;
}

/* First what it depends on. Without a provider, a module or a library that it needs, it is left
 * out. */
static void
library_compile(struct library *l)
{
	bool wanted = true;

	if (l->state != WAITS)
		return;
	l->state = BEGUN;
	looked_at = l;
	lex_pragmas(l->text, (struct place){l->file, 1});
	for (const struct dependency *d = l->needs; d != NULL; d = d->next) {
		if (strcmp(d->class, "library") == 0) {
			struct library *of = find_library(l, d->name, d->at);

			if (of->state == BEGUN)
				dt_error(d->at, "D_PRAGMA_DEPEND",
					 "cyclic dependency detected in library: %s", d->name);
			library_compile(of);
			wanted &= of->state == DONE;
		} else {
			wanted &= compile_has(d->class, d->name, d->at);
		}
	}
	l->state = wanted ? DONE : LEFT_OUT;
	if (wanted)
		parse_program(l->text, (struct place){l->file, 1});
}

void
compile_libraries(void)
{
	dt_context = "failed to compile library";
	dt_program.in_library = true;
	for (struct library *l = libraries; l != NULL; l = l->next)
		library_compile(l);
	dt_program.in_library = false;
	libraries = NULL;
}

/* The probe with this number. */
static const char *
name_of_id(struct place at, const char *text)
{
	unsigned long id = strtoul(text, NULL, 10);

	for (struct probe *p = probe_all(); p != NULL; p = p->next)
		if (p->p.id == id)
			return dt_format("%s:%s:%s:%s", p->p.provider, p->p.module, p->p.function,
					 p->p.name);
	dt_error(at, "D_PDESC_INVAL", "there is no probe %s", text);
}

static bool
is_number(const char *text)
{
	return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

static void
complete_names(struct clause *c, unsigned fields)
{
	for (struct probe_spec *p = c->probes; p != NULL; p = p->next) {
		char *full;

		if (is_number(p->text)) {
			p->text = dt_format("%s", name_of_id(p->at, p->text));
			continue;
		}
		full = probe_full_name(p->text, fields > 0 ? fields : 4);
		if (full == NULL)
			dt_error(p->at, "D_PDESC_INVAL",
				 "%s: found too many colons, expected at most %u", p->text,
				 fields < 4 ? fields - 1 : 3);
		p->text = full;
		p = pid_probes(p, target_command);
	}
}

void
compile_context(const struct source *s)
{
	dt_context = s->script != NULL ? dt_format("failed to compile script %s", s->script)
				       : dt_format("invalid probe specifier %s", s->text);
}

void
compile_names(struct source *sources)
{
	struct clause *c;
	unsigned count = 0;

	for (struct source *s = sources; s != NULL; s = s->next) {
		struct clause **first = dt_program.last_clause;

		compile_context(s);
		s->first = count;
		if (!parse_program(s->text, (struct place){s->script, 1}) && !dt_options.empty)
			dt_error((struct place){s->script, 1}, "D_EMPTY",
				 "empty D program translation unit");
		for (c = *first; c != NULL; c = c->next) {
			complete_names(c, s->fields);
			count++;
		}
		s->count = count - s->first;
	}
	if (count >= DIF_MAX_CLAUSES) /* one is the compiler's: add_errors() */
		dt_error(dt_program.clauses->at, "D_CLAUSES",
			 "found %u clauses, expected at most %d", count, DIF_MAX_CLAUSES - 1);
}

/* Adds the stabilities of all probes that a name may mean. */
static void
add_probes(struct source *s, const char *name)
{
	const char *provider = "";
	struct dif_probe spec;
	bool any = false;

	probe_split(name, &spec);
	for (struct probe *p = probe_all(); p != NULL; p = p->next) {
		if (!probe_matches(name, &p->p))
			continue;
		any = true;
		if (strcmp(p->p.provider, provider) != 0)
			s->probes =
			    stable_min(s->probes, stable_of_description(&spec, p->p.provider));
		provider = p->p.provider;
	}
	if (any)
		return;
	/* The probe does not exist yet, or there is no kernel here. */
	provider = probe_is_rate(spec.name) ? "profile" : "dtrace";
	if (*spec.provider != '\0')
		provider = spec.provider;
	s->probes = stable_min(s->probes, stable_of_description(&spec, provider));
}

const char *
compile_name(const struct source *s)
{
	return s->script != NULL ? s->script : dt_strndup(s->text, strcspn(s->text, "/{"));
}

void
compile_report(FILE *to, const struct source *s)
{
	fprintf(to, "\nStability attributes for %s %s:\n",
		s->script != NULL ? "script" : "description", compile_name(s));
	stable_print(to, "Minimum Probe Description Attributes", s->probes);
	stable_print(to, "Minimum Statement Attributes", s->statements);
	fprintf(to, "\n");
}

void
compile_sources(struct source *sources, bool list)
{
	struct clause *c;

	compile_names(sources);
	c = dt_program.clauses;
	for (struct source *s = sources; s != NULL; s = s->next) {
		compile_context(s);
		s->probes = stable_used = stable_best;
		for (unsigned n = 0; n < s->count; n++, c = c->next) {
			check_clause(c);
			for (struct probe_spec *p = c->probes; p != NULL && dt_options.verbose;
			     p = p->next)
				add_probes(s, p->text);
		}
		s->statements = stable_used;
	}
	stable_check_pragmas();
	c = dt_program.clauses;
	gen_plan_times(c);
	for (struct source *s = sources; s != NULL; s = s->next) {
		compile_context(s);
		for (unsigned n = 0; n < s->count; n++, c = c->next) {
			size_t first = gen_image.code.size / sizeof(struct dif_insn);

			gen_clause(c);
			if (list)
				gen_list(c, first);
		}
	}
}

/*
 * Each fault is recorded for the consumer, which says it, as the guide has it. The name of the
 * action has a blank, so no program can name it.
 */
static void
add_errors(void)
{
	struct clause *c = dt_alloc(sizeof(*c));
	struct node *call = node_new(N_CALL, c->at), **last = &call->left;

	c->probes = dt_alloc(sizeof(*c->probes));
	c->probes->text = dt_format("dtrace:::ERROR");
	call->text = " error";
	for (unsigned n = 1; n <= 5; n++, last = &(*last)->next)
		*last = node_name(dt_format("arg%u", n), c->at);
	c->body = node_op(N_EXPRESSION, 0, c->at, call, NULL);
	check_clause(c);
	gen_clause(c);
}

/* The size of a buffer that has room for a record at least, if it has room for anything: here a
 * record takes more than in the original. */
static uint64_t
with_room(uint64_t bufsize)
{
	const struct buffer *b = &gen_image.layouts;
	const uint32_t *layouts = (const void *)b->data;

	for (uint32_t i = 0; i < b->size / sizeof(*layouts) && bufsize > 0; i++) {
		uint64_t need = (sizeof(struct dif_record) + layouts[i] + 7) & ~7ul;

		bufsize = bufsize < need ? need : bufsize;
	}
	return bufsize;
}

void *
compile_image(uint32_t *size)
{
	struct dif_options o = {
	    .bufsize = with_room((dt_options.bufsize + 7) & ~7ul),
	    .aggsize = (dt_options.aggsize + 7) & ~7ul,
	    .dynvarsize = (dt_options.dynvarsize + 7) & ~7ul,
	    .specsize = (dt_options.specsize + 7) & ~7ul,
	    .nspec = (uint32_t)dt_options.nspec,
	    .strsize = dt_strsize + 1,
	    .scratch = ((uint32_t)dt_options.scratch + 7) & ~7u,
	    .policy = (uint32_t)dt_options.bufpolicy,
	};
	struct dif_header *image;

	add_errors();
	image =
	    image_finish(&o, option_text(),
			 (dt_destructive ? DIF_DESTRUCTIVE : 0) | (uint32_t)dt_options.cpu << 16);
	*size = image->size;
	return image;
}
