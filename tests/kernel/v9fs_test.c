/*
 * v9fs_test.c - a host of 9P that answers here: first as it should, then with lies of all kinds,
 * and then again as it should. Programs get errors from lies, or what the lie says where that can
 * be; never a name that leads out of its directory, nor a byte that is not theirs.
 */
#include "kernel/abi/dirent.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/9p/v9fs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "tests/kernel/ktest.h"

#define TAG      "liar"
#define PLACE    "/tmp/9p"
#define SIZE     10000
#define FIDS     P9_FIDS
#define NO_FILE  0xffff
#define CROWD    8500 /* files in the directory "d", more than V9FS_CROWDED */
#define ONE_IN_4 64   /* of 256 */
#define CANARY   0x5a

enum { ROOT, FILE_F, DIR_D, LINK_L, NEW, NODES };

static const struct {
	const char *name;
	uint32_t mode;
	enum { IN_ROOT, IN_D, NOWHERE } in;
} nodes[NODES] = {
    [ROOT] = {"", S_IFDIR | 0755, NOWHERE},   [FILE_F] = {"f", S_IFREG | 0644, IN_ROOT},
    [DIR_D] = {"d", S_IFDIR | 0755, IN_ROOT}, [LINK_L] = {"l", S_IFLNK | 0777, IN_D},
    [NEW] = {"new", S_IFREG | 0644, IN_ROOT},
};

/* Guarded by the transport's lock, but for what a test sets while nobody asks. */
static struct host {
	struct p9_trans_module trans;
	uint16_t fids[FIDS]; /* the node of each, or NO_FILE */
	bool made;           /* NEW is there */
	uint64_t seed;
	unsigned lies; /* of 256 replies */
	uint64_t told; /* lies so far */
	int write_error;
	uint64_t held;      /* by user 0 of the heap, when bytes were read last */
	struct p9_fcall tc; /* the request, to be read */
} host;

static uint32_t
host_random(void)
{
	host.seed ^= host.seed << 13;
	host.seed ^= host.seed >> 7;
	host.seed ^= host.seed << 17;
	return (uint32_t)(host.seed >> 16);
}

/* From NODES on they are those of a crowd. */
static uint32_t
mode_of(unsigned n)
{
	return n < NODES ? nodes[n].mode : S_IFREG | 0644;
}

static void
put_qid(struct p9_fcall *rc, unsigned n)
{
	p9pdu_writef(rc, "bdq", S_ISDIR(mode_of(n)) ? 0x80u : 0u, 1u, (uint64_t)n + 100);
}

static bool
is_there(unsigned n, unsigned in)
{
	return (n != NEW || host.made) && nodes[n].in == (in == ROOT    ? IN_ROOT
							  : in == DIR_D ? IN_D
									: NODES);
}

/* Which node of a directory has this name? */
static unsigned
find_node(unsigned in, const char *name)
{
	for (unsigned n = 0; n < NODES; n++)
		if (is_there(n, in) && strcmp(nodes[n].name, name) == 0)
			return n;
	if (in == DIR_D && name[0] == '#') {
		unsigned n = 0;

		for (unsigned i = 1; name[i] != '\0'; i++)
			n = n * 10 + (unsigned)(name[i] - '0');
		return NODES + n;
	}
	return NO_FILE;
}

static int
answer_walk(struct p9_fcall *rc, unsigned from)
{
	char name[P9_NAME_MAX + 1];
	uint32_t fid;
	uint16_t count;

	p9pdu_readf(&host.tc, "dw", &fid, &count);
	if (count != 0 && p9pdu_readf(&host.tc, "s", name, sizeof(name)))
		from = find_node(from, name);
	if (from == NO_FILE || fid >= FIDS)
		return ENOENT;
	host.fids[fid] = (uint16_t)from;
	p9pdu_writef(rc, "w", (uint32_t)count);
	if (count != 0)
		put_qid(rc, from);
	return 0;
}

static void
answer_getattr(struct p9_fcall *rc, unsigned n)
{
	p9pdu_writef(rc, "q", P9_STATS_BASIC);
	put_qid(rc, n);
	p9pdu_writef(rc, "dddqqqqqqqqqqqqqqq", mode_of(n), 0u, 0u, (uint64_t)1, (uint64_t)0,
		     S_ISREG(mode_of(n)) ? (uint64_t)SIZE : (uint64_t)1, (uint64_t)4096,
		     (uint64_t)8, (uint64_t)1, (uint64_t)0, (uint64_t)1, (uint64_t)0, (uint64_t)1,
		     (uint64_t)0, (uint64_t)0, (uint64_t)0, (uint64_t)0, (uint64_t)0);
}

static void
answer_readdir(struct p9_fcall *rc, unsigned dir)
{
	uint32_t at = rc->size, end;
	uint64_t off;

	p9pdu_readf(&host.tc, "q", &off);
	p9pdu_writef(rc, "d", 0u);
	for (unsigned n = off < NODES ? (unsigned)off : NODES; n < NODES; n++) {
		if (!is_there(n, dir))
			continue;
		put_qid(rc, n);
		p9pdu_writef(rc, "qbs", (uint64_t)n + 1, nodes[n].mode >> 12, nodes[n].name);
	}
	end = rc->size;
	rc->size = at;
	p9pdu_writef(rc, "d", end - at - 4);
	rc->size = end;
}

static uint8_t
byte_at(uint64_t off)
{
	return (uint8_t)(off * 7 + 1);
}

static void
answer_read(struct p9_fcall *rc)
{
	uint64_t off;
	uint32_t count;

	host.held = uidinfo_held(&uidinfo_root, UIDINFO_KMEM);
	p9pdu_readf(&host.tc, "qd", &off, &count);
	if (off >= SIZE)
		count = 0;
	else if (count > SIZE - off)
		count = (uint32_t)(SIZE - off);
	p9pdu_writef(rc, "d", count);
	for (uint32_t i = 0; i < count && rc->size < rc->capacity; i++)
		rc->sdata[rc->size++] = byte_at(off + i);
}

static int
answer_write(struct p9_fcall *rc)
{
	uint64_t off;
	uint32_t count;

	p9pdu_readf(&host.tc, "qd", &off, &count);
	p9pdu_writef(rc, "d", count);
	return host.write_error;
}

static int
answer_create(struct p9_fcall *rc, uint32_t fid)
{
	char name[P9_NAME_MAX + 1] = "";

	p9pdu_readf(&host.tc, "s", name, sizeof(name));
	if (strcmp(name, nodes[NEW].name) != 0)
		return EACCES;
	host.made = true;
	host.fids[fid] = NEW;
	put_qid(rc, NEW);
	p9pdu_writef(rc, "d", 0u);
	return 0;
}

static int
answer_unlink(void)
{
	char name[P9_NAME_MAX + 1] = "";

	p9pdu_readf(&host.tc, "s", name, sizeof(name));
	if (strcmp(name, nodes[NEW].name) != 0)
		return EACCES;
	host.made = false;
	return 0;
}

/* Writes what an honest host answers; returns its error, or 0. */
static int
answer(struct p9_fcall *rc, uint8_t type)
{
	uint32_t fid = 0;
	unsigned node;

	if (type == P9_TVERSION) {
		p9pdu_writef(rc, "ds", (uint32_t)P9_MSIZE, "9P2000.L");
		return 0;
	}
	p9pdu_readf(&host.tc, "d", &fid);
	if (fid >= FIDS)
		return ENFILE;
	if (type == P9_TATTACH) {
		host.fids[fid] = ROOT;
		put_qid(rc, ROOT);
		return 0;
	}
	node = host.fids[fid];
	if (node == NO_FILE)
		return EBADF;
	switch (type) {
	case P9_TWALK:
		return answer_walk(rc, node);
	case P9_TLOPEN:
		put_qid(rc, node);
		p9pdu_writef(rc, "d", 0u);
		return 0;
	case P9_TLCREATE:
		return answer_create(rc, fid);
	case P9_TGETATTR:
		answer_getattr(rc, node);
		return 0;
	case P9_TREADDIR:
		answer_readdir(rc, node);
		return 0;
	case P9_TREADLINK:
		p9pdu_writef(rc, "s", "../f");
		return 0;
	case P9_TREAD:
		answer_read(rc);
		return 0;
	case P9_TWRITE:
		return answer_write(rc);
	case P9_TUNLINKAT:
		return answer_unlink();
	case P9_TCLUNK:
		host.fids[fid] = NO_FILE;
		return 0;
	case P9_TSETATTR:
	case P9_TFSYNC:
		return 0;
	case P9_TSTATFS:
		p9pdu_writef(rc, "ddqqqqqqd", 1u, 4096u, (uint64_t)9, (uint64_t)8, (uint64_t)8,
			     (uint64_t)7, (uint64_t)6, (uint64_t)5, 255u);
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

/* Puts a text where the reply has its last one. */
static void
lie_text(struct p9_fcall *rc)
{
	static const char *const texts[] = {"..",  ".",         "",          "/",
					    "a/b", "../../etc", "/dev/null", "l"};
	const char *text = texts[host_random() % 8];
	uint32_t n = (uint32_t)strlen(text) + host_random() % 2;

	if (rc->size < P9_HDRSZ + 2 + n)
		return;
	rc->sdata[rc->size - n - 2] = (uint8_t)n;
	rc->sdata[rc->size - n - 1] = 0;
	memcpy(rc->sdata + rc->size - n, text, n);
}

/* Spoils a reply. Returns how many bytes the device says that it has. */
static uint32_t
lie(struct p9_fcall *rc)
{
	uint32_t body = rc->size > P9_HDRSZ ? rc->size - P9_HDRSZ : 0;
	uint32_t at = P9_HDRSZ + (body > 0 ? host_random() % body : 0);
	uint32_t first = host_random() % 2 ? P9_HDRSZ : at;

	host.told++;
	switch (host_random() % 10) {
	case 0: /* shorter, or longer by what was there before */
		return host_random() % (rc->capacity + 1);
	case 1: /* the header: size, type, tag */
		rc->sdata[host_random() % P9_HDRSZ] ^= (uint8_t)(host_random() | 1);
		return rc->size;
	case 2: /* a size with all bits */
		memset(rc->sdata, 0xff, 4);
		return rc->capacity;
	case 3: /* an error, of any number */
		rc->size = 0;
		p9pdu_writef(rc, "dbwd", 11u, (uint32_t)P9_RLERROR,
			     rc->sdata[5] | rc->sdata[6] * 256u,
			     host_random() % 3 ? host_random() % 140 : host_random());
		return rc->size;
	case 4: /* numbers with all bits, or none */
		memset(rc->sdata + first, host_random() % 2 ? 0xff : 0, rc->size - first);
		return rc->size;
	case 5:
		memset(rc->sdata + first, 0xff, rc->size - first < 8 ? rc->size - first : 8);
		return rc->size;
	case 6:
		lie_text(rc);
		return rc->size;
	case 7: /* all that has room */
		memset(rc->sdata + rc->size, (int)host_random(), rc->capacity - rc->size);
		rc->size = rc->capacity;
		p9pdu_finalize(rc);
		return rc->size;
	default: /* some bytes */
		for (unsigned n = host_random() % 4 + 1; n > 0 && body > 0; n--)
			rc->sdata[P9_HDRSZ + host_random() % body] = (uint8_t)host_random();
		return rc->size;
	}
}

/* As p9_trans_module.request. */
static void
host_request(struct p9_req_t *req)
{
	struct p9_fcall *rc = &req->rc;
	uint8_t type = req->tc.sdata[4];
	uint32_t tag = req->tc.sdata[5] | req->tc.sdata[6] * 256u, length;
	int error;

	host.tc = req->tc;
	host.tc.offset = P9_HDRSZ;
	p9pdu_prepare(rc, type + 1, (uint16_t)tag);
	error = answer(rc, type);
	if (error != 0) {
		p9pdu_prepare(rc, P9_RLERROR, (uint16_t)tag);
		p9pdu_writef(rc, "d", (uint32_t)error);
	}
	p9pdu_finalize(rc);
	length = rc->size;
	if (host_random() % 256 < host.lies)
		length = lie(rc);
	p9_client_cb(req, length);
}

static int
mount_it(void)
{
	int err;
	struct vnode *dir = vnode_lookup(NULL, PLACE, &err);
	int error = vfs_mount(dir, "9p", TAG, &(struct mount_options){.mode = 0755}, 0);

	vnode_unref(dir);
	return error;
}

/* Returns what unmount says of the root, of which the host may have told another number before. */
static int
unmount_it(void)
{
	int err, lost;
	struct vnode *root = vnode_lookup(NULL, PLACE, &err);

	KT_EQ(err, 0);
	lost = vfs_unmount(root, false);
	KT_NE(lost, -EBUSY);
	KT_NE(lost, -EINVAL);
	vnode_unref(root);
	return lost;
}

static void
begin(void)
{
	struct vnode *dir;
	int err;

	if (host.trans.tag == NULL) {
		spin_init(&host.trans.lock, "9p test");
		host.trans.tag = TAG;
		host.trans.requests = 4;
		host.trans.request = host_request;
		v9fs_register_trans(&host.trans);
	}
	memset(host.fids, 0xff, sizeof(host.fids));
	host.seed = 0x9e3779b97f4a7c15;
	host.lies = 0;
	host.made = false;
	dir = vnode_create(NULL, PLACE, S_IFDIR | 0755, &err);
	KT_EQ(err, 0);
	vnode_unref(dir);
	KT_EQ(mount_it(), 0);
}

static unsigned
count_fids(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FIDS; i++)
		n += host.fids[i] != NO_FILE;
	return n;
}

/* The host is honest: all is as it says, and it keeps no fid when it is unmounted. */
static void
end(void)
{
	struct file *f;
	uint8_t *buf = kmalloc(SIZE + 1);
	int err;

	KT_EQ(file_open(PLACE "/d/l", O_RDONLY, 0, &f), 0);
	KT_EQ(file_read(f, buf, SIZE + 1), SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		if (buf[i] != byte_at(i))
			ktest_fail(__FILE__, __LINE__, "byte %u: found %u", i, buf[i]);
	file_unref(f);
	kfree(buf);
	KT_EQ(unmount_it(), 0);
	KT_EQ(count_fids(), 0);
	KT_EQ(vnode_remove(NULL, PLACE, true), 0);
	vnode_unref(vnode_lookup(NULL, PLACE, &err));
	KT_EQ(err, -ENOENT);
}

static void
read_file(struct file *f)
{
	static const uint32_t most = 3000;
	uint8_t *buf = kmalloc(most + 64);
	int64_t n;

	memset(buf, CANARY, most + 64);
	n = file_read(f, buf, most);
	KT_LE(n, most);
	for (unsigned i = 0; i < 64; i++)
		KT_EQ(buf[most + i], CANARY);
	kfree(buf);
}

/* Names that a listing tells stay in their directory, and no listing is endless. */
static void
list_dir(const char *path)
{
	static const unsigned most = 2000;
	char *buf;
	uint64_t cookie = 0, last = 0;
	struct vnode *dir;
	struct uio_vec v;
	struct uio u;
	int64_t n;
	int err;

	dir = vnode_lookup(NULL, path, &err);
	if (dir == NULL)
		return;
	buf = kmalloc(most);
	for (unsigned i = 0; i < 1000; i++) {
		uio_init(&u, &v, UIO_KERNEL, buf, most);
		n = vnode_read_dir(dir, &u, &cookie, &last);
		KT_LE(n, most);
		if (n <= 0)
			break;
		for (int64_t at = 0; at < n;) {
			const struct linux_dirent64 *d = (const void *)(buf + at);

			KT_GT(d->d_reclen, 0);
			KT_LE(at + d->d_reclen, n);
			KT_LT(strlen(d->d_name), d->d_reclen);
			KT_ASSERT(d->d_name[0] != '\0' && strchr(d->d_name, '/') == NULL);
			at += d->d_reclen;
		}
		if (host_random() % 16 == 0)
			break; /* a host that tells names without end: the reader may stop */
	}
	kfree(buf);
	vnode_unref(dir);
}

static void
map_page(struct vnode *vn)
{
	uint8_t *page;
	int err = 0;

	if (vn->ops->page == NULL)
		return;
	page = vn->ops->page(vn, host_random() % 4, false, &err);
	KT_LE(err, 0);
	if (page != NULL)
		page_unref(page);
}

/* A lie may make a FIFO or a device of a file: who opens or reads it is not to wait there. */
static bool
open_it(const char *path, int flags, struct file **f)
{
	return file_open(path, flags | O_NONBLOCK, 0644, f) == 0;
}

static void
use_file(const char *path)
{
	static const char text[] = "what is written";
	struct vnode *vn;
	struct file *f;
	struct stat st;

	if (!open_it(path, host_random() % 2 ? O_RDWR : O_RDONLY, &f))
		return;
	vn = f->vn;
	if (S_ISREG(vn->mode)) {
		vnode_stat(vn, &st);
		KT_GE(st.st_size, 0);
		read_file(f);
		KT_LE(file_write(f, text, sizeof(text)), sizeof(text));
		map_page(vn);
		vnode_truncate(vn, host_random() % SIZE);
		file_sync(f);
	}
	file_unref(f);
}

static void
make_and_remove(void)
{
	struct file *f;

	if (open_it(PLACE "/new", O_RDWR | O_CREAT, &f)) {
		read_file(f);
		file_unref(f);
	}
	vnode_rename(NULL, PLACE "/new", NULL, PLACE "/d/new", 0);
	vnode_remove(NULL, PLACE "/new", false);
	vnode_remove(NULL, PLACE "/d", true);
}

static void
use_all(void)
{
	struct statfs s;
	struct vnode *vn;
	int err;

	switch (host_random() % 6) {
	case 0:
		list_dir(PLACE);
		break;
	case 1:
		list_dir(PLACE "/d");
		break;
	case 2:
		use_file(PLACE "/f");
		break;
	case 3:
		use_file(PLACE "/d/l");
		break;
	case 4:
		make_and_remove();
		break;
	default:
		vn = vnode_lookup(NULL, PLACE, &err);
		if (vn != NULL)
			vfs_statfs(vn, &s);
		vnode_unref(vn);
		vnode_unref(vfs_symlink(NULL, PLACE "/d/s", "to", &err));
		vnode_unref(vnode_lookup_link(NULL, PLACE "/d/l", &err));
		break;
	}
}

KTEST(v9fs_takes_no_lie_of_its_host_for_a_file)
{
	unsigned rounds = ktest_times(1500, 20000);

	begin();
	for (unsigned i = 0; i < rounds; i++) {
		/* Clunks may get lost meanwhile: then the host has fids that the guest does not. */
		host.lies = i % 8 == 7 ? 0 : ONE_IN_4;
		use_all();
	}
	ktest_note("%lu lies", host.told);
	KT_GT(host.told, rounds / 4);
	host.lies = 0;
	unmount_it();
	memset(host.fids, 0xff, sizeof(host.fids));
	KT_EQ(mount_it(), 0);
	end();
}

KTEST(v9fs_mounts_no_liar_and_then_again_a_host)
{
	unsigned mounted = 0;

	begin();
	unmount_it();
	host.lies = ONE_IN_4;
	for (unsigned i = 0; i < 500; i++) {
		if (mount_it() != 0)
			continue;
		mounted++;
		host.lies = 0;
		unmount_it();
		host.lies = ONE_IN_4;
	}
	KT_GT(mounted, 0);
	host.lies = 0;
	memset(host.fids, 0xff, sizeof(host.fids));
	KT_EQ(mount_it(), 0);
	end();
}

KTEST(v9fs_tells_that_the_host_has_no_room)
{
	static const struct {
		int host, guest;
	} errors[] = {{ENOSPC, -ENOSPC}, {EFBIG, -EFBIG}, {EIO, -EIO}, {0, 4}};
	struct file *f;

	begin();
	KT_EQ(file_open(PLACE "/f", O_RDWR, 0, &f), 0);
	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		host.write_error = errors[i].host;
		KT_EQ(file_write(f, "four", 4), errors[i].guest);
	}
	file_unref(f);
	end();
}

KTEST(v9fs_counts_the_room_for_a_read_to_its_user)
{
	uint8_t *buf = kmalloc(SIZE);
	uint64_t before;
	struct file *f;

	begin();
	KT_EQ(file_open(PLACE "/f", O_RDONLY, 0, &f), 0);
	before = uidinfo_held(&uidinfo_root, UIDINFO_KMEM);
	KT_EQ(file_read(f, buf, SIZE), SIZE);
	KT_GE(host.held, before + SIZE / 2); /* others may free some meanwhile */
	KT_LT(uidinfo_held(&uidinfo_root, UIDINFO_KMEM), before + SIZE / 2);
	file_unref(f);
	kfree(buf);
	end();
}

static bool
crowd_is_gone(void *arg)
{
	return count_fids() <= V9FS_CROWDED + 100;
}

KTEST(v9fs_finds_all_names_of_a_directory_that_has_more_than_are_kept)
{
	char path[32];
	struct stat st;
	struct vnode *vn;
	int err;

	begin();
	for (unsigned i = 0; i < CROWD; i++) {
		snprintf(path, sizeof(path), PLACE "/d/#%u", i % (CROWD - 10));
		vn = vnode_lookup(NULL, path, &err);
		KT_EQ(err, 0);
		vnode_stat(vn, &st);
		KT_EQ(st.st_ino, NODES + i % (CROWD - 10) + 100);
		vnode_unref(vn);
	}
	KT_ASSERT(ktest_wait(crowd_is_gone, NULL));
	end();
}
