/*
 * cpus.c - /sys/devices/system/cpu: which CPUs there are, for programs that ask there, as the C
 * library and lscpu do. None comes or goes. All are cores of one socket.
 */
#include "kernel/fs/vfs.h"
#include "kernel/ftrace/tracefs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/sync/pcpu.h"

uint64_t
cpus_online(void)
{
	return ncpus < 64 ? (1ul << ncpus) - 1 : ~0ul;
}

/* arg: the CPUs; 0: all. */
static void
cpu_list_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_bits(out, arg != 0 ? arg : cpus_online(), ncpus);
	sbuf_putc(out, '\n');
}

void
cpus_print_mask(struct sbuf *out, uint64_t mask)
{
	if (ncpus > 32)
		sbuf_printf(out, "%08lx,%08lx\n", mask >> 32, mask & UINT32_MAX);
	else
		sbuf_printf(out, "%lx\n", mask);
}

static void
cpu_mask_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	cpus_print_mask(out, arg != 0 ? arg : cpus_online());
}

static void
cpu_number_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%lu\n", arg);
}

static void
no_cpus_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_putc(out, '\n');
}

static void
fill_topology(struct vnode *dir)
{
	static const struct tracefs_file core = TRACEFS_TELLS("core_id", cpu_number_show),
					 socket =
					     TRACEFS_TELLS("physical_package_id", cpu_number_show);
	static const struct tracefs_file lists[] = {
	    TRACEFS_TELLS("thread_siblings_list", cpu_list_show),
	    TRACEFS_TELLS("thread_siblings", cpu_mask_show),
	    TRACEFS_TELLS("core_cpus_list", cpu_list_show),
	    TRACEFS_TELLS("core_cpus", cpu_mask_show),
	};
	static const struct tracefs_file whole[] = {
	    TRACEFS_TELLS("core_siblings_list", cpu_list_show),
	    TRACEFS_TELLS("core_siblings", cpu_mask_show),
	    TRACEFS_TELLS("package_cpus_list", cpu_list_show),
	    TRACEFS_TELLS("package_cpus", cpu_mask_show),
	};

	tracefs_add(dir, &core, core.name, tracefs_arg(dir));
	tracefs_add(dir, &socket, socket.name, 0);
	tracefs_add_all(dir, lists, sizeof(lists) / sizeof(lists[0]), 1ul << tracefs_arg(dir));
	tracefs_add_all(dir, whole, sizeof(whole) / sizeof(whole[0]), 0);
}

static void
fill_cpu(struct vnode *dir)
{
	static const struct tracefs_file topology = {.mode = 0755, .fill = fill_topology};

	tracefs_add(dir, &topology, "topology", tracefs_arg(dir));
}

static void
fill_cpus(struct vnode *dir)
{
	static const struct tracefs_file cpu = {.mode = 0755, .fill = fill_cpu};
	static const struct tracefs_file files[] = {
	    TRACEFS_TELLS("online", cpu_list_show),
	    TRACEFS_TELLS("possible", cpu_list_show),
	    TRACEFS_TELLS("present", cpu_list_show),
	    TRACEFS_TELLS("offline", no_cpus_show),
	};
	static const struct tracefs_file last = TRACEFS_TELLS("kernel_max", cpu_number_show);
	char name[16];

	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), 0);
	tracefs_add(dir, &last, last.name, MAX_CPUS - 1);
	for (unsigned n = 0; n < ncpus; n++) {
		snprintf(name, sizeof(name), "cpu%u", n);
		tracefs_add(dir, &cpu, name, n);
	}
}

void
cpus_make_files(struct vnode *sys)
{
	struct vnode *devices = tracefs_make_dir(sys, "devices", 0755);
	struct vnode *system = devices != NULL ? tracefs_make_dir(devices, "system", 0755) : NULL;
	struct vnode *cpus = system != NULL ? tracefs_make_dir(system, "cpu", 0755) : NULL;

	if (cpus != NULL) {
		cpus->fill = fill_cpus;
		cpus->missing = true;
	}
	vnode_unref(cpus);
	vnode_unref(system);
	vnode_unref(devices);
}
