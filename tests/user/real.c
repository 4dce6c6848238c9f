/* real.c - random acts on the files of the system, and a search for kernel addresses in them. */
#include "tests/user/real.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/abi/syscall.h"
#include "tests/user/raw.h"

#define ACTS        60
#define DEPTH       6
#define PATH        512
#define LEAK_READ   65536
#define KERNEL_FROM 0xffff800000000000u
#define KERNEL_TO   0xffffffffffff0000u /* above are small negative numbers */

static uint64_t (*below)(uint64_t n);
static char bytes[LEAK_READ];

#define ONE_OF(list) (list)[below(sizeof(list) / sizeof((list)[0]))]

/* What somebody reads and a random program may not disturb: the console, and the trace's line. */
static bool
is_spared(const char *path)
{
	static const char *const spared[] = {"/dev/tty", "/dev/console", "/dev/kmsg", "/proc/sys",
					     "/proc/kcore"};

	for (unsigned i = 0; i < sizeof(spared) / sizeof(spared[0]); i++) {
		if (strncmp(path, spared[i], strlen(spared[i])) == 0)
			return true;
	}
	return false;
}

/* A random name of the directory. False: it has none, or is none. */
static bool
random_name(const char *dir, char name[256])
{
	DIR *d = opendir(dir);
	struct dirent *e;
	uint64_t seen = 0;

	if (d == NULL)
		return false;
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.' && below(++seen) == 0)
			snprintf(name, 256, "%s", e->d_name);
	}
	closedir(d);
	return seen > 0;
}

static void
random_path(char path[PATH])
{
	static const char *const roots[] = {"/proc",
					    "/proc/self",
					    "/proc/1",
					    "/dev",
					    "/sys",
					    "/sys/kernel/tracing",
					    "/sys/kernel/tracing",
					    "/sys/kernel/tracing/events",
					    "/sys/kernel/tracing/instances",
					    "/sys/kernel/tracing/per_cpu"};
	char name[256];
	struct stat st;
	size_t n = (size_t)snprintf(path, PATH, "%s", ONE_OF(roots));

	/* Links lead out of here: /proc/1/root is all of the system. */
	for (unsigned i = 0; i < DEPTH && random_name(path, name); i++) {
		size_t more = (size_t)snprintf(path + n, PATH - n, "/%s", name);

		if (more >= PATH - n || lstat(path, &st) != 0 || S_ISLNK(st.st_mode)) {
			path[n] = '\0';
			return;
		}
		n += more;
	}
}

static size_t
random_text(char *to, size_t size)
{
	static const char *const texts[] = {"0",
					    "1",
					    "2",
					    "nop",
					    "function",
					    "function_graph",
					    "hwlat",
					    "osnoise",
					    "timerlat",
					    "-1",
					    "4096",
					    "999999999",
					    "*",
					    "*:*",
					    "sched:*",
					    "!sched:*",
					    "vm_*",
					    "sys_*:5",
					    "global",
					    "mono",
					    "x86-tsc",
					    "p:fuzz/a vm_fault x=%di:u64",
					    "p vm_fault",
					    "r:fuzz/b vm_fault ret=$retval",
					    "-:fuzz/a",
					    "-:",
					    "p:fuzz/u /bin/su:0x1000",
					    "e:fuzz/e sched.sched_switch p=$next_pid",
					    "s:fuzz_s int a; char b[16]",
					    "fuzz_s int a",
					    "hist:keys=pid",
					    "hist:keys=common_pid:vals=x",
					    "!hist:keys=pid",
					    "traceon:1",
					    "snapshot",
					    "stacktrace:3",
					    "enable_event:sched:*",
					    "common_pid > 5",
					    "comm ~ \"a*\" && prio < 3 || (x == 1",
					    "ff",
					    "0,3",
					    "1-2",
					    "noirq-info",
					    "sym-offset",
					    "nofuncgraph-irqs",
					    "stacktrace",
					    "vm_fault:traceoff",
					    "vm_*:snapshot:1"};
	unsigned n = 0;

	switch (below(6)) {
	case 0:
		for (n = 0; n < below(size); n++)
			to[n] = (char)below(256);
		return n;
	case 1: /* what the file has said */
		return below(size);
	default:
		n = (unsigned)snprintf(to, size, "%s%s%s", ONE_OF(texts), below(4) ? "" : " ",
				       below(4) ? "" : ONE_OF(texts));
		to[n++] = '\n';
		return n;
	}
}

static void
trace_other(void)
{
	static const int pids[] = {1, 2, -1, 0};

	syscall_raw(NR_ktrace, (long)(below(2) ? "/tmp/fuzz/ktrace" : "/proc/self/status"),
		    (long)below(16), (long)below(1u << 16),
		    below(2) ? ONE_OF(pids) : (long)below(64), 0, 0);
}

static void
act(int fd, const char *path)
{
	struct pollfd p = {.fd = fd, .events = (short)below(1u << 16)};
	int ends[2];
	void *at;

	switch (below(10)) {
	case 0:
		ioctl(fd, below(2) ? below(1u << 16) : 0x5400 + below(256),
		      below(2) ? (unsigned long)bytes : below(1u << 16));
		break;
	case 1:
		at = mmap(NULL, 4096 * (1 + below(4)), PROT_READ | (below(2) ? PROT_WRITE : 0),
			  below(2) ? MAP_SHARED : MAP_PRIVATE, fd, (off_t)(4096 * below(3)));
		if (at != MAP_FAILED)
			bytes[0] = *(volatile char *)at;
		break;
	case 2:
		pread(fd, bytes, below(sizeof(bytes)), (off_t)(below(1ull << below(63))));
		break;
	case 3:
		lseek(fd, (off_t)below(1u << 20), (int)below(6));
		break;
	case 4:
		if (pipe2(ends, O_NONBLOCK) != 0)
			break;
		syscall_raw(NR_splice, fd, 0, ends[1], 0, (long)below(1u << 17), (long)below(8));
		close(ends[0]);
		close(ends[1]);
		break;
	case 5:
		poll(&p, 1, 0);
		break;
	case 6:
	case 7:
		read(fd, bytes, below(2) ? sizeof(bytes) : below(100));
		break;
	default:
		if (!is_spared(path))
			write(fd, bytes, random_text(bytes, below(4) ? 256 : 8192));
	}
}

void
real_round(uint64_t (*draw_below)(uint64_t n))
{
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC,
				    O_RDWR | O_APPEND};
	char path[PATH];

	below = draw_below;
	for (unsigned i = 0; i < ACTS; i++) {
		int fd;

		random_path(path);
		fd = is_spared(path) ? -1 : open(path, ONE_OF(modes) | O_NONBLOCK);
		for (uint64_t n = below(8); fd >= 0 && n > 0; n--)
			act(fd, path);
		if (below(2) && fd >= 0) /* some stay open: of what somebody else removes */
			close(fd);
		if (below(8) == 0)
			mkdir(below(2) ? "/sys/kernel/tracing/instances/fuzz" : path, 0700);
		if (below(8) == 0)
			rmdir(below(2) ? "/sys/kernel/tracing/instances/fuzz" : path);
		if (below(16) == 0)
			trace_other();
	}
}

/* ---- leaks ---- */

static unsigned files, leaks;

static bool
is_kernel(uint64_t address)
{
	return address >= KERNEL_FROM && address < KERNEL_TO;
}

/* Where programs faulted, in the message buffer: they may have chosen any address. */
static bool
is_fault(const char *data, size_t at)
{
	static const char *const before[] = {"page fault at 0x", ", address 0x"};

	for (unsigned i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (at >= strlen(before[i]) &&
		    memcmp(data + at - strlen(before[i]), before[i], strlen(before[i])) == 0)
			return true;
	return false;
}

/* The first address of the kernel, as a number in text or as eight bytes. step: how far apart the
 * places are where it may begin. 0: none. */
static uint64_t
find_address(const char *data, size_t n, size_t step)
{
	uint64_t word;

	for (size_t i = 0; i + 8 <= n; i += step) {
		memcpy(&word, data + i, sizeof(word));
		if (is_kernel(word))
			return word;
		if (strncmp(data + i, "ffff", 4) != 0 ||
		    (i > 0 && isxdigit((unsigned char)data[i - 1])))
			continue;
		word = strtoull(data + i, NULL, 16);
		if (is_kernel(word) && !is_fault(data, i))
			return word;
	}
	return 0;
}

static void
look_into(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	uint64_t found;
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, bytes, sizeof(bytes) - 1);
	close(fd);
	if (n < 0)
		return;
	bytes[n] = '\0'; /* strtoull() ends there */
	files++;
	/* That file is words: bytes of two of them are no address. */
	found = find_address(bytes, (size_t)n, strstr(path, "/auxv") != NULL ? 8 : 1);
	if (found == 0)
		return;
	leaks++;
	printf("leak: %s: %#llx\n", path, (unsigned long long)found);
}

static void
look_below(const char *dir, unsigned depth)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	while (d != NULL && (e = readdir(d)) != NULL) {
		char path[PATH];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (is_spared(path) && strncmp(path, "/proc/sys", 9) != 0)
			continue;
		if (lstat(path, &st) != 0 || strstr(path, "random") != NULL)
			continue;
		if (S_ISDIR(st.st_mode) && depth > 0)
			look_below(path, depth - 1);
		else if (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode))
			look_into(path);
	}
	if (d != NULL)
		closedir(d);
}

int
real_leaks(void)
{
	look_below("/proc", DEPTH);
	look_below("/sys", DEPTH);
	look_below("/dev", DEPTH);
	printf("leaks: %u in %u files\n", leaks, files);
	return 0;
}
