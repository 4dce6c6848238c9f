/* cc.h - what lwIP asks of its compiler and its kernel (lwIP 2.1.3, src/include/lwip/arch.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/panic.h"
#include "kernel/mm/heap.h"

#define BYTE_ORDER __BYTE_ORDER__
#undef LITTLE_ENDIAN
#undef BIG_ENDIAN
#define LITTLE_ENDIAN __ORDER_LITTLE_ENDIAN__
#define BIG_ENDIAN    __ORDER_BIG_ENDIAN__
/* lwIP would call functions. */
#define lwip_htons(x)             __builtin_bswap16(x)
#define lwip_htonl(x)             __builtin_bswap32(x)
#define LWIP_PLATFORM_DIAG(x)     ((void)0)
#define LWIP_PLATFORM_ASSERT(why) panic("lwip: %s", why)
#define LWIP_RAND()               inet_random()

/* kernel/net/inet/core.c. */
void *inet_calloc(size_t count, size_t size);
uint32_t inet_random(void);
/* Panics if the current thread does not hold the lock of the network. */
void inet_assert_locked(void);
