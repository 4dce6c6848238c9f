/*
 * acpi.c - the facts that this port takes from ACPI 6.4: CPUs and interrupt controllers (MADT,
 * 5.2.12); power-off and reset registers (FADT, 5.2.9; the \_S5 package of the DSDT).
 *
 * Tables come from firmware. Length and checksum are verified before use; a bad table is reported
 * and not used. Boot only, one CPU.
 */
#include "arch/x86_64/x86.h"
#include "kernel/entry.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

struct acpi_facts acpi;

struct sdt {
	char signature[4];
	uint32_t length;
	uint8_t revision, checksum;
	char oem[6], oem_table[8];
	uint32_t oem_revision, creator, creator_revision;
} __attribute__((packed));

struct rsdp {
	char signature[8];
	uint8_t checksum;
	char oem[6];
	uint8_t revision;
	uint32_t rsdt;
	uint32_t length;
	uint64_t xsdt;
	uint8_t extended_checksum, reserved[3];
} __attribute__((packed));

static bool
sums_to_zero(const void *at, uint32_t size)
{
	uint8_t sum = 0;

	for (uint32_t i = 0; i < size; i++)
		sum += ((const uint8_t *)at)[i];
	return sum == 0;
}

/* Maps a table and verifies its checksum. NULL: it is damaged. */
static const struct sdt *
acpi_map_table(uint64_t pa)
{
	const struct sdt *t = entry_map_firmware(pa, sizeof(*t));

	if (t == NULL || t->length < sizeof(*t) || t->length > (16u << 20))
		return NULL;
	t = entry_map_firmware(pa, t->length);
	if (t == NULL)
		return NULL;
	if (!sums_to_zero(t, t->length)) {
		pr_warn("acpi: table %.4s at %#lx: bad checksum, not used\n", t->signature, pa);
		return NULL;
	}
	return t;
}

static void
add_cpu(uint32_t apic_id, uint32_t flags)
{
	if (!(flags & 1)) /* enabled */
		return;
	for (unsigned i = 0; i < acpi.cpu_count; i++)
		if (acpi.apic_ids[i] == apic_id)
			return;
	if (acpi.cpu_count < sizeof(acpi.apic_ids) / sizeof(acpi.apic_ids[0]))
		acpi.apic_ids[acpi.cpu_count++] = apic_id;
}

static void
read_madt(const struct sdt *t)
{
	const uint8_t *p = (const uint8_t *)t;

	if (t->length < 44)
		return;
	acpi.lapic_pa = *(const uint32_t *)(p + 36);
	for (uint32_t off = 44; off + 2 <= t->length && p[off + 1] >= 2; off += p[off + 1]) {
		const uint8_t *e = p + off;

		if (off + e[1] > t->length)
			break;
		switch (e[0]) {
		case 0: /* local APIC */
			if (e[1] >= 8)
				add_cpu(e[3], *(const uint32_t *)(e + 4));
			break;
		case 1: /* I/O APIC */
			if (e[1] >= 12 && acpi.ioapic_count < 8) {
				acpi.ioapics[acpi.ioapic_count].pa = *(const uint32_t *)(e + 4);
				acpi.ioapics[acpi.ioapic_count++].gsi_base =
				    *(const uint32_t *)(e + 8);
			}
			break;
		case 2: /* interrupt source override */
			if (e[1] >= 10 && e[3] < 16) {
				acpi.isa[e[3]].gsi = *(const uint32_t *)(e + 4);
				acpi.isa[e[3]].flags = *(const uint16_t *)(e + 8);
			}
			break;
		}
	}
}

/*
 * \_S5 is a package of small constants. There is no AML interpreter here: find the name and read
 * the first constant: NameOp "_S5_" PackageOp PkgLength NumElements (ACPI 20.2.5.4).
 */
static void
read_dsdt(const struct sdt *t)
{
	const uint8_t *p = (const uint8_t *)t;

	for (uint32_t i = sizeof(*t); i + 12 < t->length; i++) {
		if (memcmp(p + i, "_S5_", 4) != 0 || p[i + 4] != 0x12)
			continue;
		const uint8_t *e = p + i + 5;
		e += (e[0] >> 6) + 1 + 1; /* package length, element count */
		if (e[0] == 0x0a)         /* BytePrefix */
			e++;
		acpi.s5_typa = e[0] & 7;
		acpi.s5_known = true;
		return;
	}
}

static void
read_fadt(const struct sdt *t)
{
	const uint8_t *p = (const uint8_t *)t;
	const struct sdt *dsdt;

	if (t->length < 76)
		return;
	acpi.pm1a_cnt = (uint16_t) * (const uint32_t *)(p + 64);
	/* Use RESET_REG if the flag is set and it is an I/O port (ACPI 4.8.3.6). */
	if (t->length >= 129 && (*(const uint32_t *)(p + 112) & 1 << 10) && p[116] == 1) {
		acpi.reset_port = (uint16_t)(*(const uint64_t *)(p + 120));
		acpi.reset_value = p[128];
	}
	dsdt = acpi_map_table(*(const uint32_t *)(p + 40));
	if (dsdt != NULL)
		read_dsdt(dsdt);
}

void
acpi_init(uint64_t rsdp_pa)
{
	const struct rsdp *r = rsdp_pa ? entry_map_firmware(rsdp_pa, sizeof(*r)) : NULL;
	const struct sdt *root;
	unsigned width;

	for (unsigned i = 0; i < 16; i++)
		acpi.isa[i].gsi = i;
	/* The first 20 bytes have a sum of their own (5.2.5.3). */
	if (r == NULL || memcmp(r->signature, "RSD PTR ", 8) != 0 || !sums_to_zero(r, 20) ||
	    (r->revision >= 2 && !sums_to_zero(r, sizeof(*r)))) {
		pr_warn("acpi: no valid RSDP from the loader; one CPU, no device interrupts\n");
		return;
	}
	width = r->revision >= 2 && r->xsdt != 0 ? 8 : 4;
	root = acpi_map_table(width == 8 ? r->xsdt : r->rsdt);
	if (root == NULL) {
		pr_warn("acpi: no valid root table\n");
		return;
	}
	for (uint32_t off = sizeof(*root); off + width <= root->length; off += width) {
		uint64_t pa = 0;
		const struct sdt *t;

		memcpy(&pa, (const char *)root + off, width);
		t = acpi_map_table(pa);
		if (t == NULL)
			continue;
		if (memcmp(t->signature, "APIC", 4) == 0)
			read_madt(t);
		else if (memcmp(t->signature, "FACP", 4) == 0)
			read_fadt(t);
	}
}
