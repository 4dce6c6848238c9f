/*
 * a64.h - what the files of this port share. Section numbers are those of the Arm ARM (DDI 0487).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/aarch64/asm.h"
#include "arch/pcpu.h"
#include "arch/trap.h"

#define READ_SYSREG(name)                                      \
	__extension__({                                        \
		uint64_t v_;                                   \
		__asm__ volatile("mrs %0, " #name : "=r"(v_)); \
		v_;                                            \
	})
#define WRITE_SYSREG(name, value) \
	__asm__ volatile("msr " #name ", %0" : : "r"((uint64_t)(value)) : "memory")

#define ISB()       __asm__ volatile("isb" ::: "memory")
#define DSB(domain) __asm__ volatile("dsb " #domain ::: "memory")

/* ESR_EL1.EC, bits 31:26, where a class is handled specially. */
enum {
	EC_FP = 0x07,
	EC_SVC64 = 0x15,
	EC_IABORT_EL0 = 0x20,
	EC_IABORT = 0x21,
	EC_PC_ALIGNMENT = 0x22,
	EC_DABORT_EL0 = 0x24,
	EC_DABORT = 0x25,
	EC_BREAKPT_EL0 = 0x30, /* to 0x35: hardware breakpoint, step, watchpoint */
	EC_BREAKPT = 0x31,
	EC_STEP_EL0 = 0x32,
	EC_STEP = 0x33,
	EC_WATCHPT = 0x35,
	EC_BRK64 = 0x3c,
};

#define PSTATE_NZCV 0xf0000000ul /* what a program can set */
#define PSTATE_SS   (1ul << 21)  /* the next instruction is the one that is stepped */

/* MDSCR_EL1: steps, at EL0; and at EL1. */
#define MDSCR_SS  (1ul << 0)
#define MDSCR_KDE (1ul << 13)

#define MPIDR_AFFINITY 0xff00fffffful /* Aff3 to Aff0 */

/* Numbers of software generated interrupts (GIC), for interrupts between CPUs. */
#define SGI_IPI 0 /* + enum arch_ipi */
#define SGI_NMI 8

/* start.c: physical addresses of the image, and of something in it. */
extern uint64_t aarch64_kernel_phys;

static inline uint64_t
aarch64_image_phys(const void *p)
{
	return (uint64_t)p - KERNEL_BASE + aarch64_kernel_phys;
}

/* Facts from the device tree, after devtree_init(). Addresses are physical. */
struct devtree_region {
	uint64_t base, size;
};

#define DEVTREE_CPUS   64
#define DEVTREE_REDIST 8

struct devtree_facts {
	char model[64];
	unsigned cpu_count;
	uint64_t cpus[DEVTREE_CPUS]; /* MPIDR affinity: this CPU, and those that PSCI starts */
	bool psci_smc;               /* conduit: SMC, otherwise HVC */
	bool psci;                   /* PSCI 0.2 or later exists */
	unsigned gic;                /* version 2 or 3; 0: not known */
	struct devtree_region gicd, gicc;
	unsigned redist_count;
	struct devtree_region redist[DEVTREE_REDIST];
	uint64_t redist_stride; /* 0: use GICR_TYPER */
	unsigned timer_intid;   /* of the virtual timer */
	uint32_t timer_hz;      /* 0: use CNTFRQ_EL0 */
	uint64_t console_pa;    /* PL011; 0: none */
	unsigned console_intid; /* ARCH_NO_IRQ: none */
	uint64_t rtc_pa;        /* PL031; 0: none */
	struct devtree_region ecam;
	uint8_t bus_first, bus_last;
	uint64_t pci_io_pa; /* CPU address of I/O port pci_io_first */
	uint32_t pci_io_first, pci_io_size;
	struct devtree_region pci_mem; /* CPU addresses of the window for memory below 4 GiB */
	uint64_t pci_mem_first;        /* the bus's address of its first byte */
	unsigned pci_intid[4][4]; /* of a device's number modulo 4, and its pin less 1; 0: none */
};
extern struct devtree_facts devtree;
/*
 * Reads the blob into boot_info (memory, command line, RAM disk) and into the facts above. There is
 * no console yet: devtree_complain() reports errors later.
 */
void devtree_init(const void *blob);
void devtree_complain(void);

/* cpu.c: this CPU's system registers. Interrupts off. */
void aarch64_cpu_init(void);
extern bool aarch64_pan;

/* mmu.c: maps the console's registers, in the boot tables and, later, in the kernel's. */
volatile void *aarch64_map_early(uint64_t pa);
void aarch64_mmu_init_cpu(void);

/* intc.c */
void intc_init(void);
/* This CPU's interface and private interrupts. Interrupts off. */
void intc_init_cpu(void);
/*
 * Acknowledges an interrupt and returns its number; 1020 or above: none. *token is for intc_eoi().
 */
unsigned intc_ack(uint32_t *token);
void intc_eoi(uint32_t token);
/* intc_ack() and intc_eoi() for interrupts that come as FIQ. */
unsigned intc_ack_fiq(uint32_t *token);
void intc_eoi_fiq(uint32_t token);
/* Lets only the NMI through to this CPU, whatever PSTATE says. Interrupts off. */
void intc_mask(bool on);
/* Unmasks a private interrupt of this CPU. */
void intc_unmask_private(unsigned intid);

/* clock.c: the timer's line is level-triggered; this lowers it, before the handler runs. */
void aarch64_timer_quiet(void);
void aarch64_timer_init_cpu(void);

/* psci.c */
/* 0, or PSCI's negative error. */
int psci_cpu_on(uint64_t mpidr, uint64_t entry_pa, uint64_t context);
void psci_system_off(void);
void psci_system_reset(void);

/* trap.c, trap.S, boot.S */
void aarch64_trap(struct arch_trapframe *tf, unsigned kind);
extern char aarch64_vectors[], aarch64_secondary_entry[], aarch64_context_start[];
