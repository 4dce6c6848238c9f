# rules.mk - make bench.

.PHONY: bench bench-programs

bench: $(ARCHS:%=guests-of-%) bench-programs build/ktr/riscv64-bench ## measure: instructions, bytes, rates; one table, and build/bench.json
	tests/bench/run

# The record benchmark: KTR with a port of its own, which is x86_64's; not position independent, for the sites.
BENCH := $H/bench
BENCH_SITES := 100 1000 10000
ifeq ($(shell uname -m),x86_64)
BENCH_PROGRAMS += $(BENCH)/record $(BENCH_SITES:%=$(BENCH)/growth%)
# With LTTng's development files (liblttng-ust-dev), to compare.
BENCH_PROGRAMS += $(if $(wildcard /usr/include/*/lttng/tracepoint.h),$(BENCH)/record_lttng.so)
endif
BENCH_LIB_SRCS := tests/bench/port/ktr_port.c $(KTR_KERNEL_SRCS)
BENCH_RECORD_SRCS := tests/bench/record.c tests/bench/record_shared.c
# No vector registers, as kernels are built: else GCC reads two parameters as one vector, which has to wait for both.
BENCH_CFLAGS := -std=gnu11 -O2 -g -fno-pie -mgeneral-regs-only $(WARN) -I. -Itests/bench/port

bench-programs: $(BENCH_PROGRAMS)

$(BENCH)/obj/%.o: %
	$(folder)
	$(call say,HOSTCC)
	$Q$(HOSTCC) $(BENCH_CFLAGS) -MMD -MP -c $< -o $@

$(BENCH)/obj/growth%.o: tests/bench/growth.c
	$(folder)
	$(call say,HOSTCC)
	$Q$(HOSTCC) $(BENCH_CFLAGS) -DSITES=$* -MMD -MP -c $< -o $@

BENCH_LIB_OBJS := $(BENCH_LIB_SRCS:%=$(BENCH)/obj/%.o)
$(BENCH)/growth%: $(BENCH)/obj/growth%.o $(BENCH_LIB_OBJS)
	$(call say,HOSTCC)
	$Q$(HOSTCC) -no-pie -o $@ $^

$(BENCH)/record: $(BENCH_RECORD_SRCS:%=$(BENCH)/obj/%.o) $(BENCH_LIB_OBJS)
	$(call say,HOSTCC)
	$Q$(HOSTCC) -no-pie -o $@ $^ -lpthread -ldl

$(BENCH)/lttng_tp.h: tests/bench/lttng.tp
	$(folder)
	$(call say,GEN)
	$Qlttng-gen-tp -o $@ -o $(@:.h=.c) $<

$(BENCH)/record_lttng.so: tests/bench/record_lttng.c $(BENCH)/lttng_tp.h
	$(call say,HOSTCC)
	$Q$(HOSTCC) -std=gnu11 -O2 -fPIC -shared -Wall -Wextra -Werror -I. -I$(BENCH) -o $@ $< $(BENCH)/lttng_tp.c -llttng-ust -ldl

-include $(wildcard $(BENCH)/obj/*.d $(BENCH)/obj/*/*.d $(BENCH)/obj/*/*/*.d $(BENCH)/obj/*/*/*/*.d)
