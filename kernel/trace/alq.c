/*
 * alq.c - debug.ktr.alq_*: the file flush, under FreeBSD's names.
 * Locking: the flush's own (flush.c).
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/trace/trace_private.h"

static void
enable_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_putc(out, flush_enabled() ? '1' : '0');
}

static int
enable_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	int on = 0, error = trace_parse_int(s, val, 0, 1, &on, err, errlen);

	if (error < 0)
		return error;
	error = flush_set_enabled(on);
	if (error == -ENXIO)
		snprintf(err, errlen, "%s: this machine has no second serial line", flush_file());
	else if (error == -ENOMEM)
		snprintf(err, errlen, "no memory for a buffer of %u KiB", flush_depth());
	else if (error < 0)
		snprintf(err, errlen, "cannot open %s (error %d)", flush_file(), -error);
	return error;
}

static void
file_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_puts(out, flush_file());
}

static int
file_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	int error = flush_set_file(val);

	(void)s;
	if (error == -EINVAL)
		snprintf(err, errlen,
			 "\"%s\": expected an absolute path of less than %d characters", val,
			 TRACE_PATH_MAX);
	else if (error == -ENXIO)
		snprintf(err, errlen, "%s: this machine has no second serial line", val);
	else if (error < 0)
		snprintf(err, errlen, "cannot open %s (error %d); the stream stays with %s", val,
			 -error, flush_file());
	return error;
}

static void
depth_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%u", flush_depth());
}

static int
depth_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	int kib = 0, error = trace_parse_int(s, val, 16, 4096, &kib, err, errlen);

	if (error == 0)
		flush_set_depth((unsigned)kib);
	return error;
}

static void
max_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%llu", (unsigned long long)flush_max());
}

static int
max_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	uint64_t max = 0;
	struct sysctl one = {.name = s->name, .type = SYSCTL_TYPE_U64, .var = &max};
	int error = sysctl_apply(&one, val, err, errlen);

	if (error == 0)
		flush_set_max(max);
	return error;
}

static void
cnt_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%llu", (unsigned long long)flush_written());
}

static void
failed_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%llu", (unsigned long long)flush_failed());
}

SYSCTL_PROC(debug_ktr_alq_enable, "debug.ktr.alq_enable", SYSCTL_TYPE_INT,
	    SYSCTL_WR | SYSCTL_TUN | SYSCTL_LATE, enable_get, enable_set,
	    "write the events to alq_file");
SYSCTL_PROC(debug_ktr_alq_file, "debug.ktr.alq_file", SYSCTL_TYPE_TEXT, SYSCTL_WR | SYSCTL_TUN,
	    file_get, file_set, "where the events go; a file is appended to");
SYSCTL_PROC(debug_ktr_alq_depth, "debug.ktr.alq_depth", SYSCTL_TYPE_INT, SYSCTL_WR | SYSCTL_TUN,
	    depth_get, depth_set,
	    "KiB of encoded events that are written at once, from the next enabling on");
SYSCTL_PROC(debug_ktr_alq_max, "debug.ktr.alq_max", SYSCTL_TYPE_U64, SYSCTL_WR | SYSCTL_TUN,
	    max_get, max_set, "the flush ends soon after so many events; 0 is without end");
SYSCTL_PROC(debug_ktr_alq_cnt, "debug.ktr.alq_cnt", SYSCTL_TYPE_U64, 0, cnt_get, NULL,
	    "events that alq_file has taken since the flush was enabled");
SYSCTL_PROC(debug_ktr_alq_failed, "debug.ktr.alq_failed", SYSCTL_TYPE_U64, 0, failed_get, NULL,
	    "events overwritten since then before alq_file took them");
