/*
 * ctf_head.c - the metadata of a CTF trace, in TSDL (the specification at diamon.org/ctf,
 * appendix C): the trace and its streams as LTTng's kernel tracer describes them, and the event
 * classes.
 *
 * Field names begin with '_', because a parameter may have the name of a TSDL keyword. Readers
 * remove that character.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "ktr/tools/export/ctf.h"

/* Writes a TSDL string literal (C.1.6). Quotes, backslashes and control characters are escaped. */
static void
put_literal(FILE *f, const char *text)
{
	fputc('"', f);
	for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(f, "\\%03o", *p);
		else
			fputc(*p, f);
	}
	fputc('"', f);
}

static void
put_uuid(FILE *f, const uint8_t id[16])
{
	for (unsigned i = 0; i < 16; i++)
		fprintf(f, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

static const char types[] =
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := hex_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; map = clock.boot.value; } := ns_t;\n"
    "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char_t;\n";

void
ctf_put_head(FILE *f, const struct ktr_decode_header *h)
{
	fputs("/* CTF 1.8 */\n\n", f);
	fputs(types, f);
	fputs("\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"", f);
	put_uuid(f, h->boot_id);
	fputs("\";\n\tbyte_order = le;\n\tpacket.header := struct {\n\t\tuint32_t magic;\n"
	      "\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;\n\t};\n};\n\nenv {\n"
	      "\thostname = \"kestrel\";\n\tdomain = \"kernel\";\n\tsysname = \"Kestrel\";\n"
	      "\tkernel_version = ",
	      f);
	put_literal(f, h->build);
	fputs(";\n\tkernel_release = ", f);
	put_literal(f, h->build);
	fputs(";\n\tarchitecture = ", f);
	put_literal(f, h->arch);
	/* LTTng's analyses check the tracer's version. linux.c makes the events of this one. */
	fputs(";\n\ttracer_name = \"lttng-modules\";\n\ttracer_major = 2;\n\ttracer_minor = 13;\n"
	      "\ttracer_patchlevel = 0;\n};\n\nclock {\n\tname = \"boot\";\n\tuuid = \"",
	      f);
	put_uuid(f, h->boot_id);
	fputs("\";\n\tdescription = \"nanoseconds since boot\";\n\tfreq = 1000000000;\n"
	      "\toffset = 0;\n};\n\nstream {\n\tid = 0;\n"
	      "\tpacket.context := struct {\n\t\tns_t timestamp_begin;\n\t\tns_t timestamp_end;\n"
	      "\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
	      "\t\tuint64_t packet_seq_num;\n\t\tuint64_t events_discarded;\n"
	      "\t\tuint32_t cpu_id;\n\t};\n"
	      "\tevent.header := struct {\n\t\tuint16_t id;\n\t\tns_t timestamp;\n\t};\n"
	      "\tevent.context := struct {\n\t\tint32_t _tid;\n\t\tchar_t _procname[16];\n\t};\n"
	      "};\n",
	      f);
}

/*
 * The name of a site's class, which follows "ktr:", so that it cannot be one of LTTng's: `fork` for
 * "fork: parent %d"; the group of a KTRGRAPH line; otherwise the function. Classes may share a
 * name, but not a number.
 */
static void
class_name(const struct ktr_decode_site *s, char *name, size_t size)
{
	static const char graph[] = "KTRGRAPH group:\"";
	const char *from = s->fmt, *stop = ":";
	if (strncmp(from, graph, sizeof(graph) - 1) == 0) {
		from += sizeof(graph) - 1;
		stop = "\"";
	}
	size_t n = strcspn(from, ":%\"");
	if (n == 0 || n >= size || from[n] != *stop) {
		snprintf(name, size, "%s", s->func);
		return;
	}
	for (size_t i = 0; i < n; i++)
		name[i] = isalnum((unsigned char)from[i]) ? from[i] : '_';
	name[n] = '\0';
}

static void
put_site(FILE *f, const struct export_class *c)
{
	const struct ktr_decode_site *s = c->site;
	char name[64], full[sizeof(name) + 4], place[416];
	class_name(s, name, sizeof(name));
	snprintf(full, sizeof(full), "ktr:%s", name);
	snprintf(place, sizeof(place), "file:%s?line=%u&func=%s", s->file, (unsigned)s->line,
		 s->func);
	put_literal(f, full);
	fputs(";\n\tstream_id = 0;\n\tmodel.emf.uri = ", f);
	put_literal(f, place);
	fputs(";\n\tfields := struct {\n", f);
	for (unsigned i = 0; i < s->nargs; i++) {
		const struct ktr_param *p = &c->params[i];
		fprintf(f, "\t\t%s _%s;\n",
			p->string       ? "string"
			: p->is_signed  ? "int64_t"
			: p->bits == 64 ? "hex_t"
					: "uint64_t",
			p->name);
	}
}

static void
put_linux(FILE *f, const struct linux_class *c)
{
	static const char *const types[] = {
	    [KTR_FIELD_INT] = "int32_t", [KTR_FIELD_LONG] = "int64_t",  [KTR_FIELD_ULONG] = "hex_t",
	    [KTR_FIELD_COMM] = "char_t", [KTR_FIELD_STRING] = "string",
	};
	put_literal(f, c->lttng);
	fputs(";\n\tstream_id = 0;\n\tfields := struct {\n", f);
	for (unsigned i = 0; i < c->nfields; i++) {
		const struct linux_field *field = &c->fields[i];
		if (field->lttng != NULL)
			fprintf(f, "\t\t%s _%s%s;\n", types[field->type], field->lttng,
				field->type == KTR_FIELD_COMM ? "[16]" : "");
	}
}

void
ctf_put_class(FILE *f, size_t id, const struct export_class *c)
{
	fprintf(f, "\nevent {\n\tid = %zu;\n\tname = ", id);
	if (c->site != NULL)
		put_site(f, c);
	else
		put_linux(f, c->of_linux);
	fputs("\t};\n};\n", f);
}
