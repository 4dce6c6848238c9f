/*
 * uaccess.c - copies between kernel and user memory: checks the range; the port copies. No locks.
 */
#include "kernel/mm/uaccess.h"

#include "arch/mmu.h"
#include "arch/uaccess.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/page.h"

static bool
user_range(uint64_t addr, size_t n)
{
	return addr <= ARCH_USER_END && n <= ARCH_USER_END - addr;
}

/* Panics at a bad kernel pointer in user space (NULL): it would be served as the user's. */
static void
check_kernel_side(const void *p, size_t n)
{
	if (n > 0 && (uintptr_t)p < ARCH_USER_END)
		panic("user copy: %p is not a kernel address", p);
}

int
copy_in(void *dst, uint64_t usrc, size_t n)
{
	check_kernel_side(dst, n);
	return user_range(usrc, n) && arch_copy_user(dst, (const void *)usrc, n) ? 0 : -EFAULT;
}

int
copy_out(uint64_t udst, const void *src, size_t n)
{
	check_kernel_side(src, n);
	return user_range(udst, n) && arch_copy_user((void *)udst, src, n) ? 0 : -EFAULT;
}

int
copy_in_versioned(void *dst, size_t known, uint64_t usrc, size_t size, size_t first)
{
	uint8_t byte;

	if (size < first || size > PAGE_SIZE)
		return size < first ? -EINVAL : -E2BIG;
	for (size_t i = known; i < size; i++) {
		if (copy_in(&byte, usrc + i, 1) != 0)
			return -EFAULT;
		if (byte != 0)
			return -E2BIG;
	}
	return copy_in(dst, usrc, size < known ? size : known);
}

int
copy_in_str(char *dst, uint64_t usrc, size_t size)
{
	size_t room = user_range(usrc, size) ? size
		      : usrc < ARCH_USER_END ? ARCH_USER_END - usrc
					     : 0;
	long n;

	check_kernel_side(dst, size);
	if (room == 0)
		return -EFAULT;
	n = arch_copy_user_str(dst, (const char *)usrc, room);
	if (n < 0 || ((size_t)n == room && room < size))
		return -EFAULT;
	return (size_t)n == size ? -ENAMETOOLONG : (int)n;
}
