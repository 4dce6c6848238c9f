# Makefile - builds, runs and tests Kestrel. `make help` lists the targets.
#
#	ARCH=x86_64 or aarch64   the machine (default: x86_64; `make test` without it: both)
#	KTR_COMPILE=SCHED,PROC   event classes to compile in (default: all)
#	SMP= MEM= MASK= TRACE= ARGS=   for run and debug: CPUs, memory, event mask, trace file,
#	                               further loader parameters

ARCHS       := x86_64 aarch64
ARCH        ?= x86_64
SMP         ?= 4
MEM         ?= 256M
MASK        ?=
TRACE       ?= build/$(ARCH)/run.ktr
ARGS        ?=
KTR_COMPILE ?=

B := build/$(ARCH)
H := build/host

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# As many jobs as there are CPUs, unless -j says otherwise.
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
SHELL := /bin/sh
# `make V=1` shows whole commands.
Q := $(if $(V),,@)
say = $(if $(V),,$(info $(empty) $(1)	$@))
# Makes the folder of the target, once for all of its files; with -n, too: make expands a recipe before it asks.
folder = $(if $(made_$(@D)),,$(eval made_$(@D) := 1)$(shell mkdir -p $(@D)))

ifeq ($(filter $(ARCH),$(ARCHS)),)
$(error ARCH=$(ARCH): expected one of $(ARCHS))
endif
include arch/$(ARCH)/arch.mk
include ktr/sources.mk

CC     := $(CROSS)gcc
LD     := $(CROSS)ld
AR     := $(CROSS)gcc-ar
OBJCOPY := $(CROSS)objcopy
HOSTCC := gcc

WARN := -Wall -Wextra -Wno-unused-parameter -Werror -Wmissing-prototypes -Wstrict-prototypes -Wundef -Wvla
REPRODUCIBLE := -ffile-prefix-map=$(CURDIR)=. -Wdate-time
KTR_DEFS = $(if $(KTR_COMPILE),'-DKTR_COMPILE_MASK=(KTR_$(subst $(comma),|KTR_,$(subst |,$(comma),$(KTR_COMPILE))))')
comma := ,

# The kernel's names of files begin at the root: those that -I. has found, too.
KERNEL_CFLAGS = -std=gnu11 -O2 -g -ffreestanding $(ARCH_CFLAGS) -fno-omit-frame-pointer \
	-fno-optimize-sibling-calls -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -fno-unwind-tables \
	-fno-strict-aliasing -fwrapv $(WARN) $(REPRODUCIBLE) -fmacro-prefix-map=./= $(KTR_DEFS) \
	-I. -Iarch/$(ARCH) -Ikernel/abi/$(ARCH) -Ikernel/trace
# The guest's programs are Debian's busybox and our own over musl; qemu/fetch-guest gets both.
GUEST := build/guest/$(ARCH)
MUSL  := $(GUEST)/musl
# What cannot be built without them is left out; tests/run names what it skips then.
# Nor are they got for what has no guest.
for_guest := $(filter-out clean help ktr-amalgamation dif-amalgamation ktr-example test-xv6 test-freertos build/ktr/% build/host/%,$(or $(MAKECMDGOALS),all))
userland = $(filter 2,$(words $(wildcard $(GUEST)/busybox $(MUSL)/lib/libc.a)))
ifeq ($(if $(for_guest),$(userland),2),)
$(info make: no $(GUEST): getting Debian's busybox-static and musl-dev for the guest)
$(info $(shell qemu/fetch-guest $(ARCH) >&2 || echo "make: without them there is no initial RAM disk: no guest runs"))
endif
HAVE_USERLAND := $(userland)
USER_CFLAGS_ALL = -std=gnu11 -D__kestrel__ -D_GNU_SOURCE -O2 -nostdinc -isystem $(MUSL)/include -isystem $(shell $(CC) -print-file-name=include) \
	$(USER_CFLAGS) -fno-omit-frame-pointer -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables \
	-ffunction-sections -fdata-sections $(WARN) $(REPRODUCIBLE) \
	-I. -Iuserland/lib -Ikernel/abi/$(ARCH)
HOST_CFLAGS = -std=gnu11 -O2 -g $(WARN) -I. -Iktr/port/host

# The Internet protocols are lwIP's, which Debian has as a source package. Without it there is no AF_INET.
LWIP := build/guest/source/lwip
ifeq ($(if $(for_guest),$(wildcard $(LWIP)/src),2),)
$(info make: no $(LWIP): getting the source of lwIP)
$(info $(shell qemu/fetch-guest --source lwip >&2 || echo "make: without it the guest has no AF_INET"))
endif
LWIP_SRCS := $(addprefix $(LWIP)/src/,$(addprefix core/,def.c inet_chksum.c init.c ip.c mem.c memp.c netif.c pbuf.c raw.c stats.c \
	tcp.c tcp_in.c tcp_out.c udp.c) $(addprefix core/ipv4/,etharp.c icmp.c ip4.c ip4_addr.c ip4_frag.c) netif/ethernet.c)
LWIP_FOLDERS := core netif core/ipv4
LWIP_CFLAGS := -Ikernel/net/lwip -I$(LWIP)/src/include -isystem kernel/net/lwip/libc
INET_SRCS := $(wildcard kernel/net/inet/*.c)

# ---- the kernel -------------------------------------------------------------------------------

KERNEL_SRCS := $(filter-out kernel/host/%,$(wildcard kernel/*.c kernel/*/*.c)) $(wildcard kernel/ftrace/*/*.c kernel/dev/virtio/*.c kernel/fs/*/*.c arch/$(ARCH)/*.c arch/$(ARCH)/*.S) $(KTR_KERNEL_SRCS) $(KTR_FORMAT_SRCS)
KERNEL_OBJS := $(KERNEL_SRCS:%=$B/obj/%.o)
ifneq ($(wildcard $(LWIP)/src),)
KERNEL_OBJS += $(INET_SRCS:%=$B/obj/%.o) $(LWIP_SRCS:$(LWIP)/%=$B/obj/lwip/%.o)
endif
KTEST_OBJS  := $(patsubst %,$B/obj/%.o,$(wildcard tests/kernel/*.c))
LDSCRIPT    := arch/$(ARCH)/kernel.ld
KERNEL_LDFLAGS := -nostdlib -static -z noexecstack -z max-page-size=4096 --no-warn-rwx-segments \
	--build-id=sha1 -T $(LDSCRIPT)

# Objects depend on the flags, by a file that changes only when they do.
FLAGS := $B/flags
$(shell mkdir -p $B; printf '%s\n' '$(subst ','\'',$(KERNEL_CFLAGS) $(FBT_CFLAGS))' | cmp -s - $(FLAGS) 2>/dev/null || \
	printf '%s\n' '$(subst ','\'',$(KERNEL_CFLAGS) $(FBT_CFLAGS))' > $(FLAGS))

# Function boundary tracing: where it leaves the record path alone (kernel/probe/fbt.h).
FBT_NONE := ktr/%.c kernel/dtrace/%.c
$(KERNEL_OBJS) $(KTEST_OBJS): FBT_FLAGS = $(if $(filter $(FBT_NONE),$<),,$(FBT_CFLAGS) -include arch/$(ARCH)/md/fbt_return.h)

# The one file in which a function's last call may be a jump.
$B/obj/kernel/probe/demo.c.o: KERNEL_CFLAGS += -foptimize-sibling-calls
# Nor has the program engine probes.
$B/obj/kernel/dtrace/%.o: KERNEL_CFLAGS += -foptimize-sibling-calls

$B/obj/%.c.o: %.c $(FLAGS)
	$(folder)
	$(call say,CC)
	$Q$(CC) $(KERNEL_CFLAGS) $(FBT_FLAGS) -MMD -MP -c $< -o $@

# Its authors' warnings are not ours. Its files are called lwip/NAME.c, after which the module of its probes is called.
$(INET_SRCS:%=$B/obj/%.o): KERNEL_CFLAGS += $(LWIP_CFLAGS)
$B/obj/lwip/%.c.o: $(LWIP)/%.c $(FLAGS)
	$(folder)
	$(call say,CC)
	$Q$(CC) $(filter-out $(WARN),$(KERNEL_CFLAGS)) $(LWIP_CFLAGS) -w $(LWIP_FOLDERS:%=-ffile-prefix-map=$(LWIP)/src/%=lwip) $(FBT_FLAGS) -MMD -MP -c $< -o $@

$B/obj/%.S.o: %.S $(FLAGS)
	$(folder)
	$(call say,CC)
	$Q$(CC) $(KERNEL_CFLAGS) -MMD -MP -c $< -o $@

# Three links: the second adds probes for the functions of the first, the third adds the symbols of the second.
# Each time what is added moves nothing of what it was made from.
define link_kernel
	$(call say,LINK)
	$Q$(LD) $(KERNEL_LDFLAGS) -o $@.1 $(filter %.o,$^)
	$Q$H/mkfbt $@.1 kernel/probe/noprobe >$@.fbt.S
	$Q$(CC) $(ARCH_CFLAGS) -x assembler -c $@.fbt.S -o $@.fbt.o
	$Q$(LD) $(KERNEL_LDFLAGS) -o $@.2 $(filter %.o,$^) $@.fbt.o
	$Q$H/mksyms $@.2 $@.ksyms $(SYSCALL_PREFIX)
	$Qprintf '.section .ksyms,"a"\n.incbin "%s"\n' $@.ksyms | $(CC) $(ARCH_CFLAGS) -x assembler -c - -o $@.ksyms.o
	$Q$(LD) $(KERNEL_LDFLAGS) -o $@.3 $(filter %.o,$^) $@.fbt.o $@.ksyms.o
	$Q$H/mksyms --check $@.2 $@.3
	$Q$H/mkfbt $@.3 kernel/probe/noprobe | cmp - $@.fbt.S
	$Q$H/mkfbt --fuse $@.3
	@rm -f $@.1 $@.2 $@.fbt.o $@.ksyms $@.ksyms.o
	@mv $@.3 $@
endef
# The code that each program gets: a shared object of one page, in the kernel as it is.
$B/vdso.so: kernel/proc/vdso/vdso.c kernel/proc/vdso/vdso.ld arch/$(ARCH)/md/vdso.map $(FLAGS)
	$(call say,LINK)
	$Q$(CC) -std=gnu11 -O2 -ffreestanding $(filter -m%,$(USER_CFLAGS)) -fPIC -fno-stack-protector -fcf-protection=none $(WARN) $(REPRODUCIBLE) \
		-I. -Iarch/$(ARCH) -Ikernel/abi/$(ARCH) -MMD -MP -MF $(@:.so=.c.d) -s -shared -nostdlib -Wl,--hash-style=both,-Bsymbolic,-soname=linux-vdso.so.1 \
		-Wl,--build-id=none,--eh-frame-hdr,-z,max-page-size=4096,--version-script=arch/$(ARCH)/md/vdso.map -T kernel/proc/vdso/vdso.ld -o $@ $<

$B/vdso.o: $B/vdso.so
	$Qprintf '.section .rodata\n.globl vdso_image\nvdso_image:\n.incbin "%s"\n.org vdso_image + 4096\n' $< | $(CC) $(ARCH_CFLAGS) -x assembler -c - -o $@

LINK_TOOLS := $(LDSCRIPT) kernel/sections.ld $H/mksyms $H/mkfbt kernel/probe/noprobe

$B/kestrel: $(KERNEL_OBJS) $B/vdso.o $(LINK_TOOLS)
	$(link_kernel)

# Allocations of its kernel can be made to fail: tests/kernel/fail_alloc.c.
$B/kestrel-test: KERNEL_LDFLAGS += --wrap=kmalloc --wrap=kzalloc
$B/kestrel-test: $(KERNEL_OBJS) $B/vdso.o $(KTEST_OBJS) $(LINK_TOOLS)
	$(link_kernel)

# As it is built where the source of lwIP cannot be had (system/test_net).
$B/kestrel-without-inet: $(filter-out $B/obj/kernel/net/inet/% $B/obj/lwip/%,$(KERNEL_OBJS)) $B/vdso.o $(LINK_TOOLS)
	$(link_kernel)

define compile_link_tool
	$(folder)
	$(call say,CC)
	$Q$(HOSTCC) $(HOST_CFLAGS) -D_GNU_SOURCE -MMD -MP -MF $@.c.d -o $@ $< -ldw -lelf
endef
$H/mkfbt $H/mksyms $H/mkvars: $H/%: kernel/host/%.c
	$(compile_link_tool)

# What dtrace knows of the kernel: its types (BTF) and, for the host, its symbols.
$B/%.btf: $B/%
	$(call say,BTF)
	$Qpahole --btf_encode_detached=$@ $<
	@chmod 644 $@

$B/%.vars: $B/% $H/mkvars
	$(call say,VARS)
	$Q$H/mkvars $< | LC_ALL=C sort -u > $@

$B/%.ksyms: $B/%
	$(call say,SYMS)
	$Q$(OBJCOPY) -O binary --only-section=.ksyms $< $@

# Where loaders take a raw image: the loaded sections as they lie in memory.
ifneq ($(IMAGE_SUFFIX),)
$B/%$(IMAGE_SUFFIX): $B/%
	$(call say,IMAGE)
	$Q$(OBJCOPY) -O binary $< $@
endif

# ---- userland ---------------------------------------------------------------------------------

# What our programs share: options with help, tables, Kestrel's own system calls, and three files of the log.
ULIB_KTR  := ktr/fmt.c ktr/glob.c ktr/word.c
ULIB_OBJS := $(patsubst %,$B/user/%.o,$(wildcard userland/lib/*.c) $(ULIB_KTR))

# A tool is one file of userland/bin, or a folder of them; ktrdump is the host's, with its guest's default.
TOOLS_1   := $(patsubst userland/bin/%.c,%,$(wildcard userland/bin/*.c))
TOOLS_N   := $(patsubst userland/bin/%/,%,$(wildcard userland/bin/*/))
USER_BINS := $(addprefix $B/root/bin/,$(TOOLS_1) $(TOOLS_N) ktrdump)
KTRDUMP_GUEST_OBJS := $(patsubst %,$B/user/%.o,$(filter-out $(ULIB_KTR),$(KTR_TOOL_SRCS)))

UFLAGS := $B/user.flags
$(shell printf '%s\n' '$(USER_CFLAGS_ALL)' | cmp -s - $(UFLAGS) 2>/dev/null || \
	printf '%s\n' '$(USER_CFLAGS_ALL)' > $(UFLAGS))

$B/user/%.o: % $(UFLAGS)
	$(folder)
	$(call say,CC)
	$Q$(CC) $(USER_CFLAGS_ALL) $(if $(filter ktr/%,$<),-DKTRDUMP_DEFAULT_INPUT='"/dev/ktr"') -MMD -MP -c $< -o $@

$B/user/libkestrel.a: $(ULIB_OBJS)
	@rm -f $@
	$(call say,AR)
	$Q$(AR) rcsD $@ $^

define link_user
	$(folder)
	$(call say,LINK)
	$Q$(CC) $(USER_CFLAGS) -nostdlib -static -Wl,-z,separate-code,-z,noexecstack,-z,max-page-size=4096 \
		-Wl,-Ttext-segment=0x400000,--gc-sections,--build-id=none,-S -o $@ $(MUSL)/lib/crt1.o $(MUSL)/lib/crti.o \
		$(filter %.o,$^) $B/user/libkestrel.a $(MUSL)/lib/libc.a -lgcc $(MUSL)/lib/crtn.o
endef

.SECONDEXPANSION:
$(addprefix $B/root/bin/,$(TOOLS_1)): $B/root/bin/%: $B/user/userland/bin/%.c.o $B/user/libkestrel.a
	$(link_user)

$(addprefix $B/root/bin/,$(TOOLS_N)): $B/root/bin/%: $$(patsubst $$(percent),$B/user/$$(percent).o,$$(wildcard userland/bin/$$*/*.c userland/bin/$$*/*/*.c)) $B/user/libkestrel.a
	$(link_user)
percent := %

# It knows the kernel's types as dtrace does.
$B/root/bin/ktr: $(patsubst %,$B/user/userland/bin/dtrace/%.c.o,btf error files type type_btf)

$B/root/bin/ktrdump: $(KTRDUMP_GUEST_OBJS) $B/user/libkestrel.a
	$(link_user)

# A program of tests that runs in the guest; tests/system/test_user.py brings it there.
USER_TEST_OBJS := $(patsubst %,$B/user/%.o,$(wildcard tests/user/*.c tests/user/$(ARCH)/*.c))
$B/user_test: $(USER_TEST_OBJS) $B/user/libkestrel.a
	$(link_user)

# A program of Linux, for tests: the ordinary compiler's, static. Tests compare with what this machine's does here.
HOST_ARCH := $(filter $(ARCHS),$(shell uname -m))
HOST_LINUX_TEST := $(HOST_ARCH:%=build/%/linux_test)
LINUX_TEST_OBJS = $(patsubst tests/linux/%,build/$(1)/linux/%.o,$(wildcard tests/linux/*.c tests/linux/$(1)/*.c))

# $(1): architecture; $(2): compiler
define linux_test
build/$(1)/linux/%.c.o: tests/linux/%.c
	$$(folder)
	$$(call say,CC)
	$$Q$(2) -std=gnu11 -O1 -g1 $$(WARN) -I. -pthread -MMD -MP -c $$< -o $$@

build/$(1)/linux_test: $(LINUX_TEST_OBJS)
	$$(call say,LINK)
	$$Q$(2) -static -pthread -o $$@ $$^ -lm

-include $(LINUX_TEST_OBJS:.o=.d)
endef
$(foreach arch,$(sort $(ARCH) $(HOST_ARCH)),$(eval $(call linux_test,$(arch),$(if $(filter $(ARCH),$(arch)),$(CC),$(HOSTCC)))))

# The same objects, started by Debian's dynamic linker. Its libraries lie beside it, under the names that it asks for.
$B/linux_test_dynamic: $(call LINUX_TEST_OBJS,$(ARCH))
	$(call say,LINK)
	$Q$(CC) -pthread -o $@ $^ -lm

# The initial RAM disk: a newc archive, the same bytes from the same files.
ROOT_FILES := $(shell find userland/root -type f) arch/$(ARCH)/regs.d
$B/initrd.cpio: $(USER_BINS) $(ROOT_FILES) userland/applets $(GUEST)/busybox $B/kestrel.btf $B/kestrel.vars
	@rm -rf $B/stage && mkdir -p $B/stage/bin $B/stage/dev $B/stage/tmp $B/stage/usr/sbin $B/stage/var
	@ln -s ../tmp $B/stage/var/tmp
	@cp -R userland/root/. $B/stage/
	@cp arch/$(ARCH)/regs.d $B/stage/usr/lib/dtrace/
	@cp $(USER_BINS) $B/stage/bin/
	@cp $B/kestrel.btf $B/kestrel.vars $B/stage/boot/
	@cp $(GUEST)/busybox $B/stage/bin/
	@for applet in $$(cat userland/applets); do ln -sf busybox "$B/stage/bin/$$applet"; done
	@ln -f $B/stage/bin/dtrace $B/stage/usr/sbin/dtrace
	@find $B/stage -exec touch -h -d @0 {} +
	$(call say,CPIO)
	$Q(cd $B/stage && find . -mindepth 1 | LC_ALL=C sort | cpio -o -H newc -R 0:0 --reproducible --quiet) > $@

# ---- the boot image ---------------------------------------------------------------------------

# What grub.cfg uses, and nothing else: GRUB unpacks all of it, and would look for more on the disk, before it boots.
GRUB_MODULES := normal search search_fs_file test eval configfile multiboot2 boot part_msdos part_gpt iso9660 fat

# The image starts on the firmware for which GRUB is installed: it is made again when that changes.
GRUB_PLATFORMS := $B/grub.platforms
ifneq ($(GRUB_BOOTS),)
$(shell now=$(GRUB_PLATFORMS).$$$$; ls -d /usr/lib/grub/*-*/ > $$now 2>/dev/null; cmp -s $$now $(GRUB_PLATFORMS) || \
	cp $$now $(GRUB_PLATFORMS); rm -f $$now)
endif

$B/kestrel.iso: $B/kestrel $B/initrd.cpio qemu/grub/grub.cfg userland/root/boot/loader.conf Makefile $(GRUB_PLATFORMS)
	@rm -rf $B/iso && mkdir -p $B/iso/boot/grub
	@cp $B/initrd.cpio userland/root/boot/loader.conf $B/iso/boot/
	@$(OBJCOPY) --strip-all $B/kestrel $B/iso/boot/kestrel # GRUB would load what is for debuggers, too
	@cp qemu/grub/grub.cfg $B/iso/boot/grub/
	$(call say,ISO)
	$Qgrub-mkrescue -o $@ --modules='$(GRUB_MODULES)' --install-modules='$(GRUB_MODULES)' --fonts= --locales= --themes= \
		$B/iso >$B/iso.log 2>&1 || { cat $B/iso.log; exit 1; }

# ---- host tools and unit tests ----------------------------------------------------------------

$H/obj/%.o: %
	$(folder)
	$(call say,HOSTCC)
	$Q$(HOSTCC) $(HOST_CFLAGS) -MMD -MP -c $< -o $@

KTRDUMP_OBJS := $(patsubst %,$H/obj/%.o,$(sort $(KTR_TOOL_SRCS) $(KTR_TOOL_HOST_SRCS) $(KTR_HOST_SRCS)))
$H/ktrdump: $(KTRDUMP_OBJS)
	$(call say,HOSTCC)
	$Q$(HOSTCC) -o $@ $^ -lelf -lz -lpthread
# It has them within it.
$H/obj/ktr/tools/export/html_page.c.o: $(wildcard ktr/tools/export/html/*)

# kdump reads traces of any architecture; what the kernel's headers call by the same name everywhere is the first one's.
KDUMP_SRCS := $(wildcard userland/bin/kdump/*.c) userland/lib/tool.c
KDUMP_OBJS := $(KDUMP_SRCS:%=$H/obj/%.o)
KDUMP_CFLAGS := -Iuserland/lib -Ikernel/abi/$(firstword $(ARCHS))
$(KDUMP_OBJS): HOST_CFLAGS += $(KDUMP_CFLAGS)
$H/kdump: $(KDUMP_OBJS)
	$(call say,HOSTCC)
	$Q$(HOSTCC) -o $@ $^

# dtrace(1), from the guest's source. With the program engine and what reads traces, for -r (kernel/dtrace/host/).
DTRACE_SRCS := $(wildcard userland/bin/dtrace/*.c userland/bin/dtrace/*/*.c)

# Every tests/unit/*_test.c is a program over all of ktr's host sources, the kernel's pure parsers, and the model of exports.
UNIT_SRCS  := $(wildcard tests/unit/*_test.c)
UNIT_TESTS := $(patsubst tests/unit/%.c,$H/unit/%,$(UNIT_SRCS))
# The program engine, over a kernel that a test makes up.
DIF_HOST_SRCS := $(addprefix kernel/dtrace/,aggregate.c decode.c load.c memory.c probe.c record.c run.c status.c string.c subr.c variable.c verify.c \
	host/port.c)
PURE_SRCS  := $(DIF_HOST_SRCS) kernel/ftrace/event/filter.c kernel/ftrace/event/program.c kernel/sysctl/loader_conf.c kernel/fs/cpio.c kernel/lib/fair.c kernel/lib/fdt.c kernel/lib/fdt_bus.c kernel/lib/leftist.c \
	ktr/tools/export/lane.c ktr/tools/linux.c ktr/tools/memory.c ktr/tools/model/activity.c ktr/tools/model/activity_meaning.c \
	ktr/tools/reverse.c userland/bin/dtrace/btf.c
UNIT_LIB_OBJS := $(patsubst %,$H/obj/%.o,$(KTR_HOST_SRCS) $(PURE_SRCS))
UNIT_GENS  := $(patsubst tests/unit/%.c,$H/unit/%,$(wildcard tests/unit/*_gen.c))

$H/unit/%: $H/obj/tests/unit/%.c.o $(UNIT_LIB_OBJS)
	$(folder)
	$(call say,HOSTCC)
	$Q$(HOSTCC) $(LINK_FLAGS) -o $@ $^ -lcmocka -lpthread

RECORDED_SRCS := $(addprefix kernel/dtrace/host/,recorded.c recorded_input.c remote.c remote_elf.c remote_line.c remote_sound.c)
DTRACE_DEVICE_SRCS := $(DTRACE_SRCS) $(DIF_HOST_SRCS) kernel/dtrace/host/device.c
DTRACE_LDFLAGS := -Wl,--wrap=open,--wrap=ioctl
$(patsubst %,$H/obj/%.o,$(DTRACE_DEVICE_SRCS) tests/unit/dtrace_hosted.c $(RECORDED_SRCS)): HOST_CFLAGS += -D_GNU_SOURCE
DTRACE_OBJS := $(patsubst %,$H/obj/%.o,$(sort $(DTRACE_DEVICE_SRCS) $(RECORDED_SRCS) kernel/probe/rate.c \
	$(filter-out %/ktrdump_main.c,$(KTR_TOOL_SRCS)) $(KTR_TOOL_HOST_SRCS) $(KTR_HOST_SRCS)))
$H/dtrace: $(DTRACE_OBJS)
	$(call say,HOSTCC)
	$Q$(HOSTCC) -o $@ $^ $(DTRACE_LDFLAGS) -lelf -lz -lpthread

# The same without traces, for D programs that need no kernel (tests/unit/dtrace_hosted.c).
DTRACE_HOSTED_OBJS := $(patsubst %,$H/obj/%.o,$(DTRACE_DEVICE_SRCS) $(KTR_HOST_SRCS) tests/unit/dtrace_hosted.c)
$H/dtrace-hosted: $(DTRACE_HOSTED_OBJS)
	$(call say,HOSTCC)
	$Q$(HOSTCC) -o $@ $^ $(DTRACE_LDFLAGS) -lpthread

# What each port says of instructions.
INSN_PROBES := $(ARCHS:%=$H/unit/insn_%)
$(INSN_PROBES): $H/unit/insn_%: tests/unit/insn_probe.c arch/%/insn.c
	$(folder)
	$(call say,HOSTCC)
	$Q$(HOSTCC) $(HOST_CFLAGS) -Iarch/$* -MMD -MP -MF $@.c.d -include arch/$*/insn.c -o $@ $<

# It takes itself for a kernel, which is at the addresses that its file says.
$H/unit/ktr_core_gen: LINK_FLAGS = -no-pie

# ---- targets ----------------------------------------------------------------------------------

.PHONY: all run debug console test check test-guests docs-refresh stress lint format clean help unit-tests compile_commands.json
.SECONDARY:

BOOT_FILES := $B/kestrel$(IMAGE_SUFFIX) $(if $(HAVE_USERLAND),$B/initrd.cpio $(if $(GRUB_BOOTS),$B/kestrel.iso))

all: $B/kestrel $(BOOT_FILES) $H/ktrdump $H/kdump $H/dtrace $B/kestrel.ksyms ## build the kernel, what boots it and the host's tools

BOOT_OPTIONS = --arch $(ARCH) --smp $(SMP) --mem $(MEM) $(if $(MASK),--mask '$(MASK)') --trace '$(TRACE)' \
	$(if $(ARGS),--append '$(ARGS)') $(PROGRAMS:%=--program %)

run: all ## boot its image in QEMU, console here, or commands from a pipe: SMP= MEM= MASK= TRACE= ARGS= PROGRAMS=
	qemu/boot $(if $(GRUB_BOOTS),--firmware bios) $(BOOT_OPTIONS)

debug: all ## the same machine under gdb, which starts here with symbols; CORE=FILE: gdb on a memory dump
	qemu/gdb/debug $B/kestrel $(if $(CORE),--core $(CORE),$(BOOT_OPTIONS))

console: ## beside `make debug`, in another terminal: the console of its guest
	qemu/gdb/console $B/debug.socket

# The tests themselves are built with sanitizers (tests/unit/rules.mk). A debugger may want one by name: build/host/unit/NAME.
unit-tests: $(UNIT_GENS) $(INSN_PROBES) $H/dtrace-hosted ## build what the host's unit tests use

# The architectures to test: the one that was asked for, or all. What the host runs is built once, and first.
TEST_ARCHS := $(if $(filter file,$(origin ARCH)),$(ARCHS),$(ARCH))
GUESTS_BUILT := $(TEST_ARCHS:%=guests-of-%)
.PHONY: $(GUESTS_BUILT)

$(GUESTS_BUILT): guests-of-%: $H/ktrdump $H/kdump $H/dtrace $H/mkfbt $H/mksyms $H/mkvars unit-tests $(HOST_LINUX_TEST)
	@$(MAKE) --no-print-directory ARCH=$* test-guests

test-guests: all $B/kestrel-test$(IMAGE_SUFFIX) $B/kestrel-without-inet$(IMAGE_SUFFIX) $(if $(HAVE_USERLAND),$B/user_test) $B/linux_test $B/linux_test_dynamic

test: $(GUESTS_BUILT) ## run every test on both architectures, or on ARCH=; TESTS='GLOB…' for some of them
	tests/run $(TEST_ARCHS:%=--arch %) $(TESTS)

SECONDS ?= 60
# Whoever commits it looks at the difference first: prose that tells of a number is not changed.
docs-refresh: $(GUESTS_BUILT) ## the listings and the picture of the pages anew, from what is printed now
	KESTREL_REFRESH=1 tests/run 'system/test_docs:*each listing shows*' 'system/test_labs:*each listing shows*'
	sed -n '/^```sh mix.sh/,/^```$$/{/^```/!p}' doc/exports.md > build/mix.sh
	qemu/boot --script build/mix.sh --trace build/mix.ktr
	$H/ktrdump --format svg -i build/mix.ktr -o doc/timeline.svg

stress: $(GUESTS_BUILT) ## all classes, all workloads, four CPUs for SECONDS=60: is every event accounted for?
	KESTREL_STRESS_SECONDS=$(SECONDS) tests/run $(TEST_ARCHS:%=--arch %) --jobs 1 system/test_stress

check: sanitized-tests $(GUESTS_BUILT) ## for every save: lint, unit tests and a guest of each architecture, in a minute
	tests/run $(TEST_ARCHS:%=--arch %) --check

lint: ## formatting, layers, headers that compile alone, cppcheck, shellcheck
	tests/lint/run

include ktr/rules.mk
-include $(wildcard tests/*/rules.mk)

format: ## format all C sources
	clang-format -i $$(git ls-files '*.c' '*.h')

compile_commands.json: ## a compilation database for editors
	@tests/lint/compile_commands.py '$(CC) $(subst ','\'',$(KERNEL_CFLAGS))' $(filter %.c,$(KERNEL_SRCS)) \
		-- '$(HOSTCC) $(HOST_CFLAGS)' $(KTR_TOOL_SRCS) $(KTR_TOOL_HOST_SRCS) $(UNIT_SRCS) > $@.$$$$ && mv $@.$$$$ $@

clean: ## remove everything built, but for what qemu/fetch-guest got
	find build -mindepth 1 -maxdepth 1 ! -name guest -exec rm -rf {} + 2>/dev/null || true
	rm -f compile_commands.json

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9_.-]+:.*## / {printf "%-24s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# A missing tool: install it and say so. Debian only; elsewhere install-tools prints the list.
ifeq ($(filter clean help,$(MAKECMDGOALS)),)
TOOLS := $(CC) pahole cpio qemu-system-$(ARCH) $(if $(GRUB_BOOTS),grub-mkrescue xorriso)
MISSING := $(shell for t in $(TOOLS); do command -v $$t >/dev/null || printf '%s ' $$t; done)
ifneq ($(MISSING),)
$(info make: missing: $(MISSING))
$(info $(shell qemu/install-tools $(if $(filter x86_64,$(ARCH)),run,$(ARCH)) >&2 || echo "make: qemu/install-tools failed"))
endif
endif

-include $(KERNEL_OBJS:.o=.d) $(KTEST_OBJS:.o=.d) $(ULIB_OBJS:.o=.d) $(KTRDUMP_OBJS:.o=.d) $(KTRDUMP_GUEST_OBJS:.o=.d) $(USER_TEST_OBJS:.o=.d)
-include $(wildcard $B/*.c.d $H/*.c.d $H/unit/*.c.d $B/user/userland/bin/*.d $B/user/userland/bin/*/*.d $B/user/userland/bin/*/*/*.d $H/obj/tests/unit/*.d $H/obj/kernel/*/*.d $H/obj/kernel/*/*/*.d $H/obj/ktr/*.d $H/obj/ktr/*/*.d $H/obj/userland/*/*.d $H/obj/userland/*/*/*.d $H/obj/userland/*/*/*/*.d)
