/*
 * kdb_command.c - the debugger's commands, and running a line of them. No locks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/machine.h"
#include "kernel/debug/kdb.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/trace/flush.h"

#define HELP_COLUMN 36

struct kdb_command {
	const char *name, *args, *help;
	void (*fn)(char *mod, char *args); /* mod: what follows "/" in the command word, or NULL */
};

static void kdb_command_help(char *mod, char *args);

static void
kdb_command_continue(char *mod, char *args)
{
	(void)mod;
	(void)args;
	if (kdb_panicked())
		kdb_printf("continue: there is no way on after a panic; use poweroff or reboot\n");
	else
		kdb.leave = true;
}

static void
kdb_command_reboot(char *mod, char *args)
{
	(void)mod;
	(void)args;
	ktr_flush_finish();
	arch_reboot();
}

static void
kdb_command_poweroff(char *mod, char *args)
{
	uint64_t status = kdb_panicked() ? 101 : 0;
	char *word = kdb_word(&args);

	(void)mod;
	if (word != NULL && (!kdb_number(word, &status) || status > 127)) {
		kdb_printf("poweroff: status \"%s\": expected 0 to 127\n", word);
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

	(void)mod;
	if (!kdb_expr(&text, &v))
		return;
	kdb_printf("%#llx %lld ", (unsigned long long)v, (long long)v);
	kdb_print_symbol((uintptr_t)v);
	kdb_printf("\n");
}

static const struct kdb_command commands[] = {
    {"break", "[ADDR]", "stops where ADDR is executed; alone: lists what is watched",
     kdb_command_break},
    {"bt", "[TID | cpu N]", "backtrace: of here, of a thread, of a CPU", kdb_command_bt},
    {"continue", "", "goes on where the machine was stopped", kdb_command_continue},
    {"delete", "N | all", "no longer stops there", kdb_command_delete},
    {"help", "", "this list", kdb_command_help},
    {"poweroff", "[STATUS]", "ends the trace stream and the machine", kdb_command_poweroff},
    {"print", "EXPR", "value of an expression: 0x12, 18, symbol+0x4, $pc, *addr",
     kdb_command_print},
    {"ps", "", "threads", kdb_command_ps},
    {"reboot", "", "ends the trace stream and starts anew", kdb_command_reboot},
    {"show", "ktr[/vVa] [-c CPU] [-n COUNT]",
     "events, newest first; v: time and file.line, V: time, a: no pager", kdb_command_show},
    {"show", "ktr stats", "accounting of events, by CPU", kdb_command_show},
    {"show", "pcpu [N]", "what each CPU does", kdb_command_show},
    {"show", "registers", "registers where the machine was stopped", kdb_command_show},
    {"step", "[N]", "executes N instructions here, with all other CPUs stopped", kdb_command_step},
    {"sysctl", "NAME[=VALUE]", "reads or sets a variable; a name that ends in . lists",
     kdb_command_sysctl},
    {"watch", "ADDR [1|2|4|8] [w|rw]", "stops when memory is written, or read, too",
     kdb_command_watch},
    {"x", "[/FORMAT] ADDR [COUNT]", "memory; format: count, size b h w g, kind x d u o c a s",
     kdb_command_x},
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void
kdb_command_help(char *mod, char *args)
{
	(void)mod;
	(void)args;
	for (size_t i = 0; i < NCOMMANDS; i++) {
		const struct kdb_command *c = &commands[i];
		const char *gap = c->args[0] == '[' && c->args[1] == '/' ? "" : " ";
		size_t len = strlen(c->name) + strlen(gap) + strlen(c->args);

		kdb_printf("%s%s%s%*s%s\n", c->name, gap, c->args,
			   len < HELP_COLUMN ? (int)(HELP_COLUMN - len) : 1, "", c->help);
	}
}

/* A command by its name or an unambiguous beginning; NULL when there is none, or more. */
static const struct kdb_command *
kdb_find(const char *name, bool *several)
{
	const struct kdb_command *found = NULL;
	size_t n = strlen(name);

	*several = false;
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

void
kdb_run(char *line)
{
	const struct kdb_command *c;
	char *word = kdb_word(&line), *slash;
	bool several;

	if (word == NULL)
		return;
	slash = strchr(word, '/');
	if (slash != NULL)
		*slash++ = '\0';
	c = kdb_find(word, &several);
	if (c == NULL)
		kdb_printf("%s: %s; help lists the commands\n", word,
			   several ? "more than one command begins so" : "no such command");
	else
		c->fn(slash, line);
}
