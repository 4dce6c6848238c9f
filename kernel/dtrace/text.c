/* text.c - what the engine's port has from the log (ktr/), in this kernel and in others. */
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"
#include "ktr/hook.h"
#include "ktr/intern.h"

bool
dif_port_text(const struct ktr_firing *f, unsigned n, char *to, size_t size)
{
	char buf[KTR_STRING_MAX];
	const char *text = buf;

	if (f->has_data && n + 1 == f->nargs) {
		size_t len = f->len < sizeof(buf) - 1 ? f->len : sizeof(buf) - 1;

		memcpy(buf, f->data, len);
		buf[len] = '\0';
	} else {
		text = f->args[n] != 0 ? ktr_string_text(f->args[n], buf) : "(null)";
	}
	if (text != NULL)
		strlcpy(to, text, size);
	return text != NULL;
}

void
dif_port_log(const struct ktr_firing *f)
{
	ktr_fire_once(f);
}
