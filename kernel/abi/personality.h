/* personality.h - what personality() sets, with Linux's numbers (include/uapi/linux/personality.h).
 */
#pragma once

#define STICKY_TIMEOUTS    0x4000000u /* poll() and its like leave the time alone */
#define ADDR_NO_RANDOMIZE  0x0040000u
#define READ_IMPLIES_EXEC  0x0400000u /* what is mapped to be read may be executed, too */
#define PER_CLEAR_ON_SETID 0x0740000u /* flags that exec clears for a program with other rights */
