# rules.mk - make fuzz: every tests/fuzz/NAME_fuzz.c is a libFuzzer program with AddressSanitizer and
# UndefinedBehaviorSanitizer, over what it calls of ktr's host sources and the kernel's pure parsers.

FUZZ_SECONDS ?= 60
FUZZ_CC      := clang-14
F            := build/fuzz
FUZZ_SRCS    := $(wildcard tests/fuzz/*_fuzz.c)
FUZZ_TARGETS := $(FUZZ_SRCS:tests/fuzz/%.c=$F/%)
FUZZ_LIB_SRCS := $(KTR_HOST_SRCS) kernel/dev/virtio/caps.c kernel/dev/virtio/control.c kernel/dev/virtio/ring.c kernel/fs/cpio.c kernel/lib/fdt.c kernel/lib/fdt_bus.c kernel/net/control.c kernel/proc/elf.c \
	kernel/sysctl/loader_conf.c kernel/sysctl/value.c ktr/tools/ktrace_file.c ktr/tools/ktrdump_filter.c $(DIF_HOST_SRCS) \
	$(filter-out %/kdump.c %/tool.c,$(KDUMP_SRCS)) $(filter-out %/main.c,$(DTRACE_SRCS))
$F/obj/userland/bin/dtrace/%.o: FUZZ_CFLAGS += -D_GNU_SOURCE
FUZZ_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
# ELF headers are checked alike on every port; the headers of the first port define the end of user space. Records are
# restartable, so that exceptions and migrations can come in their middle.
FUZZ_CFLAGS = -std=gnu11 -O1 -gline-tables-only -DKTR_HOST_RESTART -fno-omit-frame-pointer $(FUZZ_SANITIZE) -fsanitize=fuzzer-no-link $(WARN) \
	-I. -Iktr/port/host -Iarch/$(firstword $(ARCHS)) -Ikernel/abi/$(firstword $(ARCHS))

# Programs of bytecode are found by what code they reach; comparisons say nothing of them, and cost half of the time.
$F/obj/kernel/dtrace/%.o $F/obj/tests/fuzz/dif_%.o: FUZZ_CFLAGS += -fno-sanitize-coverage=trace-cmp

$F/obj/%.o: %
	$(folder)
	$(call say,FUZZCC)
	$Q$(FUZZ_CC) $(FUZZ_CFLAGS) -MMD -MP -c $< -o $@

# A target has what it calls, and nothing else.
$F/library.a: $(FUZZ_LIB_SRCS:%=$F/obj/%.o)
	@rm -f $@
	$(call say,AR)
	$Qar rcsD $@ $^

$(FUZZ_TARGETS): $F/%: $F/obj/tests/fuzz/%.c.o $F/library.a
	$(call say,LINK)
	$Q$(FUZZ_CC) $(FUZZ_SANITIZE) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $F/library.a $(FUZZ_LDFLAGS) -lpthread

# The target makes up the symbols of a kernel.
$F/kprobe_fuzz: $F/obj/kernel/probe/kprobe_parse.c.o $F/obj/kernel/probe/kprobe_arg.c.o

# The target is the host.
$F/9p_fuzz: $F/obj/kernel/fs/9p/protocol.c.o

# The target is the disk.
$F/ext2_fuzz: $(patsubst %,$F/obj/kernel/fs/ext2/%.c.o,super balloc bmap inode dir) $F/obj/kernel/block/partition.c.o

# The target is the host of the line, or the kernel.
$F/dif_line_fuzz: $(patsubst %,$F/obj/kernel/dtrace/%.c.o,dif/rate dif/session dif/serve own)
$F/dif_remote_fuzz: $(patsubst %,$F/obj/kernel/dtrace/host/%.c.o,device remote remote_sound) $F/obj/kernel/probe/rate.c.o
$F/dif_remote_fuzz: FUZZ_LDFLAGS := -Wl,--wrap=open,--wrap=ioctl
$F/obj/kernel/dtrace/host/%.o: FUZZ_CFLAGS += -D_GNU_SOURCE

.PHONY: fuzz fuzz-targets

fuzz-targets: $(FUZZ_TARGETS) $(UNIT_GENS) ## build the fuzz targets (tests/fuzz)

fuzz: fuzz-targets ## fuzz every target for FUZZ_SECONDS=60
	tests/fuzz/run --seconds $(FUZZ_SECONDS)

test: fuzz-targets

-include $(wildcard $F/obj/tests/fuzz/*.d $F/obj/ktr/*.d $F/obj/ktr/*/*.d $F/obj/ktr/*/*/*.d $F/obj/kernel/*/*.d $F/obj/kernel/*/*/*.d $F/obj/userland/*/*/*.d $F/obj/userland/*/*/*/*.d)
