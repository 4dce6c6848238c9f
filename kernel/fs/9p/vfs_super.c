/* vfs_super.c - a folder of the host is mounted (v9fs.h). */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/9p/v9fs.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/sysctl/tunable.h"
#include "ktr/ktr.h"

TUNABLE(vfs_share, "vfs.share",
	"TAG:DIRECTORY[,ro]: the host's folder TAG is mounted there at boot");

void
v9fs_session_close(struct v9fs_session_info *ses)
{
	p9_client_destroy(ses->clnt);
	kfree(ses);
}

/* As vfs_type.mount. */
static struct vnode *
v9fs_mount(const char *source, bool read_only, int *err)
{
	struct v9fs_session_info *ses = kzalloc(sizeof(*ses));
	struct p9_fid *fid = NULL;
	struct vnode *root = NULL;
	struct p9_stat_dotl st;
	struct p9_qid qid;

	*err = -ENOMEM;
	if (ses == NULL)
		return NULL;
	spin_init(&ses->lock, "v9fs");
	ses->read_only = read_only;
	ses->clnt = p9_client_create(source, err);
	if (ses->clnt == NULL) {
		kfree(ses);
		return NULL;
	}
	fid = p9_client_attach(ses->clnt, &qid, err);
	if (fid != NULL)
		*err = p9_client_getattr_dotl(fid, &st);
	if (*err == 0 && !S_ISDIR(st.mode))
		*err = -ENOTDIR;
	if (*err == 0)
		root = v9fs_get_inode(ses, fid, &st, err);
	else
		p9_fid_put(fid);
	if (root == NULL)
		v9fs_session_close(ses);
	else
		writeback_start(); /* it forgets names, too */
	CTR2(KTR_VFS, "9p mount: read-only %d error %d", read_only, -*err);
	return root;
}

/* As vfs_type.option. Options that change nothing are accepted. */
static bool
v9fs_option(const char *word)
{
	static const char *const known[] = {"trans=virtio", "version=9p2000.L", "cache=none",
					    "access=client"};

	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(word, known[i]) == 0)
			return true;
	return false;
}

/* Calls fn for all nodes until it says true. */
static bool
any_node(struct v9fs_session_info *ses, bool (*fn)(const struct vnode *vn))
{
	bool found = false;

	spin_lock(&ses->lock);
	for (unsigned i = 0; i < V9FS_BUCKETS && !found; i++)
		for (const struct v9fs_inode *n = ses->bucket[i]; n != NULL && !found; n = n->next)
			found = fn(n->vn);
	spin_unlock(&ses->lock);
	return found;
}

static bool
is_nameless(const struct vnode *vn)
{
	return vn->links == 0 && vn->parent == NULL;
}

static bool
is_written(const struct vnode *vn)
{
	return __atomic_load_n(&vn->writers, __ATOMIC_RELAXED) > 0;
}

/* For vfs_stop_writing(). */
static bool
v9fs_is_written(void *ses)
{
	return any_node(ses, is_written);
}

/* As vfs_type.in_use. The root has a parent. */
static bool
v9fs_in_use(const struct vnode *root)
{
	return any_node(v9fs_inode(root)->ses, is_nameless);
}

/* As vfs_type.remount. */
static int
v9fs_remount(struct vnode *root, bool read_only)
{
	struct v9fs_session_info *ses = v9fs_inode(root)->ses;

	if (read_only)
		return vfs_stop_writing(&ses->read_only, v9fs_is_written, ses) ? 0 : -EBUSY;
	__atomic_store_n(&ses->read_only, false, __ATOMIC_RELAXED);
	return 0;
}

/* As vfs_type.crowded. */
static bool
v9fs_crowded(const struct vnode *root)
{
	return __atomic_load_n(&v9fs_inode(root)->ses->nodes, __ATOMIC_RELAXED) > V9FS_CROWDED;
}

/* As vfs_type.statfs. */
static void
v9fs_statfs(struct vnode *root, struct statfs *s)
{
	struct p9_fid *fid = v9fs_fid_get(v9fs_inode(root));
	struct p9_rstatfs st;

	if (p9_client_statfs(fid, &st) == 0) {
		s->f_bsize = s->f_frsize = st.bsize;
		s->f_blocks = st.blocks;
		s->f_bfree = st.bfree;
		s->f_bavail = st.bavail;
		s->f_files = st.files;
		s->f_ffree = st.ffree;
	}
	p9_fid_put(fid);
}

static void
v9fs_boot(void)
{
	static const struct vfs_type type = {.name = "9p",
					     .magic = V9FS_MAGIC,
					     .mount = v9fs_mount,
					     .option = v9fs_option,
					     .remount = v9fs_remount,
					     .statfs = v9fs_statfs,
					     .in_use = v9fs_in_use,
					     .crowded = v9fs_crowded};

	vfs_register_type(&type);
}

HOOK(booted, v9fs_boot);

static void
v9fs_mount_share(void)
{
	const char *text = tunable_get("vfs.share"), *colon, *comma;
	char tag[64], path[256];
	int error;

	if (text == NULL)
		return;
	colon = strchr(text, ':');
	comma = strrchr(text, ',');
	if (colon == NULL || colon[1] != '/' || (size_t)(colon - text) >= sizeof(tag) ||
	    strlen(colon) > sizeof(path)) {
		tunable_refuse("vfs.share", "expected TAG:/DIRECTORY or TAG:/DIRECTORY,ro");
		return;
	}
	strlcpy(tag, text, (size_t)(colon - text) + 1);
	strlcpy(path, colon + 1, sizeof(path));
	if (comma != NULL && strcmp(comma, ",ro") == 0)
		path[comma - colon - 1] = '\0';
	else
		comma = NULL;
	error = vfs_mount_path(path, "9p", tag, comma != NULL ? MS_RDONLY : 0);
	if (error != 0)
		pr_warn("vfs.share=%s: error %d\n", text, -error);
}

HOOK(mounting, v9fs_mount_share);
