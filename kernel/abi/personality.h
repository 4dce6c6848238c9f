/* personality.h - what personality() sets, with Linux's numbers (include/uapi/linux/personality.h).
 */
#pragma once

#define ADDR_NO_RANDOMIZE 0x0040000u
