/*
 * remote_elf.c - what the ELF of another kernel says: its trace points, as probes; its symbols; its
 * types, as pahole makes them of what is for debuggers.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/dtrace/dif/line.h"
#include "kernel/dtrace/host/device.h"
#include "kernel/dtrace/host/remote.h"
#include "kernel/dtrace/probe.h"
#include "kernel/lib/ksyms.h"
#include "userland/bin/dtrace/btf.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/files.h"
#include "userland/lib/array.h"

static struct {
	const char *path;
	Elf *elf;
	size_t names; /* the section of sections' names */
} in;

/* ---- sections ---- */

/* The section after s, or the first one if s is NULL. Sets its header and its data. NULL: the end.
 */
static Elf_Scn *
next_section(Elf_Scn *s, GElf_Shdr *h, Elf_Data **data)
{
	s = elf_nextscn(in.elf, s);
	if (s == NULL || gelf_getshdr(s, h) == NULL)
		return NULL;
	*data = h->sh_type != SHT_NOBITS ? elf_getdata(s, NULL) : NULL;
	return s;
}

static Elf_Data *
section_named(const char *name, GElf_Shdr *h)
{
	Elf_Data *data;

	for (Elf_Scn *s = NULL; (s = next_section(s, h, &data)) != NULL;) {
		const char *is = elf_strptr(in.elf, in.names, h->sh_name);

		if (is != NULL && strcmp(is, name) == 0)
			return data;
	}
	return NULL;
}

/* Finds the bytes that are loaded at an address. *left: how many the section has from there on.
 * NULL if nothing is. */
static const void *
loaded_at(uint64_t address, size_t *left)
{
	GElf_Shdr h;
	Elf_Data *data;

	for (Elf_Scn *s = NULL; (s = next_section(s, &h, &data)) != NULL;) {
		if ((h.sh_flags & SHF_ALLOC) == 0 || data == NULL || data->d_buf == NULL ||
		    address - h.sh_addr >= data->d_size)
			continue;
		*left = data->d_size - (address - h.sh_addr);
		return (const uint8_t *)data->d_buf + (address - h.sh_addr);
	}
	return NULL;
}

/* ---- trace points ---- */

/* Replaces the address of a text by the text. */
static void
resolve(const char **text)
{
	size_t left;
	const char *found;

	if (*text == NULL)
		return;
	found = loaded_at((uintptr_t)*text, &left);
	if (found == NULL || memchr(found, '\0', left) == NULL)
		remote_fail(
		    "%s: found a trace point without texts, expected a kernel that is linked for "
		    "fixed addresses",
		    in.path);
	*text = found;
}

static void
resolve_site(struct ktr_site *site, struct ktr_sdt *sdt)
{
	size_t left;
	const void *found;

	resolve(&site->file);
	resolve(&site->func);
	resolve(&site->fmt);
	if (site->kind != KTR_SITE_PROBE)
		return;
	found = loaded_at((uintptr_t)site->sdt, &left);
	if (found == NULL || left < sizeof(*sdt))
		remote_fail("%s: found a probe that nothing describes", in.path);
	memcpy(sdt, found, sizeof(*sdt));
	site->sdt = sdt;
	resolve(&sdt->provider);
	resolve(&sdt->module);
	resolve(&sdt->function);
	resolve(&sdt->name);
	for (unsigned i = 0; i < KTR_SDT_ARGS; i++) {
		resolve(&sdt->types[i]);
		resolve(&sdt->xlate[i]);
	}
}

/* A trace point's id is its number, after the engine's own: so each one is added, probe or not. */
static void
add_site(struct ktr_site *site, uint32_t *sum)
{
	struct dif_probe p = {.id = 0};
	struct ktr_probe_name name;
	struct ktr_sdt sdt;

	if (ktr_site_is_probe(site) && site->kind != KTR_SITE_MADE) {
		resolve_site(site, &sdt);
		if (site->fmt == NULL || site->func == NULL || site->file == NULL)
			remote_fail("%s: found a trace point without texts", in.path);
		*sum = dif_line_sum(*sum, site);
		ktr_probe_name(site, &name);
		if (strcmp(name.provider, "dtrace") !=
		    0) /* BEGIN, END, ERROR are the device's own */
			dif_probe_describe(&p, 0, &name, site);
	}
	device_add(&p);
}

static void
add_sites(uint32_t *sites, uint32_t *sum)
{
	GElf_Shdr h;
	const Elf_Data *data = section_named("ktr_sites", &h);

	*sum = 0;
	if (data == NULL || data->d_size % sizeof(struct ktr_site) != 0)
		remote_fail(
		    "%s: found no section ktr_sites, expected the ELF of a kernel with trace points",
		    in.path);
	*sites = (uint32_t)(data->d_size / sizeof(struct ktr_site));
	for (uint32_t i = 0; i < *sites; i++) {
		struct ktr_site site;

		memcpy(&site, (const uint8_t *)data->d_buf + i * sizeof(site), sizeof(site));
		add_site(&site, sum);
	}
}

/* ---- symbols ---- */

struct named {
	uint64_t address;
	const char *name;
};

static int
compare(const void *a, const void *b)
{
	uint64_t x = ((const struct named *)a)->address, y = ((const struct named *)b)->address;

	return x < y ? -1 : x > y;
}

/* As symbol_open() takes them: those within 4 GiB of the first. */
static void
add_symbols(void)
{
	struct named *all = NULL;
	size_t count = 0, names_size = 1, n = 0;
	struct ksyms_header *head;
	struct ksyms_sym *to;
	char *names;
	GElf_Shdr h;
	Elf_Data *data;

	for (Elf_Scn *s = NULL; (s = next_section(s, &h, &data)) != NULL;)
		for (int i = 0; h.sh_type == SHT_SYMTAB && data != NULL; i++) {
			GElf_Sym sym;
			const char *name;

			if (gelf_getsym(data, i, &sym) == NULL)
				break;
			name = elf_strptr(in.elf, h.sh_link, sym.st_name);
			if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF ||
			    name == NULL)
				continue;
			ARRAY_ADD(all, count, (struct named){sym.st_value, name});
			names_size += strlen(name) + 1;
		}
	if (count == 0)
		return;
	qsort(all, count, sizeof(*all), compare);
	head = calloc(1, sizeof(*head) + count * sizeof(*to) + names_size);
	if (head == NULL)
		err(1, "memory");
	to = (struct ksyms_sym *)(head + 1);
	while (n < count && all[n].address - all[0].address <= UINT32_MAX)
		n++;
	names = (char *)(to + n);
	*head = (struct ksyms_header){.magic = KSYMS_MAGIC,
				      .sym_count = (uint32_t)n,
				      .base = all[0].address,
				      .names_size = names_size};
	for (size_t i = 0, at = 0; i < n; i++) {
		to[i].addr = (uint32_t)(all[i].address - all[0].address);
		to[i].name = (uint32_t)at;
		strcpy(names + at, all[i].name);
		at += strlen(all[i].name) + 1;
	}
	symbol_open(head, sizeof(*head) + n * sizeof(*to) + names_size);
	free(all);
}

/* ---- types ---- */

/* Says why: the last line of what pahole said, which names each thing of C++ that it leaves out. */
static void
tell_last_line(FILE *said)
{
	char line[256], last[256] = "";

	rewind(said);
	while (fgets(line, sizeof(line), said) != NULL)
		strcpy(last, line);
	last[strcspn(last, "\n")] = '\0';
	if (last[0] != '\0')
		warnx("%s", last);
}

/* Runs pahole, which writes the types of C, and gives up at those of C++. False: it failed. */
static bool
run_pahole(const char *to)
{
	FILE *said = tmpfile();
	const char *option = dt_format("--btf_encode_detached=%s", to);
	char *argv[] = {"pahole", (char *)"--lang_exclude=c++,c++03,c++11,c++14,rust",
			(char *)option, (char *)in.path, NULL};
	int status = -1;
	pid_t pid;
	bool good;

	if (said == NULL)
		err(1, "a temporary file");
	pid = fork();
	if (pid == 0) {
		if (dup2(fileno(said), STDERR_FILENO) < 0)
			_exit(127);
		execvp(argv[0], argv);
		warn("%s", argv[0]);
		_exit(127);
	}
	good = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
	if (!good)
		tell_last_line(said);
	fclose(said);
	return good;
}

static void
add_types(void)
{
	static struct btf btf;
	char path[] = "/tmp/dtrace.XXXXXX";
	const char *why = NULL;
	GElf_Shdr h;
	void *data = NULL;
	size_t size;
	int fd;

	type_variables(""); /* the variables of the host's kernel are not there, either */
	type_init(NULL);
	if (section_named(".debug_info", &h) == NULL)
		return; /* without it, programs name no types but their own */
	fd = mkstemp(path);
	if (fd < 0)
		err(1, "%s", path);
	close(fd);
	if (run_pahole(path))
		data = file_read(path, &size);
	unlink(path);
	if (data == NULL)
		warnx("%s: pahole made no types of it: programs name only their own", in.path);
	else
		why = btf_open(&btf, data, size);
	if (why != NULL)
		warnx("%s: %s", in.path, why);
	else if (data != NULL)
		type_init(&btf);
}

void
remote_elf_open(const char *path, uint32_t *sites, uint32_t *sum)
{
	GElf_Ehdr h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	in.path = path;
	if (fd < 0)
		remote_fail("%s: %s", path, strerror(errno));
	elf_version(EV_CURRENT);
	in.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (in.elf == NULL || elf_kind(in.elf) != ELF_K_ELF || gelf_getehdr(in.elf, &h) == NULL ||
	    elf_getshdrstrndx(in.elf, &in.names) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    h.e_ident[EI_DATA] != ELFDATA2LSB)
		remote_fail("%s: expected the ELF of a 64-bit little-endian kernel", path);
	if (h.e_type != ET_EXEC)
		remote_fail("%s: expected a kernel that is linked for fixed addresses", path);
	add_sites(sites, sum);
	add_symbols();
	add_types();
}
