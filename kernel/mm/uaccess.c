/*
 * uaccess.c - range checks in front of the port's fault-proof copies.
 */
#include "kernel/mm/uaccess.h"

#include <stdbool.h>

#include "arch/mmu.h"
#include "arch/uaccess.h"
#include "kernel/abi/errno.h"

static bool
user_range(uint64_t addr, size_t n)
{
	return addr <= ARCH_USER_END && n <= ARCH_USER_END - addr;
}

int
copy_in(void *dst, uint64_t usrc, size_t n)
{
	return user_range(usrc, n) && arch_copy_user(dst, (const void *)usrc, n) ? 0 : -EFAULT;
}

int
copy_out(uint64_t udst, const void *src, size_t n)
{
	return user_range(udst, n) && arch_copy_user((void *)udst, src, n) ? 0 : -EFAULT;
}

int
copy_in_str(char *dst, uint64_t usrc, size_t size)
{
	size_t room = user_range(usrc, size) ? size
		      : usrc < ARCH_USER_END ? ARCH_USER_END - usrc
					     : 0;
	long n;

	if (room == 0)
		return -EFAULT;
	n = arch_copy_user_str(dst, (const char *)usrc, room);
	if (n < 0 || ((size_t)n == room && room < size))
		return -EFAULT;
	return (size_t)n == size ? -ENAMETOOLONG : (int)n;
}
