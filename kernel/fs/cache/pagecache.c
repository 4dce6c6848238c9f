/*
 * pagecache.c - the pages of files, by number, and which of those of disks are kept (pagecache.h).
 *
 * Invariants: a page of a disk is on one of the lists: of those that may be given up, in the order
 * in which they were last thought of; or of those that are dirty, of files or of devices. A node of
 * a tree has at least one pointer that is not NULL, but for one that was just made.
 */
#include "kernel/fs/cache/pagecache.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(vminfo);
SDT_PROBE_DEFINE_TEXT(vminfo, , , pgin, "pgin", ": n %d page %lu", 2, "int", "uint64_t");
SDT_PROBE_DEFINE_TEXT(vminfo, , , pgpgin, "pgpgin", ": n %d page %lu", 2, "int", "uint64_t");

#define NODE_BITS  6
#define NODE_SLOTS (1u << NODE_BITS)
#define LEVELS     9 /* for 2^54 pages */
#define SCAN_MAX   64
#define ADD_TRIES  8  /* tries to give up one page when another is added */
#define GIVE_UP    64 /* pages at a time, when memory is short */
#define CACHE_PART 4  /* pages of disks: a quarter of memory at most */

struct spinlock pages_lock = SPINLOCK_INIT("pages");
static struct list kept = LIST_INIT(kept);
static struct list dirty[2] = {LIST_INIT(dirty[0]), LIST_INIT(dirty[1])};
static unsigned long kept_count, dirty_count[2];

/* ---- trees. pages_lock held ---- */

/* Where the page's pointer is; NULL: nowhere. */
static void **
tree_slot(const struct pagetree *t, uint64_t index)
{
	unsigned shift = t->height * NODE_BITS;
	void *const *at = &t->root;

	if (index >> shift != 0)
		return NULL;
	while (shift > 0 && *at != NULL) {
		shift -= NODE_BITS;
		at = (void *const *)*at + (index >> shift & (NODE_SLOTS - 1));
	}
	return shift == 0 ? (void **)(uintptr_t)at : NULL;
}

/* Finds the place of a page in the tree; uses *spare if a node lacks. NULL: a node is needed. */
static void **
tree_make_slot(struct pagetree *t, uint64_t index, void ***spare)
{
	void **at = &t->root;

	while (index >> t->height * NODE_BITS != 0) {
		if (t->root != NULL) {
			if (*spare == NULL)
				return NULL;
			(*spare)[0] = t->root;
			t->root = *spare;
			*spare = NULL;
		}
		t->height++;
	}
	for (unsigned shift = t->height * NODE_BITS; shift > 0;) {
		if (*at == NULL) {
			*at = *spare;
			*spare = NULL;
		}
		if (*at == NULL)
			return NULL;
		shift -= NODE_BITS;
		at = (void **)*at + (index >> shift & (NODE_SLOTS - 1));
	}
	return at;
}

/* The first page from *index on; *index is its number. NULL: none. */
static void *
tree_next(const struct pagetree *t, uint64_t *index)
{
	while (*index >> t->height * NODE_BITS == 0) {
		unsigned shift = t->height * NODE_BITS;
		void *at = t->root;

		while (shift > 0 && at != NULL) {
			shift -= NODE_BITS;
			at = ((void **)at)[*index >> shift & (NODE_SLOTS - 1)];
		}
		if (at != NULL)
			return at;
		*index = ((*index >> shift) + 1) << shift;
	}
	return NULL;
}

static bool
node_empty(void *const *node)
{
	for (unsigned i = 0; i < NODE_SLOTS; i++)
		if (node[i] != NULL)
			return false;
	return true;
}

/* Frees the nodes on the way to a page that have nothing. */
static void
tree_trim(struct vnode *vn, uint64_t index)
{
	unsigned n = 0, shift = vn->pages.height * NODE_BITS;
	void **way[LEVELS + 1], **at = &vn->pages.root;

	if (index >> shift != 0)
		return;
	way[n] = at;
	while (shift > 0 && *at != NULL) {
		shift -= NODE_BITS;
		at = (void **)*at + (index >> shift & (NODE_SLOTS - 1));
		way[++n] = at;
	}
	while (n > 0 && node_empty(*way[n - 1])) {
		uidinfo_free(vn->ui, *way[--n]);
		*way[n] = NULL;
	}
	if (vn->pages.root == NULL)
		vn->pages.height = 0;
}

/* ---- pages of all files ---- */

void *
pagecache_find(const struct vnode *vn, uint64_t index, bool ref)
{
	void **slot, *page;

	spin_lock(&pages_lock);
	slot = tree_slot(&vn->pages, index);
	page = slot != NULL ? *slot : NULL;
	if (page != NULL && ref)
		page_ref(page);
	spin_unlock(&pages_lock);
	return page;
}

static bool
on_disk(const struct vnode *vn)
{
	return vn->ops->readpage != NULL;
}

/* A page has come to a file. pages_lock held. */
static void
page_join(struct page *p, struct vnode *vn, uint64_t index)
{
	p->vnode = vn;
	p->index = (uint32_t)index;
	p->used = 0;  /* nothing is valid or dirty */
	p->class = 0; /* not busy, recent or shared */
	vn->page_count++;
	if (on_disk(vn)) {
		list_append(&kept, &p->link);
		kept_count++;
	}
}

/* Takes a page out of its file. pages_lock held. */
static void
page_leave(struct page *p)
{
	struct vnode *vn = p->vnode;

	if (p->dirty != 0)
		pagecache_clean(p);
	if (on_disk(vn)) {
		list_remove(&p->link);
		kept_count--;
	}
	*tree_slot(&vn->pages, p->index) = NULL;
	vn->page_count--;
	tree_trim(vn, p->index);
	p->vnode = NULL;
}

int
pagecache_insert(struct vnode *vn, uint64_t index, void *new, bool ref, void **page)
{
	void **slot, **spare = NULL;

	if (index >= FILE_SIZE_MAX / PAGE_SIZE)
		return -EFBIG;
	for (;;) {
		spin_lock(&pages_lock);
		slot = tree_make_slot(&vn->pages, index, &spare);
		if (slot != NULL)
			break;
		spin_unlock(&pages_lock);
		spare = uidinfo_alloc(vn->ui, NODE_SLOTS * sizeof(void *));
		if (spare == NULL) {
			spin_lock(&pages_lock);
			tree_trim(vn, index); /* what was made of the way */
			spin_unlock(&pages_lock);
			return -ENOSPC;
		}
	}
	if (*slot == NULL) {
		*slot = new;
		page_join(page_of(new), vn, index);
	}
	*page = *slot;
	if (ref)
		page_ref(*page);
	spin_unlock(&pages_lock);
	if (spare != NULL)
		uidinfo_free(vn->ui, spare);
	return 0;
}

bool
pagecache_next(const struct vnode *vn, uint64_t *index)
{
	bool found;

	spin_lock(&pages_lock);
	found = tree_next(&vn->pages, index) != NULL;
	spin_unlock(&pages_lock);
	return found;
}

void *
pagecache_take(struct vnode *vn, uint64_t *index)
{
	void *page;

	spin_lock(&pages_lock);
	while ((page = tree_next(&vn->pages, index)) != NULL && page_of(page)->busy)
		sleep_on(page, &pages_lock, "page", 0, DEADLINE_NEVER);
	if (page != NULL) {
		page_leave(page_of(page));
		(*index)++;
	}
	spin_unlock(&pages_lock);
	return page;
}

/* ---- pages of disks ---- */

/* Gives up one page that nobody uses. False: there is none among the first ones. */
static bool
give_up_page(void)
{
	struct page *p = NULL;

	spin_lock(&pages_lock);
	for (unsigned i = 0; i < SCAN_MAX && !list_empty(&kept); i++) {
		p = list_entry(kept.next, struct page, link);
		if (!p->recent && !p->busy && page_refs(page_address(p)) == 1)
			break;
		p->recent = false;
		list_remove(&p->link);
		list_append(&kept, &p->link);
		p = NULL;
	}
	if (p != NULL)
		page_leave(p);
	spin_unlock(&pages_lock);
	if (p != NULL)
		page_unref(page_address(p));
	return p != NULL;
}

/* Gives up one page, and looks at all that are kept. False: no page can be given up. */
static bool
give_up_any(void)
{
	unsigned long tries = 2 * kept_count / SCAN_MAX + 1; /* the first round makes them old */

	while (tries > 0 && !give_up_page())
		tries--;
	return tries > 0;
}

bool
vfs_give_up_pages(void)
{
	unsigned n = 0;

	while (n < GIVE_UP && give_up_any())
		n++;
	return n > 0;
}

static bool
cache_full(void)
{
	return kept_count + dirty_count[0] + dirty_count[1] >= page_count_total() / CACHE_PART ||
	       uidinfo_memory_short();
}

/* A new page of the file, or one that somebody else has just made; with a reference. */
static int
add_page(struct vnode *vn, uint64_t index, void **page)
{
	void *new = NULL;
	int error;

	/* Not all pages are tried: if programs map all of a full cache, none can be given up. */
	for (unsigned i = 0; i < ADD_TRIES && cache_full(); i++)
		give_up_page();
	/* But when memory is short, all are tried: the program that writes is not asked again. */
	while (uidinfo_memory_short() && give_up_any())
		;
	/* A device's pages are needed to write those of files, and free memory so. */
	if (S_ISBLK(vn->mode) || !uidinfo_memory_short())
		new = page_alloc(0, PAGE_FILE);
	if (new == NULL)
		return -ENOMEM;
	error = pagecache_insert(vn, index, new, true, page);
	if (error != 0 || *page != new)
		page_free(new, 0);
	return error == -ENOSPC ? -ENOMEM : error;
}

static int
find_or_add(struct vnode *vn, uint64_t index, void **page)
{
	*page = pagecache_find(vn, index, true);
	return *page != NULL ? 0 : add_page(vn, index, page);
}

/* Waits while the page is busy, unless it has all sectors in `want`. False if it is no longer
 * the file's. pages_lock held. */
static bool
await_page(struct page *p, const struct vnode *vn, uint8_t want)
{
	while (p->vnode == vn && p->busy && (p->valid & want) != want)
		sleep_on(page_address(p), &pages_lock, "page", 0, DEADLINE_NEVER);
	p->recent = true;
	return p->vnode == vn;
}

/* Reads the sectors that are missing. pages_lock held, which this releases. */
static int
fill_page(struct vnode *vn, struct page *p, uint8_t want)
{
	uint8_t missing = (uint8_t)(want & ~p->valid);
	void *page = page_address(p);
	int error;

	p->busy = true;
	spin_unlock(&pages_lock);
	curthread()->page_reads++;
	SDT_PROBE2(vminfo, , , pgin, 1, p->index);
	SDT_PROBE2(vminfo, , , pgpgin, 1, p->index);
	error = vn->ops->readpage(vn, p->index, page, missing);
	spin_lock(&pages_lock);
	p->busy = false;
	if (error == 0)
		p->valid |= missing;
	spin_unlock(&pages_lock);
	wakeup(page);
	return error;
}

int
pagecache_get(struct vnode *vn, uint64_t index, uint8_t want, void **page)
{
	int error = find_or_add(vn, index, page);

	while (error == 0) {
		struct page *p = page_of(*page);

		spin_lock(&pages_lock);
		if (await_page(p, vn, want)) {
			if ((p->valid & want) == want) {
				spin_unlock(&pages_lock);
				return 0;
			}
			error = fill_page(vn, p, want);
			if (error == 0)
				return 0;
			page_unref(*page);
			return error;
		}
		spin_unlock(&pages_lock);
		page_unref(*page); /* the file was cut off */
		error = find_or_add(vn, index, page);
	}
	return error;
}

/* As pagecache_dirty(). pages_lock held. */
static void
page_dirty(struct page *p, uint8_t sectors)
{
	const struct vnode *vn = p->vnode;

	if (vn == NULL)
		return;
	if (p->dirty == 0 && sectors != 0) {
		unsigned device = S_ISBLK(vn->mode);

		list_remove(&p->link);
		kept_count--;
		list_append(&dirty[device], &p->link);
		dirty_count[device]++;
	}
	p->dirty |= sectors;
	p->valid |= sectors;
}

int
pagecache_get_zero(struct vnode *vn, uint64_t index, uint8_t sectors, void **page)
{
	int error = find_or_add(vn, index, page);
	struct page *p;

	if (error != 0)
		return error;
	p = page_of(*page);
	spin_lock(&pages_lock);
	while (p->busy)
		sleep_on(*page, &pages_lock, "page", 0, DEADLINE_NEVER);
	for (unsigned i = 0; i < PAGE_SECTORS; i++)
		if (sectors & 1u << i)
			memset((char *)*page + i * (PAGE_SIZE / PAGE_SECTORS), 0,
			       PAGE_SIZE / PAGE_SECTORS);
	p->recent = true;
	page_dirty(p, sectors); /* before others can find the sectors missing, and read them */
	spin_unlock(&pages_lock);
	writeback_want();
	return 0;
}

uint8_t
pagecache_sectors(size_t from, size_t size)
{
	size_t end = (from + size + 511) / 512;

	return size == 0 ? 0 : (uint8_t)((1u << end) - (1u << from / 512));
}

void
pagecache_dirty(void *page, uint8_t sectors)
{
	spin_lock(&pages_lock);
	page_dirty(page_of(page), sectors);
	spin_unlock(&pages_lock);
	writeback_want();
}

void
pagecache_dirty_map(void *page)
{
	spin_lock(&pages_lock);
	page_of(page)->shared = true;
	page_dirty(page_of(page), ALL_SECTORS);
	spin_unlock(&pages_lock);
	writeback_want();
}

void
pagecache_clean(struct page *p)
{
	const struct vnode *vn = p->vnode;

	p->dirty = 0;
	list_remove(&p->link);
	dirty_count[S_ISBLK(vn->mode)]--;
	list_append(&kept, &p->link);
	kept_count++;
}

void
pagecache_forget(struct vnode *vn, uint64_t index, uint8_t sectors)
{
	void **slot;

	spin_lock(&pages_lock);
	slot = tree_slot(&vn->pages, index);
	if (slot != NULL && *slot != NULL && (page_of(*slot)->dirty & sectors) != 0) {
		struct page *p = page_of(*slot);

		p->dirty &= (uint8_t)~sectors;
		if (p->dirty == 0)
			pagecache_clean(p);
	}
	spin_unlock(&pages_lock);
}

void
pagecache_drop(struct vnode *vn, uint64_t from_index)
{
	void *page;

	while ((page = pagecache_take(vn, &from_index)) != NULL)
		page_unref(page);
}

void
pagecache_settle(const struct vnode *vn, uint64_t index)
{
	void **slot;

	spin_lock(&pages_lock);
	while ((slot = tree_slot(&vn->pages, index)) != NULL && *slot != NULL &&
	       page_of(*slot)->busy)
		sleep_on(*slot, &pages_lock, "page", 0, DEADLINE_NEVER);
	spin_unlock(&pages_lock);
}

struct page *
pagecache_first_dirty(bool device)
{
	struct list *l = list_first(&dirty[device]);

	return l != NULL ? list_entry(l, struct page, link) : NULL;
}

unsigned long
pagecache_count_kept(void)
{
	return __atomic_load_n(&kept_count, __ATOMIC_RELAXED);
}

bool
pagecache_is_dirty(const bool *read_only)
{
	bool found = false;

	spin_lock(&pages_lock);
	for (const struct list *l = dirty[0].next; l != &dirty[0] && !found; l = l->next) {
		const struct vnode *vn = list_entry(l, struct page, link)->vnode;

		found = vn->read_only == read_only;
	}
	spin_unlock(&pages_lock);
	return found;
}

unsigned long
pagecache_count_dirty(bool device)
{
	return __atomic_load_n(&dirty_count[device], __ATOMIC_RELAXED);
}
