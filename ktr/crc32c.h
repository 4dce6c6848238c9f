/*
 * crc32c.h - CRC-32C (Castagnoli). Any context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** The checksum of len bytes; of "123456789" it is 0xe3069283. */
uint32_t ktr_crc32c(const void *data, size_t len);
