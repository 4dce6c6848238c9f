/*
 * types.c - the types of the arguments of functions' probes, for `ktr probes`: from the kernel's
 * BTF, as dtrace knows them.
 */
#include <err.h>
#include <string.h>

#include "userland/bin/dtrace/btf.h"
#include "userland/bin/dtrace/files.h"
#include "userland/bin/dtrace/type.h"
#include "userland/bin/ktr/ktr.h"

/* A program that does not read the kernel's types knows none. */
void
probe_types_open(void)
{
	static struct btf btf;
	size_t size;
	const void *data = file_read(file_default(FILE_BTF), &size);
	const char *why = data != NULL ? btf_open(&btf, data, size) : NULL;

	if (why != NULL)
		warnx("%s: %s", file_default(FILE_BTF), why);
	type_init(data != NULL && why == NULL ? &btf : NULL);
}

const char *
probe_types(const char *function, const char *name)
{
	struct type *type = type_function(function);
	const char *text = "";

	if (type == NULL || type->kind != T_FUNCTION)
		return "";
	if (strcmp(name, "return") == 0)
		return type_base(type->to)->kind == T_VOID
			   ? " (int)"
			   : dt_format(" (int, %s)", type_text(type->to));
	for (struct member *m = type_members(type); m != NULL; m = m->next)
		text = dt_format("%s%s%s", text, *text != '\0' ? ", " : " (", type_text(m->type));
	return *text != '\0' ? dt_format("%s)", text) : "";
}
