/* system.c - the files of /proc that are not about a process (procfs.h). */
#include "arch/machine.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/time.h"
#include "kernel/block/bio.h"
#include "kernel/dev/irq.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/ipc/ipc.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/inet/report.h"
#include "kernel/net/socket.h"
#include "kernel/proc/proc.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/uts.h"

#define NS_PER_S    1000000000ul
#define NS_PER_TICK (NS_PER_S / CLK_TCK)

static int
self_link(struct procfs_node *n)
{
	const struct proc *p = curproc();

	if (p == NULL)
		return -ENOENT;
	n->text = procfs_text(n, "%u", p->pid);
	return 0;
}

static int
thread_self_link(struct procfs_node *n)
{
	const struct proc *p = curproc();

	if (p == NULL)
		return -ENOENT;
	n->text = procfs_text(n, "%u/task/%u", p->pid, curthread()->tid);
	return 0;
}

static int
mounts_link(struct procfs_node *n)
{
	n->text = procfs_text(n, "self/mounts");
	return 0;
}

/* ---- CPUs ---- */

static bool
is_online(unsigned cpu)
{
	return pcpus[cpu] != NULL && pcpus[cpu]->online;
}

/* user nice system idle, and six that are not told apart, in 1/100 s; given in nanoseconds */
static void
system_print_cpu(struct sbuf *out, uint64_t user, uint64_t kernel, uint64_t idle)
{
	sbuf_printf(out, " %lu 0 %lu %lu 0 0 0 0 0 0\n", user / NS_PER_TICK, kernel / NS_PER_TICK,
		    idle / NS_PER_TICK);
}

static int
system_stat_show(const struct procfs_node *n, struct sbuf *out)
{
	uint64_t user = 0, kernel = 0, idle = 0, interrupts = 0, switches = 0;

	for (unsigned i = 0; i < ncpus; i++) {
		if (!is_online(i))
			continue;
		user += pcpus[i]->time.user_ns;
		kernel += pcpus[i]->time.system_ns;
		idle += pcpus[i]->time.idle_ns;
		interrupts += pcpus[i]->ticks;
		switches += pcpus[i]->switches;
		for (unsigned line = 0; line < IRQ_LINES; line++)
			interrupts += irq_line_count(line, i);
	}
	sbuf_puts(out, "cpu ");
	system_print_cpu(out, user, kernel, idle);
	for (unsigned i = 0; i < ncpus; i++) {
		if (!is_online(i))
			continue;
		sbuf_printf(out, "cpu%u", i);
		system_print_cpu(out, pcpus[i]->time.user_ns, pcpus[i]->time.system_ns,
				 pcpus[i]->time.idle_ns);
	}
	sbuf_printf(out,
		    "intr %lu\nctxt %lu\nbtime %lu\nprocesses %u\nprocs_running %u\n"
		    "procs_blocked 0\n",
		    interrupts, switches, clock_real_ns(0) / NS_PER_S, thread_count_made(),
		    sched_runnable());
	return 0;
}

static int
uptime_show(const struct procfs_node *n, struct sbuf *out)
{
	uint64_t up = clock_ns() / NS_PER_TICK, idle = 0;

	for (unsigned i = 0; i < ncpus; i++)
		idle += is_online(i) ? sched_idle_ns(i) / NS_PER_TICK : 0;
	sbuf_printf(out, "%lu.%02lu %lu.%02lu\n", up / 100, up % 100, idle / 100, idle % 100);
	return 0;
}

static int
loadavg_show(const struct procfs_node *n, struct sbuf *out)
{
	uint64_t loads[3];

	sched_load_average(loads);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t hundredths = (loads[i] * 100 + 32768) >> 16;

		sbuf_printf(out, "%lu.%02lu ", hundredths / 100, hundredths % 100);
	}
	sbuf_printf(out, "%u/%u %u\n", sched_runnable(), thread_count() - ncpus,
		    thread_count_made());
	return 0;
}

static int
cpuinfo_show(const struct procfs_node *n, struct sbuf *out)
{
	for (unsigned i = 0; i < ncpus; i++) {
		if (!is_online(i))
			continue;
		sbuf_printf(out, "processor\t: %u\n", i);
		arch_cpu_describe(out);
		sbuf_putc(out, '\n');
	}
	return 0;
}

static void
print_counts(struct sbuf *out, const char *name, unsigned line, const char *what)
{
	sbuf_printf(out, "%4s:", name);
	for (unsigned i = 0; i < ncpus; i++)
		if (is_online(i))
			sbuf_printf(out, " %10lu",
				    line < IRQ_LINES ? irq_line_count(line, i) : pcpus[i]->ticks);
	sbuf_printf(out, "  %s\n", what);
}

static int
interrupts_show(const struct procfs_node *n, struct sbuf *out)
{
	char number[8];

	sbuf_puts(out, "     ");
	for (unsigned i = 0; i < ncpus; i++)
		if (is_online(i))
			sbuf_printf(out, "      CPU%-2u", i);
	sbuf_putc(out, '\n');
	for (unsigned line = 0; line < IRQ_LINES; line++) {
		if (!irq_line_used(line))
			continue;
		snprintf(number, sizeof(number), "%u", line);
		print_counts(out, number, line, irq_line_name(line));
	}
	print_counts(out, "LOC", IRQ_LINES, "clock ticks");
	return 0;
}

/* ---- memory ---- */

static int
meminfo_show(const struct procfs_node *n, struct sbuf *out)
{
	uint64_t kb = PAGE_SIZE / 1024, files = uidinfo_held_by_all(UIDINFO_DATA) * kb;
	/* Pages of disks that are given up when memory is short; and pages to be written before. */
	uint64_t clean = pagecache_count_kept() * kb;
	uint64_t dirty = (pagecache_count_dirty(false) + pagecache_count_dirty(true)) * kb;

	sbuf_printf(out,
		    "MemTotal:       %8lu kB\nMemFree:        %8lu kB\nMemAvailable:   %8lu kB\n",
		    page_count_total() * kb, page_count_free() * kb,
		    page_count_free() * kb + clean);
	sbuf_printf(out,
		    "Buffers:        %8u kB\nCached:         %8lu kB\nShmem:          %8lu kB\n", 0,
		    files + clean + dirty, files);
	sbuf_printf(out, "Dirty:          %8lu kB\n", dirty);
	sbuf_printf(out, "SwapTotal:      %8u kB\nSwapFree:       %8u kB\n", 0, 0);
	sbuf_printf(out, "AnonPages:      %8lu kB\nSlab:           %8lu kB\n",
		    page_count_of(PAGE_ANON) * kb,
		    (page_count_of(PAGE_SLAB) + page_count_of(PAGE_LARGE)) * kb);
	sbuf_printf(out,
		    "KernelStack:    %8lu kB\nPageTables:     %8lu kB\nVmallocUsed:    %8lu kB\n",
		    thread_stack_bytes() / 1024, page_count_of(PAGE_TABLE) * kb,
		    page_count_of(PAGE_MAPPED) * kb);
	return 0;
}

/* ---- the kernel ---- */

/* As Linux's: a format for release and version, with a text who built the kernel, and how. */
extern const char linux_proc_banner[];
const char linux_proc_banner[] = "%s version %s (kestrel@qemu) (gcc " __VERSION__ ") %s\n";

static int
version_show(const struct procfs_node *n, struct sbuf *out)
{
	struct utsname u = uts_get();

	sbuf_printf(out, linux_proc_banner, u.sysname, u.release, u.version);
	return 0;
}

static int
system_cmdline_show(const struct procfs_node *n, struct sbuf *out)
{
	sbuf_printf(out, "%s\n", boot_info.cmdline);
	return 0;
}

/* The second name of a function is shown as an absolute symbol, which trace-cmd passes over. So
 * trace-cmd shows each function by one name, as the kernel does. */
static char
kallsyms_type(uintptr_t at, const char *name)
{
	extern const char __text_start[], __text_end[];
	uintptr_t offset;

	if (at < (uintptr_t)__text_start || at >= (uintptr_t)__text_end)
		return 'D';
	return ksym_lookup(at, &offset) == name ? 'T' : 'a';
}

static int
kallsyms_show(const struct procfs_node *n, struct sbuf *out)
{
	uintptr_t at;
	const char *name;

	for (uint32_t i = 0; (name = ksym_at(i, &at)) != NULL; i++)
		sbuf_printf(out, "%016lx %c %s\n", n->syslog ? at : 0, kallsyms_type(at, name),
			    name);
	return 0;
}

static int
filesystems_show(const struct procfs_node *n, struct sbuf *out)
{
	sbuf_puts(out, "nodev\ttmpfs\nnodev\tdevtmpfs\nnodev\tproc\nnodev\tsysfs\nnodev\tdevpts\n"
		       "nodev\tdebugfs\nnodev\ttracefs\nnodev\t9p\n\text2\n");
	return 0;
}

int
procfs_mounts(const struct procfs_node *n, struct sbuf *out)
{
	return vfs_print_mounts(out, false);
}

int
procfs_mountinfo(const struct procfs_node *n, struct sbuf *out)
{
	return vfs_print_mounts(out, true);
}

static void
print_partition(struct sbuf *out, const struct block_device *b)
{
	sbuf_printf(out, "%4u  %7u %10lu %s\n", (unsigned)(b->number >> 8),
		    (unsigned)(b->number & 255), b->sectors * SECTOR_SIZE / 1024, b->name);
}

static int
partitions_show(const struct procfs_node *n, struct sbuf *out)
{
	sbuf_puts(out, "major minor  #blocks  name\n\n");
	for (const struct gendisk *d = NULL; (d = block_next_disk(d)) != NULL;) {
		print_partition(out, &d->whole);
		for (unsigned i = 0; i < d->parts; i++)
			print_partition(out, &d->part[i]);
	}
	return 0;
}

static void
print_disk_stats(struct sbuf *out, const struct block_device *b)
{
	sbuf_printf(out, "%4u %7u %s ", (unsigned)(b->number >> 8), (unsigned)(b->number & 255),
		    b->name);
	disk_stats_print(b, out);
}

static int
diskstats_show(const struct procfs_node *n, struct sbuf *out)
{
	for (const struct gendisk *d = NULL; (d = block_next_disk(d)) != NULL;) {
		print_disk_stats(out, &d->whole);
		for (unsigned i = 0; i < d->parts; i++)
			print_disk_stats(out, &d->part[i]);
	}
	return 0;
}

/* ---- memory and disks, as counts ---- */

static int
vmstat_show(const struct procfs_node *n, struct sbuf *out)
{
	uint64_t dirty = pagecache_count_dirty(false) + pagecache_count_dirty(true);
	uint64_t files = uidinfo_held_by_all(UIDINFO_DATA), read = 0, written = 0;
	uint64_t faults = 0, disk_faults = 0;

	for (const struct gendisk *d = NULL; (d = block_next_disk(d)) != NULL;) {
		struct disk_stats s = disk_stats_read(&d->whole);

		read += s.of[BIO_READ].sectors;
		written += s.of[BIO_WRITE].sectors;
	}
	for (unsigned i = 0; i < ncpus; i++)
		if (is_online(i)) {
			faults += pcpus[i]->faults;
			disk_faults += pcpus[i]->disk_faults;
		}
	sbuf_printf(out, "nr_free_pages %lu\nnr_anon_pages %lu\nnr_file_pages %lu\nnr_shmem %lu\n",
		    page_count_free(), page_count_of(PAGE_ANON),
		    files + pagecache_count_kept() + dirty, files);
	sbuf_printf(out, "nr_dirty %lu\nnr_slab_unreclaimable %lu\n", dirty,
		    page_count_of(PAGE_SLAB) + page_count_of(PAGE_LARGE));
	sbuf_printf(out, "nr_page_table_pages %lu\nnr_kernel_stack %lu\n",
		    page_count_of(PAGE_TABLE), thread_stack_bytes() / 1024);
	sbuf_printf(out, "pgpgin %lu\npgpgout %lu\npswpin 0\npswpout 0\n",
		    read * SECTOR_SIZE / 1024, written * SECTOR_SIZE / 1024);
	sbuf_printf(out, "pgfault %lu\npgmajfault %lu\n", faults + disk_faults, disk_faults);
	return 0;
}

/* ---- the network ---- */

static int
net_unix_show(const struct procfs_node *n, struct sbuf *out)
{
	return unix_print(out);
}

static int net_show(const struct procfs_node *n, struct sbuf *out);

static const struct procfs_file net_files[] = {
    [INET_TABLE_TCP] = {.name = "tcp", .mode = S_IFREG | 0444, .show = net_show},
    [INET_TABLE_UDP] = {.name = "udp", .mode = S_IFREG | 0444, .show = net_show},
    [INET_TABLE_RAW] = {.name = "raw", .mode = S_IFREG | 0444, .show = net_show},
    [INET_TABLE_DEV] = {.name = "dev", .mode = S_IFREG | 0444, .show = net_show},
    [INET_TABLE_ROUTE] = {.name = "route", .mode = S_IFREG | 0444, .show = net_show},
    {.name = "unix", .mode = S_IFREG | 0444, .show = net_unix_show},
};

static int
net_show(const struct procfs_node *n, struct sbuf *out)
{
	if (inet_print != NULL)
		inet_print((enum inet_table)(n->file - net_files), out);
	return 0;
}

/* ---- System V IPC ---- */

static int
sysvipc_msg_show(const struct procfs_node *n, struct sbuf *out)
{
	ipc_print_msg(out);
	return 0;
}

static int
sysvipc_sem_show(const struct procfs_node *n, struct sbuf *out)
{
	ipc_print_sem(out);
	return 0;
}

static int
sysvipc_shm_show(const struct procfs_node *n, struct sbuf *out)
{
	ipc_print_shm(out);
	return 0;
}

static const struct procfs_file sysvipc_files[] = {
    {.name = "msg", .mode = S_IFREG | 0444, .show = sysvipc_msg_show},
    {.name = "sem", .mode = S_IFREG | 0444, .show = sysvipc_sem_show},
    {.name = "shm", .mode = S_IFREG | 0444, .show = sysvipc_shm_show},
};

const struct procfs_file procfs_system_files[PROCFS_SYSTEM_FILES] = {
    {.name = "self", .mode = S_IFLNK | 0777, .link = self_link},
    {.name = "thread-self", .mode = S_IFLNK | 0777, .link = thread_self_link},
    {.name = "mounts", .mode = S_IFLNK | 0777, .link = mounts_link},
    {.name = "stat", .mode = S_IFREG | 0444, .show = system_stat_show},
    {.name = "uptime", .mode = S_IFREG | 0444, .show = uptime_show},
    {.name = "loadavg", .mode = S_IFREG | 0444, .show = loadavg_show},
    {.name = "meminfo", .mode = S_IFREG | 0444, .show = meminfo_show},
    {.name = "cpuinfo", .mode = S_IFREG | 0444, .show = cpuinfo_show},
    {.name = "interrupts", .mode = S_IFREG | 0444, .show = interrupts_show},
    {.name = "version", .mode = S_IFREG | 0444, .show = version_show},
    {.name = "cmdline", .mode = S_IFREG | 0444, .show = system_cmdline_show},
    {.name = "kallsyms", .mode = S_IFREG | 0444, .show = kallsyms_show},
    {.name = "filesystems", .mode = S_IFREG | 0444, .show = filesystems_show},
    {.name = "partitions", .mode = S_IFREG | 0444, .show = partitions_show},
    {.name = "diskstats", .mode = S_IFREG | 0444, .show = diskstats_show},
    {.name = "vmstat", .mode = S_IFREG | 0444, .show = vmstat_show},
    {.name = "net", .mode = S_IFDIR | 0555, PROCFS_DIR(net_files)},
    {.name = "sysvipc", .mode = S_IFDIR | 0555, PROCFS_DIR(sysvipc_files)},
    {.name = "sys", .mode = S_IFDIR | 0555, .find = procfs_sys_find, .list = procfs_sys_list},
};
