# rules.mk - make soak.

.PHONY: soak

MINUTES ?= 10

soak: $(GUESTS_BUILT) sanitized-tests ## everything about the log at once for MINUTES=10, SEED= as printed: is every event accounted for?
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=20000 $H-restart/unit/ktr_inject_test
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=20000 $H-asan/unit/ktr_inject_test
	KTR_TEST_ROUNDS=6000 $H-asan/unit/ktr_image_test
	tests/soak/run --minutes $(MINUTES) $(TEST_ARCHS:%=--arch %) $(if $(SEED),--seed $(SEED))
