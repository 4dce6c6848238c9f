/*
 * export_tracedat_head.c - the head of a trace.dat, version 6 (trace-cmd.dat.v6(5)): formats of the
 * events, names of the threads, options. All numbers are little-endian.
 *
 * A site's class is called FUNCTION_LINE, and its fields have the parameters' names. With its
 * `print fmt`, readers print the same text as ktrdump, except that they print a number for %c,
 * which they do not know. Linux's classes are in Linux's systems, with the fields and formats that
 * the readers know.
 */
#define _GNU_SOURCE /* tdestroy() */
#include <ctype.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/fmt.h"
#include "ktr/tools/export_tracedat.h"

#define NAME_BYTES     (KTR_WIRE_FUNC_MAX + 32u)
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

/* Writes a character of a C string literal. One that is not printable is printed as an escape. */
static void
put_literal(FILE *f, char c)
{
	if (c == '"' || c == '\\')
		fprintf(f, "\\%c", c);
	else if (isprint((unsigned char)c))
		fputc(c, f);
	else if (c == '\n' || c == '\t')
		fprintf(f, "\\\\%c", c == '\n' ? 'n' : 't');
	else
		fprintf(f, "\\\\x%02x", (unsigned char)c);
}

/* Writes a conversion of 64 bits. The readers know neither ' ' nor '+', and at most one '*'. */
static void
put_conversion(FILE *f, const struct fmt_spec *s)
{
	bool stars = s->star_width && s->star_precision;
	fprintf(f, "%s%%%s%s%s", s->conv == 'p' && s->width == 0 ? "0x" : "", s->left ? "-" : "",
		s->alt || (s->conv == 'p' && s->width != 0) ? "#" : "", s->zero ? "0" : "");
	if (s->star_width && !stars)
		fputc('*', f);
	else if (s->width > 0)
		fprintf(f, "%d", s->width);
	if (s->star_precision && !stars)
		fputs(".*", f);
	else if (s->precision >= 0)
		fprintf(f, ".%d", s->precision);
	if (s->conv == 's')
		fputc('s', f);
	else
		fprintf(f, "ll%c", s->conv == 'p' ? 'x' : s->conv == 'c' ? 'd' : s->conv);
}

/* Writes the format to f, and its arguments to args. */
static void
put_print_fmt(FILE *f, FILE *args, const struct export_class *c)
{
	unsigned n = 0, nargs = c->site->nargs;
	for (const char *fmt = c->site->fmt; *fmt != '\0';) {
		struct fmt_spec s;
		if (*fmt != '%') {
			put_literal(f, *fmt++);
			continue;
		}
		fmt++;
		fmt_scan(&fmt, &s);
		unsigned stars = (unsigned)s.star_width + s.star_precision;
		if (s.conv == 0 || s.conv == '%') {
			fputs("%%", f);
		} else if (n + stars >= nargs) { /* a missing parameter is 0 */
			fputs(s.conv == 's' ? "(null)" : s.conv == 'p' ? "0x0" : "0", f);
		} else {
			put_conversion(f, &s);
			if (stars == 1)
				fprintf(args, ", REC->%s", c->params[n].name);
			n += stars;
			fprintf(args, s.conv == 's' ? ", __get_str(%s)" : ", REC->%s",
				c->params[n].name);
			n++;
		}
	}
}

/* Writes FUNCTION_LINE. If there is a class of that name already, its number is added. */
static void
put_class_name(FILE *f, void **names, const struct export_class *c, size_t number)
{
	char *name = malloc(NAME_BYTES);
	if (name == NULL)
		return;
	snprintf(name, NAME_BYTES, "%.*s_%u", (int)KTR_WIRE_FUNC_MAX, c->site->func,
		 (unsigned)c->site->line);
	for (char *p = name; *p != '\0'; p++) {
		if (!isalnum((unsigned char)*p))
			*p = '_';
	}
	fputs(name, f);
	char **found = tsearch(name, names, (int (*)(const void *, const void *))strcmp);
	if (found == NULL || *found != name) {
		fprintf(f, "_%zu", number);
		free(name);
	}
}

static void
put_begin(FILE *f, size_t id)
{
	fprintf(f,
		"\nID: %zu\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		id);
}

static void
put_field(FILE *f, const char *type, const char *name, const char *array, unsigned *at,
	  unsigned size, bool is_signed)
{
	fprintf(f, "\tfield:%s %s%s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", type, name, array, *at,
		size, is_signed);
	*at += size;
}

static bool
put_site(FILE *f, const struct export_class *c)
{
	char *args = NULL;
	size_t args_size = 0;
	unsigned at = TRACEDAT_COMMON;
	for (unsigned i = 0; i < c->site->nargs; i++) {
		const struct ktr_param *p = &c->params[i];
		if (p->string)
			put_field(f, "__data_loc char[]", p->name, "", &at, 4, false);
		else
			put_field(f, p->is_signed ? "s64" : "u64", p->name, "", &at, 8,
				  p->is_signed);
	}
	fputs("\nprint fmt: \"", f);
	FILE *a = open_memstream(&args, &args_size);
	if (a == NULL)
		return false;
	put_print_fmt(f, a, c);
	bool good = fclose(a) == 0;
	if (good)
		fprintf(f, "\"%s\n", args);
	free(args);
	return good;
}

static void
put_linux(FILE *f, const struct linux_class *c)
{
	static const struct {
		const char *type, *array, *print;
		bool is_signed;
	} types[] = {
	    [LINUX_INT] = {"int", "", "%d", true},
	    [LINUX_LONG] = {"long", "", "%lld", true},
	    [LINUX_ULONG] = {"unsigned long", "", "0x%llx", false},
	    [LINUX_COMM16] = {"char", "[16]", "%s", false},
	    [LINUX_STRING] = {"__data_loc char[]", "", "%s", false},
	};
	unsigned at = TRACEDAT_COMMON;
	const char *between = "";
	for (unsigned i = 0; i < c->nfields; i++) {
		const struct linux_field *l = &c->fields[i];
		if (l->name != NULL)
			put_field(f, types[l->type].type, l->name, types[l->type].array, &at,
				  (unsigned)tracedat_field_size(l->type), types[l->type].is_signed);
	}
	fprintf(f, "\nprint fmt: \"%s", c->print != NULL ? c->print : "");
	unsigned first = c->print != NULL ? 0 : 1; /* a system call's number is not printed */
	for (unsigned i = first; i < c->nfields && c->print == NULL; i++) {
		fprintf(f, "%s%s: %s", between, c->fields[i].name, types[c->fields[i].type].print);
		between = ", ";
	}
	fputc('"', f);
	for (unsigned i = first; i < c->nfields; i++) {
		const struct linux_field *l = &c->fields[i];
		if (l->name != NULL)
			fprintf(f, l->type == LINUX_STRING ? ", __get_str(%s)" : ", REC->%s",
				l->name);
	}
	fputc('\n', f);
}

/* Writes the format of class number n. c NULL: the class that tells how many events were lost. */
static bool
put_class(FILE *out, const struct export_class *c, size_t n, void **names)
{
	char *text = NULL;
	unsigned at = TRACEDAT_COMMON;
	size_t size = 0;
	bool good = true;
	FILE *f = open_memstream(&text, &size);
	if (f == NULL)
		return false;
	fputs("name: ", f);
	if (c == NULL) {
		fputs("events_lost", f);
		put_begin(f, TRACEDAT_LOST_ID);
		put_field(f, "u64", "count", "", &at, 8, false);
		fputs("\nprint fmt: \"%llu events are missing\", REC->count\n", f);
	} else if (c->site != NULL) {
		put_class_name(f, names, c, n);
		put_begin(f, TRACEDAT_ID(n));
		good = put_site(f, c);
	} else {
		const struct linux_class *told = linux_class_told(c->of_linux);
		fputs(told->name, f);
		put_begin(f, TRACEDAT_ID(n));
		put_linux(f, told);
	}
	good = fclose(f) == 0 && good;
	if (good)
		put_text(out, text, size);
	free(text);
	return good;
}

static bool
is_of(const struct export_class *c, const char *system)
{
	return strcmp(c->site != NULL ? OWN_SYSTEM : c->of_linux->system, system) == 0;
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
	for (size_t n = 0; n < h->class_count && good; n++) {
		if (is_of(&h->classes[n], system))
			good = put_class(out, &h->classes[n], n, &names);
	}
	tdestroy(names, free);
	return good;
}

static bool
put_classes(FILE *out, const struct tracedat_head *h)
{
	/* Ours, and those of linux.c. */
	static const char *const systems[] = {OWN_SYSTEM, "sched", "irq", "syscalls", "ftrace"};
	const unsigned n = sizeof(systems) / sizeof(systems[0]);
	bool good = true;
	put_u32(out, n);
	for (unsigned i = 0; i < n && good; i++)
		good = put_system(out, h, systems[i]);
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

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

bool
tracedat_put_head(FILE *f, const struct tracedat_head *h)
{
	fwrite("\x17\x08\x44tracing6", 1, 12, f);
	fwrite("\0\x08", 1, 2, f); /* little-endian, a long of 8 bytes */
	put_u32(f, TRACEDAT_PAGE);
	fwrite("header_page", 1, 12, f);
	put_text(f, header_page, sizeof(header_page) - 1);
	fwrite("header_event", 1, 13, f);
	put_text(f, header_event, sizeof(header_event) - 1);
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
