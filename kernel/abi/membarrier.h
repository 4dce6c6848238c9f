/* membarrier.h - what membarrier() does, with Linux's numbers (include/uapi/linux/membarrier.h). */
#pragma once

#define MEMBARRIER_CMD_QUERY                      0
#define MEMBARRIER_CMD_GLOBAL                     1
#define MEMBARRIER_CMD_PRIVATE_EXPEDITED          8 /* between threads of a process that has registered */
#define MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED 16
