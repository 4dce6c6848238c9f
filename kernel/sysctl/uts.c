/*
 * uts.c - what uname() tells, and sysctls with Linux's names, for programs that read /proc/sys.
 * There are only those that are true here. Locking: uts_lock, a mutex, guards the names.
 */
#include "kernel/sysctl/uts.h"

#include "arch/machine.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/random.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/mutex.h"

static struct mutex uts_lock = MUTEX_INIT("uts");
static struct utsname uts = {.sysname = "Linux",
			     .nodename = "kestrel",
			     .release = "6.1.0-kestrel",
			     .version = "Kestrel, with Linux's system calls",
			     .domainname = "(none)"};

struct utsname
uts_get(void)
{
	struct utsname copy;

	mutex_lock(&uts_lock);
	strlcpy(uts.machine, arch_name, sizeof(uts.machine));
	copy = uts;
	mutex_unlock(&uts_lock);
	return copy;
}

static int
set_name(char *to, const char *name)
{
	if (strlen(name) >= UTSNAME_SIZE)
		return -EINVAL;
	mutex_lock(&uts_lock);
	memset(to, 0, UTSNAME_SIZE);
	strlcpy(to, name, UTSNAME_SIZE);
	mutex_unlock(&uts_lock);
	return 0;
}

int
uts_set_hostname(const char *name)
{
	return set_name(uts.nodename, name);
}

int
uts_set_domainname(const char *name)
{
	return set_name(uts.domainname, name);
}

static void
uts_print_name(const struct sysctl *s, struct sbuf *out)
{
	struct utsname u = uts_get();

	sbuf_puts(out, strcmp(s->name, "kernel.ostype") == 0       ? u.sysname
		       : strcmp(s->name, "kernel.osrelease") == 0  ? u.release
		       : strcmp(s->name, "kernel.hostname") == 0   ? u.nodename
		       : strcmp(s->name, "kernel.domainname") == 0 ? u.domainname
								   : u.version);
}

static int
uts_take_name(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	int error = strcmp(s->name, "kernel.hostname") == 0 ? uts_set_hostname(val)
							    : uts_set_domainname(val);

	if (error != 0)
		snprintf(err, errlen, "more than %d characters", UTSNAME_SIZE - 1);
	return error;
}
SYSCTL_TEXT(kernel_ostype, "kernel.ostype", 0, uts_print_name, NULL, "uname -s");
SYSCTL_TEXT(kernel_osrelease, "kernel.osrelease", 0, uts_print_name, NULL, "uname -r");
SYSCTL_TEXT(kernel_version, "kernel.version", 0, uts_print_name, NULL, "uname -v");
SYSCTL_TEXT(kernel_hostname, "kernel.hostname", SYSCTL_WR, uts_print_name, uts_take_name,
	    "the machine's name");
SYSCTL_TEXT(kernel_domainname, "kernel.domainname", SYSCTL_WR, uts_print_name, uts_take_name,
	    "the name of its domain");

/* A random UUID (RFC 4122, version 4). */
static void
print_uuid(uint8_t b[16], struct sbuf *out)
{
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	for (unsigned i = 0; i < 16; i++)
		sbuf_printf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

static void
get_boot_id(const struct sysctl *s, struct sbuf *out)
{
	static uint8_t id[16]; /* sysctl_lock */
	static const uint8_t none[16];

	if (memcmp(id, none, sizeof(id)) == 0)
		random_bytes(id, sizeof(id));
	print_uuid(id, out);
}
SYSCTL_TEXT(kernel_random_boot_id, "kernel.random.boot_id", 0, get_boot_id, NULL,
	    "a number of this boot");

static void
get_uuid(const struct sysctl *s, struct sbuf *out)
{
	uint8_t id[16];

	random_bytes(id, sizeof(id));
	print_uuid(id, out);
}
SYSCTL_TEXT(kernel_random_uuid, "kernel.random.uuid", 0, get_uuid, NULL,
	    "a new number, each time it is read");

static uint64_t
pid_max(void)
{
	return 0x40000000;
}
static int tainted;
SYSCTL_INT(kernel_tainted, "kernel.tainted", 0, &tainted, 0, 0, "0: nothing is wrong with it");

SYSCTL_U64_CALL(kernel_pid_max, "kernel.pid_max", 0, pid_max, NULL,
		"numbers of processes and threads are below");

static uint64_t
uts_overcommit(void)
{
	return 1;
}
SYSCTL_U64_CALL(vm_overcommit_memory, "vm.overcommit_memory", 0, uts_overcommit, NULL,
		"1: programs may map more memory than there is");
