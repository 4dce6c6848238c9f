/*
 * probe.c - names of probes, and the types of their arguments.
 */
#include "userland/bin/dtrace/check/check.h"

#include <stdio.h>
#include <string.h>

#include "ktr/glob.h"

bool (*probe_describe)(struct dif_probe *p);
static struct probe *all;

struct probe *
probe_all(void)
{
	struct probe **last = &all;
	struct dif_probe p = {.id = 0};

	if (all != NULL || probe_describe == NULL)
		return all;
	for (; probe_describe(&p); last = &(*last)->next, p.id++) {
		*last = dt_alloc(sizeof(**last));
		(*last)->p = p;
	}
	return all;
}

void
probe_forget(void)
{
	all = NULL;
}

bool
probe_is_rate(const char *name)
{
	return strncmp(name, "tick-", 5) == 0 || strncmp(name, "profile-", 8) == 0;
}

/* Returns the text up to one of these characters; *text goes on there. */
static char *
cut(const char **text, const char *ends)
{
	size_t size = strcspn(*text, ends);
	char *part = dt_strndup(*text, size);

	*text += size;
	return part;
}

struct probe *
probe_described(void)
{
	struct probe *list = NULL;

	for (const char *line = NULL; (line = type_next_probe(line)) != NULL;) {
		struct probe *p = dt_alloc(sizeof(*p));
		const char *at = line + 1;

		probe_split(cut(&at, " \n"), &p->p);
		if (strcmp(p->p.provider, "dtrace") == 0)
			p->p.module[0] = '\0'; /* as in the kernel */
		at += *at == ' ';
		for (unsigned i = 0; i < 7 && *at != '\n' && *at != '\0'; i++, at += *at == ';') {
			snprintf(p->p.types[i], sizeof(p->p.types[i]), "%s", cut(&at, ">;\n"));
			at += *at == '>';
			if (at[-1] == '>')
				snprintf(p->p.xlate[i], sizeof(p->p.xlate[i]), "%s",
					 cut(&at, ";\n"));
		}
		p->next = list;
		list = p;
	}
	return list;
}

char *
probe_full_name(const char *text, unsigned fields)
{
	unsigned colons = 0;
	char *full = dt_format("%s", text);

	for (const char *p = text; *p != '\0'; p++)
		colons += *p == ':';
	if (colons >= 4 || (colons >= fields && fields < 4))
		return NULL;
	for (unsigned n = colons + 1; n < fields; n++)
		full = dt_format(":%s", full);
	for (; fields < 4; fields++)
		full = dt_format("%s:", full);
	return full;
}

/* A script may name thousands of probes, and each is looked for among thousands: most names have no
 * pattern, and differ soon. If it matches, *spec goes to the next field. */
static bool
field_matches(const char **spec, const char *text)
{
	static const char special[] = ":*?[\\"; /* and the end of the text, for strchr() */
	const char *at = *spec;
	char glob[256]; /* a pattern that is longer matches none */
	size_t size;

	for (; *at == *text && strchr(special, *at) == NULL; at++)
		text++;
	if (strchr(special, *at) == NULL)
		return false;
	size = strcspn(at, ":");
	if (size >= sizeof(glob) || (size == 0 && at != *spec && *text != '\0'))
		return false;
	*spec = at + size + (at[size] == ':');
	if (size == 0)
		return true;
	snprintf(glob, sizeof(glob), "%.*s", (int)size, at);
	return ktr_glob(glob, text);
}

/* A name that ends with a format is that of a trace point (ktr/probe.h). */
static bool
point_matches(const char *full, const struct dif_probe *p)
{
	return field_matches(&full, "ktr") && field_matches(&full, p->module) &&
	       field_matches(&full, p->function) && *full == '"' &&
	       ktr_glob_format(full + 1, full + strlen(full), p->format);
}

bool
probe_matches(const char *full, const struct dif_probe *p)
{
	/* Of 8,000 probes, some hundred are trace points: the others need no look at the end. */
	if (p->format[0] != '\0' && *full != '\0' && full[strlen(full) - 1] == '"')
		return point_matches(full, p);
	return field_matches(&full, p->provider) && field_matches(&full, p->module) &&
	       field_matches(&full, p->function) && field_matches(&full, p->name);
}

int
probe_one_wrong(const char *full, const struct dif_probe *p)
{
	const char *const part[] = {p->provider, p->module, p->function, p->name};
	int wrong = -1;

	for (int i = 0; i < 4; i++) {
		const char *next = full + strcspn(full, ":");

		if (!field_matches(&full, part[i])) {
			if (wrong >= 0)
				return -1;
			wrong = i;
		}
		full = next + (*next == ':');
	}
	return wrong;
}

bool
probe_is_meant(const struct probe_spec *names, const struct dif_probe *p)
{
	while (names != NULL && !probe_matches(names->text, p))
		names = names->next;
	return names != NULL;
}

void
probe_split(const char *full, struct dif_probe *p)
{
	char *fields[] = {p->provider, p->module, p->function, p->name};
	static const size_t sizes[] = {sizeof(p->provider), sizeof(p->module), sizeof(p->function),
				       sizeof(p->name)};

	for (unsigned i = 0; i < 4; i++) {
		size_t size = strcspn(full, ":");

		snprintf(fields[i], sizes[i], "%.*s", (int)size, full);
		full += size + (full[size] == ':');
	}
}

static struct type *
function_argument(const struct dif_probe *p, uint64_t number)
{
	struct type *function = type_function(p->function);
	struct member *m;

	if (function == NULL || function->kind != T_FUNCTION)
		return NULL;
	if (strcmp(p->name, "return") == 0) {
		if (number == 0)
			return type_int;
		return number == 1 && type_base(function->to)->kind != T_VOID ? function->to : NULL;
	}
	for (m = type_members(function); m != NULL && number > 0; number--)
		m = m->next;
	return m != NULL ? m->type : NULL;
}

/*
 * A system call's argument has the type that its name says, in this call or in all; without such a
 * name, int. The last two of clone(), whose order depends on the architecture, are both pointers.
 */
static struct type *
syscall_argument(const struct dif_probe *p, uint64_t number)
{
#define A(argument, kind, type, field)              #argument " "
#define SYSCALL(number, name, restart, enomem, ...) {#name, "" __VA_ARGS__},
	static const struct {
		const char *name, *arguments;
	} calls[] = {
#include "kernel/abi/syscalls.def"
	};
#undef SYSCALL
#undef A
	static const struct {
		const char *type, *names;
	} types[] = {
	    {"int", " dup2.to dup3.to exit.status exit_group.status machine_shutdown.status "},
	    {"void *", " sysctl.name uname.name mremap.to ppoll.mask pselect6.mask "
		       "sched_getaffinity.mask "},
	    {"int64_t", " offset seconds fcntl.value "},
	    {"char *", " path from to name "},
	    {"size_t", " size old_size length count end "},
	    {"mode_t", " mode mask "},
	    {"pid_t", " pid pgid tid "},
	    {"uid_t", " uid "},
	    {"gid_t", " gid "},
	    {"void *",
	     " action address argument argv buffer cache child_tid cpu effective envp "
	     "exceptional fds files groups info limit message messages node old parent_tid pieces readable "
	     "real rest room saved set stack stat status time times tls usage value writable "
	     "zone "}};

	if (strcmp(p->name, "return") == 0)
		return number < 2 ? type_by_name("int64_t") : NULL;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const char *name = calls[i].arguments, *type = NULL;

		if (strcmp(calls[i].name, p->function) != 0)
			continue;
		for (; number > 0 && *name != '\0'; number--)
			name += strcspn(name, " ") + 1;
		if (*name == '\0')
			return NULL;
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]) && type == NULL; t++) {
			int size = (int)strcspn(name, " ");

			if (strstr(types[t].names,
				   dt_format(" %s.%.*s ", p->function, size, name)) != NULL ||
			    strstr(types[t].names, dt_format(" %.*s ", size, name)) != NULL)
				type = types[t].type;
		}
		return type_by_text(type != NULL ? type : "int");
	}
	return NULL;
}

/* Types that the guide's providers show instead of the kernel's own structs. NULL: the same. */
static const char *
stable_type(const char *type)
{
	static const char *const types[][2] = {{"struct proc *", "psinfo_t *"},
					       {"struct thread *", "lwpsinfo_t *"},
					       {"struct pcpu *", "cpuinfo_t *"}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(type, types[i][0]) == 0)
			return types[i][1];
	return NULL;
}

struct type *
probe_argument(const struct dif_probe *p, uint64_t number, const char **xlate)
{
	*xlate = NULL;
	if (strcmp(p->provider, "fbt") == 0)
		return function_argument(p, number);
	if (strcmp(p->provider, "syscall") == 0)
		return syscall_argument(p, number);
	if (number >= sizeof(p->types) / sizeof(p->types[0]) || p->types[number][0] == '\0')
		return NULL;
	if (p->xlate[number][0] != '\0')
		*xlate = dt_format("%s", p->xlate[number]);
	else if (strcmp(p->provider, "proc") == 0 || strcmp(p->provider, "sched") == 0)
		*xlate = stable_type(p->types[number]);
	return type_by_text(dt_format("%s", p->types[number]));
}
