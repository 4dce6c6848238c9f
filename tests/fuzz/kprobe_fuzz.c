/*
 * kprobe_fuzz.c - definitions of kprobes, uprobes and event probes: what is understood is in range,
 * and what is refused has a sentence about a character of the text. The same text always means the
 * same.
 */
#include <stdbool.h>
#include <string.h>

#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/ksyms.h"
#include "kernel/probe/kprobe_private.h"
#include "tests/fuzz/fuzz.h"

#define WORDS (sizeof(struct arch_trapframe) / sizeof(uint64_t))

/* ---- a kernel of a few symbols; its registers are words of the trap frame ---- */

bool
arch_tf_register(const struct arch_trapframe *tf, const char *name, uint64_t *v)
{
	static const char *const names[] = {"rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "rsp"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0) {
			*v = ((const uint64_t *)tf)[WORDS - 1 - i];
			return true;
		}
	}
	return false;
}

uintptr_t
ksym_address(const char *name)
{
	return strcmp(name, "sys_read") == 0 ? 0x80100000 : 0;
}

/* An event of two fields, the second of which is a text. */
#define FIELDS 2

static const struct ktr_site *
find_event(const char *system, const char *event)
{
	static const struct ktr_site site;

	return strcmp(system, "a") == 0 && strcmp(event, "b") == 0 ? &site : NULL;
}

static bool
find_field(const struct ktr_site *event, const char *name, unsigned *number, bool *is_text)
{
	static const char *const names[FIELDS] = {"pid", "comm"};

	for (unsigned i = 0; i < FIELDS; i++) {
		if (event != NULL && strcmp(names[i], name) == 0) {
			*number = i;
			*is_text = i == 1;
			return true;
		}
	}
	return false;
}

const char *const kprobe_groups[] = {"kprobes", "uprobes", "eprobes"};
static const struct kprobe_events events = {find_event, find_field, NULL}; /* it only parses */
const struct kprobe_events *kprobe_events = &events;

/* ---- promises ---- */

static bool
is_word(const char *name, size_t size)
{
	size_t n = strnlen(name, size);

	return n > 0 && n < size &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
		   n;
}

static void
check_fetch(const struct kdefinition *d, const struct kfetch *f, const char *text)
{
	bool power = f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8;

	FUZZ_CHECK(is_word(f->name, sizeof(f->name)), "%s", text);
	FUZZ_CHECK(power && f->width + f->shift <= 8 * f->size, "%s: %u bits from %u of %u bytes",
		   text, f->width, f->shift, f->size);
	FUZZ_CHECK(f->derefs <= KPROBE_DEREFS, "%s: %u", text, f->derefs);
	FUZZ_CHECK(f->base != KFETCH_REGISTER || f->reg < WORDS, "%s: word %u", text, f->reg);
	FUZZ_CHECK((f->base == KFETCH_FIELD) <= (d->kind == KPROBE_AT_EVENT && f->reg < FIELDS),
		   "%s: field %u", text, f->reg);
	FUZZ_CHECK(d->kind != KPROBE_AT_EVENT || f->base != KFETCH_REGISTER, "%s", text);
	FUZZ_CHECK(f->base != KFETCH_COMM || (f->derefs == 0 && f->print == KFETCH_STRING), "%s",
		   text);
	FUZZ_CHECK(f->base != KFETCH_TEXT || (f->derefs == 0 && f->print == KFETCH_STRING &&
					      text[f->number + f->text_len] == '"'),
		   "%s", text);
	FUZZ_CHECK(f->print != KFETCH_STRING || f->base == KFETCH_COMM || f->base == KFETCH_TEXT ||
		       f->derefs > 0,
		   "%s", text);
	FUZZ_CHECK(f->count <= KPROBE_ARRAY && (f->count == 0 || f->derefs > 0), "%s: %u", text,
		   f->count);
	FUZZ_CHECK(f->len > 0 && f->len <= KPROBE_ARGUMENT && strcspn(text + f->at, " ") == f->len,
		   "%s: %u bytes at %u", text, f->len, f->at);
	FUZZ_CHECK(d->kind == KPROBE_USER || strstr(text, "$retval") == NULL ||
		       strchr(text, '"') != NULL || d->is_return || d->filter != 0,
		   "%s", text);
}

static void
check_good(const struct kdefinition *d, const char *text)
{
	size_t len = strlen(text);

	FUZZ_CHECK(is_word(d->name, sizeof(d->name)), "%s", text);
	FUZZ_CHECK(is_word(d->group, sizeof(d->group)), "%s", text);
	FUZZ_CHECK(d->maxactive <= KPROBE_MAXACTIVE, "%s", text);
	FUZZ_CHECK(strnlen(d->function, sizeof(d->function)) < sizeof(d->function), "%s", text);
	FUZZ_CHECK(d->kind == KPROBE_USER || d->function[0] == '\0' ||
		       is_word(d->function, sizeof(d->function)),
		   "%s", text);
	FUZZ_CHECK(d->place_at < len, "%s: %zu", text, d->place_at);
	FUZZ_CHECK(d->kind == KPROBE_USER || !d->is_return || d->offset == 0, "%s: %zu", text,
		   d->offset);
	FUZZ_CHECK((d->kind == KPROBE_AT_EVENT) == (d->target != NULL), "%s", text);
	FUZZ_CHECK(d->filter == 0 || (d->target != NULL && d->filter < len), "%s: %zu", text,
		   d->filter);
	FUZZ_CHECK(d->kind != KPROBE_USER || (d->path > 0 && d->place_at + d->path + 1 < len &&
					      text[d->place_at + d->path] == ':'),
		   "%s: %zu", text, d->path);
	FUZZ_CHECK(d->nargs <= KPROBE_ARGS, "%s: %u", text, d->nargs);
	for (unsigned i = 0; i < d->nargs; i++)
		check_fetch(d, &d->args[i], text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kdefinition d, again;
	struct fuzz_input in = {data, size};
	uint8_t first = fuzz_byte(&in);
	size_t errlen = first % 100 + 1;
	enum kprobe_kind kind = first / 100;
	char *text = strndup((const char *)in.p, in.left), *err = malloc(errlen), all[256] = "";
	unsigned at;
	int error;

	FUZZ_CHECK(text != NULL && err != NULL, "no memory");
	err[0] = '\0';
	error = kprobe_parse(text, kind, &d, all, sizeof(all));
	FUZZ_CHECK(kprobe_parse(text, kind, &again, err, errlen) == error, "%s", text);
	FUZZ_CHECK(memcmp(&d, &again, sizeof(d)) == 0, "%s", text);
	FUZZ_CHECK(strlen(err) < errlen && strncmp(all, err, strlen(err)) == 0, "%s", err);
	if (error == 0) {
		FUZZ_CHECK(all[0] == '\0', "%s: %s", text, all);
		check_good(&d, text);
	} else {
		FUZZ_CHECK(error == -EINVAL || error == -ENOENT || error == -ENODEV, "%s: %d", text,
			   error);
		FUZZ_CHECK(sscanf(all, "character %u: ", &at) == 1 && at >= 1 &&
			       at <= strlen(text) + 2,
			   "%s: %s", text, all);
	}
	free(text);
	free(err);
	return 0;
}
