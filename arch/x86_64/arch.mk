# arch.mk - what the build needs to know of this port.
CROSS        :=
ARCH_CFLAGS  := -Wa,--noexecstack -m64 -mno-red-zone -mgeneral-regs-only -mcmodel=kernel -fno-pic -fno-pie
USER_CFLAGS  := -m64 -mgeneral-regs-only -fno-pic -fno-pie
# A no-op at the entry of each function, 5 bytes in one: what a call of mcount would be.
FBT_CFLAGS   := -pg -mfentry -mnop-mcount
IMAGE_SUFFIX :=
GRUB_BOOTS   := yes
