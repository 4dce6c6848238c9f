/*
 * kdb_private.h - what the files of the debugger share. All of it: only the CPU that is inside,
 * with the others stopped; no locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/entry.h"
#include "kernel/lib/printf.h"

struct arch_trapframe;
struct thread;

#define KDB_LINE_MAX 128
#define KDB_ROWS     24 /* of the terminal */
#define KDB_NO_CPU   -1

/* Where the debugger was entered. */
struct kdb_place {
	uintptr_t pc, fp, sp;
	struct arch_trapframe *tf; /* NULL: by a call, not by a trap */
};

struct kdb_state {
	int owner;        /* atomic: CPU inside, KDB_NO_CPU */
	bool panicked;    /* atomic */
	bool leave;       /* the operator continues */
	bool stepped;     /* the prompt that comes is after a step */
	bool quit;        /* the operator wants no more output of this command */
	bool pager;       /* stop after each screen */
	bool recoverable; /* recover is valid */
	unsigned row;     /* lines printed since the last stop */
	unsigned stopped; /* other CPUs that did stop */
	void *recover[5]; /* __builtin_setjmp: back to the prompt */
	struct kdb_place place;
};

extern struct kdb_state kdb;

/* Claims the debugger for this CPU and stops the others; waits for a CPU that is inside. */
void kdb_stop_machine(void);
/* The prompt, until the operator continues. */
void kdb_loop(void);
/* Back to the prompt after a fault or a panic in a command; returns when there is none to go to. */
void kdb_recover(const char *what, uintptr_t pc);
/* Should a panic ask an operator? Else the machine powers off with status 101. */
bool kdb_ask_on_panic(void);

/* kdb_io.c: polled console. */
void kdb_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
void kdb_vprintf(const char *fmt, va_list ap);
/* Waits for a key. */
int kdb_getc(void);
/* Reads a line with history into buf (KDB_LINE_MAX bytes). */
void kdb_readline(const char *prompt, char *buf);

/* kdb_expr.c */
/*
 * Value of the expression at *text, which ends at white space: number (decimal, 0x…, or hexadecimal
 * digits that are no symbol), symbol, $pc $sp $fp, *TERM (8 bytes from memory), with + and -
 * between. On false an error line was printed.
 */
bool kdb_expr(const char **text, uint64_t *v);
/* Next word of *text, cut out of it by a NUL; NULL when there is none. */
char *kdb_word(char **text);
/* Whole of text as a decimal or 0x number. */
bool kdb_number(const char *text, uint64_t *v);

/* kdb_bt.c */
/* trapped: pc is the instruction itself, not where a call returns to. */
void kdb_backtrace(uintptr_t pc, uintptr_t fp, bool trapped);
/* Prints "name+0x12 (file:line)", or the number. */
void kdb_print_symbol(uintptr_t pc);
void kdb_command_bt(char *mod, char *args);
void kdb_command_ps(char *mod, char *args);
/* Text at a kernel address, never faulting; "?" when unreadable. buf is returned. */
const char *kdb_text(const char *src, char *buf, size_t size);

/* kdb_break.c */
enum kdb_stepped {
	KDB_NOT_STEPPED,    /* this trap is no step of ours */
	KDB_STEPPED_AGAIN,  /* one more has begun: go on with tf, the machine stays stopped */
	KDB_STEPPED_GO,     /* the machine goes on */
	KDB_STEPPED_PROMPT, /* the operator is asked */
};
/* The operator leaves the prompt. False: tf is stepped, and the machine stays stopped. */
bool kdb_go_on(struct arch_trapframe *tf);
/* Which of the operator's places a trap is about, -1: none. */
int kdb_point_hit(const struct arch_trapframe *tf, enum entry_debug why, uintptr_t data);
/* True: a watched access has not been made yet; it is stepped, and told of after that. */
bool kdb_step_to_see(struct arch_trapframe *tf, int point);
/* A trap while the machine is stopped: *point is what was hit, -1 none. */
enum kdb_stepped kdb_step_done(struct arch_trapframe *tf, int *point);
/* "breakpoint 2", "watchpoint 1: name: old 1 new 2", no newline. */
void kdb_print_point(int point);
void kdb_command_break(char *mod, char *args);
void kdb_command_delete(char *mod, char *args);
void kdb_command_step(char *mod, char *args);
void kdb_command_watch(char *mod, char *args);

/* kdb_show.c */
void kdb_command_show(char *mod, char *args);
void kdb_command_x(char *mod, char *args);

/* kdb_ktr.c */
void kdb_command_show_ktr(char *mod, char *args);
void kdb_command_show_ktr_stats(void);
/* The newest `count` events of all CPUs, oldest first, with times: for panics. */
void kdb_print_events(unsigned count);

/* kdb_sysctl.c */
void kdb_command_sysctl(char *mod, char *args);

/* kdb_command.c: runs one line. */
void kdb_run(char *line);
