/*
 * vdso.c - the code that the kernel puts into each program, by which it tells the time without a
 * system call. It does the same on Linux (word "vdso").
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

/* What the dynamic section says: all that a C library looks at. */
struct object {
	const char *at;
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *hash;
	const uint16_t *versions;
	const Elf64_Verdef *definitions;
};

static bool
find_object(struct object *o)
{
	const char *at = (const char *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)at;
	const Elf64_Phdr *p;
	const Elf64_Dyn *d = NULL;

	if (at == NULL || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_type != ET_DYN)
		return false;
	p = (const Elf64_Phdr *)(at + e->e_phoff);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_DYNAMIC)
			d = (const Elf64_Dyn *)(at + p[i].p_offset);
	*o = (struct object){.at = at};
	for (; d != NULL && d->d_tag != DT_NULL; d++) {
		const void *there = at + d->d_un.d_ptr;

		if (d->d_tag == DT_SYMTAB)
			o->symbols = there;
		else if (d->d_tag == DT_STRTAB)
			o->strings = there;
		else if (d->d_tag == DT_HASH)
			o->hash = there;
		else if (d->d_tag == DT_VERSYM)
			o->versions = there;
		else if (d->d_tag == DT_VERDEF)
			o->definitions = there;
	}
	return o->symbols != NULL && o->strings != NULL && o->versions != NULL &&
	       o->definitions != NULL;
}

/* The function with that name after __vdso_ or __kernel_, and its version. */
static void *
find_function(const struct object *o, const char *name, const char **version)
{
	/* Without DT_HASH, as of newer kernels, the strings follow the symbols. */
	size_t n = o->hash != NULL
		       ? o->hash[1]
		       : (size_t)(o->strings - (const char *)o->symbols) / sizeof(*o->symbols);

	for (size_t i = 1; i < n; i++) {
		const char *text = o->strings + o->symbols[i].st_name;
		const Elf64_Verdef *v = o->definitions;
		const char *rest = strncmp(text, "__vdso_", 7) == 0     ? text + 7
				   : strncmp(text, "__kernel_", 9) == 0 ? text + 9
									: "";

		if (strcmp(rest, name) != 0 || ELF64_ST_TYPE(o->symbols[i].st_info) != STT_FUNC)
			continue;
		while (v->vd_ndx != (o->versions[i] & 0x7fff) && v->vd_next != 0)
			v = (const Elf64_Verdef *)((const char *)v + v->vd_next);
		*version =
		    o->strings + ((const Elf64_Verdaux *)((const char *)v + v->vd_aux))->vda_name;
		return (void *)(o->at + o->symbols[i].st_value);
	}
	return NULL;
}

static bool
is_in_maps(const char *at)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], rights[8], name[64];
	unsigned long start, end;
	bool found = false;

	while (fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, "[vdso]") != NULL)
			found = sscanf(line, "%lx-%lx %7s 00000000 00:00 0 %63s", &start, &end,
				       rights, name) == 4 &&
				start == (unsigned long)at && strcmp(rights, "r-xp") == 0;
	fclose(f);
	return found;
}

static int64_t
ns_of(const struct timespec *t)
{
	return t->tv_sec * 1000000000 + t->tv_nsec;
}

typedef int gettime_fn(clockid_t clock, struct timespec *t);
typedef int getday_fn(struct timeval *t, struct timezone *zone);

static bool
clocks_agree(gettime_fn *gettime)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
					   CLOCK_BOOTTIME, CLOCK_THREAD_CPUTIME_ID};
	struct timespec before, here, after;

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (syscall(SYS_clock_gettime, clocks[i], &before) != 0 ||
		    gettime(clocks[i], &here) != 0 ||
		    syscall(SYS_clock_gettime, clocks[i], &after) != 0 ||
		    ns_of(&before) > ns_of(&here) || ns_of(&here) > ns_of(&after))
			return false;
	}
	for (int id = CLOCK_REALTIME_COARSE; id <= CLOCK_MONOTONIC_COARSE; id++)
		if (gettime(id, &here) != 0 || syscall(SYS_clock_gettime, id, &after) != 0 ||
		    ns_of(&here) > ns_of(&after) || here.tv_nsec < 0 || here.tv_nsec > 999999999)
			return false;
	return gettime(12345, &here) == -EINVAL && clock_gettime(12345, &here) == -1 &&
	       errno == EINVAL;
}

static bool
days_agree(getday_fn *getday)
{
	struct timezone zone = {1, 1};
	struct timespec before, after;
	struct timeval here;
	int64_t us;

	if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &before) != 0 || getday(&here, &zone) != 0 ||
	    syscall(SYS_clock_gettime, CLOCK_REALTIME, &after) != 0 || getday(NULL, NULL) != 0)
		return false;
	us = here.tv_sec * 1000000 + here.tv_usec;
	return us >= ns_of(&before) / 1000 && us <= ns_of(&after) / 1000 &&
	       zone.tz_minuteswest == 0 && zone.tz_dsttime == 0 && time(NULL) >= here.tv_sec;
}

static int
in_a_child(void *arg)
{
	return clocks_agree((gettime_fn *)arg) ? 0 : 1;
}

void
test_vdso(void)
{
	struct object o;
	const char *versions[3] = {"", "", ""};
	void *gettime = NULL, *getday = NULL, *getres = NULL;
	struct timespec t = {1, 0};
	bool found = find_object(&o);

	if (found) {
		gettime = find_function(&o, "clock_gettime", &versions[0]);
		getday = find_function(&o, "gettimeofday", &versions[1]);
		getres = find_function(&o, "clock_getres", &versions[2]);
	}
	result(found && is_in_maps(o.at), "AT_SYSINFO_EHDR tells where [vdso] is");
	result(gettime != NULL && getday != NULL && getres != NULL &&
		   strncmp(versions[0], "LINUX_2.6", 9) == 0 &&
		   strcmp(versions[0], versions[1]) == 0 && strcmp(versions[0], versions[2]) == 0,
	       "its functions have the names and versions of vdso(7)");
	result(gettime != NULL && clocks_agree(gettime) && in_child(in_a_child, gettime) == 0,
	       "its clock_gettime is that of the system call");
	result(getday != NULL && days_agree(getday) &&
		   ((gettime_fn *)getres)(CLOCK_MONOTONIC, &t) == 0 && t.tv_sec == 0,
	       "and so are gettimeofday and clock_getres");
}
