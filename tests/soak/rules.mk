# rules.mk - make soak.

.PHONY: soak

MINUTES ?= 10
# The test files of which `make test` does less: fewer repetitions, numbers of CPUs, or ports.
WHOLE_TESTS = $(patsubst tests/%.py,'%',$(shell grep -lw -e times -e cpus -e portable_test -e WHOLE tests/system/test_*.py))

soak: $(GUESTS_BUILT) sanitized-tests ## everything about the log at once for MINUTES=10, SEED= as printed: is every event accounted for?
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=20000 $H-restart/unit/ktr_inject_test
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=20000 $H-asan/unit/ktr_inject_test
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=6000 $H-asan/unit/ktr_image_test
	KESTREL_WHOLE=1 tests/run $(TEST_ARCHS:%=--arch %) $(WHOLE_TESTS) 'kernel/*'
	tests/soak/run --minutes $(MINUTES) $(TEST_ARCHS:%=--arch %) $(if $(SEED),--seed $(SEED))
