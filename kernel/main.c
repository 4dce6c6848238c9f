/*
 * main.c - the boot, in order. Each step needs only what the steps before it made.
 */
#include "arch/machine.h"
#include "arch/mmu.h"
#include "kernel/debug/kdb.h"
#include "kernel/dev/console.h"
#include "kernel/entry.h"
#include "kernel/fs/cpio.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/shutdown.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/init.h"
#include "kernel/sched/cpu_start.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/tunable.h"
#include "kernel/trace/flush.h"
#include "kernel/trace/persist.h"
#include "ktr/control.h"
#include "ktr/ktr.h"

TUNABLE(init_script, "init.script",
	"a shell script that process 1 runs; then the machine powers off");
TUNABLE(init_strict, "init.strict",
	"power off with status 2 instead, if a loader parameter was refused; 0: run the script");

#define STATUS_USAGE 2

/* Functions to run when there are files, but still one CPU: tracing from here on. */
HOOK_LIST(unpacked);
/* Functions to run before process 1: the tests of the test kernel, which do not return. */
HOOK_LIST(booted);
HOOK_LIST(mounting);

/* Reads loader.conf from its own module, or else from the archive. */
static void
read_tunables(void)
{
	const char *conf = NULL;
	size_t size = 0;

	for (unsigned i = 0; i < boot_info.module_count; i++) {
		const struct boot_module *m = &boot_info.modules[i];
		if (strcmp(m->name, "loader.conf") == 0) {
			conf = m->data;
			size = m->size;
		} else if (conf == NULL) {
			cpio_find(m->data, m->size, "boot/loader.conf", &conf, &size);
		}
	}
	tunable_init(conf, size, boot_info.cmdline);
}

/* Frees only what is memory: the loader may have said anything. */
static void
free_module(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < boot_info.range_count; i++) {
		const struct boot_range *r = &boot_info.ranges[i];
		uint64_t from = page_round_up(r->start), to = page_round_down(r->end);

		from = from > start ? from : start;
		to = to < end ? to : end;
		if (r->kind == BOOT_RAM && from < to)
			page_add(from, to);
	}
}

/* Unpacks the archives into the root, which is in memory, or on a disk. */
static void
unpack_modules(void)
{
	for (unsigned i = 0; i < boot_info.module_count; i++) {
		const struct boot_module *m = &boot_info.modules[i];
		uint64_t start = page_round_up(virt_to_phys(m->data));
		uint64_t end = page_round_down(virt_to_phys(m->data) + m->size);

		if (strcmp(m->name, "loader.conf") != 0)
			vfs_unpack(m);
		free_module(start, end); /* what is kept of it is copied */
	}
	boot_info.module_count = 0;
}

/* Would the script be unpacked? Then a script that stands on a disk is from a boot before. */
static bool
modules_have(const char *script)
{
	const char *data;
	size_t size;

	for (unsigned i = 0; script != NULL && script[0] == '/' && i < boot_info.module_count; i++)
		if (cpio_find(boot_info.modules[i].data, boot_info.modules[i].size, script + 1,
			      &data, &size))
			return true;
	return false;
}

/* The rest of the boot is a thread, which can sleep. The first context becomes the idle thread. */
static void
boot_thread(void *arg)
{
	const char *strict = tunable_get("init.strict"), *script = tunable_get("init.script");

	thread_init();
	trace_rings_init(cpu_count());
	vfs_init();
	console_init();
	if (!vfs_has_root_device())
		unpack_modules();
	HOOK_RUN(unpacked);
	cpu_start_all();
	ktr_trace_init();
	if (ksyms_dev_init() < 0)
		pr_warn("ksyms: /dev/ksyms could not be made\n");
	/* These name files of the final root. One on a disk is mounted later. */
	if (!vfs_has_root_device())
		tunable_apply_late();
	CTR0(KTR_INIT, "boot: kernel is up");
	printk("up after %lu ms\n", clock_ns() / 1000000);
	HOOK_RUN(booted);
	if (vfs_has_root_device()) {
		vfs_mount_root_device();
		if (!vnode_read_only(vfs_root)) {
			unpack_modules();
		} else if (modules_have(script)) {
			pr_warn("boot: the root is read-only: %s is not unpacked, and not run\n",
				script);
			shutdown_poweroff(STATUS_USAGE);
		}
		tunable_apply_late();
	}
	HOOK_RUN(mounting);
	if (strict != NULL && strcmp(strict, "0") != 0 && tunable_refused() > 0) {
		pr_warn("boot: a loader parameter was refused: init.script is not run\n");
		shutdown_poweroff(STATUS_USAGE);
	}
	proc_start_init(script);
}

void
kernel_main(void)
{
	clock_note_boot();
	kdb_init();
	pcpus[0] = this_pcpu();
	console_early_init();
	read_tunables(); /* first, since it may set kern.quiet */
	trace_persist_init();
	printk("Kestrel, %s, by %s\n", arch_name, boot_info.loader);
	CTR0(KTR_INIT, "boot: tunables read");
	if (boot_info.ranges_cut)
		pr_warn("boot: more than %d memory ranges; the rest is not used\n",
			BOOT_MAX_RANGES);
	page_init(&boot_info);
	heap_init();
	uidinfo_init();
	kmap_init(&boot_info);
	printk("memory: %lu MiB\n", page_count_total() * PAGE_SIZE >> 20);
	sleepq_init();
	callout_init_cpu(0);
	arch_machine_init();
	arch_machine_print();
	clock_init();
	trace_info_init();
	sched_init();
	ktr_cpu_init(0);
	timer_init_cpu();
	if (thread_create("boot", PRIO_KERN, boot_thread, NULL) == NULL)
		panic("no memory for the boot thread");
	sched_idle();
}
