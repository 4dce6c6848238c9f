/*
 * procfs.h - /proc: what Linux's proc(5) says of processes and of the machine, in the same words.
 *
 * Nothing of /proc is kept. A look-up makes a vnode (vnode_make_nameless()), and a read makes the
 * text. Each name is a row of a table.
 *
 * Locking: find, list and link are called with vfs_lock held, show and store without a lock. For a
 * process they take proc_lock, copy what they need, and print after that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/fs/vfs.h"

struct proc;
struct sbuf;
struct vmspace;

/* Takes a name; false: no more. cookie: ascending, not 0. */
typedef bool procfs_add_fn(void *arg, const char *name, uint32_t mode, uint64_t cookie);

/* What a vnode's `data` points to. */
struct procfs_node {
	const struct procfs_file *file;
	uint32_t pid;       /* whose it is; 0: the machine's */
	uint32_t tid;       /* a thread of it; 0: the whole process */
	uint64_t start_ns;  /* the process's, in its directory */
	unsigned fd;        /* a descriptor */
	struct uidinfo *ui; /* of who has looked it up: `text` is counted to that user */
	char *text;         /* of procfs_text(): a symbolic link's, or the name of a sysctl */
	struct vnode *to;   /* where a link leads, with a reference; NULL: where the text says */
	int error;          /* of who follows the link */
	bool syslog;        /* the process that looked it up may know addresses of the kernel */
};

struct procfs_file {
	const char *name;
	uint32_t mode;               /* S_IF… and permission bits */
	bool private;                /* procfs_may_look() says who may open it */
	const struct vnode_ops *ops; /* of a file that is no text; NULL: the file is a text */
	/* Prints the text. 0; -ESRCH: the process has ended. */
	int (*show)(const struct procfs_node *n, struct sbuf *out);
	int (*store)(const struct procfs_node *n, char *text);
	/*
	 * A symbolic link: sets n->text and n->to, if the current process may follow it. 0, or the
	 * -errno for whoever follows the link. A look-up serves one step of a path, so this is
	 * asked anew at each.
	 */
	int (*link)(struct procfs_node *n);
	/* A directory: its files, and its other names. */
	const struct procfs_file *files;
	size_t count;
	/* Describes one of the other names: all of *child, which begins as a copy of dir. */
	bool (*find)(const struct procfs_node *dir, const char *name, struct procfs_node *child);
	/* Lists the other names, as vnode_ops.list, from the cookie `from` + 1 on. */
	void (*list)(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg);
};

#define PROCFS_DIR(files_) .files = files_, .count = sizeof(files_) / sizeof((files_)[0])

/* The number in a name. False: it is no number, or larger than max. */
bool procfs_number(const char *name, uint32_t max, uint32_t *value);
/*
 * May the current process look into a process, as a debugger? 0; -EACCES; -ESRCH if it has ended.
 * If vm is not NULL, *vm becomes the space about which this was asked, with a reference, or NULL.
 * (Files that everybody may read leave out, for others, where the process waits and its addresses.)
 * Takes proc_lock.
 */
int procfs_may_look(uint32_t pid, struct vmspace **vm);
/* As procfs_may_look(), for a caller that holds proc_lock, and holds it until it has read what it
 * asks about. p is the process, or NULL if it has ended. */
bool procfs_looks_into(const struct proc *p, uint32_t pid);
/* Frees what vn->data names, which itself is the vnode's: for the `ops` of a file. */
void procfs_node_destroy(struct vnode *vn);
/* A text for n, printed, and counted to n->ui. NULL: no memory. */
char *procfs_text(const struct procfs_node *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- pid.c: processes, and threads of the kernel, which count as such ---- */

extern const struct procfs_file procfs_pid;
bool procfs_pid_find(const struct procfs_node *dir, const char *name, struct procfs_node *child);
void procfs_pid_list(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg);
/* The user of a process; 0 of threads of the kernel. False: it has ended. */
bool procfs_user(uint32_t pid, uint32_t *uid);

/* ---- pid_file.c ---- */

/* The links cwd, exe and root, for who may look into the process. */
int procfs_place_link(struct procfs_node *n);
/* fd and fdinfo. */
bool procfs_fd_find(const struct procfs_node *dir, const char *name, struct procfs_node *child);
void procfs_fd_list(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg);

/* ---- pid_memory.c ---- */

/* cmdline; or environ, which is private. */
int procfs_strings(const struct procfs_node *n, struct sbuf *out);
int procfs_auxv(const struct procfs_node *n, struct sbuf *out);
int procfs_maps(const struct procfs_node *n, struct sbuf *out);
extern const struct vnode_ops procfs_mem_ops;

/* ---- status.c ---- */

int procfs_stat(const struct procfs_node *n, struct sbuf *out);
int procfs_status(const struct procfs_node *n, struct sbuf *out);
int procfs_statm(const struct procfs_node *n, struct sbuf *out);

/* ---- system.c, sys.c: what is not a process's ---- */

int procfs_mounts(const struct procfs_node *n, struct sbuf *out);
int procfs_mountinfo(const struct procfs_node *n, struct sbuf *out);

#define PROCFS_SYSTEM_FILES 19
extern const struct procfs_file procfs_system_files[PROCFS_SYSTEM_FILES];
bool procfs_sys_find(const struct procfs_node *dir, const char *name, struct procfs_node *child);
void procfs_sys_list(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg);
