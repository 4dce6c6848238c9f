/*
 * uprobe_test.c - probes of programs, seen from their address spaces: who has a breakpoint in which
 * page, and that all pages come back.
 */
#include <stddef.h>
#include <stdint.h>

#include "arch/insn.h"
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/ftrace/tracefs.h"
#include "kernel/lib/string.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/probe/kprobe.h"
#include "kernel/vm/vm.h"
#include "ktr/control.h"
#include "ktr/port.h"
#include "tests/kernel/ktest.h"

#define FILE   "/tmp/program"
#define TEXT   0x200000ul
#define OFFSET 0x1010ul /* of the instruction, in the second page */

#if defined(__x86_64__)
static const uint8_t insn[] = {0x48, 0x89, 0xe5}; /* mov %rsp, %rbp */
#else
static const uint8_t insn[] = {0xfd, 0x03, 0x00, 0x91}; /* mov x29, sp */
#endif

static char err[256];

static struct vnode *
make_program(void)
{
	static uint8_t bytes[3 * PAGE_SIZE];
	struct file *f;
	struct vnode *vn;
	int error;

	memcpy(bytes + OFFSET, insn, sizeof(insn));
	KT_EQ(file_open(FILE, O_WRONLY | O_CREAT | O_TRUNC, 0755, &f), 0);
	KT_EQ(file_write(f, bytes, sizeof(bytes)), sizeof(bytes));
	file_unref(f);
	vn = vnode_lookup(NULL, FILE, &error);
	KT_ASSERT(vn != NULL);
	return vn;
}

static struct vmspace *
make_space(struct vnode *vn, unsigned prot, bool shared)
{
	const struct area_source from = {.pager = &vnode_pager, .object = vn, .shared = shared};
	struct vmspace *vm = vm_create(&uidinfo_root);

	KT_ASSERT(vm != NULL);
	KT_EQ(vm_map_any(vm, TEXT, 3 * PAGE_SIZE, prot, VM_IF_FREE, &from, UINT64_MAX),
	      (int64_t)TEXT);
	return vm;
}

/* Has the space the breakpoint? The page is fetched. */
static bool
has_break(struct vmspace *vm, uint64_t va, unsigned access)
{
	unsigned level;
	uint64_t pte;
	const uint8_t *at;

	KT_EQ(vm_fault(vm, va, access), VM_FAULT_SERVED);
	pte = pagetable_lookup(vm_root(vm), va, &level);
	at = (uint8_t *)phys_to_virt(arch_pte_pa(pte)) + va % PAGE_SIZE;
	if (memcmp(at, arch_break_insn, ARCH_BREAK_SIZE) == 0)
		return true;
	KT_EQ(memcmp(at, insn, sizeof(insn)), 0);
	return false;
}

static bool
file_has_break(struct vnode *vn)
{
	uint8_t there[sizeof(insn)];

	KT_EQ(vnode_read(vn, there, sizeof(there), OFFSET), sizeof(there));
	return memcmp(there, insn, sizeof(insn)) != 0;
}

static void
probe(bool on)
{
	KT_EQ(ktr_select(KTR_OWNER_COMMAND, "uprobe:::kt_user", on, NULL, err, sizeof(err)), 1);
}

KTEST(uprobe_changes_only_private_copies_of_code)
{
	const unsigned rx = MMU_READ | MMU_EXEC;
	struct vnode *vn = make_program();
	struct vmspace *early = make_space(vn, rx, false), *late, *child, *data, *shared;
	uint64_t before;

	KT_ASSERT(!has_break(early, TEXT + OFFSET, MMU_EXEC));
	KT_EQ(kprobe_add("p:kt_user " FILE ":0x1010 %sp", KPROBE_USER, err, sizeof(err)), 0);
	KT_ASSERT(kprobe_add("p:kt_user " FILE ":0x1010", KPROBE_USER, err, sizeof(err)) != 0);
	KT_ASSERT(!has_break(early, TEXT + OFFSET, MMU_EXEC)); /* it is off */
	before = page_count_free();
	for (unsigned turn = 0; turn < 10; turn++) {
		probe(true);
		late = make_space(vn, rx, false);
		data = make_space(vn, MMU_READ | MMU_WRITE, false);
		shared = make_space(vn, rx, true);
		KT_ASSERT(has_break(early, TEXT + OFFSET, MMU_EXEC));
		KT_ASSERT(has_break(late, TEXT + OFFSET, MMU_READ));
		KT_ASSERT(!has_break(data, TEXT + OFFSET, MMU_READ));
		KT_ASSERT(!has_break(shared, TEXT + OFFSET, MMU_EXEC));
		KT_ASSERT(!file_has_break(vn));
		child = vm_fork(early, &uidinfo_root);
		KT_ASSERT(child != NULL && has_break(child, TEXT + OFFSET, MMU_EXEC));
		/* What it may write is its own, and stays so. */
		KT_EQ(vm_protect(late, TEXT, 3 * PAGE_SIZE, MMU_READ | MMU_WRITE, 0), 0);
		KT_ASSERT(!has_break(late, TEXT + OFFSET, MMU_WRITE));
		KT_EQ(vm_protect(late, TEXT, 3 * PAGE_SIZE, rx, 0), 0);
		KT_ASSERT(!has_break(late, TEXT + OFFSET, MMU_EXEC));
		/* Data that become code. */
		KT_ASSERT(!has_break(shared, TEXT + OFFSET, MMU_READ));
		KT_EQ(vm_protect(child, TEXT, 3 * PAGE_SIZE, MMU_READ, 0), 0);
		KT_ASSERT(!has_break(child, TEXT + OFFSET, MMU_READ));
		KT_EQ(vm_protect(child, TEXT, 3 * PAGE_SIZE, rx, 0), 0);
		KT_ASSERT(has_break(child, TEXT + OFFSET, MMU_EXEC));
		probe(false);
		KT_ASSERT(!has_break(early, TEXT + OFFSET, MMU_EXEC));
		KT_ASSERT(!has_break(child, TEXT + OFFSET, MMU_EXEC));
		vm_destroy(late);
		vm_destroy(data);
		vm_destroy(shared);
		vm_destroy(child);
	}
	KT_ASSERT(page_count_free() + 4 >= before); /* what is lost each time would be 10 */
	KT_EQ(kprobe_del("kt_user", KPROBE_USER, err, sizeof(err)), 0);
	vm_destroy(early);
	vnode_unref(vn);
	KT_EQ(vnode_remove(NULL, FILE, false), 0);
}

KTEST(uprobe_of_a_file_that_has_changed_changes_nothing)
{
	struct vnode *vn = make_program();
	struct vmspace *vm;
	struct file *f;
	static const uint8_t zeroes[2 * PAGE_SIZE];

	KT_EQ(kprobe_add("p:kt_user " FILE ":0x1010", KPROBE_USER, err, sizeof(err)), 0);
	probe(true);
	KT_EQ(file_open(FILE, O_WRONLY | O_TRUNC, 0, &f), 0);
	KT_EQ(file_write(f, zeroes, sizeof(zeroes)), sizeof(zeroes));
	file_unref(f);
	vm = make_space(vn, MMU_READ | MMU_EXEC, false);
	KT_EQ(vm_fault(vm, TEXT + OFFSET, MMU_EXEC), VM_FAULT_SERVED);
	unsigned level;
	uint64_t pte = pagetable_lookup(vm_root(vm), TEXT + OFFSET, &level);
	KT_EQ(memcmp((uint8_t *)phys_to_virt(arch_pte_pa(pte)) + OFFSET % PAGE_SIZE, zeroes,
		     sizeof(insn)),
	      0);
	vm_destroy(vm);
	KT_EQ(kprobe_del("kt_user", KPROBE_USER, err, sizeof(err)), 0); /* also while it is on */
	vnode_unref(vn);
	KT_EQ(vnode_remove(NULL, FILE, false), 0);
}

static bool
make_number(const struct vm_code *c, uint64_t va, uint8_t *bytes)
{
	memset(bytes, 0, c->size);
	memcpy(bytes, c->arg, sizeof(uint32_t));
	return true;
}

static uint64_t
add_number(struct vmspace *vm, uint64_t near, uint32_t n)
{
	const struct vm_code c = {
	    .near = near, .hash = n % 7, .size = 16, .make = make_number, .arg = &n};

	return vm_code_add(vm, &c);
}

KTEST(vm_code_has_each_piece_once_near_where_it_is_wanted)
{
	const uint64_t far = 0x7f0000000000ul;
	uint64_t before = page_count_free(), at[500], other;
	struct vmspace *vm = vm_create(&uidinfo_root), *child;

	KT_ASSERT(vm != NULL);
	for (uint32_t n = 1; n < 500; n++) {
		at[n] = add_number(vm, TEXT, n);
		KT_ASSERT(at[n] != 0 && at[n] - TEXT + (1ul << 30) < 2ul << 30);
		for (uint32_t m = 1; m < n; m++)
			KT_ASSERT(at[m] != at[n]);
	}
	for (uint32_t n = 1; n < 500; n++)
		KT_EQ(add_number(vm, TEXT, n), at[n]);
	other = add_number(vm, far, 1);
	KT_ASSERT(other != 0 && other - far + (1ul << 30) < 2ul << 30);
	child = vm_fork(vm, &uidinfo_root);
	KT_ASSERT(child != NULL);
	KT_EQ(add_number(child, TEXT, 1), at[1]);
	other = add_number(child, TEXT, 1000);
	KT_EQ(add_number(vm, TEXT, 1001), other); /* the parent's is free there still */
	KT_EQ(vm_unmap(vm, at[1] & ~(PAGE_SIZE - 1), PAGE_SIZE), 0);
	KT_ASSERT(add_number(vm, TEXT, 1) != 0);
	vm_destroy(vm);
	vm_destroy(child);
	KT_ASSERT(page_count_free() + 2 >= before);
}

static bool
err_is_there(void *arg)
{
	return __atomic_load_n(&err[0], __ATOMIC_ACQUIRE) != '\0';
}

static void
add_to_no_file(unsigned i, void *arg)
{
	KT_EQ(kprobe_add("p /tmp/nofile:0x1000", KPROBE_USER, err, sizeof(err)), -ENOENT);
}

/* A file may be on a disk that does not answer. */
KTEST(uprobe_files_are_looked_for_without_the_control_lock)
{
	bool told;

	err[0] = '\0';
	ktr_port_lock();
	ktest_start(1, false, add_to_no_file, NULL);
	told = ktest_wait(err_is_there, NULL);
	ktr_port_unlock();
	ktest_join();
	KT_ASSERT(told);
}

static struct vnode_ops closing_ops;
static void (*destroy)(struct vnode *vn);
static bool closed;

/* mutex_lock() panics if this thread has the lock already. */
static void
destroy_without_lock(struct vnode *vn)
{
	ktr_port_lock();
	ktr_port_unlock();
	closed = true;
	if (destroy != NULL)
		destroy(vn);
}

/* The file may be on a disk that does not answer, and be removed there. */
KTEST(uprobe_files_are_closed_without_the_control_lock)
{
	struct vnode *vn = make_program();

	closed = false;
	KT_EQ(kprobe_add("p:closing " FILE ":0x1010", KPROBE_USER, err, sizeof(err)), 0);
	closing_ops = *vn->ops;
	destroy = closing_ops.destroy;
	closing_ops.destroy = destroy_without_lock;
	vn->ops = &closing_ops;
	vnode_unref(vn);
	KT_EQ(vnode_remove(NULL, FILE, false), 0);
	KT_ASSERT(!closed);
	KT_EQ(kprobe_del("closing", KPROBE_USER, err, sizeof(err)), 0);
	KT_ASSERT(closed);
}

/* Whoever has the tracers' lock may wait for a disk, too. */
KTEST(sys_tells_of_the_machine_without_the_lock_of_tracers)
{
	char text[16] = "";
	struct file *f;

	mutex_lock(&ftrace_lock);
	KT_EQ(file_open("/sys/devices/system/cpu/kernel_max", O_RDONLY, 0, &f), 0);
	KT_ASSERT(file_read(f, text, sizeof(text) - 1) > 0);
	file_unref(f);
	mutex_unlock(&ftrace_lock);
	KT_ASSERT(text[0] >= '0' && text[0] <= '9');
}
