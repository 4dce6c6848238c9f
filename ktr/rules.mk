# rules.mk - the log as two files, for other kernels, and the example of such a one: ktr/README.md.

.PHONY: ktr-amalgamation dif-amalgamation ktr-example

ktr-amalgamation: build/ktr/ktr.c ## write build/ktr/ktr.c and ktr.h, the log as two files for other kernels

build/ktr/ktr.c: ktr/amalgamate LICENSE $(KTR_KERNEL_SRCS) $(KTR_PORT_SRCS) $(wildcard ktr/*.h ktr/*.def ktr/port/*.h)
	$(call say,GEN)
	$Qktr/amalgamate ktr build/ktr $(KTR_KERNEL_SRCS) $(KTR_PORT_SRCS)
	$Qcp ktr/port/ktr_port_default.h build/ktr/
	$Qsed '/^#include "ktr/d' ktr/port/ktr_x86_64.h > build/ktr/ktr_x86_64.h

dif-amalgamation: build/ktr/dif.c ## write build/ktr/dif.c and dif.h, D for kernels that have the log

DIF_SRCS := $(addprefix kernel/dtrace/,aggregate.c decode.c load.c memory.c own.c probe.c record.c run.c status.c string.c subr.c text.c variable.c \
	verify.c dif/default.c dif/rate.c dif/serve.c dif/session.c) kernel/lib/string.c
build/ktr/dif.c: build/ktr/ktr.c $(DIF_SRCS) $(wildcard kernel/abi/dif* kernel/dtrace/*.h kernel/dtrace/dif/*.h) kernel/lib/string.h
	$(call say,GEN)
	$Qktr/amalgamate dif build/ktr $(DIF_SRCS)

# A bare-metal program for riscv64, on one hart or four, with text patching or without: riscv64-virt-HARTS-PATCH.
KTR_EXAMPLE   := ktr/examples/riscv64-virt
KTR_EXAMPLES  := $(foreach n,1 4,$(foreach p,0 1,build/ktr/riscv64-virt-$n-$p))
KTR_EXAMPLE_CC = riscv64-unknown-elf-gcc -std=gnu11 -O2 -g -ffreestanding -nostdinc \
	-isystem $(shell riscv64-unknown-elf-gcc -print-file-name=include) -march=rv64imac -mabi=lp64 -misa-spec=2.2 \
	-mcmodel=medany -fno-tree-loop-distribute-patterns -fno-strict-aliasing -fwrapv $(WARN) $(REPRODUCIBLE) -Ibuild/ktr -I$(KTR_EXAMPLE)

ktr-example: $(KTR_EXAMPLES) ## build ktr/examples: the log in a bare-metal riscv64 program

define KTR_EXAMPLE_COMPILE
	$(folder)
	$(call say,CC)
	$Q$(KTR_EXAMPLE_CC) $(addprefix -D,$(join HARTS= KTR_PORT_PATCH=,$(subst -, ,$*))) -c $< -o $@
endef

# HARTS PATCH, then the sources and objects
KTR_EXAMPLE_LINK = $Q$(KTR_EXAMPLE_CC) -DHARTS=$(1) -DKTR_PORT_PATCH=$(2) -nostdlib -static -T $(KTR_EXAMPLE)/kernel.ld \
	-Wl,--defsym=HARTS=$(1) -Wl,--no-warn-rwx-segments -o $@ $(3)

# The log and D, of the same HARTS-PATCH, are the same in all programs.
build/ktr/riscv64-%/ktr.o: build/ktr/ktr.c $(KTR_EXAMPLE)/ktr_port.h
	$(KTR_EXAMPLE_COMPILE)
build/ktr/riscv64-%/dif.o: build/ktr/dif.c build/ktr/ktr.c $(KTR_EXAMPLE)/ktr_port.h
	$(KTR_EXAMPLE_COMPILE)

build/ktr/riscv64-virt-%: build/ktr/riscv64-%/ktr.o $(wildcard $(KTR_EXAMPLE)/*)
	$(call say,LINK)
	$(call KTR_EXAMPLE_LINK,$(word 1,$(subst -, ,$*)),$(word 2,$(subst -, ,$*)),$(filter %.c %.S %.o,$^))

# The same for dtrace: riscv64-dif-HARTS-PATCH.
build/ktr/riscv64-dif-%: build/ktr/riscv64-%/ktr.o build/ktr/riscv64-%/dif.o $(wildcard $(KTR_EXAMPLE)/*)
	$(call say,LINK)
	$(call KTR_EXAMPLE_LINK,$(word 1,$(subst -, ,$*)),$(word 2,$(subst -, ,$*)),-DTRACED $(filter %.c %.S %.o,$^))

# In place of the example's main.c: what a record costs, and a firing of a program.
build/ktr/riscv64-bench.dif: build/host/dtrace
	$(call say,GEN)
	$Qbuild/host/dtrace -A -o $@ -x nolibs -x bufsize=4k -x aggsize=4k -x dynvarsize=0 -x nspec=0 -n 'ktr::rounds: { @ = count(); }' 2>/dev/null

build/ktr/riscv64-bench: build/ktr/riscv64-1-1/ktr.o build/ktr/riscv64-1-1/dif.o build/ktr/riscv64-bench.dif tests/bench/riscv64.c $(wildcard $(KTR_EXAMPLE)/*)
	$(call say,LINK)
	$(call KTR_EXAMPLE_LINK,1,1,-DBENCH_IMAGE='"build/ktr/riscv64-bench.dif"' $(filter-out %/main.c,$(filter %.c %.S %.o,$^)))
