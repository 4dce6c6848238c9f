/*
 * kdb_command.c - the table of commands, and the execution of a command line. No locks.
 */
#include "arch/machine.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/sync/stop.h"
#include "kernel/trace/flush.h"

#define HELP_COLUMN 31

struct kdb_command {
	const char *name, *args, *help;
	const char *more;                  /* more lines, for `help NAME' */
	void (*fn)(char *mod, char *args); /* mod: what follows "/" in the command word, or NULL */
};

static void kdb_command_help(char *mod, char *args);

static void
kdb_command_reboot(char *mod, char *args)
{
	ktr_flush_finish();
	arch_reboot();
}

static void
kdb_command_poweroff(char *mod, char *args)
{
	uint64_t status = stop_panicked() ? 101 : 0;
	char *word = kdb_word(&args);

	/* Programs may use these exit statuses. qemu/boot gives higher ones another meaning. */
	if (word != NULL && (!kdb_number(word, &status) || status > 63)) {
		kdb_printf("poweroff: status \"%s\": expected 0 to 63\n", word);
		return;
	}
	ktr_flush_finish();
	arch_poweroff((unsigned)status);
}

static void
kdb_command_print(char *mod, char *args)
{
	const char *text = args;
	uint64_t v;

	if (!kdb_expr(&text, &v))
		return;
	kdb_printf("%#lx %ld ", v, (int64_t)v);
	kdb_print_symbol((uintptr_t)v);
	kdb_print_variable((uintptr_t)v);
	kdb_printf("\n");
}

#define EXPR                                                                                   \
	"A number is 18, 0x12 or 12f; a symbol its address; $pc, $sp, $fp and all of `show\n"  \
	"registers' are registers; *X is 8 bytes at X; ( ) - ~ * / % + << >> & ^ | as in C.\n" \
	"White space ends it.\n"

static const struct kdb_command commands[] = {
    {"break", "[ADDR]", "stops at ADDR; alone: lists all points",
     "Uses the CPUs' breakpoint registers, of which there are about 4.\n", kdb_command_break},
    {"bt", "[THREAD | cpu N]", "backtrace of the current place, a thread or a CPU",
     "THREAD is its id, its name or its address. A line with --- marks an interrupt or a trap.\n",
     kdb_command_bt},
    {"call", "FUNCTION [ARG...]", "calls a function with up to 6 numbers",
     "All other CPUs are stopped, and interrupts are off. A function that waits or faults is left.\n"
     "One that loops is not: then reset the machine, and read the log in /dev/ktr.prev.\n",
     kdb_command_call},
    {"capture", "", "prints the rings as a stream for `ktrdump'",
     "Lines of base64 between BEGIN and END; `ktrdump -i LOG' reads them. ^C stops.\n",
     kdb_command_capture},
    {"continue", "", "lets the machine go on (c)", "", kdb_command_continue},
    {"delete", "N | all", "deletes a breakpoint or watchpoint",
     "`break' alone lists the numbers.\n", kdb_command_delete},
    {"help", "[COMMAND]", "this list, or more: `help show ktr'", "", kdb_command_help},
    {"ktr", "on SPEC... | off [SPEC...]", "switches probes on or off, as in the shell",
     "It happens when the machine goes on.\n", kdb_command_ktr},
    {"lines", "[N]", "sets the lines of a page; 0 turns paging off",
     "At --More--: space or f shows a page, d half of it, return, e or j a line; q, x or ^C "
     "ends the command.\n",
     kdb_command_lines},
    {"mark", "[CPU:SEQ | off]", "sets the event from which /r and search count",
     "Alone: the event that `search' found, or the first that `show ktr' printed.\n",
     kdb_command_mark},
    {"next", "", "executes one instruction, or a whole call (n)",
     "During a call the whole machine runs. It stops when this thread returns from the call.\n"
     "It refuses an instruction that copies user memory.\n",
     kdb_command_next},
    {"poweroff", "[STATUS]", "ends the trace stream and powers off",
     "STATUS: 0 to 63. Without it: 0, or 101 after a panic.\n", kdb_command_poweroff},
    {"print", "EXPR", "prints an expression: 18, symbol+0x4, *$sp (p)",
     "After a variable's address, = and its value, if it has at most 8 bytes.\n" EXPR,
     kdb_command_print},
    {"ps", "", "threads", "", kdb_command_ps},
    {"reboot", "", "ends the trace stream and reboots", "", kdb_command_reboot},
    {"search", "[-f] [FILTERS]", "finds the next older (-f: newer) event",
     "Begins at the event found last, the mark, or the newest event. Without filters: as before.\n"
     "Filters: see `show ktr'.\n",
     kdb_command_search},
    {"show", "alllocks", "locks that CPUs and threads hold", "", kdb_command_show},
    {"show", "callout [CPU]", "callouts, by deadline", "", kdb_command_show},
    {"show", "ktr[/vVar] [FILTERS]", "events, newest first",
     "v: time and file.line, V: time, r: time relative to the mark, else to the newest; a: no\n"
     "pager. Filters: -c CPU, -m CLASS,CLASS, -t THREAD (id or name), -n COUNT, -u US (the last\n"
     "microseconds), /TEXT/ (may be a pattern of the shell's), -p (from where `search' or\n"
     "`mark' is).\n",
     kdb_command_show},
    {"show", "ktr stats", "accounting of events, by CPU", "", kdb_command_show},
    {"show", "lock ADDR | NAME", "a spin lock or mutex: owner, waiters",
     "All locks of that name are shown: variables of the kernel, and others that are held.\n",
     kdb_command_show},
    {"show", "map [THREAD | kernel]", "areas of an address space", "", kdb_command_show},
    {"show", "page [ADDR]", "the mapping of an address; alone: free pages", "", kdb_command_show},
    {"show", "pcpu [CPU]", "the state of each CPU", "", kdb_command_show},
    {"show", "proc [PID]", "a process; alone: the current one", "", kdb_command_show},
    {"show", "registers", "registers where the machine stopped", "", kdb_command_show},
    {"show", "runq [CPU]", "threads that wait to run", "", kdb_command_show},
    {"show", "sleepq", "threads that sleep, and what they wait for", "", kdb_command_show},
    {"show", "thread [THREAD]", "a thread; alone: the current one", "", kdb_command_show},
    {"step", "[N]", "N instructions, with all other CPUs stopped (s)",
     "Ends early where the kernel leaves this thread, or copies user memory.\n", kdb_command_step},
    {"sysctl", "NAME[=VALUE]", "reads or sets; a prefix (debug.ktr) lists",
     "A variable that needs a running machine is set when it goes on.\n", kdb_command_sysctl},
    {"until", "[ADDR]", "runs to ADDR; alone: until this function returns", "", kdb_command_until},
    {"watch", "ADDR [1|2|4|8] [w|rw]", "stops when memory is written (w) or used (rw)", "",
     kdb_command_watch},
    {"write", "[/SIZE] ADDR VALUE...", "writes kernel memory; size b h w g (w)", "",
     kdb_command_write},
    {"x", "[/FORMAT] ADDR [COUNT]", "prints memory; size b h w g, kind x d u o c a s",
     "x hexadecimal, d signed, u unsigned, o octal, c characters, a addresses with symbols,\n"
     "s text. `x/4a $sp': four words of the stack.\n",
     kdb_command_x},
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

/* DDB's short forms, which would otherwise be ambiguous. */
static const char *const aliases[][2] = {{"c", "continue"}, {"d", "delete"}, {"n", "next"},
					 {"p", "print"},    {"s", "step"},   {"w", "write"}};

static void
kdb_help_line(const struct kdb_command *c)
{
	const char *gap = c->args[0] == '[' && c->args[1] == '/' ? "" : " ";
	size_t len = strlen(c->name) + strlen(gap) + strlen(c->args);

	kdb_printf("%s%s%s%*s%s\n", c->name, gap, c->args,
		   len < HELP_COLUMN ? (int)(HELP_COLUMN - len) : 1, "", c->help);
}

static void
kdb_command_help(char *mod, char *args)
{
	const char *word = kdb_word(&args), *what = kdb_word(&args);
	size_t n = what != NULL ? strlen(what) : 0;
	bool found = false;

	for (size_t i = 0; i < NCOMMANDS; i++)
		if (word == NULL || (strcmp(commands[i].name, word) == 0 &&
				     strncmp(commands[i].args, what != NULL ? what : "", n) == 0)) {
			found = true;
			kdb_help_line(&commands[i]);
			if (word != NULL)
				kdb_printf("%s", commands[i].more);
		}
	if (!found)
		kdb_printf("help: \"%s%s%s\": no such command\n", word, n > 0 ? " " : "",
			   n > 0 ? what : "");
}

/* The command with a name, or with an unambiguous beginning of one. NULL: none, or several. */
static const struct kdb_command *
kdb_find(const char *name, bool *several)
{
	const struct kdb_command *found = NULL;
	size_t n = strlen(name);

	*several = false;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(aliases[i][0], name) == 0)
			name = aliases[i][1];
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
		if (n == 0 || strncmp(commands[i].name, name, n) != 0)
			continue;
		if (found != NULL && found->fn != commands[i].fn)
			*several = true;
		found = &commands[i];
	}
	return *several ? NULL : found;
}

/* A # that begins a word begins a comment, as in the shell. */
static void
kdb_cut_comment(char *line)
{
	char *s = line;

	while (*s != '\0' && (*s != '#' || (s > line && s[-1] != ' ' && s[-1] != '\t')))
		s++;
	*s = '\0';
}

void
kdb_run(char *line)
{
	const struct kdb_command *c;
	char *word, *slash;
	bool several;

	kdb_cut_comment(line);
	word = kdb_word(&line);
	if (word == NULL)
		return;
	slash = strchr(word, '/');
	if (slash != NULL)
		*slash++ = '\0';
	c = kdb_find(word, &several);
	if (c == NULL)
		kdb_printf("%s: %s; help lists the commands\n", word,
			   several ? "more than one command begins with this" : "no such command");
	else
		c->fn(slash, line);
}
