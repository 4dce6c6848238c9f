/*
 * place.c - where a probe fires: the thread, the process, the two stacks; and what memory is RAM.
 *
 * Memory is found by the page tables and read through the direct map, so that no read can fault.
 * Nothing here takes a lock: what changes meanwhile is read as it was or as it is, but from RAM.
 */
#include "arch/insn.h"
#include "arch/ktr.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/random.h"
#include "kernel/lib/string.h"
#include "kernel/lib/unwind.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/intern.h"

#define MOST_FRAMES    1024u
#define MOST_ANCESTORS 1024u

struct dif_port_range dif_port_direct[DIF_PORT_DIRECT], dif_port_quick_range;

extern const char __rodata_start[], __rodata_end[], __data_start[], __bss_end[];

void
dtrace_place_init(void)
{
	dif_port_direct[0] = (struct dif_port_range){0, 0};
	for (unsigned i = 0; i < boot_info.range_count; i++) {
		const struct boot_range *r = &boot_info.ranges[i];

		if (r->kind == BOOT_RAM && r->end - r->start > dif_port_direct[0].size)
			dif_port_direct[0] =
			    (struct dif_port_range){ARCH_DIRECT_BASE + page_round_up(r->start),
						    page_round_down(r->end) -
							page_round_up(r->start)};
	}
	dif_port_quick_range = dif_port_direct[0];
	dif_port_quick_range.size -= DIF_PORT_QUICK_SIZE;
	dif_port_direct[1] = (struct dif_port_range){(uintptr_t)__rodata_start,
						     (uintptr_t)(__rodata_end - __rodata_start)};
	dif_port_direct[2] =
	    (struct dif_port_range){(uintptr_t)__data_start, (uintptr_t)(__bss_end - __data_start)};
}

void *
dif_port_alloc(size_t size)
{
	return kmap_alloc(size);
}

void
dif_port_free_all(void *const *p, unsigned n)
{
	kmap_free_all(p, n);
}

static bool
is_ram(uint64_t pa)
{
	for (unsigned i = 0; i < boot_info.range_count; i++)
		if (boot_info.ranges[i].kind == BOOT_RAM && pa >= boot_info.ranges[i].start &&
		    pa < boot_info.ranges[i].end)
			return true;
	return false;
}

/* Where the byte at addr is in the direct map, and at most *n bytes from it on. NULL: not RAM. */
static uint8_t *
place_find(uint64_t root, uint64_t addr, size_t *n, bool write)
{
	unsigned level;
	uint64_t pte = pagetable_lookup(root, addr, &level), size;
	uint64_t pa;

	if (pte == 0 || (write && !arch_pte_writable(pte)))
		return NULL;
	size = PAGE_SIZE << (9 * level);
	pa = arch_pte_pa(pte) + (addr & (size - 1));
	if (*n > PAGE_SIZE - pa % PAGE_SIZE)
		*n = PAGE_SIZE - pa % PAGE_SIZE;
	return is_ram(pa) ? phys_to_virt(pa) : NULL;
}

const char *
dtrace_direct(const char *s)
{
	size_t n = 1;
	const uint8_t *p = place_find(kmap_root(), (uintptr_t)s, &n, false);

	return p != NULL ? (const char *)p : s;
}

static bool
copy_from(uint64_t root, uint8_t *dst, uint64_t addr, size_t n)
{
	while (n > 0) {
		size_t part = n;
		const uint8_t *from = place_find(root, addr, &part, false);

		if (from == NULL)
			return false;
		memcpy(dst, from, part);
		dst += part;
		addr += part;
		n -= part;
	}
	return true;
}

bool
dif_port_load(void *dst, uint64_t addr, size_t n)
{
	return addr >= ARCH_DIRECT_BASE && addr + n >= addr && copy_from(kmap_root(), dst, addr, n);
}

/* The page table of the user who runs here; 0: there is none, or the address is not the user's. */
static uint64_t
place_user_root(uint64_t addr, size_t n)
{
	const struct thread *t = curthread();

	if (t->proc == NULL || addr >= ARCH_USER_END || n > ARCH_USER_END - addr)
		return 0;
	return t->root != kmap_root() ? t->root : 0;
}

bool
dif_port_user_load(void *dst, uint64_t addr, size_t n)
{
	uint64_t root = place_user_root(addr, n);

	return root != 0 && copy_from(root, dst, addr, n);
}

bool
dif_port_user_store(uint64_t addr, const void *src, size_t n)
{
	uint64_t root = place_user_root(addr, n);
	const uint8_t *from = src;

	while (root != 0 && n > 0) {
		size_t part = n;
		uint8_t *to = place_find(root, addr, &part, true);

		if (to == NULL)
			return false;
		memcpy(to, from, part);
		from += part;
		addr += part;
		n -= part;
	}
	return root != 0;
}

uint64_t
dif_port_secret(void)
{
	uint64_t v;

	random_bytes(&v, sizeof(v));
	return v;
}

uint64_t
dif_port_thread(void)
{
	return curthread()->serial;
}

/* ---- stacks ---- */

bool
dtrace_load_words(uintptr_t *to, uintptr_t from, unsigned words)
{
	return dif_port_load(to, from, words * sizeof(*to));
}

/* Where the probe is, for unwind_step(). */
static struct unwind_frame
place_of_firing(const struct ktr_where *where)
{
	if (where->regs != NULL)
		return unwind_of_trap(where->regs);
	return (struct unwind_frame){.pc = where->pc, .fp = where->fp};
}

static void
stack_put_pc(uint64_t *pcs, unsigned n, uintptr_t pc)
{
	if (pcs != NULL)
		pcs[n] = pc;
}

unsigned
dtrace_stack(const struct ktr_firing *f, uint64_t *pcs, unsigned max)
{
	const struct ktr_where where = ktr_firing_where(f);
	struct unwind_frame at = place_of_firing(&where);
	unsigned n = 0;

	if (at.user) /* an interrupt of the program: the kernel has no frame there */
		return 0;
	if (n < max)
		stack_put_pc(pcs, n++, where.pc);
	if (where.regs == NULL && where.ret != 0 && where.pc != 0 && n < max)
		stack_put_pc(pcs, n++, at.pc = where.ret);
	return n + unwind_list(at, (uintptr_t)curthread()->kstack, KSTACK_SIZE, dtrace_load_words,
			       pcs != NULL ? pcs + n : NULL, max - n);
}

/* The registers with which the user's code entered the kernel. NULL: a kernel thread. */
static const struct arch_trapframe *
user_frame(void)
{
	const struct thread *t = curthread();

	return t->proc != NULL ? arch_user_frame((uintptr_t)t->kstack + KSTACK_SIZE) : NULL;
}

/* Where a call returns to; a probe may await its return. *calls: those that were not met yet. */
static uintptr_t
return_of(const struct lwp_call **calls, uintptr_t pc)
{
	for (; *calls != NULL && pc == (*calls)->returner; *calls = (*calls)->next)
		pc = (*calls)->ret;
	return pc;
}

/* Is the firing at the start of a program's function, which has no frame yet? */
static bool
is_user_entry(const struct ktr_firing *f)
{
	return f->frame == NULL && f->where.pc == 0 && f->where.ret != 0;
}

unsigned
dtrace_ustack(const struct ktr_firing *f, uint64_t *pcs, unsigned max)
{
	const struct arch_trapframe *tf = user_frame();
	const struct lwp_call *calls = tf != NULL ? curlwp()->calls : NULL;
	unsigned n = 0;
	uintptr_t fp, frame[2];

	if (tf == NULL || max == 0)
		return 0;
	stack_put_pc(pcs, n++, lwp_pc(curlwp(), tf));
	if (is_user_entry(f) && n < max)
		stack_put_pc(pcs, n++, return_of(&calls, f->where.ret));
	fp = arch_tf_fp(tf);
	while (n < max && fp != 0 && fp % 8 == 0 && dif_port_user_load(frame, fp, 16) &&
	       frame[1] != 0) {
		stack_put_pc(pcs, n++, return_of(&calls, frame[1]));
		fp = frame[0] > fp ? frame[0] : 0;
	}
	return n;
}

/* The process's number, and the path of what it executes, as dtrace_program() takes it. */
static uint64_t
place_program(void)
{
	const struct proc *p = curthread()->proc;

	return p != NULL ? (uint64_t)(uintptr_t)ktr_intern(p->program) << 32 | p->pid : 0;
}

bool
dtrace_program(uint32_t number, char path[DIF_PROGRAM_PATH])
{
	return ktr_names_text(ktr_names_get(), number, path) == path;
}

unsigned
dif_port_stack(const struct ktr_firing *f, uint64_t *pcs, unsigned max)
{
	return dtrace_stack(f, pcs, max);
}

unsigned
dif_port_ustack(const struct ktr_firing *f, uint64_t *pid, uint64_t *pcs, unsigned max)
{
	*pid = place_program();
	return dtrace_ustack(f, pcs, max);
}

static uint64_t
place_caller(const struct ktr_firing *f)
{
	const struct ktr_where where = ktr_firing_where(f);
	struct unwind_frame at = place_of_firing(&where);

	if (where.ret != 0 && where.pc != 0)
		return where.ret;
	return unwind_step(&at, dtrace_load_words, false) && !at.user ? at.pc : 0;
}

static uint64_t
place_ucaller(const struct ktr_firing *f)
{
	uint64_t pcs[2] = {0};

	dtrace_ustack(f, pcs, 2);
	return pcs[1];
}

/* ---- built-in variables ---- */

struct ancestor {
	uint32_t pid;
	const struct proc *parent;
};

/* Reads from a process that may have ended, and whose memory may have another use. False if p is
 * no memory. */
static bool
load_proc(struct ancestor *a, const struct proc *p)
{
	return p != NULL && dif_port_load(&a->pid, (uintptr_t)&p->pid, sizeof(a->pid)) &&
	       dif_port_load(&a->parent, (uintptr_t)&p->parent, sizeof(a->parent));
}

uint64_t
dif_port_builtin(const struct dif_at *at, const struct ktr_firing *f, enum dif_builtin what)
{
	const struct thread *t = curthread();
	struct ancestor parent;

	switch (what) {
	case DIF_B_TIMESTAMP: /* the event's time, so that it is the same in a recorded trace */
		return f->owners != 0 && f->ticks != 0 ? clock_ns_of(f->ticks) : clock_ns();
	case DIF_B_VTIMESTAMP:
		return clock_ns() - t->zero_ns;
	case DIF_B_WALLTIMESTAMP:
		return clock_real_now_ns();
	case DIF_B_PPID:
		return t->proc != NULL && load_proc(&parent, t->proc->parent) ? parent.pid : 0;
	case DIF_B_UID:
		return t->proc != NULL ? t->proc->uid : 0;
	case DIF_B_ERRNO:
		return ((const struct dtrace_ecb *)at)->probe->sysret ? dtrace_errno(f) : 0;
	case DIF_B_CALLER:
		return place_caller(f);
	case DIF_B_UCALLER:
		return place_ucaller(f);
	case DIF_B_STACKDEPTH:
		return dtrace_stack(f, NULL, MOST_FRAMES);
	case DIF_B_USTACKDEPTH:
		return dtrace_ustack(f, NULL, MOST_FRAMES);
	case DIF_B_IPL:
		return this_pcpu()->nmi > 0 ? 2 : this_pcpu()->irq_depth > 0;
	case DIF_B_PROGRAM:
		return place_program();
	case DIF_B_CURPROC:
		return (uintptr_t)t->proc;
	case DIF_B_GID:
		return 0; /* users have no groups here */
	default:
		return dif_port_quick(at, what);
	}
}

uint64_t
dif_port_argument(const struct ktr_firing *f, unsigned n)
{
	static const char *const registers[] = ARCH_ARG_REGISTERS;
	const unsigned count = sizeof(registers) / sizeof(registers[0]);
	const struct arch_trapframe *tf = user_frame();
	uint64_t v = 0;

	if (n < 6)
		return 0;
	if (f->frame != NULL)
		return f->site->kind == KTR_SITE_ENTRY &&
			       f->args == arch_ktr_parameters(f->frame) &&
			       dif_port_load(&v, (uintptr_t)arch_ktr_parameter(f->frame, n),
					     sizeof(v))
			   ? v
			   : 0;
	if (!is_user_entry(f) || tf == NULL)
		return 0;
	if (n < count)
		return arch_tf_register(tf, registers[n], &v) ? v : 0;
	return dif_port_user_load(&v, arch_tf_sp(tf) + ARCH_CALL_PUSHES + 8 * (n - count),
				  sizeof(v))
		   ? v
		   : 0;
}

bool
dif_port_uregister(uint64_t n, uint64_t *v)
{
	const struct arch_trapframe *tf = user_frame();

	if (tf == NULL || n >= sizeof(*tf) / sizeof(*v))
		return false;
	*v = ((const uint64_t *)tf)[n]; /* registers in words, on every port */
	return true;
}

bool
dif_port_mutex_owner(uint64_t addr, uint64_t *thread)
{
	struct mutex m;

	if (!dif_port_load(&m, addr, sizeof(m)))
		return false;
	*thread = (uintptr_t)m.owner;
	return true;
}

bool
dif_port_progenyof(uint64_t pid)
{
	const struct proc *p = curthread()->proc;
	struct ancestor a;

	for (unsigned n = 0; n < MOST_ANCESTORS && load_proc(&a, p); n++, p = a.parent)
		if (a.pid == pid)
			return true;
	return false;
}

uint64_t
dif_port_rand(void)
{
	static uint64_t counter;
	uint64_t v =
	    __atomic_add_fetch(&counter, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED) ^ clock_ns();

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	return v ^ v >> 31;
}
