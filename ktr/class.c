/*
 * class.c - the table of classes, and the one parser of masks and CPU sets.
 * Locking: none.
 */
#include "ktr/class.h"

#include "ktr/fmt.h"
#include "ktr/str.h"
#include "ktr/word.h"

#define EINVAL_ 22

const struct ktr_class ktr_classes[] = {
#define KTR_CLASS(name, bit, text) {bit, #name, text},
#include "ktr/classes.def"
#undef KTR_CLASS
};
const unsigned ktr_class_count = sizeof(ktr_classes) / sizeof(ktr_classes[0]);

/* A word of the text that is parsed: not NUL-terminated. */
struct word {
	const char *text;
	size_t len;
};

static bool
word_is(struct word w, const char *name)
{
	size_t i = 0;
	while (i < w.len && name[i] != '\0' && ktr_upper(w.text[i]) == name[i])
		i++;
	return i == w.len && name[i] == '\0';
}

static struct word
word_without_prefix(struct word w)
{
	const char *prefix = "KTR_";
	for (size_t i = 0; i < 4; i++)
		if (i >= w.len || ktr_upper(w.text[i]) != prefix[i])
			return w;
	return (struct word){w.text + 4, w.len - 4};
}

static bool
word_number(struct word w, uint64_t *value)
{
	return ktr_number(w.text, w.len, 0, value) == KTR_NUMBER_OK;
}

static const struct ktr_class *
class_find(struct word w)
{
	for (unsigned i = 0; i < ktr_class_count; i++)
		if (word_is(w, ktr_classes[i].name))
			return &ktr_classes[i];
	return NULL;
}

/* The class that was probably meant; NULL: no name is similar. */
static const char *
class_suggest(struct word w)
{
	struct ktr_suggestion s;
	ktr_suggest_init(&s, w.text, w.len);
	for (unsigned i = 0; i < ktr_class_count; i++)
		ktr_suggest_try(&s, ktr_classes[i].name);
	return s.best;
}

static int
mask_error(struct word w, char *err, size_t errlen)
{
	int shown = w.len > 40 ? 40 : (int)w.len;
	const char *dots = w.len > 40 ? "…" : "";
	const char *meant = class_suggest(word_without_prefix(w));
	if (err == NULL)
		return -EINVAL_;
	if (w.len == 0)
		fmt_snprintf(err, errlen,
			     "empty class name; expected names such as SCHED,PROC, a number, ALL "
			     "or NONE");
	else if (w.text[0] >= '0' && w.text[0] <= '9')
		fmt_snprintf(err, errlen,
			     "\"%.*s%s\" is not a number of at most 64 bits, decimal or 0x…", shown,
			     w.text, dots);
	else if (meant != NULL)
		fmt_snprintf(err, errlen, "no class \"%.*s%s\"; did you mean %s?", shown, w.text,
			     dots, meant);
	else
		fmt_snprintf(
		    err, errlen,
		    "no class \"%.*s%s\"; expected names such as SCHED,PROC, a number, ALL "
		    "or NONE",
		    shown, w.text, dots);
	return -EINVAL_;
}

static bool
class_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next word of a list, without the spaces around it. *text moves past its separator. */
static struct word
word_next(const char **text, const char *separators)
{
	const char *p = *text;
	while (class_is_space(*p))
		p++;
	const char *start = p;
	while (*p != '\0' && *p != separators[0] && *p != separators[1])
		p++;
	const char *end = p;
	while (end > start && class_is_space(end[-1]))
		end--;
	*text = p;
	return (struct word){start, (size_t)(end - start)};
}

/* The classes of one word. False: the word is not known. */
static bool
word_classes(struct word w, uint64_t *classes)
{
	struct word name = word_without_prefix(w);
	const struct ktr_class *class = class_find(name);
	if (class != NULL)
		*classes = class->bit;
	else if (word_is(name, "ALL"))
		*classes = KTR_ALL;
	else if (word_is(name, "NONE"))
		*classes = 0;
	else
		return word_number(w, classes);
	return true;
}

int
ktr_mask_parse_change(const char *text, uint64_t *on, uint64_t *off, char *err, size_t errlen)
{
	uint64_t set = 0, clear = 0;
	bool change = false;
	for (bool first = true;; first = false, text++) {
		uint64_t classes;
		struct word w = word_next(&text, ",|");
		char sign = w.len > 1 && (w.text[0] == '+' || w.text[0] == '-') ? w.text[0] : '\0';
		if (sign != '\0')
			w = (struct word){w.text + 1, w.len - 1};
		if (!word_classes(w, &classes))
			return mask_error(w, err, errlen);
		if (first)
			change = sign != '\0';
		set = sign == '-' ? set & ~classes : set | classes;
		clear = sign == '-' ? clear | classes : clear & ~classes;
		if (*text == '\0')
			break;
	}
	*on = set;
	*off = change ? clear : ~set;
	return 0;
}

int
ktr_mask_parse(const char *text, uint64_t *mask, char *err, size_t errlen)
{
	uint64_t on, off;
	int error = ktr_mask_parse_change(text, &on, &off, err, errlen);
	if (error == 0 && on != ~off) {
		if (err != NULL)
			fmt_snprintf(err, errlen,
				     "\"%.40s\" changes a mask, and there is none; expected names "
				     "such as SCHED,PROC, a number, ALL or NONE",
				     text);
		return -EINVAL_;
	}
	if (error == 0)
		*mask = on;
	return error;
}

/* Text that is added piece by piece to a buffer; counts the whole length, as snprintf() does. */
struct text {
	char *buf;
	size_t len;
	int used;
};

__attribute__((format(printf, 2, 3))) static void
text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	size_t at = (size_t)t->used < t->len ? (size_t)t->used : t->len;
	t->used += fmt_vsnprintf(t->len == 0 ? NULL : t->buf + at, t->len - at, fmt, ap);
	va_end(ap);
}

int
ktr_mask_print(uint64_t mask, char *buf, size_t len)
{
	struct text t = {buf, len, 0};
	if (mask == KTR_ALL || mask == 0) {
		text_add(&t, "%s", mask == 0 ? "NONE" : "ALL");
		return t.used;
	}
	for (unsigned i = 0; i < ktr_class_count; i++) {
		if ((mask & ktr_classes[i].bit) == 0)
			continue;
		text_add(&t, "%s%s", t.used > 0 ? "," : "", ktr_classes[i].name);
		mask &= ~ktr_classes[i].bit;
	}
	if (mask != 0)
		text_add(&t, "%s0x%llx", t.used > 0 ? "," : "", (unsigned long long)mask);
	return t.used;
}

static int
cpumask_error(struct word w, const char *what, char *err, size_t errlen)
{
	if (err != NULL)
		fmt_snprintf(err, errlen, "\"%.*s\": %s; expected CPUs such as 0-3,5, all, or 0x…",
			     w.len > 40 ? 40 : (int)w.len, w.text, what);
	return -EINVAL_;
}

/* "N" or "N-M" */
static const char *
cpumask_range(struct word w, uint64_t *cpus)
{
	size_t dash = 0;
	while (dash < w.len && w.text[dash] != '-')
		dash++;
	uint64_t low, high;
	if (!word_number((struct word){w.text, dash}, &low))
		return "not a CPU number";
	high = low;
	if (dash < w.len && !word_number((struct word){w.text + dash + 1, w.len - dash - 1}, &high))
		return "not a range of CPU numbers";
	if (low > 63 || high > 63)
		return "CPUs are numbered 0 to 63";
	if (low > high)
		return "the range runs backwards";
	for (; low <= high; low++)
		*cpus |= 1ull << low;
	return NULL;
}

int
ktr_cpumask_parse(const char *text, uint64_t *cpus, char *err, size_t errlen)
{
	uint64_t sum = 0;
	for (;; text++) {
		uint64_t value;
		struct word w = word_next(&text, ",,");
		const char *what = NULL;
		if (word_is(w, "ALL"))
			sum = ~(uint64_t)0;
		else if (w.len > 2 && w.text[0] == '0' && ktr_upper(w.text[1]) == 'X' &&
			 word_number(w, &value))
			sum |= value;
		else if (!word_is(w, "NONE"))
			what = cpumask_range(w, &sum);
		if (what != NULL)
			return cpumask_error(w, what, err, errlen);
		if (*text == '\0')
			break;
	}
	*cpus = sum;
	return 0;
}

int
ktr_cpumask_print(uint64_t cpus, char *buf, size_t len)
{
	struct text t = {buf, len, 0};
	if (cpus == 0 || cpus == ~(uint64_t)0) {
		text_add(&t, "%s", cpus == 0 ? "none" : "all");
		return t.used;
	}
	for (unsigned cpu = 0; cpu < 64; cpu++) {
		if ((cpus >> cpu & 1) == 0)
			continue;
		unsigned last = cpu;
		while (last < 63 && (cpus >> (last + 1) & 1) != 0)
			last++;
		text_add(&t, "%s%u", t.used > 0 ? "," : "", cpu);
		if (last > cpu)
			text_add(&t, "-%u", last);
		cpu = last;
	}
	return t.used;
}
