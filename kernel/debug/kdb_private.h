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
#include "kernel/sync/stop.h"

struct arch_trapframe;
struct proc;
struct thread;

#define KDB_LINE_MAX 128
#define KDB_NO_CPU   -1

/* Where the debugger was entered. */
struct kdb_place {
	uintptr_t pc, fp, sp;
	struct arch_trapframe *tf; /* NULL: by a call, not by a trap */
};

struct kdb_state {
	bool leave;       /* the operator continues */
	bool stepped;     /* the prompt that comes is after a step */
	bool running;     /* a command, at the prompt */
	bool quit;        /* the operator wants no more output of this command */
	bool pager;       /* stop after each screen */
	unsigned row;     /* lines printed since the last stop */
	unsigned stopped; /* other CPUs that did stop */
	void *recover[5]; /* __builtin_setjmp: back to the prompt; valid while stop.command */
	struct kdb_place place;
};

extern struct kdb_state kdb;

/*
 * Claims the debugger for this CPU and stops the others; waits for a CPU that is inside, and counts
 * as stopped meanwhile at tf, if that is not NULL.
 */
void kdb_stop_machine(struct arch_trapframe *tf);
/* The prompt, until the operator continues. */
void kdb_loop(void);
/* Back to the prompt after a fault or a panic in a command; returns when there is none to go to. */
void kdb_recover(const char *what, uintptr_t pc);

/* Where a trap struck. */
struct kdb_place kdb_place_of(struct arch_trapframe *tf);

/* kdb_panic.c: struct panic_ops' stop. */
void kdb_panic(uintptr_t pc, uintptr_t fp, uintptr_t sp, const char *fmt, va_list ap);

/* kdb_control.c */
enum kdb_panic_action { KDB_ACTION_DEBUG, KDB_ACTION_DUMP, KDB_ACTION_REBOOT };
enum kdb_panic_action kdb_panic_action(void);
extern int kdb_panic_events;

/* kdb_io.c: polled console. */
void kdb_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
void kdb_vprintf(const char *fmt, va_list ap);
/* Waits for a key. */
int kdb_getc(void);
/* In a long command: ^C sets kdb.quit; other keys are kept for the prompt. Lines of output do it.
 */
void kdb_poll(void);
void kdb_command_lines(char *mod, char *args);
/* Reads a line with history into buf (KDB_LINE_MAX bytes). */
void kdb_readline(const char *prompt, char *buf);

/* kdb_expr.c */
/*
 * Value of the expression at *text, which ends at white space: number (decimal, 0x…, or hexadecimal
 * digits that are no symbol), symbol, $pc and other registers, *TERM (8 bytes from memory), -TERM,
 * ~TERM, parentheses, and * / % + - << >> & ^ | between, as in C. On false an error line was
 * printed.
 */
bool kdb_expr(const char **text, uint64_t *v);
/* Goes over white space: is anything left? */
bool kdb_more_words(const char **text);
/* Next word of *text, cut out of it by a NUL; NULL when there is none. */
char *kdb_word(char **text);
/* Whole of text as a decimal or 0x number. */
bool kdb_number(const char *text, uint64_t *v);

/* kdb_unwind.c */
/* A place on a stack, and what is needed to find its caller's. */
struct kdb_frame {
	uintptr_t pc, sp, fp;
	uintptr_t link; /* the link register, while it is known; 0 none */
	bool exact;     /* it was interrupted at pc; else pc is where a call returns to */
	bool user;      /* in user mode: nothing is above it */
};
struct kdb_frame kdb_frame_of_trap(const struct arch_trapframe *tf);
/* Goes on to the caller, or to what was interrupted. False: there is none, or it is not known. */
bool kdb_unwind(struct kdb_frame *f);
/* From where the debugger was entered. */
void kdb_backtrace(void);
void kdb_backtrace_cpu(unsigned cpu);
void kdb_command_bt(char *mod, char *args);

/* kdb_mem.c */
/* n bytes at a kernel or user address, never faulting. False: not all are readable. */
bool kdb_read(void *to, uint64_t addr, size_t n);
/* Text at a kernel address, never faulting; "?" when unreadable. buf is returned. */
const char *kdb_text(const char *src, char *buf, size_t size);
/* Prints "name+0x12 (file:line)", or the number. */
void kdb_print_symbol(uintptr_t pc);
/* The same; called: pc is where a call returns to, which may be the next function's or line's. */
void kdb_print_place(uintptr_t pc, bool called);
void kdb_command_x(char *mod, char *args);
void kdb_command_write(char *mod, char *args);

#define KDB_NAMELEN 32

/* kdb_thread.c */
/* The thread after t (NULL: the first), and a copy of it; NULL: that was all, or it is broken, or
 * the operator has enough. */
const struct thread *kdb_thread_next(const struct thread *t, struct thread *copy);
/* CPU on which t runs just now, KDB_NO_CPU when it is switched out. */
int kdb_thread_cpu(const struct thread *t);
/* By its id or address, an expression; NULL: an error line was printed. */
const struct thread *kdb_thread_find(const char *command, const char *word);
/* "sh tid 7" */
void kdb_print_thread(const struct thread *t);
bool kdb_proc_find(const char *command, char *args, struct proc *copy);
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
/* Steps end here: in a program, in another thread, in an idle CPU no step would come back. */
bool kdb_last_stop(uintptr_t pc);
/* Can the instruction not be stepped? One that may fault by design might wait for a stopped CPU. */
bool kdb_may_fault(uintptr_t addr);
/* When the operator leaves the prompt: so many steps, or one over a call. Leaves it. */
void kdb_step_want(unsigned steps, bool over_calls);
/*
 * The current thread stops once at at->pc, with its stack not below at->sp; why is told. False: no
 * register is free.
 */
bool kdb_temporary_set(const struct kdb_frame *at, const char *why);
void kdb_temporary_clear(void);
enum kdb_temporary {
	KDB_TEMPORARY_NO,    /* a trap has nothing to do with it */
	KDB_TEMPORARY_OTHER, /* another thread, or a deeper call: it goes on */
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
/* By its name, where the machine was stopped. */
bool kdb_register(const char *name, uint64_t *v);
void kdb_command_show(char *mod, char *args);
/* Calls fn for the CPU that args name, or for all that there are. */
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
void kdb_command_sysctl(char *mod, char *args);
/* The value of a sysctl that there is. */
void kdb_sysctl_show(const char *name);

/* kdb_command.c: runs one line. */
void kdb_run(char *line);
