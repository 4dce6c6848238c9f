/*
 * profile.c - function_profile_enabled and trace_stat/functionN: the function profiler, as Linux
 * shows it.
 *
 * When the profiler is switched off, its counters stay to be read until it is switched on again.
 * Locking: ftrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/mm/kmap.h"
#include "kernel/probe/funcprof.h"
#include "kernel/sync/pcpu.h"
#include "ktr/control.h"

/* A function's counters on one CPU. */
struct row {
	const char *name;
	struct funcprof p;
};

/* The rows of a CPU whose functions were called, the longest time first. */
struct rows {
	struct row *rows; /* of kmap_alloc() */
	unsigned count;
};

static unsigned owner;             /* 0: it is off */
static struct rows kept[MAX_CPUS]; /* from when it was switched off */

static bool
profile_site_wanted(const struct ktr_site *site, void *arg)
{
	return functions_traced(&instance_top.functions, site);
}

/* Copies up to `room` rows of a CPU. Returns how many it found. */
static unsigned
copy_rows(unsigned cpu, struct row *to, unsigned room)
{
	struct row row;
	unsigned n = 0;

	for (unsigned i = 0; (row.name = funcprof_get(i, cpu, &row.p)) != NULL; i++) {
		if (row.p.hits == 0 && row.p.timed == 0)
			continue;
		if (n < room)
			to[n] = row;
		n++;
	}
	return n < room || to == NULL ? n : room;
}

/* Without the option graph-time, the time of what a function calls does not count. */
static uint64_t
profile_ns(const struct funcprof *p)
{
	return option_on(&instance_top, OPTION_GRAPH_TIME) ? p->ns : p->self_ns;
}

static bool
is_before(const struct row *a, const struct row *b)
{
	uint64_t an = profile_ns(&a->p), bn = profile_ns(&b->p);

	return an != bn ? an > bn : a->p.hits > b->p.hits;
}

/* Heap sort, first half: rows[i] is no later than those under it. */
static void
profile_sift_row(struct row *rows, unsigned i, unsigned n)
{
	for (unsigned child; (child = 2 * i + 1) < n; i = child) {
		struct row row = rows[i];

		if (child + 1 < n && is_before(&rows[child], &rows[child + 1]))
			child++;
		if (!is_before(&row, &rows[child]))
			return;
		rows[i] = rows[child];
		rows[child] = row;
	}
}

static void
profile_sort_rows(struct row *rows, unsigned n)
{
	for (unsigned i = n / 2; i-- > 0;)
		profile_sift_row(rows, i, n);
	for (unsigned end = n; end-- > 1;) {
		struct row last = rows[0];

		rows[0] = rows[end];
		rows[end] = last;
		profile_sift_row(rows, 0, end);
	}
}

static struct rows
make_rows(unsigned cpu)
{
	unsigned n = copy_rows(cpu, NULL, 0);
	struct rows r = {n > 0 ? kmap_alloc(n * sizeof(*r.rows)) : NULL, 0};

	if (r.rows != NULL) {
		r.count = copy_rows(cpu, r.rows, n);
		profile_sort_rows(r.rows, r.count);
	}
	return r;
}

/* ---- function_profile_enabled ---- */

static void
profile_forget(void)
{
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
		kmap_free(kept[cpu].rows);
		kept[cpu] = (struct rows){NULL, 0};
	}
}

void
profile_update(void)
{
	if (owner != 0)
		ktr_select_all(owner, profile_site_wanted, NULL);
}

static int
profile_start(void)
{
	int error = funcprof_start(), n;

	if (error != 0)
		return error;
	n = ktr_owner_register("ftrace profile", funcprof_count);
	if (n < 0) {
		funcprof_stop();
		return -EBUSY;
	}
	profile_forget();
	owner = (unsigned)n;
	funcprof_pause(true);
	profile_update();
	funcprof_pause(false);
	return 0;
}

static void
profile_stop(void)
{
	int error;

	funcprof_pause(true);
	error = ktr_owner_unregister(owner);
	if (error != 0)
		panic("ftrace profile: error %d", error);
	owner = 0;
	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		kept[cpu] = make_rows(cpu);
	funcprof_stop();
}

void
profile_show_enabled(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%d\n", owner != 0);
}

int
profile_store_enabled(struct instance *i, uintptr_t arg, char *text)
{
	bool on;
	int error = tracefs_bool(text, &on);

	if (error != 0 || on == (owner != 0))
		return error;
	if (on)
		return profile_start();
	profile_stop();
	return 0;
}

/* ---- trace_stat ---- */

/* The variance of the times of profile_ns(), in thousandths of us^2. */
static uint64_t
profile_variance(const struct funcprof *p)
{
	const uint64_t *sum =
	    option_on(&instance_top, OPTION_GRAPH_TIME) ? p->square : p->self_square;
	unsigned __int128 square = (unsigned __int128)sum[1] << 64 | sum[0];
	unsigned __int128 mean = p->timed > 0 ? profile_ns(p) / p->timed : 0;
	unsigned __int128 times = mean * profile_ns(p);
	unsigned __int128 rest = square - times; /* of n * variance, nearly */

	/* Another CPU may have counted a time, and its square not yet. */
	if (p->timed < 2 || square < times)
		return 0;
	/* Done without a division of 128 bits, which the kernel does not have. */
	unsigned shift = 0;
	while (rest >> shift > UINT64_MAX)
		shift++;
	rest = (unsigned __int128)((uint64_t)(rest >> shift) / (p->timed - 1) / 1000) << shift;
	return rest < UINT64_MAX ? (uint64_t)rest : UINT64_MAX;
}

static void
profile_stat_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	unsigned cpu = (unsigned)arg;
	struct rows r = owner != 0 ? make_rows(cpu) : kept[cpu];

	sbuf_puts(
	    out,
	    "  Function                               Hit    Time            Avg"
	    "             s^2\n"
	    "  --------                               ---    ----            ---             ---\n");
	for (unsigned n = 0; n < r.count; n++) {
		const struct funcprof *p = &r.rows[n].p;

		sbuf_printf(out, "  %-30.30s  %10lu    ", r.rows[n].name, p->hits);
		print_duration(out, profile_ns(p));
		sbuf_puts(out, "    ");
		print_duration(out, p->timed > 0 ? profile_ns(p) / p->timed : 0);
		sbuf_puts(out, "    ");
		print_duration(out, profile_variance(p));
		sbuf_putc(out, '\n');
	}
	if (owner != 0)
		kmap_free(r.rows);
}

static void
stat_fill(struct vnode *dir)
{
	static const struct tracefs_file file = {.mode = 0440, .show = profile_stat_show};
	char name[24];

	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		snprintf(name, sizeof(name), "function%u", cpu);
		tracefs_add(dir, &file, name, cpu);
	}
}

const struct tracefs_file profile_dir = {.name = "trace_stat", .mode = 0750, .fill = stat_fill};
