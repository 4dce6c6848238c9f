# rules.mk - make test-xv6.

XV6 ?= https://github.com/mit-pdos/xv6-riscv

.PHONY: test-xv6

test-xv6: ktr-amalgamation build/host/ktrdump ## the log in xv6-riscv, as ktr/README.md says: needs the network, or XV6=REPOSITORY
	tests/xv6/run $(XV6)
