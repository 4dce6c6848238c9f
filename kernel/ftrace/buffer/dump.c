/*
 * dump.c - what FUNCTION:dump and FUNCTION:cpudump in set_ftrace_filter do: the trace comes out on
 * the console, as Linux's ftrace_dump() prints it.
 *
 * A hook must not print. It stops the recording, so that the entries stay, and asks a thread, which
 * is there while there are such triggers. Each instance has a word that says what is asked for.
 * Locking: ftrace_lock; the word is atomic.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/instance.h"
#include "kernel/mm/kmap.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "ktr/port.h"

#define LINE_BYTES 1024
#define RULE       "---------------------------------\n"
#define LOOK_NS    10000000u /* the thread looks so often whether it is wanted */

/* Values of instance.dump: print the entries of no CPU, of all CPUs, or, DUMP_CPU + N, of CPU N. */
enum { DUMP_NONE, DUMP_ALL, DUMP_CPU };

static unsigned users;
static bool running; /* there is a thread */

void
dump_ask(struct instance *i, unsigned cpu)
{
	unsigned nobody = DUMP_NONE;

	instance_switch_in_hook(i, false);
	__atomic_compare_exchange_n(&i->dump, &nobody,
				    cpu == BUFFER_ALL ? DUMP_ALL : DUMP_CPU + cpu, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* The first lines, and makes ready for the others, if there are any. ftrace_lock held. */
static bool
dump_begin(struct instance *i, unsigned cpu, struct buffer_reader *r)
{
	uint64_t entries;

	ktr_port_lock();
	entries = buffer_count(&i->trace, cpu).entries;
	ktr_port_unlock();
	buffer_open(r, i, &i->trace, cpu, false);
	r->dump = true;
	printk("Dumping ftrace buffer:\n%s", entries > 0 ? RULE : "   (ftrace buffer empty)\n");
	i->users += entries > 0;
	return entries > 0;
}

/* Makes the next lines. There are none: prints the last one. ftrace_lock held. */
static bool
dump_next(struct instance *i, struct buffer_reader *r, struct sbuf *out)
{
	bool more;

	ktr_port_lock();
	more = print_entry(out, r);
	ktr_port_unlock();
	if (more)
		return true;
	printk("%s", RULE);
	i->users--;
	return false;
}

/* What an instance has asked for. */
struct asked {
	struct instance *i;
	unsigned cpu;
};

static bool
dump_wanted(struct instance *i, const void *arg)
{
	struct asked *asked = *(struct asked *const *)arg;
	unsigned what = __atomic_exchange_n(&i->dump, DUMP_NONE, __ATOMIC_ACQUIRE);

	*asked = (struct asked){i, what == DUMP_ALL ? BUFFER_ALL : what - DUMP_CPU};
	return what != DUMP_NONE;
}

/* Prints the trace of one instance that asks for it. Lends ftrace_lock to others while the
 * console takes a line. False if no instance asks. ftrace_lock held. */
static bool
dump_one(struct buffer_reader *r)
{
	struct asked asked, *to = &asked;
	char line[LINE_BYTES];
	struct sbuf out;

	if (!instances_any(dump_wanted, &to))
		return false;
	if (!dump_begin(asked.i, asked.cpu, r))
		return true;
	while (sbuf_init(&out, line, sizeof(line)), dump_next(asked.i, r, &out)) {
		mutex_unlock(&ftrace_lock);
		printk("%s", line);
		mutex_lock(&ftrace_lock);
	}
	return true;
}

static void
dump_thread(void *arg)
{
	struct buffer_reader *r = arg;

	for (bool more = true; more;) {
		thread_sleep_ns(LOOK_NS, 0, "ftracedump");
		mutex_lock(&ftrace_lock);
		while (dump_one(r))
			;
		running = more = users > 0;
		mutex_unlock(&ftrace_lock);
	}
	kmap_free(r);
}

int
dump_use(int more)
{
	struct buffer_reader *r;
	struct thread *t;

	users += (unsigned)more;
	if (more < 0 || running)
		return 0;
	r = kmap_alloc(sizeof(*r));
	t = r != NULL ? thread_alloc("ftracedump", PRIO_KERN, dump_thread, r) : NULL;
	if (t == NULL) {
		kmap_free(r);
		users--;
		return -ENOMEM;
	}
	running = true;
	wake_up_new_task(t);
	return 0;
}
