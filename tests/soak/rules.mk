# rules.mk - make soak.

.PHONY: soak

MINUTES ?= 10
# The tests of which `make test` does less: fewer repetitions, numbers of CPUs, or ports, or a part (tests/part.py).
WHOLE_TESTS = $(patsubst tests/%.py,'%',$(shell grep -lw -e times -e cpus -e portable_test -e 'from part' -e WHOLE \
	tests/system/test_*.py)) 'kernel/*' 'unit/*' 'sanitize/*' model mutants lint fuzz

soak: $(GUESTS_BUILT) sanitized-tests fuzz-targets ## everything about the log at once for MINUTES=10, SEED= as printed: is every event accounted for?
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=20000 $H-restart/unit/ktr_inject_test
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=20000 $H-asan/unit/ktr_inject_test
	KTR_TEST_ALL=1 KTR_TEST_ROUNDS=6000 $H-asan/unit/ktr_image_test
	KESTREL_WHOLE=1 tests/run $(TEST_ARCHS:%=--arch %) $(WHOLE_TESTS)
	tests/soak/run --minutes $(MINUTES) $(TEST_ARCHS:%=--arch %) $(if $(SEED),--seed $(SEED))
