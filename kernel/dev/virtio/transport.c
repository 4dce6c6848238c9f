/* transport.c - virtio over PCI (virtio.h; Virtio 1.2, 3.1.1 and 4.1). */
#include "arch/mmu.h"
#include "kernel/dev/irq.h"
#include "kernel/dev/virtio/virtio.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/page.h"
#include "kernel/sync/spinlock.h"

enum { /* the common registers, byte offsets (4.1.4.3) */
       DEVICE_FEATURE_SELECT = 0,
       DEVICE_FEATURE = 4,
       DRIVER_FEATURE_SELECT = 8,
       DRIVER_FEATURE = 12,
       CONFIG_VECTOR = 16,
       DEVICE_STATUS = 20,
       QUEUE_SELECT = 22,
       QUEUE_SIZE = 24,
       QUEUE_VECTOR = 26,
       QUEUE_ENABLE = 28,
       QUEUE_NOTIFY_OFF = 30,
       QUEUE_DESC = 32,
       QUEUE_DRIVER = 40,
       QUEUE_DEVICE = 48,
};

enum { /* bits of DEVICE_STATUS (2.1) */
       ACKNOWLEDGE = 1,
       DRIVER = 2,
       DRIVER_OK = 4,
       FEATURES_OK = 8,
};

/* The parts of a ring, at addresses of which each is a multiple as it must be (2.7). */
struct ring_page {
	_Alignas(16) struct virtio_desc desc[VIRTIO_RING_MAX];
	_Alignas(64) struct virtio_avail avail;
	_Alignas(64) struct virtio_used used;
};

_Static_assert(sizeof(struct ring_page) <= PAGE_SIZE, "a ring is a page");

#define NO_VECTOR   0xffff
#define MSIX_ENABLE (1u << 31)
#define MSIX_MASKED (1u << 30)
#define RESET_NS    1000000000ul

static uint8_t
virtio_get8(const struct virtio *v, unsigned reg)
{
	return v->cfg[VIRTIO_COMMON][reg];
}

static void
virtio_set8(const struct virtio *v, unsigned reg, uint8_t n)
{
	v->cfg[VIRTIO_COMMON][reg] = n;
}

static uint16_t
virtio_get16(const struct virtio *v, unsigned reg)
{
	return *(volatile uint16_t *)(v->cfg[VIRTIO_COMMON] + reg);
}

static void
virtio_set16(const struct virtio *v, unsigned reg, uint16_t n)
{
	*(volatile uint16_t *)(v->cfg[VIRTIO_COMMON] + reg) = n;
}

static uint32_t
virtio_get32(const struct virtio *v, unsigned reg)
{
	return *(volatile uint32_t *)(v->cfg[VIRTIO_COMMON] + reg);
}

static void
virtio_set32(const struct virtio *v, unsigned reg, uint32_t n)
{
	*(volatile uint32_t *)(v->cfg[VIRTIO_COMMON] + reg) = n;
}

static void
virtio_set64(const struct virtio *v, unsigned reg, uint64_t n)
{
	virtio_set32(v, reg, (uint32_t)n);
	virtio_set32(v, reg + 4, (uint32_t)(n >> 32));
}

bool
virtio_await_reset(const struct virtio *v)
{
	for (uint64_t start_ns = clock_ns(); virtio_get8(v, DEVICE_STATUS) != 0;)
		/* This CPU may have stood since it has read the status. */
		if (clock_ns() - start_ns > RESET_NS && virtio_get8(v, DEVICE_STATUS) != 0)
			return false;
	return true;
}

bool
virtio_stop(const struct virtio *v, const char *why)
{
	static struct spinlock lock = SPINLOCK_INIT("virtio"); /* two accesses to ports are one */

	pr_warn("%s: %s; it is %s used\n", v->name, why,
		virtio_get8(v, DEVICE_STATUS) & DRIVER_OK ? "no longer" : "not");
	virtio_set8(v, DEVICE_STATUS, 0);
	spin_lock(&lock);
	pci_write(&v->pci, PCI_COMMAND,
		  pci_read(&v->pci, PCI_COMMAND) & 0xffffu & ~PCI_COMMAND_MASTER);
	spin_unlock(&lock);
	return false;
}

/* Maps what a place describes. NULL, after a message: it is outside of its BAR. */
static volatile uint8_t *
map_place(const struct virtio *v, const struct virtio_place *p)
{
	uint64_t size;
	volatile uint8_t *at = pci_map_bar(&v->pci, p->bar, &size);

	if (at == NULL)
		return NULL;
	if (p->offset > size || p->length > size - p->offset || p->offset % 4 != 0) {
		pr_warn("%s: registers at %#x of BAR %u, which has %lu bytes; it is not used\n",
			v->name, p->offset, p->bar, size);
		return NULL;
	}
	return at + p->offset;
}

static bool
map_registers(struct virtio *v, struct virtio_caps *caps)
{
	uint8_t config[PCI_CONFIG_SIZE];

	for (unsigned i = 0; i < PCI_CONFIG_SIZE; i += 4) {
		uint32_t word = pci_read(&v->pci, i);

		memcpy(config + i, &word, sizeof(word));
	}
	if (!virtio_caps_parse(config, caps)) {
		pr_warn("%s: registers of virtio 1.0 are missing; it is not used\n", v->name);
		return false;
	}
	for (unsigned i = VIRTIO_COMMON; i < VIRTIO_CFGS; i++) {
		v->cfg[i] = map_place(v, &caps->cfg[i]);
		if (v->cfg[i] == NULL)
			return false;
	}
	v->notify_length = caps->cfg[VIRTIO_NOTIFY].length;
	v->notify_multiplier = caps->notify_multiplier;
	v->device_length = caps->cfg[VIRTIO_DEVICE].length;
	return true;
}

static bool
virtio_negotiate(struct virtio *v, uint64_t wanted)
{
	uint64_t offered;

	virtio_set8(v, DEVICE_STATUS, 0);
	if (!virtio_await_reset(v))
		return virtio_stop(v, "it cannot be reset");
	virtio_set8(v, DEVICE_STATUS, ACKNOWLEDGE | DRIVER);
	virtio_set32(v, DEVICE_FEATURE_SELECT, 0);
	offered = virtio_get32(v, DEVICE_FEATURE);
	virtio_set32(v, DEVICE_FEATURE_SELECT, 1);
	offered |= (uint64_t)virtio_get32(v, DEVICE_FEATURE) << 32;
	v->features = offered & (wanted | VIRTIO_F_MODERN);
	virtio_set32(v, DRIVER_FEATURE_SELECT, 0);
	virtio_set32(v, DRIVER_FEATURE, (uint32_t)v->features);
	virtio_set32(v, DRIVER_FEATURE_SELECT, 1);
	virtio_set32(v, DRIVER_FEATURE, (uint32_t)(v->features >> 32));
	virtio_set8(v, DEVICE_STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK);
	if ((v->features & VIRTIO_F_MODERN) && (virtio_get8(v, DEVICE_STATUS) & FEATURES_OK))
		return true;
	return virtio_stop(v, "it does not accept the driver's features");
}

/* All interrupts become the first message. */
static bool
use_msix(struct virtio *v, const struct virtio_caps *caps)
{
	volatile uint32_t *entry;
	uint64_t address;
	uint32_t data;

	v->line = caps->msix.found ? arch_pci_msi(&address, &data) : -1;
	if (v->line < 0)
		return false;
	entry = (volatile uint32_t *)map_place(v, &caps->msix);
	if (entry == NULL)
		return false;
	entry[0] = (uint32_t)address;
	entry[1] = (uint32_t)(address >> 32);
	entry[2] = data;
	entry[3] = 0; /* not masked */
	pci_write(&v->pci, caps->msix_control,
		  (pci_read(&v->pci, caps->msix_control) & ~MSIX_MASKED) | MSIX_ENABLE);
	v->msix = true;
	return true;
}

/*
 * Complains that the device is not modern but transitional, as QEMU makes it where nobody asks for
 * another. The disk from which GRUB has started is such a one, and not worth a word.
 */
static void
complain_transitional(const struct virtio *v, unsigned n)
{
	if (n != VIRTIO_BLK || strncmp(boot_info.loader, "GRUB", 4) != 0)
		pr_warn("%s: found a transitional device, expected a modern one: QEMU's option "
			"disable-legacy=on\n",
			v->name);
}

bool
virtio_open(struct virtio *v, unsigned n, const char *name, uint64_t wanted)
{
	struct virtio_caps caps;

	memset(v, 0, sizeof(*v));
	v->name = name;
	if (!pci_find(VIRTIO_ID(n), &v->pci)) {
		if (pci_find(VIRTIO_TRANSITIONAL_ID(n), &v->pci))
			complain_transitional(v, n);
		return false;
	}
	if (!map_registers(v, &caps) || !virtio_negotiate(v, wanted))
		return false;
	if (!use_msix(v, &caps))
		v->line =
		    arch_pci_intx(v->pci.device, pci_read(&v->pci, PCI_INTERRUPT) >> 8 & 0xff);
	if (v->line >= 0)
		return true;
	return virtio_stop(v, "it has no interrupt");
}

static void
virtio_line_raised(void *arg)
{
	struct virtio *v = arg;

	/* Reading the register lowers the line of a pin (4.1.4.5). */
	if (!v->msix && v->cfg[VIRTIO_ISR][0] == 0)
		return;
	/* acquire: the rings are read after it */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	v->interrupt(v->arg);
}

bool
virtio_interrupt(struct virtio *v, void (*fn)(void *), void *arg)
{
	v->interrupt = fn;
	v->arg = arg;
	virtio_set16(v, CONFIG_VECTOR, NO_VECTOR);
	if (irq_register((unsigned)v->line, virtio_line_raised, v, v->name) == 0)
		return true;
	return virtio_stop(v, "its interrupt is another driver's");
}

bool
virtio_ring_open(struct virtio *v, unsigned i, struct virtio_ring *r, bool interrupts)
{
	struct ring_page *page;
	unsigned size;

	memset(r, 0, sizeof(*r));
	virtio_set16(v, QUEUE_SELECT, (uint16_t)i);
	size = virtio_get16(v, QUEUE_SIZE);
	r->size = size < VIRTIO_RING_MAX ? size : VIRTIO_RING_MAX;
	if (r->size == 0 || (r->size & (r->size - 1)) != 0)
		return virtio_stop(v, "a ring's size is not a power of two");
	page = page_alloc_zero(PAGE_OTHER);
	if (page == NULL)
		return virtio_stop(v, "no memory for its rings");
	r->desc = &page->desc[0];
	r->avail = &page->avail;
	r->used = &page->used;
	virtio_set16(v, QUEUE_SIZE, (uint16_t)r->size);
	if (v->msix)
		virtio_set16(v, QUEUE_VECTOR, interrupts ? 0 : NO_VECTOR);
	if (v->msix && interrupts && virtio_get16(v, QUEUE_VECTOR) != 0) /* 4.1.5.1.2.2 */
		return virtio_stop(v, "it has no interrupt for a ring");
	r->avail->flags = !interrupts;
	virtio_set64(v, QUEUE_DESC, virt_to_phys(r->desc));
	virtio_set64(v, QUEUE_DRIVER, virt_to_phys(r->avail));
	virtio_set64(v, QUEUE_DEVICE, virt_to_phys(r->used));
	v->notify_at[i] = (uint64_t)virtio_get16(v, QUEUE_NOTIFY_OFF) * v->notify_multiplier;
	if (v->notify_at[i] + sizeof(uint16_t) > v->notify_length)
		return virtio_stop(v, "a ring's notifications are outside of its registers");
	virtio_set16(v, QUEUE_ENABLE, 1);
	return true;
}

void
virtio_start(struct virtio *v)
{
	virtio_set8(v, DEVICE_STATUS, virtio_get8(v, DEVICE_STATUS) | DRIVER_OK);
}

void
virtio_notify(const struct virtio *v, unsigned i)
{
	/* seq_cst: a store to the device is not ordered after a release */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint16_t *)(v->cfg[VIRTIO_NOTIFY] + v->notify_at[i]) = (uint16_t)i;
}
