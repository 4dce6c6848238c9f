/*
 * core.c - reads the log in a memory dump, as a stream.
 *
 * The log begins with its root (ktr/image.h). The root is in the newest region of memory that
 * survives a reset (ktr/persist.h); if there is no such region, it is found by its magic number
 * anywhere in memory. The root says where the kernel's page tables are, and these translate all
 * other addresses, as the CPU would do it. A dump that a debugger wrote has virtual addresses
 * itself; these come first.
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

#define SEGMENTS_MAX 256u /* a dump of gdb has a segment for each CPU's ring, and a few more */
#define ID_MAX       20u
_Static_assert(CORE_BUILD_ID == 2 * ID_MAX + 1, "in hexadecimal");

/*
 * How an architecture translates addresses with pages of 4 KiB and tables of 512 entries of 8 bytes
 * whose bit 0 says that they are valid.
 */
struct paging {
	const char *arch;    /* as the kernel says it (struct ktr_info) */
	int top;             /* the lowest bit of the index into the first table */
	uint64_t table_mask; /* what these bits … */
	uint64_t table;      /* … are in an entry that leads to another table */
	unsigned shift;      /* its address: after a shift to the left … */
	uint64_t address;    /* … these bits */
};

static const struct paging pagings[] = {
    {"x86_64", 39, 1u << 7, 0, 0, 0x000ffffffffff000u},        /* SDM vol. 3A, 4.5 */
    {"aarch64", 39, 1u << 1, 1u << 1, 0, 0x0000fffffffff000u}, /* Arm ARM D8.3 */
    {"riscv64", 30, 7u << 1, 0, 2, 0x00fffffffffff000u},       /* Privileged ISA, Sv39 */
};

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
	uint64_t tables;             /* physical address of the top page table; 0: there is none */
	const struct paging *paging; /* NULL: not known yet */
	struct ktr_persist *region;  /* a copy; NULL: none */
	struct ktr_persist_reader reader;
	struct ktr_image image;
};

/* ---- files ---- */

/* Says what kind of file it seems to be instead of the expected one. */
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

/* Opens an ELF file of the given type. `expected` is for the message. */
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

/* Notes which physical memory is where in the dump, as far as the file has it. */
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
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &ph) == NULL || ph.p_type != PT_LOAD)
			continue;
		if (c->count == SEGMENTS_MAX) {
			snprintf(err, errlen, "%s: found more than %u segments", path,
				 SEGMENTS_MAX);
			elf_end(elf);
			return false;
		}
		uint64_t room = ph.p_offset < end ? end - ph.p_offset : 0;
		uint64_t size = ph.p_filesz < room ? ph.p_filesz : room;
		c->cut |= size < ph.p_filesz;
		c->segments[c->count++] =
		    (struct segment){ph.p_vaddr, ph.p_paddr, ph.p_offset, size};
	}
	elf_end(elf);
	return true;
}

/* ---- memory ---- */

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
 * Translates a kernel's address. Without page tables and region, virtual and physical addresses are
 * the same.
 */
static bool
translate(const struct core *c, uint64_t va, uint64_t *phys)
{
	const struct paging *p = c->paging;
	uint64_t table = c->tables, entry;
	*phys = va;
	if (p == NULL || table == 0)
		return p != NULL && c->region == NULL;
	for (int shift = p->top; shift >= 12; shift -= 9) {
		uint64_t index = va >> shift & 511;
		if (!read_phys(c, table + index * 8, &entry, sizeof(entry)) || (entry & 1) == 0)
			return false;
		table = entry << p->shift & p->address;
		if (shift == 12 || (entry & p->table_mask) != p->table) {
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
		/* The region is readable before the page tables are known. */
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

/* ---- the kernel that was dumped ---- */

/* The build id of an ELF file, in hexadecimal; "": it has none. */
static void
build_id(Elf *elf, char text[CORE_BUILD_ID])
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Nhdr note;
	size_t name, desc;
	text[0] = '\0';
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		if (gelf_getshdr(scn, &sh) == NULL || sh.sh_type != SHT_NOTE)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		if (data == NULL || gelf_getnote(data, 0, &note, &name, &desc) == 0 ||
		    note.n_type != NT_GNU_BUILD_ID || note.n_descsz > ID_MAX)
			continue;
		const uint8_t *id = (const uint8_t *)data->d_buf + desc;
		for (size_t i = 0; i < note.n_descsz; i++)
			snprintf(text + 2 * i, 3, "%02x", id[i]);
	}
}

int
core_build_is(Elf *elf, const char *build, char id[CORE_BUILD_ID])
{
	size_t digits = 0;
	build_id(elf, id);
	for (const char *p = build; *p != '\0' && digits<2 * ID_MAX; p += digits> 0 ? digits : 1)
		digits = strspn(p, "0123456789abcdef");
	if (digits < 2 * ID_MAX)
		return -1;
	return id[0] != '\0' && strstr(build, id) != NULL;
}

/* Is the read-only data of an ELF file in the dump, at its addresses? */
static bool
rodata_same(struct core *c, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	char found[4096];
	bool any = false;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		if (gelf_getshdr(scn, &sh) == NULL || sh.sh_type != SHT_PROGBITS ||
		    (sh.sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) != SHF_ALLOC)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		for (size_t at = 0, part; data != NULL && at < data->d_size; at += part) {
			part =
			    data->d_size - at < sizeof(found) ? data->d_size - at : sizeof(found);
			if (!read_kernel(c, sh.sh_addr + at, found, part) ||
			    memcmp(found, (const char *)data->d_buf + at, part) != 0)
				return false;
			any = true;
		}
	}
	return any;
}

/* Was this kernel dumped? The build id tells, if the log has one; else the read-only data does. */
static bool
kernel_is(struct core *c, const char *path, const char *build, char *err, size_t errlen)
{
	char id[CORE_BUILD_ID];
	int fd;
	Elf *elf = elf_open(path, ET_EXEC, "the ELF file of a kernel", &fd, err, errlen);
	if (elf == NULL)
		return false;
	int is = core_build_is(elf, build, id);
	bool same = is < 0 ? rodata_same(c, elf) : is != 0;
	if (!same)
		snprintf(err, errlen, "it is of \"%s\", but %s is another kernel, of build id %s",
			 build, path, id[0] != '\0' ? id : "(none)");
	elf_end(elf);
	close(fd);
	return same;
}

/* ---- finding the log ---- */

/* Takes a copy of the newest region of the dump. */
static void
find_region(struct core *c)
{
	for (unsigned i = 0; i < c->count; i++) {
		const struct segment *s = &c->segments[i];
		uint64_t at =
		    (s->phys + KTR_PERSIST_ALIGN - 1) & ~(uint64_t)(KTR_PERSIST_ALIGN - 1);
		for (; at - s->phys < s->size; at += KTR_PERSIST_ALIGN) {
			static char head[KTR_PERSIST_HEAD];
			const struct ktr_persist *h = (struct ktr_persist *)head;
			uint64_t room = s->size - (at - s->phys);
			if (!read_phys(c, at, head, sizeof(head)) ||
			    !ktr_persist_open(head, at, room) ||
			    (c->region != NULL && h->boot < c->region->boot))
				continue;
			struct ktr_persist *copy = malloc(h->size);
			if (copy == NULL || !read_phys(c, at, copy, h->size)) {
				free(copy);
				continue;
			}
			memcpy(copy, head, sizeof(head));
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

/* Finds the root, without its rings: that of the region, or else the first in memory. */
static bool
find_root(struct core *c, struct ktr_image_root *root)
{
	size_t size = offsetof(struct ktr_image_root, rings);
	static uint8_t piece[1 << 20];
	if (c->region != NULL) {
		uint64_t va = ktr_persist_root(&c->reader);
		bool found = ktr_persist_read(&c->reader, va, root, size) && root_is_one(root);
		root->self = va;
		return found;
	}
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

/* Finds the log and the way to translate addresses. *va is the root's address. */
static bool
find_log(struct core *c, const char *kernel, uint64_t *va, char *err, size_t errlen)
{
	struct ktr_image_root root;
	find_region(c);
	if (!find_root(c, &root)) {
		snprintf(err, errlen, "no event log is in the dumped memory");
		return false;
	}
	root.build[KTR_IMAGE_BUILD - 1] = '\0';
	for (size_t i = 0; i < sizeof(pagings) / sizeof(pagings[0]); i++)
		if (strncmp(root.arch, pagings[i].arch, sizeof(root.arch)) == 0)
			c->paging = &pagings[i];
	c->tables = root.tables;
	*va = root.self;
	return kernel == NULL || kernel_is(c, kernel, root.build, err, errlen);
}

/* Does the kernel say where the texts of its trace points are? */
static bool
texts_told(struct core *c, char *err, size_t errlen)
{
	const struct ktr_image_root *r = &c->image.root;
	struct ktr_site site;
	unsigned read = 0;
	for (uint32_t n = 0; n < r->site_count; n++) {
		if (!read_kernel(c, r->sites + n * sizeof(site), &site, sizeof(site)))
			continue;
		read++;
		for (unsigned i = 0; i < KTR_IMAGE_TEXTS; i++)
			if ((uintptr_t)site.fmt - r->texts[i].start < r->texts[i].size)
				return true;
	}
	if (read > 0)
		snprintf(err, errlen,
			 "the texts of its %u trace points are not where its kernel said: "
			 "ktr_image_add_text(start, size) has to tell where its read-only data is",
			 read);
	return read == 0;
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
	    ktr_image_open(&c->image, read_kernel, c, root, text, sizeof(text)) != 0 ||
	    !texts_told(c, text, sizeof(text))) {
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
