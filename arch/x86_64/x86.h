/* x86.h - what the files of this port share, and constants of the architecture (Intel SDM). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"
#include "arch/trap.h"
#include "arch/x86_64/asm.h"

/* Flags that a program can set: AC OF DF TF SF ZF AF PF CF and RF; IF and bit 1 are always set. */
#define FLAGS_USER   0x50dd5ul
#define FLAGS_ALWAYS 0x202ul

/* Segment selectors. SYSRET needs user data below user code (SDM vol. 2B, SYSRET). */
#define SEL_KCODE 0x08
#define SEL_KDATA 0x10
#define SEL_TSS   0x30

/* Interrupt vectors. */
#define VEC_DB       1
#define VEC_NMI      2
#define VEC_BP       3
#define VEC_NM       7
#define VEC_DF       8
#define VEC_PF       14
#define VEC_MF       16
#define VEC_MC       18
#define VEC_XM       19
#define VEC_GSI      0x30 /* + line number */
#define VEC_GSI_END  0xe0
#define VEC_TIMER    0xf0
#define VEC_IPI      0xf1 /* + enum arch_ipi */
#define VEC_SPURIOUS 0xff

/* Interrupt stacks (TSS IST slots). */
#define IST_NMI 1
#define IST_DF  2
#define IST_MC  3
#define IST_DB  4

#define MSR_APIC_BASE 0x1b
#define MSR_EFER      0xc0000080
#define MSR_STAR      0xc0000081
#define MSR_LSTAR     0xc0000082
#define MSR_SFMASK    0xc0000084
#define MSR_FS_BASE   0xc0000100
#define MSR_KERNEL_GS 0xc0000102

#define EFER_SCE 1

#define CR0_MP (1ul << 1)
#define CR0_EM (1ul << 2)
#define CR0_NE (1ul << 5)

#define CR4_MCE  (1ul << 6)
#define CR4_PGE  (1ul << 7)
#define CR4_FXSR (1ul << 9)
#define CR4_XMM  (1ul << 10)
#define CR4_SMEP (1ul << 20)
#define CR4_SMAP (1ul << 21)

struct x86_tss { /* SDM vol. 3A, 7.7 */
	uint32_t reserved0;
	uint64_t rsp[3];
	uint64_t reserved1;
	uint64_t ist[7]; /* IST n is ist[n - 1] */
	uint64_t reserved2;
	uint16_t reserved3, iomap;
} __attribute__((packed));

_Static_assert(sizeof(struct x86_tss) == 104, "hardware layout");

struct x86_cpu {
	uint64_t gdt[8];
	struct x86_tss tss;
	uint8_t stacks[5][16384]
	    __attribute__((aligned(16))); /* IST 1 to 4, and the stack of a nested NMI */
};

static inline uint64_t
rdmsr(uint32_t msr)
{
	uint32_t lo, hi;
	__asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
	return (uint64_t)hi << 32 | lo;
}

static inline void
wrmsr(uint32_t msr, uint64_t v)
{
	__asm__ volatile("wrmsr"
			 :
			 : "c"(msr), "a"((uint32_t)v), "d"((uint32_t)(v >> 32))
			 : "memory");
}

static inline void
cpuid(uint32_t leaf, uint32_t sub, uint32_t r[4])
{
	__asm__ volatile("cpuid"
			 : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3])
			 : "a"(leaf), "c"(sub));
}

/* cpu.c */
extern bool x86_smap, x86_smep;
/* Sets up this CPU's descriptor tables, SYSCALL and protection bits. Needs GS. Interrupts off. */
void x86_cpu_init(struct x86_cpu *x);
extern struct x86_cpu x86_boot_cpu;

/* acpi.c: facts from the MADT and FADT, after acpi_init(). */
struct acpi_facts {
	uint32_t lapic_pa;
	unsigned cpu_count;
	uint32_t apic_ids[64];
	unsigned ioapic_count;
	struct {
		uint32_t pa, gsi_base;
	} ioapics[8];
	struct {
		uint32_t gsi;
		uint16_t flags;
	} isa[16]; /* line that legacy line n is connected to; flags as in the MADT */
	bool s5_known;
	uint8_t s5_typa;
	uint16_t pm1a_cnt;
	uint16_t reset_port;
	uint8_t reset_value; /* 0: no reset register */
};
extern struct acpi_facts acpi;
void acpi_init(uint64_t rsdp_pa);

/* intc.c */
void lapic_map(void);
/* Enables this CPU's controller; its timer does not run. */
void lapic_init(void);
uint32_t lapic_id(void);
void lapic_eoi(void);
void lapic_send(uint32_t apic_id, uint32_t icr_low);
uint32_t lapic_timer_read(void);
void lapic_timer_start(uint32_t count);
void ioapic_init(void);

#define ICR_FIXED   0x000
#define ICR_NMI     0x400
#define ICR_INIT    0x500
#define ICR_STARTUP 0x600
#define ICR_ASSERT  0x4000

/* patch.c: handles a breakpoint of patching. True: continue at tf as the site's new code would. */
bool x86_patch_trap(struct arch_trapframe *tf);

/* debug.c */
void x86_debug_exception(struct arch_trapframe *tf);

/* trap.c, trap.S */
void x86_idt_load(void);
void x86_trap(struct arch_trapframe *tf);
void x86_syscall(struct arch_trapframe *tf);
extern char x86_vectors[], x86_syscall_entry[];
