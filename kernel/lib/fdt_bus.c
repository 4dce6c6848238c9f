/*
 * fdt_bus.c - addresses, interrupts and reservations of device trees: values whose size is given in
 * cells (Devicetree Specification 0.4, sections 2.3, 2.4 and 5.3).
 *
 * Invariants: an entry is read only if the property contains all of it. Loops end by a property's
 * length or the tree's depth. Locking: none; a tree is constant.
 */
#include <stddef.h>

#include "kernel/lib/fdt.h"

#define NUMBER_CELLS  2 /* of a number, at most */
#define ADDRESS_CELLS 2 /* default without #address-cells (2.3.5) */
#define SIZE_CELLS    1
#define PCI_CELLS     3 /* of an address on a PCI bus: address space and a number */
#define BAD_CELLS     99

/* A bus's `ranges`, and the layout of its entries. */
struct ranges {
	const uint8_t *bytes;
	unsigned count;
	unsigned child_cells, parent_cells, size_cells;
};

/* Reads a number of 0 to 2 cells and advances *p. */
static uint64_t
fdt_take_number(const uint8_t **p, unsigned cells)
{
	uint64_t v = 0;

	for (; cells > 0; cells--, *p += 4)
		v = v << 32 | fdt_cell(*p);
	return v;
}

/* The value of a property that counts cells. BAD_CELLS: not a number, or more than max. */
static unsigned
cells_of(const struct fdt *f, int node, const char *name, unsigned missing, unsigned max)
{
	uint32_t len, v;

	if (fdt_prop(f, node, name, &len) == NULL)
		return missing;
	return fdt_prop_u32(f, node, name, &v) && v <= max ? v : BAD_CELLS;
}

static unsigned
address_cells(const struct fdt *f, int node)
{
	return cells_of(f, node, "#address-cells", ADDRESS_CELLS, PCI_CELLS);
}

static bool
fdt_wraps(uint64_t address, uint64_t size)
{
	return size != 0 && address > UINT64_MAX - (size - 1);
}

/* Finds a bus's `ranges`. False: it has none, or their layout is not supported. */
static bool
ranges_open(const struct fdt *f, int bus, struct ranges *r)
{
	uint32_t len, entry;

	r->bytes = fdt_prop(f, bus, "ranges", &len);
	r->child_cells = address_cells(f, bus);
	r->parent_cells = address_cells(f, fdt_parent(f, bus));
	r->size_cells = cells_of(f, bus, "#size-cells", SIZE_CELLS, NUMBER_CELLS);
	if (r->bytes == NULL || r->child_cells - 1 >= PCI_CELLS ||
	    r->parent_cells - 1 >= NUMBER_CELLS || r->size_cells - 1 >= NUMBER_CELLS)
		return false;
	entry = 4 * (r->child_cells + r->parent_cells + r->size_cells);
	r->count = len / entry;
	return len % entry == 0;
}

/* Reads entry i < count; the parent's address is not translated. */
static void
ranges_read(const struct ranges *r, unsigned i, struct fdt_range *out)
{
	unsigned cells = r->child_cells + r->parent_cells + r->size_cells;
	const uint8_t *p = r->bytes + (size_t)i * cells * 4;

	out->child_hi = r->child_cells == PCI_CELLS ? (uint32_t)fdt_take_number(&p, 1) : 0;
	out->child =
	    fdt_take_number(&p, r->child_cells == PCI_CELLS ? PCI_CELLS - 1 : r->child_cells);
	out->parent = fdt_take_number(&p, r->parent_cells);
	out->size = fdt_take_number(&p, r->size_cells);
}

/* Translates an address from a bus to its parent. False: no range contains all `size` bytes. */
static bool
through_bus(const struct fdt *f, int bus, uint64_t *address, uint64_t size)
{
	struct ranges r;
	struct fdt_range e;

	if (!ranges_open(f, bus, &r) || r.child_cells == PCI_CELLS)
		return false;
	for (unsigned i = 0; i < r.count; i++) {
		uint64_t offset;

		ranges_read(&r, i, &e);
		offset = *address - e.child;
		if (*address < e.child || offset >= e.size || size > e.size - offset)
			continue;
		if (fdt_wraps(e.parent, e.size))
			return false;
		*address = e.parent + offset;
		return true;
	}
	return r.count == 0; /* an empty `ranges`: the addresses are the same (2.3.8) */
}

/* Translates an address from a bus to the CPU. */
static bool
fdt_translate(const struct fdt *f, int bus, uint64_t *address, uint64_t size)
{
	int root = fdt_root(f);

	for (; bus > root; bus = fdt_parent(f, bus))
		if (!through_bus(f, bus, address, size))
			return false;
	return bus == root && !fdt_wraps(*address, size);
}

bool
fdt_reg(const struct fdt *f, int node, unsigned i, uint64_t *address, uint64_t *size)
{
	int bus = fdt_parent(f, node);
	unsigned ac = address_cells(f, bus);
	unsigned sc = cells_of(f, bus, "#size-cells", SIZE_CELLS, NUMBER_CELLS);
	uint32_t len;
	const uint8_t *p = fdt_prop(f, node, "reg", &len);
	uint64_t a, s;

	if (p == NULL || bus < 0 || ac - 1 >= NUMBER_CELLS || sc > NUMBER_CELLS)
		return false;
	if (len % (4 * (ac + sc)) != 0 || i >= len / (4 * (ac + sc)))
		return false;
	p += (size_t)i * 4 * (ac + sc);
	a = fdt_take_number(&p, ac);
	s = fdt_take_number(&p, sc);
	if (sc != 0 && !fdt_translate(f, bus, &a, s))
		return false;
	*address = a;
	*size = s;
	return true;
}

bool
fdt_range(const struct fdt *f, int node, unsigned i, struct fdt_range *range)
{
	struct ranges r;
	struct fdt_range e;

	if (!ranges_open(f, node, &r) || i >= r.count)
		return false;
	ranges_read(&r, i, &e);
	if (fdt_wraps(e.child, e.size) || !fdt_translate(f, fdt_parent(f, node), &e.parent, e.size))
		return false;
	*range = e;
	return true;
}

/* Cells of an interrupt of this controller. 0: not known, or too many. */
static unsigned
interrupt_cells(const struct fdt *f, int controller)
{
	unsigned n = cells_of(f, controller, "#interrupt-cells", 0, FDT_INTERRUPT_CELLS);

	return n != BAD_CELLS ? n : 0;
}

/* The nearest interrupt parent above that has #interrupt-cells (2.4.1). */
static int
interrupt_parent(const struct fdt *f, int node)
{
	uint32_t phandle, len;

	for (unsigned steps = 0; steps < FDT_DEPTH && node >= 0; steps++) {
		node = fdt_prop_u32(f, node, "interrupt-parent", &phandle) ? fdt_phandle(f, phandle)
									   : fdt_parent(f, node);
		if (fdt_prop(f, node, "#interrupt-cells", &len) != NULL)
			return node;
	}
	return -1;
}

/* Entry i of interrupts-extended: a phandle, and as many cells as its controller asks for. */
static const uint8_t *
extended_entry(const struct fdt *f, const uint8_t *p, uint32_t len, unsigned i, int *controller)
{
	for (; len >= 4; i--) {
		uint32_t n;

		*controller = fdt_phandle(f, fdt_cell(p));
		n = 4 * interrupt_cells(f, *controller);
		p += 4;
		len -= 4;
		if (n == 0 || n > len)
			return NULL;
		if (i == 0)
			return p;
		p += n;
		len -= n;
	}
	return NULL;
}

bool
fdt_interrupt(const struct fdt *f, int node, unsigned i, uint32_t cells[FDT_INTERRUPT_CELLS],
	      unsigned *cell_count, int *controller)
{
	uint32_t len;
	const uint8_t *p = fdt_prop(f, node, "interrupts-extended", &len);
	unsigned n;
	int at;

	if (p != NULL) {
		p = extended_entry(f, p, len, i, &at);
		n = p != NULL ? interrupt_cells(f, at) : 0;
	} else {
		p = fdt_prop(f, node, "interrupts", &len);
		at = p != NULL ? interrupt_parent(f, node) : -1;
		n = interrupt_cells(f, at);
		if (n == 0 || len % (4 * n) != 0 || i >= len / (4 * n))
			return false;
		p += (size_t)i * 4 * n;
	}
	if (p == NULL)
		return false;
	for (unsigned c = 0; c < n; c++)
		cells[c] = fdt_cell(p + (size_t)c * 4);
	*cell_count = n;
	*controller = at;
	return true;
}

bool
fdt_interrupt_map(const struct fdt *f, int node, unsigned i, uint32_t *child_hi, uint32_t *pin,
		  uint32_t cells[FDT_INTERRUPT_CELLS], unsigned *cell_count)
{
	const uint32_t child = 4 * (PCI_CELLS + 1 + 1); /* address, pin, phandle */
	uint32_t len;
	const uint8_t *p = fdt_prop(f, node, "interrupt-map", &len);
	uint32_t phandle = 0;
	int controller = -1;

	if (p == NULL || address_cells(f, node) != PCI_CELLS || interrupt_cells(f, node) != 1)
		return false;
	for (; len >= child; i--) {
		uint32_t last = phandle;
		unsigned n, address;

		/* Most entries have the same one, and a search takes long. */
		phandle = fdt_cell(p + 4 * (PCI_CELLS + 1));
		if (controller < 0 || phandle != last)
			controller = fdt_phandle(f, phandle);
		n = interrupt_cells(f, controller);
		address = controller >= 0 ? address_cells(f, controller) : BAD_CELLS;
		if (n == 0 || address == BAD_CELLS || 4 * (n + address) > len - child)
			return false;
		if (i == 0) {
			*child_hi = fdt_cell(p);
			*pin = fdt_cell(p + 4 * PCI_CELLS);
			for (unsigned c = 0; c < n; c++)
				cells[c] = fdt_cell(p + child + 4 * (address + c));
			*cell_count = n;
			return true;
		}
		p += child + 4 * (n + address);
		len -= child + 4 * (n + address);
	}
	return false;
}

bool
fdt_memreserve(const struct fdt *f, unsigned i, uint64_t *address, uint64_t *size)
{
	const uint32_t entry = 2 * 2 * 4;
	uint32_t at = f->reserve_at;
	uint64_t a, s;

	for (;; i--, at += entry) {
		const uint8_t *p = f->blob + at;

		if (f->size - at < entry)
			return false;
		a = fdt_take_number(&p, 2);
		s = fdt_take_number(&p, 2);
		if (a == 0 && s == 0)
			return false;
		if (i == 0)
			break;
	}
	*address = a;
	*size = s;
	return true;
}
