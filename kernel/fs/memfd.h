/* memfd.h - seals of files in memory (memfd_create(2)): thread context. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct file;
struct vnode;

/* fcntl(): F_ADD_SEALS, or F_GET_SEALS. Seals, 0 or -errno. */
int64_t memfd_fcntl(const struct file *f, bool add, uint64_t seals);
/* May the file be written to, or have this end? 0 or -EPERM. vn->lock held. */
int memfd_check(const struct vnode *vn, uint64_t end, bool writes);
/*
 * It is about to be mapped shared; writes: so that it can be written. *read_only: may it never be?
 * 0, or -EPERM: a seal forbids it. In any case memfd_map_end() follows, when it is mapped, but not
 * if *read_only was true before.
 */
int memfd_map_begin(struct vnode *vn, bool writes, bool *read_only);
void memfd_map_end(struct vnode *vn);
