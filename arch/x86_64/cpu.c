/*
 * cpu.c - set-up of one CPU: descriptor tables, SYSCALL, protection bits. And thread contexts.
 */
#include "arch/context.h"
#include "arch/fpu.h"
#include "arch/machine.h"
#include "arch/smp.h"
#include "arch/x86_64/x86.h"
#include "kernel/entry.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/sync/pcpu.h"
#include "ktr/ring.h"

bool x86_smap, x86_smep;
struct x86_cpu x86_boot_cpu;
const char arch_name[] = "x86_64";

/* CPUID.1:ECX: FMA, XSAVE, AVX, F16C. */
#define ECX_XSAVE (1u << 12 | 1u << 26 | 1u << 28 | 1u << 29)

extern struct pcpu x86_boot_pcpu;

/* Set statically: even the first instruction of C may record an event. */
struct pcpu x86_boot_pcpu = {
    .md = {.self = &x86_boot_pcpu.md, .ktr_ring = &ktr_boot_ring.ring, .x86 = &x86_boot_cpu},
    .online = true,
};

static void
load_tables(struct x86_cpu *x)
{
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) gdtr = {sizeof(x->gdt) - 1, (uint64_t)x->gdt};
	uint64_t tss = (uint64_t)&x->tss;

	/* Flat 64-bit segments (SDM vol. 3A, 3.4.5): type, S, DPL, P, L or D/B, G. */
	x->gdt[1] = 0x00af9a000000ffff; /* kernel code */
	x->gdt[2] = 0x00cf92000000ffff; /* kernel data */
	x->gdt[3] = 0;                  /* SYSRET's 32-bit code: none */
	x->gdt[4] = 0x00cff2000000ffff; /* user data */
	x->gdt[5] = 0x00affa000000ffff; /* user code */
	x->gdt[6] =
	    (sizeof(x->tss) - 1) | (tss & 0xffffff) << 16 | 0x89ul << 40 | (tss >> 24 & 0xff) << 56;
	x->gdt[7] = tss >> 32;
	for (unsigned i = 0; i < 4; i++)
		x->tss.ist[i] = (uint64_t)x->stacks[i] + sizeof(x->stacks[i]);
	x->tss.iomap = sizeof(x->tss);
	__asm__ volatile("lgdt %0\n\t"
			 "push %1\n\t"
			 "lea 1f(%%rip), %%rax\n\t"
			 "push %%rax\n\t"
			 "lretq\n"
			 "1:\tmov %w2, %%ds\n\t"
			 "mov %w2, %%es\n\t"
			 "mov %w2, %%ss\n\t"
			 "ltr %w3"
			 :
			 : "m"(gdtr), "i"(SEL_KCODE), "r"(SEL_KDATA), "r"(SEL_TSS)
			 : "rax", "memory");
}

static void
protection_bits(void)
{
	uint32_t r[4];
	uint64_t cr0, cr4;
	bool mce;

	cpuid(1, 0, r);
	mce = r[3] & (1u << 7);
	cpuid(0, 0, r);
	if (r[0] >= 7) {
		cpuid(7, 0, r);
		x86_smep = r[1] & (1u << 7);
		x86_smap = r[1] & (1u << 20);
	}
	__asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
	cr4 |= CR4_PGE | CR4_FXSR | CR4_XMM | (mce ? CR4_MCE : 0) | (x86_smep ? CR4_SMEP : 0) |
	       (x86_smap ? CR4_SMAP : 0);
	__asm__ volatile("mov %0, %%cr4" : : "r"(cr4));
	/* FPU errors are exceptions, and so are accesses while it is off (SDM vol. 3A, 2.5). */
	__asm__ volatile("mov %%cr0, %0" : "=r"(cr0));
	cr0 = (cr0 & ~CR0_EM) | CR0_MP | CR0_NE | X86_CR0_TS;
	__asm__ volatile("mov %0, %%cr0" : : "r"(cr0));
}

void
x86_cpu_init(struct x86_cpu *x)
{
	load_tables(x);
	x86_idt_load();
	protection_bits();
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SCE);
	wrmsr(MSR_STAR, (uint64_t)SEL_KCODE << 32 | (uint64_t)(SEL_UDATA - 8) << 48);
	wrmsr(MSR_LSTAR, (uint64_t)x86_syscall_entry);
	wrmsr(MSR_SFMASK, 0x47700); /* AC NT IOPL DF IF TF are cleared on entry */
	wrmsr(MSR_KERNEL_GS, 0);
}

void
arch_pcpu_init(struct pcpu *pc)
{
	struct x86_cpu *x = entry_alloc(sizeof(*x));

	if (x == NULL)
		panic("CPU %u: no memory for its tables", pc->md.cpu);
	pc->md.self = &pc->md;
	pc->md.x86 = x;
}

void x86_context_start(void);

void
arch_context_init(struct arch_context *c, void *stack, size_t size, void (*fn)(void *), void *arg)
{
	/* Leave room for the frame of the user thread's traps at the top. */
	uint64_t *sp = (uint64_t *)arch_user_frame((uintptr_t)stack + size);

	/* What arch_context_switch() pops: r15 r14 r13 r12 rbx rbp, return address. */
	*--sp = 0;
	*--sp = 0; /* alignment, and the end of the chain of frames */
	*--sp = (uint64_t)x86_context_start;
	*--sp = 0;
	*--sp = 0;
	*--sp = (uint64_t)fn;
	*--sp = (uint64_t)arg;
	*--sp = 0;
	*--sp = 0;
	c->sp = (uint64_t)sp;
}

void
arch_context_prepare(uintptr_t stack_top, uint64_t tls)
{
	struct arch_pcpu *p = arch_this_pcpu();

	p->kstack_top = stack_top;
	p->x86->tss.rsp[0] = stack_top;
	/* Needed at every switch: a program can change the base without a trap, by loading FS. */
	wrmsr(MSR_FS_BASE, tls);
}

bool
arch_random(uint64_t *v)
{
	uint32_t r[4];
	bool good;

	cpuid(1, 0, r);
	if (!(r[2] & 1u << 30))
		return false;
	__asm__ volatile("rdrand %0" : "=r"(*v), "=@ccc"(good));
	return good;
}

uint64_t
arch_hwcap(void)
{
	uint32_t r[4];

	cpuid(1, 0, r);
	return r[3];
}

static void
cpu_brand(char brand[49])
{
	uint32_t r[4];

	memset(brand, 0, 49);
	cpuid(0x80000000, 0, r);
	if (r[0] >= 0x80000004)
		for (unsigned i = 0; i < 3; i++)
			cpuid(0x80000002 + i, 0, (uint32_t *)(brand + 16 * i));
}

void
arch_cpu_describe(struct sbuf *out)
{
	/* CPUID.1:EDX and ECX (SDM vol. 2A, CPUID), by Linux's names, in the order of their bits.
	 */
	static const char edx[] = "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov "
				  "pat pse36 pn clflush - dts acpi mmx fxsr sse sse2 ss ht tm ia64 "
				  "pbe ";
	static const char ecx[] = "pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid "
				  "sdbg fma cx16 xtpr pdcm - pcid dca sse4_1 sse4_2 x2apic movbe "
				  "popcnt tsc_deadline_timer aes xsave osxsave avx f16c rdrand "
				  "hypervisor ";
	uint32_t vendor[4], id[4];
	char brand[49];

	cpuid(0, 0, vendor);
	cpuid(1, 0, id);
	id[2] &= ~ECX_XSAVE; /* CR4.OSXSAVE is clear: programs cannot use them */
	cpu_brand(brand);
	sbuf_puts(out, "vendor_id\t: ");
	sbuf_write(out, &vendor[1], 4);
	sbuf_write(out, &vendor[3], 4);
	sbuf_write(out, &vendor[2], 4);
	sbuf_printf(out, "\ncpu family\t: %u\nmodel\t\t: %u\nmodel name\t: %s\nstepping\t: %u\n",
		    (id[0] >> 8 & 15) + ((id[0] >> 8 & 15) == 15 ? id[0] >> 20 & 255 : 0),
		    (id[0] >> 4 & 15) | (id[0] >> 12 & 0xf0), brand, id[0] & 15);
	sbuf_printf(out, "cpu MHz\t\t: %lu.%03lu\nflags\t\t:", clock_hz() / 1000000,
		    clock_hz() / 1000 % 1000);
	for (unsigned word = 0; word < 2; word++) {
		const char *name = word == 0 ? edx : ecx;

		for (uint32_t bits = id[3 - word]; *name != '\0'; bits >>= 1) {
			const char *end = strchr(name, ' ');

			if ((bits & 1) && *name != '-') {
				sbuf_putc(out, ' ');
				sbuf_write(out, name, (size_t)(end - name));
			}
			name = end + 1;
		}
	}
	sbuf_puts(out, " nx lm\n");
}

void
arch_machine_print(void)
{
	char brand[49];

	cpu_brand(brand);
	printk("cpu: %s, NX%s%s\n", brand, x86_smep ? " SMEP" : "", x86_smap ? " SMAP" : "");
}
