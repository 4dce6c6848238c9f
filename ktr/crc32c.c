/*
 * crc32c.c - CRC-32C (Castagnoli), the checksum of frames: reflected polynomial 0x82f63b78, initial
 * value and final XOR all ones (RFC 3720, appendix B.4). Locking: none.
 */
#include "ktr/crc32c.h"

/* clang-format off */
/* What a byte adds is the sum of what its bits add: a table of 256 from 8, from bit 7 on. */
#define CRC_OF1(sum)             (sum)
#define CRC_OF2(sum, bit)        CRC_OF1(sum), CRC_OF1((sum) ^ (bit))
#define CRC_OF4(sum, bit, ...)   CRC_OF2(sum, __VA_ARGS__), CRC_OF2((sum) ^ (bit), __VA_ARGS__)
#define CRC_OF8(sum, bit, ...)   CRC_OF4(sum, __VA_ARGS__), CRC_OF4((sum) ^ (bit), __VA_ARGS__)
#define CRC_OF16(sum, bit, ...)  CRC_OF8(sum, __VA_ARGS__), CRC_OF8((sum) ^ (bit), __VA_ARGS__)
#define CRC_OF32(sum, bit, ...)  CRC_OF16(sum, __VA_ARGS__), CRC_OF16((sum) ^ (bit), __VA_ARGS__)
#define CRC_OF64(sum, bit, ...)  CRC_OF32(sum, __VA_ARGS__), CRC_OF32((sum) ^ (bit), __VA_ARGS__)
#define CRC_OF128(sum, bit, ...) CRC_OF64(sum, __VA_ARGS__), CRC_OF64((sum) ^ (bit), __VA_ARGS__)
#define CRC_OF256(bit, ...)      {CRC_OF128(0u, __VA_ARGS__), CRC_OF128(bit, __VA_ARGS__)}

/* Row n: what a byte adds that n others follow. Each bit is the one before, shifted once more. */
static const uint32_t crc32c_table[][256] = {
    CRC_OF256(0x82f63b78u, 0x417b1dbcu, 0x20bd8edeu, 0x105ec76fu, 0x8ad958cfu, 0xc79a971fu, 0xe13b70f7u, 0xf26b8303u),
#ifndef KTR_SMALL
    CRC_OF256(0xfbc3faf9u, 0xff17c604u, 0x7f8be302u, 0x3fc5f181u, 0x9d14c3b8u, 0x4e8a61dcu, 0x274530eeu, 0x13a29877u),
    CRC_OF256(0x8b277743u, 0xc76580d9u, 0xe144fb14u, 0x70a27d8au, 0x38513ec5u, 0x9edea41au, 0x4f6f520du, 0xa541927eu),
    CRC_OF256(0x52a0c93fu, 0xaba65fe7u, 0xd725148bu, 0xe964b13du, 0xf64463e6u, 0x7b2231f3u, 0xbf672381u, 0xdd45aab8u),
    CRC_OF256(0x6ea2d55cu, 0x37516aaeu, 0x1ba8b557u, 0x8f2261d3u, 0xc5670b91u, 0xe045beb0u, 0x7022df58u, 0x38116facu),
    CRC_OF256(0x1c08b7d6u, 0x0e045bebu, 0x85f4168du, 0xc00c303eu, 0x6006181fu, 0xb2f53777u, 0xdb8ca0c3u, 0xef306b19u),
    CRC_OF256(0xf56e0ef4u, 0x7ab7077au, 0x3d5b83bdu, 0x9c5bfaa6u, 0x4e2dfd53u, 0xa5e0c5d1u, 0xd0065990u, 0x68032cc8u),
    CRC_OF256(0x34019664u, 0x1a00cb32u, 0x0d006599u, 0x847609b4u, 0x423b04dau, 0x211d826du, 0x9278fa4eu, 0x493c7d27u),
#endif
};
/* clang-format on */

uint32_t
ktr_crc32c(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint32_t crc = 0xffffffff;
#if !defined(KTR_SMALL) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (; len >= 8; len -= 8, p += 8) { /* a load and eight look-ups */
		uint64_t w;
		__builtin_memcpy(&w, p, 8);
		w ^= crc;
		crc = crc32c_table[7][w & 0xff] ^ crc32c_table[6][w >> 8 & 0xff] ^
		      crc32c_table[5][w >> 16 & 0xff] ^ crc32c_table[4][w >> 24 & 0xff] ^
		      crc32c_table[3][w >> 32 & 0xff] ^ crc32c_table[2][w >> 40 & 0xff] ^
		      crc32c_table[1][w >> 48 & 0xff] ^ crc32c_table[0][w >> 56];
	}
#endif
	for (; len > 0; len--, p++)
		crc = crc >> 8 ^ crc32c_table[0][(crc ^ *p) & 0xff];
	return ~crc;
}
