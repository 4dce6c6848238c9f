/* sysinfo.h - struct sysinfo, Linux's layout. What Kestrel does not have is 0. */
#pragma once

#include <stdint.h>

struct sysinfo {
	int64_t uptime; /* seconds */
	uint64_t loads[3];
	uint64_t totalram, freeram, sharedram, bufferram, totalswap, freeswap; /* in mem_unit */
	uint16_t procs, pad[3];
	uint64_t totalhigh, freehigh;
	uint32_t mem_unit, pad2; /* bytes */
};

_Static_assert(sizeof(struct sysinfo) == 112, "Linux's struct sysinfo");
