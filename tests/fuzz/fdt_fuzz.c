/*
 * fdt_fuzz.c - device trees: a blob that fdt_open() accepts is one tree, however it is walked, and
 * all results lie inside the blob.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/lib/fdt.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_ 2048 /* walks are quadratic */
#define PATH_MAX_ (SIZE_MAX_ + 2)

static const char *const props[] = {"compatible", "reg",         "ranges",  "interrupts",
				    "status",     "device_type", "phandle", "interrupts-extended"};

static bool
inside(const struct fdt *f, const void *p, size_t len)
{
	const uint8_t *q = p;

	return q >= f->blob && q <= f->blob + f->size && len <= (size_t)(f->blob + f->size - q);
}

static void
check_values(const struct fdt *f, int node)
{
	uint32_t len, hi, pin, cells[FDT_INTERRUPT_CELLS];
	uint64_t address, size;
	struct fdt_range range;
	unsigned n;
	int controller;

	for (size_t i = 0; i < sizeof(props) / sizeof(props[0]); i++) {
		const void *p = fdt_prop(f, node, props[i], &len);
		const char *s = fdt_prop_string(f, node, props[i]);

		FUZZ_CHECK(p == NULL || inside(f, p, len), "%s of %u bytes", props[i], len);
		FUZZ_CHECK(s == NULL || (s == p && strlen(s) < len), "%s", props[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		if (fdt_reg(f, node, i, &address, &size))
			FUZZ_CHECK(size == 0 || address + (size - 1) >= address, "%#jx + %#jx",
				   (uintmax_t)address, (uintmax_t)size);
		if (fdt_range(f, node, i, &range))
			FUZZ_CHECK(range.size == 0 ||
				       (range.parent + (range.size - 1) >= range.parent &&
					range.child + (range.size - 1) >= range.child),
				   "range of %#jx", (uintmax_t)range.size);
		if (fdt_interrupt_map(f, node, i, &hi, &pin, cells, &n))
			FUZZ_CHECK(n >= 1 && n <= FDT_INTERRUPT_CELLS, "%u cells", n);
		if (fdt_interrupt(f, node, i, cells, &n, &controller))
			FUZZ_CHECK(n >= 1 && n <= FDT_INTERRUPT_CELLS && controller >= 0 &&
				       fdt_prop(f, controller, "#interrupt-cells", &len) != NULL,
				   "%u cells", n);
	}
	(void)fdt_available(f, node);
	(void)fdt_compatible(f, node, "x");
}

/* Number of nodes in this subtree, counted by children and siblings. */
static unsigned
check_below(const struct fdt *f, int node, int parent, unsigned depth)
{
	unsigned count = 1;
	const char *name = fdt_name(f, node);

	FUZZ_CHECK(depth < FDT_DEPTH, "depth %u", depth);
	FUZZ_CHECK(fdt_parent(f, node) == parent, "parent of %d", node);
	FUZZ_CHECK(inside(f, name, 1) && inside(f, name, strlen(name) + 1), "name of %d", node);
	for (int c = fdt_first_child(f, node); c >= 0; c = fdt_next_sibling(f, c)) {
		FUZZ_CHECK(c > node, "child %d of %d", c, node);
		count += check_below(f, c, node, depth + 1);
	}
	return count;
}

/*
 * The path of a child of the root finds that child, or an earlier one with the same name and a unit
 * address.
 */
static void
check_path(const struct fdt *f, int node)
{
	const char *name = fdt_name(f, node);
	char path[PATH_MAX_];
	int found;

	if (fdt_parent(f, node) != fdt_root(f) || strlen(name) == 0 || strpbrk(name, "/:") != NULL)
		return;
	snprintf(path, sizeof(path), "/%s", name);
	found = fdt_path(f, path);
	FUZZ_CHECK(found > 0 && found <= node, "\"%s\": %d, expected %d", path, found, node);
	FUZZ_CHECK(strncmp(fdt_name(f, found), name, strlen(name)) == 0, "\"%s\": \"%s\"", path,
		   fdt_name(f, found));
}

static void
check_tree(const struct fdt *f)
{
	unsigned count = 0;
	uint64_t address, size;
	uint32_t phandle;
	int last = -1;

	for (int node = fdt_next(f, -1); node >= 0; node = fdt_next(f, node)) {
		FUZZ_CHECK(node > last && (uint32_t)node >= f->struct_at &&
			       (uint32_t)node < f->struct_end,
			   "node %d after %d", node, last);
		last = node;
		count++;
		check_values(f, node);
		check_path(f, node);
		if (fdt_prop_u32(f, node, "phandle", &phandle)) {
			int found = fdt_phandle(f, phandle);
			FUZZ_CHECK(found >= 0 && found <= node, "phandle %u", phandle);
		}
	}
	FUZZ_CHECK(fdt_root(f) >= 0 && fdt_root(f) == fdt_next(f, -1), "no root");
	FUZZ_CHECK(check_below(f, fdt_root(f), -1, 0) == count, "%u nodes in order", count);
	FUZZ_CHECK(fdt_next_sibling(f, fdt_root(f)) < 0, "a second root");
	for (unsigned i = 0; fdt_memreserve(f, i, &address, &size); i++)
		FUZZ_CHECK(i < f->size / 16, "%u reservations", i);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"/", "/cpus", "serial0:115200", "/soc/pl011@9000000",
					    "//a//b@1/"};
	struct fdt f;

	if (size > SIZE_MAX_ || fdt_open(&f, data, size) != 0)
		return 0;
	FUZZ_CHECK(f.blob == data && f.size <= size, "%u of %zu bytes", f.size, size);
	check_tree(&f);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int node = fdt_path(&f, paths[i]);
		FUZZ_CHECK(node < 0 || fdt_name(&f, node) != NULL, "%s", paths[i]);
	}
	/* Functions accept "no node", and numbers that are not nodes. */
	FUZZ_CHECK(fdt_name(&f, -1)[0] == '\0' && fdt_parent(&f, -1) < 0 &&
		       fdt_first_child(&f, -1) < 0,
		   "none has relatives");
	return 0;
}
