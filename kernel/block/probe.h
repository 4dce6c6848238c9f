/*
 * probe.h - what is told of requests to disks (probe.c): DTrace's provider io, Linux's events of
 * the system block, and the class GEOM of the log. Any context but NMI.
 */
#pragma once

#include "kernel/block/bio.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(io);
SDT_PROBE_DECLARE(io, , , start);
SDT_PROBE_DECLARE(io, , , done);
SDT_PROBE_DECLARE(io, , , wait_start);
SDT_PROBE_DECLARE(io, , , wait_done);

SDT_PROVIDER_DECLARE(block);
SDT_PROBE_DECLARE(block, , , block_bio_queue);
SDT_PROBE_DECLARE(block, , , block_bio_remap);
SDT_PROBE_DECLARE(block, , , block_bio_backmerge);
SDT_PROBE_DECLARE(block, , , block_getrq);
SDT_PROBE_DECLARE(block, , , block_plug);
SDT_PROBE_DECLARE(block, , , block_unplug);
SDT_PROBE_DECLARE(block, , , block_rq_insert);
SDT_PROBE_DECLARE(block, , , block_rq_issue);
SDT_PROBE_DECLARE(block, , , block_rq_complete);
SDT_PROBE_DECLARE(block, , , block_rq_error);

#define BIO_PATH_MAX 128 /* bytes of a file's path, with NUL */

/* The device's number as in Linux's kernel: 20 bits are the minor number. */
uint32_t block_dev(const struct block_device *bdev);
/* What is done, as Linux has it: "R", "RM", "WS", "FF". Read-only data. */
const char *block_rwbs(enum bio_op op, uint32_t flags);
const char *request_rwbs(const struct request *rq);
/* What the event block_rq_insert says of a request that is yet to be. */
void tell_request(const struct ktr_site *site, const struct gendisk *disk,
		  const struct request *rq);
/* Writes the path of the bio's file, or "<unknown>"; returns its length. */
size_t bio_path(const struct bio *bio, char path[BIO_PATH_MAX]);

/* disk.c: writes the path of a bio's file; NULL: nobody knows files yet. */
extern size_t (*bio_file_path)(const struct bio *bio, char *buf, size_t size);
