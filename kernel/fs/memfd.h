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
 * Call this before the file is mapped shared; `writes`: so that it can be written. *read_only
 * becomes true if it may never be written through this map. 0, or -EPERM if a seal forbids the map.
 * In any case memfd_map_end() follows when the map is there, unless *read_only was true before the
 * call.
 */
int memfd_map_begin(struct vnode *vn, bool writes, bool *read_only);
void memfd_map_end(struct vnode *vn);
