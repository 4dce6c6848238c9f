/*
 * ktr_core_gen.c - makes a log in this program's own memory, and an ELF core of that memory as
 * another machine would have it: input for ktrdump -M from kernels other than Kestrel.
 *
 * usage: ktr_core_gen ARCH|none told|untold BUILD CORE     also writes the log's stream to standard
 * output
 *
 * With an ARCH, pages are in physical memory in the order in which they are found, and that
 * architecture's page tables map them. With none, addresses are physical addresses. "untold": the
 * log does not say where read-only data is.
 */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ktr/control.h"
#include "ktr/image.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/stream.h"

#define PAGE     4096u
#define PHYS     0x80200000u
#define MEMORY   0x100000000000u /* where this program keeps the machine's memory */
#define PAGES    20000u
#define RUNS_MAX 40u

/* Format of a table entry: an address, shifted right, and bits. */
static const struct arch {
	const char *name;
	int top;
	unsigned shift;
	uint64_t table, leaf;
} archs[] = {
    {"x86_64", 39, 0, 3, 3},
    {"aarch64", 39, 0, 3, 0x403},
    {"riscv64", 30, 2, 1, 0xf},
};

static struct run {
	uint64_t start, size;
} runs[RUNS_MAX];
static unsigned run_count;
static uint8_t (*memory)[PAGE]; /* the machine's memory: pages, then tables */
static size_t memory_used;

static uint64_t
phys_of(size_t page)
{
	return PHYS + page * PAGE;
}

/* Finds this program's own memory: data, constants and heap. */
static void
runs_find(const char *program)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[600], mode[8], path[400];
	unsigned long start, end;
	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		path[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %399s", &start, &end, mode, path) < 3)
			continue;
		bool own = strstr(path, program) != NULL || strcmp(path, "[heap]") == 0 ||
			   (path[0] == '\0' && mode[1] == 'w' && start != MEMORY);
		if (own && mode[2] != 'x' && run_count < RUNS_MAX)
			runs[run_count++] = (struct run){start, end - start};
	}
	if (maps != NULL)
		fclose(maps);
}

static void
map_page(const struct arch *a, size_t root, uint64_t va, uint64_t phys)
{
	size_t table = root;
	for (int shift = a->top; shift > 12; shift -= 9) {
		uint64_t *entry = (uint64_t *)memory[table] + (va >> shift & 511);
		if (*entry == 0)
			*entry = phys_of(memory_used++) >> a->shift | a->table;
		table = (*entry >> 10 << 10) * (1u << a->shift) / PAGE - PHYS / PAGE;
	}
	((uint64_t *)memory[table])[va >> 12 & 511] = phys >> a->shift | a->leaf;
}

static void
put_segment(Elf64_Phdr *ph, uint64_t addr, uint64_t size, uint64_t at)
{
	*ph = (Elf64_Phdr){.p_type = PT_LOAD, .p_offset = at, .p_filesz = size, .p_memsz = size};
	ph->p_vaddr = ph->p_paddr = addr;
}

static bool
core_write(const char *path, const struct arch *a)
{
	Elf64_Ehdr head = {.e_type = ET_CORE,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(head),
			   .e_ehsize = sizeof(head),
			   .e_phentsize = sizeof(Elf64_Phdr)};
	static Elf64_Phdr ph[RUNS_MAX];
	FILE *f = fopen(path, "wb");
	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	head.e_phnum = a != NULL ? 1 : (Elf64_Half)run_count;
	uint64_t at = sizeof(head) + sizeof(ph);
	if (a != NULL)
		put_segment(&ph[0], PHYS, memory_used * PAGE, at);
	for (unsigned i = 0; a == NULL && i < run_count; at += runs[i++].size)
		put_segment(&ph[i], runs[i].start, runs[i].size, at);
	if (f == NULL || fwrite(&head, sizeof(head), 1, f) != 1 ||
	    fwrite(ph, sizeof(ph), 1, f) != 1)
		return false;
	if (a != NULL)
		fwrite(memory, PAGE, memory_used, f);
	for (unsigned i = 0; a == NULL && i < run_count; i++)
		fwrite((const void *)(uintptr_t)runs[i].start, 1, runs[i].size, f);
	return fclose(f) == 0;
}

/* Copies this program's memory into the machine's. */
static void
memory_copy(const struct arch *a)
{
	size_t root = memory_used++;
	ktr_image_set_tables(phys_of(root));
	for (unsigned i = 0; i < run_count; i++) {
		for (uint64_t at = 0; at < runs[i].size; at += PAGE) {
			uint64_t va = runs[i].start + at;
			size_t page = memory_used++;
			map_page(a, root, va, phys_of(page));
			memcpy(memory[page], (const void *)(uintptr_t)va, PAGE);
		}
	}
}

static void
record(const char *arch, const char *build)
{
	static struct ktr_info info = {.hz = 1000000000, .ncpu = 2};
	info.arch = arch;
	info.build = build;
	ktr_host_cpus = 2;
	ktr_info_set(&info);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		ktr_cpu_init(cpu);
	ktr_mask_set(KTR_ALL);
	ktr_thread_name(7, "sh");
	for (unsigned n = 0; n < 100; n++) {
		ktr_host_cpu = n % 2;
		ktr_host_tid = 7 + n % 2;
		CTR3(KTR_PROC, "event: number %u of %s, %s", n, ktr_thread_ident(7), "a constant");
		CTR1(KTR_SCHED, "interned %s", ktr_intern("text"));
	}
}

int
main(int argc, char **argv)
{
	static struct ktr_stream stream;
	static char buf[4096];
	const struct arch *arch = NULL;
	if (argc != 5)
		return 2;
	for (unsigned i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (strcmp(argv[1], archs[i].name) == 0)
			arch = &archs[i];
	}
	record(arch != NULL ? arch->name : "riscv64", argv[3]);
	memory = mmap((void *)MEMORY, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	runs_find("ktr_core_gen");
	for (unsigned i = 0, told = 0; i < run_count && told < 2 && argv[2][0] == 't'; i++, told++)
		ktr_image_add_text((const void *)(uintptr_t)runs[i].start, runs[i].size);
	if (arch != NULL)
		memory_copy(arch);
	if (!core_write(argv[4], arch))
		return 1;
	ktr_stream_open(&stream, KTR_STREAM_LIVE);
	for (size_t n; (n = ktr_stream_read(&stream, buf, sizeof(buf))) > 0;)
		fwrite(buf, 1, n, stdout);
	return 0;
}
