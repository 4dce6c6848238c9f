/*
 * percent.c - buffer_percent: how full a CPU's ring has to be before who reads or polls
 * trace_pipe_raw gets pages. Locking: ftrace_lock for the file.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/instance.h"
#include "ktr/port.h"

void
percent_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%u\n", i->percent);
}

int
percent_store(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t percent;
	int error = tracefs_number(text, &percent);

	if (error != 0 || percent > 100)
		return -EINVAL;
	__atomic_store_n(&i->percent, (unsigned)percent, __ATOMIC_RELAXED);
	return 0;
}

bool
percent_is_reached(const struct vnode *vn, const struct buffer_reader *r)
{
	const struct instance *i = tracefs_instance(vn);
	uint64_t percent = __atomic_load_n(&i->percent, __ATOMIC_RELAXED);
	bool reached = percent == 0 || !r->raw || !instance_is_on(i);

	tracefs_begin(vn);
	ktr_port_lock();
	for (unsigned cpu = 0; cpu < ncpus && !reached; cpu++)
		if (r->cpu == BUFFER_ALL || r->cpu == cpu)
			reached = buffer_count(r->b, cpu).entries * 100 >=
				  percent * (instance_entries(i) - KTR_RING_SPARE);
	ktr_port_unlock();
	tracefs_end();
	return reached;
}
