/*
 * uidinfo.c - counts what each user holds, and compares it with limits.
 *
 * Locking: uidinfo.h.
 */
#include "kernel/mm/uidinfo.h"

#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"

#define RESERVE_PROCS 10 /* the last 10 of kern.maxproc are reserved for user 0, as in FreeBSD */

static struct fair_group root_groups[MAX_CPUS];
struct uidinfo uidinfo_root = {.link = LIST_INIT(uidinfo_root.link), .groups = root_groups};
static struct list users = LIST_INIT(users); /* guarded by users_lock; all but user 0 */
static struct spinlock users_lock = SPINLOCK_INIT("uidinfo");

/* 0: not set yet. */
static int max_proc, max_files;
static int limits[UIDINFO_KINDS];     /* of one user; UIDINFO_KMEM in KiB */
static uint64_t total[UIDINFO_KINDS]; /* atomic; of all users */

#define LIMIT(ident, name, var, what) \
	SYSCTL_INT(ident, name, SYSCTL_WR | SYSCTL_TUN, &(var), 0, INT32_MAX, what)
LIMIT(kern_maxproc, "kern.maxproc", max_proc, "processes of all users; the last 10 are for user 0");
LIMIT(kern_maxprocperuid, "kern.maxprocperuid", limits[UIDINFO_PROC],
      "processes of one user, zombies included");
LIMIT(kern_maxfiles, "kern.maxfiles", max_files, "open files of all users but user 0");
LIMIT(kern_maxfilesperuid, "kern.maxfilesperuid", limits[UIDINFO_FILE], "open files of one user");
LIMIT(kern_maxpagesperuid, "kern.maxpagesperuid", limits[UIDINFO_PAGE],
      "pages of one user's programs and of their page tables");
LIMIT(kern_maxdatapagesperuid, "kern.maxdatapagesperuid", limits[UIDINFO_DATA],
      "pages of one user's files");
LIMIT(kern_maxkmemperuid, "kern.maxkmemperuid", limits[UIDINFO_KMEM],
      "KiB of kernel memory for one user: names, files, pipes, maps, processes");

static void
set_default(int *limit, uint64_t value)
{
	if (*limit == 0)
		*limit = (int)(value < INT32_MAX ? value : INT32_MAX);
}

void
uidinfo_init(void)
{
	uint64_t pages = page_count_total();

	set_default(&max_proc, pages / 32);
	set_default(&max_files, pages / 4);
	set_default(&limits[UIDINFO_PROC], (uint64_t)max_proc * 9 / 10);
	set_default(&limits[UIDINFO_FILE], (uint64_t)max_files * 9 / 10);
	set_default(&limits[UIDINFO_PAGE], pages * 3 / 4);
	set_default(&limits[UIDINFO_DATA], pages / 2);
	set_default(&limits[UIDINFO_KMEM], pages / 8 * (PAGE_SIZE / 1024));
}

static uint64_t
limit_of(enum uidinfo_kind kind)
{
	uint64_t limit = (uint64_t)__atomic_load_n(&limits[kind], __ATOMIC_RELAXED);

	return kind == UIDINFO_KMEM ? limit * 1024 : limit;
}

/* Is `all` too much of a kind for all users together? root: for user 0, who may use the reserve. */
static bool
exceeds_all(enum uidinfo_kind kind, uint64_t all, bool root)
{
	if (kind == UIDINFO_PROC)
		return all + (root ? 0 : RESERVE_PROCS) > (uint64_t)max_proc;
	if (root)
		return false;
	return kind == UIDINFO_FILE ? all > (uint64_t)max_files : uidinfo_memory_short();
}

bool
uidinfo_memory_short(void)
{
	return page_count_free() < page_count_reserve();
}

bool
uidinfo_charge(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n)
{
	bool root = ui == &uidinfo_root;
	uint64_t mine = __atomic_add_fetch(&ui->held[kind], n, __ATOMIC_RELAXED);
	uint64_t all = __atomic_add_fetch(&total[kind], n, __ATOMIC_RELAXED);

	if (!exceeds_all(kind, all, root) && (root || mine <= limit_of(kind)))
		return true;
	CTR4(KTR_PROC, "limit: user %u kind %u held %lu of all %lu", ui->uid, kind, mine, all);
	uidinfo_release(ui, kind, n);
	return false;
}

void
uidinfo_charge_anyway(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n)
{
	__atomic_fetch_add(&total[kind], n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ui->held[kind], n, __ATOMIC_RELAXED);
}

void
uidinfo_release(struct uidinfo *ui, enum uidinfo_kind kind, uint64_t n)
{
	__atomic_fetch_sub(&total[kind], n, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&ui->held[kind], n, __ATOMIC_RELAXED);
}

uint64_t
uidinfo_held_by_all(enum uidinfo_kind kind)
{
	return __atomic_load_n(&total[kind], __ATOMIC_RELAXED);
}

/* users_lock held. */
static struct uidinfo *
uidinfo_find(uint32_t uid)
{
	list_for_each_entry (struct uidinfo, ui, &users, link)
		if (ui->uid == uid)
			return ui;
	return NULL;
}

static bool
is_unused(const struct uidinfo *ui)
{
	uint64_t held = 0;

	for (unsigned k = 0; k < UIDINFO_KINDS; k++)
		held |= __atomic_load_n(&ui->held[k], __ATOMIC_RELAXED);
	return held == 0;
}

/* Makes a uidinfo without a user, and its part of each CPU. Programs run when all are known. */
static struct uidinfo *
alloc_fresh(uint32_t uid)
{
	struct uidinfo *ui = kzalloc(sizeof(*ui) + ncpus * sizeof(*ui->groups));

	if (ui != NULL) {
		ui->uid = uid;
		ui->groups = (struct fair_group *)(ui + 1);
	}
	return ui;
}

/* Finds the user's, or makes it. NULL: no memory. */
static struct uidinfo *
uidinfo_find_or_make(uint32_t uid)
{
	struct uidinfo *ui, *fresh;

	spin_lock(&users_lock);
	ui = uidinfo_find(uid);
	spin_unlock(&users_lock);
	if (ui != NULL)
		return ui;
	fresh = alloc_fresh(uid);
	spin_lock(&users_lock);
	ui = uidinfo_find(uid);
	if (ui == NULL && fresh != NULL) {
		ui = fresh;
		fresh = NULL;
		list_append(&users, &ui->link);
	}
	spin_unlock(&users_lock);
	kfree(fresh);
	return ui;
}

struct uidinfo *
uidinfo_enter(uint32_t uid)
{
	struct uidinfo *ui = uid != 0 ? uidinfo_find_or_make(uid) : &uidinfo_root;

	return ui != NULL && uidinfo_charge(ui, UIDINFO_PROC, 1) ? ui : NULL;
}

struct uidinfo *
uidinfo_enter_anyway(uint32_t uid)
{
	struct uidinfo *ui = uid != 0 ? uidinfo_find_or_make(uid) : &uidinfo_root;

	if (ui != NULL)
		uidinfo_charge_anyway(ui, UIDINFO_PROC, 1);
	return ui;
}

bool
uidinfo_is_crowded(const struct uidinfo *ui)
{
	return ui != &uidinfo_root && uidinfo_held(ui, UIDINFO_PROC) > limit_of(UIDINFO_PROC);
}

void
uidinfo_leave(struct uidinfo *ui)
{
	uidinfo_release(ui, UIDINFO_PROC, 1);
}

bool
uidinfo_is_full(const struct uidinfo *ui)
{
	/* A fault may need a page and three tables. */
	return ui != &uidinfo_root &&
	       __atomic_load_n(&ui->held[UIDINFO_PAGE], __ATOMIC_RELAXED) + 4 >
		   limit_of(UIDINFO_PAGE);
}

uint32_t
uidinfo_greediest(unsigned share)
{
	uint64_t most = page_count_total() / share;
	uint32_t uid = 0;

	spin_lock(&users_lock);
	list_for_each_entry (const struct uidinfo, ui, &users, link) {
		uint64_t pages =
		    __atomic_load_n(&ui->held[UIDINFO_PAGE], __ATOMIC_RELAXED) +
		    __atomic_load_n(&ui->held[UIDINFO_KMEM], __ATOMIC_RELAXED) / PAGE_SIZE;

		if (pages >= most) {
			most = pages;
			uid = ui->uid;
		}
	}
	spin_unlock(&users_lock);
	return uid;
}

void *
uidinfo_alloc(struct uidinfo *ui, size_t size)
{
	void *p = kzalloc(size);

	if (p == NULL || uidinfo_charge(ui, UIDINFO_KMEM, kmalloc_size(p)))
		return p;
	kfree(p);
	return NULL;
}

void
uidinfo_free(struct uidinfo *ui, void *p)
{
	if (p == NULL)
		return;
	uidinfo_release(ui, UIDINFO_KMEM, kmalloc_size(p));
	kfree(p);
}

static void
uidinfo_print(struct sbuf *out, const struct uidinfo *ui)
{
	sbuf_printf(out, "%u %lu %lu %lu %lu %lu\n", ui->uid, ui->held[UIDINFO_PROC],
		    ui->held[UIDINFO_FILE], ui->held[UIDINFO_PAGE], ui->held[UIDINFO_DATA],
		    (ui->held[UIDINFO_KMEM] + 1023) / 1024);
}

/* In batches, since printing may need memory. No user leaves the list, and new ones come last. */
static void
get_uidinfo(const struct sysctl *s, struct sbuf *out)
{
	struct uidinfo rows[16];
	unsigned seen = 0, n = 1, i;

	for (rows[0] = uidinfo_root; n > 0;) {
		for (i = 0; i < n; i++)
			uidinfo_print(out, &rows[i]);
		n = i = 0;
		spin_lock(&users_lock);
		list_for_each_entry (const struct uidinfo, ui, &users, link) {
			if (i++ < seen)
				continue;
			if (!is_unused(ui))
				rows[n++] = *ui;
			seen = i;
			if (n == sizeof(rows) / sizeof(rows[0]))
				break;
		}
		spin_unlock(&users_lock);
	}
}
SYSCTL_TEXT(kern_uidinfo, "kern.uidinfo", 0, get_uidinfo, NULL,
	    "what users hold: UID PROCESSES FILES PAGES DATA_PAGES KERNEL_KIB");
