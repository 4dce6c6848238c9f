# arch.mk - what the build needs to know of this port.
CROSS        :=
# What Linux calls the function sys_NAME of a system call: PREFIXsys_NAME.
SYSCALL_PREFIX := __x64_
ARCH_CFLAGS  := -Wa,--noexecstack -m64 -mno-red-zone -mgeneral-regs-only -mcmodel=kernel -fno-pic -fno-pie
USER_CFLAGS  := -m64 -mgeneral-regs-only -fno-pic -fno-pie
# Five bytes of no-ops at the entry of each function, of which mkfbt makes one.
FBT_CFLAGS   := -fpatchable-function-entry=5 -fno-ipa-ra
IMAGE_SUFFIX :=
GRUB_BOOTS   := yes
