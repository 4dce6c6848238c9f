/*
 * alq.c - debug.ktr.alq_*: the file flush, under FreeBSD's names.
 * Locking: the flush's own (flush.c).
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/trace/trace_private.h"

#define INTERRUPTED "interrupted; the stream ends when its last events are written"

static int
enable_set(int64_t on, char *err, size_t errlen)
{
	int error = flush_set_enabled(on == 1);
	char path[TRACE_PATH_MAX];

	flush_get_file(path);
	if (error == -ENXIO && trace_sink_missing(path) != NULL)
		snprintf(err, errlen, "%s: %s", path, trace_sink_missing(path));
	else if (error == -EINTR)
		snprintf(err, errlen, INTERRUPTED);
	else if (error == -ENOMEM)
		snprintf(err, errlen, "no memory for a buffer of %u entries", flush_depth());
	else if (error < 0)
		snprintf(err, errlen, "cannot open %s (error %d)", path, -error);
	return error;
}

static void
file_get(const struct sysctl *s, struct sbuf *out)
{
	char path[TRACE_PATH_MAX];

	flush_get_file(path);
	sbuf_puts(out, path);
}

static int
file_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	int error = flush_set_file(val);
	char path[TRACE_PATH_MAX];

	flush_get_file(path);
	if (error == -EINVAL)
		snprintf(err, errlen,
			 "\"%s\": expected an absolute path of less than %d characters", val,
			 TRACE_PATH_MAX);
	else if (error == -ENXIO && trace_sink_missing(val) != NULL)
		snprintf(err, errlen, "%s: %s", val, trace_sink_missing(val));
	else if (error == -EINTR)
		snprintf(err, errlen, INTERRUPTED);
	else if (error < 0)
		snprintf(err, errlen, "cannot open %s (error %d); the stream stays with %s", val,
			 -error, path);
	return error;
}

static int
depth_set(int64_t entries, char *err, size_t errlen)
{
	flush_set_depth((unsigned)entries);
	return 0;
}

static int
max_set(int64_t events, char *err, size_t errlen)
{
	flush_set_max((uint64_t)events);
	return 0;
}

static uint64_t
alq_enabled(void)
{
	return flush_enabled();
}

static uint64_t
alq_depth(void)
{
	return flush_depth();
}

SYSCTL_INT_CALL(debug_ktr_alq_enable, "debug.ktr.alq_enable",
		SYSCTL_WR | SYSCTL_TUN | SYSCTL_LATE | SYSCTL_FREE, alq_enabled, enable_set, 0, 1,
		"write the events to alq_file");
SYSCTL_TEXT(debug_ktr_alq_file, "debug.ktr.alq_file", SYSCTL_WR | SYSCTL_TUN | SYSCTL_FREE,
	    file_get, file_set, "where the events go; a file is appended to");
SYSCTL_INT_CALL(debug_ktr_alq_depth, "debug.ktr.alq_depth", SYSCTL_WR | SYSCTL_TUN, alq_depth,
		depth_set, 1, 65536,
		"entries for which the write buffer has room, from the next enabling on");
SYSCTL_U64_CALL(debug_ktr_alq_max, "debug.ktr.alq_max", SYSCTL_WR | SYSCTL_TUN, flush_max, max_set,
		"the flush ends after so many events; 0 is without end");
SYSCTL_U64_CALL(debug_ktr_alq_cnt, "debug.ktr.alq_cnt", 0, flush_written, NULL,
		"events that alq_file has taken since the flush was enabled");
SYSCTL_U64_CALL(debug_ktr_alq_failed, "debug.ktr.alq_failed", 0, flush_failed, NULL,
		"events overwritten since then before alq_file took them");
