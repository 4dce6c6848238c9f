/*
 * probe.c - what is told of requests to disks (probe.h). The probes fire in blk.c.
 *
 * A bio is what DTrace's guide calls a buffer. The provider io tells of bios, and so do the events
 * of Linux with `bio` in their name. The other events tell of requests, into which bios were
 * merged.
 */
#include "kernel/block/probe.h"

#include "kernel/lib/string.h"

#define MAJOR(rdev) ((uint32_t)(rdev) >> 8 & 0xfff)
#define MINOR(rdev) ((uint32_t)(rdev)&0xff)
#define MINOR_BITS  20

#define IO_TYPES  ("struct bio *", "struct bio *", "struct bio *")
#define IO_ARGS   ("bufinfo_t *", "devinfo_t *", "fileinfo_t *")
#define IO_FORMAT ": buf %p dev %p file %p"

SDT_PROVIDER_DEFINE(io);
SDT_PROBE_DEFINE_TEXT_XLATE(io, , , start, "start", IO_FORMAT, 3, IO_TYPES, IO_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(io, , , done, "done", IO_FORMAT, 3, IO_TYPES, IO_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(io, , , wait_start, "wait-start", IO_FORMAT, 3, IO_TYPES, IO_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(io, , , wait_done, "wait-done", IO_FORMAT, 3, IO_TYPES, IO_ARGS);

/* Linux's lines (include/trace/events/block.h); () is what only requests of other kinds have. */
SDT_PROVIDER_DEFINE(block);
SDT_PROBE_DEFINE_TEXT(block, , , block_bio_queue, "block_bio_queue",
		      ": %{dev}pD %{rwbs}s %{sector}lu + %{nr_sector}u [%{comm}s]", 5, "dev_t",
		      "char *", "uint64_t", "uint32_t", "char *");
SDT_PROBE_DEFINE_TEXT(block, , , block_bio_backmerge, "block_bio_backmerge",
		      ": %{dev}pD %{rwbs}s %{sector}lu + %{nr_sector}u [%{comm}s]", 5, "dev_t",
		      "char *", "uint64_t", "uint32_t", "char *");
SDT_PROBE_DEFINE_TEXT(block, , , block_getrq, "block_getrq",
		      ": %{dev}pD %{rwbs}s %{sector}lu + %{nr_sector}u [%{comm}s]", 5, "dev_t",
		      "char *", "uint64_t", "uint32_t", "char *");
SDT_PROBE_DEFINE_TEXT(block, , , block_rq_insert, "block_rq_insert",
		      ": %{dev}pD %{rwbs}s %{bytes}u () %{sector}lu + %{nr_sector}u [%{comm}s]", 6,
		      "dev_t", "char *", "uint32_t", "uint64_t", "uint32_t", "char *");
SDT_PROBE_DEFINE_TEXT(block, , , block_rq_issue, "block_rq_issue",
		      ": %{dev}pD %{rwbs}s %{bytes}u () %{sector}lu + %{nr_sector}u [%{comm}s]", 6,
		      "dev_t", "char *", "uint32_t", "uint64_t", "uint32_t", "char *");
SDT_PROBE_DEFINE_TEXT(block, , , block_rq_complete, "block_rq_complete",
		      ": %{dev}pD %{rwbs}s () %{sector}lu + %{nr_sector}u [%{error}d]", 5, "dev_t",
		      "char *", "uint64_t", "uint32_t", "int");
SDT_PROBE_DEFINE_TEXT(block, , , block_rq_error, "block_rq_error",
		      ": %{dev}pD %{rwbs}s () %{sector}lu + %{nr_sector}u [%{error}d]", 5, "dev_t",
		      "char *", "uint64_t", "uint32_t", "int");
SDT_PROBE_DEFINE_TEXT(
    block, , , block_bio_remap, "block_bio_remap",
    ": %{dev}pD %{rwbs}s %{sector}lu + %{nr_sector}u <- (%{old_dev}pD) %{old_sector}lu", 6, "dev_t",
    "char *", "uint64_t", "uint32_t", "dev_t", "uint64_t");
SDT_PROBE_DEFINE_TEXT(block, , , block_plug, "block_plug", ": [%{comm}s]", 1, "char *");
SDT_PROBE_DEFINE_TEXT(block, , , block_unplug, "block_unplug", ": [%{comm}s] %{nr_rq}d", 2,
		      "char *", "int");

uint32_t
block_dev(const struct block_device *bdev)
{
	return MAJOR(bdev->number) << MINOR_BITS | MINOR(bdev->number);
}

const char *
block_rwbs(enum bio_op op, uint32_t flags)
{
	static const char *const write[] = {"WS", "WSM", "W", "WM"};

	if (op == BIO_FLUSH)
		return "FWS";
	if (op == BIO_READ)
		return flags & BIO_META ? "RM" : "R";
	return write[(flags & BIO_META ? 1 : 0) + (flags & BIO_BACKGROUND ? 2 : 0)];
}

const char *
request_rwbs(const struct request *rq)
{
	return rq->op == BIO_FLUSH ? "FF" : block_rwbs(rq->op, rq->flags);
}

void
tell_request(const struct ktr_site *ktr_probe_, const struct gendisk *disk,
	     const struct request *rq)
{
	SDT_ARGS6(block_dev(&disk->whole), request_rwbs(rq), rq->size, rq->sector,
		  rq->size / SECTOR_SIZE, sched_comm(curthread()));
}

size_t
bio_path(const struct bio *bio, char path[BIO_PATH_MAX])
{
	size_t n = 0;

	if (bio_file_path != NULL && !(bio->flags & BIO_META))
		n = bio_file_path(bio, path, BIO_PATH_MAX);
	return n != 0 ? n : strlcpy(path, "<unknown>", BIO_PATH_MAX);
}
