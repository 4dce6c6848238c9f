/*
 * probe.c - the names of probes. Locking: none; what it reads of a site is constant.
 */
#include "ktr/probe.h"

#include "ktr/fmt.h"
#include "ktr/glob.h"
#include "ktr/str.h"
#include "ktr/word.h"

#define FIELDS 4

/* Copies the text up to `end`, cut to the size of a part. */
static void
copy_part(char to[KTR_PROBE_TEXT], const char *from, const char *end)
{
	size_t n = (size_t)(end - from);
	if (n > KTR_PROBE_TEXT - 1)
		n = KTR_PROBE_TEXT - 1;
	ktr_copy(to, from, n);
	to[n] = '\0';
}

/* The folder that the file is in. */
static void
module_of(const char *file, char to[KTR_PROBE_TEXT])
{
	const char *end = ktr_basename(file), *start;
	end = end > file ? end - 1 : file;
	for (start = end; start > file && start[-1] != '/'; start--)
		;
	copy_part(to, start, end);
}

/* The first words of the format, with dashes: "mutex acquire: lock %s" is mutex-acquire. */
static void
name_of(const char *fmt, char to[KTR_PROBE_TEXT])
{
	const char *end = fmt;
	while (*end != '\0' && *end != ':' && *end != '%')
		end++;
	while (end > fmt && end[-1] == ' ')
		end--;
	copy_part(to, fmt, end);
	for (; *to != '\0'; to++)
		if (*to == ' ')
			*to = '-';
}

/* The text after the prefix. NULL: the format does not begin with it. */
static const char *
text_after(const char *fmt, const char *prefix)
{
	while (*prefix != '\0' && *fmt == *prefix) {
		fmt++;
		prefix++;
	}
	return *prefix == '\0' ? fmt : NULL;
}

/* "syscall read: …" is the entry of the system call read, and "sysret read: …" its return. */
static bool
probe_is_syscall(const struct ktr_site *site, struct ktr_probe_name *name)
{
	const char *entry = text_after(site->fmt, "syscall "), *call = entry, *end;
	if (call == NULL)
		call = text_after(site->fmt, "sysret ");
	for (end = call; end != NULL && *end != ' ' && *end != ':' && *end != '\0'; end++)
		;
	if (end == call || *end != ':')
		return false;
	name->provider = "syscall";
	name_of(call, name->call);
	name->function = name->call;
	name_of(entry != NULL ? "entry" : "return", name->name);
	return true;
}

void
ktr_probe_name(const struct ktr_site *site, struct ktr_probe_name *name)
{
	module_of(site->file, name->module);
	name->fmt = site->kind == KTR_SITE_POINT && site->fmt[0] != '\0' ? site->fmt : NULL;
	if (site->kind == KTR_SITE_POINT && probe_is_syscall(site, name))
		return;
	if (site->kind >= KTR_SITE_PROBE) {
		const struct ktr_sdt *sdt = site->sdt;
		name->provider = sdt->provider;
		if (sdt->module[0] != '\0')
			copy_part(name->module, sdt->module, sdt->module + ktr_strlen(sdt->module));
		name->function = sdt->function;
		copy_part(name->name, sdt->name, sdt->name + ktr_strlen(sdt->name));
		return;
	}
	name->provider = site->kind == KTR_SITE_POINT ? "ktr" : "fbt";
	name->function = site->func;
	if (site->kind == KTR_SITE_POINT)
		name_of(site->fmt, name->name);
	else
		name_of(site->kind == KTR_SITE_ENTRY ? "entry" : "return", name->name);
}

bool
ktr_probe_is_name(const char *spec)
{
	while (*spec != '\0' && *spec != ':')
		spec++;
	return *spec == ':';
}

/* The fields of a spec. */
struct fields {
	char glob[FIELDS][KTR_PROBE_TEXT];
};

/* Reads one name, of n characters. Fields that are missing on the left are "". False: no name. */
static bool
probe_read_fields(struct fields *f, const char *spec, size_t n)
{
	const char *end = spec + n;
	unsigned colons = 0;
	for (size_t i = 0; i < n; i++)
		colons += spec[i] == ':';
	if (colons == 0 || colons >= FIELDS)
		return false;
	for (unsigned i = 0; i < FIELDS; i++) {
		const char *start = spec;
		while (i >= FIELDS - 1 - colons && spec < end && *spec != ':')
			spec++;
		copy_part(f->glob[i], start, spec);
		spec += i >= FIELDS - 1 - colons;
	}
	return true;
}

/* Do all fields match but number `but`? */
static bool
matches_but(const struct fields *f, const char *const part[FIELDS], unsigned but)
{
	for (unsigned i = 0; i < FIELDS; i++)
		if (i != but && f->glob[i][0] != '\0' && !ktr_glob(f->glob[i], part[i]))
			return false;
	return true;
}

/* Does the text match the field [p, end)? Only from a character of globs on it is one. */
static bool
field_matches(const char *p, const char *end, const char *text)
{
	char glob[KTR_PROBE_TEXT];
	if (p == end)
		return true;
	while (p < end && *p == *text && *p != '*' && *p != '?' && *p != '[' && *p != '\\') {
		p++;
		text++;
	}
	if (p == end)
		return *text == '\0';
	if (*p != '*' && *p != '?' && *p != '[' && *p != '\\')
		return false;
	copy_part(glob, p, end);
	return ktr_glob(glob, text);
}

/* Does a spec that ends with a format name the trace point? Its first field is number i. */
static bool
point_matches(const struct ktr_probe_name *name, unsigned i, const char *spec, const char *end)
{
	const char *const part[] = {"ktr", name->module, name->function};
	char glob[KTR_PROBE_TEXT];
	for (; i < FIELDS - 1; i++) {
		const char *start = spec;
		while (*spec != ':')
			spec++;
		copy_part(glob, start, spec++);
		if (glob[0] != '\0' && !ktr_glob(glob, part[i]))
			return false;
	}
	return name->fmt != NULL && *spec == '"' && ktr_glob_format(spec + 1, end, name->fmt);
}

unsigned
ktr_probe_name_matches(const struct ktr_probe_name *name, const char *spec)
{
	const char *const part[FIELDS] = {name->provider, name->module, name->function, name->name};
	unsigned matches = 0;
	for (;; spec++) {
		const char *end = spec;
		unsigned colons = 0, i;
		for (; *end != '\0' && *end != ','; end++)
			colons += *end == ':';
		i = colons > 0 && colons < FIELDS ? FIELDS - 1 - colons : FIELDS + 1;
		if (i < FIELDS && end[-1] == '"') {
			matches += point_matches(name, i, spec, end);
			i = FIELDS + 1;
		}
		for (const char *p = spec; i < FIELDS; i++, spec = p + 1) {
			for (p = spec; p < end && *p != ':'; p++)
				;
			if (!field_matches(spec, p, part[i]))
				break;
		}
		matches += i == FIELDS;
		spec = end;
		if (*spec == '\0')
			return matches;
	}
}

bool
ktr_probe_matches(const struct ktr_site *site, const char *spec)
{
	struct ktr_probe_name name;
	if (!ktr_probe_is_name(spec) || !ktr_site_is_probe(site))
		return false;
	ktr_probe_name(site, &name);
	return ktr_probe_name_matches(&name, spec) != 0;
}

/* The spec with the colons that it lacks on its right, if it names probes with them. */
static bool
suggest_colons(const char *spec, const char *colons, char *to, size_t len)
{
	fmt_snprintf(to, len, "%s%s", spec, colons);
	for (unsigned n = 0; n < ktr_site_count(); n++)
		if (ktr_probe_matches(ktr_site_get(n), to))
			return true;
	return false;
}

bool
ktr_probe_suggest(const char *spec, char *to, size_t len)
{
	struct fields f;
	unsigned field = FIELDS, distance = KTR_PROBE_TEXT;
	char best[KTR_PROBE_TEXT];
	if (!ktr_probe_is_name(spec))
		return suggest_colons(spec, ":::", to, len);
	if (suggest_colons(spec, ":", to, len))
		return true;
	if (!probe_read_fields(&f, spec, ktr_strlen(spec)))
		return false;
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);
		struct ktr_probe_name name;
		if (!ktr_site_is_probe(site))
			continue;
		ktr_probe_name(site, &name);
		const char *part[FIELDS] = {name.provider, name.module, name.function, name.name};
		for (unsigned i = 0; i < FIELDS; i++) {
			if (f.glob[i][0] == '\0' || !matches_but(&f, part, i) ||
			    !ktr_suggest_nearer(f.glob[i], part[i], &distance))
				continue;
			field = i;
			copy_part(best, part[i], part[i] + ktr_strlen(part[i]));
		}
	}
	if (field == FIELDS)
		return false;
	copy_part(f.glob[field], best, best + ktr_strlen(best));
	fmt_snprintf(to, len, "%s:%s:%s:%s", f.glob[0], f.glob[1], f.glob[2], f.glob[3]);
	return true;
}
