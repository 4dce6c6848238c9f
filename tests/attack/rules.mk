# rules.mk - make attack, make torture.

.PHONY: attack torture

ATTACK_MINUTES ?= $(or $(MINUTES),2)

attack: $(GUESTS_BUILT) sanitized-tests ## users, streams, consoles and resets that mean ill, MINUTES=2 a port, SEED= as printed
	tests/attack/run --minutes $(ATTACK_MINUTES) $(TEST_ARCHS:%=--arch %) $(if $(SEED),--seed $(SEED))

torture: $(GUESTS_BUILT) ## machines reset while programs write to their disk, RESETS=20 a port, SEED= as printed
	tests/attack/torture --resets $(or $(RESETS),20) $(TEST_ARCHS:%=--arch %) $(if $(SEED),--seed $(SEED))
