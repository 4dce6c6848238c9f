/*
 * core.c - from a memory dump to the stream of the log in it.
 *
 * The log is found by its root (ktr/image.h): in the newest region that survives a reset
 * (ktr/persist.h), or, if there is none, by its magic anywhere in memory. From there on addresses
 * are translated as the CPU would, by the kernel's page tables, whose place the root tells; but
 * what the dump itself places at an address is there, as in one that a debugger wrote.
 */
#include "ktr/tools/core.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktr/image_read.h"
#include "ktr/persist.h"

#define SEGMENTS_MAX 64u
#define ID_MAX       20u
#define BUILD_PREFIX "kestrel "

/* A piece of memory, at an offset of the dump. */
struct segment {
	uint64_t virt, phys; /* virt is phys where QEMU does not tell */
	uint64_t at, size;
};

struct core {
	int fd;
	bool cut; /* the file ends before its segments do */
	unsigned count;
	struct segment segments[SEGMENTS_MAX];
	uint64_t tables; /* physical address of the top page table; 0: not known yet */
	uint64_t table_leaf,
	    leaf; /* what of an entry says that it is no table, above the last level */
	struct ktr_persist *region; /* a copy; NULL: none */
	struct ktr_persist_reader reader;
	struct ktr_image image;
};

/* ---- files --------------------------------------------------------------------------------------
 */

/* What a file that is not the expected one seems to be. */
static const char *
kind_of(int fd)
{
	static const struct {
		const char *magic, *name;
	} kinds[] = {{"makedumpfile", "a kdump-compressed dump, flattened"},
		     {"KDUMP   ", "a kdump-compressed dump"},
		     {"DISKDUMP", "a kdump-compressed dump"},
		     {ELFMAG, "an ELF file of another kind"}};
	char start[16] = "";
	if (pread(fd, start, sizeof(start), 0) <= 0)
		return "nothing to read";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (memcmp(start, kinds[i].magic, strlen(kinds[i].magic)) == 0)
			return kinds[i].name;
	return "no ELF file";
}

/* Opens an ELF file of a type; expected says what for. */
static Elf *
elf_open(const char *path, int type, const char *expected, int *fd, char *err, size_t errlen)
{
	GElf_Ehdr header;
	Elf *elf;
	elf_version(EV_CURRENT);
	*fd = open(path, O_RDONLY);
	if (*fd < 0) {
		snprintf(err, errlen, "%s: %s", path, strerror(errno));
		return NULL;
	}
	elf = elf_begin(*fd, ELF_C_READ, NULL);
	if (elf != NULL && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) != NULL &&
	    header.e_type == type)
		return elf;
	snprintf(err, errlen, "%s: found %s, expected %s", path, kind_of(*fd), expected);
	elf_end(elf);
	close(*fd);
	*fd = -1;
	return NULL;
}

/* Notes where the dump has which physical memory, as far as the file goes. */
static bool
dump_open(struct core *c, const char *path, char *err, size_t errlen)
{
	Elf *elf = elf_open(path, ET_CORE,
			    "an ELF core; QEMU's dump-guest-memory makes one when it is asked for "
			    "no format (not -z, -l or -s)",
			    &c->fd, err, errlen);
	GElf_Phdr ph;
	struct stat st;
	size_t n = 0;
	if (elf == NULL)
		return false;
	uint64_t end = fstat(c->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n && c->count < SEGMENTS_MAX; i++) {
		if (gelf_getphdr(elf, (int)i, &ph) == NULL || ph.p_type != PT_LOAD)
			continue;
		uint64_t room = ph.p_offset < end ? end - ph.p_offset : 0;
		uint64_t size = ph.p_filesz < room ? ph.p_filesz : room;
		c->cut |= size < ph.p_filesz;
		c->segments[c->count++] =
		    (struct segment){ph.p_vaddr, ph.p_paddr, ph.p_offset, size};
	}
	elf_end(elf);
	return true;
}

/* What struct ktr_info says of a kernel: the note .note.gnu.build-id of its file. */
static bool
kernel_build(const char *path, char *text, size_t size, char *err, size_t errlen)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Nhdr note;
	size_t name, desc;
	int fd;
	Elf *elf = elf_open(path, ET_EXEC, "the ELF file of a kernel", &fd, err, errlen);
	if (elf == NULL)
		return false;
	snprintf(text, size, "a kernel without a build id");
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		Elf_Data *data = elf_getdata(scn, NULL);
		if (gelf_getshdr(scn, &sh) == NULL || sh.sh_type != SHT_NOTE || data == NULL ||
		    gelf_getnote(data, 0, &note, &name, &desc) == 0 ||
		    note.n_type != NT_GNU_BUILD_ID || note.n_descsz > ID_MAX)
			continue;
		const uint8_t *id = (const uint8_t *)data->d_buf + desc;
		size_t n = (size_t)snprintf(text, size, BUILD_PREFIX);
		for (size_t i = 0; i < note.n_descsz && n + 3 < size; i++)
			n += (size_t)snprintf(text + n, size - n, "%02x", id[i]);
	}
	elf_end(elf);
	close(fd);
	return true;
}

/* ---- memory -------------------------------------------------------------------------------------
 */

static bool
read_phys(const struct core *c, uint64_t phys, void *buf, size_t n)
{
	for (unsigned i = 0; i < c->count; i++) {
		const struct segment *s = &c->segments[i];
		uint64_t from = phys - s->phys;
		if (from < s->size && n <= s->size - from)
			return pread(c->fd, buf, n, (off_t)(s->at + from)) == (ssize_t)n;
	}
	return false;
}

/* A kernel's addresses are never physical ones: they are in the upper half. */
static bool
read_virt(const struct core *c, uint64_t va, void *buf, size_t n)
{
	for (unsigned i = 0; i < c->count; i++) {
		const struct segment *s = &c->segments[i];
		uint64_t from = va - s->virt;
		if (from < s->size && n <= s->size - from)
			return pread(c->fd, buf, n, (off_t)(s->at + from)) == (ssize_t)n;
	}
	return false;
}

/*
 * The physical address of a kernel's address: four levels of tables of 512 entries, 4 KiB pages
 * (SDM vol. 3A, 4.5; Arm ARM D8.3). What differs is how a table entry is told from a large page.
 */
static bool
translate(const struct core *c, uint64_t va, uint64_t *phys)
{
	uint64_t table = c->tables, entry;
	if (table == 0)
		return false;
	for (int shift = 39; shift >= 12; shift -= 9) {
		uint64_t index = va >> shift & 511;
		if (!read_phys(c, table + index * 8, &entry, sizeof(entry)) || (entry & 1) == 0)
			return false;
		table = entry & 0x0000fffffffff000u;
		if (shift == 12 || (shift < 39 && (entry & c->table_leaf) == c->leaf)) {
			uint64_t mask = (1ull << shift) - 1;
			*phys = (table & ~mask) | (va & mask);
			return true;
		}
	}
	return false;
}

/* ktr_image_read_fn */
static bool
read_kernel(void *arg, uint64_t va, void *buf, size_t n)
{
	struct core *c = arg;
	uint8_t *to = buf;
	while (n > 0) {
		uint64_t phys = 0, part = 4096 - va % 4096;
		if (part > n)
			part = n;
		/* Before the tables are known there is the region. */
		if (!read_virt(c, va, to, part) &&
		    (translate(c, va, &phys)
			 ? !read_phys(c, phys, to, part)
			 : c->region == NULL || !ktr_persist_read(&c->reader, va, to, part)))
			return false;
		va += part;
		to += part;
		n -= part;
	}
	return true;
}

/* ---- finding the log ----------------------------------------------------------------------------
 */

/* Takes a copy of the newest region of the dump. */
static void
find_region(struct core *c)
{
	for (unsigned i = 0; i < c->count; i++) {
		const struct segment *s = &c->segments[i];
		uint64_t at =
		    (s->phys + KTR_PERSIST_ALIGN - 1) & ~(uint64_t)(KTR_PERSIST_ALIGN - 1);
		for (; at - s->phys < s->size; at += KTR_PERSIST_ALIGN) {
			struct ktr_persist h;
			uint64_t room = s->size - (at - s->phys);
			if (!read_phys(c, at, &h, sizeof(h)) || !ktr_persist_valid(&h, at, room) ||
			    (c->region != NULL && h.boot < c->region->boot))
				continue;
			struct ktr_persist *copy = malloc(h.size);
			if (copy == NULL || !read_phys(c, at, copy, h.size)) {
				free(copy);
				continue;
			}
			free(c->region);
			c->region = copy;
		}
	}
	if (c->region != NULL)
		ktr_persist_reader_init(&c->reader, c->region);
}

static bool
root_is_one(const struct ktr_image_root *r)
{
	return memcmp(r->magic, KTR_IMAGE_MAGIC, sizeof(r->magic)) == 0 &&
	       r->version == KTR_IMAGE_VERSION && r->self != 0;
}

/* The root, up to its rings: of the region, else the first in memory. */
static bool
find_root(struct core *c, struct ktr_image_root *root)
{
	size_t size = offsetof(struct ktr_image_root, rings);
	static uint8_t piece[1 << 20];
	if (c->region != NULL)
		return ktr_persist_read(&c->reader, c->region->root, root, size) &&
		       root_is_one(root);
	for (unsigned i = 0; i < c->count; i++) {
		const struct segment *s = &c->segments[i];
		/* Pieces overlap by a root. */
		for (uint64_t at = 0; at < s->size; at += sizeof(piece) - size) {
			size_t n = s->size - at < sizeof(piece) ? s->size - at : sizeof(piece);
			if (!read_phys(c, s->phys + at, piece, n))
				break;
			for (size_t j = 0; j + size <= n; j += 8) {
				memcpy(root, piece + j, sizeof(root->magic));
				if (memcmp(root->magic, KTR_IMAGE_MAGIC, sizeof(root->magic)) != 0)
					continue;
				memcpy(root, piece + j, size);
				if (root_is_one(root))
					return true;
			}
		}
	}
	return false;
}

/* Finds the log, and how addresses are meant. *va: its root. */
static bool
find_log(struct core *c, const char *kernel, uint64_t *va, char *err, size_t errlen)
{
	struct ktr_image_root root;
	char build[KTR_IMAGE_BUILD];
	find_region(c);
	if (!find_root(c, &root)) {
		snprintf(err, errlen, "no event log is in the dumped memory");
		return false;
	}
	root.build[KTR_IMAGE_BUILD - 1] = '\0';
	if (kernel != NULL) {
		if (!kernel_build(kernel, build, sizeof(build), err, errlen))
			return false;
		if (strcmp(build, root.build) != 0) {
			snprintf(err, errlen, "it is of %s, but %s is %s", root.build, kernel,
				 build);
			return false;
		}
	}
	bool x86 = strncmp(root.arch, "x86_64", sizeof(root.arch)) == 0;
	if (x86 || strncmp(root.arch, "aarch64", sizeof(root.arch)) == 0) {
		c->tables = root.tables;
		c->table_leaf = x86 ? 1u << 7 : 1u << 1; /* PS is set; the table bit is not */
		c->leaf = x86 ? 1u << 7 : 0;
	}
	*va = root.self;
	return true;
}

struct core *
core_open(const char *path, const char *kernel, char *err, size_t errlen)
{
	struct core *c = calloc(1, sizeof(*c));
	uint64_t root;
	char text[300];
	if (c == NULL) {
		snprintf(err, errlen, "not enough memory");
		return NULL;
	}
	c->fd = -1;
	if (!dump_open(c, path, err, errlen)) {
		core_close(c);
		return NULL;
	}
	if (!find_log(c, kernel, &root, text, sizeof(text)) ||
	    ktr_image_open(&c->image, read_kernel, c, root, text, sizeof(text)) != 0) {
		snprintf(err, errlen, "%s: %s", path, text);
		core_close(c);
		return NULL;
	}
	return c;
}

bool
core_is_cut(const struct core *c)
{
	return c->cut;
}

size_t
core_read(struct core *c, void *buf, size_t len)
{
	return ktr_image_stream(&c->image, buf, len);
}

void
core_close(struct core *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->region);
	free(c);
}
