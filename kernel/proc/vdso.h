/* vdso.h - the code that the kernel puts into each program, so that it need not be called. */
#pragma once

#include <stdbool.h>

#include "kernel/mm/page.h"
#include "kernel/vm/vm.h"

#define VDSO_AT (VM_STACK_TOP + PAGE_SIZE)

struct vnode;

/* Once, after clock_init(). */
void vdso_init(void);
/* The clock of the day was set. */
void vdso_clock_set(void);
/* Maps the vDSO into a new space. 0 or -ENOMEM. */
int vdso_map(struct vmspace *vm);
/* Is that what is mapped? It has no path. */
bool vdso_is(const struct vnode *vn);
