/*
 * snapshot.c - a copy of a log as it was at one moment: the file `snapshot`, the triggers of that
 * name, and what the latency tracers keep.
 *
 * Where Linux exchanges two buffers, this copies what `trace` shows, and `trace` shows what comes
 * after. So other readers of the main log lose nothing. Each entry keeps its number, and so its
 * slot, if the rings have the same size.
 *
 * Locking: ftrace_lock; snapshot_lock is a spin lock that is held where no hook can run, so that
 * hooks may take it, too. Whoever reads the snapshot keeps it as it is, but for a
 * tracer that ends, which frees it.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"

static void
copy_slot(const struct ktr_ring *from, struct ktr_ring *to, uint64_t seq)
{
	const uint64_t *a = (const uint64_t *)ktr_ring_slot(from, seq);
	uint64_t *b = (uint64_t *)ktr_ring_slot(to, seq);

	for (unsigned n = 0; n < KTR_ENTRY_BYTES / sizeof(*a); n++)
		b[n] = __atomic_load_n(&a[n], __ATOMIC_RELAXED);
}

/* Copies entries from number `least` on. Returns the number after the last; 0: there is no ring. */
static uint64_t
copy_ring(struct instance *i, unsigned cpu, uint64_t least)
{
	const struct ktr_ring *from = ktr_log_ring(i->trace.log, cpu);
	struct ktr_ring *to = ktr_log_ring(&i->copy, cpu);
	uint64_t head, first, fit, tail;

	if (from == NULL || to == NULL)
		return 0;
	head = ktr_ring_head(from);
	first = buffer_later(ktr_ring_tail(from, head), least < head ? least : head);
	fit = to->entries - KTR_RING_SPARE;
	first = buffer_later(first, head > fit ? head - fit : 0);
	for (uint64_t seq = first; seq < head; seq++)
		copy_slot(from, to, seq);
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* as in ktr_ring_copy() */
	tail = ktr_ring_tail(from, ktr_ring_head(from));
	/* What was overwritten meanwhile is the oldest. */
	to->base = tail < head ? buffer_later(first, tail) : head;
	to->head = head * KTR_ENTRY_BYTES;
	i->snapshot.shown[cpu].from = i->snapshot.shown[cpu].cleared = to->base;
	return head;
}

struct work {
	struct instance *i;
	unsigned cpu;
	int readers;  /* come, or go */
	bool *is_new; /* there is memory from now on, or none */
};

static void
snapshot_take_here(void *arg)
{
	const struct work *w = arg;
	struct instance *i = w->i;
	bool takes;

	hook_lock(&i->snapshot_lock);
	takes = i->snapshot_there && i->snapshot_readers == 0;
	for (unsigned cpu = 0; cpu < MAX_CPUS && takes; cpu++)
		if (w->cpu == BUFFER_ALL || w->cpu == cpu)
			buffer_show_from(&i->trace, cpu,
					 copy_ring(i, cpu, i->trace.shown[cpu].from));
	__atomic_store_n(&i->snapshot_taken, takes, __ATOMIC_RELAXED);
	hook_unlock(&i->snapshot_lock);
}

/* What a latency tracer keeps stays; who asks reads Linux's words in the trace. */
void
snapshot_take(struct instance *i, unsigned cpu)
{
	static const char sorry[] = "*** LATENCY TRACER ACTIVE ***\n"
				    "*** Can not use snapshot (sorry) ***";
	struct work w = {.i = i, .cpu = cpu};

	__atomic_store_n(&i->snapshot_taken, false, __ATOMIC_RELAXED);
	if (latency_is_on(i))
		instance_record_data(i, &tracer_mark, (uint64_t[KTR_MAXARGS]){0}, sorry,
				     sizeof(sorry) - 1);
	else
		snapshot_take_here(&w);
}

void
snapshot_keep(struct instance *i, const uint64_t from[MAX_CPUS], const struct latency *l)
{
	bool kept; /* false, too, if another CPU has kept a longer latency meanwhile */

	hook_lock(&i->snapshot_lock);
	kept = i->snapshot_there && i->snapshot_readers == 0 && latency_counts(l);
	for (unsigned cpu = 0; cpu < MAX_CPUS && kept; cpu++)
		copy_ring(i, cpu, from[cpu]);
	if (kept) {
		i->latency = *l;
		__atomic_store_n(&latency_longest_ns, l->ns, __ATOMIC_RELAXED);
	}
	hook_unlock(&i->snapshot_lock);
}

static void
snapshot_change(void *arg)
{
	const struct work *w = arg;

	hook_lock(&w->i->snapshot_lock);
	w->i->snapshot_readers += (unsigned)w->readers;
	if (w->is_new != NULL)
		w->i->snapshot_there = *w->is_new;
	hook_unlock(&w->i->snapshot_lock);
}

void
snapshot_hold(struct instance *i, bool hold)
{
	struct work w = {.i = i, .readers = hold ? 1 : -1};

	ktr_hook_without(snapshot_change, &w);
}

static void
set_there(struct instance *i, bool there)
{
	struct work w = {.i = i, .is_new = &there};

	ktr_hook_without(snapshot_change, &w);
}

int
snapshot_alloc(struct instance *i)
{
	if (i->snapshot_there)
		return 0;
	if (ktr_log_open(&i->copy, instance_entries(i)) != 0)
		return -ENOMEM;
	buffer_forget(&i->snapshot);
	set_there(i, true);
	return 0;
}

void
snapshot_free(struct instance *i)
{
	if (!i->snapshot_there)
		return;
	set_there(i, false);
	ktr_log_close(&i->copy);
}

int
snapshot_use(struct instance *i)
{
	int error = snapshot_alloc(i);

	i->snapshot_users += error == 0;
	return error;
}

void
snapshot_unuse(struct instance *i)
{
	i->snapshot_users--;
}

int
snapshot_store(struct instance *i, uint64_t command, unsigned cpu)
{
	struct work w = {.i = i, .cpu = cpu};
	int error = 0;

	if (latency_is_on(i) || (command <= 1 && i->snapshot_readers > 0))
		return -EBUSY;
	if (command == 0) {
		if (cpu != BUFFER_ALL)
			return -EINVAL;
		if (i->snapshot_users > 0)
			return -EBUSY;
		snapshot_free(i);
	} else if (command == 1) {
		error = snapshot_alloc(i);
		if (error == 0)
			ktr_hook_without(snapshot_take_here, &w);
	} else if (i->snapshot_there) {
		buffer_clear(&i->snapshot, cpu);
	}
	return error;
}

bool
snapshot_is_empty(const struct instance *i, unsigned cpu)
{
	return buffer_count(&i->snapshot, cpu).entries == 0;
}

void
snapshot_print_help(struct sbuf *out, const struct instance *i, unsigned cpu)
{
	sbuf_printf(out, "#\n# * Snapshot is %s *\n#\n# Snapshot commands:\n",
		    i->snapshot_there ? "allocated" : "freed");
	sbuf_puts(out, cpu == BUFFER_ALL
			   ? "# echo 0 > snapshot : Clears and frees snapshot buffer\n"
			     "# echo 1 > snapshot : Allocates snapshot buffer, if not already "
			     "allocated.\n"
			     "#                      Takes a snapshot of the main buffer.\n"
			     "# echo 2 > snapshot : Clears snapshot buffer (but does not allocate "
			     "or free)\n"
			   : "# echo 0 > snapshot : Invalid for per_cpu snapshot file.\n"
			     "# echo 1 > snapshot : Allocates snapshot buffer, if not already "
			     "allocated.\n"
			     "#                      Takes a snapshot of the main buffer for this "
			     "cpu.\n"
			     "# echo 2 > snapshot : Clears this cpu's snapshot buffer (but does "
			     "not allocate)\n");
	sbuf_puts(out, "#                      (Doesn't have to be '2' works with any number that\n"
		       "#                       is not a '0' or '1')\n");
}
