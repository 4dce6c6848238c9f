# arch.mk - what the build needs to know of this port.
CROSS        := aarch64-linux-gnu-
# What Linux calls the function sys_NAME of a system call: PREFIXsys_NAME.
SYSCALL_PREFIX := __arm64_
ARCH_CFLAGS  := -Wa,--noexecstack -march=armv8-a -mgeneral-regs-only -mno-outline-atomics -mcmodel=small -fno-pic -fno-pie
USER_CFLAGS  := -march=armv8-a -mgeneral-regs-only -mno-outline-atomics -fno-pic -fno-pie
# GCC moves the address of a call that is a jump into this register, unless it is there already (kernel/dtrace/engine.h).
ARCH_CFLAGS  += '-DDIF_PORT_JUMP_REGISTER="x16"'
# A no-op at the entry of each function.
FBT_CFLAGS   := -fpatchable-function-entry=1 -fno-ipa-ra
# What loaders take is the raw image, with Linux's header (Linux Documentation/arm64/booting.rst).
IMAGE_SUFFIX := .img
