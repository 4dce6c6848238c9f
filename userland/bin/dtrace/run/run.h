/*
 * run.h - traces: loads an image into the kernel, and prints what comes out of it.
 *
 *	comes in:	an image, or the wish to claim that of the boot: consume()
 *	goes out:	text on standard output, -o or freopen()'s file; the exit status
 *
 * In reading order: target.c starts the command; load.c loads; consume.c waits, and reads each
 * CPU's records and aggregations; output.c prints a record, action by action; print.c prints
 * values, print_format.c printf()'s; aggregate.c adds aggregations up and sorts them, print_agg.c
 * prints their values. usymbol.c names addresses of programs and, by objects.c, of libraries; pid.c
 * makes the probes of the provider pid.
 *
 * All that it needs to know of the program is in the image's section `consumer` (record.h), so
 * it prints as well what another dtrace has compiled for the boot.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/compile.h"
#include "userland/bin/dtrace/record.h"

/* ---- consume.c ---- */

/* Describes the first probe whose id is at least p->id; false: there is none. */
bool consume_describe(struct dif_probe *p);
/* The path of a program that a user stack names; false: it is not known any more. */
bool consume_program(struct dif_program *p);
/* DIF_IOC_PID. False: an error, in errno. */
bool consume_pid(struct dif_pid *p);
/* The probe of an epid; 0: there is no such epid. */
uint32_t consume_probe_of(uint32_t epid);
/*
 * From here on the probes are those of a recorded trace, and what is consumed is what that fires
 * (kernel/dtrace/host/recorded.c). Does not return if the trace cannot be read.
 */
void consume_recorded(const char *path);
/*
 * For dtrace on the host; NULL in the guest. recorded_open() opens a trace; false, after a message,
 * if it cannot be read. recorded_limit() takes the stretch of -x since and until, once options are
 * known. recorded_run() fires all events. When it is time to read what the programs have recorded,
 * it calls drain(), which says whether to go on. It returns ktrdump's exit status.
 */
__attribute__((weak)) bool recorded_open(const char *path);
__attribute__((weak)) void recorded_limit(void);
__attribute__((weak)) int recorded_run(bool (*drain)(void));
/*
 * For dtrace on the host, too: from here on the kernel is the one at the end of a line, and its
 * probes, types and symbols are those of its ELF (kernel/dtrace/host/remote.c). Does not return if
 * it fails.
 */
__attribute__((weak)) void remote_attach(const char *line, const char *kernel);
/*
 * Traces until the program, the command, the process or the user ends it. Returns the exit status.
 * If image is NULL, takes over what has been traced since the boot; with `leave` only that.
 */
int consume(void *image, struct source *sources, const char *output, bool leave);
/* Gives a sign of life, for code that does something else for long. */
void consume_live(void);

/* ---- load.c ---- */

/* Loads an image. If memory is short, its sizes become smaller. Does not return if it cannot. */
void load_image(int device, void *image, struct source *sources);
/* May the image be enabled? Does not return if actions need -w, or if a record has no room. */
void load_check(const void *image);

/* ---- target.c ---- */

/* "cCOMMAND" starts it, and it waits; "pNUMBER" finds the process. The first one is $target. */
void target_open(const char *option);
/* The path of $target's command; NULL: it is of -p, or there is none. */
extern const char *target_command;
/* Lets the commands begin. */
void target_go(void);
/* Have all commands and processes ended? Says so of each. False if there are none. */
bool target_all_ended(void);

/* ---- output.c ---- */

#define MAX_CPUS 64

/* next: what the CPU recorded after it; NULL: nothing yet. */
void output_record(uint32_t cpu, const struct dif_record *r, const struct dif_record *next);
/* Writes what was printed. */
void output_flush(void);
/* Something could not be written, as a message says. */
extern bool output_failed;

/* ---- print.c, print_format.c, print_agg.c ---- */

/* The image whose records are printed, and its parts for the consumer. */
struct view {
	const struct dif_header *image;
	const char *strings;
	const struct rec_layout *layouts;
	const struct rec_action *actions;
	const struct rec_field *fields;
	const struct rec_agg *rec_aggs;
	const struct dif_agg *aggs;
	uint32_t layout_count, agg_count;
	const char *options;
};
extern struct view view;
/* Where output goes: standard output, -o, freopen(). */
extern FILE *print_out;

/* Looks at an image; false: it has no parts for this consumer. */
bool view_open(const void *image);

/* A value in a record: an integer, extended; a string's bytes. */
uint64_t print_integer(const struct rec_field *f, const uint8_t *data);
/* A number, as a column of its own or as it is, and how wide such a column is. */
void print_number(const struct rec_field *f, const uint8_t *data, bool column);
int print_number_width(const struct rec_field *f);
/* As trace() shows it. */
void print_trace(const struct rec_field *f, const uint8_t *data);
/* An address, as SHOW_SYM and its kin show it; for those of programs DIF_B_PROGRAM. */
const char *print_symbol(enum show show, uint64_t address, uint64_t program);
/* The start of the kernel's function that contains the address; if there is none, the address. */
uint64_t print_function_start(uint64_t address);
/* A stack, of the kernel or a program: a line for each frame, up to the first 0. */
void print_stack(const struct rec_field *f, const void *data, unsigned indent);
/* An address of a program, after DIF_B_PROGRAM? */
bool print_is_user(const struct rec_field *f);
/* Bytes in hexadecimal, and as characters. */
void print_bytes(const uint8_t *data, size_t size);
/* Prints what print() shows: a value, and all that is in it. */
void print_fields(const struct rec_field *f, const uint8_t *record);

/* An aggregation's entry: its keys, in the order of pushing, and its value. */
struct agg_entry {
	struct agg_entry *next; /* of those with the same hash */
	uint32_t agg;
	uint16_t key_words, value_words;
	bool fresh; /* cleared: nothing was added since */
	uint64_t *keys, *values;
};

/* How many words a key takes, of that kind, at `key`. */
size_t agg_key_words(const struct rec_field *f, const uint64_t *key);
/*
 * How a key is shown: as in the aggregation's first use; but not if a later use gave a number that
 * does not fit into the type of the first.
 */
struct rec_field agg_key_field(const struct rec_field *f, const uint64_t *key);
/* Prints by a format; fields begin with the first argument. `data` is the record's. */
void print_printf(const char *format, const struct rec_field *f, uint32_t count,
		  const uint8_t *data);
/* print_printf() into a text, which the caller frees. */
char *print_to_text(const char *format, const struct rec_field *f, uint32_t count,
		    const uint8_t *data);
/* Prints one entry by the format of printa(). entries[n] is NULL if the n-th aggregation has no
 * entry with these keys. */
void print_printa(const char *format, struct agg_entry *const *entries, const uint32_t *aggs,
		  unsigned count);
/*
 * For -x agghist and -x aggpack. pack_wanted(): is each entry of the aggregation one row?
 * pack_print_heading() prints the heading over keys of `width` characters, pack_print_value() the
 * rest of a row.
 */
bool pack_wanted(uint32_t agg);
void pack_print_heading(uint32_t agg, int width);
void pack_print_value(uint32_t agg, const struct agg_entry *e);
/* Prints a value as printa() without a format shows it. */
void print_agg_value(uint32_t agg, const struct agg_entry *e);
/* The number of a value, which sorting compares: an average, a deviation or a sum. */
__int128 agg_number(uint32_t agg, const struct agg_entry *e);

/* ---- aggregate.c ---- */

/* Adds what the kernel's table has. */
void agg_add(uint32_t cpu, const void *table, size_t size);
/* Calls f with each entry. */
void agg_each(uint32_t agg, void (*f)(const struct agg_entry *e));
void agg_clear(uint32_t agg);
/* Leaves `keep` entries, the largest, or for keep < 0 the smallest. */
void agg_trunc(uint32_t agg, int64_t keep);
void agg_normalize(uint32_t agg, uint64_t by);
uint64_t agg_normal(uint32_t agg);
/* Prints aggregations; format NULL: as the guide's default. */
void agg_print(const char *format, const uint32_t *aggs, unsigned count);
/* Prints all that no printa() has printed. */
void agg_print_rest(void);

/* ---- functions of programs: usymbol.c ---- */

#define USYMBOL_ANY 0x1000u /* an address that stands for all of a program's code */
/*
 * The name of the function that contains an address in a program or in its libraries, by
 * DIF_B_PROGRAM; NULL if there is none. *start: where the function begins. *object: the name of the
 * program or library, NULL if it is not known. Libraries are known while the process runs, and
 * after that if it was asked before.
 */
const char *usymbol_at(uint64_t program, uint64_t address, uint64_t *start, const char **object);
/* One address for all of the same program's or library's code. */
uint64_t usymbol_object(uint64_t program, uint64_t address);
/* A function of a program's file. */
struct usymbol {
	const char *name;   /* of those that match, the best */
	const char *called; /* the same; or the best of all, if it is local or begins with _ */
	uint64_t offset;    /* in the file */
	uint64_t size;      /* 0: not known */
};
/* Calls f for each function of the file that has a name that a glob matches; "": for all. */
void usymbol_each(const char *path, const char *glob, void (*f)(const struct usymbol *s, void *arg),
		  void *arg);
/* Makes an address in the program's code an offset in its file. False: it is none. */
bool usymbol_offset(const char *path, uint64_t *address);
/* One number for all numbers that mean the same file. */
uint32_t usymbol_program(uint32_t program);
/* The path of the program's dynamic linker; NULL: it has none. */
const char *usymbol_linker(const char *path);

/* ---- the libraries of a process: objects.c ---- */

struct object {
	struct object *next;
	const char *path;
	uint64_t start, end, offset; /* where its code is mapped, and from which byte of the file */
};
/* What a process that executes the program maps; NULL: nothing, or it has ended. */
struct object *object_mapped(uint32_t pid, const char *program);
/* Frees such a list. */
void object_free(struct object *list);
/* What the program's dynamic linker will map. */
struct object *object_needed(const char *program);
/* What has that name in the folders of a list, or where libraries are; NULL: nothing. */
struct object *object_later(const struct object *list, const char *name);
/* Is it called so? A name may lack what comes after it: libc is libc.so.6. */
bool object_is_called(const char *path, const char *name);

/* ---- the provider pid: pid.c ---- */

/*
 * If a name of four fields is of the provider pid, makes the probes that it names, and puts their
 * names in its place: there may be several, of which it returns the last. command: the path of what
 * $target will execute; NULL if it does so already.
 */
struct probe_spec *pid_probes(struct probe_spec *spec, const char *command);
