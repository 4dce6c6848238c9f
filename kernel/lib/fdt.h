/*
 * fdt.h - reader of flattened device trees (Devicetree Specification 0.4, chapter 5).
 *
 * fdt_open() checks the blob once; any bytes are safe input. Afterwards nesting, names and extents
 * of properties are sound. Values are checked where they are read. A node is the offset of its
 * FDT_BEGIN_NODE token in the blob. A negative number is no node: every function accepts it and
 * returns none. Nothing is copied or allocated: results point into the blob, which must not change.
 * Most functions take time linear in the size of the tree. Locking: none; any context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FDT_DEPTH           32 /* levels of nodes, with the root; deeper trees are refused */
#define FDT_INTERRUPT_CELLS 4  /* maximum for an interrupt; GICv3 uses up to 4 */

/* A checked tree. Offsets are in bytes from the blob's start; constant after fdt_open(). */
struct fdt {
	const uint8_t *blob;
	uint32_t size;                    /* of the whole blob, as its header says */
	uint32_t reserve_at;              /* memory reservation block */
	uint32_t struct_at, struct_end;   /* structure block */
	uint32_t strings_at, strings_end; /* property names; the last byte is NUL */
};

/* An entry of `ranges`: a range of bus addresses and the CPU addresses they appear at. */
struct fdt_range {
	uint32_t child_hi; /* first of three address cells (PCI: phys.hi), else 0 */
	uint64_t child;    /* bus address: the last one or two address cells */
	uint64_t parent;   /* CPU address */
	uint64_t size;     /* bytes */
};

/*
 * Checks and opens a blob of at most max bytes. 0; or -EINVAL: no magic, a version that is not
 * compatible with 17, blocks outside the blob, or a structure that is damaged or nested too deep.
 */
int fdt_open(struct fdt *f, const void *blob, uint64_t max);

/* The root node. */
int fdt_root(const struct fdt *f);
/* The next node of the blob, where a node precedes its children. -1 gives the root. */
int fdt_next(const struct fdt *f, int node);
int fdt_parent(const struct fdt *f, int node);
int fdt_first_child(const struct fdt *f, int node);
int fdt_next_sibling(const struct fdt *f, int node);
/* "name@unit-address"; "" for the root and for no node. */
const char *fdt_name(const struct fdt *f, int node);
/*
 * Finds a node by its path, "/a/b@1" or "alias/b". "/a/b" finds the first b of any unit address.
 * Text after ':' (the options of stdout-path) is ignored.
 */
int fdt_path(const struct fdt *f, const char *path);
/* Finds the node with this phandle. */
int fdt_phandle(const struct fdt *f, uint32_t phandle);
/* The first node after `after` (-1: of all) that is compatible with, or of, this type. */
int fdt_find_compatible(const struct fdt *f, int after, const char *compatible);
int fdt_find_device_type(const struct fdt *f, int after, const char *type);

/* A cell of a property: a big-endian number. */
static inline uint32_t
fdt_cell(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A property's bytes; their number, which may be 0, in *len. NULL: no such property. */
const void *fdt_prop(const struct fdt *f, int node, const char *name, uint32_t *len);
/* Value of a property of exactly one cell. False: not such a property; *value is unchanged. */
bool fdt_prop_u32(const struct fdt *f, int node, const char *name, uint32_t *value);
/* First string of a property. NULL: no such property, or no NUL in it. */
const char *fdt_prop_string(const struct fdt *f, int node, const char *name);
/* Does the node's list `compatible` contain the string? */
bool fdt_compatible(const struct fdt *f, int node, const char *compatible);
/* Is the node's status "okay" or "ok", or missing? */
bool fdt_available(const struct fdt *f, int node);

/*
 * Entry i of `reg` as a CPU address, translated by the `ranges` of all buses above. On a bus with
 * #size-cells 0, *address is a number on that bus (a CPU's id), and *size is 0. False: no such
 * entry, no translation (a bus without `ranges`, or an address outside them), or a bad number of
 * cells.
 */
bool fdt_reg(const struct fdt *f, int node, unsigned i, uint64_t *address, uint64_t *size);
/* Entry i of a bus's `ranges`. False: no such entry, no translation, or a bad number of cells. */
bool fdt_range(const struct fdt *f, int node, unsigned i, struct fdt_range *range);
/*
 * Interrupt i of a node, from interrupts-extended or `interrupts`: the cells of the specifier, and
 * the *controller whose #interrupt-cells gives their number. An interrupt-map is not followed: the
 * nexus node itself is the *controller then.
 */
bool fdt_interrupt(const struct fdt *f, int node, unsigned i, uint32_t cells[FDT_INTERRUPT_CELLS],
		   unsigned *cell_count, int *controller);
/*
 * Entry i of the interrupt-map of a PCI host bridge: the first cell of the device's address, its
 * pin, and the cells that the controller is given. False: no such entry, or no such map.
 */
bool fdt_interrupt_map(const struct fdt *f, int node, unsigned i, uint32_t *child_hi, uint32_t *pin,
		       uint32_t cells[FDT_INTERRUPT_CELLS], unsigned *cell_count);
/* Entry i of the memory reservation block, in bytes. False: there are no more. */
bool fdt_memreserve(const struct fdt *f, unsigned i, uint64_t *address, uint64_t *size);
