/*
 * partition.c - the tables of partitions (bio.h): a pure parser, of which each byte may be wrong.
 * GPT: UEFI 2.10, 5.3; MBR: the same, 5.2.1. Extended partitions are not read.
 */
#include "kernel/block/bio.h"
#include "kernel/lib/string.h"

#define MBR_TABLE     446
#define MBR_ENTRY     16
#define MBR_ENTRIES   4
#define MBR_GPT       0xee
#define GPT_ENTRY_MIN 128
#define GPT_ENTRY_MAX 4096

typedef bool read_fn(void *arg, uint64_t sector, uint8_t to[512]);

static uint64_t
part_le(const uint8_t *p, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes-- > 0)
		n = n << 8 | p[bytes];
	return n;
}

/* Has one of the first n partitions some of these sectors? */
static bool
part_overlaps(const struct partition *part, unsigned n, uint64_t start, uint64_t sectors)
{
	for (unsigned i = 0; i < n; i++)
		if (part[i].start < start + sectors && start < part[i].start + part[i].sectors)
			return true;
	return false;
}

/* Does the partition lie on a disk of so many sectors? */
static bool
part_fits(uint64_t disk, uint64_t start, uint64_t sectors)
{
	return start > 0 && sectors > 0 && start < disk && sectors <= disk - start;
}

static unsigned
parse_gpt(uint64_t disk, read_fn *read, void *arg, struct partition *part)
{
	uint8_t b[SECTOR_SIZE];
	uint64_t table, size, count;
	unsigned n = 0;

	if (!read(arg, 1, b) || memcmp(b, "EFI PART", 8) != 0)
		return 0;
	table = part_le(b + 72, 8);
	count = part_le(b + 80, 4);
	size = part_le(b + 84, 4);
	if (size < GPT_ENTRY_MIN || size > GPT_ENTRY_MAX || (size & (size - 1)) != 0 ||
	    !part_fits(disk, table, DISK_PARTS_MAX * size / SECTOR_SIZE))
		return 0;
	for (unsigned i = 0; i < DISK_PARTS_MAX && i < count; i++) {
		uint64_t at = i * size, first, last;
		const uint8_t *e = b + at % SECTOR_SIZE;

		if (!read(arg, table + at / SECTOR_SIZE, b))
			break;
		first = part_le(e + 32, 8);
		last = part_le(e + 40, 8);
		if ((part_le(e, 8) | part_le(e + 8, 8)) == 0 || last < first ||
		    !part_fits(disk, first, last - first + 1) ||
		    part_overlaps(part, n, first, last - first + 1))
			continue;
		part[i] = (struct partition){first, last - first + 1};
		n = i + 1;
	}
	return n;
}

unsigned
partition_parse(uint64_t disk, read_fn *read, void *arg, struct partition part[DISK_PARTS_MAX])
{
	uint8_t b[SECTOR_SIZE];
	unsigned n = 0;

	memset(part, 0, DISK_PARTS_MAX * sizeof(part[0]));
	if (disk == 0 || !read(arg, 0, b) || b[510] != 0x55 || b[511] != 0xaa)
		return 0;
	for (unsigned i = 0; i < MBR_ENTRIES; i++) {
		const uint8_t *e = b + MBR_TABLE + i * MBR_ENTRY;

		if (e[4] == MBR_GPT) {
			memset(part, 0, DISK_PARTS_MAX * sizeof(part[0]));
			return parse_gpt(disk, read, arg, part);
		}
		if (e[4] == 0 || (e[0] & 0x7f) != 0 ||
		    !part_fits(disk, part_le(e + 8, 4), part_le(e + 12, 4)) ||
		    part_overlaps(part, n, part_le(e + 8, 4), part_le(e + 12, 4)))
			continue;
		part[i] = (struct partition){part_le(e + 8, 4), part_le(e + 12, 4)};
		n = i + 1;
	}
	return n;
}
