/*
 * tunable.c - loader parameters set sysctls, or are kept for tunable_get().
 *
 * This works before the heap exists: values that are needed later go into a fixed table. Each
 * declared name has one slot there, large enough for any value. The last setting counts:
 * loader.conf comes first, then the command line. So nothing in loader.conf can use up the room of
 * the command line.
 *
 * Locking: none. Only the boot CPU writes, before other threads run; afterwards all is read-only.
 */
#include "kernel/sysctl/tunable.h"

#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/sysctl/loader_conf.h"
#include "kernel/sysctl/registry.h"
#include "ktr/ktr.h"
#include "ktr/word.h"

#define TUNABLE_KEPT_MAX       32
#define TUNABLE_COMPLAINTS_MAX 10
#define TUNABLE_SHOW_MAX       40                   /* bytes of bad input that a complaint shows */
#define TUNABLE_WORDS          ((const char *)NULL) /* source: the command line */

extern const struct tunable __start_tunables[], __stop_tunables[];

/* A kept setting: of a TUNABLE(), or of a sysctl that waits for the heap. */
struct kept {
	const char *name; /* the declaration's own string */
	char value[LOADER_VALUE_MAX];
	const char *source; /* "loader.conf", or TUNABLE_WORDS */
	unsigned line;
	bool applied; /* of a sysctl: it is set */
};

static struct kept kept[TUNABLE_KEPT_MAX];
static unsigned kept_count;
static unsigned complaints; /* of one source, until complain_total() */
static unsigned refused;    /* of all before it, and of tunable_refuse() */

/*
 * Prints "loader.conf:3: " or "command line: " and the sentence. After TUNABLE_COMPLAINTS_MAX
 * complaints it only counts them.
 */
static void PRINTF_LIKE(3, 4) tunable_warn(const char *source, unsigned line, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	if (complaints++ >= TUNABLE_COMPLAINTS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (source == TUNABLE_WORDS)
		pr_warn("command line: %s\n", text);
	else
		pr_warn("%s:%u: %s\n", source, line, text);
}

static struct kept *
kept_find(const char *name)
{
	for (unsigned i = 0; i < kept_count; i++)
		if (strcmp(kept[i].name, name) == 0)
			return &kept[i];
	return NULL;
}

static void
tunable_keep(const char *name, const char *value, const char *source, unsigned line)
{
	struct kept *k = kept_find(name);

	if (k == NULL && kept_count == TUNABLE_KEPT_MAX) {
		tunable_warn(source, line, "%s: no room left, expected at most %d parameters", name,
			     TUNABLE_KEPT_MAX);
		return;
	}
	if (k == NULL)
		k = &kept[kept_count++];
	k->name = name;
	strlcpy(k->value, value, sizeof(k->value));
	k->source = source;
	k->line = line;
}

static const struct tunable *
declared_find(const char *name)
{
	for (const struct tunable *t = __start_tunables; t < __stop_tunables; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

void
tunable_refuse(const char *name, const char *fmt, ...)
{
	const struct tunable *declared = declared_find(name);
	const char *value = tunable_get(name);
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pr_warn("%s=%s: %s; it is %s\n", name, value != NULL ? value : "", text,
		declared != NULL ? declared->descr : "not declared");
	refused++;
}

unsigned
tunable_refused(void)
{
	return refused;
}

static void
tunable_apply_one(const struct sysctl *s, const char *value, const char *source, unsigned line)
{
	char err[192] = "";
	int error = sysctl_apply(s, value, err, sizeof(err));

	if (error < 0 && err[0] != '\0')
		tunable_warn(source, line, "%s: %s", s->name, err);
	else if (error < 0)
		tunable_warn(source, line, "%s: \"%s\" refused with error %d", s->name, value,
			     -error);
}

static void
complain_unknown(const char *source, unsigned line, const char *name)
{
	struct ktr_suggestion sug;

	/* Suggestions take time: a megabyte of bad input must not delay the boot. */
	if (complaints >= TUNABLE_COMPLAINTS_MAX) {
		complaints++;
		return;
	}
	ktr_suggest_init(&sug, name, strlen(name));
	sysctl_suggest(&sug, SYSCTL_TUN);
	for (const struct tunable *t = __start_tunables; t < __stop_tunables; t++)
		ktr_suggest_try(&sug, t->name);
	if (sug.best != NULL)
		tunable_warn(source, line, "%s: no such parameter; did you mean %s?", name,
			     sug.best);
	else
		tunable_warn(source, line, "%s: no such parameter", name);
}

static void
tunable_set(void *arg, unsigned line, const char *name, const char *value)
{
	const char *source = arg;
	const struct tunable *t = declared_find(name);
	const struct sysctl *s = t == NULL ? sysctl_find(name) : NULL;

	if (t != NULL)
		tunable_keep(t->name, value != NULL ? value : "1", source, line);
	else if (s == NULL)
		complain_unknown(source, line, name);
	else if (value == NULL)
		tunable_warn(source, line, "%s: no value, expected %s=value", name, name);
	else if (!(s->flags & SYSCTL_TUN))
		tunable_warn(source, line, "%s: %s, expected the name of a loader parameter", name,
			     s->flags & SYSCTL_WR ? "a sysctl for later" : "a read-only sysctl");
	else if (s->flags & SYSCTL_LATE)
		tunable_keep(s->name, value, source, line);
	else
		tunable_apply_one(s, value, source, line);
	CTR2(KTR_INIT, "tunable: line %u name %s", line,
	     t != NULL   ? t->name
	     : s != NULL ? s->name
			 : "(unknown)");
}

/* Prints the bytes found, cut, with unprintable ones replaced, and what was expected. */
static void
tunable_complain(void *arg, unsigned line, const char *found, size_t n, const char *expected)
{
	char shown[TUNABLE_SHOW_MAX * 4 + 8];
	struct sbuf out;

	sbuf_init(&out, shown, sizeof(shown));
	for (size_t i = 0; i < n && i < TUNABLE_SHOW_MAX; i++) {
		if ((uint8_t)found[i] < 0x20 || (uint8_t)found[i] >= 0x7f)
			sbuf_printf(&out, "\\x%02x", (uint8_t)found[i]);
		else
			sbuf_putc(&out, found[i]);
	}
	if (n > TUNABLE_SHOW_MAX)
		sbuf_puts(&out, "...");
	if (n == 0)
		tunable_warn(arg, line, "found the end of the line, expected %s", expected);
	else
		tunable_warn(arg, line, "found \"%s\", expected %s", shown, expected);
}

/*
 * Reports how many complaints were not printed, and starts again at 0: each source has its own
 * limit, so errors in the file cannot hide one on the command line.
 */
static void
complain_total(const char *what)
{
	if (complaints > TUNABLE_COMPLAINTS_MAX)
		pr_warn("%s: %u more complaints\n", what, complaints - TUNABLE_COMPLAINTS_MAX);
	refused += complaints;
	complaints = 0;
}

void
tunable_init(const char *conf, size_t conf_size, const char *cmdline)
{
	static char conf_name[] = "loader.conf";
	struct loader_sink sink = {.set = tunable_set, .complain = tunable_complain};

	sink.arg = conf_name;
	if (conf != NULL)
		loader_conf_parse(conf, conf_size, &sink);
	complain_total(conf_name);
	sink.arg = NULL;
	if (cmdline != NULL)
		loader_words_parse(cmdline, strlen(cmdline), &sink);
	complain_total("command line");
}

static void
apply_kept(struct kept *k)
{
	const struct sysctl *s = sysctl_find(k->name);

	if (s != NULL && !k->applied)
		tunable_apply_one(s, k->value, k->source, k->line);
	k->applied = true;
}

void
tunable_apply(const char *name)
{
	struct kept *k = kept_find(name);

	if (k != NULL)
		apply_kept(k);
}

void
tunable_apply_late(void)
{
	sysctl_start();
	for (unsigned i = 0; i < kept_count; i++)
		apply_kept(&kept[i]);
	complain_total("loader parameters");
}

const char *
tunable_get(const char *name)
{
	const struct kept *k = kept_find(name);

	return k != NULL ? k->value : NULL;
}
