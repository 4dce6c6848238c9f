/*
 * load.c - loads executables, and the interpreters that they name. Locking: none; nobody uses the
 * address space yet.
 */
#include "kernel/proc/load.h"

#include <abi_md.h>

#include "arch/mmu.h"
#include "kernel/abi/elf.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/resource.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/proc/task.h"
#include "kernel/vm/vm.h"

/* Where an interpreter is loaded that may be loaded anywhere. */
#define INTERP_BASE 0x00007f0000000000ul
#define INTERP_MAX  256 /* bytes of its path */
#define STACK_MIN   (256ul << 10)
#define STACK_MAX   (1ul << 30) /* without a limit */

/* Zeroes what a segment's last page of the file holds beyond the segment. */
static int
clear_rest(struct vmspace *vm, uint64_t start, uint64_t end)
{
	void *zeroes;
	int r;

	if (start >= end)
		return 0;
	zeroes = page_alloc_zero(PAGE_OTHER);
	if (zeroes == NULL)
		return -ENOMEM;
	r = vm_write(vm, start, zeroes, end - start);
	page_free(zeroes, 0);
	return r;
}

/* Maps a segment: pages of the file, and new ones after them. */
static int
load_segment(struct vmspace *vm, struct vnode *vn, const struct elf_segment *seg)
{
	uint64_t start = page_round_down(seg->vaddr), data_end = seg->vaddr + seg->filesz;
	uint64_t mapped = seg->filesz != 0 ? page_round_up(data_end) : start;
	uint64_t end = page_round_up(seg->vaddr + seg->memsz);
	const struct area_source from = {.pager = &vnode_pager,
					 .object = vn,
					 .offset = seg->offset - (seg->vaddr - start)};
	uint64_t limit = proc_limit(RLIMIT_AS);
	int64_t r = 0;

	if (mapped > start && (from.offset % PAGE_SIZE != 0 || vn->ops->page == NULL))
		return -ENOEXEC;
	if (mapped > start)
		r = vm_map_any(vm, start, mapped - start, seg->prot, VM_IF_FREE, &from, limit);
	if (r >= 0 && end > mapped)
		r = vm_map_any(vm, mapped, end - mapped, seg->prot, VM_IF_FREE, NULL, limit);
	if (r == -EEXIST || r == -EINVAL || r == -EPERM)
		r = -ENOEXEC;
	if (r >= 0 && seg->memsz > seg->filesz)
		r = clear_rest(vm, data_end, mapped);
	return r < 0 ? (int)r : 0;
}

/* Reads and checks the headers, which must lie in the file's first page. */
static int
read_headers(struct vnode *vn, struct elf_image *img)
{
	void *page = page_alloc(0, PAGE_OTHER);
	int64_t n;
	int r;

	if (page == NULL)
		return -ENOMEM;
	n = vnode_read(vn, page, PAGE_SIZE, 0);
	r = n < 0 ? (int)n : elf_check(page, (uint64_t)n, vnode_size(vn), ELF_MACHINE, img);
	page_free(page, 0);
	return r;
}

/* Loads a file's segments, at `base` if that is possible. *end: after the last one. */
static int
load_segments(struct vmspace *vm, struct vnode *vn, struct elf_image *img, uint64_t base,
	      uint64_t *end)
{
	int r = 0;

	*end = 0;
	if (!img->movable)
		base = 0;
	img->entry += base;
	img->phdr += img->phdr != 0 ? base : 0;
	for (unsigned i = 0; r == 0 && i < img->count; i++) {
		struct elf_segment *seg = &img->segments[i];

		seg->vaddr += base;
		r = load_segment(vm, vn, seg);
		if (seg->vaddr + seg->memsz > *end)
			*end = seg->vaddr + seg->memsz;
	}
	return r == -EEXIST ? -ENOEXEC : r;
}

/* Loads the interpreter that the program names. */
static int
load_interpreter(struct vmspace *vm, struct vnode *program, struct program *to)
{
	char path[INTERP_MAX];
	struct elf_image img;
	struct vnode *vn;
	uint64_t end;
	int r;

	if (to->img.interp_size > sizeof(path))
		return -ENOEXEC;
	if (vnode_read(program, path, to->img.interp_size, to->img.interp_offset) !=
		(int64_t)to->img.interp_size ||
	    path[to->img.interp_size - 1] != '\0')
		return -ENOEXEC;
	vn = vnode_lookup(NULL, path, &r);
	if (vn == NULL)
		return r;
	r = vnode_may_execute(vn);
	if (r == 0)
		r = vnode_execute_begin(vn); /* while it is loaded, as Linux */
	if (r != 0) {
		vnode_unref(vn);
		return r;
	}
	vnode_execute_notify(vn);
	to->unreadable |= vnode_access(vn, VNODE_READ) != 0;
	r = read_headers(vn, &img);
	if (r == 0 && img.interp_size != 0)
		r = -ENOEXEC;
	if (r == 0)
		r = load_segments(vm, vn, &img, INTERP_BASE, &end);
	vnode_execute_end(vn);
	vnode_unref(vn);
	to->interp_base = img.movable ? INTERP_BASE : 0;
	to->start = img.entry;
	return r;
}

/*
 * How large the stack is: as large as Linux would let it become with that limit, and with room for
 * the arguments. All of it counts as used, so it has to leave room for the rest of the program.
 */
static uint64_t
stack_size(bool secure)
{
	uint64_t limit = page_round_down(proc_limit(RLIMIT_STACK));
	uint64_t max = page_round_down(proc_limit(RLIMIT_AS) / 4);

	if (max > VM_STACK_SIZE && secure) /* as Linux */
		max = VM_STACK_SIZE;
	if (max < STACK_MIN)
		max = STACK_MIN;
	if (max > STACK_MAX)
		max = STACK_MAX;
	return limit < STACK_MIN ? STACK_MIN : limit > max ? max : limit;
}

/* Maps the stack. It grows down where the program has unmapped some, or where RLIMIT_AS, which was
 * small, is found to have room. */
static int
map_stack(struct vmspace *vm, uint64_t size, unsigned prot)
{
	uint64_t space = proc_limit(RLIMIT_AS), limit = page_round_down(proc_limit(RLIMIT_STACK));
	uint64_t most = limit < VM_STACK_SIZE ? limit : VM_STACK_SIZE;
	const struct area_source from = {.grows_to = size > most ? size : most, .space_max = space};
	int64_t r = vm_map_any(vm, VM_STACK_TOP - size, size, prot, VM_IF_FREE, &from, space);

	return r < 0 ? (int)r : 0;
}

int
program_load(struct vmspace *vm, struct vnode *vn, struct program *to)
{
	uint64_t end = 0;
	int r = read_headers(vn, &to->img);

	if (r == 0)
		r = load_segments(vm, vn, &to->img, ELF_PROGRAM_BASE, &end);
	to->interp_base = 0;
	to->unreadable = vnode_access(vn, VNODE_READ) != 0;
	to->start = to->img.entry;
	if (r == 0 && to->img.interp_size != 0)
		r = load_interpreter(vm, vn, to);
	if (r == 0)
		r = map_stack(vm, stack_size(to->secure), to->img.stack_prot);
	vm_set_brk_start(vm, end);
	return r == -EEXIST ? -ENOEXEC : r;
}
