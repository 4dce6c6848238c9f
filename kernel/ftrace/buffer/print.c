/*
 * print.c - entries in Linux's layout: Documentation/trace/ftrace.rst, "Output format", and
 * "function_graph".
 *
 * The log does not record whether interrupts were off and the like: the flags are "X....", where X
 * is Linux's letter for "not supported". The caller, a reader, holds the locks (buffer.h).
 */
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/sync/pcpu.h"
#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/ring.h"
#include "ktr/wire.h"
#include "ktr/word.h"

#define COMM_GRAPH 7  /* characters of a thread's name in funcgraph-proc */
#define PROC_WIDTH 14 /* … and of name and number */

/* What the columns of a line are: with flags, with the number of the process? */
static void
print_column_heads(struct sbuf *out, bool flags, bool tgid)
{
	static const char *const arrows[] = {"  _-----=> irqs-off/BH-disabled",
					     " / _----=> need-resched",
					     "| / _---=> hardirq/softirq",
					     "|| / _--=> preempt-depth",
					     "||| / _-=> migrate-disable",
					     "|||| /     delay"};
	int wide = tgid ? 12 : 2;

	for (unsigned n = 0; flags && n < sizeof(arrows) / sizeof(arrows[0]); n++)
		sbuf_printf(out, "#%28s%*s%s\n", "", wide, "", arrows[n]);
	if (flags)
		sbuf_printf(out,
			    "#           TASK-PID  %.*s CPU#  |||||  TIMESTAMP  FUNCTION\n"
			    "#              | |    %.*s   |   |||||     |         |\n",
			    wide, "     TGID   ", wide, "       |    ");
	else
		sbuf_printf(out,
			    "#           TASK-PID    %s CPU#     TIMESTAMP  FUNCTION\n"
			    "#              | |      %s   |         |         |\n",
			    tgid ? "   TGID   " : "", tgid ? "     |    " : "");
}

void
print_head(struct sbuf *out, const struct buffer_reader *r)
{
	struct buffer_counts n;

	sbuf_printf(out, "# tracer: %s\n#\n", tracer_name(r->i));
	if (r->i->tracer == TRACER_GRAPH) {
		bool abs = option_on(r->i, OPTION_GRAPH_ABSTIME),
		     cpu = option_on(r->i, OPTION_GRAPH_CPU);
		bool proc = option_on(r->i, OPTION_GRAPH_PROC),
		     time = option_on(r->i, OPTION_GRAPH_DURATION);

		sbuf_printf(out, "#%s%s%s%s               FUNCTION CALLS\n",
			    abs ? "     TIME       " : "", cpu ? " CPU" : "",
			    proc ? "  TASK/PID       " : "", time ? "  DURATION   " : "");
		sbuf_printf(out, "#%s%s%s%s               |   |   |   |\n",
			    abs ? "      |         " : "", cpu ? " |  " : "",
			    proc ? "   |    |        " : "", time ? "   |   |      " : "");
		return;
	}
	if (option_on(r->i, OPTION_BLK_CLASSIC) && r->i->tracer == TRACER_BLK) {
		blk_print_head(out);
		return;
	}
	if (r->i->tracer >= TRACER_OSNOISE && !latency_layout(r->i)) {
		(r->i->tracer == TRACER_OSNOISE ? osnoise_print_head : timerlat_print_head)(out);
		return;
	}
	n = buffer_count(r->b, r->cpu);
	if (latency_layout(r->i)) {
		latency_print_head(out, r->i, n.entries, n.written);
		return;
	}
	sbuf_printf(out, "# entries-in-buffer/entries-written: %lu/%lu   #P:%u\n#\n", n.entries,
		    n.written, ncpus);
	if (!option_on(r->i, OPTION_CONTEXT_INFO))
		return;
	print_column_heads(out, option_on(r->i, OPTION_IRQ_INFO),
			   option_on(r->i, OPTION_RECORD_TGID));
}

uint32_t
print_thread(const struct ktr_entry *e, char name[KTR_THREAD_NAME])
{
	if (ktr_thread_name_get(e->tid, name) == NULL)
		strlcpy(name, "<...>", KTR_THREAD_NAME);
	printk_hide_controls(name); /* its user may have chosen it */
	if (strncmp(name, "idle/", 5) != 0)
		return e->tid;
	strlcpy(name, "<idle>", KTR_THREAD_NAME);
	return 0;
}

static uint64_t
time_us(const struct ktr_entry *e)
{
	return clock_ns_of(e->ticks) / 1000;
}

static void
print_context(struct sbuf *out, const struct buffer_reader *r, const struct ktr_entry *e,
	      unsigned cpu)
{
	char name[KTR_THREAD_NAME];
	uint32_t tid = print_thread(e, name);
	uint64_t us = time_us(e);

	sbuf_printf(out, "%16s-%-7u ",
		    option_on(r->i, OPTION_RECORD_CMD) || tid == 0 ? name : "<...>", tid);
	if (option_on(r->i, OPTION_RECORD_TGID)) {
		uint32_t tgid = proc_number_of(tid);

		sbuf_printf(out, tgid != 0 ? "(%7u) " : "(-------) ", tgid);
	}
	sbuf_printf(out, "[%03u] %s%5lu.%06lu: ", cpu,
		    option_on(r->i, OPTION_IRQ_INFO) ? "X.... " : "", us / 1000000, us % 1000000);
}

/* A place in a function, as the options sym-offset and sym-addr want it. */
static void
trace_print_symbol(struct sbuf *out, const struct buffer_reader *r, uintptr_t at)
{
	uintptr_t offset;
	const char *name = ksym_lookup(at, &offset);

	if (option_on(r->i, OPTION_SYM_OFFSET))
		print_address(out, at);
	else
		sbuf_puts(out, name != NULL ? name : "0x0");
	if (option_on(r->i, OPTION_SYM_ADDR))
		sbuf_printf(out, " <%lx>", at);
}

const char *
stack_text(const struct ktr_log *log, unsigned cpu, uint64_t seq, uint64_t word,
	   char text[KTR_STRING_MAX])
{
	uint32_t n = ktr_data_bytes(log, cpu, seq, word, text, KTR_STRING_MAX - 1);

	if (n < ktr_data_middle(word)) /* the rest was overwritten, with a part of the last place */
		while (n > 0 && text[--n] != ' ')
			;
	text[n] = '\0';
	return text;
}

const char *
stack_next(const char *text, uintptr_t *at)
{
	char name[KTR_STRING_MAX];
	uint64_t offset = 0;
	size_t n = 0, end;

	while (text[n] != '\0' && text[n] != '+' && text[n] != ' ')
		n++;
	strlcpy(name, text, n + 1);
	for (end = n; text[end] != '\0' && text[end] != ' '; end++)
		;
	if (end > n && ktr_number(text + n + 1, end - n - 1, 0, &offset) != KTR_NUMBER_OK)
		offset = 0;
	*at = ksym_address(name) + offset;
	return text + end + (text[end] == ' ');
}

static void
trace_print_stack(struct sbuf *out, const struct buffer_reader *r, const char *text)
{
	sbuf_puts(out, "<stack trace>");
	while (*text != '\0') {
		uintptr_t at;

		text = stack_next(text, &at);
		sbuf_puts(out, "\n => ");
		trace_print_symbol(out, r, at);
	}
}

/* Addresses in a program, whose names the kernel does not know. */
static void
trace_print_user_stack(struct sbuf *out, const char *text)
{
	sbuf_puts(out, "<user stack trace>");
	for (size_t n; *text != '\0'; text += n + (text[n] == ' ')) {
		for (n = 0; text[n] != '\0' && text[n] != ' '; n++)
			;
		sbuf_printf(out, "\n =>  <%.*s>", (int)n, text);
	}
}

/* The option annotate: after entries were lost, a line says where those of a CPU begin. */
static void
print_start(struct sbuf *out, struct buffer_reader *r, unsigned cpu)
{
	if (!r->annotated && !r->consume && option_on(r->i, OPTION_ANNOTATE))
		r->annotates = buffer_count(r->b, BUFFER_ALL).overrun > 0;
	if (r->annotates && r->annotated && (r->started >> cpu & 1) == 0)
		sbuf_printf(out, "##### CPU %u buffer started ####\n", cpu);
	r->annotated = true;
	r->started |= 1ull << cpu;
}

/* Is it a mark, of which the option printk-msg-only shows the text alone? */
static bool
is_bare(const struct buffer_reader *r, const struct ktr_entry *e)
{
	return option_on(r->i, OPTION_PRINTK_MSG_ONLY) && ktr_site_get(e->site) == &tracer_mark;
}

/* As Linux prints it: the state of the thread that goes is a letter. */
static void
name_state(char *fmt, struct ktr_entry *e)
{
	static const char *const letters[] = {[0] = "R", [1] = "S", [2] = "D", [16] = "X"};
	char *at = strstr(fmt, "prev_state=%ld");

	if (at == NULL || e->args[3] >= sizeof(letters) / sizeof(letters[0]))
		return;
	at += sizeof("prev_state=") - 1;
	memmove(at + 1, at + 2, strlen(at + 1)); /* %d, and then: */
	at[1] = 's';
	e->args[3] = (uintptr_t)letters[e->args[3]];
}

/* Prints an event of the log, or of a probe, in one line. */
static void
print_logged(struct sbuf *out, const struct buffer_reader *r, const struct ktr_entry *e,
	     unsigned cpu, uint64_t seq)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	char name[EVENT_NAME], fmt[EVENT_FORMAT];

	if (!event_is_call(site)) { /* calls say what they are, as on Linux */
		event_name(site, name);
		sbuf_printf(out, "%s: ", name);
	}
	if (site->kind >= KTR_SITE_MADE && kprobes_print(out, site, e))
		return;
	if (event_is_raw_call(site)) {
		uint64_t last[2];

		if (site->sdt->last == NULL) {
			sbuf_printf(out, EVENT_RAW_EXIT, e->args[0], e->args[1]);
			return;
		}
		raw_last(r->b->log, e, cpu, seq, last);
		sbuf_printf(out, EVENT_RAW_ENTER, e->args[0], e->args[1], e->args[2], e->args[3],
			    e->args[4], last[0], last[1]);
		return;
	}
	unsigned nargs = event_format(site, true, fmt);
	struct ktr_entry shown = *e;

	if (site->kind == KTR_SITE_PROBE)
		name_state(fmt, &shown);
	if (out->len < out->size)
		out->len += (size_t)ktr_entry_print(out->buf + out->len, out->size - out->len,
						    r->b->log, fmt, nargs, &shown, cpu, seq);
}

void
trace_print_event(struct sbuf *out, const struct buffer_reader *r, const struct ktr_entry *e,
		  unsigned cpu, uint64_t seq)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	char buf[KTR_STRING_MAX];
	size_t at;

	if (site == &tracer_function) {
		trace_print_symbol(out, r, e->args[2]);
		if (option_on(r->i, OPTION_PRINT_PARENT)) {
			sbuf_puts(out, " <-");
			trace_print_symbol(out, r, e->args[1]);
		}
		return;
	}
	if (site == &tracer_repeats) {
		uint64_t us = e->args[4] / 1000;

		trace_print_symbol(out, r, e->args[2]);
		sbuf_puts(out, " <-");
		trace_print_symbol(out, r, e->args[1]);
		sbuf_printf(out, " (repeats: %lu, last_ts: %5lu.%06lu)", e->args[3], us / 1000000,
			    us % 1000000);
		return;
	}
	if (site == &tracer_mark) {
		char text[MARK_MAX + 1];

		text[ktr_data_bytes(r->b->log, cpu, seq, e->args[0], text, MARK_MAX)] = '\0';
		sbuf_printf(out, "%s%s", is_bare(r, e) ? "" : "tracing_mark_write: ", text);
		return;
	}
	if (site == &tracer_raw) {
		sbuf_printf(out, "# %lx buf: %s", e->args[0],
			    ktr_data_text(r->b->log, cpu, seq, e->args[1], buf));
		return;
	}
	if (hwlat_print(out, e) || osnoise_print(out, e) || timerlat_print(out, e) ||
	    latency_print(out, e, cpu) || blk_print(out, r->i, e, cpu))
		return;
	if (site == &trigger_stack) {
		trace_print_stack(out, r, stack_text(r->b->log, cpu, seq, e->args[0], buf));
		return;
	}
	if (site == &user_stack) {
		trace_print_user_stack(out, stack_text(r->b->log, cpu, seq, e->args[0], buf));
		return;
	}
	if (site == NULL) {
		sbuf_printf(out, "(no site %u)", e->site);
		return;
	}
	at = sbuf_stored(out);
	print_logged(out, r, e, cpu, seq);
	if (r->dump)
		printk_hide_controls(out->buf + at);
}

/* ---- the graph ---- */

void
print_duration(struct sbuf *out, uint64_t ns)
{
	uint64_t us = ns / 1000;
	size_t start = out->len;

	sbuf_printf(out, "%lu", us);
	size_t digits = out->len - start, room = digits < 5 ? 3 : digits < 7 ? 7 - digits : 0;

	if (room == 3)
		sbuf_printf(out, ".%03lu", ns % 1000);
	else if (room == 2)
		sbuf_printf(out, ".%02lu", ns % 1000 / 10);
	else if (room == 1)
		sbuf_printf(out, ".%lu", ns % 1000 / 100);
	size_t used = out->len - start;

	sbuf_puts(out, " us ");
	for (; used < 8; used++)
		sbuf_putc(out, ' ');
}

char
print_mark(uint64_t ns)
{
	static const struct {
		uint64_t ns;
		char mark;
	} marks[] = {{1000000000, '$'}, {100000000, '@'}, {10000000, '*'},
		     {1000000, '#'},    {100000, '!'},    {10000, '+'}};

	for (unsigned i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (ns > marks[i].ns)
			return marks[i].mark;
	return ' ';
}

/* "cat-1234", in the middle of its column. */
static void
print_proc(struct sbuf *out, const struct ktr_entry *e)
{
	char name[KTR_THREAD_NAME], text[PROC_WIDTH + 16];
	uint32_t tid = print_thread(e, name);
	int len = snprintf(text, sizeof(text), "%.*s-%u", COMM_GRAPH, name, tid);
	int spaces = len < PROC_WIDTH ? PROC_WIDTH - len : 0;

	sbuf_printf(out, "%*s%s%*s", spaces / 2, "", text, spaces - spaces / 2, "");
}

static void
trace_print_cpu(struct sbuf *out, unsigned cpu)
{
	sbuf_printf(out, " %*u) ", ncpus > 10 ? 2 : 1, cpu);
}

/* Says that another thread's calls follow on this CPU. */
static void
print_switch(struct sbuf *out, struct buffer_reader *r, unsigned cpu, const struct ktr_entry *e)
{
	struct ktr_entry before = {.tid = r->last[cpu]};
	bool known = r->keeps_last[cpu];

	r->keeps_last[cpu] = true;
	r->last[cpu] = e->tid;
	if (!known || before.tid == e->tid)
		return;
	sbuf_puts(out, " ------------------------------------------\n");
	trace_print_cpu(out, cpu);
	print_proc(out, &before);
	sbuf_puts(out, " => ");
	print_proc(out, e);
	sbuf_puts(out, "\n ------------------------------------------\n\n");
}

/* What stands before the calls: time, CPU, thread. */
static void
print_prologue(struct sbuf *out, const struct buffer_reader *r, unsigned cpu,
	       const struct ktr_entry *e)
{
	uint64_t us = time_us(e);

	if (option_on(r->i, OPTION_GRAPH_ABSTIME))
		sbuf_printf(out, "%5lu.%06lu |  ", us / 1000000, us % 1000000);
	if (option_on(r->i, OPTION_GRAPH_CPU))
		trace_print_cpu(out, cpu);
	if (option_on(r->i, OPTION_GRAPH_PROC)) {
		print_proc(out, e);
		sbuf_puts(out, " | ");
	}
}

/* Prints the duration's column; ends: the call has ended. */
static void
print_column(struct sbuf *out, const struct buffer_reader *r, bool ends, uint64_t ns)
{
	if (!option_on(r->i, OPTION_GRAPH_DURATION))
		return;
	if (!ends) {
		sbuf_puts(out, "              |  ");
		return;
	}
	sbuf_printf(out, "%c ", option_on(r->i, OPTION_GRAPH_OVERHEAD) ? print_mark(ns) : ' ');
	print_duration(out, ns);
	sbuf_puts(out, "|  ");
}

static void
print_indent(struct sbuf *out, uint64_t depth)
{
	for (; depth > 0; depth--)
		sbuf_puts(out, "  ");
}

/* Is e the return of the call that c enters? */
static bool
is_return_of(const struct ktr_entry *c, const struct ktr_entry *e)
{
	return ktr_site_get(e->site) == &tracer_graph_return && e->tid == c->tid &&
	       e->args[0] == c->args[0] && e->args[1] == c->args[1];
}

/*
 * Prints an entry of the graph tracer, and the one after it if that ends the call. *seq becomes the
 * number of the last one.
 */
static void
print_call(struct sbuf *out, const struct buffer_reader *r, unsigned cpu, const struct ktr_entry *e,
	   uint64_t *seq)
{
	bool entry = ktr_site_get(e->site) == &tracer_graph_entry, leaf = false;
	uintptr_t offset;
	const char *name = ksym_lookup(e->args[entry ? 2 : 4], &offset);
	struct ktr_entry next;
	uint64_t next_seq;

	if (entry)
		leaf = buffer_peek_next(r, cpu, &next, &next_seq) && is_return_of(e, &next);
	if (leaf)
		*seq = next_seq;
	const struct ktr_entry *end = leaf ? &next : e;

	print_column(out, r, !entry || leaf, end->args[3] - end->args[2]);
	print_indent(out, e->args[1]);
	if (entry)
		sbuf_printf(out, "%s()%s\n", name, leaf ? ";" : " {");
	else if (option_on(r->i, OPTION_GRAPH_TAIL) ||
		 __atomic_load_n(&tracer_thresh_ns, __ATOMIC_RELAXED) != 0)
		sbuf_printf(out, "} /* %s */\n", name);
	else
		sbuf_puts(out, "}\n");
	if (!entry && option_on(r->i, OPTION_GRAPH_OVERRUN))
		sbuf_printf(out, " (Overruns: %lu)\n", e->args[5]);
}

/* ---- */

bool
print_entry(struct sbuf *out, struct buffer_reader *r)
{
	uint64_t lost;
	unsigned cpu, next;
	const struct ktr_entry *found = buffer_peek(r, &cpu, &lost);

	if (found == NULL)
		return false;
	const struct ktr_entry e = *found;
	const struct ktr_site *site = ktr_site_get(e.site);
	uint64_t seq = r->cursors[cpu].seq;

	if (lost > 0)
		sbuf_printf(out, "CPU:%u [LOST %lu EVENTS]\n", cpu, lost);
	if (r->i->tracer == TRACER_GRAPH) {
		print_switch(out, r, cpu, &e);
		print_prologue(out, r, cpu, &e);
		if (site == &tracer_graph_entry || site == &tracer_graph_return) {
			print_call(out, r, cpu, &e, &seq);
		} else {
			print_column(out, r, false, 0);
			sbuf_puts(out, "/* ");
			trace_print_event(out, r, &e, cpu, seq);
			sbuf_puts(out, " */\n");
		}
	} else if (latency_layout(r->i)) {
		buffer_take(r, cpu, seq);
		found = buffer_peek(r, &next, &lost);
		latency_print_context(out, r->i, &e, cpu,
				      found != NULL ? clock_ns_of(found->ticks) : 0);
		trace_print_event(out, r, &e, cpu, seq);
		sbuf_putc(out, '\n');
		return true;
	} else {
		print_start(out, r, cpu);
		if (option_on(r->i, OPTION_CONTEXT_INFO) && !is_bare(r, &e))
			print_context(out, r, &e, cpu);
		trace_print_event(out, r, &e, cpu, seq);
		sbuf_putc(out, '\n');
	}
	buffer_take(r, cpu, seq);
	return true;
}
