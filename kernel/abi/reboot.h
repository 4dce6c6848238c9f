/* reboot.h - what reboot() takes, Linux's. */
#pragma once

#define REBOOT_MAGIC1  0xfee1deadu
#define REBOOT_MAGIC2  672274793u
#define REBOOT_MAGIC2A 85072278u
#define REBOOT_MAGIC2B 369367448u
#define REBOOT_MAGIC2C 537993216u

#define REBOOT_CAD_OFF   0x00000000u
#define REBOOT_CAD_ON    0x89abcdefu
#define REBOOT_RESTART   0x01234567u
#define REBOOT_RESTART2  0xa1b2c3d4u
#define REBOOT_HALT      0xcdef0123u
#define REBOOT_POWER_OFF 0x4321fedcu
