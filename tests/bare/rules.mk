# rules.mk - make test-bare.

.PHONY: test-bare

test-bare: ## README's commands in a minimal Debian, as an ordinary user: needs root, the network and half an hour
	tests/bare/run
