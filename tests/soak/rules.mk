# rules.mk - make soak.

.PHONY: soak

MINUTES ?= 10

soak: $(GUESTS_BUILT) ## everything about the log at once for MINUTES=10, SEED= as printed: is every event accounted for?
	tests/soak/run --minutes $(MINUTES) $(TEST_ARCHS:%=--arch %) $(if $(SEED),--seed $(SEED))
