/* vm_private.h - between the files of kernel/vm. */
#pragma once

#include "kernel/sched/mutex.h"
#include "kernel/vm/vm.h"

struct area;

struct vmspace {
	uint32_t refs; /* atomic */
	bool shared;   /* several threads may run on it; changes only while one does */
	uint64_t root; /* constant */
	struct mutex lock;
	struct area *areas;
	unsigned area_count;
	uint64_t brk_start, brk_end;
	uint64_t size;      /* bytes of all areas */
	uint64_t resident;  /* pages mapped */
	uint64_t tables;    /* pages of the page table */
	struct uidinfo *ui; /* the user to whom the memory is counted */
};

/* The area that contains va, or NULL. lock held, as for all functions here. */
struct area *vm_find(const struct vmspace *vm, uint64_t va);
/* Adds an area where none is. NULL: no memory, or too many. */
struct area *vm_insert(struct vmspace *vm, uint64_t start, uint64_t end, unsigned prot);
/* No CPU uses an old entry of the page, or of any page, when it returns. */
void vm_flush_page(const struct vmspace *vm, uint64_t va);
void vm_flush_all(const struct vmspace *vm);
