/*
 * elf.c - checks an executable's headers. A pure function; any bytes are safe input. Locking: none.
 */
#include "kernel/proc/elf.h"

#include "arch/mmu.h"
#include "kernel/abi/elf.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"

enum { ET_EXEC = 2, ET_DYN = 3 };
enum { PT_LOAD = 1, PT_INTERP = 3, PT_GNU_STACK = 0x6474e551 };
enum { PF_X = 1, PF_W = 2, PF_R = 4 };

static int
add_segment(struct elf_image *img, const struct elf64_phdr *ph, uint64_t file_size)
{
	struct elf_segment *seg;

	if (img->count == ELF_MAX_SEGMENTS || ph->filesz > ph->memsz || ph->offset > file_size ||
	    ph->filesz > file_size - ph->offset || ph->vaddr >= ARCH_USER_END ||
	    ph->memsz > ARCH_USER_END - ph->vaddr)
		return -ENOEXEC;
	for (unsigned i = 0; i < img->count; i++) {
		const struct elf_segment *o = &img->segments[i];
		if (page_round_down(ph->vaddr) < page_round_up(o->vaddr + o->memsz) &&
		    page_round_up(ph->vaddr + ph->memsz) > page_round_down(o->vaddr))
			return -ENOEXEC;
	}
	seg = &img->segments[img->count++];
	*seg = (struct elf_segment){ph->vaddr, ph->memsz, ph->offset, ph->filesz, 0};
	/* What may be written or executed can be read, as what mmap() maps. */
	seg->prot = (ph->flags & (PF_R | PF_W | PF_X) ? MMU_READ : 0) |
		    (ph->flags & PF_W ? MMU_WRITE : 0) | (ph->flags & PF_X ? MMU_EXEC : 0);
	if (seg->prot == 0) /* a segment without access can hold nothing */
		return -ENOEXEC;
	return 0;
}

int
elf_check(const void *data, uint64_t size, uint64_t file_size, unsigned machine,
	  struct elf_image *img)
{
	struct elf64_ehdr eh;
	bool entry_ok = false;

	memset(img, 0, sizeof(*img));
	if (size < sizeof(eh))
		return -ENOEXEC;
	memcpy(&eh, data, sizeof(eh));
	/* magic, 64 bits, little-endian, version 1 */
	if (memcmp(eh.ident, "\177ELF\2\1\1", 7) != 0 ||
	    (eh.type != ET_EXEC && eh.type != ET_DYN) || eh.machine != machine ||
	    eh.phentsize != sizeof(struct elf64_phdr) || eh.phoff > size ||
	    eh.phnum > (size - eh.phoff) / sizeof(struct elf64_phdr))
		return -ENOEXEC;
	img->movable = eh.type == ET_DYN;
	img->entry = eh.entry;
	img->phnum = eh.phnum;
	img->stack_prot = MMU_READ | MMU_WRITE;
	for (unsigned i = 0; i < eh.phnum; i++) {
		struct elf64_phdr ph;

		memcpy(&ph, (const char *)data + eh.phoff + i * sizeof(ph), sizeof(ph));
		if (ph.type == PT_INTERP) {
			if (img->interp_size != 0 || ph.filesz < 2 || ph.offset > file_size ||
			    ph.filesz > file_size - ph.offset)
				return -ENOEXEC;
			img->interp_offset = ph.offset;
			img->interp_size = ph.filesz;
		}
		if (ph.type == PT_GNU_STACK)
			img->stack_prot = MMU_READ | MMU_WRITE | (ph.flags & PF_X ? MMU_EXEC : 0);
		if (ph.type != PT_LOAD || ph.memsz == 0)
			continue;
		if (add_segment(img, &ph, file_size) != 0)
			return -ENOEXEC;
		if (eh.phoff >= ph.offset && eh.phoff - ph.offset <= ph.filesz &&
		    eh.phnum * sizeof(ph) <= ph.filesz - (eh.phoff - ph.offset))
			img->phdr = ph.vaddr + (eh.phoff - ph.offset);
		if ((ph.flags & PF_X) && eh.entry >= ph.vaddr && eh.entry - ph.vaddr < ph.memsz)
			entry_ok = true;
	}
	return entry_ok ? 0 : -ENOEXEC;
}
