/*
 * tracedat_head.c - the head of a trace.dat, version 6 (trace-cmd.dat.v6(5)): formats of the
 * events, names of the threads, options. All numbers are little-endian.
 *
 * Classes are called as ktr/event_format.h says. Linux's classes are in Linux's
 * systems, with the fields and formats that the readers know.
 */
#define _GNU_SOURCE /* tdestroy() */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/event_format.h"
#include "ktr/tools/export/tracedat.h"

#define NAME_BYTES     (KTR_EVENT_NAME + 24u)
#define OPTION_CPUSTAT 2u
#define OPTION_UNAME   5u
#define OWN_SYSTEM     "ktr"

static void
put_u16(FILE *f, unsigned v)
{
	fwrite(&(uint16_t){(uint16_t)v}, 2, 1, f);
}

static void
put_u32(FILE *f, size_t v)
{
	fwrite(&(uint32_t){(uint32_t)v}, 4, 1, f);
}

static void
put_u64(FILE *f, uint64_t v)
{
	fwrite(&v, 8, 1, f);
}

/* Writes the size of a text, then the text. */
static void
put_text(FILE *f, const char *text, size_t n)
{
	put_u64(f, n);
	fwrite(text, 1, n, f);
}

static void
put_option(FILE *f, unsigned id, const char *text)
{
	put_u16(f, id);
	put_u32(f, strlen(text) + 1);
	fwrite(text, 1, strlen(text) + 1, f);
}

static void
put_bytes(void *file, const char *text, size_t n)
{
	fwrite(text, 1, n, file);
}

static void
name_of(struct ktr_event_name *event, const struct ktr_decode_site *site)
{
	ktr_event_name(event, site->func, site->line, site->fmt);
}

/* If there is a class of that name already, adds its number to the name. */
static void
class_name(char to[NAME_BYTES], void **names, const struct ktr_event_name *event, size_t number)
{
	int n = snprintf(to, NAME_BYTES, "%s", event->name);
	char *copy = strdup(to);
	if (copy == NULL)
		return;
	char **found = tsearch(copy, names, (int (*)(const void *, const void *))strcmp);
	if (found == NULL || *found != copy) {
		snprintf(to + n, NAME_BYTES - (size_t)n, "_%zu", number);
		free(copy);
	}
}

static void
put_linux(FILE *f, const struct ktr_format_out *out, const struct linux_class *c)
{
	static const char *const print[] = {
	    [KTR_FIELD_INT] = "%d",
	    [KTR_FIELD_LONG] = "%lld",
	    [KTR_FIELD_ULONG] = "0x%llx",
	    [KTR_FIELD_STRING] = "%s",
	};
	unsigned at = TRACEDAT_COMMON;
	unsigned first = c->print != NULL ? 0 : 1; /* a system call's number is not printed */
	for (unsigned i = 0; i < c->nfields; i++)
		if (c->fields[i].name != NULL)
			ktr_format_field(out, c->fields[i].type, c->fields[i].name, &at);
	fprintf(f, "\nprint fmt: \"%s", c->print != NULL ? c->print : "");
	for (unsigned i = first; i < c->nfields && c->print == NULL; i++)
		fprintf(f, "%s%s: %s", i > first ? ", " : "", c->fields[i].name,
			print[c->fields[i].type]);
	fputc('"', f);
	for (unsigned i = first; i < c->nfields; i++) {
		const struct linux_field *l = &c->fields[i];
		if (l->name != NULL)
			fprintf(f, l->type == KTR_FIELD_STRING ? ", __get_str(%s)" : ", REC->%s",
				l->name);
	}
	fputc('\n', f);
}

/* Writes the format of class number n. c NULL: the class that tells how many events were lost. */
static bool
put_class(FILE *file, const struct export_class *c, size_t n, void **names)
{
	char *text = NULL, name[NAME_BYTES];
	unsigned at = TRACEDAT_COMMON;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	if (f == NULL)
		return false;
	const struct ktr_format_out out = {put_bytes, f};
	if (c == NULL) {
		ktr_format_begin(&out, "events_lost", TRACEDAT_LOST_ID);
		ktr_format_field(&out, KTR_FIELD_U64, "count", &at);
		fputs("\nprint fmt: \"%llu events are missing\", REC->count\n", f);
	} else if (c->site != NULL) {
		struct ktr_event_name event;
		name_of(&event, c->site);
		class_name(name, names, &event, n);
		ktr_format_begin(&out, name, TRACEDAT_ID(n));
		ktr_format_site(&out, event.fmt, c->params, c->site->nargs, 0);
	} else {
		const struct linux_class *told = linux_class_told(c->of_linux);
		ktr_format_begin(&out, told->name, TRACEDAT_ID(n));
		put_linux(f, &out, told);
	}
	bool good = fclose(f) == 0;
	if (good)
		put_text(file, text, size);
	free(text);
	return good;
}

/* Trace points are of our own system, probes of their provider's. */
static const char *
system_of(const struct export_class *c, struct ktr_event_name *event)
{
	if (c->site == NULL)
		return c->of_linux->system;
	name_of(event, c->site);
	return event->system[0] != '\0' ? event->system : OWN_SYSTEM;
}

static bool
is_of(const struct export_class *c, const char *system)
{
	struct ktr_event_name event;
	return strcmp(system_of(c, &event), system) == 0;
}

static bool
put_system(FILE *out, const struct tracedat_head *h, const char *system)
{
	const bool own = strcmp(system, OWN_SYSTEM) == 0;
	size_t count = own; /* the class of lost events is one of our own */
	void *names = NULL;
	for (size_t n = 0; n < h->class_count; n++)
		count += is_of(&h->classes[n], system);
	fwrite(system, 1, strlen(system) + 1, out);
	put_u32(out, count);
	bool good = !own || put_class(out, NULL, 0, NULL);
	for (size_t n = 0; n < h->class_count && good; n++)
		if (is_of(&h->classes[n], system))
			good = put_class(out, &h->classes[n], n, &names);
	tdestroy(names, free);
	return good;
}

static bool
put_classes(FILE *out, const struct tracedat_head *h)
{
	char *text = NULL;
	size_t size = 0;
	unsigned systems = 1;
	FILE *f = open_memstream(&text, &size);
	bool good = f != NULL && put_system(f, h, OWN_SYSTEM);
	for (size_t n = 0; n < h->class_count && good; n++) {
		struct ktr_event_name event;
		const char *system = system_of(&h->classes[n], &event);
		size_t first = 0;
		while (!is_of(&h->classes[first], system))
			first++;
		if (first < n || strcmp(system, OWN_SYSTEM) == 0)
			continue;
		good = put_system(f, h, system);
		systems++;
	}
	good = f != NULL && fclose(f) == 0 && good;
	put_u32(out, systems);
	fwrite(text, 1, size, out);
	free(text);
	return good;
}

/* The names of functions, which is what trace-cmd takes from kallsyms. */
static bool
put_functions(FILE *out)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	if (f == NULL)
		return false;
	linux_functions_print(f);
	bool good = fclose(f) == 0;
	put_u32(out, (uint32_t)size);
	fwrite(text, 1, size, out);
	free(text);
	return good;
}

static void
put_options(FILE *f, const struct tracedat_head *h)
{
	char text[256];
	fwrite("options  ", 1, 10, f);
	for (unsigned n = 0; n < h->cpu_count; n++) {
		snprintf(text, sizeof(text), "CPU: %u\noverrun: %" PRIu64 "\n", n, h->lost[n]);
		put_option(f, OPTION_CPUSTAT, text);
	}
	snprintf(text, sizeof(text), "Kestrel %.200s %.32s", h->header->build, h->header->arch);
	put_option(f, OPTION_UNAME, text);
	put_u16(f, 0);
}

bool
tracedat_put_head(FILE *f, const struct tracedat_head *h)
{
	fwrite("\x17\x08\x44tracing6", 1, 12, f);
	fwrite("\0\x08", 1, 2, f); /* little-endian, a long of 8 bytes */
	put_u32(f, TRACEDAT_PAGE);
	fwrite("header_page", 1, 12, f);
	put_text(f, ktr_format_header_page, strlen(ktr_format_header_page));
	fwrite("header_event", 1, 13, f);
	put_text(f, ktr_format_header_event, strlen(ktr_format_header_event));
	put_u32(f, 0); /* ftrace's own formats */
	if (!put_classes(f, h))
		return false;
	if (!put_functions(f))
		return false;
	put_u32(f, 0); /* printk */
	tracedat_comms_put(f, h->comms);
	put_u32(f, h->cpu_count);
	put_options(f, h);
	fwrite("flyrecord", 1, 10, f);
	return true;
}
