# rules.mk - the unit tests again: under sanitizers (build/host-asan, build/host-tsan), with the hosted port's other kind of
# claim (build/host-restart), and as they compile fastest, for mutants (build/host-plain).

.PHONY: sanitized-tests

# AddressSanitizer and UndefinedBehaviorSanitizer for everything that runs on the host; ThreadSanitizer for what has
# threads. TSan takes fences for nothing, and GCC warns of them: here all that they order is atomic by itself. With -Og
# GCC compiles sanitized code in a third of the time that -O2 takes, and it runs nearly as fast.
asan_FLAGS := -Og -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
restart_FLAGS := -O1 -g1 -DKTR_HOST_RESTART
plain_FLAGS := -O0 -g0
tsan_FLAGS := -Og -g1 -fsanitize=thread -Wno-tsan
# What scripts run often starts in four fifths of the time with the sanitizers' libraries linked to it, if they are there.
asan_OFTEN := $(foreach lib,asan ubsan,$(if $(filter /%,$(shell $(HOSTCC) -print-file-name=lib$(lib).a)),-static-lib$(lib)))
# What a test of each kind links: those of all kinds but the first are about the log alone.
asan_LIB_OBJS := $(UNIT_LIB_OBJS)
tsan_LIB_OBJS := $(KTR_HOST_SRCS:%=$H/obj/%.o)
restart_LIB_OBJS := $(tsan_LIB_OBJS)
plain_LIB_OBJS := $(tsan_LIB_OBJS)
asan_PROGRAMS := $(UNIT_TESTS:$H/%=%) $(UNIT_GENS:$H/%=%) ktrdump kdump dtrace-hosted
restart_PROGRAMS := $(patsubst tests/unit/%.c,unit/%,$(shell grep -l KTR_HOST_RESTART $(UNIT_SRCS)))
tsan_PROGRAMS := $(patsubst tests/unit/%.c,unit/%,$(shell grep -l pthread_create $(UNIT_SRCS)))

define sanitized
$H-$(1)/obj/%.o: %
	$$(folder)
	$$(call say,HOSTCC)
	$$Q$$(HOSTCC) $$(HOST_CFLAGS) $$($(1)_FLAGS) -MMD -MP -c $$< -o $$@

$H-$(1)/obj/ktr/tools/export/html_page.c.o: $(wildcard ktr/tools/export/html/*)

$H-$(1)/unit/%: $H-$(1)/obj/tests/unit/%.c.o $($(1)_LIB_OBJS:$H/%=$H-$(1)/%)
	$$(folder)
	$$(call say,HOSTCC)
	$$Q$$(HOSTCC) $$($(1)_FLAGS) $$(if $$(filter %_gen,$$@),$$($(1)_OFTEN)) -o $$@ $$^ -lcmocka -lpthread

$H-$(1)/ktrdump: $(KTRDUMP_OBJS:$H/%=$H-$(1)/%)
	$$(call say,HOSTCC)
	$$Q$$(HOSTCC) $$($(1)_FLAGS) $$($(1)_OFTEN) -o $$@ $$^ -lelf -lz -lpthread

$(KDUMP_SRCS:%=$H-$(1)/obj/%.o): HOST_CFLAGS += $(KDUMP_CFLAGS)
$H-$(1)/kdump: $(KDUMP_SRCS:%=$H-$(1)/obj/%.o)
	$$(call say,HOSTCC)
	$$Q$$(HOSTCC) $$($(1)_FLAGS) $$($(1)_OFTEN) -o $$@ $$^

$(patsubst %,$H-$(1)/obj/%.o,$(DTRACE_DEVICE_SRCS) tests/unit/dtrace_hosted.c): HOST_CFLAGS += -D_GNU_SOURCE
$H-$(1)/dtrace-hosted: $(DTRACE_HOSTED_OBJS:$H/%=$H-$(1)/%)
	$$(call say,HOSTCC)
	$$Q$$(HOSTCC) $$($(1)_FLAGS) $$($(1)_OFTEN) -o $$@ $$^ $(DTRACE_LDFLAGS) -lpthread

sanitized-tests: $($(1)_PROGRAMS:%=$H-$(1)/%)

-include $$(wildcard $H-$(1)/obj/*/*.d $H-$(1)/obj/*/*/*.d $H-$(1)/obj/*/*/*/*.d $H-$(1)/obj/*/*/*/*/*.d)
endef
$(eval $(call sanitized,asan))
$(eval $(call sanitized,tsan))
$(eval $(call sanitized,restart))
$(eval $(call sanitized,plain))

sanitized-tests: ## build the unit tests with AddressSanitizer, UBSan and ThreadSanitizer, and with restartable claims
test: sanitized-tests
