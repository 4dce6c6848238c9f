/*
 * io.d - fileinfo_t and fds[], as the guide has them: a process's open files.
 */
inline int O_RDONLY = 0;
inline int O_WRONLY = 1;
inline int O_RDWR = 2;
inline int O_ACCMODE = 3;
inline int O_CREAT = 0100;
inline int O_EXCL = 0200;
inline int O_NOCTTY = 0400;
inline int O_TRUNC = 01000;
inline int O_APPEND = 02000;
inline int O_NONBLOCK = 04000;

typedef struct fileinfo {
	string fi_name;     /* the last part of the path: the newest name, if there are several */
	string fi_dirname;  /* the path of its folder */
	string fi_pathname; /* the path, of four parts at most; a pipe has none */
	int64_t fi_offset;
	string fi_fs;
	string fi_mount;
	int fi_oflags;      /* as open(2) took them */
} fileinfo_t;

inline string vnode_part[struct vnode *v] = v == NULL || v->name == NULL ? "" : strjoin("/", stringof(v->name->text));
inline struct vnode *vnode_above[struct vnode *v] = v == NULL || v->name == NULL ? NULL : v->name->dir;
inline string vnode_folder[struct vnode *v] =
	strjoin(strjoin(vnode_part[vnode_above[vnode_above[v]]], vnode_part[vnode_above[v]]), vnode_part[v]);
inline string vnode_path[struct vnode *v] = strjoin(vnode_folder[vnode_above[v]], vnode_part[v]);

translator fileinfo_t < struct file *F > {
	fi_name = F == NULL ? "<none>" : F->vn->name == NULL ? "<unknown>" : stringof(F->vn->name->text);
	fi_dirname = F == NULL ? "<none>" : F->vn->name == NULL ? "<unknown>" : vnode_folder[F->vn->name->dir];
	fi_pathname = F == NULL ? "<none>" : F->vn->name == NULL ? "<unknown>" : vnode_path[F->vn];
	fi_offset = F == NULL ? 0 : F->off;
	fi_fs = "ramfs";
	fi_mount = "/";
	fi_oflags = F == NULL ? 0 : F->flags;
};

inline struct file *getf[int fd] =
	fd >= 0 && fd < 64 && curproc != NULL && curproc->files != NULL ? curproc->files->files[fd] : NULL;
inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (getf[fd]);

inline string cwd = curproc == NULL || curproc->cwd == NULL || curproc->cwd->name == NULL ? "/" : vnode_path[curproc->cwd];
inline string root = curproc == NULL || curproc->root == NULL || curproc->root->name == NULL ? "/" : vnode_path[curproc->root];

/* The parts of a device's number, as stat(2) has it. */
inline int getmajor[uint64_t dev] = (int)(dev >> 8 & 0xfff | dev >> 32 & ~0xfffL);
inline int getminor[uint64_t dev] = (int)(dev & 0xff | dev >> 12 & ~0xffL);

/* A mutex waits; a spin lock is another type. */
inline int mutex_type_adaptive[struct mutex *m] = m != NULL;
inline int mutex_type_spin[struct mutex *m] = 0;
