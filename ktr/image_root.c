/*
 * image_root.c - keeps the root up to date (ktr/image.h).
 * Locking: the control lock, or early boot. Readers take none: each word is valid by itself.
 */
#include "ktr/image.h"

#include "ktr/control.h"
#include "ktr/crc32c.h"
#include "ktr/intern.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "ktr/site.h"
#include "ktr/str.h"
#include "ktr/stream.h"

static struct ktr_image_root image_first = {
    .magic = KTR_IMAGE_MAGIC,
    .version = KTR_IMAGE_VERSION,
    .size = sizeof(struct ktr_image_root),
    .entry_size = sizeof(struct ktr_entry),
    .ring_size = sizeof(struct ktr_ring),
    .ring_count = KTR_PORT_MAXCPU,
    .site_size = sizeof(struct ktr_site),
    .names_size = sizeof(struct ktr_names),
};
struct ktr_image_root *ktr_image = &image_first;
static struct ktr_image_root *image_spare; /* NULL: none */

static void
copy_text(char *to, const char *from, size_t size)
{
	size_t n = ktr_strlen(from);
	if (n >= size)
		n = size - 1;
	ktr_copy(to, from, n);
	to[n] = '\0';
}

static uint32_t
root_crc(const struct ktr_image_root *r)
{
	return ktr_crc32c(r, offsetof(struct ktr_image_root, crc));
}

bool
ktr_image_whole(const struct ktr_image_root *root)
{
	return root->crc == root_crc(root);
}

void
ktr_image_refresh(void)
{
	struct ktr_image_root *r = ktr_image;
	const struct ktr_info *info = ktr_info_get();
	r->self = (uintptr_t)r;
	r->sites = (uintptr_t)__start_ktr_sites;
	r->site_count = ktr_site_count();
	r->parts_site = ktr_site_number(&ktr_data_site);
	r->names = (uintptr_t)ktr_names_get();
	ktr_copy(r->boot_id, info->boot_id, sizeof(r->boot_id));
	r->hz = info->hz;
	r->boot_ticks = info->boot_ticks;
	r->ncpu = info->ncpu;
	r->mask = ktr_mask_get();
	copy_text(r->arch, info->arch, sizeof(r->arch));
	copy_text(r->build, info->build, sizeof(r->build));
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		r->rings[cpu] = (uintptr_t)ktr_log_ring(&ktr_main, cpu);
	r->crc = root_crc(r);
	if (image_spare != NULL)
		ktr_copy(image_spare, r, sizeof(*r));
}

void
ktr_image_add_text(const void *start, size_t size)
{
	for (unsigned i = 0; i < KTR_IMAGE_TEXTS; i++) {
		if (ktr_image->texts[i].size != 0)
			continue;
		ktr_image->texts[i].start = (uintptr_t)start;
		ktr_image->texts[i].size = size;
		break;
	}
	ktr_image_refresh();
}

void
ktr_image_move(struct ktr_image_root *to, struct ktr_image_root *spare)
{
	ktr_copy(to, ktr_image, sizeof(*to));
	ktr_image = to;
	image_spare = spare;
	ktr_image_refresh();
}

void
ktr_image_set_tables(uint64_t phys)
{
	ktr_image->tables = phys;
	ktr_image_refresh();
}
