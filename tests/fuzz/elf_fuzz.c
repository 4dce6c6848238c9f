/*
 * elf_fuzz.c - an executable that passes the check can be loaded without further checks: its
 * segments lie in user space and in the file, share no page, and none is both writable and
 * executable.
 */
#include <stdbool.h>

#include "arch/mmu.h"
#include "kernel/mm/page.h"
#include "kernel/proc/elf.h"
#include "tests/fuzz/fuzz.h"

#define MACHINE 62 /* as in the seeds: EM_X86_64 */

static void
check_segment(const struct elf_image *img, unsigned i, uint64_t file_size)
{
	const struct elf_segment *s = &img->segments[i];

	FUZZ_CHECK(s->memsz > 0 && s->filesz <= s->memsz, "segment %u", i);
	FUZZ_CHECK(s->vaddr < ARCH_USER_END && s->memsz <= ARCH_USER_END - s->vaddr, "%#jx",
		   (uintmax_t)s->vaddr);
	FUZZ_CHECK(s->offset <= file_size && s->filesz <= file_size - s->offset, "%#jx",
		   (uintmax_t)s->offset);
	FUZZ_CHECK((s->prot & ~(unsigned)(MMU_READ | MMU_WRITE | MMU_EXEC)) == 0, "%#x", s->prot);
	for (unsigned k = 0; k < i; k++) {
		const struct elf_segment *o = &img->segments[k];
		FUZZ_CHECK((s->vaddr + s->memsz - 1) / PAGE_SIZE < o->vaddr / PAGE_SIZE ||
			       (o->vaddr + o->memsz - 1) / PAGE_SIZE < s->vaddr / PAGE_SIZE,
			   "segments %u and %u share a page", k, i);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image img;
	uint64_t beyond = size > 0 ? data[size - 1] : 0;
	uint64_t file_size = size + beyond * 16; /* headers come from its first bytes */
	bool entry_ok = false, phdr_ok = false;

	if (elf_check(data, size, file_size, MACHINE, &img) != 0)
		return 0;
	FUZZ_CHECK(img.count > 0 && img.count <= ELF_MAX_SEGMENTS, "%u segments", img.count);
	for (unsigned i = 0; i < img.count; i++) {
		const struct elf_segment *s = &img.segments[i];

		check_segment(&img, i, file_size);
		entry_ok |= (s->prot & MMU_EXEC) != 0 && img.entry - s->vaddr < s->memsz;
		phdr_ok |=
		    img.phdr - s->vaddr < s->filesz &&
		    img.phnum * sizeof(struct elf64_phdr) <= s->filesz - (img.phdr - s->vaddr);
	}
	FUZZ_CHECK(entry_ok, "entry %#jx", (uintmax_t)img.entry);
	FUZZ_CHECK(img.phdr == 0 || phdr_ok, "program headers at %#jx", (uintmax_t)img.phdr);
	FUZZ_CHECK(img.interp_size == 0 ||
		       (img.interp_size >= 2 && img.interp_offset <= file_size &&
			img.interp_size <= file_size - img.interp_offset),
		   "%#jx bytes of a path", (uintmax_t)img.interp_size);
	FUZZ_CHECK(img.phnum * sizeof(struct elf64_phdr) <= size, "%u headers", img.phnum);
	return 0;
}
