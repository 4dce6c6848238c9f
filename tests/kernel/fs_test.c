/*
 * fs_test.c - the tree of names, RAM files, pipes and devices, used from within the kernel.
 */
#include "kernel/abi/dirent.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/stat.h"
#include "kernel/dev/tty.h"
#include "kernel/dev/uart.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/fs/pipe/pipe.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/ftrace/tracefs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sysctl/registry.h"
#include "tests/kernel/ktest.h"

static struct file *
opened(const char *path, int flags)
{
	struct file *f = NULL;

	KT_EQ(file_open(path, flags, 0644, &f), 0);
	return f;
}

static void
make_dir(const char *path)
{
	int err;
	struct vnode *vn = vnode_create(NULL, path, S_IFDIR | 0755, &err);

	KT_EQ(err, 0);
	vnode_unref(vn);
}

static void
make_file(const char *path, const char *text)
{
	struct file *f = opened(path, O_WRONLY | O_CREAT | O_TRUNC);

	KT_EQ(file_write(f, text, strlen(text)), strlen(text));
	file_unref(f);
}

static int
lookup_error(const char *path)
{
	int err;

	vnode_unref(vnode_lookup(NULL, path, &err));
	return err;
}

static int
create_error(const char *path, uint32_t mode)
{
	int err;

	vnode_unref(vnode_create(NULL, path, mode, &err));
	return err;
}

KTEST(vfs_lookup_walks_dots_and_slashes)
{
	int err;
	struct vnode *root = vnode_lookup(NULL, "/", &err), *vn;

	make_dir("/tmp/w");
	make_file("/tmp/w/f", "x");
	static const char *const same[] = {"/../..", "//", "/tmp/..", "/tmp/w/../../.",
					   "/./tmp/../"};
	for (unsigned i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		vn = vnode_lookup(NULL, same[i], &err);
		KT_ASSERT(vn == root);
		vnode_unref(vn);
	}
	KT_EQ(lookup_error("/tmp/w//f"), 0);
	KT_EQ(lookup_error("/tmp/w/f/"), -ENOTDIR);
	KT_EQ(lookup_error("/tmp/w/f/.."), -ENOTDIR);
	KT_EQ(lookup_error("/tmp/w/none/f"), -ENOENT);
	KT_EQ(lookup_error(""), -ENOENT);
	char name[NAME_MAX + 8];
	memset(name, 'n', sizeof(name));
	name[0] = '/';
	name[NAME_MAX + 2] = '\0';
	KT_EQ(lookup_error(name), -ENAMETOOLONG);
	name[NAME_MAX + 1] = '\0';
	KT_EQ(lookup_error(name), -ENOENT);
	KT_EQ(vnode_remove(NULL, "/tmp/w/f", false), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/w", true), 0);
	vnode_unref(root);
}

KTEST(vfs_refuses_what_would_break_the_tree)
{
	make_dir("/tmp/d");
	make_dir("/tmp/d/sub");
	make_file("/tmp/f", "f");
	KT_EQ(create_error("/tmp/d", S_IFDIR | 0755), -EEXIST);
	KT_EQ(create_error("/", S_IFDIR | 0755), -EEXIST);
	KT_EQ(create_error("/tmp/f/x", S_IFREG | 0644), -ENOTDIR);
	KT_EQ(create_error("/dev/x", S_IFREG | 0644), -EPERM);
	KT_EQ(vnode_remove(NULL, "/tmp/d", true), -ENOTEMPTY);
	KT_EQ(vnode_remove(NULL, "/tmp/d", false), -EISDIR);
	KT_EQ(vnode_remove(NULL, "/tmp/f", true), -ENOTDIR);
	KT_EQ(vnode_remove(NULL, "/", true), -EBUSY);
	KT_EQ(vnode_remove(NULL, "/dev", true), -EBUSY);
	KT_EQ(vnode_remove(NULL, "/dev/null", false), -EPERM);
	KT_EQ(vnode_remove(NULL, "/tmp/d/.", true), -EINVAL);
	KT_EQ(vnode_rename(NULL, "/tmp/d", NULL, "/tmp/d/sub/in", false), -EINVAL);
	KT_EQ(vnode_rename(NULL, "/tmp/f", NULL, "/tmp/d", false), -EISDIR);
	KT_EQ(vnode_rename(NULL, "/tmp/d", NULL, "/tmp/f", false), -ENOTDIR);
	KT_EQ(vnode_rename(NULL, "/tmp/none", NULL, "/tmp/x", false), -ENOENT);
	KT_EQ(vnode_remove(NULL, "/tmp/d/sub", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/d", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/f", false), 0);
}

static unsigned freed, freed_under_lock;

static void
count_free(struct vnode *vn)
{
	freed++;
	freed_under_lock += mutex_held(&vfs_lock);
}

KTEST(vfs_unmount_frees_what_is_there_after_the_lock)
{
	static const struct vnode_ops ops = {.destroy = count_free};
	struct vnode *dir, *root;
	int err;

	make_dir("/tmp/mnt");
	dir = vnode_lookup(NULL, "/tmp/mnt", &err);
	KT_EQ(vfs_mount(dir, "tmpfs", "test", &(struct mount_options){.mode = 0755}, 0), 0);
	vnode_unref(dir);
	make_dir("/tmp/mnt/sub");
	for (unsigned i = 0; i < 2; i++) {
		dir = vnode_lookup(NULL, i == 0 ? "/tmp/mnt" : "/tmp/mnt/sub", &err);
		vnode_unref(vnode_add(dir, "counted", S_IFREG | 0644, &ops, NULL, &err));
		KT_EQ(err, 0);
		vnode_unref(dir);
	}
	root = vnode_lookup(NULL, "/tmp/mnt", &err);
	freed = freed_under_lock = 0;
	KT_EQ(vfs_unmount(root, true), 0);
	KT_EQ(freed, 2);
	KT_EQ(freed_under_lock, 0);
	KT_ASSERT(list_empty(&root->children));
	vnode_unref(root);
	KT_EQ(lookup_error("/tmp/mnt/sub"), -ENOENT);
	KT_EQ(vnode_remove(NULL, "/tmp/mnt", true), 0);
}

static struct thread *frees;

static void
count_own_free(struct vnode *vn)
{
	freed += curthread() == frees;
}

/* The names in it leave, but nobody wakes who frees them. */
static void
names_leave(const char *path)
{
	static const struct vnode_ops ops = {.destroy = count_own_free};
	int err;
	struct vnode *dir;

	make_dir(path);
	dir = vnode_lookup(NULL, path, &err);
	vnode_unref(vnode_add(dir, "counted", S_IFREG | 0644, &ops, NULL, &err));
	KT_EQ(err, 0);
	mutex_lock(&vfs_lock);
	dir_empty(dir, &names_leaving);
	mutex_unlock(&vfs_lock);
	vnode_unref(dir);
}

KTEST(vfs_unmount_frees_once_what_is_leaving_and_only_its_own)
{
	struct list left;
	struct vnode *root;
	int err;

	make_dir("/tmp/mnt");
	root = vnode_lookup(NULL, "/tmp/mnt", &err);
	KT_EQ(vfs_mount(root, "tmpfs", "test", &(struct mount_options){.mode = 0755}, 0), 0);
	vnode_unref(root);
	names_leave("/tmp/other");
	names_leave("/tmp/mnt/sub");
	root = vnode_lookup(NULL, "/tmp/mnt", &err);
	frees = curthread();
	freed = 0;
	KT_EQ(vfs_unmount(root, false), 0);
	KT_LE(freed, 1); /* the trimmer may have come by */
	vnode_unref(root);
	mutex_lock(&vfs_lock);
	list_move_all(&names_leaving, &left);
	mutex_unlock(&vfs_lock);
	names_free(&left);
	KT_EQ(vnode_remove(NULL, "/tmp/mnt", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/other", true), 0);
}

KTEST(vfs_rename_replaces_and_moves)
{
	char buf[8];
	struct file *f;

	make_dir("/tmp/from");
	make_file("/tmp/from/a", "new");
	make_file("/tmp/b", "old");
	KT_EQ(vnode_rename(NULL, "/tmp/from/a", NULL, "/tmp/b", false), 0);
	KT_EQ(lookup_error("/tmp/from/a"), -ENOENT);
	f = opened("/tmp/b", O_RDONLY);
	KT_EQ(file_read(f, buf, sizeof(buf)), 3);
	KT_EQ(memcmp(buf, "new", 3), 0);
	file_unref(f);
	KT_EQ(vnode_rename(NULL, "/tmp/b", NULL, "/tmp/b", false), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/b", false), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/from", true), 0);
}

KTEST(vfs_a_removed_file_lives_while_it_is_open)
{
	struct file *f;
	struct stat st;
	char buf[4];

	make_file("/tmp/gone", "data");
	f = opened("/tmp/gone", O_RDONLY);
	KT_EQ(vnode_remove(NULL, "/tmp/gone", false), 0);
	KT_EQ(lookup_error("/tmp/gone"), -ENOENT);
	vnode_stat(f->vn, &st);
	KT_EQ(st.st_nlink, 0);
	KT_EQ(file_read(f, buf, 4), 4);
	KT_EQ(memcmp(buf, "data", 4), 0);
	file_unref(f);
}

KTEST(vfs_nothing_can_be_made_in_a_removed_directory)
{
	int err;
	struct vnode *dir;
	char path[16];

	make_dir("/tmp/cwd");
	dir = vnode_lookup(NULL, "/tmp/cwd", &err);
	KT_EQ(vnode_path(dir, path, sizeof(path), NULL), 8);
	KT_STR_EQ(path, "/tmp/cwd");
	KT_EQ(vnode_path(dir, path, 8, NULL), -ERANGE);
	KT_EQ(vnode_remove(NULL, "/tmp/cwd", true), 0);
	KT_EQ(vnode_path(dir, path, sizeof(path), NULL), -ENOENT);
	KT_ASSERT(vnode_create(dir, "x", S_IFREG | 0644, &err) == NULL);
	KT_EQ(err, -ENOENT);
	KT_ASSERT(vnode_lookup(dir, "..", &err) == NULL);
	KT_EQ(err, -ENOENT);
	vnode_unref(dir);
}

KTEST(vfs_listing_survives_changes_in_between)
{
	static const char *const names[] = {"/tmp/l/a", "/tmp/l/b", "/tmp/l/c"};
	struct linux_dirent64 *d = kmalloc(32);
	struct vnode *dir;
	struct uio_vec v;
	struct uio u;
	uint64_t cookie = 0, end = 0;
	char seen[16] = "";
	int err;

	make_dir("/tmp/l");
	for (unsigned i = 0; i < 3; i++)
		make_file(names[i], "");
	dir = vnode_lookup(NULL, "/tmp/l", &err);
	uio_init(&u, &v, UIO_KERNEL, d, 8);
	KT_EQ(vnode_read_dir(dir, &u, &cookie, &end), -EINVAL); /* not even one record fits */
	for (;;) {
		uio_init(&u, &v, UIO_KERNEL, d, 32); /* one record at a time */
		if (vnode_read_dir(dir, &u, &cookie, &end) == 0)
			break;
		strlcpy(seen + strlen(seen), d->d_name, sizeof(seen) - strlen(seen));
		if (strcmp(d->d_name, "a") == 0) {
			KT_EQ(vnode_remove(NULL, "/tmp/l/a", false), 0);
			KT_EQ(vnode_remove(NULL, "/tmp/l/b", false), 0);
			make_file("/tmp/l/d", "");
		}
	}
	KT_STR_EQ(seen, "...ac"); /* d was not there when it began */
	KT_EQ(vnode_remove(NULL, "/tmp/l/c", false), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/l/d", false), 0);
	vnode_unref(dir);
	KT_EQ(vnode_remove(NULL, "/tmp/l", true), 0);
	kfree(d);
}

KTEST(ramfs_holes_read_as_zeroes_and_pages_come_back)
{
	uint64_t free_before;
	struct file *f;
	char buf[16];

	make_file("/tmp/h", "start");
	free_before = page_count_free();
	f = opened("/tmp/h", O_RDWR);
	KT_EQ(file_seek(f, 100 * PAGE_SIZE - 2, SEEK_SET), 100 * PAGE_SIZE - 2);
	KT_EQ(file_write(f, "end!", 4), 4);
	KT_EQ(vnode_size(f->vn), 100 * PAGE_SIZE + 2);
	KT_EQ(file_seek(f, 3, SEEK_SET), 3);
	KT_EQ(file_read(f, buf, 6), 6);
	KT_EQ(memcmp(buf, "rt\0\0\0\0", 6), 0);
	KT_EQ(file_seek(f, -6, SEEK_END), 100 * PAGE_SIZE - 4);
	KT_EQ(file_read(f, buf, sizeof(buf)), 6);
	KT_EQ(memcmp(buf, "\0\0end!", 6), 0);
	KT_EQ(file_read(f, buf, sizeof(buf)), 0);
	/* The hole has no pages. Other threads may free or allocate a few meanwhile. */
	KT_LT((int64_t)(free_before - page_count_free()), 50);
	KT_EQ(file_seek(f, -1, SEEK_SET), -EINVAL);
	KT_EQ(file_seek(f, 0, 9), -EINVAL);
	KT_EQ(file_seek(f, FILE_SIZE_MAX, SEEK_SET), FILE_SIZE_MAX);
	KT_EQ(file_read(f, buf, 1), 0);
	KT_EQ(file_write(f, "x", 1), -EFBIG);
	file_unref(f);
	KT_EQ(vnode_remove(NULL, "/tmp/h", false), 0);
}

KTEST(ramfs_open_flags_do_what_they_say)
{
	struct file *f, *g;
	char buf[8];

	make_file("/tmp/o", "one");
	KT_EQ(file_open("/tmp/o", O_WRONLY | O_CREAT | O_EXCL, 0644, &f), -EEXIST);
	KT_EQ(file_open("/tmp/o", O_RDONLY | O_DIRECTORY, 0, &f), -ENOTDIR);
	KT_EQ(file_open("/tmp/o", O_RDWR | O_TRUNC | O_DIRECT, 0, &f), -EINVAL);
	KT_EQ(file_open("/tmp", O_WRONLY, 0, &f), -EISDIR);
	KT_EQ(file_open("/tmp/none", O_RDONLY, 0, &f), -ENOENT);
	f = opened("/tmp/o", O_WRONLY | O_APPEND);
	g = opened("/tmp/o", O_RDONLY);
	KT_EQ(file_write(f, "two", 3), 3);
	KT_EQ(file_read(f, buf, 1), -EBADF);
	KT_EQ(file_write(g, "x", 1), -EBADF);
	KT_EQ(file_read(g, buf, sizeof(buf)), 6);
	KT_EQ(memcmp(buf, "onetwo", 6), 0);
	file_unref(f);
	f = opened("/tmp/o", O_WRONLY | O_TRUNC);
	KT_EQ(vnode_size(f->vn), 0);
	file_unref(f);
	file_unref(g);
	KT_EQ(vnode_remove(NULL, "/tmp/o", false), 0);
	KT_EQ(file_open("/tmp/o", O_WRONLY | O_CREAT, 06755, &f), 0);
	KT_EQ(f->vn->mode & 07777, 06755);
	file_unref(f);
	KT_EQ(vnode_remove(NULL, "/tmp/o", false), 0);
}

KTEST(devices_null_and_zero)
{
	struct file *f = opened("/dev/null", O_RDWR);
	char buf[700];

	KT_EQ(file_write(f, buf, sizeof(buf)), sizeof(buf));
	KT_EQ(file_read(f, buf, sizeof(buf)), 0);
	KT_EQ(file_seek(f, 7, SEEK_CUR), 0);
	file_unref(f);
	f = opened("/dev/zero", O_RDWR);
	memset(buf, 1, sizeof(buf));
	KT_EQ(file_read(f, buf, sizeof(buf)), sizeof(buf));
	for (unsigned i = 0; i < sizeof(buf); i++)
		KT_EQ(buf[i], 0);
	file_unref(f);
}

KTEST(pipe_ends_know_when_the_other_is_gone)
{
	struct file *end[2];
	char buf[4];

	KT_EQ(pipe_create(O_NONBLOCK, end), 0);
	KT_EQ(file_read(end[0], buf, 4), -EAGAIN);
	KT_EQ(file_write(end[1], "ab", 2), 2);
	file_unref(end[1]);
	KT_EQ(file_read(end[0], buf, 4), 2);
	KT_EQ(file_read(end[0], buf, 4), 0);
	file_unref(end[0]);
	KT_EQ(pipe_create(0, end), 0);
	file_unref(end[0]);
	KT_EQ(file_write(end[1], "x", 1), -EPIPE);
	file_unref(end[1]);
}

KTEST(pipe_small_writes_are_whole_or_not_at_all)
{
	struct file *end[2];
	char *buf = kzalloc(PIPE_SIZE);

	KT_ASSERT(buf != NULL);
	KT_EQ(pipe_create(O_NONBLOCK, end), 0);
	KT_EQ(file_write(end[1], buf, PIPE_SIZE - 100), PIPE_SIZE - 100);
	KT_EQ(file_write(end[1], buf, 101), -EAGAIN);
	KT_EQ(file_write(end[1], buf, PIPE_BUF + 1), 100); /* larger writes may be split */
	KT_EQ(file_read(end[0], buf, PIPE_SIZE), PIPE_SIZE);
	file_unref(end[0]);
	file_unref(end[1]);
	kfree(buf);
}

#define PIPE_TEST_BYTES (1u << 20)

/* Thread 0 writes a sequence in pieces of odd sizes; thread 1 reads and compares. */
static void
pipe_worker(unsigned i, void *arg)
{
	struct file **end = arg;
	uint8_t *buf = kmalloc(7777);
	uint32_t at = 0;

	KT_ASSERT(buf != NULL);
	while (at < PIPE_TEST_BYTES) {
		size_t n = 1 + at % 7777;
		int64_t got;

		n = n < PIPE_TEST_BYTES - at ? n : PIPE_TEST_BYTES - at;
		for (size_t k = 0; i == 0 && k < n; k++)
			buf[k] = (uint8_t)((at + k) * 31 >> 3);
		got = i == 0 ? file_write(end[1], buf, n) : file_read(end[0], buf, n);
		KT_GT(got, 0);
		for (int64_t k = 0; i == 1 && k < got; k++)
			KT_EQ(buf[k], (uint8_t)((at + (uint32_t)k) * 31 >> 3));
		at += (uint32_t)got;
	}
	kfree(buf);
}

KTEST(pipe_keeps_bytes_in_order_under_load)
{
	struct file *end[2];

	KT_EQ(pipe_create(0, end), 0);
	ktest_start(2, false, pipe_worker, end);
	ktest_join();
	file_unref(end[0]);
	file_unref(end[1]);
}

/* Each thread makes, renames and removes its own names in one directory. */
static void
tree_worker(unsigned i, void *arg)
{
	char a[] = "/tmp/t/a0", b[] = "/tmp/t/b0";

	a[8] = b[8] = (char)('0' + i);
	for (unsigned n = 0; n < 200; n++) {
		make_file(a, "x");
		KT_EQ(vnode_rename(NULL, a, NULL, b, false), 0);
		KT_EQ(lookup_error(a), -ENOENT);
		KT_EQ(vnode_remove(NULL, b, false), 0);
	}
}

KTEST(vfs_tree_stands_concurrent_changes)
{
	size_t used = heap_bytes_used();

	make_dir("/tmp/t");
	ktest_start(4, false, tree_worker, NULL);
	ktest_join();
	KT_EQ(vnode_remove(NULL, "/tmp/t", true), 0); /* only an empty directory can be removed */
	KT_LE(heap_bytes_used(), used + 65536);       /* some threads are not freed yet */
}

KTEST(filetable_slots_and_clones)
{
	struct filetable *ft = filetable_create(&uidinfo_root), *copy;
	struct file *f = opened("/dev/null", O_RDWR);
	const unsigned many = 10 * FILES_FIRST; /* the table grows */

	KT_ASSERT(ft != NULL);
	KT_EQ(filetable_add(ft, f, 0, O_CLOEXEC), 0);
	for (unsigned i = 1; i < many; i++)
		KT_EQ(filetable_add(ft, file_ref(f), 0, 0), i);
	KT_EQ(filetable_add(ft, file_ref(f), FILES_MAX - 1, 0), FILES_MAX - 1);
	KT_EQ(filetable_add(ft, f, FILES_MAX - 1, 0), -EMFILE);
	KT_EQ(close_fd(FILES_MAX - 1, ft), 0);
	KT_EQ(close_fd(5, ft), 0);
	KT_EQ(close_fd(5, ft), -EBADF);
	KT_EQ(close_fd(FILES_MAX, ft), -EBADF);
	KT_EQ(filetable_add(ft, file_ref(f), 3, 0), 5);
	copy = filetable_clone(ft, &uidinfo_root);
	KT_ASSERT(copy != NULL);
	KT_EQ(f->refs, 2 * many);
	filetable_close_on_exec(copy);
	KT_ASSERT(filetable_get(copy, 0) == NULL);
	KT_ASSERT(filetable_get(copy, 1) == f);
	KT_ASSERT(filetable_get(ft, 0) == f);
	filetable_destroy(copy);
	KT_EQ(f->refs, many);
	filetable_destroy(ft);
}

/* Renaming onto an existing name leaves one vnode with that name, and removes the other's. */
KTEST(vfs_rename_replaces_what_has_the_name)
{
	int err;
	struct vnode *from, *to;

	make_dir("/tmp/ren");
	make_file("/tmp/ren/a", "from");
	make_file("/tmp/ren/b", "to");
	from = vnode_lookup(NULL, "/tmp/ren/a", &err);
	KT_EQ(vnode_rename(NULL, "/tmp/ren/a", NULL, "/tmp/ren/b", false), 0);
	to = vnode_lookup(NULL, "/tmp/ren/b", &err);
	KT_ASSERT(from == to);
	KT_EQ(lookup_error("/tmp/ren/a"), -ENOENT);
	vnode_unref(from);
	vnode_unref(to);
	KT_EQ(vnode_remove(NULL, "/tmp/ren/b", false), 0);
	KT_EQ(lookup_error("/tmp/ren/b"), -ENOENT);
	KT_EQ(vnode_remove(NULL, "/tmp/ren", true), 0);
}

KTEST(uidinfo_counts_what_a_user_holds_until_nothing_is_left)
{
	struct uidinfo *ui = uidinfo_enter(4711), *again = uidinfo_enter(4711);
	uint64_t before = heap_bytes_used();
	void *p;

	KT_ASSERT(ui != NULL && ui == again);
	KT_EQ(ui->held[UIDINFO_PROC], 2);
	p = uidinfo_alloc(ui, 100);
	KT_ASSERT(p != NULL);
	KT_EQ(ui->held[UIDINFO_KMEM], 128);
	KT_ASSERT(!uidinfo_charge(ui, UIDINFO_PAGE, page_count_total()));
	KT_EQ(ui->held[UIDINFO_PAGE], 0);
	uidinfo_leave(again);
	uidinfo_leave(ui); /* still exists, since memory is counted in it */
	KT_EQ(ui->held[UIDINFO_KMEM], 128);
	KT_EQ(ui->held[UIDINFO_PROC], 0);
	uidinfo_free(ui, p);
	KT_ASSERT(heap_bytes_used() <= before);
}

KTEST(sbuf_decimal_and_sbuf_hex_print_what_sbuf_printf_prints_however_much_room_there_is)
{
	static const uint64_t numbers[] = {0, 7, 10, 99, 100, 0xfff, 1ul << 32, UINT64_MAX};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (size_t room = 0; room < 48; room++) {
			char text[48] = "", expected[48] = "";
			struct sbuf a, b;

			sbuf_init(&a, text, room);
			sbuf_init(&b, expected, room);
			sbuf_decimal(&a, numbers[i], ' ');
			sbuf_hex(&a, numbers[i], 4, '-');
			sbuf_printf(&b, "%lu %04lx-", numbers[i], numbers[i]);
			KT_EQ(a.len, b.len);
			KT_ASSERT(strcmp(text, expected) == 0);
		}
}

KTEST(kern_uidinfo_shows_each_of_many_users)
{
	static char text[8192];
	struct uidinfo *ui[50];
	struct sbuf out;
	unsigned rows = 0;

	for (unsigned i = 0; i < 50; i++)
		KT_ASSERT((ui[i] = uidinfo_enter(5000 + i)) != NULL);
	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(sysctl_find("kern.uidinfo"), &out);
	KT_ASSERT(!sbuf_is_cut(&out));
	for (unsigned i = 0; i < 50; i++) {
		char row[24];

		snprintf(row, sizeof(row), "\n%u 1 0 0 0 0\n", 5000 + i);
		rows += strstr(text, row) != NULL;
		uidinfo_leave(ui[i]);
	}
	KT_EQ(rows, 50);
}

KTEST(pages_of_a_sparse_file_are_where_they_were_written_and_leave_no_node)
{
	static const uint64_t at[] = {200000, 0, 63, 64, 4095, 4096, 261000};
	struct file *f = opened("/tmp/sparse", O_RDWR | O_CREAT | O_TRUNC);
	size_t used = heap_bytes_used();
	uint64_t found;
	void *page;

	KT_EQ(pagecache_insert(f->vn, FILE_SIZE_MAX / PAGE_SIZE, &found, false, &page), -EFBIG);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 7; i++) {
			KT_EQ(file_seek(f, (int64_t)(at[i] * PAGE_SIZE), SEEK_SET),
			      at[i] * PAGE_SIZE);
			KT_EQ(file_write(f, &at[i], sizeof(at[i])), sizeof(at[i]));
		}
		for (unsigned i = 0; i < 7; i++) {
			KT_EQ(vnode_read(f->vn, &found, sizeof(found), at[i] * PAGE_SIZE),
			      sizeof(found));
			KT_EQ(found, at[i]);
		}
		KT_EQ(vnode_read(f->vn, &found, sizeof(found), 65 * PAGE_SIZE), sizeof(found));
		KT_EQ(found, 0);
		KT_EQ(vnode_truncate(f->vn, 64 * PAGE_SIZE), 0);
		KT_EQ(vnode_read(f->vn, &found, sizeof(found), 63 * PAGE_SIZE), sizeof(found));
		KT_EQ(found, 63);
		KT_EQ(vnode_truncate(f->vn, 0), 0);
		KT_ASSERT(heap_bytes_used() <= used);
	}
	file_unref(f);
}

/* Who writes a gigabyte to a file has its lock so long. */
KTEST(a_file_that_is_locked_tells_what_it_is)
{
	struct file *f = opened("/tmp/locked", O_RDWR | O_CREAT);
	struct stat st;

	KT_EQ(file_write(f, "kestrel", 7), 7);
	mutex_lock(&f->vn->lock);
	vnode_stat(f->vn, &st);
	KT_EQ(st.st_size, 7);
	KT_EQ(file_seek(f, 0, SEEK_END), 7);
	mutex_unlock(&f->vn->lock);
	file_unref(f);
	KT_EQ(vnode_remove(NULL, "/tmp/locked", false), 0);
}

/* The table of names grows, and each name stays where it is looked for. */
KTEST(many_names_are_found)
{
	const unsigned many = 20000;
	char path[32];
	int err;
	struct vnode *vn;

	make_dir("/tmp/many");
	make_file("/tmp/many/0", "");
	vn = vnode_lookup(NULL, "/tmp/many/0", &err);
	for (unsigned i = 1; i < many; i++) {
		snprintf(path, sizeof(path), "/tmp/many/%u", i);
		KT_EQ(vnode_link(vn, NULL, path), 0);
	}
	for (unsigned i = 0; i < many; i++) {
		snprintf(path, sizeof(path), "/tmp/many/%u", i);
		KT_EQ(vnode_remove(NULL, path, false), 0);
		KT_EQ(lookup_error(path), -ENOENT);
	}
	vnode_unref(vn);
	KT_EQ(vnode_remove(NULL, "/tmp/many", true), 0);
}

/* A directory's links are itself, its name, and the directories in it. */
KTEST(a_directory_counts_its_directories)
{
	static const char *const names[] = {"/tmp/links/b", "/tmp/links/f", "/tmp/links"};
	struct stat st;
	struct vnode *dir;
	int err;

	make_dir("/tmp/links");
	dir = vnode_lookup(NULL, "/tmp/links", &err);
	make_dir("/tmp/links/a");
	make_dir("/tmp/links/b");
	make_file("/tmp/f", "");
	vnode_stat(dir, &st);
	KT_EQ(st.st_nlink, 4);
	KT_EQ(vnode_rename(NULL, "/tmp/links/a", NULL, "/tmp/f", RENAME_EXCHANGE), 0);
	vnode_stat(dir, &st);
	KT_EQ(st.st_nlink, 3);
	KT_EQ(vnode_rename(NULL, "/tmp/links/a", NULL, "/tmp/links/f", 0), 0);
	KT_EQ(vnode_rename(NULL, "/tmp/f", NULL, "/tmp/links/b", 0), 0);
	vnode_stat(dir, &st);
	KT_EQ(st.st_nlink, 3);
	for (unsigned i = 0; i < 3; i++)
		KT_EQ(vnode_remove(NULL, names[i], i != 1), 0);
	vnode_stat(dir, &st);
	KT_EQ(st.st_nlink, 2);
	vnode_unref(dir);
}

static bool reads, may_read, wrote; /* atomic */

static bool
is_set_now(void *flag)
{
	return __atomic_load_n((bool *)flag, __ATOMIC_ACQUIRE);
}

/* The first sectors are there at once, the others when they may be. */
static int
late_readpage(struct vnode *vn, uint64_t index, void *page, uint8_t sectors)
{
	if (sectors == 1)
		return 0;
	__atomic_store_n(&reads, true, __ATOMIC_RELEASE);
	return ktest_wait(is_set_now, &may_read) ? 0 : -EIO;
}

static int
note_writepage(struct vnode *vn, uint64_t index, void *page, uint8_t sectors, struct bio_batch *b)
{
	__atomic_store_n(&wrote, true, __ATOMIC_RELEASE);
	return 0;
}

static bool
is_collected(void *page)
{
	bool busy;

	spin_lock(&pages_lock);
	busy = page_of(page)->busy;
	spin_unlock(&pages_lock);
	return busy || is_set_now(&wrote);
}

KTEST(a_pipe_is_polled_while_it_is_locked)
{
	char *buf = kzalloc(PIPE_SIZE);
	struct file *end[2];

	KT_EQ(pipe_create(O_NONBLOCK, end), 0);
	mutex_lock(&end[0]->vn->lock); /* as splice() to a file does */
	KT_EQ(end[0]->vn->ops->poll(end[0]), 0);
	KT_EQ(end[1]->vn->ops->poll(end[1]), POLLOUT);
	mutex_unlock(&end[0]->vn->lock);
	KT_EQ(file_write(end[1], buf, PIPE_SIZE - PIPE_BUF + 1), PIPE_SIZE - PIPE_BUF + 1);
	KT_EQ(end[0]->vn->ops->poll(end[0]), POLLIN);
	KT_EQ(end[1]->vn->ops->poll(end[1]), 0);
	KT_EQ(file_read(end[0], buf, 1), 1);
	KT_EQ(end[1]->vn->ops->poll(end[1]), POLLOUT);
	file_unref(end[1]);
	KT_EQ(end[0]->vn->ops->poll(end[0]), POLLIN | POLLHUP);
	file_unref(end[0]);
	kfree(buf);
}

static void
read_or_sync(unsigned i, void *vn)
{
	void *page;

	if (i == 0) {
		KT_EQ(pagecache_get(vn, 1, ALL_SECTORS, &page), 0);
		page_unref(page);
	} else {
		KT_ASSERT(ktest_wait(is_set_now, &reads));
		KT_EQ(vfs_sync(), 0);
	}
}

KTEST(a_pass_does_not_wait_for_pages_that_it_has_itself)
{
	static const struct vnode_ops ops = {.readpage = late_readpage,
					     .writepage = note_writepage};
	struct vnode *vn = vnode_alloc(S_IFREG | 0600, &ops, NULL);
	void *page[3];

	reads = may_read = wrote = false;
	for (unsigned i = 0; i < 3; i++) {
		KT_EQ(pagecache_get(vn, i, 1, &page[i]), 0);
		pagecache_dirty(page[i], 1);
	}
	ktest_start(2, false, read_or_sync, vn);
	/* The pass has the first page, and waits for the second, or has written the first. */
	KT_ASSERT(ktest_wait(is_collected, page[0]));
	pagecache_dirty(page[0], 1);
	pagecache_forget(vn, 2, 1);
	__atomic_store_n(&may_read, true, __ATOMIC_RELEASE);
	ktest_join();
	for (unsigned i = 0; i < 3; i++)
		page_unref(page[i]);
	pagecache_drop(vn, 0);
	vnode_unref(vn);
}

static struct tty terminal;
static struct thread *waiter; /* atomic */

static int64_t
write_char(int flags, char c)
{
	struct file f = {.flags = O_WRONLY | flags, .priv = &terminal};
	struct uio_vec v;
	struct uio u;

	uio_init(&u, &v, UIO_KERNEL, &c, 1);
	return tty_write(&f, &u);
}

static int64_t refused;

/* Takes all; meanwhile somebody else, who does not wait, writes, too. */
static size_t
write_refuses(struct tty *t, const struct file *f, const char *text, size_t n, int *error)
{
	refused = write_char(O_NONBLOCK, 'n');
	return n;
}

KTEST(who_may_not_write_to_a_terminal_is_told_when_he_may)
{
	static const struct tty_line line = {.write = write_refuses};
	uint32_t told;

	tty_init(&terminal, &line);
	poll_watch(true);
	told = terminal.news.out;
	KT_EQ(write_char(0, 'w'), 1);
	KT_EQ(refused, -EAGAIN);
	KT_EQ(terminal.news.out, told + 1);
	poll_watch(false);
}

static uint64_t line_free;            /* a slow line takes the next character, as clock_ns() */
static unsigned line_cpu, line_taken; /* by this CPU; others go on with the line's own chip */
static const struct uart_chip *line_chip;
static uint64_t line_ns; /* what it takes for a character */
static uint64_t typed_longest, typed_end;

static unsigned
slow_room(struct uart *u)
{
	if (arch_cpu() != line_cpu)
		return line_chip->room(u);
	clock_delay_ns(1000);
	return clock_ns() >= line_free;
}

static void
slow_put(struct uart *u, uint8_t c)
{
	if (arch_cpu() != line_cpu) {
		line_chip->put(u, c);
		return;
	}
	line_free = clock_ns() + line_ns;
	line_taken++;
}

/* Types the key n times on a slow line. Returns how many characters the line has taken. */
static unsigned
type_on_slow_line(struct uart *u, char key, unsigned n, uint64_t pause_ns)
{
	static struct uart_chip slow;
	uint64_t before;
	unsigned taken;

	irq_push();
	line_cpu = arch_cpu();
	line_taken = 0;
	line_chip = u->chip;
	slow = *line_chip;
	slow.room = slow_room;
	slow.put = slow_put;
	before = u->dropped;
	u->chip = &slow;
	for (unsigned i = 0; i < n; i++) {
		uint64_t begin = clock_ns();

		u->input(u->arg, (uint8_t)key, false);
		clock_delay_ns(pause_ns);
		typed_end = clock_ns();
		if (typed_end - begin > typed_longest)
			typed_longest = typed_end - begin;
	}
	taken = line_taken;
	u->input(u->arg, 'U' & 0x1f, false); /* nobody is to read them */
	u->chip = line_chip;
	u->stuck = false;
	u->dropped = before;
	irq_pop();
	return taken;
}

/* As one interrupt brings them: for most of the echo there is no time left. */
KTEST(many_keys_on_a_slow_line_keep_interrupts_off_no_longer_than_a_few)
{
	struct uart *u = uart_get(0);

	if (u == NULL || u->input == NULL)
		ktest_skip("the machine has no serial line");
	line_ns = 15000000;
	KT_LE(type_on_slow_line(u, 'x', 16, 0), 16 / 2);
}

#define PASTED   100
#define PAUSE_NS 300000

static unsigned pasted;

/* The second character of each ^A waits for the line. False: the host has stopped the machine. */
static bool
paste_without_a_stop(void *u)
{
	uint64_t begin;

	clock_delay_ns(40000000); /* nothing was typed lately */
	begin = clock_ns();
	typed_longest = 0;
	pasted = type_on_slow_line(u, 'A' & 0x1f, PASTED, PAUSE_NS);
	return typed_longest < 1000000 && typed_end - begin < PASTED * PAUSE_NS + 20000000;
}

KTEST(a_long_paste_on_a_slow_line_is_echoed_to_its_end)
{
	struct uart *u = uart_get(0);
	bool done = false;

	if (u == NULL || u->input == NULL)
		ktest_skip("the machine has no serial line");
	line_ns = 100000;
	for (unsigned i = 0; i < 20 && !done; i++)
		done = paste_without_a_stop(u);
	if (!done)
		ktest_skip("the host has stopped the machine each time");
	KT_EQ(pasted, 2 * PASTED);
}

static char order[4];

static bool
waiter_sleeps(void *arg)
{
	const struct thread *t = __atomic_load_n(&waiter, __ATOMIC_SEQ_CST);

	return t != NULL && __atomic_load_n(&t->chan, __ATOMIC_SEQ_CST) == &terminal.writing;
}

static void
write_later(unsigned i, void *arg)
{
	__atomic_store_n(&waiter, curthread(), __ATOMIC_SEQ_CST);
	KT_EQ(write_char(0, 'b'), 1);
}

/* Notes whose bytes come. While the first do, the other waits for his turn. */
static size_t
write_in_order(struct tty *t, const struct file *f, const char *text, size_t n, int *error)
{
	size_t had = strlen(order);

	order[had] = *text;
	if (had == 0) {
		ktest_start(1, false, write_later, NULL);
		KT_ASSERT(ktest_wait(waiter_sleeps, NULL));
	}
	return n;
}

KTEST(who_waits_for_a_terminal_writes_before_who_comes_later)
{
	static const struct tty_line line = {.write = write_in_order};

	tty_init(&terminal, &line);
	memset(order, 0, sizeof(order));
	waiter = NULL;
	KT_EQ(write_char(0, 'a'), 1);
	KT_EQ(write_char(0, 'a'), 1);
	ktest_join();
	KT_STR_EQ(order, "aba");
	KT_ASSERT(!terminal.writing);
}

KTEST(a_write_to_trace_marker_does_not_wait_for_ftrace_lock)
{
	struct file *f = opened("/sys/kernel/tracing/trace_marker", O_WRONLY);

	mutex_lock(&ftrace_lock);
	KT_EQ(file_write(f, "x", 1), 1);
	mutex_unlock(&ftrace_lock);
	file_unref(f);
}
