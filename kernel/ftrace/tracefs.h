/*
 * tracefs.h - the files of /sys/kernel/tracing and /sys/kernel/debug/tracing: Linux's names,
 * formats, errors and end-of-file behaviour (Documentation/trace/ftrace.rst).
 *
 * A file of text is a row of a table: a function prints all of it, another takes what is written.
 * Directories fill themselves when somebody first looks into them. Files begin as their
 * directory's, with the mode that the table says; what chown and chmod change of one stays.
 *
 * Locking: show and store are called with ftrace_lock held, which guards everything that the files
 * control. They may sleep.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/fs/vfs.h"
#include "kernel/lib/sbuf.h"
#include "kernel/sched/mutex.h"

struct instance;

extern struct mutex ftrace_lock;

struct tracefs_file {
	const char *name;
	uint32_t mode; /* permission bits */
	/* The functions get the file's instance, and what tracefs_add() was told. */
	/* Prints the text of the file. NULL: the file cannot be read. */
	void (*show)(struct instance *i, uintptr_t arg, struct sbuf *out);
	/*
	 * Takes what was written, without the newline at its end; may change the text. 0 or -errno.
	 * After an error nothing has changed, except: the words or lines of a list before the wrong
	 * one count, and without memory a tracer may be off. NULL: the file cannot be written.
	 */
	int (*store)(struct instance *i, uintptr_t arg, char *text);
	/* The file was opened with O_TRUNC (the shell's >). 0 or -errno. NULL: nothing to do. */
	int (*clear)(struct instance *i, uintptr_t arg);
	/* Somebody who might write closes it. NULL: nothing to do. */
	void (*close)(struct instance *i, uintptr_t arg);
	char parts; /* of what is written; see struct vnode_ops */
	/* Not a file of text: these operations instead, whose `destroy` is tracefs_destroy(). */
	const struct vnode_ops *ops;
	bool stream;   /* see struct vnode */
	bool unlocked; /* show() needs no lock, and the file belongs to no instance that goes */
	/* A directory: adds its names. */
	void (*fill)(struct vnode *dir);
};

/* A row of a table of such files: a file of text. show, store and clear may be NULL. */
#define TRACEFS_TEXT(file, bits, shows, stores, clears)                                     \
	{                                                                                   \
		.name = file, .mode = bits, .show = shows, .store = stores, .clear = clears \
	}

/* Such a row whose file tells everybody of the machine: nobody waits there for a tracer. */
#define TRACEFS_TELLS(file, shows)                                          \
	{                                                                   \
		.name = file, .mode = 0444, .show = shows, .unlocked = true \
	}

/* Rows of files to which somebody writes a list of words, or of lines; then other members. */
#define TRACEFS_WORDS(...) TRACEFS_LIST(' ', __VA_ARGS__)
#define TRACEFS_LINES(...) TRACEFS_LIST('\n', __VA_ARGS__)
#define TRACEFS_LIST(separator, file, bits, shows, stores, clears, ...)                      \
	{                                                                                    \
		.name = file, .mode = bits, .show = shows, .store = stores, .clear = clears, \
		.parts = separator, __VA_ARGS__                                              \
	}

/* A file that is a number, which hooks and threads read at any time. */
struct tracefs_number {
	const char *name;
	uint64_t *value;   /* atomic: unit times the number */
	uint64_t unit;     /* 1, or how many of the value's units the file's is */
	uint64_t min, max; /* of the number */
	/* Values of other files: this file's is at least so much above, or below. NULL: none. */
	const uint64_t *above, *below;
	uint64_t apart;
};

/* A row of a table of numbers; then what other files' values say. */
#define TRACEFS_NUMBER(file, at, units, least, most, ...)                                        \
	{                                                                                        \
		.name = file, .value = at, .unit = units, .min = least, .max = most, __VA_ARGS__ \
	}

/* What a vnode's `data` points to. */
struct tracefs_node {
	const struct tracefs_file *file;
	uintptr_t arg;             /* what the file is about: a CPU, an event, an option */
	struct instance *instance; /* whose file it is: that of its directory */
};

/*
 * Takes ftrace_lock for the work on a file, until tracefs_end(). 0; or -ENODEV: its instance was
 * removed, and nothing is locked.
 */
int tracefs_begin(const struct vnode *vn);
void tracefs_end(void);
/* A file is opened, closed: an instance with open files stays. As tracefs_begin(). */
int tracefs_hold(const struct vnode *vn);
void tracefs_release(const struct vnode *vn);

/* Is it opened to be written anew (the shell's >)? */
bool tracefs_opens_anew(const struct file *f);
/* struct vnode_ops' truncate: only an open clears a file, as in Linux. */
int tracefs_truncate(struct vnode *vn, uint64_t size);

/* Adds a file, or a directory if file->fill is not NULL. The directory owns it until tracefs
 * removes it. NULL if the name is there, or there is no memory. To be called by `fill`. */
struct vnode *tracefs_add(struct vnode *dir, const struct tracefs_file *file, const char *name,
			  uintptr_t arg);
/* Makes a directory outside of tracefs, or finds it. With a reference. NULL: no memory. At boot. */
struct vnode *tracefs_make_dir(struct vnode *parent, const char *name, uint32_t mode);
/* cpus.c: makes /sys/devices/system/cpu. Once, at boot. */
void cpus_make_files(struct vnode *sys);
/* Bit N: there is CPU N. */
uint64_t cpus_online(void);
/* Prints CPUs as a number, in groups of 32 bits, as Linux does. */
void cpus_print_mask(struct sbuf *out, uint64_t mask);
/* In a store: an event was made. After it, the event's directory is there. */
void tracefs_appears(const char *system, const char *event);
/* The `destroy` of a file's operations. */
void tracefs_destroy(struct vnode *vn);
/* Adds n files of a table. */
void tracefs_add_all(struct vnode *dir, const struct tracefs_file *files, size_t n, uintptr_t arg);
/* Adds n numbers, with the mode 0640. They are never freed. */
void tracefs_add_numbers(struct vnode *dir, const struct tracefs_number *numbers, size_t n);
/* What a file is about, and whose it is. */
uintptr_t tracefs_arg(const struct vnode *vn);
struct instance *tracefs_instance(const struct vnode *vn);

/* The text without the blanks at its beginning and end, where it is cut. */
char *tracefs_trim(char *text);
/* The number in a text, with blanks around it. 0, or -EINVAL. */
int tracefs_number(const char *text, uint64_t *value);
/* The 0 or 1 in a text, with blanks around it. 0, or -EINVAL. */
int tracefs_bool(const char *text, bool *value);
/*
 * The next word of *text, which blanks separate. It ends with NUL, and *text is after it. NULL: no
 * more.
 */
char *tracefs_word(char **text);

/*
 * Calls command for each line that is not blank, without what comes after a '#', until one fails.
 * Returns what that returned, or 0.
 */
int tracefs_lines(char *text, int (*command)(char *line));

/* files.c: the directory itself. */
void tracefs_fill_root(struct vnode *dir);
