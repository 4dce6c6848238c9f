/*
 * kdb_private.h - what the files of the debugger share. Only the CPU inside the debugger uses it,
 * while the others are stopped; no locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/entry.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/unwind.h"
#include "kernel/sync/stop.h"

struct arch_trapframe;
struct proc;
struct thread;

#define KDB_LINE_MAX 128
#define KDB_NO_CPU   -1

/* Where the debugger was entered. */
struct kdb_place {
	uintptr_t pc, fp, sp;
	struct arch_trapframe *tf; /* NULL: entered by a call, not by a trap */
};

struct kdb_state {
	bool leave;       /* the operator continues */
	bool stepped;     /* the next prompt follows a step */
	bool running;     /* a command runs at the prompt */
	bool quit;        /* the operator wants no more output of this command */
	bool pager;       /* stop after each screen */
	unsigned row;     /* lines of the terminal that were printed since the last stop */
	unsigned column;  /* characters in the last of them */
	unsigned stopped; /* other CPUs that did stop */
	void *recover[5]; /* __builtin_setjmp: back to the prompt; valid while stop.command */
	struct kdb_place place;
};

extern struct kdb_state kdb;

/*
 * Claims the debugger for this CPU and stops the others. If another CPU is inside, waits for it;
 * meanwhile this CPU counts as stopped, at tf if that is not NULL.
 */
void kdb_stop_machine(struct arch_trapframe *tf);
/* Runs the prompt until the operator continues. */
void kdb_loop(void);
/* Jumps back to the prompt after a fault or panic in a command. Returns if no command runs. */
void kdb_recover(const char *what, uintptr_t pc);

/* The place of a trap. */
struct kdb_place kdb_place_of(struct arch_trapframe *tf);

/* kdb_panic.c: the stop function of struct panic_ops. */
void kdb_panic(uintptr_t pc, uintptr_t fp, uintptr_t sp, const char *fmt, va_list ap);

/* kdb_control.c */
enum kdb_panic_action { KDB_ACTION_DEBUG, KDB_ACTION_DUMP, KDB_ACTION_REBOOT };
enum kdb_panic_action kdb_panic_action(void);
extern int kdb_panic_events;

/* kdb_io.c: polled console. */
void kdb_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
/*
 * Polls the keyboard during a long command. ^C sets kdb.quit; other keys are kept for the prompt.
 * Printing a line polls too.
 */
void kdb_poll(void);
/* What was typed and not read goes to the shell. While the machine is stopped. */
void kdb_keys_back(void);
void kdb_command_lines(char *mod, char *args);
/* Reads a line with history into buf (KDB_LINE_MAX bytes). */
void kdb_readline(const char *prompt, char *buf);

/* kdb_expr.c */
/*
 * Value of the expression at *text, which ends at white space. It has numbers (decimal, 0x…, or
 * hexadecimal digits that are not a symbol), symbols, registers ($pc …), *TERM (8 bytes of memory),
 * -TERM, ~TERM, parentheses, and the operators * / % + - << >> & ^ | of C. False: an error line was
 * printed.
 */
bool kdb_expr(const char **text, uint64_t *v);
/* Skips white space. True: words follow. */
bool kdb_more_words(const char **text);
/* The next word of *text, ended by a NUL that is written there. NULL: none. */
char *kdb_word(char **text);
/* Parses the whole text as a decimal or 0x number. */
bool kdb_number(const char *text, uint64_t *v);

/* kdb_unwind.c */
/* unwind_step(), with probes of memory. */
bool kdb_unwind(struct unwind_frame *f);
/* Backtrace of the place where the debugger was entered. */
void kdb_backtrace(void);
void kdb_backtrace_cpu(unsigned cpu);
void kdb_command_bt(char *mod, char *args);

/* kdb_mem.c */
/* Reads n bytes at a kernel or user address; does not fault. False: some are not readable. */
bool kdb_read(void *to, uint64_t addr, size_t n);
/*
 * Copies text from a kernel address into buf, which it returns; "?" if unreadable. Does not fault.
 */
const char *kdb_text(const char *src, char *buf, size_t size);
/* Prints "name+0x12 (file:line)", or the number if pc has no symbol. */
void kdb_print_symbol(uintptr_t pc);
/*
 * As kdb_print_symbol(). If called, pc is a return address: then it prints the place of the call.
 */
void kdb_print_place(uintptr_t pc, bool called);
/* Prints " = 0x2 2" if a variable of at most 8 bytes begins there. */
void kdb_print_variable(uintptr_t at);
void kdb_command_x(char *mod, char *args);
void kdb_command_write(char *mod, char *args);

#define KDB_NAMELEN 32

/* kdb_thread.c */
/*
 * The thread after t (NULL: the first), and a copy of it. NULL: no more threads, the list is
 * broken, or the operator ended the command.
 */
const struct thread *kdb_thread_next(const struct thread *t, struct thread *copy);
/*
 * The CPU on which t runs, or is being switched out: until that has ended, what its context says is
 * old. KDB_NO_CPU if it is switched out.
 */
int kdb_thread_cpu(const struct thread *t);
/*
 * Finds a thread by its name, if only one has it; or by an expression that is its id or address.
 * NULL after an error line was printed.
 */
const struct thread *kdb_thread_find(const char *command, const char *word);
/* Prints "sh tid 7". */
void kdb_print_thread(const struct thread *t);
/* Finds a process: by its pid, by a thread of it, or the current one. NULL after an error line
 * was printed. */
const struct proc *kdb_proc_find(const char *command, char *args, struct proc *copy);
void kdb_command_ps(char *mod, char *args);
void kdb_show_thread(char *args);
void kdb_show_proc(char *args);
void kdb_show_sleepq(char *args);
void kdb_show_runq(char *args);

/* kdb_lock.c */
void kdb_show_lock(char *args);
void kdb_show_alllocks(char *args);
/* kdb_vm.c */
void kdb_show_map(char *args);
void kdb_show_page(char *args);

/* kdb_break.c */
enum kdb_stepped {
	KDB_NOT_STEPPED,   /* the trap does not end a step */
	KDB_STEPPED_AGAIN, /* another step began: return from the trap, the machine stays stopped */
	KDB_STEPPED_GO,    /* the machine goes on */
	KDB_STEPPED_PROMPT, /* run the prompt */
};
/* Prepares to leave the prompt. True: the machine goes on. False: it stays stopped for a step. */
bool kdb_go_on(struct arch_trapframe *tf);
/* Index of the point that a trap is about; -1: none. */
int kdb_point_hit(const struct arch_trapframe *tf, enum entry_debug why, uintptr_t data);
/*
 * On machines that trap before a watched access: steps the access, and returns true. The prompt
 * follows after the step.
 */
bool kdb_step_to_see(struct arch_trapframe *tf, int point);
/* Handles a trap while the machine is stopped. *point: the watchpoint that was stepped, or -1. */
enum kdb_stepped kdb_step_done(struct arch_trapframe *tf, int *point);
/* Prints "breakpoint 2" or "watchpoint 1: name: old 1 new 2", without newline. */
void kdb_print_point(int point);
/*
 * Must single steps stop at pc? A program or another thread comes after it, from where a step would
 * not return.
 */
bool kdb_last_stop(uintptr_t pc);
/* Must this instruction not be stepped? One that may fault might wait for a stopped CPU. */
bool kdb_may_fault(uintptr_t addr);
/* Leaves the prompt, for a number of steps, or for one step over a call. */
void kdb_step_want(unsigned steps, bool over_calls);
/*
 * Sets a temporary breakpoint at at->pc, for the current thread and stack pointers at or above
 * at->sp. The prompt prints why. False: no free register.
 */
bool kdb_temporary_set(const struct unwind_frame *at, const char *why);
void kdb_temporary_clear(void);
enum kdb_temporary {
	KDB_TEMPORARY_NO,    /* the trap is not at it */
	KDB_TEMPORARY_OTHER, /* another thread, or a deeper call: passed, if no point is there */
	KDB_TEMPORARY_HIT,
};
enum kdb_temporary kdb_temporary_hit(const struct arch_trapframe *tf, enum entry_debug why,
				     const char **text);
void kdb_command_break(char *mod, char *args);
void kdb_command_delete(char *mod, char *args);
void kdb_command_watch(char *mod, char *args);

/* kdb_run.c */
void kdb_command_continue(char *mod, char *args);
void kdb_command_step(char *mod, char *args);
void kdb_command_next(char *mod, char *args);
void kdb_command_until(char *mod, char *args);
void kdb_command_call(char *mod, char *args);

/* kdb_show.c */
/* Value of a register where the machine stopped. False: no such name. */
bool kdb_register(const char *name, uint64_t *v);
void kdb_command_show(char *mod, char *args);
/* Calls fn for the CPU that args name, or for all CPUs. */
void kdb_each_cpu(const char *command, char *args, void (*fn)(unsigned cpu));

/* kdb_ktr.c */
void kdb_command_show_ktr(char *mod, char *args);
void kdb_command_search(char *mod, char *args);
void kdb_command_mark(char *mod, char *args);
/* The newest `count` events of each CPU, by time, oldest first: for panics. */
void kdb_print_events(unsigned count);

/* kdb_capture.c */
void kdb_command_capture(char *mod, char *args);

/* kdb_sysctl.c */
void kdb_command_ktr(char *mod, char *args);
void kdb_command_sysctl(char *mod, char *args);
/* Prints the value of an existing sysctl. */
void kdb_sysctl_show(const char *name);
/* The machine goes on: what was set at the prompt is made soon. */
void kdb_settings_go_on(void);

/* kdb_command.c: runs one command line. */
void kdb_run(char *line);
