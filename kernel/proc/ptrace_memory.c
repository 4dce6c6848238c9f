/*
 * ptrace_memory.c - the memory of others: words for ptrace(); process_vm_readv() and
 * process_vm_writev(), which have the same rights. Locking: ptrace.h.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/uio.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/ptrace.h"
#include "kernel/proc/ptrace_private.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"

#define PIECE      256 /* bytes of memory moved at once */
#define PIECES_MAX 1024

/*
 * Returns the address space of a thread or a process, with a reference. stopped: pid is a thread
 * that the caller traces, and that is stopped. Otherwise it is a process into which the caller may
 * look. NULL, and *error says why.
 */
static struct vmspace *
ptrace_space_of(uint32_t pid, bool stopped, int *error)
{
	const struct proc *p = NULL;
	struct vmspace *vm = NULL;
	const struct ptrace *pt;

	spin_lock(&proc_lock);
	pt = stopped ? ptrace_find_stopped(pid) : NULL;
	p = !stopped ? proc_find_any(pid) : pt != NULL ? pt->lwp->thread->proc : NULL;
	*error = p == NULL ? -ESRCH : stopped ? -EIO : -EPERM;
	/* A tracer of a program that nobody may look into was there before it became so. */
	if (p != NULL && p->vm != NULL &&
	    (stopped ? !p->undumpable || capable(CAP_SYS_PTRACE)
		     : p == curproc() || ptrace_may_attach(p)))
		vm = vm_ref(p->vm);
	spin_unlock(&proc_lock);
	return vm;
}

int64_t
ptrace_memory_word(uint32_t tid, bool write, uint64_t at, uint64_t data)
{
	int error;
	struct vmspace *vm = ptrace_space_of(tid, true, &error);
	uint64_t word = data;
	size_t n;

	if (vm == NULL)
		return error;
	n = write ? vm_poke(vm, at, &word, sizeof(word), 0)
		  : vm_peek(vm, at, &word, sizeof(word), 0);
	vm_destroy(vm);
	if (n != sizeof(word))
		return -EIO;
	return write ? 0 : copy_out(data, &word, sizeof(word));
}

/*
 * Moves n bytes between the caller's memory at `own` and the memory at `other` of vm, as far as the
 * program there may itself read or write it. Returns how many.
 */
static uint64_t
move_memory(struct vmspace *vm, bool write, uint64_t own, uint64_t other, uint64_t n)
{
	uint8_t piece[PIECE];
	uint64_t done = 0;

	while (done < n) {
		size_t some = n - done < PIECE ? n - done : PIECE, moved;

		if (write && copy_in(piece, own + done, some) != 0)
			break;
		moved = write ? vm_poke(vm, other + done, piece, some, MMU_WRITE)
			      : vm_peek(vm, other + done, piece, some, MMU_READ);
		if (!write && copy_out(own + done, piece, moved) != 0)
			break;
		done += moved;
		if (moved < some || proc_signal_pending())
			break;
	}
	return done;
}

/* Goes to the next piece that is not empty. False: none is left. */
static bool
next_piece(struct uio_vec *v, uint64_t *uvec, uint64_t *left, int *error)
{
	while (v->len == 0 && *left > 0) {
		if (copy_in(v, *uvec, sizeof(*v)) != 0) {
			*error = -EFAULT;
			return false;
		}
		if ((int64_t)v->len < 0) {
			*error = -EINVAL;
			return false;
		}
		*uvec += sizeof(*v);
		(*left)--;
	}
	return v->len > 0;
}

static int64_t
process_vm_move(const uint64_t a[6], bool write)
{
	uint64_t own_at = a[1], own_left = a[2], other_at = a[3], other_left = a[4], done = 0;
	struct uio_vec own = {0}, other = {0};
	struct vmspace *vm;
	int error = 0;

	if (a[5] != 0 || own_left > PIECES_MAX || other_left > PIECES_MAX)
		return -EINVAL;
	vm = ptrace_space_of((uint32_t)a[0], false, &error);
	if (vm == NULL)
		return error;
	error = 0;
	while (next_piece(&own, &own_at, &own_left, &error) &&
	       next_piece(&other, &other_at, &other_left, &error)) {
		uint64_t n = own.len < other.len ? own.len : other.len;
		uint64_t moved = move_memory(vm, write, own.base, other.base, n);

		done += moved;
		if (moved < n) { /* a signal comes after a piece only, so some bytes have moved */
			error = -EFAULT;
			break;
		}
		own = (struct uio_vec){own.base + n, own.len - n};
		other = (struct uio_vec){other.base + n, other.len - n};
	}
	vm_destroy(vm);
	return done > 0 ? (int64_t)done : error;
}

SYSCALL_IS(process_vm_readv, process_vm_move(a, false))
SYSCALL_IS(process_vm_writev, process_vm_move(a, true))
