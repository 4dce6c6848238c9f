/*
 * fdt.h - reader of flattened device trees (Devicetree Specification 0.4, chapter 5).
 *
 * fdt_open() checks the blob once, whatever bytes it holds; then a tree's nesting, names and
 * property extents are sound. Values are checked where they are read. A node is the offset of its
 * FDT_BEGIN_NODE token in the blob; negative: none, which every function takes and answers with
 * none. Nothing is copied or allocated: results point into the blob, which must stay as it is.
 * Most functions take time linear in the size of the tree. Locking: none; any context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FDT_DEPTH           32 /* levels of nodes, the root's included; deeper trees are refused */
#define FDT_INTERRUPT_CELLS 4  /* the most that an interrupt has here; GICv3 uses up to 4 */

/* A checked tree. Offsets are in bytes from the blob's start; constant after fdt_open(). */
struct fdt {
	const uint8_t *blob;
	uint32_t size;                    /* of the whole blob, as its header says */
	uint32_t reserve_at;              /* memory reservation block */
	uint32_t struct_at, struct_end;   /* structure block */
	uint32_t strings_at, strings_end; /* property names; the last byte is NUL */
};

/* One entry of `ranges`: addresses of a bus as its parent sees them. */
struct fdt_range {
	uint32_t child_hi; /* first of three address cells (PCI: phys.hi), else 0 */
	uint64_t child;    /* on the bus: the last one or two address cells */
	uint64_t parent;   /* the CPU's address */
	uint64_t size;     /* bytes */
};

/*
 * Checks the blob of at most max readable bytes and opens it. 0, or -EINVAL: no magic, a version
 * that does not read as 17, blocks outside the blob, or a structure that is damaged or too deep.
 */
int fdt_open(struct fdt *f, const void *blob, uint64_t max);

/* The root node. */
int fdt_root(const struct fdt *f);
/* The node that begins next in the blob (a node comes before its children); the root after -1. */
int fdt_next(const struct fdt *f, int node);
int fdt_parent(const struct fdt *f, int node);
int fdt_first_child(const struct fdt *f, int node);
int fdt_next_sibling(const struct fdt *f, int node);
/* "name@unit-address", "" for the root and for none. */
const char *fdt_name(const struct fdt *f, int node);
/*
 * "/a/b@1", where "/a/b" finds the first b of any unit address, or "alias/b"; what follows ':' (the
 * options of stdout-path) counts for nothing.
 */
int fdt_path(const struct fdt *f, const char *path);
/* The node with this phandle. */
int fdt_phandle(const struct fdt *f, uint32_t phandle);
/* The first node behind `after` (-1: of all) that is compatible with, or of this device_type. */
int fdt_find_compatible(const struct fdt *f, int after, const char *compatible);
int fdt_find_device_type(const struct fdt *f, int after, const char *type);

/* A property's bytes and their number, which may be 0; NULL: none. */
const void *fdt_prop(const struct fdt *f, int node, const char *name, uint32_t *len);
/* A property of exactly one cell; false leaves *value. */
bool fdt_prop_u32(const struct fdt *f, int node, const char *name, uint32_t *value);
/* A property's first string; NULL: none, or no NUL in it. */
const char *fdt_prop_string(const struct fdt *f, int node, const char *name);
/* The string is in the node's list `compatible`. */
bool fdt_compatible(const struct fdt *f, int node, const char *compatible);
/* The node's status is "okay" or "ok", or there is none. */
bool fdt_available(const struct fdt *f, int node);

/*
 * Entry i of `reg`, as the CPU sees it: translated by the `ranges` of all buses above. Where the
 * bus has #size-cells 0, *address is a number on that bus (a CPU's id) and *size is 0. False: no
 * such entry, no translation (a bus without `ranges`, or outside them), cells that do not fit.
 */
bool fdt_reg(const struct fdt *f, int node, unsigned i, uint64_t *address, uint64_t *size);
/* Entry i of a bus's `ranges`. False: no such entry, no translation, cells that do not fit. */
bool fdt_range(const struct fdt *f, int node, unsigned i, struct fdt_range *range);
/*
 * Interrupt i of a node, from interrupts-extended or else `interrupts`: the specifier's cells and
 * the node whose #interrupt-cells counts them. A nexus with interrupt-map is not looked through:
 * it is the *controller then.
 */
bool fdt_interrupt(const struct fdt *f, int node, unsigned i, uint32_t cells[FDT_INTERRUPT_CELLS],
		   unsigned *cell_count, int *controller);
/* Entry i of the memory reservation block, in bytes, as it stands there. False: that was all. */
bool fdt_memreserve(const struct fdt *f, unsigned i, uint64_t *address, uint64_t *size);
