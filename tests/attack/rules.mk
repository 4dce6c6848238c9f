# rules.mk - make attack.

.PHONY: attack

ATTACK_MINUTES ?= $(or $(MINUTES),2)

attack: $(GUESTS_BUILT) sanitized-tests ## users, streams, consoles and resets that mean ill, MINUTES=2 a port, SEED= as printed
	tests/attack/run --minutes $(ATTACK_MINUTES) $(TEST_ARCHS:%=--arch %) $(if $(SEED),--seed $(SEED))
