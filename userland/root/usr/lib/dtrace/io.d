/*
 * io.d - the arguments of the provider io, as the guide has them; fileinfo_t and fds[]: a process's open files.
 */
inline int B_BUSY = 0x0001;
inline int B_DONE = 0x0002;
inline int B_ERROR = 0x0004;
inline int B_PAGEIO = 0x0010; /* all I/O is that of pages */
inline int B_PHYS = 0x0020;   /* none is to a program's memory */
inline int B_READ = 0x0040;
inline int B_WRITE = 0x0100;
inline int B_ASYNC = 0x2000;  /* nobody waits but the thread that writes what is dirty */

typedef char *caddr_t;

typedef struct bufinfo {
	int b_flags;
	size_t b_bcount;
	caddr_t b_addr;
	uint64_t b_blkno;  /* of the disk: sectors of 512 bytes */
	uint64_t b_lblkno; /* of the device, which may be a partition */
	size_t b_resid;    /* bytes that were not moved */
	size_t b_bufsize;
	caddr_t b_iodone;  /* the function that is called in the end */
	int b_error;
	dev_t b_edev;
} bufinfo_t;

translator bufinfo_t < struct bio *B > {
	b_flags = B_BUSY | B_PAGEIO | (B->op == 0 ? B_READ : B_WRITE) | (B->ended ? B_DONE : 0) | (B->error != 0 ? B_ERROR : 0) |
		((B->flags & 8) != 0 ? B_ASYNC : 0);
	b_bcount = B->size;
	b_addr = (caddr_t)B->data;
	b_blkno = B->sector;
	b_lblkno = B->sector - B->bdev->start;
	b_resid = B->error != 0 ? B->size : 0;
	b_bufsize = B->size;
	b_iodone = (caddr_t)B->done;
	b_error = -B->error;
	b_edev = B->bdev->number;
};

typedef struct devinfo {
	int dev_major, dev_minor;
	int dev_instance;
	string dev_name;     /* the driver's, as Linux's /proc/devices has it */
	string dev_statname; /* vda, vda1 */
	string dev_pathname;
} devinfo_t;

translator devinfo_t < struct bio *B > {
	dev_major = B->bdev->number >> 8 & 0xfff;
	dev_minor = B->bdev->number & 0xff;
	dev_instance = B->bdev->disk->whole.number & 0xff;
	dev_name = stringof(B->bdev->disk->driver);
	dev_statname = stringof(B->bdev->name);
	dev_pathname = strjoin("/dev/", stringof(B->bdev->name));
};

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
inline int O_NDELAY = O_NONBLOCK;
inline int O_DSYNC = 010000;
inline int O_SYNC = 04010000; /* O_DSYNC is a part of it */
inline int O_RSYNC = O_SYNC;
inline int O_LARGEFILE = 0;   /* each file may be large, and none is of attributes */
inline int O_XATTR = 0;

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

/* Where it is mounted; what is on no disk counts to the root. */
inline struct vnode *vnode_top[struct vnode *v] = v->disk == NULL ? NULL : ((struct ext2_node *)v->node)->m->bdev->root;
inline string vnode_fs[struct vnode *v] =
	v->disk != NULL ? stringof(v->disk->type) : (v->mode & 0170000) == 0140000 ? "sockfs" : "ramfs";
inline string vnode_mount[struct vnode *v] = vnode_top[v] == NULL ? "/" : vnode_path[vnode_top[v]];

translator fileinfo_t < struct file *F > {
	fi_name = F == NULL ? "<none>" : F->vn->name == NULL ? "<unknown>" : stringof(F->vn->name->text);
	fi_dirname = F == NULL ? "<none>" : F->vn->name == NULL ? "<unknown>" : vnode_folder[F->vn->name->dir];
	fi_pathname = F == NULL ? "<none>" : F->vn->name == NULL ? "<unknown>" : vnode_path[F->vn];
	fi_offset = F == NULL ? 0 : F->off;
	fi_fs = F == NULL ? "<none>" : vnode_fs[F->vn];
	fi_mount = F == NULL ? "<none>" : vnode_mount[F->vn];
	fi_oflags = F == NULL ? 0 : F->flags;
};

/* The file of a page that is read or written. What a file system keeps of itself is of none. */
inline struct vnode *bio_vnode[struct bio *b] =
	b->page == NULL || (b->flags & 4) != 0 ? NULL : (struct vnode *)b->page->vnode;

translator fileinfo_t < struct bio *B > {
	fi_name = bio_vnode[B] == NULL || bio_vnode[B]->name == NULL ? "<unknown>" : stringof(bio_vnode[B]->name->text);
	fi_dirname = bio_vnode[B] == NULL || bio_vnode[B]->name == NULL ? "<unknown>" : vnode_folder[bio_vnode[B]->name->dir];
	fi_pathname = bio_vnode[B] == NULL || bio_vnode[B]->name == NULL ? "<unknown>" : vnode_path[bio_vnode[B]];
	fi_offset = bio_vnode[B] == NULL ? -1 : ((int64_t)B->page->index << 12) + ((int64_t)B->data & 4095);
	fi_fs = bio_vnode[B] == NULL ? "<unknown>" : vnode_fs[bio_vnode[B]];
	fi_mount = bio_vnode[B] == NULL ? "<unknown>" : vnode_mount[bio_vnode[B]];
	fi_oflags = 0; /* it is not known which open file it is */
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
