/* dirent.h - what getdents64 returns: Linux's struct linux_dirent64. */
#pragma once

#include <stdint.h>

struct linux_dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen; /* bytes of this record, a multiple of 8 */
	uint8_t d_type;
	char d_name[]; /* NUL-terminated */
};

#define DT_FIFO 1
#define DT_CHR  2
#define DT_DIR  4
#define DT_REG  8
#define DT_LNK  10
