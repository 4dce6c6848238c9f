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
#define LOOK_NS    10000000u /* the thread looks so often whether it is wanted */

/* What an instance's word says: the entries of no CPU, of all, of CPU N: DUMP_CPU + N. */
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

/* Prints the next lines. False: there are none. */
static bool
print_next(struct buffer_reader *r)
{
	char line[LINE_BYTES];
	struct sbuf out;
	bool more;

	sbuf_init(&out, line, sizeof(line));
	ktr_port_lock();
	more = print_entry(&out, r);
	ktr_port_unlock();
	if (more)
		printk("%s", line);
	return more;
}

static void
print_all(struct instance *i, unsigned cpu)
{
	static const char rule[] = "---------------------------------\n";
	struct buffer_reader *r = kmap_alloc(sizeof(*r));
	uint64_t entries, written;

	if (r == NULL)
		return;
	ktr_port_lock();
	buffer_count(&i->trace, cpu, &entries, &written);
	ktr_port_unlock();
	buffer_open(r, i, &i->trace, cpu, false);
	printk("Dumping ftrace buffer:\n%s", entries > 0 ? rule : "   (ftrace buffer empty)\n");
	while (print_next(r))
		;
	printk("%s", entries > 0 ? rule : "");
	kmap_free(r);
}

static bool
dump_wanted(struct instance *i, const void *arg)
{
	unsigned what = __atomic_exchange_n(&i->dump, DUMP_NONE, __ATOMIC_ACQUIRE);

	if (what != DUMP_NONE)
		print_all(i, what == DUMP_ALL ? BUFFER_ALL : what - DUMP_CPU);
	return false;
}

static void
dump_thread(void *arg)
{
	for (bool more = true; more;) {
		thread_sleep_ns(LOOK_NS, 0, "ftracedump");
		mutex_lock(&ftrace_lock);
		instances_any(dump_wanted, NULL);
		running = more = users > 0;
		mutex_unlock(&ftrace_lock);
	}
}

int
dump_use(int more)
{
	struct thread *t;

	users += (unsigned)more;
	if (more < 0 || running)
		return 0;
	t = thread_alloc("ftracedump", PRIO_KERN, dump_thread, NULL);
	if (t == NULL) {
		users--;
		return -ENOMEM;
	}
	running = true;
	sched_start(t);
	return 0;
}
