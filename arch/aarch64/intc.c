/*
 * intc.c - the Generic Interrupt Controller, version 2 (IHI 0048) and 3 (IHI 0069).
 *
 * Interrupts are in group 1 and come as IRQ. One software generated interrupt is in group 0 and
 * comes as FIQ, which is masked only in its own handler and in the first and last instructions of
 * an exception: it is this port's NMI. (Priority masking could provide an NMI, too, but then every
 * irq_push() would write to the controller.) If group 0 is not available (a GIC with two security
 * states), that interrupt is an ordinary IRQ.
 *
 * Locking: only a CPU itself uses its CPU interface and, on version 3, its redistributor. The boot
 * CPU sets up the distributor. Afterwards only arch_irq_unmask() uses it, and each interrupt has
 * bits or bytes of its own there.
 */
#include "arch/intc.h"
#include "arch/aarch64/a64.h"
#include "arch/irq.h"
#include "arch/smp.h"
#include "kernel/abi/errno.h"
#include "kernel/entry.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/sync/pcpu.h"

enum { /* distributor, byte offsets; the SGI frame of a redistributor has the same layout */
       GICD_CTLR = 0x000,
       GICD_TYPER = 0x004,
       GICD_IGROUPR = 0x080,
       GICD_ISENABLER = 0x100,
       GICD_ICENABLER = 0x180,
       GICD_ICPENDR = 0x280,
       GICD_ICACTIVER = 0x380,
       GICD_IPRIORITYR = 0x400,
       GICD_ITARGETSR = 0x800,
       GICD_ICFGR = 0xc00,
       GICD_IGRPMODR = 0xd00,
       GICD_SGIR = 0xf00,
       GICD_IROUTER = 0x6000,
       /* CPU interface of version 2 */
       GICC_CTLR = 0x00,
       GICC_PMR = 0x04,
       GICC_IAR = 0x0c,
       GICC_EOIR = 0x10,
       GICC_HPPIR = 0x18,
       /* redistributor */
       GICR_CTLR = 0x00,
       GICR_TYPER = 0x08,
       GICR_WAKER = 0x14,
       GICR_SGI_FRAME = 0x10000,
};

#define GICD_ENABLE_GRP0 (1u << 0)
#define GICD_ENABLE_GRP1 (1u << 1)
#define GICD_ARE         (1u << 4) /* version 3: affinity routing */
#define GICD_DS          (1u << 6) /* version 3: one security state */
#define GICD_RWP         (1u << 31)
#define GICC_ENABLE      (GICD_ENABLE_GRP0 | GICD_ENABLE_GRP1 | 1u << 2 | 1u << 3) /* AckCtl, FIQEn */
#define GICR_LAST        (1ul << 4)
#define GICR_VLPIS       (1ul << 1)
#define GICR_ASLEEP      (1u << 2)
#define GICR_SLEEP       (1u << 1)

#define PRIO_NMI    0x20
#define PRIO_NORMAL 0xa0
#define PRIO_ALL    0xf0 /* masks nothing */
#define SPI_FIRST   32
#define NO_INTID    1023

/* CPU interface registers of version 3. */
#define ICC_PMR_EL1     S3_0_C4_C6_0
#define ICC_IAR0_EL1    S3_0_C12_C8_0
#define ICC_EOIR0_EL1   S3_0_C12_C8_1
#define ICC_SGI1R_EL1   S3_0_C12_C11_5
#define ICC_SGI0R_EL1   S3_0_C12_C11_7
#define ICC_IAR1_EL1    S3_0_C12_C12_0
#define ICC_EOIR1_EL1   S3_0_C12_C12_1
#define ICC_CTLR_EL1    S3_0_C12_C12_4
#define ICC_SRE_EL1     S3_0_C12_C12_5
#define ICC_IGRPEN0_EL1 S3_0_C12_C12_6
#define ICC_IGRPEN1_EL1 S3_0_C12_C12_7
/* A macro, so that the argument is expanded first. */
#define ICC_READ(reg)     READ_SYSREG(reg)
#define ICC_WRITE(reg, v) WRITE_SYSREG(reg, v)

static volatile uint8_t *gicd, *gicc;
static volatile uint8_t *redist[DEVTREE_REDIST];
static unsigned lines;  /* number of interrupts of the distributor */
static bool fiq_is_nmi; /* written once, by the boot CPU */
static uint8_t gicv2_target[8];

static uint32_t
intc_read32(volatile uint8_t *base, unsigned reg)
{
	return *(volatile uint32_t *)(base + reg);
}

static void
intc_write32(volatile uint8_t *base, unsigned reg, uint32_t v)
{
	*(volatile uint32_t *)(base + reg) = v;
}

static void
wait_distributor(void)
{
	while (devtree.gic == 3 && (intc_read32(gicd, GICD_CTLR) & GICD_RWP))
		arch_relax();
}

/* Sets 32 interrupts to group 1, disabled, not pending, not active, normal priority. */
static void
init_bank(volatile uint8_t *base, unsigned first)
{
	intc_write32(base, GICD_ICENABLER + first / 8, ~0u);
	intc_write32(base, GICD_ICPENDR + first / 8, ~0u);
	intc_write32(base, GICD_ICACTIVER + first / 8, ~0u);
	intc_write32(base, GICD_IGROUPR + first / 8, ~0u);
	if (devtree.gic == 3)
		intc_write32(base, GICD_IGRPMODR + first / 8, 0);
	for (unsigned i = 0; i < 32; i += 4)
		intc_write32(base, GICD_IPRIORITYR + first + i, PRIO_NORMAL * 0x01010101u);
}

static bool
map_controller(void)
{
	if (devtree.gic == 0)
		panic("the device tree names no interrupt controller of GICv2 or GICv3");
	gicd = entry_map_device(devtree.gicd.base, devtree.gicd.size);
	if (devtree.gic == 2)
		gicc = entry_map_device(devtree.gicc.base, devtree.gicc.size);
	for (unsigned i = 0; i < devtree.redist_count; i++) {
		redist[i] = entry_map_device(devtree.redist[i].base, devtree.redist[i].size);
		if (redist[i] == NULL)
			return false;
	}
	return gicd != NULL && (devtree.gic == 3 || gicc != NULL);
}

void
intc_init(void)
{
	if (!map_controller())
		panic("no memory to map the interrupt controller");
	intc_write32(gicd, GICD_CTLR, 0);
	wait_distributor();
	lines = ((intc_read32(gicd, GICD_TYPER) & 31) + 1) * 32;
	for (unsigned i = SPI_FIRST; i < lines; i += 32)
		init_bank(gicd, i);
	if (devtree.gic == 3) {
		intc_write32(gicd, GICD_CTLR, GICD_ARE);
		wait_distributor();
		fiq_is_nmi = intc_read32(gicd, GICD_CTLR) & GICD_DS;
		intc_write32(gicd, GICD_CTLR, GICD_ARE | GICD_ENABLE_GRP0 | GICD_ENABLE_GRP1);
		wait_distributor();
	} else {
		intc_write32(gicd, GICD_CTLR, GICD_ENABLE_GRP0 | GICD_ENABLE_GRP1);
		/* With two security states the group registers read as zero. */
		intc_write32(gicd, GICD_IGROUPR, ~0u);
		fiq_is_nmi = intc_read32(gicd, GICD_IGROUPR) == ~0u;
	}
	intc_init_cpu();
	if (!fiq_is_nmi)
		printk(
		    "intc: group 0 is not available: a CPU with interrupts off cannot be stopped\n");
}

/* Finds this CPU's redistributor. They are consecutive, and each names its CPU. */
static volatile uint8_t *
find_redist(void)
{
	uint64_t mine = arch_this_pcpu()->mpidr;
	uint32_t affinity = (uint32_t)((mine >> 8 & 0xff000000) | (mine & 0xffffff));

	for (unsigned i = 0; i < devtree.redist_count; i++) {
		volatile uint8_t *r = redist[i], *end = r + devtree.redist[i].size;
		uint64_t typer;

		do {
			typer = *(volatile uint64_t *)(r + GICR_TYPER);
			if (typer >> 32 == affinity)
				return r;
			r += devtree.redist_stride ? devtree.redist_stride
			     : typer & GICR_VLPIS  ? 0x40000
						   : 0x20000;
		} while (!(typer & GICR_LAST) && r < end);
	}
	panic("CPU %u (affinity %#lx): no redistributor", arch_cpu(), mine);
}

static void
init_v3(void)
{
	volatile uint8_t *r = find_redist(), *sgi = r + GICR_SGI_FRAME;

	intc_write32(r, GICR_WAKER, intc_read32(r, GICR_WAKER) & ~GICR_SLEEP);
	while (intc_read32(r, GICR_WAKER) & GICR_ASLEEP)
		arch_relax();
	init_bank(sgi, 0);
	if (fiq_is_nmi) {
		intc_write32(sgi, GICD_IGROUPR, ~(1u << SGI_NMI));
		sgi[GICD_IPRIORITYR + SGI_NMI] = PRIO_NMI;
	}
	intc_write32(sgi, GICD_ISENABLER, 0xffff);  /* software generated interrupts */
	while (intc_read32(r, GICR_CTLR) & 1u << 3) /* RWP */
		arch_relax();
	ICC_WRITE(ICC_SRE_EL1, ICC_READ(ICC_SRE_EL1) | 1);
	ISB();
	if (!(ICC_READ(ICC_SRE_EL1) & 1))
		panic("CPU %u: the GIC's system registers are not available", arch_cpu());
	ICC_WRITE(ICC_PMR_EL1, PRIO_ALL);
	ICC_WRITE(ICC_CTLR_EL1, 0);
	if (fiq_is_nmi)
		ICC_WRITE(ICC_IGRPEN0_EL1, 1);
	ICC_WRITE(ICC_IGRPEN1_EL1, 1);
	ISB();
}

static void
init_v2(void)
{
	unsigned cpu = arch_cpu();

	if (cpu >= 8)
		panic("CPU %u: GICv2 has 8", cpu);
	init_bank(gicd, 0); /* banked by CPU */
	gicv2_target[cpu] = gicd[GICD_ITARGETSR];
	if (fiq_is_nmi) {
		intc_write32(gicd, GICD_IGROUPR, ~(1u << SGI_NMI));
		gicd[GICD_IPRIORITYR + SGI_NMI] = PRIO_NMI;
	}
	intc_write32(gicd, GICD_ISENABLER, 0xffff);
	intc_write32(gicc, GICC_PMR, PRIO_ALL);
	intc_write32(gicc, GICC_CTLR, fiq_is_nmi ? GICC_ENABLE : GICD_ENABLE_GRP0);
}

void
intc_init_cpu(void)
{
	if (devtree.gic == 3)
		init_v3();
	else
		init_v2();
}

void
intc_unmask_private(unsigned intid)
{
	if (devtree.gic == 2) {
		intc_write32(gicd, GICD_ISENABLER, 1u << intid);
	} else {
		volatile uint8_t *sgi = find_redist() + GICR_SGI_FRAME;
		intc_write32(sgi, GICD_ISENABLER, 1u << intid);
	}
}

void
intc_mask(bool on)
{
	uint32_t priority = on ? PRIO_NORMAL : PRIO_ALL; /* the NMI's priority is above both */

	if (devtree.gic == 2) {
		intc_write32(gicc, GICC_PMR, priority);
	} else {
		ICC_WRITE(ICC_PMR_EL1, priority);
		ISB();
	}
}

unsigned
intc_ack(uint32_t *token)
{
	if (devtree.gic == 2) {
		*token = intc_read32(gicc, GICC_IAR);
	} else {
		*token = (uint32_t)ICC_READ(ICC_IAR1_EL1);
		DSB(sy); /* acknowledge before the handler accesses the device */
	}
	return devtree.gic == 2 ? *token & 0x3ff : *token & 0xffffff;
}

void
intc_eoi(uint32_t token)
{
	if (devtree.gic == 2) {
		intc_write32(gicc, GICC_EOIR, token);
	} else {
		ICC_WRITE(ICC_EOIR1_EL1, token);
		ISB();
	}
}

unsigned
intc_ack_fiq(uint32_t *token)
{
	if (devtree.gic == 2) {
		/* The register shows both groups: leave an interrupt of the other kind alone. */
		if ((intc_read32(gicc, GICC_HPPIR) & 0x3ff) != SGI_NMI)
			return NO_INTID;
		return intc_ack(token);
	}
	*token = (uint32_t)ICC_READ(ICC_IAR0_EL1);
	return *token & 0xffffff;
}

void
intc_eoi_fiq(uint32_t token)
{
	if (devtree.gic == 2) {
		intc_eoi(token);
	} else {
		ICC_WRITE(ICC_EOIR0_EL1, token);
		ISB();
	}
}

static void
intc_send(unsigned cpu, unsigned sgi, bool group0)
{
	uint64_t mpidr = pcpus[cpu]->md.mpidr, v;

	/* The other CPU must see what was stored before. */
	DSB(ishst);
	if (devtree.gic == 2) {
		/*
		 * NSATT: group 1, if the distinction exists. The filter names this CPU: a GIC with
		 * one CPU does not say which bit that has (GICD_ITARGETSR reads as zero).
		 */
		intc_write32(gicd, GICD_SGIR,
			     (cpu == arch_cpu() ? 2u << 24 : (uint32_t)gicv2_target[cpu] << 16) |
				 (group0 ? 0 : 1u << 15) | sgi);
		return;
	}
	/* IHI 0069, ICC_SGI1R_EL1: Aff3.Aff2.RS.Aff1, and one of 16 bits for Aff0. */
	v = (mpidr >> 32 & 0xff) << 48 | (mpidr >> 4 & 0xf) << 44 | (mpidr >> 16 & 0xff) << 32 |
	    (uint64_t)sgi << 24 | (mpidr >> 8 & 0xff) << 16 | 1ul << (mpidr & 0xf);
	if (group0)
		ICC_WRITE(ICC_SGI0R_EL1, v);
	else
		ICC_WRITE(ICC_SGI1R_EL1, v);
	ISB();
}

void
arch_ipi_send(unsigned cpu, enum arch_ipi ipi)
{
	intc_send(cpu, SGI_IPI + ipi, false);
}

bool
arch_nmi_send(unsigned cpu)
{
	__atomic_store_n(&pcpus[cpu]->nmi_sent, true, __ATOMIC_RELEASE);
	intc_send(cpu, SGI_NMI, fiq_is_nmi);
	return fiq_is_nmi;
}

int
arch_irq_unmask(unsigned gsi)
{
	unsigned shift = gsi % 16 * 2;

	if (gsi < SPI_FIRST || gsi >= lines)
		return -EINVAL;
	/* Level-sensitive, as are all lines that devtree.c accepts. */
	intc_write32(gicd, GICD_ICFGR + gsi / 16 * 4,
		     intc_read32(gicd, GICD_ICFGR + gsi / 16 * 4) & ~(2u << shift));
	if (devtree.gic == 2) {
		gicd[GICD_ITARGETSR + gsi] = gicv2_target[0];
	} else {
		*(volatile uint64_t *)(gicd + GICD_IROUTER + 8 * gsi) = pcpus[0]->md.mpidr;
	}
	DSB(ishst); /* the handler's table entry is visible before the interrupt comes */
	intc_write32(gicd, GICD_ISENABLER + gsi / 32 * 4, 1u << gsi % 32);
	return 0;
}
